"""Initial distributions of searches over a space given by name, or for several basins."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np

from esgroup import checks
from esgroup.checks import Array
from esgroup.distributions.gaussian import Gaussian
from esgroup.groups import Group, Kronecker
from esgroup.groups.spelling import as_group, follows
from esgroup.options import SearchOptions
from esgroup.space import Space
from esgroup.strategies.base import Strategy

SpaceName = Literal["vector", "spd", "matrix"]


def distribution_over(space: str, x0: Any, sigma0: Any = None, structure: Group | str = "auto") -> Any:
    """Return the initial distribution of a search over a space of matrices.

    Parameters
    ----------
    space
        "spd": a Wishart with mean x0, whose B has the given structure ("auto": full). "matrix": a matrix Gaussian with
        mean x0.
    x0
        A symmetric positive-definite matrix for "spd", any matrix for "matrix". For "spd", start too large rather than
        too small: an eigenvalue far smaller than the best one hardly changes the function, and lags behind.
    sigma0 : default None
        For "spd", the relative standard deviation of a diagonal entry, sqrt(2 / dof); by default, and at most, that of
        dof = 10 p (p + 1). For "matrix", the standard deviation of an entry; by default 0.3 max|x0|, or 1 if x0 = 0.
    structure : default "auto"
        A group or its spelling. For "matrix", it applies to both rows and columns, unless it is a Kronecker product of
        two groups.

    Returns
    -------
    Wishart or MatrixGaussian

    Raises
    ------
    ValueError
        If an argument is invalid.
    """
    from esgroup.distributions.matrix_gaussian import MatrixGaussian
    from esgroup.distributions.wishart import Wishart
    from esgroup.strategies.wishart import dof_of

    if space not in ("spd", "matrix"):
        named = ": pass a Space of named parameters as x0" if isinstance(space, Space) else ""
        raise ValueError(f"space must be 'vector', 'spd' or 'matrix', got {checks.shown(space)}{named}")
    mean = checks.as_float64("x0", x0)
    if mean.ndim != 2 or mean.size == 0:
        raise ValueError(f"x0 must be a matrix for space={space!r}, got {checks.shown(mean)}")
    mean = checks.real_array("x0", mean, (None, None))
    side = "full" if structure == "auto" else structure
    if space == "spd":
        if mean.shape[0] != mean.shape[1]:
            raise ValueError(f"x0 must be a square matrix, got shape {mean.shape}")
        checks.covariance("x0", mean, len(mean))
        return Wishart(mean, None if sigma0 is None else dof_of(sigma0, len(mean)), structure=side)
    sigma0 = _typical(mean, sigma0)
    if isinstance(structure, Kronecker):
        return MatrixGaussian(mean, sigma0, structure.first, structure.second)
    return MatrixGaussian(mean, sigma0, side, side)


def mixture_over(
    basins: Any, space: str, x0: Any, sigma0: Any, options: SearchOptions, rng: np.random.Generator
) -> Strategy:
    """Return a search with a mixture of `basins` Gaussians, spread over finite bounds or around the point x0.

    With bounds, x0 only gives the number of variables, and the values of fixed ones. Around x0 the region is
    N(x0, sigma0^2 cov0). Every Gaussian uses the structure ("auto": full) and the other options.
    """
    from esgroup.distributions.mixture import Mixture
    from esgroup.domains.box import make_box, parse_bounds
    from esgroup.strategies.in_domain import Within
    from esgroup.strategies.mixture import MixtureSearch

    if space != "vector":
        raise ValueError(f"basins are for searches over vectors, got space={space!r}")
    if isinstance(x0, Space):
        raise ValueError("basins are for searches over vectors, got a Space: leave basins out, or try restarts='bipop'")
    point = checks.real_array("x0", x0, (None,))
    basins = checks.whole_number("basins", basins, least=1)
    if len(point) == 0:
        raise ValueError("x0 must have at least one variable, got none")
    bounds, popsize, shared = options.bounds, options.popsize, options.structure
    shared, axes = ("full" if shared == "auto" else shared), None
    if popsize is not None:
        popsize = checks.whole_number("popsize", popsize, least=2)
    box, pairs = None, None
    if bounds is not None:
        for name, value in (("sigma0", sigma0), ("cov0", options.cov0)):
            if value is not None:
                raise ValueError(f"{name} must be left out when basins are spread over bounds, which set the scale")
        lower, upper, _ = parse_bounds(bounds, len(point))
        if not ((lower <= point) & (point <= upper)).all():
            raise ValueError(f"x0 must be within the bounds, got {x0!r}")
        pairs = np.column_stack([lower, upper])
    if options.fixed is not None or options.integer is not None:
        box = make_box(point, bounds, options.fixed, options.integer)
        point = box.encode(box.x0[None])[0]
        pairs = None if pairs is None else np.column_stack(box.mirrors)
    if follows(shared):
        shared, axes = "diagonal", as_group(shared, len(point), searched=True)
    if options.cov0 is not None:
        mixture = _spread_by(options.cov0, basins, point, sigma0, shared, box, rng)
    elif pairs is None:
        mixture = Mixture.spread(basins, mean=point, sigma0=_typical(point, sigma0), structure=shared, rng=rng)
    else:
        mixture = Mixture.spread(basins, bounds=pairs, structure=shared, rng=rng)
    search = MixtureSearch(mixture, popsize, pairs, options=options.stored(), axes=axes)
    if box is None:
        return search
    return Within(box, replace(search, whole=box.integer[box.free] if box.integer.any() else None))


def _spread_by(
    cov0: Any, basins: int, point: Array, sigma0: Any, structure: Any, box: Any, rng: np.random.Generator
) -> Any:
    """The mixture whose region is N(point, sigma0^2 cov0): the one around 0, times a root of cov0."""
    from esgroup.distributions.mixture import Mixture

    covariance = checks.covariance("cov0", cov0, len(point) if box is None else len(box.x0))
    if box is not None:
        covariance = covariance[np.ix_(box.free, box.free)]
    round_ones: Any = Mixture.spread(basins, mean=0 * point, sigma0=1.0 if sigma0 is None else sigma0, rng=rng)
    root, components = np.linalg.cholesky(covariance), []
    for one in round_ones.components:
        components.append(Gaussian(structure, point + root @ one.mean, covariance=one.sigma0**2 * covariance))
    return Mixture(tuple(components))


def _typical(x0: Array, sigma0: Any) -> Any:
    """Return sigma0, or by default 0.3 max|x0| (1 if x0 = 0), as for vectors."""
    return (0.3 * float(np.abs(x0).max(initial=0.0)) or 1.0) if sigma0 is None else sigma0
