"""How the samples of one generation depend on each other; every one of them is N(0, I) by itself."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from esgroup.checks import Array
from esgroup.kernels import search as kernels

_WORTH = 10  # samples are made orthogonal while there are at least dim / 10 of them: beyond, they are nearly so anyway


@dataclass(frozen=True)
class Sampling:
    """Independent samples, or orthogonal ones, or pairs z and -z, or both.

    Orthogonal samples keep their lengths and take their directions from a uniformly distributed frame, a new one after
    dim samples. They explore more of the space than independent ones (compare Wang, Emmerich and Baeck 2019), and
    E[z z^T] = I still holds for each. Mirrored samples are Brockhoff et al.'s (2010).
    """

    orthogonal: bool = True
    mirrored: bool = False

    def fill(self, z: Array, n: int, rng: np.random.Generator) -> None:
        """Write n samples to the first rows of z."""
        drawn = (n + 1) // 2 if self.mirrored else n
        rng.standard_normal(out=z if drawn == len(z) else z[:drawn])  # ~ N(0, I)
        dim = z.shape[1]
        if self.orthogonal and dim > 1 and _WORTH * drawn >= dim:
            kernels.orthogonalise(drawn, z)
        if self.mirrored:
            np.negative(z[: n - drawn], out=z[drawn:n])
