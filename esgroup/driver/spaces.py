"""Initial distributions of searches over a space that is given by its name, or for several basins."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from esgroup import checks
from esgroup.checks import Array
from esgroup.groups import Group, Kronecker
from esgroup.space import Space

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
        too small: an eigenvalue that is far smaller than the best one hardly changes the function, and stays behind.
    sigma0 : default None
        For "spd", the relative standard deviation of a diagonal entry, sqrt(2 / dof); by default, and at most, that of
        dof = 10 p (p + 1). For "matrix", the standard deviation of an entry; by default 0.3 max|x0|, or 1 if x0 = 0.
    structure : default "auto"
        A group or its spelling. For "matrix", it is used for rows and columns alike, unless it is a Kronecker product
        of both.

    Returns
    -------
    Wishart or MatrixGaussian

    Raises
    ------
    ValueError
        If an argument is not valid.
    """
    if space == "spd":
        return _wishart(x0, sigma0, structure)
    if space == "matrix":
        return _matrix_gaussian(x0, sigma0, structure)
    named = ": a Space of named parameters is given as x0" if isinstance(space, Space) else ""
    raise ValueError(f"space must be 'vector', 'spd' or 'matrix', got {checks.shown(space)}{named}")


def mixture_over(
    basins: Any, space: str, x0: Any, sigma0: Any, structure: Group | str, bounds: Any, rng: np.random.Generator
) -> Any:
    """Return a mixture of `basins` Gaussians, spread over finite bounds or as N(x0, sigma0^2 I) around the point x0.

    With bounds, x0 only gives the number of coordinates. Every Gaussian has the given structure ("auto": full).
    """
    from esgroup.distributions.mixture import Mixture
    from esgroup.domains.box import parse_bounds

    if space != "vector":
        raise ValueError(f"basins are for searches over vectors, got space={space!r}")
    if isinstance(x0, Space):
        raise ValueError("basins are for searches over vectors, got a Space: leave basins out, or try restarts='bipop'")
    point = checks.real_array("x0", x0, (None,))
    basins = checks.whole_number("basins", basins, least=1)
    if len(point) == 0:
        raise ValueError("x0 must have at least one coordinate, got none")
    shared = "full" if structure == "auto" else structure
    if bounds is None:
        return Mixture.spread(basins, mean=point, sigma0=_typical(point, sigma0), structure=shared, rng=rng)
    if sigma0 is not None:
        raise ValueError("sigma0 must be left out when basins are spread over bounds, which set the scale")
    lower, upper, _ = parse_bounds(bounds, len(point))
    if not ((lower <= point) & (point <= upper)).all():
        raise ValueError(f"x0 must be within the bounds, got {x0!r}")
    return Mixture.spread(basins, bounds=np.column_stack([lower, upper]), structure=shared, rng=rng)


def _typical(x0: Array, sigma0: Any) -> Any:
    """Return sigma0, or by default 0.3 max|x0| (1 if x0 = 0), as for vectors."""
    return (0.3 * float(np.abs(x0).max(initial=0.0)) or 1.0) if sigma0 is None else sigma0


def _wishart(x0: Any, sigma0: Any, structure: Group | str) -> Any:
    from esgroup.distributions.wishart import Wishart
    from esgroup.strategies.wishart import dof_of

    mean = _matrix(x0, "spd")
    if mean.shape[0] != mean.shape[1]:
        raise ValueError(f"x0 must be a square matrix, got shape {mean.shape}")
    checks.covariance("x0", mean, len(mean))
    dof = None if sigma0 is None else dof_of(sigma0, len(mean))
    return Wishart(mean, dof, structure="full" if structure == "auto" else structure)


def _matrix_gaussian(x0: Any, sigma0: Any, structure: Group | str) -> Any:
    from esgroup.distributions.matrix_gaussian import MatrixGaussian

    mean = _matrix(x0, "matrix")
    sigma0 = _typical(mean, sigma0)
    if isinstance(structure, Kronecker):
        return MatrixGaussian(mean, sigma0, structure.first, structure.second)
    side = "full" if structure == "auto" else structure
    return MatrixGaussian(mean, sigma0, side, side)


def _matrix(x0: Any, space: str) -> Array:
    if isinstance(x0, (list, tuple)):
        x0 = checks.real_array("x0", x0, (None,) * _depth(x0))  # which reports rows of unequal length
    if np.ndim(x0) != 2 or np.size(x0) == 0:
        raise ValueError(f"x0 must be a matrix for space={space!r}, got {x0!r}")
    return checks.real_array("x0", x0, (None, None))


def _depth(nested: Any) -> int:
    return 1 + _depth(nested[0]) if isinstance(nested, (list, tuple)) and nested else int(np.ndim(nested))
