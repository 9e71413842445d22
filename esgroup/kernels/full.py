"""Loops of the full group, for dimensions so small that calling BLAS costs more than its work."""
# mypy: disable-error-code="no-untyped-def"

import numpy as np

from esgroup.kernels.jit import kernel


@kernel("in1, in2, in2, in1, float, out1")
def product_h_samples(a, z, y, weights, shift, out):
    """out = (1 - s/2 + s^2/8) A + Y^T K Z with K = (1/2 - s/4) W + W Z Z^T W / 8; out may be a."""
    n, dim = z.shape
    kz = np.zeros((n, dim))
    for i in range(n):
        for j in range(n):
            total = 0.0
            for c in range(dim):
                total += z[i, c] * z[j, c]
            factor = 0.125 * weights[i] * weights[j] * total
            if i == j:
                factor += (0.5 - 0.25 * shift) * weights[i]
            for c in range(dim):
                kz[i, c] += factor * z[j, c]
    keep = 1.0 - 0.5 * shift + 0.125 * shift * shift
    for r in range(dim):
        row = out[r * dim : (r + 1) * dim]
        for c in range(dim):
            row[c] = keep * a[r * dim + c]
        for i in range(n):
            factor = y[i, r]
            for c in range(dim):
                row[c] += factor * kz[i, c]


@kernel("in1, in2, in1, float, in1, out2, out2")
def place(a, z, mean, sigma, scale, y, x):
    """y_i = A z_i for all rows, x_i = mean + sigma scale (.) y_i for the rows of x; y may have more rows than x."""
    n, dim = z.shape
    for i in range(n):
        for r in range(dim):
            total = 0.0
            for c in range(dim):
                total += a[r * dim + c] * z[i, c]
            y[i, r] = total
    for i in range(x.shape[0]):
        for c in range(dim):
            x[i, c] = mean[c] + sigma * scale[c] * y[i, c]


@kernel("in2, in1, float, out2, out2")
def cores(z, weights, shift, up, down):
    """up = K = (1/2 - s/4) W + W G W / 8 and down = S = (alpha I + K G)^-1 K with G = Z Z^T, alpha = 1 - s/2 + s^2/8.

    alpha I + K G has the eigenvalues of h(M), or alpha; rows are exchanged for accuracy only.
    """
    n, dim = z.shape
    gram, left = np.empty((n, n)), np.zeros((n, n))
    for i in range(n):
        for j in range(i + 1):
            total = 0.0
            for c in range(dim):
                total += z[i, c] * z[j, c]
            gram[i, j] = total
            gram[j, i] = total
            up[i, j] = 0.125 * weights[i] * weights[j] * total
            up[j, i] = up[i, j]
        up[i, i] += (0.5 - 0.25 * shift) * weights[i]
    for i in range(n):
        left[i, i] = 1.0 - 0.5 * shift + 0.125 * shift * shift
        for j in range(n):
            down[i, j] = up[i, j]
            for c in range(n):
                left[i, c] += up[i, j] * gram[j, c]
    for i in range(n):
        p = i
        for j in range(i + 1, n):
            if abs(left[j, i]) > abs(left[p, i]):
                p = j
        if p != i:
            for c in range(n):
                left[i, c], left[p, c] = left[p, c], left[i, c]
                down[i, c], down[p, c] = down[p, c], down[i, c]
        for j in range(i + 1, n):
            factor = left[j, i] / left[i, i]
            for c in range(i + 1, n):
                left[j, c] -= factor * left[i, c]
            for c in range(n):
                down[j, c] -= factor * down[i, c]
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            factor = left[i, j]
            for c in range(n):
                down[i, c] -= factor * down[j, c]
        factor = 1.0 / left[i, i]
        for c in range(n):
            down[i, c] *= factor
