"""The generic fit of a group element to a covariance, for groups without a closed form."""

from __future__ import annotations

import warnings
from collections import deque
from typing import TYPE_CHECKING

import numpy as np

from esgroup.checks import Array

if TYPE_CHECKING:
    from esgroup.groups.hooks import Hooks

Pair = tuple[Array, Array]


def fit_covariance(group: Hooks, covariance: Array, *, tolerance: float = 1e-12, max_iters: int = 5_000) -> Array:
    """A <- A h(beta D) until the natural gradient C (.) kappa(A^-1 Sigma A^-T - I) is below `tolerance`.

    It minimizes L(A) = tr(A^-1 Sigma A^-T) / 2 + log|det A|, which is KL(N(0, Sigma) || N(0, A A^T)) up to a constant.
    D is the natural gradient, corrected by the curvature of the last steps (L-BFGS, Nocedal 1980). The local
    coordinates of two elements are compared without transport, since A h(M) is the same map at every A. beta is halved
    until L falls.
    """
    volume = np.exp(np.linalg.slogdet(covariance)[1] / (2 * group.dim))
    a = group._scale(group._identity(), volume)  # start with the right volume
    gradient, loss = _gradient(group, a, covariance)
    pairs: deque[Pair] = deque(maxlen=8)
    for _ in range(max_iters):
        steepness = np.abs(gradient).max()
        if steepness <= tolerance:
            return a
        direction = _two_loop(gradient, pairs)
        noise = 1e-13 * (abs(loss) + group.dim)
        beta = 1.0
        while beta > 1e-10:
            trial = group._product_h(a, beta * direction)
            trial_gradient, trial_loss = _gradient(group, trial, covariance)
            # if L is flat to rounding, the gradient still shows the direction
            flatter = abs(trial_loss - loss) <= noise and np.abs(trial_gradient).max() < steepness
            if trial_loss < loss - noise or flatter:
                break
            beta /= 2
        else:
            if not pairs:
                break
            pairs.clear()  # retry along the gradient itself
            continue
        step, fall = beta * direction, gradient - trial_gradient
        if step @ fall > 1e-10 * np.sqrt((step @ step) * (fall @ fall)):  # curvature that L-BFGS can use
            pairs.append((step, fall))
        a, gradient, loss = trial, trial_gradient, trial_loss
    if steepness > 1e-5:
        warnings.warn(f"the fit of {group} stopped at a gradient of {steepness:.1g}", RuntimeWarning, stacklevel=4)
    return a


def _gradient(group: Hooks, a: Array, covariance: Array) -> tuple[Array, float]:
    """C (.) kappa(A^-1 Sigma A^-T - I), the direction in which L falls, and L(A)."""
    half = group._solve(a, covariance)  # rows A^-1 sigma_i: this is Sigma A^-T
    whitened = group._solve(a, np.ascontiguousarray(half.T))
    whitened = (whitened + whitened.T) / 2
    gradient = group._project_dense(whitened)
    gradient -= 0.5 * group._local_identity()  # C (.) kappa(I) is I/2 in every group
    return gradient, 0.5 * float(np.diagonal(whitened).sum()) + group._log_abs_det(a)


def _two_loop(gradient: Array, pairs: deque[Pair]) -> Array:
    """The two-loop recursion of L-BFGS on pairs (step, fall of the gradient)."""
    direction = gradient.copy()
    shares = []
    for step, fall in reversed(pairs):
        shares.append(step @ direction / (step @ fall))
        direction -= shares[-1] * fall
    if pairs:
        step, fall = pairs[-1]
        direction *= (step @ fall) / (fall @ fall)
    for (step, fall), share in zip(pairs, reversed(shares), strict=True):
        direction += step * (share - fall @ direction / (step @ fall))
    return direction
