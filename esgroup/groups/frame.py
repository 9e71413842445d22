"""A frame of directions that follows a search: long and short axes in any directions, all others equal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, NoReturn

import numpy as np

from esgroup import checks
from esgroup.checks import Array
from esgroup.groups.base import Sized
from esgroup.groups.hooks import check_bounded
from esgroup.groups.linalg import SingularElementError
from esgroup.groups.spelling import register
from esgroup.kernels import frame as kernels

_AT_FIRST = 4  # initial number of directions, if their number follows the search


class Axes(NamedTuple):
    """Views of a packed element b (I + U^T (diag(s) - I) U)."""

    bulk: Array  # (1,): b
    ratios: Array  # (k,): s, the lengths of the axes relative to all others
    directions: Array  # (k, dim): U, orthonormal rows


class Gradient(NamedTuple):
    """A natural gradient M in the group of the directions of an element (`Frame.gradient`)."""

    among: Array  # (k, k): G - 2 m I, of the axes among themselves
    beside: Array  # (k, dim): C, of the axes with all other directions
    others: float = 0.0  # m, of all other directions


@register
@dataclass(frozen=True)
class Frame(Sized):
    """Axes of any length in k directions, which turn with the search; all other directions are equal.

        b (I + U^T (diag(s) - I) U)

    U is k x dim with orthonormal rows, s and b are positive. It holds k (dim + 1) + 1 numbers. They fully describe a
    search distribution with few long and short axes; block triangular matrices also have dense columns, but for
    variables that are chosen beforehand. An element contains its own directions, so their number can differ from that
    of the group.

    For fixed directions this is a part of a group: in the order long axes (s >= 1), others, short axes (s < 1), the
    matrices

        [[F, 0, 0],
         [P, b I, 0],        F and L are dense
         [X, Q, L]]

    are closed under products, and an element has the blocks F = b diag(s), L = b diag(s), P = X = Q = 0. A step A h(M)
    is exact in that group. It leads to a matrix with nonzero P, X and Q, which is replaced by the nearest element: the
    eigenvectors of its A A^T whose eigenvalues are furthest from b^2, in a space of 2 k dimensions. This turns the
    directions. Because they turn, a frame has no local space and no projection, and only a search can use it
    (esgroup.strategies.frames).

    Parameters
    ----------
    dim : int
        Number of rows.
    k : int, optional
        Number of directions; by default it follows the search, starting from min(4, dim // 2).

    Examples
    --------
    >>> import esgroup
    >>> search = esgroup.Searcher([0.0] * 500, 1.0, structure="frame:k=8", rng=1)
    >>> search.structure
    Frame(dim=500, k=8)
    """

    follows = True

    k: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.k is not None:
            checks.store_whole_number(self, "k", most=self.dim)

    @property
    def first(self) -> int:
        """The number of directions of the identity, and of elements made from a matrix."""
        return min(_AT_FIRST, self.dim // 2) if self.k is None else self.k

    @property
    def size(self) -> int:
        return 1 + self.first * (self.dim + 1)

    @property
    def dof(self) -> int:
        k = self.first
        return 1 + k * self.dim - k * (k - 1) // 2 if k < self.dim else k * (k + 1) // 2

    @property
    def transposed(self) -> Frame:
        return self

    # ---- elements ---------------------------------------------------------------------------------------------------

    def axes(self, a: Array) -> Axes:
        """Return the parts of a packed element, as views."""
        k = (len(a) - 1) // (self.dim + 1)
        return Axes(a[:1], a[1 : k + 1], a[k + 1 :].reshape(k, self.dim))

    @staticmethod
    def pack(bulk: float, ratios: Array, directions: Array) -> Array:
        """Return the packed element with these parts."""
        return np.concatenate([[bulk], ratios, directions.ravel()])

    def _element(self, name: str, value: object) -> Array:
        a = checks.real_array(name, value, (None,))
        if len(a) % (self.dim + 1) != 1 % (self.dim + 1) or (self.k is not None and len(a) != self.size):
            wanted = f"1 + {self.dim + 1} k numbers" if self.k is None else f"{self.size} numbers"
            raise ValueError(f"{name} must have {wanted} for {self}, got {len(a)}")
        return a

    def _identity(self) -> Array:
        return self.pack(1.0, np.ones(self.first), np.eye(self.first, self.dim))

    def _apply(self, a: Array, x: Array) -> Array:
        out = np.empty(x.shape)
        self._apply_into(a, x, out)
        return out

    def _apply_into(self, a: Array, x: Array, out: Array) -> None:
        kernels.stretch(a, x, out)

    def _solve(self, a: Array, x: Array) -> Array:
        return self._apply(self._inverse(a), x)

    def _apply_transposed(self, a: Array, x: Array) -> Array:
        return self._apply(a, x)

    def _solve_transposed(self, a: Array, x: Array) -> Array:
        return self._solve(a, x)

    def _inverse(self, a: Array) -> Array:
        inverse, k = a.copy(), (len(a) - 1) // (self.dim + 1)
        if not (a[: k + 1] != 0.0).all():
            raise SingularElementError("a must be invertible, but the length of an axis is 0")
        inverse[: k + 1] = 1.0 / a[: k + 1]
        return inverse

    def _transpose(self, a: Array) -> Array:
        return a.copy()

    def _log_abs_det(self, a: Array) -> float:
        bulk, ratios, _ = self.axes(a)
        with np.errstate(divide="ignore"):
            return float(self.dim * np.log(np.abs(bulk[0])) + np.log(np.abs(ratios)).sum())

    def _scale(self, a: Array, factor: float) -> Array:
        scaled = a.copy()
        scaled[0] *= factor
        return scaled

    def _squared_row_norms(self, a: Array) -> Array:
        bulk, ratios, u = self.axes(a)
        norms = 1.0 + (ratios**2 - 1.0) @ (u * u)
        return bulk**2 * np.maximum(norms, min(1.0, ratios.min(initial=1.0) ** 2))  # rounding may be larger than a norm

    def _squared_norm(self, a: Array) -> float:
        bulk, ratios, _ = self.axes(a)
        return float(bulk[0] ** 2 * (self.dim - len(ratios) + ratios @ ratios))

    def _product(self, a: Array, b: Array) -> Array:
        """The element nearest to A B, with as many directions as A: exact where both have the same directions."""
        (bulk, s, u), (other_bulk, t, v) = self.axes(a), self.axes(b)
        basis = np.linalg.qr(np.concatenate([u, v]).T)[0].T
        left, right = basis @ u.T, basis @ v.T  # coordinates of the directions in that basis
        eye = np.eye(len(basis))
        small = (eye + (left * (s - 1.0)) @ left.T) @ (eye + (right * (t - 1.0)) @ right.T)
        ratios, directions = furthest(small, basis, len(s))
        return self.pack(float(bulk[0] * other_bulk[0]), ratios, directions)

    # ---- dense matrices ---------------------------------------------------------------------------------------------

    def _from_dense(self, matrix: Array) -> Array:
        values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
        return self._nearest(np.log(np.maximum(np.abs(values), 1e-300)), vectors)

    def _from_covariance(self, covariance: Array) -> Array:
        """The element whose A A^T is nearest in the affine-invariant distance, sqrt(sum_i log^2 lambda_i).

        lambda_i are the eigenvalues of (A A^T)^-1 Sigma. With the axes of Sigma those in the frame are 1, and for the
        others log b^2 is the mean of their logarithms. These are dim - k neighbors in the order of their lengths,
        those with the least variance.
        """
        values, vectors = np.linalg.eigh(covariance)
        return self._nearest(0.5 * np.log(np.maximum(values, 1e-300)), vectors)

    def _nearest(self, logs: Array, vectors: Array) -> Array:
        """The element with the axes `vectors` and log lengths `logs`, where the axes in the middle are made equal."""
        order = np.argsort(logs)
        logs, vectors = logs[order], vectors[:, order]
        k, others = self.first, self.dim - self.first
        if others == 0:
            return self.pack(1.0, np.exp(logs), np.ascontiguousarray(vectors.T))
        windows = [logs[i : i + others] for i in range(k + 1)]
        i = int(np.argmin([window.var() for window in windows]))
        bulk = float(windows[i].mean())
        kept = np.r_[0:i, i + others : self.dim]
        return self.pack(np.exp(bulk), np.exp(logs[kept] - bulk), vectors.T[kept])

    # ---- the step of a search ---------------------------------------------------------------------------------------

    def _product_h_samples(
        self, a: Array, z: Array, weights: Array, shift: float, images: Array | None, out: Array | None
    ) -> Array:
        moved = self.moved(a, self.gradient(a, z, weights, shift))
        if out is None:
            return moved
        out[:] = moved
        return out

    def gradient(self, a: Array, z: Array, weights: Array, shift: float, inner: Array | None = None) -> Gradient:
        """Return the natural gradient in the group of the directions of A, of sum_i weights_i z_i z_i^T - shift I.

        With the coordinates a_i = U z_i of the samples in the frame and b_i = z_i - U^T a_i outside it,

            G = sum_i weights_i a_i a_i^T - shift I,   C = sum_i weights_i a_i b_i^T,
            m = (sum_i weights_i |b_i|^2 / (dim - k) - shift) / 2.

        `inner` are separate weights for G, for a search whose sigma determines all other directions: then m is 0.
        """
        u = self.axes(a).directions
        k, m, coordinates = len(u), 0.0, z @ u.T
        weighted = (weights[:, None] * coordinates).T
        crossed = weighted @ coordinates
        g = crossed if inner is None else (inner[:, None] * coordinates).T @ coordinates
        if inner is None and k < self.dim:
            square = float(weights @ np.vecdot(z, z)) - float(np.trace(crossed))
            m = 0.5 * (square / (self.dim - k) - shift)
        return Gradient(g - (shift + 2.0 * m) * np.eye(k), weighted @ z - crossed @ u, m)

    def moved(self, a: Array, step: Gradient) -> Array:
        """Return the element nearest to A h(m) h(M - m I), which is A h(M) up to the third order of M.

        M - m I consists of G - 2 m I among the long axes, halved, among the short ones, halved, and from long to short
        ones; of C^T from long axes to all other directions, and C from these to short axes. The other directions stay
        alike. M is scaled down if an entry exceeds 1.
        """
        bulk, s, u = self.axes(a)
        k, (g, c, m) = len(s), step
        check_bounded(float(np.vdot(c, c)) + float(np.vdot(g, g)) + m * m)
        largest = max(1.0, abs(m), np.abs(g).max(initial=0.0), np.abs(c).max(initial=0.0))
        g, c, m = g / largest, c / largest, m / largest
        ratios, directions = np.empty(k), np.empty((k, self.dim))
        if k:
            kernels.move(s, u, g, c, ratios, directions)
        return self.pack(bulk.item() * (1.0 + m + 0.5 * m * m), ratios, directions)

    # ---- not available for a frame ----------------------------------------------------------------------------------

    def _project(self, left: Array, right: Array, weights: Array, shift: float) -> NoReturn:
        raise ValueError(f"{self} has no local space, because its directions follow a search: use another structure")

    def _h(self, m: Array) -> NoReturn:
        self._project(m, m, m, 0.0)

    def _exp(self, m: Array) -> NoReturn:
        self._project(m, m, m, 0.0)

    def _dense_local(self, m: Array) -> NoReturn:
        self._project(m, m, m, 0.0)


def furthest(small: Array, basis: Array, k: int, *, shortest: bool = False) -> tuple[Array, Array]:
    """The k axes of the matrix `small`, in the rows of `basis`, whose lengths are furthest from 1: (k,), (k, dim).

    With `shortest` the shortest axis is always one of them.
    """
    values, vectors = np.linalg.eigh(small @ small.T)
    logs = 0.5 * np.log(np.maximum(values, kernels.ROUNDING * values.max(initial=1e-300)))
    distances = np.abs(logs)
    if shortest:
        distances[0] = np.inf
    kept = np.sort(np.argsort(-distances, kind="stable")[:k])
    return np.exp(logs[kept]), vectors.T[kept] @ basis
