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

Fun = Callable[[Array], Any]

PROBES = 10  # random products from which a diagonal is estimated, if nothing better is known


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
    """f, of points of shape (dim,). Shapes are checked; what is not finite is for the caller to notice."""

    dim: int
    fun: Fun
    counts: Counts = field(default_factory=Counts)

    def value(self, x: Array) -> float:
        self.counts.nfev += 1
        value = np.asarray(self.fun(x))
        if value.size != 1 or value.dtype.kind not in "fiub":
            raise ValueError(f"fun(x) must be a real number, got {value!r}")
        return float(value.item())


@dataclass(frozen=True, eq=False, kw_only=True)
class Gradients(Values):
    """f and its gradient."""

    jac: Fun

    def gradient(self, x: Array) -> Array:
        self.counts.njev += 1
        return checks.real_array("jac(x)", self.jac(x), (self.dim,), finite=False)


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
        checks.store_flag(self, "hessp_vectorized")
        checks.store_whole_number(self, "probes", least=1)

    def products(self, x: Array, rows: Array) -> Array:
        """Rows H v of rows v."""
        self.counts.nhvp += len(rows)
        if self.hessp_vectorized:
            return checks.real_array("hessp(x, rows)", self.hessp(x, rows), rows.shape, finite=False)
        one = (self.dim,)
        found = [checks.real_array("hessp(x, v)", self.hessp(x, v), one, finite=False) for v in rows]
        return np.array(found).reshape(rows.shape)

    def diagonal(self, x: Array, rng: np.random.Generator) -> Array:
        """The diagonal of H, or an unbiased estimate: mean of v (.) H v over v of signs (Bekas et al. 2007)."""
        if self.hess_diag is not None:
            self.counts.ndiag += 1
            return checks.real_array("hess_diag(x)", self.hess_diag(x), (self.dim,), finite=False)
        if self.probes >= self.dim:
            return np.diagonal(self.products(x, np.identity(self.dim, dtype=np.float64))).copy()
        signs = rng.integers(0, 2, size=(self.probes, self.dim)) * 2.0 - 1.0
        estimate: Array = (signs * self.products(x, signs)).mean(axis=0)
        return estimate


@dataclass(frozen=True, eq=False, kw_only=True)
class Hessians(Products):
    """f, its gradient, and its Hessian as a matrix, from which products and the diagonal follow."""

    hess: Fun

    def hessian(self, x: Array) -> Array:
        self.counts.nhess += 1
        return checks.real_array("hess(x)", self.hess(x), (self.dim, self.dim), finite=False)
