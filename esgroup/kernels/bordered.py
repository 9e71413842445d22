"""Kernels of the block triangular and Heisenberg groups.

Both are, after a reordering of blocks, [[F, 0, 0], [P, D, 0], [X, Q, L]] with a diagonal D of `mid` entries and small
blocks F (`k` x `k`) and L (`q` x `q`). Packed: F, P^T, D, Q, X, L, each row by row, so that the long rows of P^T and Q
are contiguous. `f`, `c`, `l` are the first coordinates of the three blocks. Every kernel runs over the long dimension
in strips that fit in the first-level cache, with the samples in an inner loop.
"""
# mypy: disable-error-code="no-untyped-def"

import numpy as np

from esgroup.kernels.jit import kernel

STRIP = 512  # numbers of 8 bytes: 4 kB per row, so that a strip of nine rows and two samples fits in 48 kB


@kernel("in1, in2, in1, int, int, int, int, int, int, out2")
def affine(a, x, offset, k, mid, q, f, c, l, out):
    """out_i = A x_i + offset; the offset is added last, so that a large one does not absorb the small terms."""
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
    out[:] = 0.0
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
        diagonal[:] = -0.5 * shift
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


# ---- products ---------------------------------------------------------------------------------------------------


@kernel("in1, in1, int, int, int, out1")
def product(a, b, k, mid, q, out):
    """out = A B: F F', P F' + D P', D D', Q D' + L Q', X F' + Q P' + L X', L L'."""
    at_p, at_d = k * k, k * k + k * mid
    at_q = at_d + mid
    at_x = at_q + q * mid
    at_l = at_x + q * k
    for r in range(k):
        for s in range(k):
            total = 0.0
            for t in range(k):
                total += a[r * k + t] * b[t * k + s]
            out[r * k + s] = total
    for r in range(q):
        for s in range(q):
            total = 0.0
            for t in range(q):
                total += a[at_l + r * q + t] * b[at_l + t * q + s]
            out[at_l + r * q + s] = total
        for s in range(k):
            total = 0.0
            for t in range(k):
                total += a[at_x + r * k + t] * b[t * k + s]
            for t in range(q):
                total += a[at_l + r * q + t] * b[at_x + t * k + s]
            out[at_x + r * k + s] = total
    for start in range(0, mid, STRIP):
        width = min(STRIP, mid - start)
        d_a = a[at_d + start : at_d + start + width]
        d_b = b[at_d + start : at_d + start + width]
        d_out = out[at_d + start : at_d + start + width]
        for j in range(width):
            d_out[j] = d_a[j] * d_b[j]
        for s in range(k):
            p_b = b[at_p + s * mid + start : at_p + s * mid + start + width]
            p_out = out[at_p + s * mid + start : at_p + s * mid + start + width]
            for j in range(width):
                p_out[j] = d_a[j] * p_b[j]
            for t in range(k):
                factor = b[t * k + s]
                p_a = a[at_p + t * mid + start : at_p + t * mid + start + width]
                for j in range(width):
                    p_out[j] += factor * p_a[j]
        for r in range(q):
            q_a = a[at_q + r * mid + start : at_q + r * mid + start + width]
            q_out = out[at_q + r * mid + start : at_q + r * mid + start + width]
            for j in range(width):
                q_out[j] = q_a[j] * d_b[j]
            for t in range(q):
                factor = a[at_l + r * q + t]
                q_b = b[at_q + t * mid + start : at_q + t * mid + start + width]
                for j in range(width):
                    q_out[j] += factor * q_b[j]
            for s in range(k):
                p_b = b[at_p + s * mid + start : at_p + s * mid + start + width]
                total = 0.0
                for j in range(width):
                    total += q_a[j] * p_b[j]
                out[at_x + r * k + s] += total


