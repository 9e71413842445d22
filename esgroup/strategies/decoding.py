"""Diagonal decoding: a diagonal D to the left of A that quickly learns the scales of single variables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from esgroup.checks import Array
from esgroup.groups import Group
from esgroup.groups.linalg import SingularElementError
from esgroup.kernels import decoding as kernels

if TYPE_CHECKING:
    from esgroup.strategies.evolution import Generation, SearchState

# up to this dimension kernels find the root of a matrix faster than LAPACK its eigenvalues: a generation takes 4 us
# at n = 2 with 6 values (87 without the loop), 10 at 5 with 64 (99), 18 at 10 with 64 (114), 37 at 16 with 100 (228)
_ROOTS = 16
_SMALL = 48  # up to this dimension one kernel is faster than BLAS calls

# numbers of one step: factors from weights of A to those of D, for samples and path; the coefficient of -1; the least g
DecodingStep = tuple[float, float, float, float]


@dataclass(frozen=True)
class Decoding:
    """Sigma = sigma^2 D A A^T D, where log D has its own natural-gradient step.

    The score of log D_j is (A^-T z)_j (A z)_j - 1 and its Fisher information F_j = 1 + C_jj (C^-1)_jj with C = A A^T:
    2 for independent coordinates, more where they are correlated. Steps are divided by F_j sqrt(max F / 2), so that D
    moves little where the scales of single coordinates are not what is to be learned (the idea is that of dd-CMA-ES,
    Akimoto and Hansen 2020, whose formulas start from the inverse square root of C).

    The rates of D are those that suit a separable function (`rates.decoding_rates`). Elsewhere D would wander at
    random, and A, which learns slowly, would have to undo it. Therefore D moves by g e, where e is its step, cut off at
    -1 and 1, and g follows the signal in the steps so far, with b = 1 / (2 n):

        m <- (1 - b) m + b e,    V <- (1 - b) V + b |e|^2,    q <- (1 - b)^2 q + b^2,    s <- (1 - b) s + b
        r = |m|^2 s / (q V),     g = (r - 1 - sqrt(2 / n)) / 2, at least g_0, at most 1

    Of steps without a signal |m|^2 is q V / s on average, because m is a sum of past steps whose squared weights sum to
    q, and V / s is the mean of |e|^2; so r is 1 at every age, with a standard deviation of up to sqrt(2 / n). The
    least g leaves D at twice the rate of A: g_0 = 2 c_mu / c_mud, at most 1, which is 2 / (n + 1) from n = 20 on by
    default, and 1 for large populations, in which A undoes whatever D does.

    Measured on bbob instances 1-5 (means of 5 to 60 runs), with g and a larger c_mud, over before: f2 0.96, 0.88, 0.77,
    0.70 (n = 5, 10, 20, 40), separable ellipsoid 0.56, 0.35 (n = 80, 160), f11 0.96, 0.92, 0.85 (n = 10, 20, 40), f1
    1.00 to 1.02, f8 1.05, 1.03, 0.96 (n = 5, 10, 20), f10 0.98. Without g f11 takes 1.16 (n = 20). The form of g (also
    1 - 1/r), its limits (0, 0.05, 0.1, 3 / (n + 1)) and b (1/20, 1/n, 1 / (4 n)) make differences of a few percent, but
    a least g of 0.05 at n = 5 takes 1.1 on f8, and without sqrt(2 / n) fewer runs find the optimum of f8 and f9 (109 of
    120 at n = 20, 114 with it, 116 before).

    Parameters
    ----------
    by_mean : bool
        Whether to use the mean of F instead of its maximum: for a frame, whose few axes correlate few coordinates
        (separable ellipsoid, n = 160: 0.86 of the evaluations).
    """

    by_mean: bool = False

    def is_prompt(self, group: Group) -> bool:
        """Whether F is recomputed at every step: for small dense matrices, where the cost is negligible."""
        return group.carries_inverse and group.dim <= _SMALL

    def is_looped(self, group: Group, n: int, flows: bool) -> bool:
        """Whether `kernels.full.generation` does all of a generation of n values: for small dense matrices."""
        return self.is_prompt(group) and (group.dim <= _ROOTS if flows else n < max(32, 2 * group.dim))

    def period(self, group: Group) -> int:
        """Return the number of generations after which F is recomputed, if not at every step."""
        return 1000 if self.is_prompt(group) else max(10, group.dim // 4)

    def refresh(self, group: Group, root: Array, inverse: Array, fisher: Array) -> None:
        """Write F sqrt(max F / 2), or with the mean, for the current A and A^-1."""
        fisher[:] = group._squared_row_norms(root)
        fisher *= group._squared_column_norms(inverse)
        fisher += 1.0
        fisher *= np.sqrt((fisher.mean() if self.by_mean else fisher.max()) / 2.0)

    def move_scale(
        self, group: Group, state: SearchState, generation: Generation, step: DecodingStep
    ) -> Array | None:
        """Replace D by that of the next generation; return the rows A^-T z_i, None if A is numerically singular."""
        z = generation.z
        try:
            carried = group.carries_inverse
            v = group._apply_transposed(state.inverse, z) if carried else group._solve_transposed(state.root, z)
        except SingularElementError:  # the next refresh repairs A
            return None
        kernels.decode(v, generation.y, generation.weights, state.fisher, *step, state.trend, state.scale)
        return v
