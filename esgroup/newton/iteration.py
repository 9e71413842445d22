"""The group update: S = B B^T with B in a group, moved by the map h along the natural gradient."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from esgroup.checks import Array
from esgroup.distributions.curvature import local_hessian
from esgroup.distributions.gaussian import Form, Gaussian
from esgroup.groups import Group, SingularElementError
from esgroup.newton.curvature import absolute
from esgroup.newton.precision import Breakdown, Look, Precision, finite


@dataclass(frozen=True, eq=False)
class GroupPrecision(Precision):
    """S = B B^T, or S^-1 = A A^T in covariance form, with the root B or A in a group.

        B <- B h(beta C (.) kappa(X - I)),    X = B^-1 H B^-T
        A <- A h(-beta C (.) kappa(X - I)),   X = A^T H A

    (paper, section 4, at the mean and with gamma = 1). `clip` bounds the largest entry of the argument of h, which is
    scaled down as a whole; `absolute` takes |X| for X (see `curvature.absolute`). Both leave fixed points where they
    are. In covariance form a clip of 1 is also what keeps h on its growing branch, which begins at -1.
    """

    family: Gaussian
    root: Array
    clip: float | None = 1.0
    absolute: bool = True

    @property
    def needs_diagonal(self) -> bool:  # type: ignore[override]
        return len(self.family.group.hub) < self.family.dim

    def advance(self, look: Look) -> GroupPrecision:
        group = self.family.group
        with _no_singular_root(), np.errstate(over="ignore", invalid="ignore"):
            m = look.rate * self._natural_gradient(look)
            largest = float(np.abs(m).max(initial=0.0))
            if self.clip is not None and largest > self.clip:
                m *= self.clip / largest
            return replace(self, root=finite("the root of the precision", group._product_h(self.root, m)))

    def _natural_gradient(self, look: Look) -> Array:
        """C (.) kappa(X - I), with the sign of the form."""
        group = self.family.group
        diagonal = look.diagonal if self.needs_diagonal else None
        if diagonal is not None:
            diagonal = diagonal + look.damping
        precision = self.family.form == "precision"
        rows, local_diagonal = local_hessian(group, self.root, _damped(look), diagonal, precision=precision)
        if self.absolute:
            rows, local_diagonal = absolute(rows, local_diagonal, group.hub)
        m = group._project_columns(np.ascontiguousarray(rows.T), local_diagonal)
        return -self.family._sign * (m - 0.5 * group._local_identity())

    def solve(self, vector: Array) -> Array:
        with _no_singular_root():
            local = self.family._pull(self.root, vector[None])
            solution: Array = self.family._outward(self.root, local)[0]
            return solution


def group_precision(group: Group, form: Form, scale: float, clip: float | None, absolute: bool) -> GroupPrecision:
    """The beginning S = scale I."""
    family = Gaussian(group, form=form)
    size = scale**0.5 if form == "precision" else scale**-0.5
    return GroupPrecision(family, group._scale(group._identity(), size), clip, absolute)


def _damped(look: Look) -> Callable[[Array], Array]:
    if look.damping == 0.0:
        return look.products
    return lambda rows: look.products(rows) + look.damping * rows


@contextmanager
def _no_singular_root() -> Iterator[None]:
    """A root that has lost its inverse ends the iteration."""
    try:
        yield
    except (SingularElementError, np.linalg.LinAlgError) as error:
        raise Breakdown("singular", f"the precision is singular to rounding: {error}") from error
