"""Groups as their users see them: every argument checked, then handed to the hooks.

An element of a group is a packed float64 vector of length `group.size`; a group itself is a frozen description
(sizes, a pattern) without numbers. The vectors of the *local space* (symmetric where the group is, so that its
Fisher matrix is not singular) are packed in the same way. All functions are pure.
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


class Group(Hooks):
    """Invertible matrices of one structure, closed under products and inverses.

    `dim` is the number of rows, `size` the length of a packed element, `dof` the dimension of the local space. A new
    group derives from this class and writes the hooks under "must" in hooks.py.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        # from its fields, through the constructor: a plain pickle would forget which arrays are read-only
        return type(self), tuple(getattr(self, field.name) for field in dataclasses.fields(self))  # type: ignore[arg-type]

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
            if out is not a:
                checks.must_not_overlap("out", out, "a", a)
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
