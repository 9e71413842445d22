"""The samples of one generation, and a limit on the length of points that were not sampled from it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from esgroup.checks import Array
from esgroup.kernels import search as kernels

_WORTH = 10  # samples are made orthogonal if there are at least dim / 10 of them: fewer are nearly orthogonal anyway


@dataclass(frozen=True)
class Sampling:
    """How the samples of one generation depend on each other; each one by itself is N(0, I).

    Parameters
    ----------
    orthogonal : bool
        Samples keep their lengths but take their directions from a uniformly distributed frame, a new one for every dim
        samples. They cover more of the space than independent ones (compare Wang, Emmerich and Baeck 2019), and
        E[z z^T] = I still holds for each.
    mirrored : bool
        Samples come in pairs z and -z (Brockhoff et al. 2010).
    """

    orthogonal: bool = True
    mirrored: bool = False

    def fill(self, z: Array, n: int, rng: np.random.Generator) -> None:
        """Write n samples to the first rows of z."""
        drawn = (n + 1) // 2 if self.mirrored else n
        if (orthogonal := self.draw(z, drawn, rng)) > 1:
            kernels.orthogonalize(orthogonal, z)
        if self.mirrored:
            np.negative(z[: n - drawn], out=z[drawn:n])

    def draw(self, z: Array, n: int, rng: np.random.Generator) -> int:
        """Write n independent samples to the first rows of z; return how many of them to make orthogonal."""
        rng.standard_normal(out=z if n == len(z) else z[:n])  # ~ N(0, I)
        dim = z.shape[1]
        return n if self.orthogonal and dim > 1 and _WORTH * n >= dim else 0


def longest(dim: int) -> float:
    """sqrt(n) + 2 n / (n + 2): the length up to which a point that was not sampled may pull the search."""
    return math.sqrt(dim) + 2 * dim / (dim + 2)


def shortened(z: Array, most: Array | None = None) -> Array:
    """Return the rows of z, those longer than `most`, by default `longest`, scaled down to it."""
    largest = np.abs(z).max(axis=1, initial=1.0, keepdims=True)  # squares of large numbers overflow
    length = largest * np.linalg.norm(z / largest, axis=1, keepdims=True)
    limit = longest(z.shape[1]) if most is None else most[:, None]
    return z * np.divide(limit, length, out=np.ones_like(length), where=length > limit)
