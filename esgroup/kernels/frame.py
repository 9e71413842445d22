"""Loops of a frame: rows stretched along its axes, and the step of D."""
# mypy: disable-error-code="no-untyped-def"

import numpy as np

from esgroup.kernels.decoding import move_by_trend
from esgroup.kernels.jit import kernel


@kernel("in2, in2, in2, float, out2")
def stretch(x, by, u, bulk, out):
    """out_i = bulk (x_i + sum_j by_ij u_j), in blocks of columns that stay in the cache; out may be x."""
    n, dim = x.shape
    k = len(u)
    for begin in range(0, dim, 512):
        end = min(dim, begin + 512)
        for i in range(n):
            out_i, x_i = out[i], x[i]
            for c in range(begin, end):
                out_i[c] = bulk * x_i[c]
            for j in range(k):
                factor, u_j = bulk * by[i, j], u[j]
                for c in range(begin, end):
                    out_i[c] += factor * u_j[c]


@kernel("in2, in1, in2, in2, in1, float, float, out1, out1")
def decode(z, weights, u, mixed, fisher, pull, least, trend, scale):
    """The step of D, e_c = (sum_i w_i v_ic y_ic - pull) / fisher_c between -1 and 1, as far as its trend says.

    With y_i = A z_i and v_i = A^-T z_i the sum is sum_i w_i z_ic^2 + sum_j u_jc mixed_jc (`FrameEvolution`).
    """
    n, dim = z.shape
    k = len(u)
    steps = np.zeros(dim)
    for i in range(n):
        w, z_i = weights[i], z[i]
        for c in range(dim):
            steps[c] += w * z_i[c] * z_i[c]
    for j in range(k):
        u_j, mixed_j = u[j], mixed[j]
        for c in range(dim):
            steps[c] += u_j[c] * mixed_j[c]
    for c in range(dim):
        steps[c] = min(1.0, max(-1.0, (steps[c] - pull) / fisher[c]))
    move_by_trend(steps, least, trend, scale)
