"""What a group of structured matrices must offer, and what follows from it.

An element of a group is a packed float64 vector of length `group.size`; a group itself is a frozen description
(sizes, a pattern) without numbers. The vectors of the *local space* (symmetric where the group is, so that its
Fisher matrix is not singular) are packed in the same way. All functions are pure.

A new group writes the hooks under "must" below on trusted arrays; the public methods check their arguments and call
the hooks. A hook of the form `f(a, x)` takes points as rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from esgroup import checks
from esgroup.checks import Array
from esgroup.groups.linalg import SingularElementError


class Group(ABC):
    """Invertible matrices of one structure, closed under products and inverses.

    `dim` is the number of rows, `size` the length of a packed element, `dof` the dimension of the local space.
    """

    dim: int

    #: True if `product_h_samples` is faster when handed the images A z_i.
    uses_images: ClassVar[bool] = False

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
        """Rows A x_i, a new array."""

    @abstractmethod
    def _solve(self, a: Array, x: Array) -> Array:
        """Rows A^-1 x_i, a new array."""

    @abstractmethod
    def _inverse(self, a: Array) -> Array:
        """A^-1."""

    @abstractmethod
    def _log_abs_det(self, a: Array) -> float:
        """log|det A|, -inf if A is singular."""

    @abstractmethod
    def _project(self, left: Array, right: Array, weights: Array, shift: float) -> Array:
        """C (.) kappa(G) of the symmetric G = sum_i weights_i left_i right_i^T - shift I (left is right, mostly)."""

    @property
    @abstractmethod
    def transposed(self) -> Group:
        """The group of the transposed matrices."""

    @abstractmethod
    def _transpose(self, a: Array) -> Array:
        """A^T, packed as an element of `transposed`."""

    @abstractmethod
    def _from_dense(self, matrix: Array) -> Array:
        """The packed element nearest to a dense matrix; `from_dense` checks that it is the matrix."""

    # ---- may: correct as they stand, replaced where a group has a faster way ----------------------------------------

    def _affine(self, a: Array, x: Array, offset: Array, out: Array) -> None:
        """out = rows A x_i + offset."""
        np.add(self._apply(a, x), offset, out=out)

    def _apply_transposed(self, a: Array, x: Array) -> Array:
        return self.transposed._apply(self._transpose(a), x)

    def _solve_transposed(self, a: Array, x: Array) -> Array:
        return self.transposed._solve(self._transpose(a), x)

    def _h(self, m: Array) -> Array:
        return self._identity() + m + 0.5 * self._product(m, m)

    def _product_h(self, a: Array, m: Array) -> Array:
        return self._product(a, self._h(m))

    def _product_h_samples(
        self, a: Array, z: Array, weights: Array, shift: float, images: Array | None, out: Array | None
    ) -> Array:
        moved = self._product_h(a, self._project(z, z, weights, shift))
        if out is None:
            return moved
        out[:] = moved
        return out

    def _exp(self, m: Array) -> Array:
        # scaling and squaring of the Taylor series, in packed form: norm / 2^s < 1/2, then 0.5^18 / 18! < 1e-21
        norm = np.abs(m).max(initial=0.0) * max(1, self.dim)
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
        return a * factor

    def _squared_norm(self, a: Array) -> float:
        """tr(A^T A); as it stands, for groups that store every entry once."""
        return float(a @ a)

    def _dense(self, a: Array) -> Array:
        return np.ascontiguousarray(self._apply(a, np.eye(self.dim)).T)

    def _dense_local(self, m: Array) -> Array:
        return self._dense(m)

    def _local_identity(self) -> Array:
        """The packed local vector of the matrix I."""
        return self._identity()

    @cached_property
    def hub(self) -> NDArray[np.int64]:
        """Columns of X that C (.) kappa(X) depends on beside X's diagonal: as many Hessian-vector products.

        Every column T e_j outside the hub is a combination of e_j and the hub's columns of T, for T in the group.
        """
        return checks.read_only(np.arange(self.dim))

    def _project_columns(self, columns: Array, diagonal: Array) -> Array:
        """C (.) kappa(X) from the hub's columns of the symmetric X, (dim, len(hub)), and its diagonal."""
        return self._project(np.eye(self.dim), columns, np.ones(self.dim), 0.0)

    def _from_covariance(self, covariance: Array) -> Array:
        from esgroup.groups.fit import fit_covariance

        return fit_covariance(self, covariance)

    # ---- public -------------------------------------------------------------------------------------------------

    def identity(self) -> Array:
        """The packed identity matrix."""
        return self._identity()

    def product(self, a: Any, b: Any) -> Array:
        """A B."""
        return self._product(self._element("a", a), self._element("b", b))

    def apply(self, a: Any, x: Any) -> Array:
        """A x for a point x, or for every row of x."""
        return self._on_rows(self._apply, a, x)

    def apply_transposed(self, a: Any, x: Any) -> Array:
        """A^T x for a point x, or for every row of x."""
        return self._on_rows(self._apply_transposed, a, x)

    def solve(self, a: Any, x: Any) -> Array:
        """A^-1 x for a point x, or for every row of x."""
        return self._on_rows(self._solve, a, x)

    def solve_transposed(self, a: Any, x: Any) -> Array:
        """A^-T x for a point x, or for every row of x."""
        return self._on_rows(self._solve_transposed, a, x)

    def inverse(self, a: Any) -> Array:
        """A^-1, again in the group."""
        return self._inverse(self._element("a", a))

    def scale(self, a: Any, factor: float) -> Array:
        """factor A for a positive factor."""
        return self._scale(self._element("a", a), checks.real_number("factor", factor, positive=True))

    def transpose(self, a: Any) -> Array:
        """A^T as an element of the group `transposed`."""
        return self._transpose(self._element("a", a))

    def log_abs_det(self, a: Any) -> float:
        """log|det A|."""
        value = self._log_abs_det(self._element("a", a))
        if value == -np.inf:
            raise SingularElementError("a must be invertible, but its determinant is 0")
        return value

    def squared_norm(self, a: Any) -> float:
        """tr(A^T A), the squared Frobenius norm."""
        return self._squared_norm(self._element("a", a))

    def project(self, z: Any, weights: Any, shift: float = 0.0) -> Array:
        """C (.) kappa(sum_i weights_i z_i z_i^T - shift I), the natural gradient in local coordinates.

        It is the local vector N with N + N^T = P(G), P the orthogonal projection on {M + M^T : M local}
        (Lin et al. 2021, section 4 and the appendices on the groups). G itself is never formed.
        """
        z = checks.real_array("z", z, (None, self.dim))
        weights = checks.real_array("weights", weights, (len(z),))
        return self._project(z, z, weights, checks.real_number("shift", shift))

    def project_pairs(self, x: Any, y: Any, weights: Any, shift: float = 0.0) -> Array:
        """C (.) kappa(sum_i weights_i (x_i y_i^T + y_i x_i^T) / 2 - shift I)."""
        x = checks.real_array("x", x, (None, self.dim))
        y = checks.real_array("y", y, x.shape)
        half = checks.real_array("weights", weights, (len(x),)) / 2
        left, right = np.concatenate([x, y]), np.concatenate([y, x])
        return self._project(left, right, np.concatenate([half, half]), checks.real_number("shift", shift))

    def project_dense(self, matrix: Any) -> Array:
        """C (.) kappa of a dense symmetric matrix."""
        matrix = checks.symmetric("matrix", matrix, self.dim)
        return self._project_columns(np.ascontiguousarray(matrix[:, self.hub]), np.diagonal(matrix).copy())

    def h(self, m: Any) -> Array:
        """h(M) = I + M + M^2/2 of a local vector: in the group, with positive determinant (paper, section 4)."""
        return self._h(self._element("m", m))

    def exp(self, m: Any) -> Array:
        """The matrix exponential of a local vector: the reference for h."""
        return self._exp(self._element("m", m))

    def product_h(self, a: Any, m: Any) -> Array:
        """A h(M) in one call."""
        return self._product_h(self._element("a", a), self._element("m", m))

    def product_h_samples(
        self,
        a: Any,
        z: Any,
        weights: Any,
        shift: float = 0.0,
        *,
        images: Any = None,
        out: Array | None = None,
    ) -> Array:
        """A h(project(z, weights, shift)) in one call; `images` are the rows A z_i if the caller has them.

        `out` receives the result and may be `a` itself; it is written only after all arguments were checked.
        """
        a = self._element("a", a)
        z = checks.real_array("z", z, (None, self.dim))
        weights = checks.real_array("weights", weights, (len(z),))
        shift = checks.real_number("shift", shift)
        if images is not None:
            images = checks.real_array("images", images, z.shape)
        if out is not None:
            checks.writeable("out", out, (self.size,))
        return self._product_h_samples(a, z, weights, shift, images, out)

    def dense(self, a: Any) -> Array:
        """The element as a (dim, dim) matrix."""
        return self._dense(self._element("a", a))

    def dense_local(self, m: Any) -> Array:
        """A local vector as a (dim, dim) matrix (for Kronecker groups M1 (x) I + I (x) M2)."""
        return self._dense_local(self._element("m", m))

    def from_dense(self, matrix: Any) -> Array:
        """The packed form of a matrix that has this group's structure."""
        matrix = checks.real_array("matrix", matrix, (self.dim, self.dim))
        element = self._from_dense(matrix)
        gap = np.abs(self._dense(element) - matrix)
        if gap.max(initial=0.0) > 1e-10 * np.abs(matrix).max(initial=0.0):
            i, j = (int(v) for v in np.unravel_index(gap.argmax(), gap.shape))
            raise ValueError(
                f"matrix must have the structure of {self}, but its entry ({i}, {j}) is off by {gap[i, j]:.3g}"
            )
        return element

    def from_covariance(self, covariance: Any) -> Array:
        """The element A whose A A^T is nearest to a covariance: the minimum of KL(N(0, covariance) || N(0, A A^T)).

        In closed form where there is one, otherwise by A <- A h(beta C (.) kappa(A^-1 covariance A^-T - I)).
        """
        return self._from_covariance(checks.covariance("covariance", covariance, self.dim))

    # ---- shared checks ------------------------------------------------------------------------------------------

    def _element(self, name: str, value: Any) -> Array:
        return checks.real_array(name, value, (self.size,))

    def _on_rows(self, hook: Callable[[Array, Array], Array], a: Any, x: Any) -> Array:
        a, x = self._element("a", a), checks.points("x", x, self.dim)
        return hook(a, x.reshape(-1, self.dim)).reshape(x.shape)
