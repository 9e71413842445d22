"""Rest and widening: how a search among integers goes on when it stands still."""

from __future__ import annotations

import math
from dataclasses import dataclass

from esgroup.checks import Array

SIZE = 6  # numbers that a search keeps


@dataclass(frozen=True)
class Widening:
    """Begin anew from where the search stands, with the first standard deviations, once integers have come to rest.

    A flip of an integer is as a rule good only along with other real coordinates, or other integers. When the real ones
    have narrowed around the best point of their integers, no flip gets better, and the search would stay for ever. It is
    at rest when in `patience` generations, 10 + 10 n / lambda, no value was better by more than `tolerance` times all
    that was gained since it was last widened, while all integers have standard deviations below 1/2. Then the
    distribution becomes the first one, about the present mean, up to `idle` times in a row without a better value.
    """

    patience: int
    idle: int = 5
    tolerance: float = 1e-12
    widest: float = 0.5

    @classmethod
    def of(cls, dim: int, popsize: int) -> Widening:
        import os
        return cls(10 + math.ceil(float(os.environ.get("PAT", 10)) * dim / popsize), idle=int(os.environ.get("IDLE", 5)), tolerance=float(os.environ.get("TOL", "1e-12")))

    def note(self, memory: Array, value: float, widest: float) -> bool:
        """Note the best value of a generation and the widest integer; returns whether to widen the distribution.

        `memory` has the first and the best value since the last widening, the generations since the best one, the best
        value before, the number of times it was widened, and how often in a row without a better value. The number of
        generations is -1 as long as there is no value.
        """
        first, best, since, record, times, idle = memory.tolist()
        if since < 0:
            if not math.isfinite(value):
                return False
            first, best, since = value, value, 0.0
        elif value < best - self.tolerance * (first - best):
            best, since = value, 0.0
        else:
            since += 1.0
        due = since >= self.patience and widest < self.widest and idle < self.idle
        if due:
            better = times == 0 or best < record
            record = best if better else record
            times, idle, since = times + 1.0, 0.0 if better else idle + 1.0, -1.0
        memory[:] = first, best, since, record, times, idle
        return due
