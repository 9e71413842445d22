"""Loops of the block triangular and Heisenberg groups.

Both are, after a reordering of blocks, [[F, 0, 0], [P, D, 0], [X, Q, L]] with a diagonal D of `mid` entries and small
blocks F (`k` x `k`) and L (`q` x `q`). Packed: F, P^T, D, Q, X, L, each row by row, so that the long rows of P^T and Q
are contiguous. `f`, `c`, `l` are the first coordinates of the three blocks. Every loop walks over the long dimension
in strips that stay in the first cache, with the samples inside.
"""
# mypy: disable-error-code="no-untyped-def"

from esgroup.kernels.jit import kernel

STRIP = 512  # of 8 bytes: 4 kB a row, a strip of nine rows and two samples fits in 48 kB


@kernel("in1, in2, in1, int, int, int, int, int, int, out2")
def affine(a, x, offset, k, mid, q, f, c, l, out):
    """out_i = A x_i + offset; the offset comes last, so that a large one does not swallow the small terms."""
    n = x.shape[0]
    at_p, at_d = k * k, k * k + k * mid
    at_q = at_d + mid
    at_x = at_q + q * mid
    at_l = at_x + q * k
    for i in range(n):
        for r in range(k):
            total = 0.0
            for s in range(k):
                total += a[r * k + s] * x[i, f + s]
            out[i, f + r] = total + offset[f + r]
        for r in range(q):
            total = 0.0
            for s in range(k):
                total += a[at_x + r * k + s] * x[i, f + s]
            for s in range(q):
                total += a[at_l + r * q + s] * x[i, l + s]
            out[i, l + r] = total
    for start in range(0, mid, STRIP):
        width = min(STRIP, mid - start)
        diagonal = a[at_d + start : at_d + start + width]
        base = offset[c + start : c + start + width]
        for i in range(n):
            xs = x[i, c + start : c + start + width]
            ys = out[i, c + start : c + start + width]
            for j in range(width):
                ys[j] = diagonal[j] * xs[j]
            for s in range(k):
                factor = x[i, f + s]
                row = a[at_p + s * mid + start : at_p + s * mid + start + width]
                for j in range(width):
                    ys[j] += factor * row[j]
            for j in range(width):
                ys[j] += base[j]
            for r in range(q):
                row = a[at_q + r * mid + start : at_q + r * mid + start + width]
                total = 0.0
                for j in range(width):
                    total += row[j] * xs[j]
                out[i, l + r] += total
    for i in range(n):
        for r in range(q):
            out[i, l + r] += offset[l + r]


@kernel("in1, in2, int, int, int, int, int, int, out2")
def eliminate(a, x, k, mid, q, f, c, l, out):
    """Middle part of A out_i = x_i, given the first block of out; leaves x - X y_f - Q y_c in the last block of out."""
    n = x.shape[0]
    at_p, at_d = k * k, k * k + k * mid
    at_q = at_d + mid
    at_x = at_q + q * mid
    for i in range(n):
        for r in range(q):
            total = x[i, l + r]
            for s in range(k):
                total -= a[at_x + r * k + s] * out[i, f + s]
            out[i, l + r] = total
    for start in range(0, mid, STRIP):
        width = min(STRIP, mid - start)
        diagonal = a[at_d + start : at_d + start + width]
        for i in range(n):
            xs = x[i, c + start : c + start + width]
            ys = out[i, c + start : c + start + width]
            for j in range(width):
                ys[j] = xs[j]
            for s in range(k):
                factor = out[i, f + s]
                row = a[at_p + s * mid + start : at_p + s * mid + start + width]
                for j in range(width):
                    ys[j] -= factor * row[j]
            for j in range(width):
                ys[j] /= diagonal[j]
            for r in range(q):
                row = a[at_q + r * mid + start : at_q + r * mid + start + width]
                total = 0.0
                for j in range(width):
                    total += row[j] * ys[j]
                out[i, l + r] -= total


@kernel("in2, in2, in1, float, int, int, int, int, int, int, out1")
def project(left, right, weights, shift, k, mid, q, f, c, l, out):
    """out = C (.) kappa(sum_i weights_i left_i right_i^T - shift I); C is 1/2 on F, D, L and 1 on P, Q, X."""
    n = left.shape[0]
    at_p, at_d = k * k, k * k + k * mid
    at_q = at_d + mid
    at_x = at_q + q * mid
    at_l = at_x + q * k
    for j in range(out.shape[0]):
        out[j] = 0.0
    for i in range(n):
        w = weights[i]
        for r in range(k):
            for s in range(k):
                out[r * k + s] += 0.5 * w * left[i, f + r] * right[i, f + s]
        for r in range(q):
            for s in range(k):
                out[at_x + r * k + s] += w * left[i, l + r] * right[i, f + s]
            for s in range(q):
                out[at_l + r * q + s] += 0.5 * w * left[i, l + r] * right[i, l + s]
    for r in range(k):
        out[r * k + r] -= 0.5 * shift
    for r in range(q):
        out[at_l + r * q + r] -= 0.5 * shift
    for start in range(0, mid, STRIP):
        width = min(STRIP, mid - start)
        diagonal = out[at_d + start : at_d + start + width]
        for j in range(width):
            diagonal[j] = -0.5 * shift
        for i in range(n):
            w = weights[i]
            half = 0.5 * w
            xs = left[i, c + start : c + start + width]
            ys = right[i, c + start : c + start + width]
            for j in range(width):
                diagonal[j] += half * xs[j] * ys[j]
            for s in range(k):
                factor = w * left[i, f + s]
                row = out[at_p + s * mid + start : at_p + s * mid + start + width]
                for j in range(width):
                    row[j] += factor * ys[j]
            for r in range(q):
                factor = w * left[i, l + r]
                row = out[at_q + r * mid + start : at_q + r * mid + start + width]
                for j in range(width):
                    row[j] += factor * ys[j]
