"""Generic elements to test with: products of two, not symmetric, well conditioned, read-only."""

import numpy as np

from esgroup.groups import Frame, Group


def frozen(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


def local(group: Group, rng: np.random.Generator, size: float = 0.6) -> np.ndarray:
    """A random local vector whose dense matrix has entries up to `size`."""
    m = group.project(rng.standard_normal((group.dim + 2, group.dim)), rng.standard_normal(group.dim + 2))
    return frozen(m * (size / np.abs(group.dense_local(m)).max()))


def element(group: Group, rng: np.random.Generator) -> np.ndarray:
    """A product of h(M) and of an element outside the range of h: that of a circulant group is symmetric."""
    if isinstance(group, Frame):
        return frozen(Frame.pack(*axes_of(group.dim, group.first, rng)))
    size = 0.5 / np.sqrt(group.dim)
    noise = group.identity() + size * rng.uniform(-1, 1, group.size) / np.sqrt(group.dim)
    a = group.product(group.h(local(group, rng, size)), noise)
    return frozen(group.scale(a, rng.uniform(0.5, 2.0)))


def axes_of(dim: int, k: int, rng: np.random.Generator) -> tuple[float, np.ndarray, np.ndarray]:
    """The parts of a frame: a bulk, lengths on both sides of 1 and orthonormal directions."""
    u = np.linalg.qr(rng.standard_normal((dim, max(1, k))))[0].T[:k]
    ratios = np.exp(rng.choice([-1.0, 1.0], k) * rng.uniform(0.3, 1.5, k))
    return float(rng.uniform(0.5, 2.0)), ratios, u


def covariance(dim: int, rng: np.random.Generator) -> np.ndarray:
    root = rng.standard_normal((dim, 2 * dim + 1))
    return frozen(root @ root.T / dim)
