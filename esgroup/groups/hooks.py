"""The hooks of a group of structured matrices, on trusted arrays: those it must provide, and defaults built on them.

Arrays are float64 and C-contiguous, points are rows, and `a`, `b`, `m` are packed vectors of length `size`: `a` and `b`
elements of the group, `m` a vector of its local space. A hook returns a new array of the same kind and never modifies
its arguments. Nothing is checked here; `Group` in base.py checks every argument before it calls a hook.

The matrix of a packed vector is linear in its numbers, and a local vector is packed like an element. A number may be
stored once and used for many entries of the matrix, or an entry may be a sum of numbers. A group with any other packing
(Kronecker, whose matrix is a product of its numbers) must also override the hooks marked "linear".
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from esgroup import checks
from esgroup.checks import Array
from esgroup.groups.fit import fit_covariance
from esgroup.kernels import search as search_kernels

if TYPE_CHECKING:
    from esgroup.groups.base import Group


def check_bounded(squared_size: float) -> None:
    """Raise ValueError for a step that would overflow, before anything is written."""
    if not squared_size < 1e100:
        raise ValueError("z and weights must give a step of size below 1e50: are they finite?")


def check_samples_bounded(z: Array, weights: Array, shift: float) -> None:
    """Apply `check_bounded` to a bound on |sum_i weights_i z_i z_i^T - shift I|^2 that needs no matrix."""
    size = float(np.vdot(z, z))
    check_bounded(size * size * float(np.vdot(weights, weights)) + shift * shift)


def flow_rate(shift: float) -> float:
    """T = -ln(1 - s) / s, with which exp(-T s) = 1 - s."""
    return -math.log1p(-shift) / shift if abs(shift) > 1e-12 else 1.0


class Hooks(ABC):
    """The arithmetic of a group; `dim` is the number of rows of its matrices."""

    dim: int

    #: True if `product_h_samples` is faster when it receives the images A z_i.
    uses_images: ClassVar[bool] = False
    #: True if elements contain their own directions, which follow a search: then there is no projection.
    follows: ClassVar[bool] = False
    #: True if a search stores A^-1 as well as A, because `_step_with_inverse` is cheaper than solving.
    carries_inverse: ClassVar[bool] = False

    # ---- must ---------------------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def size(self) -> int:
        """Length of a packed element."""

    @property
    @abstractmethod
    def dof(self) -> int:
        """Degrees of freedom: the dimension of the local space."""

    @abstractmethod
    def _identity(self) -> Array:
        """The packed identity."""

    @abstractmethod
    def _product(self, a: Array, b: Array) -> Array:
        """A B."""

    @abstractmethod
    def _apply(self, a: Array, x: Array) -> Array:
        """Rows A x_i."""

    @abstractmethod
    def _solve(self, a: Array, x: Array) -> Array:
        """Rows A^-1 x_i; SingularElementError if A has no inverse."""

    @abstractmethod
    def _inverse(self, a: Array) -> Array:
        """A^-1; SingularElementError if A has no inverse."""

    @abstractmethod
    def _log_abs_det(self, a: Array) -> float:
        """log|det A|, -inf if A is singular."""

    @abstractmethod
    def _project(self, left: Array, right: Array, weights: Array, shift: float) -> Array:
        """C (.) kappa(G) of the symmetric matrix G = sum_i weights_i left_i right_i^T - shift I.

        `left` and `right` are usually the same array, which saves work in some groups.
        """

    @property
    @abstractmethod
    def transposed(self) -> Group:
        """The group of the transposed matrices."""

    @abstractmethod
    def _transpose(self, a: Array) -> Array:
        """A^T, packed as an element of `transposed`."""

    @abstractmethod
    def _from_dense(self, matrix: Array) -> Array:
        """The packed form of a dense matrix with this structure; `from_dense` checks the structure."""

    # ---- may: the defaults are correct for every group; override them where a group has a faster way -----------------

    def _affine(self, a: Array, x: Array, offset: Array, out: Array) -> None:
        """out = rows A x_i + offset."""
        np.add(self._apply(a, x), offset, out=out)

    def _apply_into(self, a: Array, x: Array, out: Array) -> None:
        """out = rows A x_i."""
        out[:] = self._apply(a, x)

    def _apply_transposed(self, a: Array, x: Array) -> Array:
        """Rows A^T x_i."""
        return self.transposed._apply(self._transpose(a), x)

    def _solve_transposed(self, a: Array, x: Array) -> Array:
        """Rows A^-T x_i."""
        return self.transposed._solve(self._transpose(a), x)

    def _h(self, m: Array) -> Array:
        """h(M) = I + M + M^2/2 (linear)."""
        return self._identity() + m + 0.5 * self._product(m, m)

    def _product_h(self, a: Array, m: Array) -> Array:
        """A h(M)."""
        return self._product(a, self._h(m))

    def _product_h_samples(
        self, a: Array, z: Array, weights: Array, shift: float, images: Array | None, out: Array | None
    ) -> Array:
        """A h(project(z, weights, shift)), written to `out` if given; `images` are the rows A z_i or None.

        `out` may be `a`. Raises before it writes if the step is not bounded.
        """
        m = self._project(z, z, weights, shift)
        check_bounded(float(np.vdot(m, m)))
        moved = self._product_h(a, m)
        if out is None:
            return moved
        out[:] = moved
        return out

    def _flow(self, z: Array, weights: Array, shift: float) -> Array:
        """The element S that natural gradients reach if the samples stay in place while S moves.

        A step A h(M) is correct to first order in its size. Beyond that the samples must be held in place: in the
        coordinates of A S they are S^-1 z_i, and S(1) is reached from S(0) = I by

            dS/dt = S C (.) kappa(T (sum_i w_i S^-1 z_i z_i^T S^-T - s I)),    T = -ln(1 - s) / s.

        Where kappa loses nothing, in the full group and the triangular ones, and for every single coordinate of the
        diagonal one, V = S S^T obeys dV/dt = T (G - s V) with G = sum_i w_i z_i z_i^T, so that

            S S^T = (1 - s) I + G,

        the additive update of CMA-ES (to first order, since T = 1 + s/2 + ...). These groups use the root of that; the
        others, here, take about 4 max_j sum_i |w_i| z_ij^2 midpoint steps: S S^T of the full group is within 3 percent
        for s = 0.95, 1 percent for s = 0.6. The matrix (1 - s) I + G must be positive definite.
        """
        steps = max(1, round(4.0 * (np.abs(weights) @ (z * z)).max(initial=0.0)))
        rate = flow_rate(shift) / steps
        weights, shift = rate * weights, rate * shift
        element = self._identity()
        for _ in range(steps):
            halfway = self._solve(self._h(0.5 * self._project(z, z, weights, shift)), z)
            step = self._h(self._project(halfway, halfway, weights, shift))
            element = self._product(element, step)
            z = self._solve(step, z)
        return element

    def _exp(self, m: Array) -> Array:
        """The matrix exponential of M (linear)."""
        # scaling and squaring of the Taylor series, in packed form: norm / 2^s < 1/2, then 0.5^18 / 18! < 1e-21
        largest = np.abs(m).max(initial=0.0)
        # the Frobenius norm exceeds dim times the largest packed number only if entries are sums or multiples of them
        frobenius = np.sqrt(self._squared_local_norm(m / largest)) if largest > 0 else 0.0
        norm = largest * max(self.dim, frobenius)
        squarings = max(0, int(np.ceil(np.log2(2 * norm)))) if norm > 0 else 0
        small, total = m / 2.0**squarings, self._identity()
        term = total
        for order in range(1, 19):
            term = self._product(term, small) / order
            total = total + term
        for _ in range(squarings):
            total = self._product(total, total)
        return total

    def _scale(self, a: Array, factor: float) -> Array:
        """factor A for a positive factor (linear)."""
        return a * factor

    def _place(
        self, frame: int, a: Array, path: Array, mean: Array, sigma: Array, scale: Array, z: Array, y: Array, x: Array
    ) -> None:
        """Make the first `frame` rows of z orthogonal, and write the path to its last row.

        Then y = rows A z_i, and x = rows mean + sigma scale (.) y_i for as many rows as x has.
        """
        if frame:
            search_kernels.orthogonalize(frame, z)
        z[-1] = path
        self._apply_into(a, z, y)
        search_kernels.place(mean, sigma, scale, y, x)

    def _step_with_inverse(
        self, a: Array, inverse: Array, z: Array, images: Array, pulled: Array, weights: Array, shift: float
    ) -> None:
        """a <- A h(M), inverse <- h(M)^-1 A^-1 for M = project(z, weights, shift), in place.

        `images` are the rows A z_i, `pulled` the rows A^-T z_i. Called only for groups with `carries_inverse`.
        """
        raise NotImplementedError(f"{self} does not update its inverse")

    def _squared_row_norms(self, a: Array) -> Array:
        """The diagonal of A A^T."""
        dense = self._dense(a)
        return np.vecdot(dense, dense)

    def _squared_column_norms(self, a: Array) -> Array:
        """The diagonal of A^T A."""
        return self.transposed._squared_row_norms(self._transpose(a))

    def _squared_norm(self, a: Array) -> float:
        """tr(A^T A); groups that store every nonzero entry exactly once replace it with a @ a."""
        return float(self._squared_row_norms(a).sum())

    def _squared_local_norm(self, m: Array) -> float:
        """tr(M^T M) of a local vector (linear)."""
        return self._squared_norm(m)

    def _dense(self, a: Array) -> Array:
        """The matrix A."""
        return np.ascontiguousarray(self._apply(a, np.eye(self.dim)).T)

    def _dense_local(self, m: Array) -> Array:
        """The matrix M of a local vector (linear)."""
        return self._dense(m)

    def _local_identity(self) -> Array:
        """The packed local vector of the matrix I (linear)."""
        return self._identity()

    @cached_property
    def hub(self) -> NDArray[np.int64]:
        """The columns of X that C (.) kappa(X) depends on, in addition to the diagonal of X.

        A projected Hessian takes one Hessian-vector product for each of them. For T in the group, each column T e_j
        outside the hub is a combination of e_j and the hub's columns of T. Override this only together with
        `_project_columns`; the default, all columns, is correct for every group.
        """
        return checks.read_only(np.arange(self.dim))

    @property
    def gathered(self) -> int:
        """The largest number of mutually independent coordinates in this group that a single other one depends on.

        It bounds a learning rate of the search (`root_rates` in strategies/rates.py); 0 sets no bound.
        """
        return 0

    def _project_columns(self, columns: Array, diagonal: Array) -> Array:
        """C (.) kappa(X) from the hub's columns of the symmetric X, (dim, len(hub)), and its diagonal."""
        return self._project(np.eye(self.dim), columns, np.ones(self.dim), 0.0)

    def _project_dense(self, matrix: Array) -> Array:
        """C (.) kappa(X) of a dense symmetric X."""
        return self._project_columns(np.ascontiguousarray(matrix[:, self.hub]), np.diagonal(matrix).copy())

    def _from_covariance(self, covariance: Array) -> Array:
        """The element A that minimizes KL(N(0, covariance) || N(0, A A^T)), by default by iteration."""
        return fit_covariance(self, covariance)
