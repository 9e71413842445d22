"""Estimates S of the Hessian: their interface to the iteration, and S = B B^T with B in a group.

`moving.py` contains the other kind of estimate, the moving block.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from esgroup.checks import Array, all_finite
from esgroup.distributions.curvature import local_hessian
from esgroup.distributions.gaussian import Form, Gaussian
from esgroup.groups import Group, SingularElementError

OVERSHOT = 2.0  # beta lambda beyond which an error changes its sign and grows
FADING = 0.5  # of the last lambda: with 0 or 0.9, twice the iterations on the variably dimensioned function


class Breakdown(Exception):
    """Ends a run because the iteration cannot continue; carries the name of the reason and its text."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(text)
        self.name, self.text = name, text


class EstimateBreakdown(Breakdown):
    """A breakdown that may be caused by the estimate S, not the function: a new estimate may be able to continue."""


class UpdateData(NamedTuple):
    """The input of one update of an estimate: derivatives at the current point, and the step sizes.

    `products` maps rows v to rows H v. `diagonal` is the diagonal of H, or None if the estimate does not need it.
    `damping` is a multiple of the identity that is added to the Hessian, `rate` the step size beta, and `last_step`
    the difference between the current point and the previous one, None in the first iteration.
    """

    gradient: Array
    products: Callable[[Array], Array]
    diagonal: Array | None
    damping: float
    rate: float
    last_step: Array | None


class Precision(ABC):
    """A positive-definite estimate S of the Hessian. Objects are immutable: `advance` returns the next one."""

    #: Whether `advance` uses the diagonal of the Hessian.
    needs_diagonal: bool

    @abstractmethod
    def advance(self, data: UpdateData) -> Self:
        """Return the updated estimate."""

    @abstractmethod
    def solve(self, vector: Array) -> Array:
        """Return S^-1 v."""


def finite_or_stop(name: str, array: Array, kind: type[Breakdown] = Breakdown) -> Array:
    """Return the array if all its entries are finite; otherwise end the run."""
    if not all_finite(array):
        raise kind("not_finite", f"{name} has entries that are not finite")
    return array


def largest_curvature(diagonal: Array, gradient: Array) -> float:
    """Return max |H_ii| as the scale of the function; if that is zero, max |g_i|, so that steps are at most 1 long."""
    for array in (diagonal, gradient):
        largest = float(abs(array).max())
        if largest > 0.0:
            return largest
    return 1.0


# ---- S = B B^T with B in a group --------------------------------------------------------------------------------


class LastUpdate(NamedTuple):
    """The argument of h in the last update of a root, the natural gradient before it, and the curvature along it."""

    m: Array
    gradient: Array
    curvature: float


@dataclass(frozen=True, eq=False)
class GroupPrecision(Precision):
    """S = B B^T, or S^-1 = A A^T in covariance form, with the root B or A in a group.

        B <- B h(beta C (.) kappa(X - I)),    X = B^-1 H B^-T
        A <- A h(-beta C (.) kappa(X - I)),   X = A^T H A

    (paper, section 4, at the mean and with gamma = 1). `clip` bounds the largest entry of the argument of h by scaling
    the argument as a whole; `absolute` replaces X by |X| (see `absolute_curvature`). Neither changes the fixed points.
    In covariance form a clip of 1 also keeps h on its increasing branch, which begins at -1.

    beta is reduced if the last update overshot. X_JJ and X_jj say nothing about the other entries of X, so where they
    are 1, X can still have eigenvalues of up to the number of coordinates outside the hub. A step of a hub row along
    such an eigenvector multiplies the error there by 1 - beta lambda, without bound if beta lambda > 2. The curvature
    along the last M is known without further products, from the natural gradients G before and after it:

        lambda = <M, G_before - G_after> / <M, M>,    beta <- 1 / lambda   if beta lambda > 2

    This is the step of Barzilai and Borwein (1988); it removes the error in the growing direction.
    """

    family: Gaussian
    root: Array
    clip: float | None = 1.0
    absolute: bool = True
    last: LastUpdate | None = None

    @property
    def needs_diagonal(self) -> bool:  # type: ignore[override]
        return len(self.family.group.hub) < self.family.dim

    def advance(self, data: UpdateData) -> GroupPrecision:
        group = self.family.group
        with _singular_root_stops(), np.errstate(over="ignore", invalid="ignore"):
            gradient = self._natural_gradient(data)
            curvature = self._curvature(gradient)
            m = (1.0 / curvature if data.rate * curvature > OVERSHOT else data.rate) * gradient
            largest = float(np.abs(m).max(initial=0.0))
            if self.clip is not None and largest > self.clip:
                m *= self.clip / largest
            root = finite_or_stop("the root of the precision", group._product_h(self.root, m), EstimateBreakdown)
            return replace(self, root=root, last=LastUpdate(m, gradient, curvature))

    def _curvature(self, gradient: Array) -> float:
        """lambda along the last update, or half of its previous value if that is larger."""
        if self.last is None:
            return 0.0
        m, before, memory = self.last
        squared = float(m @ m)
        curvature = float(m @ (before - gradient)) / squared if squared > 0.0 else 0.0
        return max(curvature, FADING * memory) if math.isfinite(curvature) else 0.0

    def _natural_gradient(self, data: UpdateData) -> Array:
        """C (.) kappa(X - I), with the sign of the form."""
        group = self.family.group
        diagonal = data.diagonal if self.needs_diagonal else None
        if diagonal is not None:
            diagonal = diagonal + data.damping

        def products(rows: Array) -> Array:
            found = data.products(rows)
            return found + data.damping * rows if data.damping else found

        precision = self.family.form == "precision"
        rows, local_diagonal = local_hessian(group, self.root, products, diagonal, precision=precision)
        if self.absolute:
            rows, local_diagonal = absolute_curvature(rows, local_diagonal, group.hub)
        m = group._project_columns(np.ascontiguousarray(rows.T), local_diagonal)
        return -self.family._sign * (m - 0.5 * group._local_identity())

    def solve(self, vector: Array) -> Array:
        with _singular_root_stops():
            local = self.family._pull(self.root, vector[None])
            return self.family._outward(self.root, local)[0]


def group_precision(group: Group, form: Form, scale: float, clip: float | None, absolute: bool) -> GroupPrecision:
    """Return the initial estimate S = scale I."""
    family = Gaussian(group, form=form)
    size = scale**0.5 if form == "precision" else scale**-0.5
    return GroupPrecision(family, group._scale(group._identity(), size), clip, absolute)


def absolute_curvature(rows: Array, diagonal: Array, hub: NDArray[np.int64]) -> tuple[Array, Array]:
    """Return the parts of |X| that a structure uses: X_JJ = U diag(e) U^T becomes U diag|e| U^T, X_jj becomes |X_jj|.

    A fixed point X_JJ = I, X_jj = 1 remains one. Without this, negative curvature would drive S to zero or, because h
    is not monotone, to a meaningless fixed point. With it, M = (beta / 2) (|X| - I) has no eigenvalue below -beta / 2,
    so that h stays on its increasing branch for every beta <= 2.
    """
    rows = rows.copy()
    corner = rows[:, hub]
    e, u = np.linalg.eigh((corner + corner.T) / 2)
    rows[:, hub] = (u * np.abs(e)) @ u.T
    return rows, np.abs(diagonal)


@contextmanager
def _singular_root_stops() -> Iterator[None]:
    """End the run if a root has no inverse."""
    try:
        yield
    except (SingularElementError, np.linalg.LinAlgError) as error:
        raise EstimateBreakdown("singular", f"the precision is singular to rounding: {error}") from error
