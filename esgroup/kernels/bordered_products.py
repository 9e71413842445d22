"""Products of the block triangular and Heisenberg groups; the blocks and their packing are those of bordered.py."""
# mypy: disable-error-code="no-untyped-def"

import numpy as np

from esgroup.kernels.bordered import STRIP
from esgroup.kernels.jit import kernel


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
    """out = A h(M), with the blocks of h(M) only as long as a strip needs them; out may be a.

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
