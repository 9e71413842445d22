"""Kernels of the full group, for dimensions so small that calling BLAS costs more than its work."""
# mypy: disable-error-code="no-untyped-def"

import numpy as np

from esgroup.kernels.decoding import move_by_trend
from esgroup.kernels.jit import kernel
from esgroup.kernels.search import evolve, orthogonalize
from esgroup.kernels.search import place as place_points


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


# ---- products, several rows at a time: 2 x 4 of them take 6 loads for 8 multiplications, single ones 16 -------------


@kernel("in2, in2, out2", inlined=True)
def images(z, a, y):
    """Y = Z A^T: rows A z_i."""
    n, rows, dim = z.shape[0], a.shape[0], a.shape[1]
    for r in range(0, rows, 2):
        s = min(r + 1, rows - 1)  # at the end a row may be computed twice
        for i in range(0, n, 4):
            j, k, m = min(i + 1, n - 1), min(i + 2, n - 1), min(i + 3, n - 1)
            r_i, r_j, r_k, r_m, s_i, s_j, s_k, s_m = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
            for c in range(dim):
                r_i += a[r, c] * z[i, c]
                r_j += a[r, c] * z[j, c]
                r_k += a[r, c] * z[k, c]
                r_m += a[r, c] * z[m, c]
                s_i += a[s, c] * z[i, c]
                s_j += a[s, c] * z[j, c]
                s_k += a[s, c] * z[k, c]
                s_m += a[s, c] * z[m, c]
            y[i, r], y[j, r], y[k, r], y[m, r] = r_i, r_j, r_k, r_m
            y[i, s], y[j, s], y[k, s], y[m, s] = s_i, s_j, s_k, s_m


@kernel("in2, in2, float, out2")
def add_product(left, right, keep, out):
    """out <- keep out + L^T R, where L has a column for every row of out; with keep = 0 it is not read."""
    n, rows, dim = left.shape[0], out.shape[0], out.shape[1]
    for r in range(rows):
        row = out[r]
        for c in range(dim):
            row[c] = keep * row[c] if keep != 0.0 else 0.0
        for i in range(0, n, 4):
            j, k, m = min(i + 1, n - 1), min(i + 2, n - 1), min(i + 3, n - 1)
            l_i, l_j, l_k = left[i, r], left[j, r] if j > i else 0.0, left[k, r] if k > j else 0.0
            l_m = left[m, r] if m > k else 0.0
            r_i, r_j, r_k, r_m = right[i], right[j], right[k], right[m]
            for c in range(dim):
                row[c] += l_i * r_i[c] + l_j * r_j[c] + l_k * r_k[c] + l_m * r_m[c]


@kernel("in2, in1, float, out2, out2", inlined=True)
def cores(z, weights, shift, up, down):
    """up = K = (1/2 - s/4) W + W G W / 8 and down = S = (alpha I + K G)^-1 K with G = Z Z^T, alpha = 1 - s/2 + s^2/8.

    alpha I + K G has the eigenvalues of h(M), or alpha: it is invertible, and elimination exchanges rows for accuracy
    only. Both cores are symmetric.
    """
    n, dim = z.shape
    gram, left = np.empty((n, n)), np.empty((n, n))
    for i in range(n):
        for j in range(i + 1):
            total = 0.0
            for c in range(dim):
                total += z[i, c] * z[j, c]
            gram[i, j] = gram[j, i] = total
            up[i, j] = up[j, i] = down[i, j] = down[j, i] = 0.125 * weights[i] * weights[j] * total
        up[i, i] += (0.5 - 0.25 * shift) * weights[i]
        down[i, i] = up[i, i]
    add_product(up, gram, 0.0, left)
    for i in range(n):
        left[i, i] += 1.0 - 0.5 * shift + 0.125 * shift * shift
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


# ---- a generation of a search: one call to ask, one to tell ----------------------------------------------------------


@kernel("int, in1, in1, in1, in1, in1, out2, out2, out2")
def place(frame, a, path, mean, sigma, scale, z, y, x):
    """Make the first `frame` rows of z orthogonal, write the path to its last; then rows y_i = A z_i and points.

    These are x_i = mean + sigma scale (.) y_i; x may have fewer rows than z and y.
    """
    n, dim = z.shape
    if frame > 1:
        orthogonalize(frame, z)
    z[n - 1] = path
    images(z, a.reshape(dim, dim), y)
    place_points(mean, sigma, scale, y, x)


@kernel("in1, in2, in2, in1, in1, out1, out1, out1, in2, in2, out2", inlined=True)
def move_scale(numbers, z, y, weights, report, fisher, trend, scale, inverse, root, v):
    """The step of D as in `decode`, and V = Z A^-1, after `evolve` with its `report`.

    `numbers` are the rates of D over those of A for samples and path, their coefficients of -1, and the least share of
    the step. `fisher` receives F_j sqrt(max F / 2) with F_j = 1 + (A A^T)_jj (A A^T)^-1_jj.
    """
    n, dim = z.shape
    columns, steps = np.zeros(dim), np.full(dim, -numbers[2] - report[2] * numbers[3])
    for r in range(dim):
        for c in range(dim):
            columns[c] += inverse[r, c] * inverse[r, c]
    add_product(np.ascontiguousarray(z.T), inverse, 0.0, v)
    for i in range(n):
        w = weights[i] / report[3] * (numbers[1] if i == n - 1 else numbers[0])
        for c in range(dim):
            steps[c] += w * v[i, c] * y[i, c]
    largest = 0.0
    for r in range(dim):
        row = 0.0
        for c in range(dim):
            row += root[r, c] * root[r, c]
        fisher[r] = 1.0 + row * columns[r]
        largest = max(largest, fisher[r])
    for c in range(dim):
        fisher[c] *= np.sqrt(largest / 2.0)
        steps[c] = min(1.0, max(-1.0, steps[c] / fisher[c]))
    move_by_trend(steps, 0.5, numbers[4], trend, scale)


