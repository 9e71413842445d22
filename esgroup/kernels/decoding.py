"""Kernels of diagonal decoding: the steps of D."""
# mypy: disable-error-code="no-untyped-def"

import numpy as np

from esgroup.kernels.jit import kernel


@kernel("in1, float, float, out1, out1", inlined=True)
def move_by_trend(steps, slope, least, trend, scale):
    """scale_c <- scale_c exp(g steps_c), where g follows the signal in the steps so far (formulas: `Decoding`).

    `trend` holds the running mean of the steps, then that of their squared length, q and s.
    """
    dim = len(steps)
    rate, signal, square = 0.5 / dim, 0.0, 0.0
    for c in range(dim):
        trend[c] += rate * (steps[c] - trend[c])
        signal += trend[c] * trend[c]
        square += steps[c] * steps[c]
    trend[dim] += rate * (square - trend[dim])
    trend[dim + 1] = (1.0 - rate) * (1.0 - rate) * trend[dim + 1] + rate * rate
    trend[dim + 2] += rate * (1.0 - trend[dim + 2])
    noise = trend[dim + 1] * trend[dim] / trend[dim + 2]
    ratio = signal / noise if noise > 0.0 else 0.0
    share = min(1.0, max(least, slope * (ratio - 1.0 - np.sqrt(2.0 / dim))))
    for c in range(dim):
        scale[c] *= np.exp(share * steps[c])


@kernel("in2, in2, in1, in1, float, float, float, float, out1, out1")
def decode(v, y, weights, fisher, ratio_mu, ratio_1, pull, least, trend, scale):
    """The step of D, e_c = (sum_i w_i v_ic y_ic - pull) / fisher_c between -1 and 1, as far as its trend says.

    w_i = ratio_mu weights_i for samples and ratio_1 weights_n for the path, the last row.
    """
    n, dim = v.shape
    steps = np.zeros(dim)
    for i in range(n):
        w = weights[i] * (ratio_1 if i == n - 1 else ratio_mu)
        for c in range(dim):
            steps[c] += w * v[i, c] * y[i, c]
    for c in range(dim):
        steps[c] = min(1.0, max(-1.0, (steps[c] - pull) / fisher[c]))
    move_by_trend(steps, 0.5, least, trend, scale)
