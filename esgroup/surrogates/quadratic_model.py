"""A quadratic model of a function in the local coordinates of a search distribution, as far as a group can use it.

In local coordinates z ~ N(0, I) the model is

    q(z) = c + b^T z + (z^T G z - tr G) / sqrt(2),        Hessian H = sqrt(2) G

whose features 1, z_i, (z_i^2 - 1) / sqrt(2), z_i z_j are orthonormal under N(0, I), so that c is the mean of q and
|b|^2 + |G|^2 its variance. G has the symmetric support of a group: entries that the natural gradient of the group does
not see are not fitted, and there are as many of them as the group has degrees of freedom.

The fit is weighted least squares by conjugate gradients on the normal equations (Hestenes and Stiefel 1952; Bjoerck
1996, section 7.4) from an earlier model. Stopped early, or with fewer points than features, the answer is the one that
changes that model least, as in Powell's NEWUOA (2006), here in the metric of the search distribution and of prior
variances: those of c, b and the common curvature tr G / n are 4 n times that of all other entries of G. Otherwise the
n^2 / 2 entries of G together would explain what the n entries of b should.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from esgroup.checks import Array
from esgroup.groups import BlockTriangular, Diagonal, Full, Group, Heisenberg
from esgroup.kernels import quadratic as kernels
from esgroup.surrogates.base import Axes

Indices = NDArray[np.int64]

_ROOT2 = math.sqrt(2.0)
_PRIOR = 4.0  # times n: prior variances of c, b and the common curvature, relative to other entries of G
_NEWTON_STEPS = 50  # for the secular equation: 3 to 8 do, unless the slope has no part along the lowest axis
_MOST_FEATURES = 6000  # the features of 1.2 times as many points take 170 MB, and a fit takes a second
_RIDGE = 1e-12  # of the largest diagonal entry of the normal equations of a model with few features


class Quadratic(NamedTuple):
    """c, b and G; G is a vector where it is diagonal."""

    constant: float
    slope: Array  # (n,)
    curvature: Array  # (n, n) or (n,)

    @property
    def diagonal(self) -> bool:
        """Whether only the diagonal of G is there."""
        return self.curvature.ndim == 1

    @property
    def trace(self) -> float:
        """The trace of G."""
        return float(self.curvature.sum() if self.diagonal else np.trace(self.curvature))

    @property
    def size(self) -> float:
        """sqrt(|b|^2 + |G|^2), the standard deviation of q under N(0, I)."""
        return math.sqrt(float(self.slope @ self.slope) + float(np.vdot(self.curvature, self.curvature)))

    def values(self, z: Array) -> Array:
        """q at the rows of z."""
        image = z * self.curvature if self.diagonal else z @ self.curvature
        return self.constant + z @ self.slope + (np.vecdot(image, z) - self.trace) / _ROOT2

    def axes(self) -> Axes:
        """Eigenvalues of the Hessian, in ascending order unless G is diagonal, and the axes."""
        if self.diagonal:
            return Axes(_ROOT2 * self.curvature, None)
        values, vectors = np.linalg.eigh(self.curvature)
        return Axes(_ROOT2 * values, vectors)

    def least_in_ball(self, radius: float) -> tuple[Array, bool]:
        """Return the minimizer of q over |z| <= radius, and whether it is on the boundary.

        It is z = -(H + lambda I)^-1 b with the least lambda >= max(0, -min e) that makes |z| <= radius (More and
        Sorensen 1983): Newton's method on the secular equation 1/|z(lambda)| = 1/radius, from the left, where it is
        monotone. Where b has no part along the lowest axis and |z| stays short (the hard case), a step along this axis
        completes it.
        """
        axes = self.axes()
        e, g = axes.values, self.slope if axes.vectors is None else self.slope @ axes.vectors
        lowest, scale = float(e.min()), float(np.abs(e).max(initial=0.0))
        length = float(np.linalg.norm(g))
        if lowest > 1e-12 * scale:
            u = -g / e
            if float(u @ u) <= radius * radius:
                return axes.out(u), False
        if length == 0.0 and scale == 0.0:
            return np.zeros_like(g), False
        least = max(0.0, -lowest)
        # |z(lambda)| >= radius at lambda = |g_j| / radius - e_j for every j, among them that of the lowest axis
        low = max(least, float((np.abs(g) / radius - e).max()))
        tiny = 1e-14 * max(scale, length / radius)
        shift = max(low, least + tiny)
        for _ in range(_NEWTON_STEPS):
            u = -g / (e + shift)
            square = float(u @ u)
            norm = math.sqrt(square)
            if norm <= radius * (1.0 + 1e-10):
                break
            step = (norm / radius - 1.0) * square / float((u * u) @ (1.0 / (e + shift)))
            shift += step
            if step <= 1e-16 * shift:
                break
        norm = float(np.linalg.norm(u))
        if norm < radius * (1.0 - 1e-6):  # the hard case
            j = int(e.argmin())
            across = math.sqrt(max(0.0, radius * radius - (norm * norm - u[j] ** 2)))
            u[j] = math.copysign(across, -g[j])
            norm = radius
        if norm > 0.0:
            u *= radius / norm
        return axes.out(u), True


class Quadratics(NamedTuple):
    """Several models: arrays whose first axis numbers them."""

    constants: Array  # (m,)
    slopes: Array  # (m, n)
    curvatures: Array  # (m, n, n) or (m, n)

    def one(self, number: int) -> Quadratic:
        """One of them; its arrays are views."""
        return Quadratic(float(self.constants[number]), self.slopes[number], self.curvatures[number])

    @property
    def rows(self) -> Array:
        """The curvatures as kernels take them: n rows for each model, or one if they are diagonal."""
        return self.curvatures.reshape(-1, self.slopes.shape[1])


@dataclass(frozen=True, eq=False)
class Support:
    """The entries of G that a model has: all of them, those of a mask, the diagonal.

    Parameters
    ----------
    dim : int
        Number of coordinates.
    diagonal : bool
        Whether G is diagonal, and stored as a vector.
    mask : array (dim, dim) of bool or None
        The entries of a symmetric G that are fitted, the diagonal among them; None: all.
    """

    dim: int
    diagonal: bool = False
    mask: NDArray[np.bool_] | None = None

    @classmethod
    def of(cls, group: Group) -> Support:
        """Return the symmetric support of the local space of a group; ValueError if that is none, or too large."""
        if not isinstance(group, Full | Diagonal | BlockTriangular | Heisenberg):
            wanted = "'full', 'diagonal', 'block_triangular', 'heisenberg' or 'frame'"
            raise ValueError(f"structure must be {wanted} for model='quadratic', got {group}")
        if 1 + group.dim + group.dof > _MOST_FEATURES:
            wanted = f"at most {_MOST_FEATURES:,} numbers in its model for model='quadratic'"
            instead = "use 'diagonal', or" if 1 + 2 * group.dim <= _MOST_FEATURES else "you can"
            text = f"got {group} with {1 + group.dim + group.dof:,}: {instead} leave the model out"
            raise ValueError(f"structure must have {wanted}, {text}")
        if isinstance(group, Full):
            return cls(group.dim)
        if isinstance(group, Diagonal) or len(group.hub) == 0:
            return cls(group.dim, diagonal=True)
        mask = np.eye(group.dim, dtype=bool)
        mask[group.hub] = True
        mask[:, group.hub] = True
        return cls(group.dim, mask=None if mask.all() else mask)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Shape of G."""
        return (self.dim,) if self.diagonal else (self.dim, self.dim)

    @cached_property
    def features(self) -> int:
        """p = 1 + n + the entries of G on and above its diagonal."""
        _, begins, ends = self.runs
        return 1 + 2 * self.dim + int((ends - begins).sum())

    @cached_property
    def runs(self) -> tuple[Indices, Indices, Indices]:
        """The entries above the diagonal as runs: the row of each, its first column, and the one after its last."""
        if self.diagonal:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        mask = np.ones((self.dim, self.dim), dtype=bool) if self.mask is None else self.mask
        edges = np.diff(np.triu(mask, 1).astype(np.int8), axis=1, prepend=0, append=0)
        rows, begins = (part.copy() for part in np.nonzero(edges == 1))
        return rows, begins, np.nonzero(edges == -1)[1].copy()


