"""The Hessian in the local coordinates of a group, and its absolute value there."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from esgroup.checks import Array
from esgroup.distributions.curvature import _outer_diagonal
from esgroup.distributions.gaussian import Gaussian


def local_hessian(
    family: Gaussian, root: Array, products: Callable[[Array], Array], hessian_diagonal: Array | None
) -> tuple[Array, Array]:
    """X = T^T H T with T = B^-T (precision form) or T = A: its hub's rows, (len(hub), dim), and its diagonal, (dim,).

    They are all that C (.) kappa(X) depends on (`esgroup.distributions.curvature`). Where the hub is everything, the
    rows are X itself and H's diagonal is not used.
    """
    group = family.group
    units = np.zeros((len(group.hub), group.dim))
    units[np.arange(len(units)), group.hub] = 1.0
    images = products(family._outward(root, units))  # rows H T e_j
    rows = family._pull(root, images)
    if hessian_diagonal is None:
        return rows, np.diagonal(rows).copy()
    precision = family.form == "precision"
    return rows, _outer_diagonal(group, root, units, images, rows, hessian_diagonal, precision)


def absolute(rows: Array, diagonal: Array, hub: NDArray[np.int64]) -> tuple[Array, Array]:
    """|X| where the structure sees it: X_JJ = U diag(e) U^T becomes U diag|e| U^T, and X_jj becomes |X_jj|.

    A fixed point X_JJ = I, X_jj = 1 stays one. Negative curvature would otherwise drive S to zero, or, with h, which
    is not monotone, to a fixed point of no meaning; with it M = (beta / 2) (|X| - I) has no eigenvalue below -beta / 2
    and h stays on the branch where it grows, for every beta <= 2.
    """
    rows = rows.copy()
    corner = rows[:, hub]
    e, u = np.linalg.eigh((corner + corner.T) / 2)
    rows[:, hub] = (u * np.abs(e)) @ u.T
    return rows, np.abs(diagonal)
