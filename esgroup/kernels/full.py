"""Loops of the full group, for dimensions so small that a call of BLAS costs more than its work."""
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