# ---- fits -------------------------------------------------------------------------------------------------------


def near_weights(z: Array) -> Array:
    """w = 1 / max(1, |z|^2 / (1.5 n))^2: far outside the distribution errors count relative to |z|^2, as q grows."""
    return 1.0 / np.maximum(1.0, np.vecdot(z, z) / (1.5 * z.shape[1])) ** 2


def fit(
    support: Support,
    models: Quadratics,
    z: Array,
    y: Array,
    weights: Array,
    *,
    windows: Sequence[int],
    steps: Sequence[int],
    tolerance: float = 1e-4,
    chained: bool = False,
) -> None:
    """Move models in place toward the minimum of sum_i w_i (y_i - q(z_i))^2, each over the last points of its window.

    At most `steps` steps of conjugate gradients are taken, or until the gradient is `tolerance` times the first one.
    Residuals should be of the size 1. The loop is `esgroup.kernels.quadratic.fit`.

    Parameters
    ----------
    support
        The entries of G that are fitted.
    models
        The models to begin with, zero outside the support.
    z, y, weights
        Points (N, n), values (N,), weights (N,).
    windows
        How many of the last points every model sees, at least; up to three more, because the loop takes four at a time.
    steps, tolerance
        When to stop; steps for every model.
    chained
        Whether a model begins with the one before it, after that was fitted.
    """
    wide, sizes = math.sqrt(_PRIOR * support.dim), (np.array(windows), np.array(steps))
    half, (constants, slopes, _) = np.sqrt(weights), models
    kernels.fit(z, y, half, *support.runs, wide, tolerance, *sizes, int(chained), constants, slopes, models.rows)


