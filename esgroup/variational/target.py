"""f = -logp with its derivatives, at many points at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from esgroup import checks
from esgroup.checks import Array
from esgroup.gradients import as_function
from esgroup.gradients.function import Counts, Gradients, Hessians, Products, Values

Places = NDArray[np.intp]
Rows = Callable[..., Any]


@dataclass(frozen=True, eq=False)
class Target:
    """f = -logp: `function` says what is known of it, evaluates it and counts.

    `hessp`, `hess` and `hess_diag` of f, if they take rows, are here as well: `hessp(x, v)` has pairs of rows then.
    """

    function: Values
    hessp: Rows | None = None
    hess: Rows | None = None
    hess_diag: Rows | None = None
    paired: bool = False  # one call of logp gives value and gradient

    @property
    def counts(self) -> Counts:
        """How often f and its derivatives were evaluated."""
        return self.function.counts

    @property
    def knows_diagonal(self) -> bool:
        """Whether the diagonal of the Hessian need not be estimated."""
        known = self.function
        return isinstance(known, Hessians) or (isinstance(known, Products) and known.hess_diag is not None)


class TargetAt:
    """f and its derivatives at the rows of x, by their numbers; values are computed once."""

    def __init__(self, target: Target, x: Array) -> None:
        self._target, self._x = target, x
        self._values = np.zeros(len(x))
        self._known = np.zeros(len(x), dtype=bool)

    def values(self, places: Places) -> Array:
        """f, (n,)."""
        new = np.unique(places[~self._known[places]])
        if len(new):
            self._values[new] = self._target.function.values(self._x[new])
            self._known[new] = True
        return self._values[places]

    def gradients(self, places: Places) -> Array:
        """df/dx as rows."""
        known = self._as(Gradients)
        if not self._target.paired:
            gradients: Array = known.gradients(self._x[places])
            return gradients
        if known.vectorized:  # the last rows are remembered: ask for their values first, and for each row once
            rows, back = np.unique(places, return_inverse=True)
            self.values(rows)
            once: Array = known.gradients(self._x[rows])
            return once[back]
        found = np.empty((len(places), known.dim))
        for i, place in enumerate(places):  # value and gradient of a point together: the last pair is remembered
            self.values(places[i : i + 1])
            found[i] = known.gradient(self._x[place])
        return found

    def products(self, places: Places, v: Array) -> Array:
        """Rows H(x_place) v_i."""
        target = self._target
        if target.hessp is not None:
            target.counts.nhvp += len(v)
            return _checked("hessp(rows, rows)", target.hessp(_locked(self._x[places]), _locked(v)), v.shape)
        known, found = self._as(Products), np.empty(v.shape)
        cuts = np.flatnonzero(np.diff(places, prepend=-1, append=-1))  # a run of vectors for one point is one call
        for begin, end in pairwise(cuts):
            found[begin:end] = known.products(self._x[places[begin]], v[begin:end])
        return found

    def diagonals(self, places: Places) -> Array:
        """The diagonals of the Hessians as rows, where they are known."""
        target = self._target
        if target.hess_diag is not None:
            target.counts.ndiag += len(places)
            return _checked("hess_diag(rows)", target.hess_diag(_locked(self._x[places])), (len(places), self._dim))
        known, unused = self._as(Products), np.random.default_rng(0)
        return np.array([known.diagonal(self._x[place], unused) for place in places]).reshape(len(places), self._dim)

    def hessians(self, places: Places) -> Array:
        """The Hessians, (n, dim, dim)."""
        target, shape = self._target, (len(places), self._dim, self._dim)
        if target.hess is not None:
            target.counts.nhess += len(places)
            return _checked("hess(rows)", target.hess(_locked(self._x[places])), shape)
        known = self._as(Hessians)
        return np.array([known.hessian(self._x[place]) for place in places]).reshape(shape)

    @property
    def _dim(self) -> int:
        return self._target.function.dim

    def _as(self, kind: type[Any]) -> Any:
        function = self._target.function
        if not isinstance(function, kind):  # estimators are checked before they ask
            raise TypeError(f"the target must have {kind.__name__}, got {type(function).__name__}")
        return function


# ---- making ---------------------------------------------------------------------------------------------------------


def make_target(
    logp: Any,
    dim: int,
    *,
    jac: Any = None,
    hessp: Any = None,
    hess: Any = None,
    hess_diag: Any = None,
    hessp_vectorized: bool = False,
    vectorized: bool = False,
) -> Target:
    """The target of a log density and the derivatives that are given, of one point or of rows."""
    for name, function in (("logp", logp), ("jac", jac), ("hessp", hessp), ("hess", hess), ("hess_diag", hess_diag)):
        absent = name != "logp" and (function is None or (name == "jac" and isinstance(function, bool)))
        if not absent and not callable(function):
            raise TypeError(f"{name} must be a function, got {function!r}")
    vectorized = checks.flag("vectorized", vectorized)
    fun = _pair(logp) if jac is True else _value(logp, vectorized)
    slope = jac if jac in (None, True, False) else _negated(jac)
    hessp, hess, hess_diag = _negated(hessp), _negated(hess), _negated(hess_diag)
    if not vectorized:
        known = {"jac": slope, "hessp": hessp, "hess": hess, "hess_diag": hess_diag}
        return Target(as_function(fun, dim, hessp_vectorized=hessp_vectorized, **known), paired=jac is True)
    if hessp_vectorized:
        raise ValueError("hessp_vectorized is for functions of one point: with vectorized=True hessp has pairs of rows")
    known = {"jac": slope, "hessp": _repeated(hessp), "hess": _first(hess), "hess_diag": _first(hess_diag)}
    function = as_function(fun, dim, vectorized=True, hessp_vectorized=hessp is not None, **known)
    return Target(function, hessp, hess, hess_diag, paired=jac is True)


def _value(logp: Rows, vectorized: bool) -> Rows:
    """-logp; of rows its length is checked by whoever asks."""
    if vectorized:
        return lambda rows: -_checked("logp(rows)", logp(rows), (len(rows),))
    return lambda x: -_number(logp(x))


def _pair(logp: Rows) -> Rows:
    def both(x: Array) -> tuple[Any, Any]:
        found = logp(x)
        if not isinstance(found, (tuple, list)) or len(found) != 2:
            raise ValueError(f"logp(x) must be a pair, value and gradient, if jac=True, got {found!r}")
        return -np.asarray(found[0]), -np.asarray(found[1])

    return both


def _negated(function: Any) -> Any:
    return None if function is None else lambda *arguments: -np.asarray(function(*arguments))


def _repeated(hessp: Any) -> Any:
    """hessp of one point and rows of vectors, from one of pairs of rows."""
    return None if hessp is None else lambda x, v: hessp(np.tile(x, (len(v), 1)), v)


def _first(function: Any) -> Any:
    """A function of one point, from one of rows."""
    return None if function is None else lambda x: function(x[None])[0]


def _number(value: Any) -> float:
    array = np.asarray(value)
    if array.size != 1 or array.dtype.kind not in "fiub":
        raise ValueError(f"logp(x) must be a real number, got {value!r}")
    return float(array.item())


def _checked(name: str, found: Any, shape: tuple[int, ...]) -> Array:
    return checks.real_array(name, found, shape, finite=False)


def _locked(x: Array) -> Array:
    view = np.ascontiguousarray(x).view()
    view.flags.writeable = False
    return view
