"""Ask and tell over other spaces than vectors: matrices, scalars of any domain, several optima at once."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any

import numpy as np

from esgroup import checks
from esgroup.checks import Array
from esgroup.running.limits import budget_reasons, parse_limits
from esgroup.search import arguments, stopping
from esgroup.search.late import Asked
from esgroup.search.searcher import Searcher
from esgroup.strategies.base import Strategy
from esgroup.strategies.spaces import strategy_class

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

    The verbs are the same; points have the shape of the distribution's. Most of what it can be told about how to search
    is in the distribution; of the options of `Searcher` it takes `popsize`, and those that are a field of the strategy:
    `bounds` for a mixture, `algorithm` for a matrix Gaussian.
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
        kind: Any = strategy_class(start)
        given = _given({"sigma0": sigma0, **options})
        _refuse(given, kind, start)
        self._limits = parse_limits(max_evals, max_iters, max_time, target)
        if popsize is not None:
            popsize = checks.whole_number("popsize", popsize, least=2)
        self.strategy: Strategy = kind(start, popsize, **given)
        self._state: Any = self.strategy.start()  # of another kind than a vector's
        self.popsize, self.structure_note = self.strategy.popsize, self.strategy.note
        self.rng = arguments.generator(rng)
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
        """The distribution and its structure in a few words."""
        return self.strategy.about

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
        return self.strategy.shortened(self.strategy.local(self._state, x))

    def _rows(self, generation: Any) -> Array:
        rows: Array = generation
        return rows

    def _gathered(self, z: Array) -> Any:
        return z

    def _advance(self, generation: Any, order: Any, ranked: list[float]) -> None:
        self._state = self.strategy.update(self._state, generation, order)
        # most values are equal, and not for ever: see Searcher
        if ranked[0] == ranked[int(0.7 * len(ranked))] and self._may_widen():
            self._state = self.strategy.leave_plateau(self._state, len(ranked))

    def _may_widen(self) -> bool:
        return float(np.log(self.stds / self._first_stds).mean()) < math.log(1e5)

    def _move(self, x: Array, generation: Any, values: Array, new: Array | None = None) -> None:
        super()._move(x, generation, values, values if new is None else new)  # so that all values come to `_note`

    def _note(self, x: Array, values: Array) -> None:
        super()._note(x, values)
        self._state = self.strategy.heard(self._state, x, values)

    # ---- what is known ------------------------------------------------------------------------------------------

    def stop(self) -> dict[str, str]:
        found = budget_reasons(self._limits, self.nfev, self.nit, self.seconds, self.best_f)
        found |= stopping.value_reasons(
            self._record, self.nit, self.strategy.size, self.popsize, patience=self.strategy.patience
        )
        return found | stopping.relative_spread(self.stds / self._first_stds) | self.strategy.ended(self._state)

    @property
    def details(self) -> dict[str, Any]:
        return self.strategy.found(self._state)

    def __repr__(self) -> str:
        state = f"{self.nfev:,} evaluations, best value {self.best_f:.6g}" if self.nfev else "no values yet"
        shape = " x ".join(map(str, self.shape))
        return f"<Searcher over {shape}, {self.structure}, popsize {self.popsize}: {state}>"


def _given(options: dict[str, Any]) -> dict[str, Any]:
    """The options that differ from the defaults of `Searcher`."""
    unknown = [name for name in options if name not in _DEFAULTS]
    if unknown:
        raise TypeError(f"Searcher() has no argument {unknown[0]!r}")
    return {name: value for name, value in options.items() if not _is_default(value, _DEFAULTS[name])}


def _is_default(value: Any, default: Any) -> bool:
    return value is default or (isinstance(value, (str, bool)) and value == default)


def _refuse(given: dict[str, Any], kind: Any, start: Any) -> None:
    own = {field.name for field in fields(kind)}
    for name in given:
        if name not in own:
            own_way = " has its own" if name in ("sigma0", "structure", "cov0") else " has none"
            raise ValueError(f"{name} cannot be given here: leave it out, {type(start).__name__}{own_way}")
