"""Two-point step-size adaptation: is it better to go further, or not as far, in the direction of the last move?"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from esgroup.checks import Array
from esgroup.groups import Group
from esgroup.groups.linalg import SingularElementError
from esgroup.strategies.base import Indices
from esgroup.strategies.ranks import ranks_of_two
from esgroup.strategies.step_size import Moved, StepSize

AHEAD, BEHIND = 1, 2  # tags


@dataclass(frozen=True)
class TwoPointStepSize(StepSize):
    """Two samples of a generation lie ahead of and behind the mean, and their ranks decide.

    With the last move of the mean v, in local coordinates w = A^-1 D^-1 v, and the length |z| of a sample,

        z_1 = |z| w / |w|,   z_2 = -z_1,
        s <- (1 - c) s + c (rank(z_2) - rank(z_1)) / (lambda - 1),   log step = s / d,   c = 0.3, d = sqrt(n)

    where the best sample has the lowest rank (Hansen, Atamna and Auger 2014, section 2; constants as in Akimoto and
    Hansen 2016, VkD-CMA-ES). Only ranks count, so no path is needed, and z_1 and z_2 take part in the update like any
    other sample. If the two are not told in the same generation, sigma stays the same. If samples are mirrored, they
    are a pair.
    """

    c: float = 0.3

    def memory(self, dim: int) -> int:
        return dim + 1  # v, then s

    def mark(self, group: Group, root: Array, scale: Array, memory: Array, z: Array) -> Indices | None:
        if len(z) < 2 or not memory[:-1].any():
            return None
        try:
            w = group._solve(root, (memory[:-1] / scale)[None])[0]
        except SingularElementError:  # the next refresh repairs it
            return None
        size = float(np.abs(w).max())
        if not 0.0 < size < math.inf:
            return None
        w /= size  # so that its square does not overflow
        mirror = np.flatnonzero((z == -z[0]).all(axis=1))
        other = int(mirror[0]) if len(mirror) else 1
        z[0] = np.linalg.norm(z[0]) / np.linalg.norm(w) * w
        z[other] = -z[0]
        tags = np.zeros(len(z), dtype=np.int64)
        tags[0], tags[other] = AHEAD, BEHIND
        return tags

    def log_step(self, moved: Moved) -> float:
        memory, n = moved.memory, len(moved.order)
        memory[:-1] = moved.shift
        ranks = ranks_of_two(moved.order, moved.tags, AHEAD, BEHIND)
        if ranks is None:
            return 0.0
        ahead, behind = ranks
        memory[-1] += self.c * ((behind - ahead) / (n - 1) - memory[-1])
        return min(1.0, float(memory[-1]) / math.sqrt(len(memory) - 1))
