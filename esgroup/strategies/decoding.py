"""Diagonal decoding: a diagonal D to the left of A that learns the scales of single coordinates quickly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from esgroup.checks import Array
from esgroup.groups import Group
from esgroup.groups.linalg import SingularElementError
from esgroup.kernels import search as kernels

_ROOTS = 16  # up to this dimension loops find the root of a matrix faster than LAPACK is called for its eigenvalues
_SMALL = 48  # up to this dimension one compiled loop is faster than calls of BLAS

# numbers of one step: factors from weights of A to weights of D, for samples and path; the coefficient of -1
DecodingStep = tuple[float, float, float]


@dataclass(frozen=True)
class Decoding:
    """Sigma = sigma^2 D A A^T D, where log D has a natural-gradient step of its own.

    The score of log D_j is (A^-T z)_j (A z)_j - 1 and its Fisher information F_j = 1 + C_jj (C^-1)_jj with C = A A^T:
    2 for independent coordinates, more where they are correlated. Steps are divided by F_j sqrt(max F / 2), so that D
    moves little where the scales of single coordinates are not what is to be learnt (the idea is that of dd-CMA-ES,
    Akimoto and Hansen 2020, whose formulas start from the inverse square root of C).
    """

    def is_prompt(self, group: Group) -> bool:
        """Whether F is recomputed at every step: for small dense matrices, where it costs next to nothing."""
        return group.carries_inverse and group.dim <= _SMALL

    def is_looped(self, group: Group, n: int, flows: bool) -> bool:
        """Whether `kernels.full.generation` does all of a generation of n values: for small dense matrices."""
        return self.is_prompt(group) and (group.dim <= _ROOTS if flows else n < max(32, 2 * group.dim))

    def period(self, group: Group) -> int:
        """Return the generations after which F is recomputed, if not at every step."""
        return 1000 if self.is_prompt(group) else max(10, group.dim // 4)

    def refresh(self, group: Group, root: Array, inverse: Array, fisher: Array) -> None:
        """Write F sqrt(max F / 2) for the current A and A^-1."""
        fisher[:] = group._squared_row_norms(root)
        fisher *= group._squared_column_norms(inverse)
        fisher += 1.0
        fisher *= np.sqrt(fisher.max() / 2.0)

    def move(
        self,
        group: Group,
        root: Array,
        inverse: Array,
        z: Array,
        y: Array,
        weights: Array,
        shift: float,
        fisher: Array,
        scale: Array,
        step: DecodingStep,
    ) -> None:
        """Replace D, A and the carried A^-1 by those of the next generation, in place."""
        if self.is_prompt(group):
            self.refresh(group, root, inverse, fisher)
        v = self.move_scale(group, root, inverse, z, y, weights, fisher, scale, step)
        if v is not None and group.carries_inverse:
            group._step_with_inverse(root, inverse, z, y, v, weights, shift)
        else:
            group._product_h_samples(root, z, weights, shift, y, root)

    def move_scale(
        self,
        group: Group,
        root: Array,
        inverse: Array,
        z: Array,
        y: Array,
        weights: Array,
        fisher: Array,
        scale: Array,
        step: DecodingStep,
    ) -> Array | None:
        """Replace D by that of the next generation; return the rows A^-T z_i, None if A is numerically singular."""
        try:
            v = group._apply_transposed(inverse, z) if group.carries_inverse else group._solve_transposed(root, z)
        except SingularElementError:  # the next refresh repairs A
            return None
        kernels.decode(v, y, weights, fisher, *step, scale)
        return v
