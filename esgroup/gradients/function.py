"""A function with its known derivatives: values, gradient, products with the Hessian, or the Hessian itself.

There are four classes, each with everything the previous one has: `Values`, `Gradients`, `Products`, `Hessians`. An
estimator or an optimizer requires one of them. `as_function` makes the right one from arguments named as in SciPy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from esgroup import checks
from esgroup.checks import Array

Fun = Callable[[Array], Any]

PROBES = 10  # random products used to estimate a diagonal that is not given
ASYMMETRY = 1e-6  # of a Hessian, relative to its largest entry: the accuracy of differences of gradients


def as_function(
    fun: Callable[..., Any],
    dim: int,
    *,
    args: tuple[Any, ...] = (),
    jac: Callable[..., Any] | bool | None = None,
    hessp: Callable[..., Any] | None = None,
    hess: Callable[..., Any] | None = None,
    hess_diag: Callable[..., Any] | None = None,
    hessp_vectorized: bool = False,
    vectorized: bool = False,
    probes: int = PROBES,
) -> Values | Gradients | Products | Hessians:
    """Combine a function with its derivatives, in the class that fits what is given.

    The arguments have the same names and meanings as in scipy.optimize.minimize.

    Parameters
    ----------
    fun : callable
        The function fun(x, *args), which returns a float.
    dim : int
        Number of variables.
    args : tuple
        Further arguments of fun, jac, hessp, hess and hess_diag.
    jac : callable or True, optional
        The gradient jac(x, *args). With True, fun returns (value, gradient); the pair for the last x is cached.
    hessp : callable, optional
        The product of the Hessian with a vector, hessp(x, v, *args).
    hess : callable, optional
        The whole Hessian hess(x, *args), dense or sparse, instead of hessp and hess_diag.
    hess_diag : callable, optional
        The diagonal of the Hessian, hess_diag(x, *args). Without it the diagonal is estimated from `probes` products.
    hessp_vectorized : bool
        Whether hessp accepts several vectors as the rows of v and returns their products as rows.
    vectorized : bool
        Whether fun and jac accept several points as rows.
    probes : int
        Number of random products used to estimate a diagonal.

    Returns
    -------
    Values, Gradients, Products or Hessians
        Depending on what is given: fun alone, jac, hessp, or hess.

    Raises
    ------
    ValueError, TypeError
        If an argument is not a function, or the combination is invalid: hessp and hess need jac, hess_diag needs hessp,
        and hess excludes hessp and hess_diag.

    Examples
    --------
    >>> from scipy.optimize import rosen, rosen_der
    >>> from esgroup.gradients import as_function
    >>> function = as_function(rosen, 2, jac=rosen_der)
    >>> function.gradient([0.0, 0.0]).tolist(), function.counts.njev
    ([-2.0, 0.0], 1)
    """
    _check_combination(jac, hessp, hess, hess_diag, hessp_vectorized)
    known: dict[str, Any] = {"dim": dim, "vectorized": vectorized, "fun": with_args("fun", fun, args)}
    if jac is True:
        both = ValueAndGradient(known["fun"])
        known |= {"fun": both.fun, "jac": both.jac}
    elif jac:
        known["jac"] = with_args("jac", jac, args)
    if hess is not None:
        return Hessians(**known, hess=with_args("hess", hess, args))
    if hessp is not None:
        diagonal = None if hess_diag is None else with_args("hess_diag", hess_diag, args)
        product = with_args("hessp", hessp, args)
        return Products(**known, hessp=product, hessp_vectorized=hessp_vectorized, hess_diag=diagonal, probes=probes)
    return Gradients(**known) if jac else Values(**known)


def _check_combination(jac: Any, hessp: Any, hess: Any, hess_diag: Any, hessp_vectorized: bool) -> None:
    if isinstance(jac, str):
        raise ValueError(f"jac must be a function or True, got {jac!r}: differences of values are not supported")
    for name, given in (("hessp", hessp), ("hess", hess)):
        if given is not None and not jac:
            raise ValueError(f"{name} needs the gradient as well: give jac=")
    for name, given, follows in (("hessp", hessp, "products follow"), ("hess_diag", hess_diag, "diagonal follows")):
        if hess is not None and given is not None:
            raise ValueError(f"hess or {name} must be given, not both: the {follows} from hess")
    if hess_diag is not None and hessp is None:
        raise ValueError("hess_diag needs products with the Hessian as well: give hessp=")
    if hessp_vectorized and hessp is None:
        raise ValueError("hessp_vectorized says how hessp is called: give hessp=")


def with_products(
    function: Gradients, hessp: Any, *, hessp_vectorized: bool, hess_diag: Fun | None, probes: int = PROBES
) -> Products:
    """The same function with products; both share the same counts."""
    known = {name: getattr(function, name) for name in ("dim", "fun", "jac", "vectorized", "counts")}
    return Products(**known, hessp=hessp, hessp_vectorized=hessp_vectorized, hess_diag=hess_diag, probes=probes)


# ---- the four classes -----------------------------------------------------------------------------------------------


@dataclass
class Counts:
    """How often a function and its derivatives were evaluated; a product with m vectors counts m times."""

    nfev: int = 0
    njev: int = 0
    nhvp: int = 0
    ndiag: int = 0
    nhess: int = 0

    @property
    def gradient_equivalents(self) -> int:
        """Sum of all counts: values, gradients, products, diagonals and Hessians count one each."""
        return self.nfev + self.njev + self.nhvp + self.ndiag + self.nhess


@dataclass(frozen=True, eq=False, kw_only=True)
class Values:
    """A function f of points of shape (dim,). Shapes are checked; values that are not finite are passed on.

    If `vectorized`, fun (and jac) take points as rows (n, dim) and return n values (n gradients as rows). The points
    passed to fun and the derivatives are read-only.
    """

    dim: int
    fun: Fun
    vectorized: bool = False
    counts: Counts = field(default_factory=Counts)

    def __post_init__(self) -> None:
        checks.store_whole_number(self, "dim", least=1)
        checks.store_flag(self, "vectorized")
        for name in ("fun", "jac", "hessp", "hess"):
            if hasattr(self, name):
                must_be_callable(name, getattr(self, name))

    def value(self, x: Array) -> float:
        """Return f(x)."""
        return float(self.values(self._point(x)[None])[0])

    def values(self, points: Array) -> Array:
        """Return f of every row."""
        points = self._rows(points)
        self.counts.nfev += len(points)
        if self.vectorized:
            return checks.real_array("fun(rows)", self.fun(points), (len(points),), finite=False)
        return np.array([real_value("fun(x)", self.fun(x)) for x in points])

    def _point(self, x: Array) -> Array:
        return checks.read_only(checks.real_array("x", x, (self.dim,), finite=False).view())

    def _rows(self, rows: Array) -> Array:
        return checks.read_only(checks.real_array("rows", rows, (None, self.dim), finite=False).view())


@dataclass(frozen=True, eq=False, kw_only=True)
class Gradients(Values):
    """A function f and its gradient."""

    jac: Fun

    def gradient(self, x: Array) -> Array:
        """Return df/dx at one point."""
        return self.gradients(self._point(x)[None])[0]

    def gradients(self, points: Array) -> Array:
        """Return df/dx at every row, as rows."""
        points = self._rows(points)
        self.counts.njev += len(points)
        if self.vectorized:
            return checks.real_array("jac(rows)", self.jac(points), points.shape, finite=False)
        return self._row_by_row("jac(x)", self.jac, points)

    def _row_by_row(self, name: str, call: Fun, rows: Array) -> Array:
        """call(row) for every row, each of the same length."""
        found = [checks.real_array(name, call(row), (self.dim,), finite=False) for row in rows]
        return np.array(found).reshape(rows.shape)


@dataclass(frozen=True, eq=False, kw_only=True)
class Products(Gradients):
    """A function f, its gradient, and products of its Hessian with vectors.

    `hessp(x, v)` takes one vector as in SciPy, or all vectors as rows if `hessp_vectorized`. Without `hess_diag` the
    diagonal is estimated from `probes` random products; it is exact if `probes` is at least `dim`.
    """

    hessp: Callable[[Array, Array], Any]
    hessp_vectorized: bool = False
    hess_diag: Fun | None = None
    probes: int = PROBES

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.hess_diag is not None:
            must_be_callable("hess_diag", self.hess_diag)
        checks.store_flag(self, "hessp_vectorized")
        checks.store_whole_number(self, "probes", least=1)

    def products(self, x: Array, rows: Array) -> Array:
        """Return rows H v for rows v."""
        x, rows = self._point(x), self._rows(rows)
        self.counts.nhvp += len(rows)
        if self.hessp_vectorized:
            return checks.real_array("hessp(x, rows)", self.hessp(x, rows), rows.shape, finite=False)
        return self._row_by_row("hessp(x, v)", partial(self.hessp, x), rows)

    def diagonal(self, x: Array, rng: np.random.Generator) -> Array:
        """Return the diagonal of H, or an unbiased estimate.

        The estimate is the mean of v (.) H v over vectors v of random signs (Bekas et al. 2007).
        """
        if self.hess_diag is not None:
            x = self._point(x)
            self.counts.ndiag += 1
            return checks.real_array("hess_diag(x)", self.hess_diag(x), (self.dim,), finite=False)
        if self.probes >= self.dim:
            return np.diagonal(self.products(x, np.eye(self.dim))).copy()
        signs = (2 * rng.integers(0, 2, size=(self.probes, self.dim)) - 1).astype(np.float64)
        return (signs * self.products(x, signs)).mean(axis=0)

    def mean_products(self, points: Array, rows: Array) -> Array:
        """Return rows H v for rows v, H the mean of the Hessians at the points."""
        total = np.zeros(rows.shape)
        for x in points:
            total += self.products(x, rows)
        return total / len(points)

    def mean_diagonal(self, points: Array, rng: np.random.Generator) -> Array:
        """Return the diagonal of the mean of the Hessians at the points, or an unbiased estimate."""
        return np.mean([self.diagonal(x, rng) for x in points], axis=0)


class LastPoint:
    """Caches the result for the last point (or rows of points), so that it is not computed twice."""

    def __init__(self) -> None:
        self._x: Array | None = None
        self._result: Any = None

    def at(self, x: Array, compute: Callable[[Array], Any]) -> Any:
        """Return compute(x), cached if x is the last point."""
        if self._x is None or not np.array_equal(x, self._x):
            self._result = compute(x)
            self._x = x.copy()  # only after a success; a copy, since callers may change their point in place
        return self._result


@dataclass(frozen=True, eq=False, kw_only=True)
class Hessians(Products):
    """A function f, its gradient, and its Hessian as a matrix, from which products and the diagonal follow.

    The Hessian of the last point is cached: products and diagonal at one point cost, and count as, one Hessian.
    """

    hess: Fun
    hessp: Callable[[Array, Array], Any] = field(init=False, repr=False)
    hessp_vectorized: bool = field(init=False, repr=False, default=True)
    hess_diag: Fun | None = field(init=False, repr=False, default=None)
    probes: int = field(init=False, repr=False, default=PROBES)
    _last: LastPoint = field(init=False, repr=False, default_factory=LastPoint)

    def __post_init__(self) -> None:
        object.__setattr__(self, "hessp", self.products)
        super().__post_init__()

    def hessian(self, x: Array) -> Array:
        """Return d^2 f / dx^2, exactly symmetric and read-only."""
        return self._last.at(self._point(x), self._computed)

    def _computed(self, x: Array) -> Array:
        self.counts.nhess += 1
        matrix = checks.real_array("hess(x)", as_dense(self.hess(x)), (self.dim, self.dim), finite=False)
        gap = np.abs(matrix - matrix.T).max()
        if gap > ASYMMETRY * np.abs(matrix).max():
            raise ValueError(f"hess(x) must be symmetric, but differs from its transpose by {gap:.3g}")
        return checks.read_only((matrix + matrix.T) / 2)

    def products(self, x: Array, rows: Array) -> Array:
        """Return rows H v for rows v."""
        return self._rows(rows) @ self.hessian(x)

    def diagonal(self, x: Array, rng: np.random.Generator) -> Array:
        """Return the diagonal of H."""
        return np.diagonal(self.hessian(x)).copy()


# ---- the caller's functions -----------------------------------------------------------------------------------------


class ValueAndGradient:
    """Splits a function that returns (f, g) into `fun` and `jac`, and computes the pair once for the same x."""

    def __init__(self, both: Callable[[Array], Any], name: str = "fun") -> None:
        self._both, self._name = both, name
        self._last = LastPoint()

    def fun(self, x: Array) -> Any:
        """Return f(x)."""
        return self._last.at(x, self._computed)[0]

    def jac(self, x: Array) -> Any:
        """Return g(x)."""
        return self._last.at(x, self._computed)[1]

    def _computed(self, x: Array) -> tuple[Any, Any]:
        pair = self._both(x)
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise ValueError(f"with jac=True {self._name}(x) must be a pair (value, gradient), got {pair!r}")
        gradient = np.array(pair[1])  # a copy: fun may return the same array every time
        return pair[0], checks.read_only(gradient)


def with_args(name: str, fun: Any, args: Any) -> Callable[..., Any]:
    """Return fun(..., *args) as an object that can be pickled; a single argument need not be a tuple, as in SciPy."""
    must_be_callable(name, fun)
    if not isinstance(args, tuple):
        args = (args,)
    return partial(_followed, fun, args) if args else fun


def _followed(fun: Callable[..., Any], args: tuple[Any, ...], *first: Any) -> Any:
    return fun(*first, *args)


def must_be_callable(name: str, value: Any) -> None:
    """Raise a TypeError unless `value` can be called."""
    if not callable(value):
        raise TypeError(f"{name} must be a function, got {value!r}")


def as_dense(matrix: Any) -> Any:
    """Return a sparse matrix, which SciPy allows for Hessians, as a dense one."""
    return matrix.toarray() if hasattr(matrix, "toarray") else matrix


def real_value(name: str, value: Any) -> float:
    """Return a function value as a float; it may be an array with one entry and need not be finite."""
    array = np.asarray(value)
    if array.size != 1 or array.dtype.kind not in "fiub":
        raise ValueError(f"{name} must be a real number, got {value!r}")
    return float(array.item())
