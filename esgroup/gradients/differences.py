"""Products with the Hessian by differences of gradients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from esgroup import checks
from esgroup.checks import Array
from esgroup.gradients.function import PROBES, Fun, Gradients, Products

#: eps^(1/3) balances the truncation h^2 of central differences against the rounding eps / h.
RELATIVE_STEP = float(np.cbrt(np.finfo(np.float64).eps))


def with_difference_products(
    function: Gradients, *, hess_diag: Fun | None = None, probes: int = PROBES, typical: float = 1.0
) -> Products:
    """The same function with H v = (g(x + h v) - g(x - h v)) / 2h: a product costs, and counts, two gradients as well.

    h = eps^(1/3) max(|x|.|v|, typical |v|_1) / |v|^2 is a step relative to the coordinates that v moves (Brown and
    Saad 1990); `typical` is a size of coordinates below which they count as zero. The counts are those of `function`.
    """
    checks.instance("function", function, Gradients)
    size = checks.real_number("typical", typical, positive=True)
    return Products(
        dim=function.dim,
        fun=function.fun,
        jac=function.jac,
        vectorized=function.vectorized,
        counts=function.counts,
        hessp=_Differences(function, size),
        hessp_vectorized=True,
        hess_diag=hess_diag,
        probes=probes,
    )


@dataclass(frozen=True, eq=False)
class _Differences:
    function: Gradients
    typical: float

    def __call__(self, x: Array, rows: Array) -> Array:
        steps = _steps(x, rows, self.typical)[:, None]
        moves = steps * rows
        found = self.function.gradients(np.concatenate([x + moves, x - moves]))
        half = len(rows)
        products: Array = (found[:half] - found[half:]) / (2 * steps)
        return products


def _steps(x: Array, rows: Array, typical: float) -> Any:
    """A step h for every row; 1 for a row of zeros, whose product is zero with any."""
    sizes = np.abs(rows)
    reach = np.maximum(sizes @ np.abs(x), typical * sizes.sum(axis=1))
    squared = np.vecdot(rows, rows)
    return np.divide(RELATIVE_STEP * reach, squared, out=np.ones(len(rows)), where=squared > 0)
