"""Kernels of a frame: stretching, the step of its axes, a whole generation (formulas: groups and strategies)."""
# mypy: disable-error-code="no-untyped-def"

import numpy as np

from esgroup.kernels.decoding import move_by_trend
from esgroup.kernels.jit import kernel

ROUNDING = 1e-16  # of squared lengths, relative to the largest: a search ends long before ("condition")
NEGLIGIBLE = 1e-10  # squared lengths, relative to the largest, of directions whose rounding errors are too large


@kernel("in1, in2, out2")
def stretch(root, x, out):
    """out_i = b (x_i + sum_j (s_j - 1) (u_j^T x_i) u_j), in blocks of columns that stay in the cache; out may be x."""
    n, dim = x.shape
    k = (len(root) - 1) // (dim + 1)
    bulk, u = root[0], root[k + 1 :].reshape(k, dim)
    by = np.dot(x, u.T)
    by *= root[1 : k + 1] - 1.0
    for begin in range(0, dim, 2048):
        end = min(dim, begin + 2048)
        more = np.dot(by, np.ascontiguousarray(u[:, begin:end]))
        for i in range(n):
            for c in range(begin, end):
                out[i, c] = bulk * (x[i, c] + more[i, c - begin])


@kernel("in1, in2, in2, out1, out2, out2")
def turn(s, g, gram, lengths, on_u, on_c):
    """The step of a frame in k dimensions: lengths, and the directions on_u U + on_c C, after A h(M).

    s are the lengths of the axes, G (k, k) and C (k, dim) what M is made of (`Frame.moved`), gram = C C^T. With M = N
    among the axes, border rows B = T C and h(M) = I + M + M^2/2, the matrix A h(M) in the basis of the axes and the
    orthonormal rows W, B = R W, is

        [[diag(s) (I + N + N^2/2 + E/2), diag(s) R on short rows],    E = C_short C_long^T
         [R^T on long columns,           I]]

    of which the k axes are kept whose lengths are furthest from 1.
    """
    k = len(s)
    is_long = s >= 1.0
    n_, t = np.zeros((k, k)), np.eye(k)
    for i in range(k):
        for j in range(k):
            if is_long[i] == is_long[j]:
                n_[i, j] = 0.5 * g[i, j]
                t[i, j] += 0.25 * g[i, j]
            elif is_long[j]:
                n_[i, j] = g[i, j]
    inner = np.dot(n_, n_)
    for i in range(k):
        for j in range(k):
            mixed = gram[i, j] if is_long[j] and not is_long[i] else 0.0
            inner[i, j] = n_[i, j] + 0.5 * (inner[i, j] + mixed)
        inner[i, i] += 1.0
    squares, vectors = np.linalg.eigh(np.dot(np.dot(t, gram), t.T))
    rank = np.sum(squares > NEGLIGIBLE * squares[k - 1])
    skipped, size = k - rank, k + rank
    small = np.eye(size)
    for i in range(k):
        for j in range(k):
            small[i, j] = s[i] * inner[i, j]
        for j in range(rank):
            r = vectors[i, skipped + j] * np.sqrt(squares[skipped + j])
            if is_long[i]:
                small[k + j, i] = r
            else:
                small[i, k + j] = s[i] * r
    values, axes = np.linalg.eigh(np.dot(small, small.T))
    logs = 0.5 * np.log(np.maximum(values, ROUNDING * values[-1]))
    kept = np.argsort(-np.abs(logs), kind="mergesort")[:k]
    kept.sort()
    mix = np.empty((k, k))  # of the rows T C
    for i in range(k):
        lengths[i] = np.exp(logs[kept[i]])
        for j in range(k):
            on_u[i, j] = axes[j, kept[i]]
            total = 0.0
            for m in range(rank):
                total += axes[k + m, kept[i]] * vectors[j, skipped + m] / np.sqrt(squares[skipped + m])
            mix[i, j] = total
    on_c[:] = np.dot(mix, t)


@kernel("in1, in2, in2, in2, out1, out2")
def move(s, u, g, c, lengths, directions):
    """The axes after a step with G and C, scaled down if an entry of them exceeds 1."""
    k, dim = u.shape
    largest = 1.0
    for i in range(k):
        for j in range(k):
            largest = max(largest, abs(g[i, j]))
        for j in range(dim):
            largest = max(largest, abs(c[i, j]))
    on_u, on_c = np.empty((k, k)), np.empty((k, k))
    turn(s, g / largest, np.dot(c, c.T) / (largest * largest), lengths, on_u, on_c)
    np.dot(on_u, u, directions)
    directions += np.dot(on_c / largest, c)


