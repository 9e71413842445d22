"""Kernels of the diagonal group."""

from esgroup.kernels.jit import kernel


@kernel("in1, in2, in1, out2")
def affine(a, x, offset, out):  # type: ignore[no-untyped-def]
    """out_i = a x_i + offset."""
    for i in range(x.shape[0]):
        source, target = x[i], out[i]
        for j in range(a.shape[0]):
            target[j] = a[j] * source[j] + offset[j]


@kernel("in2, in2, in1, float, out1")
def project(left, right, weights, shift, out):  # type: ignore[no-untyped-def]
    """out_j = (sum_i weights_i left_ij right_ij - shift) / 2, in strips that fit in the first-level cache."""
    n, dim = left.shape
    strip = 1024
    for start in range(0, dim, strip):
        stop = min(start + strip, dim)
        total = out[start:stop]
        for j in range(stop - start):
            total[j] = -0.5 * shift
        for i in range(n):
            w = 0.5 * weights[i]
            x, y = left[i, start:stop], right[i, start:stop]
            for j in range(stop - start):
                total[j] += w * x[j] * y[j]
