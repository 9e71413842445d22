"""Where the components of a mixture begin: evenly over a box, or around a point."""

from __future__ import annotations

from typing import Any

import numpy as np

from esgroup import checks
from esgroup.checks import Array
from esgroup.distributions.gaussian import Gaussian
from esgroup.groups import Group, as_group


def spread_components(
    count: Any, bounds: Any, mean: Any, sigma0: Any, structure: Group | str, rng: np.random.Generator
) -> tuple[Gaussian, ...]:
    """`count` Gaussians whose means fill the box, or N(mean, sigma0^2 I); see `Mixture.spread`."""
    count = checks.whole_number("count", count, least=1)
    if (bounds is None) == (mean is None):
        raise ValueError("either bounds, or mean and sigma0, must be given")
    if bounds is None:
        centre = checks.real_array("mean", mean, (None,))
        stds = np.full(len(centre), checks.real_number("sigma0", sigma0, positive=True))
        means = centre + stds * _normal_quantiles(even_points(count, len(centre), rng))
    else:
        if sigma0 is not None:
            raise ValueError("sigma0 must be left out where there are bounds, which set the scale")
        box = box_of("bounds", bounds)
        low, width = box[:, 0], box[:, 1] - box[:, 0]
        stds = width / np.sqrt(12)  # of the uniform distribution
        means = low + width * even_points(count, len(box), rng)
    share = stds * count ** (-1 / len(stds))
    group = as_group(structure, len(stds))
    if np.all(share == share[0]):
        return tuple(Gaussian(group, point, sigma0=float(share[0])) for point in means)
    covariance = np.diag(share**2)
    return tuple(Gaussian(group, point, covariance=covariance) for point in means)


def box_of(name: str, bounds: Any, dim: int | None = None) -> Array:
    """Pairs (lower, upper), lower < upper, as a read-only (dim, 2) array."""
    box: Array = np.array(checks.real_array(name, bounds, (dim, 2)))
    if len(box) == 0:
        raise ValueError(f"{name} must have at least one coordinate, got none")
    if not (box[:, 0] < box[:, 1]).all():
        j = int((box[:, 0] >= box[:, 1]).argmax())
        raise ValueError(f"{name} must have lower < upper, got ({box[j, 0]}, {box[j, 1]}) for coordinate {j}")
    return checks.read_only(box)


def even_points(count: int, dim: int, rng: np.random.Generator) -> Array:
    """u + i a mod 1, i = 0, 1, ...: points (count, dim) of the unit cube that keep a distance from each other.

    a_j = phi^-j with phi^(dim + 1) = phi + 1, the golden ratio for dim = 1 (the R sequence of M. Roberts, "The
    unreasonable effectiveness of quasirandom sequences", 2018); u is uniform.
    """
    phi = 2.0
    for _ in range(60):  # the slope of this map is below 1/2 at phi
        phi = (1 + phi) ** (1 / (dim + 1))
    steps = phi ** -np.arange(1.0, dim + 1)
    points: Array = (rng.random(dim) + np.arange(count)[:, None] * steps) % 1.0
    return points


def _normal_quantiles(shares: Array) -> Array:
    from scipy.special import ndtri

    quantiles: Array = ndtri(np.clip(shares, 1e-12, 1 - 1e-12))
    return quantiles
