"""Starting a search from evaluated points."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from esgroup import checks
from esgroup.checks import Array
from esgroup.groups.linalg import geometric_mean
from esgroup.rankings import outcomes
from esgroup.search.arguments import SpaceData
from esgroup.space import Space

_ALPHA = 0.1  # a standard deviation is at least this share of the spread of all points; Nomura et al.'s, in [0, 1]^d
_DENSE = 2000  # most variables for which correlations are estimated, too: a matrix of 32 MB


def start_from_data(X: Any, f: Any, sigma0: Any = None, quantile: float = 0.25) -> tuple[Array, Any, Array | None]:
    """Return x0, sigma0 and cov0 of a search that starts from evaluated points.

    They are the mean m and the covariance of the best points, regularized as in warm-started CMA-ES (Nomura et al.
    2021):

        x0 = m,   cov0 = 1/k sum (x_i - m)(x_i - m)^T + diag((0.1 s)^2)

    where the sum is over the k best points, the share `quantile` of all, and s are the standard deviations of all.

    Parameters
    ----------
    X
        Points, of shape (n, dim). Points whose value is NaN or inf are ignored; at least two must remain.
    f
        Their n values.
    sigma0 : default None
        Rescales the initial standard deviations: a number becomes their geometric mean; one number per variable
        replaces them, so that only the correlations come from the data.
    quantile : default 0.25
        Share of the points that are averaged, above 0 and at most 1.

    Returns
    -------
    tuple
        x0, sigma0 and cov0. Beyond 2000 variables only standard deviations are estimated: sigma0 holds them, and cov0
        is None.

    Raises
    ------
    ValueError
        If an argument is invalid, or all points are equal.
    """
    points, values = usable(X, f)
    if not 0.0 < checks.real_number("quantile", quantile) <= 1.0:
        raise ValueError(f"quantile must be above 0 and at most 1, got {quantile!r}")
    best = points[values.argsort(kind="stable")[: max(2, math.ceil(quantile * len(points)))]]
    constant = (points == points[0]).all(axis=0)
    if constant.all():
        raise ValueError(f"X must have at least two different points, got {len(points)} times the same point")
    mean = np.where(constant, points[0], best.mean(axis=0))
    spread = points.std(axis=0)
    least = _ALPHA * np.where(constant, spread.max(), spread)
    if points.shape[1] > _DENSE:
        return mean, _stds(np.sqrt(best.var(axis=0) + least**2), sigma0), None
    centerd = best - mean
    return mean, sigma0, _sized(centerd.T @ centerd / len(best) + np.diag(least**2), sigma0)


def _sized(covariance: Array, sigma0: Any) -> Array:
    """Return the covariance that is to be multiplied by sigma0^2."""
    if sigma0 is None:
        return covariance
    stds = np.sqrt(np.diagonal(covariance))
    scale = stds if np.ndim(sigma0) else np.full(len(stds), geometric_mean(stds))
    return covariance / scale[:, None] / scale


def _stds(stds: Array, sigma0: Any) -> Any:
    """Return the standard deviations of the data, rescaled or replaced by sigma0."""
    if sigma0 is None or np.ndim(sigma0):
        return stds if sigma0 is None else sigma0
    return stds * (checks.real_number("sigma0", sigma0, positive=True) / geometric_mean(stds))


def usable(X: Any, f: Any) -> tuple[Array, Array]:
    """Return the points with values below infinity, at least two, and these values."""
    points = checks.real_array("X", X, (None, None))
    if not points.shape[1]:
        raise ValueError("X must have at least one variable, got none")
    values = outcomes.values(f, len(points))
    good = values < math.inf
    if good.sum() < 2:
        raise ValueError(f"X and f must hold at least 2 points with a value below infinity, got {good.sum()}")
    return points[good], values[good]


def feasible_rows(strategy: Any, X: Any, f: Any) -> tuple[Array, Array]:
    """Return the points within the domain of a search over vectors that have a value, and these values."""
    points, values = usable(X, f)
    inside = strategy.domain.inside(points)
    return points[inside], values[inside]


# ---- named parameters -------------------------------------------------------------------------------------------


def space_from_data(space: Space, X: Any, f: Any, quantile: float = 0.25) -> SpaceData:
    """Return mean and covariance of the best evaluated points of a space.

    Numbers are as in `start_from_data`, in the searched coordinates, over the points in which they are active; an angle
    is taken in the turn nearest to the best point. The probability of an option is its share of the k
    best points with one more point, spread over all options: (count + q) / (k + 1) with the first probabilities q.
    """
    rows, values = _usable_rows(space, X, f)
    order = values.argsort(kind="stable")
    rows, on = rows[order], space.active(rows[order])
    number = max(2, math.ceil(quantile * len(rows)))
    columns, places = space.columns, np.flatnonzero(~space.is_choice)
    known = on[:, places]
    near = columns.coordinates(rows[:1, places], columns.start)[0]
    u = columns.coordinates(rows[:, places], near)
    best, active = u[:number], known[:number]
    counts = active.sum(axis=0)
    mean = np.where(counts > 0, (best * active).sum(axis=0) / np.maximum(counts, 1), columns.start)
    spread = np.array([u[known[:, j], j].std() if known[:, j].any() else 0.0 for j in range(len(places))])
    least = np.where(spread > 0, _ALPHA * spread, _ALPHA * columns.width)
    least = np.where(counts > 0, least, columns.width)
    centerd = np.where(active, best - mean, 0.0)
    covariance = centerd.T @ centerd / number + np.diag(least**2)
    mean = np.clip(np.where(columns.integer, np.rint(mean), mean), columns.lower, columns.upper)
    chances = []
    for j, first in zip(np.flatnonzero(space.is_choice), space.probabilities, strict=True):
        count = np.bincount(rows[:number, j][on[:number, j]].astype(int), minlength=len(first))
        chances.append(tuple(((count + np.array(first)) / (count.sum() + 1)).tolist()))
    return SpaceData(space, mean, covariance, tuple(chances))


def _usable_rows(space: Space, X: Any, f: Any) -> tuple[Array, Array]:
    rows = space.rows("X", X)
    values = outcomes.values(f, len(rows))
    good = values < math.inf
    if good.sum() < 2:
        raise ValueError(f"X and f must hold at least 2 points with a value below infinity, got {good.sum()}")
    return rows[good], values[good]


def feasible_named(strategy: Any, X: Any, f: Any) -> tuple[Array, Array]:
    """Return the rows of points with the fixed values of a search over a space, and their values."""
    rows, values = _usable_rows(strategy.domain.space, X, f)
    inside = strategy.domain.inside(rows)
    return rows[inside], values[inside]
