"""Functions for large dimensions, rotated in blocks so that the coordinates of the search do not make them easy.

Coordinates are shuffled, rotated in small blocks, and shuffled again, at a cost of O(dim block) per point. Each block
has weights from the whole range.
"""

from __future__ import annotations

import numpy as np

from esgroup import checks
from esgroup_problems import making
from esgroup_problems.convex import Powers, Quadratic, ellipsoid_weights, problem_at_zero
from esgroup_problems.functions import Separable
from esgroup_problems.problem import Problem, register
from esgroup_problems.rotations import Rotated, block_rotation
from esgroup_problems.separable import Rastrigin

_SOURCE = (
    "Ait ElHara, Auger, Hansen: Permuted orthogonal block-diagonal transformation matrices for large scale "
    "optimization benchmarking (GECCO 2016)"
)


@register
def block_rotated_ellipsoid(dim: int = 100, *, block: int = 10, seed: int = 0) -> Problem:
    """The ellipsoid, condition 10^6, with random blocks of coordinates rotated."""
    dim = checks.whole_number("dim", dim, least=1)
    turned = _turned("block_rotated_ellipsoid", Quadratic(ellipsoid_weights(dim)), dim, block, seed)
    return problem_at_zero(block_rotated_ellipsoid, turned, dim, source=_SOURCE)


@register
def block_rotated_powers(dim: int = 100, *, block: int = 10, seed: int = 0) -> Problem:
    """The different powers, from 2 to 12, with random blocks of coordinates rotated."""
    dim = checks.whole_number("dim", dim, least=1)
    turned = _turned("block_rotated_powers", Powers(np.linspace(2, 12, dim)), dim, block, seed)
    return problem_at_zero(block_rotated_powers, turned, dim, source=_SOURCE)


@register
def block_rotated_rastrigin(dim: int = 100, *, block: int = 10, seed: int = 0) -> Problem:
    """Rastrigin's lattice of local minima, with random blocks of coordinates rotated."""
    dim = checks.whole_number("dim", dim, least=1)
    turned = _turned("block_rotated_rastrigin", Rastrigin(), dim, block, seed)
    return problem_at_zero(block_rotated_rastrigin, turned, dim, source=_SOURCE)


def _turned(name: str, function: Separable, dim: int, block: int, seed: int) -> Rotated:
    block = checks.whole_number("block", block, least=1)
    return Rotated(function, block_rotation(dim, min(block, dim), making.instance_rng(name, dim, seed)))
