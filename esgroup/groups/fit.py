"""The generic fit of a group element to a covariance, for groups without a closed form."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from esgroup.checks import Array

if TYPE_CHECKING:
    from esgroup.groups.base import Group


def fit_covariance(group: Group, covariance: Array, *, tolerance: float = 1e-12, max_iters: int = 5_000) -> Array:
    """A <- A h(beta C (.) kappa(A^-1 Sigma A^-T - I)) until the natural gradient is below `tolerance`.

    This is natural-gradient descent on L(A) = tr(A^-1 Sigma A^-T) / 2 + log|det A|, which is
    KL(N(0, Sigma) || N(0, A A^T)) up to a constant. beta is halved until L falls and grows again after a success.
    """
    volume = np.exp(np.linalg.slogdet(covariance)[1] / (2 * group.dim))
    a = group._scale(group._identity(), volume)  # the right volume to begin with
    gradient, loss = _gradient(group, a, covariance)
    beta = 1.0
    for _ in range(max_iters):
        steepness = np.abs(gradient).max()
        if steepness <= tolerance:
            break
        noise = 1e-13 * (abs(loss) + group.dim)
        while beta > 1e-10:
            trial = group._product_h(a, beta * gradient)
            trial_gradient, trial_loss = _gradient(group, trial, covariance)
            # where L is flat to rounding the gradient still tells the way
            flatter = abs(trial_loss - loss) <= noise and np.abs(trial_gradient).max() < steepness
            if trial_loss < loss - noise or flatter:
                break
            beta /= 2
        else:
            break
        a, gradient, loss = trial, trial_gradient, trial_loss
        beta = min(1.0, 2 * beta)
    return a


def _gradient(group: Group, a: Array, covariance: Array) -> tuple[Array, float]:
    """C (.) kappa(A^-1 Sigma A^-T - I) and L(A)."""
    half = group._solve(a, covariance)  # rows A^-1 sigma_i: this is Sigma A^-T
    whitened = group._solve(a, np.ascontiguousarray(half.T))
    whitened = (whitened + whitened.T) / 2
    diagonal = np.diagonal(whitened).copy()
    gradient = group._project_columns(np.ascontiguousarray(whitened[:, group.hub]), diagonal)
    gradient -= 0.5 * group._local_identity()  # C (.) kappa(I) is I/2 in every group
    return gradient, 0.5 * float(diagonal.sum()) + group._log_abs_det(a)
