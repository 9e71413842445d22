"""Where to start when points are already evaluated."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from esgroup import checks
from esgroup.checks import Array
from esgroup.groups.linalg import geometric_mean
from esgroup.search import tell_input
from esgroup.strategies.box import make_box, parse_bounds, whole_bounds

_ALPHA = 0.1  # of the spread of all points is a standard deviation at least: Nomura et al.'s, of the unit cube
_DENSE = 2000  # coordinates up to which correlations are estimated as well: a matrix of 32 MB


def start_from_data(X: Any, f: Any, sigma0: Any = None, quantile: float = 0.25) -> tuple[Array, Any, Array | None]:
    """x0, sigma0 and cov0 of a search that goes on from evaluated points.

    The mean m and the covariance of the best points, regularised as in warm-started CMA-ES (Nomura et al. 2021):

        x0 = m,   cov0 = 1/k sum (x_i - m)(x_i - m)^T + diag((0.1 s)^2)

    where the sum is over the best `quantile` of the points and s are the standard deviations of all. `sigma0` gives the
    first standard deviations another size: a number their geometric mean, one for each coordinate all of them, so that
    only the correlations are the data's. Points whose value is NaN or inf are left out. Beyond 2000 coordinates only
    standard deviations are estimated: cov0 is None and sigma0 holds them.
    """
    points, values = usable(X, f)
    if not 0.0 < checks.real_number("quantile", quantile) <= 1.0:
        raise ValueError(f"quantile must be above 0 and at most 1, got {quantile!r}")
    best = points[values.argsort(kind="stable")[: max(2, math.ceil(quantile * len(points)))]]
    constant = (points == points[0]).all(axis=0)
    if constant.all():
        raise ValueError(f"X must have points that differ, got {len(points)} times the same")
    mean = np.where(constant, points[0], best.mean(axis=0))
    spread = points.std(axis=0)
    least = _ALPHA * np.where(constant, spread.max(), spread)
    if points.shape[1] > _DENSE:
        return mean, _stds(np.sqrt(best.var(axis=0) + least**2), sigma0), None
    centred = best - mean
    return mean, sigma0, _sized(centred.T @ centred / len(best) + np.diag(least**2), sigma0)


def _sized(covariance: Array, sigma0: Any) -> Array:
    """The covariance to multiply by sigma0^2."""
    if sigma0 is None:
        return covariance
    stds = np.sqrt(np.diagonal(covariance))
    scale = stds if np.ndim(sigma0) else np.full(len(stds), geometric_mean(stds))
    return covariance / scale[:, None] / scale


def _stds(stds: Array, sigma0: Any) -> Any:
    if sigma0 is None or np.ndim(sigma0):
        return stds if sigma0 is None else sigma0
    return stds * (checks.real_number("sigma0", sigma0, positive=True) / geometric_mean(stds))


def usable(X: Any, f: Any) -> tuple[Array, Array]:
    """The points that have a value, with it; at least two."""
    points = checks.real_array("X", X, (None, None))
    if not points.shape[1]:
        raise ValueError("X must have at least one coordinate, got none")
    values = tell_input.values(f, len(points))
    good = values < math.inf
    if good.sum() < 2:
        raise ValueError(f"X and f must hold at least 2 points with a value below infinity, got {good.sum()}")
    return points[good], values[good]


def moved_inside(x: Array, bounds: Any, integer: Any) -> Array:
    """The nearest point within bounds that is whole where it must be."""
    whole = make_box(np.zeros(len(x)), integer=integer).integer
    lower, upper, _ = parse_bounds(bounds, len(x))
    inside: Array = np.clip(np.where(whole, np.rint(x), x), *whole_bounds(lower, upper, whole))
    return inside


def best_feasible(strategy: Any, X: Any, f: Any) -> tuple[Array | None, float]:
    """The best of the points that are in the box of a search over vectors, and its value; None and NaN if none is."""
    points, values = usable(X, f)
    inside = np.flatnonzero((strategy.box.feasible(points) == points).all(axis=1))
    if not inside.size:
        return None, math.nan
    best = inside[values[inside].argmin()]
    return checks.read_only(points[best].copy()), float(values[best])
