"""Standard natural-gradient descent: the special case of local maps that are plain additions."""

from __future__ import annotations

from typing import Any

import numpy as np

from esgroup import checks
from esgroup.distributions.base import State
from esgroup.distributions.gaussian import Gaussian


def standard_ngd(family: Gaussian, state: State, g_mean: Any, g_covariance: Any, rate: float) -> State:
    """theta - rate F(theta)^-1 dL/dtheta in theta = (mean, Sigma), or in (mean, Sigma^-1) in precision form.

    That is mean - rate Sigma g and Sigma - 2 rate Sigma g_Sigma Sigma, or S + 2 rate g_Sigma: the local map
    theta_t + eta, with I + M + M^T in place of h(M) h(M)^T (paper, appendix "Standard NGD is a Special Case").
    It is defined for groups whose covariances are closed under addition, and leaves them for too large a rate.
    """
    group = family.group
    state = family._checked(state)
    step = family.natural_gradient(state, g_mean, g_covariance).scaled(-checks.real_number("rate", rate))
    m = group.dense_local(step.m)
    target = np.eye(group.dim) + m + m.T
    try:
        factor = group.from_covariance(target)
    except ValueError as error:
        raise ValueError(f"rate must be smaller than {rate}: the step left the positive-definite cone") from error
    reached = group.dense(factor)
    if np.abs(reached @ reached.T - target).max() > 1e-9 * np.abs(target).max():
        raise ValueError(f"structure {group} must have covariances that are closed under addition")
    mean = family.move(state, step._replace(m=0.0 * step.m)).mean
    return State(mean, group.product(state.root, factor))
