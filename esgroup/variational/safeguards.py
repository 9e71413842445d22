"""Steps are kept within the range in which the local maps and the quadratic picture behind them hold."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from esgroup.checks import Array
from esgroup.distributions.mixture import Mixture, MixtureStep
from esgroup.groups import Group

Act = Callable[[Array], Array]

WIDEST = 2.0**100  # so that doubling never overflows
POWERS = 8  # steps of the power method: the norm to a few per cent, from below


def clipped(step: MixtureStep, mixture: Mixture, rate: float, reach: Array) -> MixtureStep:
    """The step u, shortened component by component where it is too long at this rate, means and roots on their own.

    |rate M| is at most 1, below which h(-M) = I - M + M^2/2 turns up again, and at most sqrt(2 rate); the lengths of
    rate delta and of rate M by Fisher's matrix are at most sqrt(rate dim / 4): at rate 1/2 that of the entropy alone,
    M = -I/2. With the square root of the rate a smaller rate still means shorter steps, however large the noise, and
    yet the share of steps that are shortened vanishes with it. Means may go `reach` (K,) times as far: see `wider`.
    """
    longest, ms = _longest(mixture, rate), step.ms.copy()
    for k, gaussian in enumerate(mixture.components):
        part = mixture._part(ms, k)  # a view
        part /= max(1.0, _size(gaussian.group, part) / min(1 / rate, math.sqrt(2 / rate)))
        part /= max(1.0, math.sqrt(2 * gaussian.group._squared_local_norm(part)) / longest)
    deltas = step.deltas / np.maximum(1.0, np.linalg.norm(step.deltas, axis=1) / (reach * longest))[:, None]
    logits = step.logits / max(1.0, math.sqrt(rate) * np.abs(step.logits).max(initial=0.0))
    return MixtureStep(deltas, ms, logits)


def wider(reach: Array, mixture: Mixture, rate: float, deltas: Array) -> Array:
    """How far means may go in the next window, given the mean delta of each component in this one.

    Twice as far where the steps agreed and were about as long as they may be: a component that has become narrow far
    from its place would crawl otherwise. Else as far as in the beginning.
    """
    lengths: Array = np.linalg.norm(deltas, axis=1)
    return np.where(lengths > reach * _longest(mixture, rate) / 2, np.minimum(2 * reach, WIDEST), 1.0)


def _longest(mixture: Mixture, rate: float) -> float:
    return math.sqrt(mixture.dim / (4 * rate))


def _size(group: Group, m: Array) -> float:
    """|M|_2, or |M|_F, which is not smaller, where that is at most 1 already."""
    frobenius = math.sqrt(group._squared_local_norm(m))
    return frobenius if frobenius <= 1 else min(frobenius, spectral_norm(group, m))


def spectral_norm(group: Group, m: Array) -> float:
    """|M|_2 of a local vector, by the power method on M^T M."""
    rows = np.random.default_rng(0).standard_normal((3, group.dim))
    # local vectors are packed as elements are, but for sums of Kronecker products
    if np.array_equal(group._local_identity(), group._identity()):
        return _power_method(lambda v: group._apply(m, v), lambda v: group._apply_transposed(m, v), rows)
    dense = group._dense_local(m)
    return _power_method(lambda v: v @ dense.T, lambda v: v @ dense, rows)


def _power_method(forward: Act, backward: Act, rows: Array) -> float:
    size = 0.0
    for _ in range(POWERS):
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        image = forward(rows / np.maximum(lengths, 1e-300))
        size = float(np.linalg.norm(image, axis=1).max())
        rows = backward(image)
    return size
