"""How the step size changes with the iterations t = 1, 2, ...: a factor of the rate."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from esgroup import checks


class Schedule(ABC):
    """A factor for every iteration, counted from 1."""

    @abstractmethod
    def factor(self, t: int) -> float:
        """The factor of the rate."""

    def factors(self, t: int, momentum: float) -> tuple[float, float]:
        """Factors for the mean's step along the average gradient Z, and for the root.

        Z_t = (1 - c) g_t + c Z_{t-1} is too short in the beginning: the mean's factor is divided by 1 - c^t.
        """
        factor = self.factor(t)
        return factor / (1.0 - momentum**t), factor


@dataclass(frozen=True)
class Constant(Schedule):
    """1, always."""

    def factor(self, t: int) -> float:
        return 1.0


@dataclass(frozen=True)
class Linear(Schedule):
    """From 1 in the first iteration to `last` in that of number `iterations`, along a line, and `last` after it."""

    iterations: int
    last: float = 0.01

    def __post_init__(self) -> None:
        checks.store_whole_number(self, "iterations", least=1)
        _at_most_one("last", self.last)

    def factor(self, t: int) -> float:
        done = min(1.0, (t - 1) / max(1, self.iterations - 1))
        return 1.0 + done * (self.last - 1.0)


@dataclass(frozen=True)
class Inverse(Schedule):
    """1 / (1 + (t - 1) / half): 1 in the first iteration, a half after `half` more, then as 1/t."""

    half: float = 100.0

    def __post_init__(self) -> None:
        checks.real_number("half", self.half, positive=True)

    def factor(self, t: int) -> float:
        return 1.0 / (1.0 + (t - 1) / self.half)


@dataclass(frozen=True)
class Exponential(Schedule):
    """(1 - c2^t) / (1 - c1^t) for mean and root alike, with c1 the momentum: the paper's, eq. gauss_newton_matgauss.

    There beta_t is this factor alone; the rate is meant to be in front of it. Without momentum it is 1 - c2^t.
    """

    c2: float = 0.999

    def __post_init__(self) -> None:
        if not 0 <= checks.real_number("c2", self.c2) < 1:
            raise ValueError(f"c2 must be at least 0 and below 1, got {self.c2!r}")

    def factor(self, t: int) -> float:
        return float(1.0 - self.c2**t)

    def factors(self, t: int, momentum: float) -> tuple[float, float]:
        factor = self.factor(t) / (1.0 - momentum**t)
        return factor, factor


@dataclass(frozen=True)
class Own(Schedule):
    """A function of t that the caller wrote."""

    function: Callable[[int], Any]

    def factor(self, t: int) -> float:
        return checks.real_number("schedule(t)", self.function(t), positive=True)


def as_schedule(schedule: Any, max_iters: int | None) -> Schedule:
    """A schedule, its name ("constant", "linear", "inverse", "exponential"), or a function of t."""
    if isinstance(schedule, Schedule):
        return schedule
    if schedule == "linear":
        if max_iters is None:
            raise ValueError("schedule='linear' ends at max_iters: give max_iters=, or Linear(iterations)")
        return Linear(max_iters)
    names: dict[Any, type[Schedule]] = {"constant": Constant, "inverse": Inverse, "exponential": Exponential}
    if isinstance(schedule, str) and schedule in names:
        return names[schedule]()
    if not callable(schedule):
        named = "'constant', 'linear', 'inverse', 'exponential'"
        raise ValueError(f"schedule must be {named}, a Schedule or a function of t, got {schedule!r}")
    return Own(schedule)


def _at_most_one(name: str, value: Any) -> None:
    if not 0 < checks.real_number(name, value) <= 1:
        raise ValueError(f"{name} must be above 0 and at most 1, got {value!r}")
