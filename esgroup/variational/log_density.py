"""The logarithm of a mixture's density with its derivatives, at many points at once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from esgroup.checks import Array
from esgroup.distributions.base import State
from esgroup.distributions.gaussian import Gaussian
from esgroup.distributions.mixture import Mixture, MixtureState
from esgroup.variational.target import Places

# A component with a smaller responsibility at a point is left out there: far below rounding, whatever its curvature.
# In many dimensions components hardly overlap, and this leaves one or two of them at a point.
NEGLIGIBLE = 1e-40


@dataclass(frozen=True, eq=False)
class LogDensity:
    """log q at the rows of x, with r_k the responsibilities, P_k = Sigma_k^-1 and s_k = -P_k (x - mean_k):

    gradient  s = sum_k r_k s_k,    Hessian  sum_k r_k (s_k s_k^T - P_k) - s s^T.
    """

    mixture: Mixture
    state: MixtureState
    x: Array

    @cached_property
    def _members(self) -> list[tuple[Gaussian, State]]:
        return list(zip(self.mixture.components, self.mixture.component_states(self.state), strict=True))

    @cached_property
    def _whitened(self) -> list[Array]:
        """z_k, the points in the local coordinates of every component."""
        return [gaussian.local(own, self.x) for gaussian, own in self._members]

    @cached_property
    def _logs(self) -> Array:
        """log(pi_k N_k(x)), (n, K)."""
        constant = 0.5 * self.mixture.dim * np.log(2 * np.pi)
        heights = [constant + gaussian._half_log_det(own.root) for gaussian, own in self._members]
        squares = np.stack([np.vecdot(z, z) for z in self._whitened], axis=1)
        logs: Array = -0.5 * squares - heights + self.state.log_weights
        return logs

    @cached_property
    def _values(self) -> Array:
        total: Array = np.logaddexp.reduce(self._logs, axis=1)
        return total

    @cached_property
    def shares(self) -> Array:
        """r_k(x), (n, K)."""
        return np.exp(self._logs - self._values[:, None])

    @cached_property
    def _near(self) -> list[Places]:
        """For every component the points where it counts."""
        return [np.flatnonzero(column > NEGLIGIBLE) for column in self.shares.T]

    @cached_property
    def _pulls(self) -> list[Array]:
        """s_k at the points where component k counts."""
        triples = zip(self._members, self._near, self._whitened, strict=True)
        return [-_back(gaussian, own, z[near]) for (gaussian, own), near, z in triples]

    @cached_property
    def _gradients(self) -> Array:
        total = np.zeros(self.x.shape)
        for k, (near, pulls) in enumerate(zip(self._near, self._pulls, strict=True)):
            total[near] += self.shares[near, k, None] * pulls
        return total

    # ---- by the numbers of the points -------------------------------------------------------------------------------

    def values(self, places: Places) -> Array:
        """log q, (n,)."""
        return self._values[places]

    def gradients(self, places: Places) -> Array:
        """d log q / dx as rows."""
        return self._gradients[places]

    def products(self, places: Places, v: Array) -> Array:
        """Rows H(x_place) v_i."""
        slopes = self._gradients[places]
        total: Array = -np.vecdot(slopes, v)[:, None] * slopes
        for k, (gaussian, own) in enumerate(self._members):
            here = np.flatnonzero(self.shares[places, k] > NEGLIGIBLE)
            if len(here) == 0:
                continue
            pulls = self._pulls[k][np.searchsorted(self._near[k], places[here])]
            bent = np.vecdot(pulls, v[here])[:, None] * pulls - precision_rows(gaussian, own, v[here])
            total[here] += self.shares[places[here], k, None] * bent
        return total

    def diagonals(self, places: Places) -> Array:
        """The diagonals of the Hessians as rows."""
        total: Array = -(self._gradients**2)
        for k, (gaussian, own) in enumerate(self._members):
            near = self._near[k]
            if len(near):
                bent = self._pulls[k] ** 2 - precision_diagonal(gaussian, own)
                total[near] += self.shares[near, k, None] * bent
        rows: Array = total[places]
        return rows

    def hessians(self, places: Places) -> Array:
        """The Hessians, (n, dim, dim)."""
        dim = self.mixture.dim
        rows = self.products(np.repeat(places, dim), np.tile(np.eye(dim), (len(places), 1)))
        return rows.reshape(len(places), dim, dim)


def precision_rows(gaussian: Gaussian, state: State, rows: Array) -> Array:
    """Rows Sigma^-1 v_i."""
    return _back(gaussian, state, gaussian._whiten(state.root, np.ascontiguousarray(rows)))


def _back(gaussian: Gaussian, state: State, z: Array) -> Array:
    """Rows A^-T z_i or B z_i."""
    group = gaussian.group
    return (group._solve_transposed if gaussian.form == "covariance" else group._apply)(state.root, z)


def precision_diagonal(gaussian: Gaussian, state: State) -> Array:
    """The diagonal of Sigma^-1 = A^-T A^-1 or B B^T."""
    group = gaussian.group
    if gaussian.form == "precision":
        return group._squared_row_norms(state.root)
    return group._squared_column_norms(group._inverse(state.root))


def variances(gaussian: Gaussian, state: State) -> Array:
    """The diagonal of Sigma = A A^T or B^-T B^-1."""
    group = gaussian.group
    if gaussian.form == "covariance":
        return group._squared_row_norms(state.root)
    return group._squared_column_norms(group._inverse(state.root))
