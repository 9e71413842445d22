"""Where the next descents of a mixture search begin: anywhere, or beyond known optima, but not where optima are known.

Points that are uniform in a box hardly ever fall into narrow basins: the narrowest of Vincent's function in three
dimensions has one hundred-thousandth of the volume. But narrow basins often lie next to each other. So half of the
scouts continue the line through two neighboring optima:

    x = a + F (a - b) + noise,    log F ~ U(log 1/2, log 2)

a is a known optimum, and b a neighbor of it on one side: of all known optima the first that a growing ball touches
which has a on its surface and its center on a ray from a into a random direction (so b is a neighbor of a in the
Delaunay graph). So steps are as long as the distances between optima are there, in the direction of b.

A scout is drawn again if it is near a known optimum c: nearer than U(0, 1) times the distance of c to its own nearest
neighbor, so that no place is ruled out for ever.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from esgroup.checks import Array
from esgroup.strategies.mixture_optima import folded

NOISE = 0.1  # of the step F (a - b): the standard deviation of the noise, coordinates in units of `scale`
MOST_DRAWS = 10  # of one scout: the last one is taken wherever it is


def scouts(
    known: Array, scale: Array, box: Array | None, anywhere: Callable[[int], Array], n: int, rng: np.random.Generator
) -> Array:
    """Return n points (n, dim) at which descents may begin.

    Parameters
    ----------
    known : array, shape (m, dim)
        The known optima. With fewer than two of them, all scouts are drawn anywhere.
    scale : array, shape (dim,)
        The units of distances.
    box : array, shape (dim, 2), or None
        Points outside are mirrored back.
    anywhere : callable
        Draws a given number of points from the broad initial distribution.
    n : int
        The number of points.
    rng : numpy.random.Generator
        The source of random numbers.
    """
    if len(known) < 2:
        return anywhere(n)
    points, again = np.empty((n, len(scale))), np.arange(n)
    for _ in range(MOST_DRAWS):
        fresh = anywhere(len(again))
        local = rng.random(len(again)) < 0.5
        fresh[local] = folded(box, beyond(known, scale, int(local.sum()), rng))
        points[again] = fresh
        again = again[_is_near(known / scale, fresh / scale, rng)]
        if len(again) == 0:
            break
    return points


def beyond(known: Array, scale: Array, n: int, rng: np.random.Generator) -> Array:
    """Return n points on the far side of known optima, seen from neighbors of these."""
    scaled = known / scale
    first = rng.integers(len(known), size=n)
    second = neighbors(scaled, first, rng.standard_normal((n, len(scale))))
    steps = np.exp(rng.uniform(-math.log(2), math.log(2), (n, 1))) * (scaled[first] - scaled[second])
    noise = NOISE * np.sqrt((steps**2).mean(axis=1, keepdims=True)) * rng.standard_normal(steps.shape)
    return (scaled[first] + steps + noise) * scale


def neighbors(points: Array, which: NDArray[np.int64], directions: Array) -> NDArray[np.int64]:
    """Return for each of some points the neighbor in a direction, or the opposite one if there is none.

    A ball with p on its surface and its center on the ray p + t u has the radius |q - p|^2 / (2 u . (q - p)) when it
    touches q: the neighbor is the q with the smallest one.
    """
    gaps = points[None] - points[which][:, None]  # (n, m, dim)
    along = np.einsum("nmd,nd->nm", gaps, directions)
    along = np.where((along > 0).any(axis=1, keepdims=True), along, -along)
    with np.errstate(divide="ignore", invalid="ignore"):
        radii = np.where(along > 0, (gaps**2).sum(axis=2) / along, np.inf)
    return radii.argmin(axis=1)


def _is_near(known: Array, points: Array, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Whether points are in what is probably the basin of a known optimum."""
    gaps = np.abs(points[:, None] - known).max(axis=2)  # (n, m)
    nearest = gaps.argmin(axis=1)
    apart = np.abs(known[nearest][:, None] - known).max(axis=2)
    apart[np.arange(len(points)), nearest] = np.inf
    return gaps.min(axis=1) < rng.random(len(points)) * apart.min(axis=1)