@kernel("idx1, in1, out2, out1, out1, out1, out1, out1, out1, out1, out1, out1, out1, out1")
def generation(order, numbers, both, mean, scale, sigma, fade, path_s, path_c, fisher, trend, inverse, root, report):
    """All of one generation: `evolve`, sigma by the cumulative rule, D by `move_scale`, A and A^-1.

    A h(M) = alpha A + Y^T K Z and h(M)^-1 A^-1 = (A^-1 - Z^T S V) / alpha with K and S of `cores`. `numbers` are the 7
    of `evolve`, c_s / d_s, chi and the 5 of `move_scale`, then the weights of the mean and of the root by rank. `both`
    are the rows of z and of y; `inverse` and `root` are packed. If a sample is not finite, nothing is written but
    report[3] = 0.
    """
    n, dim = len(order) + 1, len(mean)
    z, y, a, b = both[:n], both[n:], root.reshape(dim, dim), inverse.reshape(dim, dim)
    weights, v, core, up, down = np.empty(n), np.empty((n, dim)), np.empty((n, dim)), np.empty((n, n)), np.empty((n, n))
    u, w, first, step = numbers[14 : 13 + n], numbers[13 + n :], numbers[:7], sigma[0]
    evolve(order, u, w, first, step, scale, z, y, path_s, fade, path_c, mean, weights, report)
    if report[3] == 0.0:
        return
    sigma[0] = step * np.exp(min(1.0, numbers[7] * (report[0] / numbers[8] - 1.0)))
    move_scale(numbers[9:14], z, y, weights, report, fisher, trend, scale, b, a, v)
    shift = report[1]
    keep = 1.0 - 0.5 * shift + 0.125 * shift * shift
    cores(z, weights, shift, up, down)
    down *= -1.0 / keep
    add_product(up, z, 0.0, core)
    add_product(y, core, keep, a)
    add_product(down, v, 0.0, core)
    add_product(z, core, 1.0 / keep, b)


@kernel("idx1, in1, out2, out1, out1, out1, out1, out1, out1, out1, out1, out1, out1, out1")
def generation_by_flow(
    order, numbers, both, mean, scale, sigma, fade, path_s, path_c, fisher, trend, inverse, root, report
):
    """The same, where A becomes A S and A^-1 becomes S^-1 A^-1 with the symmetric root S of G = (1 - s) I + Z^T W Z.

    (It begins with the same lines: a loop for them alone would take another second of compilation before a search.)

    Newton's iteration X <- (X + Y^-1) / 2, Y <- (Y + X^-1) / 2 from G and I has the limits S and S^-1 (Denman and
    Beavers 1976); near them it doubles the number of correct digits in every round.
    """
    n, dim = len(order) + 1, len(mean)
    z, y, a, b = both[:n], both[n:], root.reshape(dim, dim), inverse.reshape(dim, dim)
    weights, v, weighted = np.empty(n), np.empty((n, dim)), np.empty((n, dim))
    u, w, first, step = numbers[14 : 13 + n], numbers[13 + n :], numbers[:7], sigma[0]
    evolve(order, u, w, first, step, scale, z, y, path_s, fade, path_c, mean, weights, report)
    if report[3] == 0.0:
        return
    sigma[0] = step * np.exp(min(1.0, numbers[7] * (report[0] / numbers[8] - 1.0)))
    move_scale(numbers[9:14], z, y, weights, report, fisher, trend, scale, b, a, v)
    pair, inverses = np.empty((2 * dim, dim)), np.empty((2 * dim, dim))  # X and Y
    for r in range(dim):
        for i in range(n):
            weighted[i, r] = weights[i] * z[i, r]
        for c in range(dim):
            pair[dim + r, c] = 1.0 if r == c else 0.0
    forth, back = pair[:dim], pair[dim:]
    add_product(weighted, z, 0.0, forth)
    for c in range(dim):
        forth[c, c] += 1.0 - report[1]
    change = 1.0
    while change > 1e-9:  # the next one would be about its square
        for start in range(0, 2 * dim, dim):
            copy = inverses[start : start + dim]
            for r in range(dim):
                for c in range(dim):
                    copy[r, c] = pair[start + r, c]
            for k in range(dim):  # in place, without exchanges: X and Y are positive definite
                pivot = 1.0 / copy[k, k]
                copy[k, k] = 1.0
                for c in range(dim):
                    copy[k, c] *= pivot
                for r in range(dim):
                    if r != k:
                        factor = copy[r, k]
                        copy[r, k] = 0.0
                        for c in range(dim):
                            copy[r, c] -= factor * copy[k, c]
        change = 0.0
        for r in range(dim):
            for c in range(dim):
                change = max(change, abs(inverses[dim + r, c] - forth[r, c]))
                forth[r, c] = 0.5 * (forth[r, c] + inverses[dim + r, c])
                back[r, c] = 0.5 * (back[r, c] + inverses[r, c])
    for r in range(dim):
        for c in range(dim):
            inverses[c, r], inverses[dim + r, c] = a[r, c], b[r, c]
    add_product(inverses[:dim], forth, 0.0, a)
    add_product(back, inverses[dim:], 0.0, b)
