"""Restarts: a search that ended short of its target begins anew elsewhere, with another population.

A strategy is pure: it is told what the last run used and says how the next one differs. What it must remember is a
tuple of numbers, so that a checkpoint holds it as JSON.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from esgroup import checks


class Schedule(NamedTuple):
    """What a strategy remembers."""

    popsize: int  # of the first run
    doublings: int = 0  # of the large population
    small: bool = False  # whether the present run is one of the second regime
    large_evals: int = 0  # used by all runs of the first regime, the very first run left out
    small_evals: int = 0  # used by all runs of the second
    last_large: int = 0  # used by the last run of the first regime


class Plan(NamedTuple):
    """How the next run differs from the first."""

    popsize: int
    sigma_factor: float = 1.0
    max_evals: int | None = None  # of this run alone


class Restarts(Protocol):
    """A restart strategy."""

    def next(self, schedule: Schedule, evals: int, rng: np.random.Generator) -> tuple[Schedule, Plan] | None:
        """The run after one that used `evals` evaluations, or None to end here."""


@dataclass(frozen=True)
class IPOP:
    """The population doubles with each restart: popsize 2^i, i = 1 ... doublings (Auger and Hansen 2005)."""

    doublings: int = 9  # the most that Hansen 2009 used

    def __post_init__(self) -> None:
        checks.store_whole_number(self, "doublings", most=30)

    def next(self, schedule: Schedule, evals: int, rng: np.random.Generator) -> tuple[Schedule, Plan] | None:
        """Twice the population, the same step size."""
        if schedule.doublings >= self.doublings:
            return None
        schedule = schedule._replace(doublings=schedule.doublings + 1, small=False)
        return schedule, Plan(_large(schedule))


@dataclass(frozen=True)
class BIPOP:
    """IPOP, with runs of small populations between, on equal budgets (Hansen 2009, section 2).

    The regime that has used fewer evaluations is next; the very first run counts for neither. A small run has
    floor(popsize (L / 2)^(u^2)) points a generation, L = 2^doublings, and starts with 10^(-2 v) sigma0, where u and v
    are uniform in [0, 1]; it may use half of what the last large run did.
    """

    doublings: int = 9

    def __post_init__(self) -> None:
        checks.store_whole_number(self, "doublings", most=30)

    def next(self, schedule: Schedule, evals: int, rng: np.random.Generator) -> tuple[Schedule, Plan] | None:
        """The regime that is behind."""
        schedule = _charged(schedule, evals)
        if schedule.small_evals < schedule.large_evals:
            return schedule._replace(small=True), _small_run(schedule, rng)
        return IPOP(self.doublings).next(schedule, evals, rng)


def _large(schedule: Schedule) -> int:
    return schedule.popsize << schedule.doublings


def _charged(schedule: Schedule, evals: int) -> Schedule:
    """The evaluations of a run put down to its regime."""
    if schedule.small:
        return schedule._replace(small_evals=schedule.small_evals + evals)
    if schedule.doublings == 0:  # the very first run
        return schedule
    return schedule._replace(large_evals=schedule.large_evals + evals, last_large=evals)


def _small_run(schedule: Schedule, rng: np.random.Generator) -> Plan:
    u, v = rng.random(2)
    popsize = math.floor(schedule.popsize * (2.0**schedule.doublings / 2) ** (u * u))
    return Plan(popsize, 10.0 ** (-2 * v), max(1, schedule.last_large // 2))


_NAMES: dict[str, Callable[[], Restarts]] = {"ipop": IPOP, "bipop": BIPOP}


def as_restarts(restarts: Any) -> Restarts | None:
    """The strategy that `restarts` names or is."""
    if isinstance(restarts, str) and restarts in _NAMES:
        return _NAMES[restarts]()
    if restarts is None or (callable(getattr(restarts, "next", None)) and not isinstance(restarts, type)):
        strategy: Restarts | None = restarts
        return strategy
    kind = ValueError if isinstance(restarts, str) else TypeError
    raise kind(f"restarts must be None, 'ipop', 'bipop', IPOP(...) or BIPOP(...), got {restarts!r}")
