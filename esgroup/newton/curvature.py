"""The absolute value of a Hessian in the local coordinates of a group."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from esgroup.checks import Array


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
