"""The public interface of a group: every argument is checked, then passed to the hooks.

An element of a group is a packed float64 vector of length `group.size`; a group itself is a frozen description
(sizes, a pattern) without numbers. The vectors of the *local space* (symmetric where the group is, so that its
Fisher matrix is not singular) are packed in the same way. All methods are pure.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from esgroup import checks
from esgroup.checks import Array
from esgroup.groups.hooks import Hooks
from esgroup.groups.linalg import SingularElementError


class FromFields:
    """Base of frozen dataclasses with array fields; it compares those with eq=False.

    Two objects are equal if they have the same class and all fields agree, arrays entry by entry.
    """

    def _fields(self) -> tuple[Any, ...]:
        return tuple(getattr(self, field.name) for field in dataclasses.fields(self))  # type: ignore[arg-type]

    def _compared(self) -> tuple[Any, ...]:
        """The values that decide whether two objects are equal: all fields, unless a subclass overrides this."""
        return self._fields()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, type(self)):
            return NotImplemented
        return all(map(_are_equal, self._compared(), other._compared()))

    def __hash__(self) -> int:
        return hash(tuple(part.shape if isinstance(part, np.ndarray) else part for part in self._compared()))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._fields()  # through the constructor: a plain pickle would not keep arrays read-only


def _are_equal(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return type(one) is type(other) and np.array_equal(one, other)
    return bool(one == other)


class Group(FromFields, Hooks):
    """Invertible matrices of one structure, closed under products and inverses.

    A new group derives from this class and provides the hooks under "must" in hooks.py. In the methods below `a` and
    `b` are packed elements, shape (size,), with matrices A and B; `m` is a packed local vector, shape (size,), with
    matrix M; and points are rows. Each method raises ValueError if an argument has the wrong shape or contains a number
    that is not finite.

    Attributes
    ----------
    dim : int
        Number of rows of the matrices.
    size : int
        Length of a packed element.
    dof : int
        Degrees of freedom: the dimension of the local space.
    transposed : Group
        The group of the transposed matrices.
    hub : array of int
        The columns of a symmetric matrix that its projection depends on, in addition to the diagonal.

    Examples
    --------
    >>> from esgroup.groups import BlockTriangular
    >>> group = BlockTriangular(3, k=1)
    >>> double = group.scale(group.identity(), 2.0)
    >>> group.apply(double, [1.0, 2.0, 3.0])
    array([2., 4., 6.])
    """

    # ---- group operations -------------------------------------------------------------------------------------------

    def identity(self) -> Array:
        """Return the packed identity matrix."""
        return self._identity()

    def product(self, a: Any, b: Any) -> Array:
        """Return the packed product A B."""
        return self._product(self._element("a", a), self._element("b", b))

    def inverse(self, a: Any) -> Array:
        """Return the packed inverse A^-1; SingularElementError if A has none."""
        return self._inverse(self._element("a", a))

    def scale(self, a: Any, factor: float) -> Array:
        """Return factor A, packed, for a positive factor."""
        return self._scale(self._element("a", a), checks.real_number("factor", factor, positive=True))

    def transpose(self, a: Any) -> Array:
        """Return A^T, packed as an element of the group `transposed`."""
        return self._transpose(self._element("a", a))

    def log_abs_det(self, a: Any) -> float:
        """Return log|det A|; SingularElementError if the determinant is 0."""
        value = self._log_abs_det(self._element("a", a))
        if value == -np.inf:
            raise SingularElementError("a must be invertible, but its determinant is 0")
        return value

    def squared_norm(self, a: Any) -> float:
        """Return tr(A^T A), the squared Frobenius norm."""
        return self._squared_norm(self._element("a", a))

    # ---- action on points -------------------------------------------------------------------------------------------

    def apply(self, a: Any, x: Any) -> Array:
        """Return A x for a point x of shape (dim,), or for every row of x of shape (n, dim)."""
        return self._on_rows(self._apply, a, x)

    def apply_transposed(self, a: Any, x: Any) -> Array:
        """Return A^T x for a point x of shape (dim,), or for every row of x of shape (n, dim)."""
        return self._on_rows(self._apply_transposed, a, x)

    def solve(self, a: Any, x: Any) -> Array:
        """Return A^-1 x for a point x of shape (dim,), or for every row of x; SingularElementError if A is singular."""
        return self._on_rows(self._solve, a, x)

    def solve_transposed(self, a: Any, x: Any) -> Array:
        """Return A^-T x for a point x of shape (dim,), or for every row of x; SingularElementError if A is singular."""
        return self._on_rows(self._solve_transposed, a, x)

    # ---- local space ------------------------------------------------------------------------------------------------

    def project(self, z: Any, weights: Any, shift: float = 0.0) -> Array:
        """Return C (.) kappa(G) of G = sum_i weights_i z_i z_i^T - shift I, the natural gradient in local coordinates.

        It is the local vector N with N + N^T = P(G), P the orthogonal projection onto {M + M^T : M local}
        (Lin et al. 2021, section 4 and the appendices on the groups). G itself is never formed.

        Parameters
        ----------
        z : array, shape (n, dim)
        weights : array, shape (n,)
        shift : float

        Returns
        -------
        array, shape (size,)
            The packed local vector.
        """
        z = checks.real_array("z", z, (None, self.dim))
        weights = checks.real_array("weights", weights, (len(z),))
        return self._project(z, z, weights, checks.real_number("shift", shift))

    def project_pairs(self, x: Any, y: Any, weights: Any, shift: float = 0.0) -> Array:
        """Return C (.) kappa(G) of G = sum_i weights_i (x_i y_i^T + y_i x_i^T) / 2 - shift I; otherwise as `project`.

        `x` and `y` have shape (n, dim), `weights` has shape (n,).
        """
        x = checks.real_array("x", x, (None, self.dim))
        y = checks.real_array("y", y, x.shape)
        half = checks.real_array("weights", weights, (len(x),)) / 2
        left, right = np.concatenate([x, y]), np.concatenate([y, x])
        return self._project(left, right, np.concatenate([half, half]), checks.real_number("shift", shift))

    def project_dense(self, matrix: Any) -> Array:
        """Return C (.) kappa(G) of a dense symmetric matrix G of shape (dim, dim); otherwise as `project`."""
        return self._project_dense(checks.symmetric("matrix", matrix, self.dim))

    def h(self, m: Any) -> Array:
        """Return h(M) = I + M + M^2/2, which is in the group and has a positive determinant (paper, section 4)."""
        return self._h(self._element("m", m))

    def exp(self, m: Any) -> Array:
        """Return the matrix exponential of M, which h approximates to second order."""
        return self._exp(self._element("m", m))

    def product_h(self, a: Any, m: Any) -> Array:
        """Return A h(M) in one call."""
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
        """Return A h(project(z, weights, shift)) in one call.

        Parameters
        ----------
        a : array, shape (size,)
        z : array, shape (n, dim)
        weights : array, shape (n,)
        shift : float
        images : array, shape (n, dim), optional
            The rows A z_i, if available; some groups are faster with them.
        out : array, shape (size,), optional
            Receives the result. It must be `a` itself or not overlap it, and is written only after all arguments have
            been checked.

        Returns
        -------
        array, shape (size,)
            The packed product; `out` if given.

        Raises
        ------
        ValueError
            If an argument is not valid, or if the step would overflow.
        """
        a = self._element("a", a)
        z = checks.real_array("z", z, (None, self.dim))
        weights = checks.real_array("weights", weights, (len(z),))
        shift = checks.real_number("shift", shift)
        if images is not None:
            images = checks.real_array("images", images, z.shape)
        if out is not None:
            checks.writeable("out", out, (self.size,))
            if out is not a:
                checks.must_not_overlap("out", out, "a", a)
        return self._product_h_samples(a, z, weights, shift, images, out)

    # ---- dense matrices ---------------------------------------------------------------------------------------------

    def dense(self, a: Any) -> Array:
        """Return the matrix A of shape (dim, dim)."""
        return self._dense(self._element("a", a))

    def dense_local(self, m: Any) -> Array:
        """Return the matrix M of shape (dim, dim) of a local vector (M1 (x) I + I (x) M2 in a Kronecker group)."""
        return self._dense_local(self._element("m", m))

    def from_dense(self, matrix: Any) -> Array:
        """Return the packed form of a (dim, dim) matrix; ValueError if it does not have this group's structure."""
        matrix = checks.real_array("matrix", matrix, (self.dim, self.dim))
        element = self._from_dense(matrix)
        gap = np.abs(self._dense(element) - matrix)
        if gap.max(initial=0.0) > 1e-10 * np.abs(matrix).max(initial=0.0):
            i, j = (int(v) for v in np.unravel_index(gap.argmax(), gap.shape))
            off = f"its entry ({i}, {j}) is off by {gap[i, j]:.3g}"
            raise ValueError(f"matrix must have the structure of {self}, but {off}")
        return element

    def from_covariance(self, covariance: Any) -> Array:
        """Return the element A whose A A^T is nearest to a covariance: it minimizes KL(N(0, Sigma) || N(0, A A^T)).

        Most groups have a closed form; the others iterate A <- A h(beta C (.) kappa(A^-1 Sigma A^-T - I)).

        Parameters
        ----------
        covariance : array, shape (dim, dim)
            Sigma, symmetric and positive definite.

        Returns
        -------
        array, shape (size,)
            The packed element.

        Raises
        ------
        ValueError
            If `covariance` is not symmetric and positive definite.
        """
        return self._from_covariance(checks.covariance("covariance", covariance, self.dim))

    # ---- shared checks ----------------------------------------------------------------------------------------------

    def _element(self, name: str, value: Any) -> Array:
        return checks.real_array(name, value, (self.size,))

    def _on_rows(self, hook: Callable[[Array, Array], Array], a: Any, x: Any) -> Array:
        a, x = self._element("a", a), checks.points("x", x, self.dim)
        return hook(a, x.reshape(-1, self.dim)).reshape(x.shape)


@dataclasses.dataclass(frozen=True)
class Sized(Group):
    """Base of groups whose first field is their number of rows; a field `lower` is a flag."""

    dim: int

    def __post_init__(self) -> None:
        checks.store_whole_number(self, "dim", least=1)
        if hasattr(self, "lower"):
            checks.store_flag(self, "lower")
