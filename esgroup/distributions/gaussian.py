"""Gaussians with structure: natural gradients in local coordinates, and the moves along them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from esgroup import checks
from esgroup.checks import Array
from esgroup.distributions.base import Samples, State, Step
from esgroup.distributions.curvature import local_curvature
from esgroup.distributions.gaussian_family import GaussianFamily

Map = Literal["h", "exp", "linear"]


@dataclass(frozen=True, eq=False)
class Gaussian(GaussianFamily):
    """N(mean, Sigma) with Sigma = A A^T (covariance form) or Sigma^-1 = B B^T (precision form), A or B in a group.

    A sample is mean + A z or mean + B^-T z with z ~ N(0, I). The local map at the current parameters is
    mean + A delta, A h(M) (paper, eqs. gauss_ex_map and gauss_xnes_prec); its Fisher matrix at 0 is the identity for
    delta and <M + M^T, M' + M'^T> / 2 for M, whatever the group and the form.

    `structure` is a group or its spelling; mean and covariance (or the standard deviation sigma0) are where `state()`
    begins and may be left out until then. The object itself never changes.
    """

    def natural_score(self, z: Any, weights: Any) -> Step:
        """Natural gradient of sum_i weights_i log q(x_i): delta = sum w z, M = +-C (.) kappa(sum w (z z^T - I)).

        The sign of M is + in covariance form and - in precision form.
        """
        z = checks.real_array("z", z, (None, self.dim))
        weights = checks.real_array("weights", weights, (len(z),))
        m = self.group._project(z, z, self._sign * weights, self._sign * float(weights.sum()))
        return Step(weights @ z, m)

    @cached_property
    def _sign(self) -> float:
        return 1.0 if self.form == "covariance" else -1.0

    def natural_gradient(self, state: State, g_mean: Any, g_covariance: Any) -> Step:
        """From dL/dmean and dL/dSigma: delta = A^T g, M = C (.) kappa(2 A^T g_Sigma A).

        In precision form delta = B^-1 g, M = -C (.) kappa(2 B^-1 g_Sigma B^-T) (paper, section 4). The gradient of
        L, so that `move(state, step.scaled(-rate))` descends.
        """
        state = self._checked(state)
        g_mean = checks.real_array("g_mean", g_mean, (self.dim,))
        g_covariance = checks.symmetric("g_covariance", g_covariance, self.dim)
        half = np.ascontiguousarray(self._pull(state.root, g_covariance).T)
        m = self.group.project_dense(_symmetrised(2 * self._sign * self._pull(state.root, half)))
        return Step(self._pull(state.root, g_mean[None])[0], m)

    def natural_gradient_hvp(
        self,
        state: State,
        g_mean: Any,
        hvp: Callable[[Array], Any],
        hessian_diagonal: Any = None,
        *,
        entropy_weight: float = 0.0,
    ) -> Step:
        """The same for g_Sigma = H/2 (Stein) - entropy_weight Sigma^-1 / 2, from products with H only.

        `hvp` maps rows v_i to rows H v_i; it is called once, with as many rows as the group's hub has coordinates
        (k for BlockTriangular(k), k1 + k2 for Heisenberg). The diagonal of H is needed unless the hub is everything.
        """
        state = self._checked(state)
        g_mean = checks.real_array("g_mean", g_mean, (self.dim,))
        if hessian_diagonal is not None:
            hessian_diagonal = checks.real_array("hessian_diagonal", hessian_diagonal, (self.dim,))
        m = local_curvature(self.group, state.root, hvp, hessian_diagonal, precision=self.form == "precision")
        m -= 0.5 * checks.real_number("entropy_weight", entropy_weight) * self.group._local_identity()
        return Step(self._pull(state.root, g_mean[None])[0], self._sign * m)

    # ---- moves --------------------------------------------------------------------------------------------------

    def move(self, state: State, step: Step, map: Map = "h") -> State:
        """mean + A delta and A h(M), A Exp(M), or A (I + M) for map = "h", "exp", "linear".

        "linear" is standard natural-gradient descent in the global parameter A itself, which is the special case
        theta = theta_t + eta of the local maps (factor by factor for Kronecker groups); it may make A singular, h and
        Exp cannot.
        """
        state, group = self._checked(state), self.group
        checks.instance("step", step, Step)
        delta = checks.real_array("step.delta", step.delta, (self.dim,))
        m = checks.real_array("step.m", step.m, (group.size,))
        if map == "h":
            root = group._product_h(state.root, m)
        elif map == "exp":
            root = group._product(state.root, group._exp(m))
        elif map == "linear":
            root = group._product(state.root, group._identity() + m)
        else:
            raise ValueError(f"map must be 'h', 'exp' or 'linear', got {map!r}")
        return State(state.mean + self._outward(state.root, delta[None])[0], root)

    def move_samples(
        self,
        state: State,
        samples: Samples,
        weights: Any,
        mean_rate: float = 1.0,
        root_rate: float = 1.0,
        *,
        out: State | None = None,
    ) -> State:
        """move(state, natural_score(samples.z, weights).scaled(mean_rate, root_rate)) in one fused call.

        `out` is a state whose arrays may be overwritten, `state` itself for a move in place. A move in place along
        samples with images trusts the root, which `sample` has checked.
        """
        checks.instance("samples", samples, Samples)
        group, in_place = self.group, out is state
        state = self._checked(state, finite=not in_place or samples.images is None)
        z = checks.real_array("samples.z", samples.z, (len(samples.z), self.dim), finite=False)
        weights = checks.real_array("weights", weights, (len(z),))
        mean_rate = checks.real_number("mean_rate", mean_rate)
        factor = self._sign * checks.real_number("root_rate", root_rate)
        if out is not None:
            self._check_lent(out, None if in_place else state)
        mean = self._mean_shift(state.root, z, samples.images, mean_rate * weights)
        mean += state.mean
        if not checks.all_finite(mean):  # as it is not if there is a NaN anywhere in z
            raise ValueError("samples and weights must give a finite mean: are they finite?")
        shift = factor * float(weights.sum())
        lent = None if out is None else out.root
        root = group._product_h_samples(state.root, z, factor * weights, shift, samples.images, lent)
        if out is None:
            return State(mean, root)
        out.mean[:] = mean
        return out

    def _check_lent(self, out: State, state: State | None) -> None:
        checks.instance("out", out, State)
        checks.writeable("out.mean", out.mean, (self.dim,))
        checks.writeable("out.root", out.root, (self.group.size,))
        if state is not None:
            checks.must_not_overlap("out.mean", out.mean, "state.mean", state.mean)
            checks.must_not_overlap("out.root", out.root, "state.root", state.root)

    def _mean_shift(self, root: Array, z: Array, images: Array | None, weights: Array) -> Array:
        if images is None:
            drift: Array = self._outward(root, (weights @ z)[None])[0]
            return drift
        drift = weights.dot(checks.real_array("samples.images", images, z.shape, finite=False))
        return drift


def _symmetrised(matrix: Array) -> Array:
    return (matrix + matrix.T) / 2
