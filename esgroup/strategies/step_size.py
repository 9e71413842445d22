"""How sigma follows the search: a rule says by which factor it changes after a generation.

A rule is a frozen object beside recombination, decoding, adaptation and sampling. It may keep numbers of its own in the
state (`memory`), may shape some of the samples and recognise them by their tags, and answers with the logarithm of the
factor. The path p_s stays with the update of the mean, which decides by its length when the evolution path p_c pauses
(h_sigma), whatever the rule.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

from esgroup.checks import Array
from esgroup.groups import Group
from esgroup.strategies.base import Indices
from esgroup.strategies.recombination import Constants


class Moved(NamedTuple):
    """One generation as a rule sees it, after the mean has moved."""

    constants: Constants
    path_length: float  # |p_s|
    order: Indices  # rows from best to worst
    tags: Indices | None  # of the rows, 0 for samples that nobody marked
    shift: Array | None  # of the mean, for rules that keep a memory


class StepSize(Protocol):
    """A rule for sigma."""

    def memory(self, dim: int) -> int:
        """How many numbers the rule keeps in the state; they are 0 at the start."""
        ...

    def mark(self, group: Group, root: Array, scale: Array, memory: Array, z: Array) -> Indices | None:
        """Shape some of the samples z (n, dim) in place; returns the tags of all, None if none is marked."""
        ...

    def log_step(self, moved: Moved, memory: Array) -> float:
        """log(sigma_new / sigma), at most 1; updates the memory."""
        ...


@dataclass(frozen=True)
class CumulativeStepSize:
    """log step = (c_s / d_s) (|p_s| / chi - 1): a path that is longer than a random one asks for longer steps.

    Cumulative step-size adaptation (tutorial, eq. 44), with the exponent limited to 1.
    """

    def memory(self, dim: int) -> int:
        return 0

    def mark(self, group: Group, root: Array, scale: Array, memory: Array, z: Array) -> Indices | None:
        return None

    def log_step(self, moved: Moved, memory: Array) -> float:
        return min(1.0, moved.constants.drive * (moved.path_length / moved.constants.chi - 1.0))
