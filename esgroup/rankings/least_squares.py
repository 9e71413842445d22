"""Two least-squares problems: models of values and constraints, and the dual of the quadratic program they define.

The models are fitted to evaluations in local coordinates z; the multipliers of the program min_z b_f^T z + c |z|^2 / 2,
a_j + b_j^T z <= 0, are non-negative least squares.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from esgroup.checks import Array

_NEAR = 4.0  # |z|^2 / n at which the weight of an evaluation is one half
_RIDGE = 1e-3
# Number of constraints, more than twice that of variables, from which Newton's method beats SciPy's NNLS: with 10
# variables and random constraints 0.18 ms to 0.28 for 80, 0.21 to 1.3 for 160, and 0.25 to 16 for 400.
_MANY = 100
_MOST_STEPS = 100


class Models(NamedTuple):
    """f, the first, and every constraint as a + b^T z + c |z|^2 / 2."""

    at_mean: Array  # a, (1 + m,)
    slopes: Array  # b, (1 + m, n)
    curvatures: Array  # c, (1 + m,)


def fitted(z: Array, others: Array, outcomes: Array) -> Models:
    """Fit a + b^T z + c |z|^2 / 2, and a linear part in `others`, to every column of outcomes.

    Evaluations have the weight 1 / (1 + (|z|^2 / 4n)^2); a small ridge, relative to their number, decides where they
    do not. The columns of |z|^2 are centerd and of variance 1 for z ~ N(0, I).
    """
    n = z.shape[1]
    squares = (z.clip(-1e10, 1e10) ** 2).sum(axis=1)
    weights = 1 / (1 + (squares / (_NEAR * max(1, n))) ** 2)
    weights[squares > 1e4 * max(1, n)] = 0.0
    z = np.where(weights[:, None] > 0, z, 0.0)
    squares = np.where(weights > 0, squares, 0.0)
    total = weights.sum()
    if total < 1e-9 or not len(z):  # all evaluations are far away
        weights, total = np.full(len(z), 1.0), max(1.0, float(len(z)))
    norm = math.sqrt(2 * max(1, n))
    columns = np.column_stack([z, others, squares / norm])
    middle, level = weights @ columns / total, weights @ outcomes / total
    root = np.sqrt(weights)[:, None]
    left, right = root * (columns - middle), root * (outcomes - level)
    ridge = _RIDGE * total / max(1, n)
    if len(left) >= left.shape[1]:
        slopes = np.linalg.solve(left.T @ left + ridge * np.eye(left.shape[1]), left.T @ right)
    else:  # the same numbers, from the smaller matrix
        slopes = left.T @ np.linalg.solve(left @ left.T + ridge * np.eye(len(left)), right)
    return Models(level - middle @ slopes, slopes[:n].T, 2 * slopes[-1] / norm)


def non_negative(slopes: Array, weights: Array, wanted: Array, free: NDArray[np.bool_]) -> tuple[Array, Array] | None:
    """argmin |B^T l|^2 + |w l - wanted|^2 over l >= 0, any sign where `free`, and B^T l; None if not found.

    B has the slopes (m, n) and w > 0 the weights (m,). SciPy's active-set method is the quickest for few
    constraints, but its cost grows with their cube where many are active.
    """
    m, n = slopes.shape
    if m > max(_MANY, 2 * n):
        return by_newton(slopes, weights, wanted, free)
    from scipy.optimize import nnls

    both_signs = np.flatnonzero(free)
    matrix = np.vstack([slopes.T, np.diag(weights)])
    lengths = np.linalg.norm(matrix, axis=0)
    scaled = matrix / lengths
    target = np.concatenate([np.zeros(n), wanted])
    try:
        both = nnls(np.hstack([scaled, -scaled[:, both_signs]]), target)[0]
    except (RuntimeError, ValueError):  # too many iterations, or overflow
        return None
    found = both[:m]
    found[both_signs] -= both[m:]
    found /= lengths
    return found, slopes.T @ found


def by_newton(slopes: Array, weights: Array, wanted: Array, free: NDArray[np.bool_]) -> tuple[Array, Array] | None:
    """The same as `non_negative` by Newton's method for y = B^T l, whose cost grows like m n^2.

    At the minimum, b_j^T y + w_j (w_j l_j - wanted_j) is 0, or l_j is: l_j = max(0, (w_j wanted_j - b_j^T y) / w_j^2).
    So y is the minimum of the convex, piecewise quadratic

        psi(y) = |y|^2 / 2 + sum_j max(0, wanted_j - b_j^T y / w_j)^2 / 2,

    without max(0, .) for equalities. A step goes to the minimum of the current piece, and is halved until psi
    decreases; once the piece stays the same, the minimum is found.
    """
    n = slopes.shape[1]
    steep = slopes / weights[:, None]
    if not (np.isfinite(steep).all() and np.isfinite(wanted).all()):
        return None

    def excess(y: Array) -> Array:
        left = wanted - steep @ y
        return np.where(free, left, np.maximum(left, 0.0))

    y = np.zeros(n)
    left = excess(y)
    for _ in range(_MOST_STEPS):
        active = free | (left > 0)
        rows = np.vstack([np.eye(n), steep[active]])
        step = np.linalg.lstsq(rows, np.concatenate([np.zeros(n), wanted[active]]), rcond=None)[0] - y
        value, slope, share = y @ y + left @ left, 2 * (y @ step - left @ (steep @ step)), 1.0
        new = excess(y + step)
        while (y + share * step) @ (y + share * step) + new @ new > value + 1e-4 * share * slope and share > 1e-9:
            share /= 2
            new = excess(y + share * step)
        y, left = y + share * step, new
        if share == 1.0 and np.array_equal(free | (left > 0), active):
            return left / weights, y
    return None