def fit_few(support: Support, z: Array, y: Array, weights: Array, *, curvatures: int) -> Quadratic:
    """Return the model with one curvature (1), G = g I, or with a diagonal G (n), by weighted least squares.

    They have n + 2 and 2 n + 1 features, so that few points determine them.
    """
    n = support.dim
    squares = (z * z - 1.0) / _ROOT2
    columns = squares.sum(axis=1, keepdims=True) / math.sqrt(n) if curvatures == 1 else squares
    features = np.concatenate([np.ones((len(z), 1)), z, columns], axis=1)
    weighted = features * weights[:, None]
    normal = weighted.T @ features
    normal[np.diag_indices_from(normal)] += _RIDGE * np.diagonal(normal).max()
    theta = np.linalg.solve(normal, weighted.T @ y)
    theta += np.linalg.solve(normal, weighted.T @ (y - features @ theta))  # normal equations lose half of the digits
    diagonal = np.full(n, theta[-1] / math.sqrt(n)) if curvatures == 1 else theta[1 + n :]
    return Quadratic(float(theta[0]), theta[1 : 1 + n], diagonal if support.diagonal else np.diag(diagonal))


# ---- moves ------------------------------------------------------------------------------------------------------


def changed_frame(support: Support, model: Quadratic, shift: Array, turn: Array) -> Quadratic:
    """Return the same function in coordinates with z = shift + turn z', as far as the support can hold it.

    With H = sqrt(2) G the value at the new origin is q(shift), b' = T^T (b + H d), H' = T^T H T, and c' follows from
    q(shift) = c' - tr H' / 2. T may be a vector, and of a matrix a diagonal support holds the diagonal.
    """
    constant, slope, curvature = model
    image = curvature * shift if support.diagonal else curvature @ shift
    origin = constant + float(slope @ shift) + (float(image @ shift) - model.trace) / _ROOT2
    slope = slope + _ROOT2 * image
    if support.diagonal:
        turn = turn if turn.ndim == 1 else np.diagonal(turn)
        slope, curvature = turn * slope, turn * turn * curvature
    elif turn.ndim == 1:
        slope, curvature = turn * slope, turn[:, None] * curvature * turn
    else:
        slope, curvature = slope @ turn, turn.T @ curvature @ turn
        curvature = (curvature + curvature.T) / 2
        curvature = curvature if support.mask is None else np.where(support.mask, curvature, 0.0)
    moved = Quadratic(origin, slope, curvature)
    return moved._replace(constant=origin + moved.trace / _ROOT2)
