"""Generic elements to test with: products of two, not symmetric, well conditioned, read-only."""

import numpy as np

from esgroup.groups import Group


def frozen(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


def local(group: Group, rng: np.random.Generator, size: float = 0.6) -> np.ndarray:
    """A random local vector whose dense matrix has entries up to `size`."""
    m = group.project(rng.standard_normal((group.dim + 2, group.dim)), rng.standard_normal(group.dim + 2))
    return frozen(m * (size / np.abs(group.dense_local(m)).max()))


def element(group: Group, rng: np.random.Generator) -> np.ndarray:
    """A product of h(M) and of an element outside the range of h: that of a circulant group is symmetric."""
    size = 0.5 / np.sqrt(group.dim)
    noise = group.identity() + size * rng.uniform(-1, 1, group.size) / np.sqrt(group.dim)
    a = group.product(group.h(local(group, rng, size)), noise)
    return frozen(group.scale(a, rng.uniform(0.5, 2.0)))


def covariance(dim: int, rng: np.random.Generator) -> np.ndarray:
    root = rng.standard_normal((dim, 2 * dim + 1))
    return frozen(root @ root.T / dim)
