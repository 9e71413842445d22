"""Ask and tell over other spaces than vectors: matrices, scalars of any domain, several optima at once."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from esgroup import checks, setup, stopping
from esgroup.checks import Array
from esgroup.late import Asked
from esgroup.searcher import Searcher
from esgroup.strategies.base import Strategy
from esgroup.strategies.spaces import strategy_class

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult

_DEFAULTS: dict[str, Any] = {
    "sigma0": None,
    "structure": "auto",
    "bounds": None,
    "algorithm": "default",
    "decoding": "auto",
    "mirrored": False,
    "noise": None,
    "cov0": None,
    "fixed": None,
    "integer": None,
}


class SpaceSearcher(Searcher):
    """What `Searcher(distribution)` is for a distribution that is not a Gaussian over vectors.

    The verbs are the same; points have the shape of the distribution's. All that it can be told about how to search is
    in the distribution and in `popsize`: the other options of `Searcher` belong to vectors.
    """

    def __init__(
        self,
        start: Any,
        sigma0: Any = None,
        *,
        popsize: int | None = None,
        rng: Any = None,
        max_evals: int | None = None,
        max_iters: int | None = None,
        max_time: float | None = None,
        target: float | None = None,
        **options: Any,
    ) -> None:
        _refuse(start, {"sigma0": sigma0, **options})
        self._limits = stopping.limits(max_evals, max_iters, max_time, target)
        kind: Any = strategy_class(start)
        self.strategy: Strategy = kind(start, popsize)
        self._state: Any = self.strategy.start()  # of another kind than a vector's
        self.popsize, self.structure_note = self.strategy.popsize, ""
        self.rng = setup.generator(rng)
        self._first_stds = self.strategy.stds(self._state)
        self._clear()

    @property
    def shape(self) -> tuple[int, ...]:
        return self.strategy.shape

    @property
    def dim(self) -> int:
        """Entries of a point."""
        return math.prod(self.shape)

    @property
    def structure(self) -> Any:
        """The distribution that the search began with."""
        return self.strategy.distribution  # type: ignore[attr-defined]  # which every strategy has

    @property
    def mean(self) -> Array:
        return self.strategy.mean(self._state)

    @property
    def stds(self) -> Array:
        return self.strategy.stds(self._state)

    @property
    def sigma(self) -> float:
        """The geometric mean of the standard deviations of the entries."""
        return math.exp(float(np.log(self.stds).mean()))

    @property
    def axis_ratio(self) -> float:
        """The largest to the smallest standard deviation of an entry."""
        return float(self.stds.max() / self.stds.min())

    def _find_step_limits(self) -> None:
        """There are none."""

    # ---- ask and tell -------------------------------------------------------------------------------------------

    def ask(self, n: int | None = None) -> Array:
        n = self.popsize if n is None else checks.whole_number("n", n, least=1)
        x, local = self.strategy.sample(self._state, n, self.rng)
        taken, self._injected = self._injected[:n], self._injected[n:]
        if len(taken):
            x[: len(taken)], local[: len(taken)] = taken, self._whitened(taken)
        x = checks.read_only(np.ascontiguousarray(x))
        self._last = Asked(x, local, self.nit)  # type: ignore[arg-type]  # here a generation is its local coordinates
        self._asked.append(self._last)
        return x[:]

    def _check_feasible(self, points: Array) -> None:
        self.strategy.check(points)

    def _whitened(self, x: Array) -> Array:
        return self.strategy.local(self._state, x)

    def _rows(self, generation: Any) -> Array:
        rows: Array = generation
        return rows

    def _gathered(self, z: Array) -> Any:
        return z

    def _advance(self, generation: Any, order: Any, ranked: list[float]) -> None:
        self._state = self.strategy.update(self._state, generation, order)

    # ---- what is known ------------------------------------------------------------------------------------------

    def stop(self) -> dict[str, str]:
        found = stopping.budget_reasons(self._limits, self.nfev, self.nit, self.seconds, self.best_f)
        found |= stopping.value_reasons(self._record, self.nit, self.strategy.size, self.popsize, patient=False)
        return found | stopping.relative_spread(self.stds / self._first_stds) | self.strategy.ended(self._state)

    @property
    def result(self) -> OptimizeResult:
        found = super().result
        found.update(self.strategy.found(self._state))
        return found

    def __repr__(self) -> str:
        state = f"{self.nfev:,} evaluations, best value {self.best_f:.6g}" if self.nfev else "no values yet"
        shape = " x ".join(map(str, self.shape))
        return f"<Searcher over {shape} with {type(self.structure).__name__}, popsize {self.popsize}: {state}>"


def _refuse(start: Any, options: dict[str, Any]) -> None:
    unknown = [name for name in options if name not in _DEFAULTS]
    if unknown:
        raise TypeError(f"Searcher() has no argument {unknown[0]!r}")
    given = [name for name, value in options.items() if value is not _DEFAULTS[name] and value != _DEFAULTS[name]]
    if given:
        text = f"{given[0]} is an option of searches over vectors: leave it out, {type(start).__name__} has its own"
        raise ValueError(text)
