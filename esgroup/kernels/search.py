"""Kernels of the search itself, the same for every group: from ranks to a step in local coordinates."""
# mypy: disable-error-code="no-untyped-def"

import numpy as np

from esgroup.kernels.jit import kernel


@kernel("in1, in1, in1, in2, out2", inlined=True)
def place(mean, sigma, scale, y, x):
    """x_i = mean + sigma scale (.) y_i for the rows of x; y may have more."""
    n, dim = x.shape
    step = sigma[0]
    for i in range(n):
        for c in range(dim):
            x[i, c] = mean[c] + step * scale[c] * y[i, c]


@kernel("int, out2", inlined=True)
def orthogonalize(n, z):
    """Make the first n rows orthogonal in blocks of at most dim rows, without changing their lengths (Gram-Schmidt)."""
    dim = z.shape[1]
    squares = np.empty(n)
    for i in range(n):
        total = 0.0
        for c in range(dim):
            total += z[i, c] * z[i, c]
        squares[i] = total
        for j in range(i - i % dim, i, 4):  # four at a time: they are orthogonal, and z_i is read once for all
            k, m, p = min(j + 1, i - 1), min(j + 2, i - 1), min(j + 3, i - 1)
            z_i, z_j, z_k, z_m, z_p = z[i], z[j], z[k], z[m], z[p]
            in_j, in_k, in_m, in_p = 0.0, 0.0, 0.0, 0.0
            for c in range(dim):
                in_j += z_i[c] * z_j[c]
                in_k += z_i[c] * z_k[c]
                in_m += z_i[c] * z_m[c]
                in_p += z_i[c] * z_p[c]
            in_j /= squares[j]
            in_k = in_k / squares[k] if k > j else 0.0
            in_m = in_m / squares[m] if m > k else 0.0
            in_p = in_p / squares[p] if p > m else 0.0
            for c in range(dim):
                z_i[c] -= in_j * z_j[c] + in_k * z_k[c] + in_m * z_m[c] + in_p * z_p[c]
        rest = 0.0
        for c in range(dim):
            rest += z[i, c] * z[i, c]
        factor = np.sqrt(total / rest)
        for c in range(dim):
            z[i, c] *= factor


@kernel("idx1, in1, in1, in1, float, in1, out2, out2, out1, out1, out1, out1, out1, out1", inlined=True)
def evolve(
    order, mean_weights, root_weights, constants, step, scale, z, y, path_s, fade, path_c, mean, weights, report
):
    """One generation of the mean and the paths; the formulas are those of `Evolution` in strategies.

    In: ranks, the weights by rank, `constants` (c_s, c_c, c_1, c_mu, mu_eff of the mean, the threshold of h_sigma times
    chi, whether negative weights are rescaled and large steps clipped), `step` (sigma times the rate of the mean), and
    the samples z with their images y = A z, whose last row is the path. In and out: both paths, (1 - c_s)^(2 t), the
    mean. Out: weights of the rows of z in the step of the root, and `report` = (|p_s|, the coefficient of -I, h_sigma's
    correction of c_1, the factor of the clipping). If a sample is not finite, nothing is written but report[3] = 0.
    """
    n, dim = len(order), z.shape[1]
    c_s, c_c, c_1, c_mu, mass, threshold, rescaled = constants
    size, delta, image = np.zeros(dim), np.zeros(dim), np.zeros(dim)
    pull = 0.0
    for r in range(n):
        i = order[r]
        w, u = c_mu * root_weights[r], mean_weights[r]
        pull += w
        if w < 0.0 and rescaled > 0.0:
            norm = 0.0
            for c in range(dim):
                norm += z[i, c] * z[i, c]
            if norm > 1e-8 * dim:  # a point at the mean has no direction; only callers can put one there
                w *= dim / norm
        weights[i] = w
        for c in range(dim):
            size[c] += abs(w) * z[i, c] * z[i, c]
            delta[c] += u * z[i, c]
            image[c] += u * y[i, c]
    check = 0.0
    for c in range(dim):
        check += size[c] + abs(image[c])
    if not check < 1e100:
        report[3] = 0.0
        return
    gain, length = np.sqrt(c_s * (2.0 - c_s) * mass), 0.0
    for c in range(dim):
        path_s[c] = (1.0 - c_s) * path_s[c] + gain * delta[c]
        length += path_s[c] * path_s[c]
    length = np.sqrt(length)
    fade[0] *= (1.0 - c_s) * (1.0 - c_s)
    steady = 1.0 if length < threshold * np.sqrt(1.0 - fade[0]) else 0.0
    gain, largest = steady * np.sqrt(c_c * (2.0 - c_c) * mass), 0.0
    for c in range(dim):
        path_c[c] = (1.0 - c_c) * path_c[c] + gain * delta[c]
        z[n, c] = path_c[c]
        y[n, c] = (1.0 - c_c) * y[n, c] + gain * image[c]
        largest = max(largest, size[c] + c_1 * path_c[c] * path_c[c])
        mean[c] += step * scale[c] * image[c]
    clip = 1.0 / max(1.0, largest) if rescaled > 0.0 else 1.0
    for i in range(n):
        weights[i] *= clip
    weights[n] = clip * c_1
    damped = 1.0 - (1.0 - steady) * c_c * (2.0 - c_c)
    report[0] = length
    report[1] = clip * (c_1 * damped + pull)
    report[2] = damped
    report[3] = clip
