"""Products with the Hessian by differences of gradients."""

from __future__ import annotations

from functools import partial

import numpy as np

from esgroup import checks
from esgroup.checks import Array
from esgroup.gradients.function import PROBES, Fun, Gradients, Products, with_products

#: eps^(1/3) balances the truncation error h^2 of central differences against the rounding error eps / h.
RELATIVE_STEP = float(np.cbrt(np.finfo(np.float64).eps))


def with_difference_products(
    function: Gradients, *, hess_diag: Fun | None = None, probes: int = PROBES, typical: float = 1.0
) -> Products:
    """Add products with the Hessian to a function, by central differences of its gradients.

    H v = (g(x + h v) - g(x - h v)) / 2h, where h = eps^(1/3) max(|x|.|v|, typical |v|_1) / |v|^2 is relative to the
    variables that v moves (Brown and Saad 1990). Each product costs two gradients, which are counted, too.

    Parameters
    ----------
    function : Gradients
        The function, made by `as_function`. Its counts are shared with the result.
    hess_diag : callable, optional
        The diagonal of the Hessian, hess_diag(x). Without it the diagonal is estimated from products.
    probes : int
        Number of random products used to estimate a diagonal.
    typical : float
        Size below which variables count as zero, positive.

    Returns
    -------
    Products
        The same function, with products.

    Raises
    ------
    TypeError
        If `function` has no gradients.
    ValueError
        If `typical` is not positive.

    Examples
    --------
    >>> from scipy.optimize import rosen, rosen_der
    >>> from esgroup.gradients import as_function, with_difference_products
    >>> function = with_difference_products(as_function(rosen, 2, jac=rosen_der))
    >>> function.products([1.0, 1.0], [[0.0, 1.0]]).round(6).tolist()
    [[-400.0, 200.0]]
    """
    checks.instance("function", function, Gradients)
    size = checks.real_number("typical", typical, positive=True)
    hessp = partial(_difference_products, function, size)  # an object that can be pickled
    return with_products(function, hessp, hessp_vectorized=True, hess_diag=hess_diag, probes=probes)


def _difference_products(function: Gradients, typical: float, x: Array, rows: Array) -> Array:
    sizes, squared = np.abs(rows), np.vecdot(rows, rows)
    reach = np.maximum(sizes @ np.abs(x), typical * sizes.sum(axis=1))
    # 1 for a row of zeros, whose product is zero with any step
    steps = np.divide(RELATIVE_STEP * reach, squared, out=np.ones(len(rows)), where=squared > 0)[:, None]
    moves = steps * rows
    above, below = np.split(function.gradients(np.concatenate([x + moves, x - moves])), 2)
    return (above - below) / (2 * steps)
