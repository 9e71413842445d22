"""Loops of diagonal decoding: the steps of D, by themselves and together with those of a small dense root."""
# mypy: disable-error-code="no-untyped-def"

import numpy as np

from esgroup.kernels.jit import kernel


@kernel("in1, float, out1, out1")
def move_by_trend(steps, least, trend, scale):
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
    share = min(1.0, max(least, 0.5 * (ratio - 1.0 - np.sqrt(2.0 / dim))))
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
    move_by_trend(steps, least, trend, scale)


@kernel("in2, in2, in1, float, float, float, float, float, out1, out1, out1, out1, out1")
def decode_and_step(z, y, weights, shift, ratio_mu, ratio_1, pull, least, fisher, trend, scale, inverse, out):
    """The steps of D, A^-1 and A (`out`) in one pass over small matrices, in place.

    `fisher` receives F_j sqrt(max F / 2) with F_j = 1 + (A A^T)_jj (A A^T)^-1_jj. With V = Z A^-1, D moves as in
    `decode`. A becomes A h(M) = alpha A + Y^T K Z with K = (1/2 - s/4) W + W G W / 8, G = Z Z^T, and A^-1 becomes
    h(M)^-1 A^-1 = (A^-1 - Z^T S V) / alpha with S = (alpha I + K G)^-1 K (Woodbury).
    """
    n, dim = z.shape
    largest = 0.0
    for c in range(dim):
        row, column = 0.0, 0.0
        for r in range(dim):
            row += out[c * dim + r] * out[c * dim + r]
            column += inverse[r * dim + c] * inverse[r * dim + c]
        fisher[c] = 1.0 + row * column
        largest = max(largest, fisher[c])
    for c in range(dim):
        fisher[c] *= np.sqrt(largest / 2.0)
    v = np.zeros((n, dim))
    for i in range(n):
        for r in range(dim):
            factor = z[i, r]
            for c in range(dim):
                v[i, c] += factor * inverse[r * dim + c]
    steps = np.empty(dim)
    for c in range(dim):
        gradient = -pull
        for i in range(n):
            gradient += weights[i] * (ratio_1 if i == n - 1 else ratio_mu) * v[i, c] * y[i, c]
        steps[c] = min(1.0, max(-1.0, gradient / fisher[c]))
    move_by_trend(steps, least, trend, scale)
    gram, core = np.empty((n, n)), np.empty((n, n))
    for i in range(n):
        for j in range(i + 1):
            total = 0.0
            for c in range(dim):
                total += z[i, c] * z[j, c]
            gram[i, j] = total
            gram[j, i] = total
            core[i, j] = 0.125 * weights[i] * weights[j] * total
            core[j, i] = core[i, j]
        core[i, i] += (0.5 - 0.25 * shift) * weights[i]
    keep = 1.0 - 0.5 * shift + 0.125 * shift * shift
    kz, kv = np.zeros((n, dim)), np.zeros((n, dim))
    left = np.zeros((n, n))
    for i in range(n):
        left[i, i] = keep
        for j in range(n):
            factor = core[i, j]
            for c in range(dim):
                kz[i, c] += factor * z[j, c]
                kv[i, c] += factor * v[j, c]
            for c in range(n):
                left[i, c] += factor * gram[j, c]
    # left is (alpha I + K G), whose eigenvalues are those of h(M) or alpha: it is invertible; rows are exchanged for
    # accuracy only
    for i in range(n):
        p = i
        for j in range(i + 1, n):
            if abs(left[j, i]) > abs(left[p, i]):
                p = j
        if p != i:
            for c in range(n):
                left[i, c], left[p, c] = left[p, c], left[i, c]
            for c in range(dim):
                kv[i, c], kv[p, c] = kv[p, c], kv[i, c]
        for j in range(i + 1, n):
            factor = left[j, i] / left[i, i]
            for c in range(i + 1, n):
                left[j, c] -= factor * left[i, c]
            for c in range(dim):
                kv[j, c] -= factor * kv[i, c]
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            factor = left[i, j]
            for c in range(dim):
                kv[i, c] -= factor * kv[j, c]
        factor = 1.0 / left[i, i]
        for c in range(dim):
            kv[i, c] *= factor
    for r in range(dim):
        row, inverse_row = out[r * dim : (r + 1) * dim], inverse[r * dim : (r + 1) * dim]
        for c in range(dim):
            row[c] *= keep
        for i in range(n):
            up, down = y[i, r], z[i, r]
            for c in range(dim):
                row[c] += up * kz[i, c]
                inverse_row[c] -= down * kv[i, c]
        for c in range(dim):
            inverse_row[c] /= keep
