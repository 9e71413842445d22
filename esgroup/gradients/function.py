"""What is known of a function: its values, its gradient, products with its Hessian, or the Hessian itself.

Four classes, each with all that the one before it has; what an estimator or an optimiser needs is one of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from esgroup import checks
from esgroup.checks import Array
from esgroup.gradients.memory import LastPoint

Fun = Callable[[Array], Any]

PROBES = 10  # random products from which a diagonal is estimated, if nothing better is known
ASYMMETRY = 1e-6  # of a Hessian, relative to its largest entry: differences of gradients are that far off


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
        """Values, gradients, products and diagonals, one each; a Hessian counts as one, too."""
        return self.nfev + self.njev + self.nhvp + self.ndiag + self.nhess


@dataclass(frozen=True, eq=False, kw_only=True)
class Values:
    """f, of points of shape (dim,). Shapes are checked; what is not finite is for the caller to notice.

    If `vectorized`, fun (and jac) take rows of points (n, dim) and return n values (n gradients as rows). Points are
    handed out read-only.
    """

    dim: int
    fun: Fun
    vectorized: bool = False
    counts: Counts = field(default_factory=Counts)

    def __post_init__(self) -> None:
        checks.store_whole_number(self, "dim", least=1)
        checks.store_flag(self, "vectorized")
        must_be_callable("fun", self.fun)

    def value(self, x: Array) -> float:
        """f(x)."""
        return float(self.values(self._point(x)[None])[0])

    def values(self, points: Array) -> Array:
        """f of every row."""
        points = self._rows(points)
        self.counts.nfev += len(points)
        if self.vectorized:
            return checks.real_array("fun(rows)", self.fun(points), (len(points),), finite=False)
        return np.array([_number(self.fun(x)) for x in points])

    def _point(self, x: Array) -> Array:
        return _shown(checks.real_array("x", x, (self.dim,), finite=False))

    def _rows(self, rows: Array) -> Array:
        return _shown(checks.real_array("rows", rows, (None, self.dim), finite=False))


@dataclass(frozen=True, eq=False, kw_only=True)
class Gradients(Values):
    """f and its gradient."""

    jac: Fun

    def __post_init__(self) -> None:
        super().__post_init__()
        must_be_callable("jac", self.jac)

    def gradient(self, x: Array) -> Array:
        """df/dx."""
        found: Array = self.gradients(self._point(x)[None])[0]
        return found

    def gradients(self, points: Array) -> Array:
        """df/dx at every row, as rows."""
        points = self._rows(points)
        self.counts.njev += len(points)
        if self.vectorized:
            return checks.real_array("jac(rows)", self.jac(points), points.shape, finite=False)
        one = (self.dim,)
        found = [checks.real_array("jac(x)", self.jac(x), one, finite=False) for x in points]
        return np.array(found).reshape(points.shape)


@dataclass(frozen=True, eq=False, kw_only=True)
class Products(Gradients):
    """f, its gradient, and products of its Hessian with vectors.

    `hessp(x, v)` takes one vector as in SciPy, or all of them as rows if `hessp_vectorized`. Without `hess_diag` the
    diagonal is estimated from `probes` random products, exactly from as many as there are coordinates.
    """

    hessp: Callable[[Array, Array], Any]
    hessp_vectorized: bool = False
    hess_diag: Fun | None = None
    probes: int = PROBES

    def __post_init__(self) -> None:
        super().__post_init__()
        must_be_callable("hessp", self.hessp)
        if self.hess_diag is not None:
            must_be_callable("hess_diag", self.hess_diag)
        checks.store_flag(self, "hessp_vectorized")
        checks.store_whole_number(self, "probes", least=1)

    def products(self, x: Array, rows: Array) -> Array:
        """Rows H v of rows v."""
        x, rows = self._point(x), self._rows(rows)
        self.counts.nhvp += len(rows)
        if self.hessp_vectorized:
            return checks.real_array("hessp(x, rows)", self.hessp(x, rows), rows.shape, finite=False)
        one = (self.dim,)
        found = [checks.real_array("hessp(x, v)", self.hessp(x, v), one, finite=False) for v in rows]
        return np.array(found).reshape(rows.shape)

    def diagonal(self, x: Array, rng: np.random.Generator) -> Array:
        """The diagonal of H, or an unbiased estimate: mean of v (.) H v over v of signs (Bekas et al. 2007)."""
        if self.hess_diag is not None:
            x = self._point(x)
            self.counts.ndiag += 1
            return checks.real_array("hess_diag(x)", self.hess_diag(x), (self.dim,), finite=False)
        if self.probes >= self.dim:
            units: Array = np.eye(self.dim)
            return np.diagonal(self.products(x, units)).copy()
        signs = (2 * rng.integers(0, 2, size=(self.probes, self.dim)) - 1).astype(np.float64)
        estimate: Array = (signs * self.products(x, signs)).mean(axis=0)
        return estimate


@dataclass(frozen=True, eq=False, kw_only=True)
class Hessians(Products):
    """f, its gradient, and its Hessian as a matrix, from which products and the diagonal follow.

    The Hessian of the last point is remembered: products and diagonal at one point cost, and count, one Hessian.
    """

    hess: Fun
    hessp: Callable[[Array, Array], Any] = field(init=False, repr=False)
    hessp_vectorized: bool = field(init=False, repr=False, default=True)
    hess_diag: Fun | None = field(init=False, repr=False, default=None)
    probes: int = field(init=False, repr=False, default=PROBES)
    _last: LastPoint = field(init=False, repr=False, default_factory=LastPoint)

    def __post_init__(self) -> None:
        must_be_callable("hess", self.hess)
        object.__setattr__(self, "hessp", self.products)
        super().__post_init__()

    def hessian(self, x: Array) -> Array:
        """d^2 f / dx^2, symmetric to the last digit and read-only."""
        found: Array = self._last.at(self._point(x), self._computed)
        return found

    def _computed(self, x: Array) -> Array:
        self.counts.nhess += 1
        matrix = checks.real_array("hess(x)", as_dense(self.hess(x)), (self.dim, self.dim), finite=False)
        gap = np.abs(matrix - matrix.T).max()
        if gap > ASYMMETRY * np.abs(matrix).max():
            raise ValueError(f"hess(x) must be symmetric, but differs from its transpose by {gap:.3g}")
        return _shown((matrix + matrix.T) / 2)

    def products(self, x: Array, rows: Array) -> Array:
        """Rows H v of rows v."""
        found: Array = self._rows(rows) @ self.hessian(x)
        return found

    def diagonal(self, x: Array, rng: np.random.Generator) -> Array:
        """The diagonal of H."""
        return np.diagonal(self.hessian(x)).copy()


def must_be_callable(name: str, value: Any) -> None:
    """Refuse what cannot be called."""
    if not callable(value):
        raise TypeError(f"{name} must be a function, got {value!r}")


def _number(value: Any) -> float:
    array = np.asarray(value)
    if array.size != 1 or array.dtype.kind not in "fiub":
        raise ValueError(f"fun(x) must be a real number, got {value!r}")
    return float(array.item())


def _shown(array: Array) -> Array:
    """The same numbers for others to read."""
    view = array.view()
    view.flags.writeable = False
    return view


def as_dense(matrix: Any) -> Any:
    """SciPy allows sparse matrices for Hessians."""
    return matrix.toarray() if hasattr(matrix, "toarray") else matrix
