"""The Hessian of a function in the local coordinates of a Gaussian, from a few Hessian-vector products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from esgroup import checks
from esgroup.checks import Array
from esgroup.groups import Group


def local_hessian(
    group: Group, root: Array, hvp: Callable[[Array], Any], hessian_diagonal: Array | None, *, precision: bool
) -> tuple[Array, Array]:
    """The rows of X = T^T H T in the hub, (len(hub), dim), and X_jj outside it: all that C (.) kappa(X) depends on.

    T is A, or B^-T in precision form; there are len(hub) products with H.
    The second array, (dim,), may have zeros for the coordinates of the hub, whose X_jj are among the rows.

    X's hub columns are T^T H (T e_j). A column outside the hub J is T e_j = d_j e_j + T_J q_j with
    d_j = 1 / (T^-1)_jj and q_j = -d_j (T^-1)_Jj, so that
    X_jj = d_j^2 H_jj + 2 d_j (H T_J)_j q_j + q_j^T X_JJ q_j.
    For the block triangular groups these are the paper's formulas (eq. upper_hvp); they hold for every group.
    """
    hub = group.hub
    units = np.zeros((len(hub), group.dim))
    units[np.arange(len(hub)), hub] = 1.0
    pull = group._solve if precision else group._apply_transposed
    products = _products(hvp, (group._solve_transposed if precision else group._apply)(root, units))  # rows H T e_j
    rows = pull(root, products)  # X_j
    if len(hub) == group.dim:
        return rows, np.diagonal(rows).copy()
    if hessian_diagonal is None:
        raise ValueError(f"hessian_diagonal must be given for {group}: {len(hub)} products do not determine it")
    inverse_rows = (group._apply if precision else group._solve_transposed)(root, units)  # (T^-1)_J, as rows
    outside = np.ones((1, group.dim))
    outside[0, hub] = 0.0
    # outside the hub T^-1 is diagonal, so it maps the indicator of the outside to its own diagonal there
    inverse_diagonal = (group._apply_transposed if precision else group._solve)(root, outside)[0]
    d = np.divide(1.0, inverse_diagonal, out=np.zeros(group.dim), where=outside[0] > 0)  # 0 in the hub
    q = -d * inverse_rows
    diagonal = d**2 * hessian_diagonal + 2 * d * (products * q).sum(axis=0) + (q * (rows[:, hub] @ q)).sum(axis=0)
    return rows, diagonal


def _products(hvp: Callable[[Array], Any], rows: Array) -> Array:
    if not callable(hvp):
        raise TypeError(f"hvp must be a function of rows, got {hvp!r}")
    rows.flags.writeable = False
    if len(rows) == 0:
        return rows
    return checks.real_array("hvp(rows)", hvp(rows), rows.shape)