@kernel("in2, in1, in2, in2, in1, float, float, float, out1, out1", inlined=True)
def decode(z, weights, u, mixed, fisher, pull, slope, least, trend, scale):
    """The step of D, e_c = (sum_i w_i v_ic y_ic - pull) / fisher_c between -1 and 1, as far as its trend says.

    With y_i = A z_i and v_i = A^-T z_i the sum is sum_i w_i z_ic^2 + sum_j u_jc mixed_jc.
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
    move_by_trend(steps, slope, least, trend, scale)


@kernel("in2, in1, out2", inlined=True)
def orthonormalize(kept, lengths, rows):
    """Make the rows orthogonal to those of `kept` with lengths above 1, and orthonormal one after the other."""
    number, dim = rows.shape
    for i in range(number):
        row = rows[i]
        for _ in range(2):  # twice is enough
            for j in range(len(lengths) + i):
                other = kept[j] if j < len(lengths) else rows[j - len(lengths)]
                if j >= len(lengths) or lengths[j] > 1.0:
                    total = 0.0
                    for c in range(dim):
                        total += row[c] * other[c]
                    for c in range(dim):
                        row[c] -= total * other[c]
            total = 0.0
            for c in range(dim):
                total += row[c] * row[c]
            total = np.sqrt(total)
            for c in range(dim):
                row[c] /= total


@kernel("in2, in1, idx1, in1, in1, in1, in1, in1, out2, out1, out1, out1, out1, out1")
def generation(z, weights, order, both, constants, path, former, fisher, probes, effects, trend, scale, root, image):
    """One generation of the axes, of D and of the probes, in place (`FrameEvolution.update`).

    In: the samples z, whose last row is the path, with their weights; ranks, and weights by rank that sum to 0;
    `constants` (rates of D for samples and path, whether there is a D, its coefficient of -1, how the share of its step
    grows with its trend, the least share, how much faster lengths are learned, the coefficient of -I, by how much axes
    fade and up to which length, eta of the probes, the rate of their effects, c_s); the path p_s now and before; F.
    `image` is that of the path p_c; it becomes the local path.
    """
    dim, n, number = z.shape[1], len(order), len(probes)
    k = (len(root) - 1) // (dim + 1)
    c_mud, c_1d, decoded, pull, slope, least, faster, shift, fading, lasting, eta, c_e, c_s = constants
    s, u = root[1 : k + 1].copy(), root[k + 1 :].reshape(k, dim)
    by_row = np.zeros(n + 1)
    for r in range(n):
        by_row[order[r]] = both[r]
    rows = np.empty((k + number, dim))
    rows[:k], rows[k:] = u, probes
    inside = np.dot(z, rows.T)
    factors, a = np.empty((n + 1, 2 * k + number)), np.empty((n + 1, k))
    for i in range(n + 1):
        own = c_1d if i == n else c_mud * by_row[i]
        for j in range(k):
            a[i, j] = inside[i, j]
            factors[i, j] = weights[i] * inside[i, j]
            factors[i, k + j] = own * inside[i, j] * (s[j] + 1.0 / s[j] - 2.0)
        for j in range(number):
            factors[i, 2 * k + j] = by_row[i] * inside[i, k + j]
    sums = np.dot(factors.T, z)
    crossed, decoding, g = np.zeros((k, k)), np.zeros((k, k)), np.zeros((k, k))
    for i in range(n + 1):
        own, inner = (c_1d, weights[i]) if i == n else (c_mud * by_row[i], faster * weights[i])
        for j in range(k):
            for m in range(k):
                product = a[i, j] * a[i, m]
                crossed[j, m] += weights[i] * product
                g[j, m] += inner * product
                decoding[j, m] += own * product
    if decoded > 0.0:
        for j in range(k):
            for m in range(k):
                decoding[j, m] *= (1.0 / s[j] - 1.0) * (s[m] - 1.0)
        mixed = np.dot(decoding, u)
        for j in range(k):
            for c in range(dim):
                mixed[j, c] += sums[k + j, c]
        steps = c_mud * by_row
        steps[n] = c_1d
        decode(z, steps, u, mixed, fisher, pull, slope, least, trend, scale)
    if k > 0:
        turned = np.dot(crossed, u)
        for j in range(k):
            g[j, j] -= shift
            for c in range(dim):
                turned[j, c] = sums[j, c] - turned[j, c]
        lengths = root[1 : k + 1]
        moved = np.empty((k, dim))
        move(s, u, g, turned, lengths, moved)
        u[:] = moved
        for j in range(k):
            log = np.log(lengths[j])
            less = fading if lengths[j] < lasting else 0.0
            lengths[j] = np.exp(max(0.0, log - less) if log > 0.0 else min(0.0, log + less))
    delta, fresh = np.empty(dim), 1.0 / np.sqrt(c_s * (2.0 - c_s))
    for c in range(dim):
        delta[c] = fresh * (path[c] - (1.0 - c_s) * former[c])
    for i in range(number):
        effect, jump, q = 0.0, 0.0, probes[i]
        for r in range(n):
            effect += by_row[r] * inside[r, k + i] * inside[r, k + i]
        effects[i] += c_e * (effect - effects[i])
        for c in range(dim):
            jump += q[c] * delta[c]
        for c in range(dim):
            q[c] += jump / dim * delta[c] - eta * sums[2 * k + i, c]
    orthonormalize(u, root[1 : k + 1], probes)
    image /= root[0]
    for j in range(k):
        total = 0.0
        for c in range(dim):
            total += u[j, c] * image[c]
        total *= 1.0 / root[1 + j] - 1.0
        for c in range(dim):
            image[c] += total * u[j, c]