@kernel("in1, in1, int, int, int, out1")
def product_h(a, m, k, mid, q, out):
    """out = A h(M), with only one strip of the blocks of h(M) at a time; out may be a.

    h(M) has the blocks I + F + F^2/2, P + (P F + D P)/2, 1 + D + D^2/2, Q + (Q D + L Q)/2, X + (X F + Q P + L X)/2,
    I + L + L^2/2 of M; the product is that of `product`.
    """
    at_p, at_d = k * k, k * k + k * mid
    at_q = at_d + mid
    at_x = at_q + q * mid
    at_l = at_x + q * k
    f, x, l = a[:at_p].copy().reshape(k, k), a[at_x:at_l].copy().reshape(q, k), a[at_l:].copy().reshape(q, q)
    m_f, m_x, m_l = m[:at_p].reshape(k, k), m[at_x:at_l].reshape(q, k), m[at_l:].reshape(q, q)
    h_f, h_l = np.eye(k), np.eye(q)
    for r in range(k):
        for s in range(k):
            h_f[r, s] += m_f[r, s]
            for t in range(k):
                h_f[r, s] += 0.5 * m_f[r, t] * m_f[t, s]
    for r in range(q):
        for s in range(q):
            h_l[r, s] += m_l[r, s]
            for t in range(q):
                h_l[r, s] += 0.5 * m_l[r, t] * m_l[t, s]
    corner_m, corner = np.zeros((q, k)), np.zeros((q, k))  # Q P of M, and Q of A times P of h(M)
    h_p, h_q, new_p = np.empty((k, STRIP)), np.empty((q, STRIP)), np.empty((k, STRIP))
    for start in range(0, mid, STRIP):
        width = min(STRIP, mid - start)
        d, d_out = a[at_d + start : at_d + start + width], out[at_d + start : at_d + start + width]
        m_d = m[at_d + start : at_d + start + width]
        for s in range(k):
            target, own = h_p[s], m[at_p + s * mid + start : at_p + s * mid + start + width]
            for j in range(width):
                target[j] = (1.0 + 0.5 * m_d[j]) * own[j]
            for t in range(k):
                factor, row = 0.5 * m_f[t, s], m[at_p + t * mid + start : at_p + t * mid + start + width]
                for j in range(width):
                    target[j] += factor * row[j]
        for r in range(q):
            target, own = h_q[r], m[at_q + r * mid + start : at_q + r * mid + start + width]
            for j in range(width):
                target[j] = (1.0 + 0.5 * m_d[j]) * own[j]
            for t in range(q):
                factor, row = 0.5 * m_l[r, t], m[at_q + t * mid + start : at_q + t * mid + start + width]
                for j in range(width):
                    target[j] += factor * row[j]
        for r in range(q):
            own, row = a[at_q + r * mid + start : at_q + r * mid + start + width], m[at_q + r * mid + start :]
            for s in range(k):
                source, other = h_p[s], m[at_p + s * mid + start :]
                total, total_m = 0.0, 0.0
                for j in range(width):
                    total += own[j] * source[j]
                    total_m += row[j] * other[j]
                corner[r, s] += total
                corner_m[r, s] += total_m
        for s in range(k):
            target, source = new_p[s], h_p[s]
            for j in range(width):
                target[j] = d[j] * source[j]
            for t in range(k):
                factor, row = h_f[t, s], a[at_p + t * mid + start : at_p + t * mid + start + width]
                for j in range(width):
                    target[j] += factor * row[j]
        for s in range(k):
            target, source = out[at_p + s * mid + start : at_p + s * mid + start + width], new_p[s]
            for j in range(width):
                target[j] = source[j]
        for r in range(q):
            own = a[at_q + r * mid + start : at_q + r * mid + start + width]
            target = out[at_q + r * mid + start : at_q + r * mid + start + width]
            for j in range(width):
                target[j] = own[j] * (1.0 + m_d[j] * (1.0 + 0.5 * m_d[j]))
            for t in range(q):
                factor, source = l[r, t], h_q[t]
                for j in range(width):
                    target[j] += factor * source[j]
        for j in range(width):
            d_out[j] = d[j] * (1.0 + m_d[j] * (1.0 + 0.5 * m_d[j]))
    for r in range(k):
        for s in range(k):
            total = 0.0
            for t in range(k):
                total += f[r, t] * h_f[t, s]
            out[r * k + s] = total
    h_x = np.empty((q, k))
    for r in range(q):
        for s in range(k):
            total = corner_m[r, s]
            for t in range(k):
                total += m_x[r, t] * m_f[t, s]
            for t in range(q):
                total += m_l[r, t] * m_x[t, s]
            h_x[r, s] = m_x[r, s] + 0.5 * total
    for r in range(q):
        for s in range(k):
            total = corner[r, s]
            for t in range(k):
                total += x[r, t] * h_f[t, s]
            for t in range(q):
                total += l[r, t] * h_x[t, s]
            out[at_x + r * k + s] = total
        for s in range(q):
            total = 0.0
            for t in range(q):
                total += l[r, t] * h_l[t, s]
            out[at_l + r * q + s] = total
