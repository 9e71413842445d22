"""The loop of the fit of a quadratic model, for so few features that their matrix fits into a cache."""
# mypy: disable-error-code="no-untyped-def"

import numpy as np

from esgroup.kernels.jit import kernel


@kernel("in2, in1, in1, idx1, idx1, float, float, float, int, out1")
def least_squares(z, residual, half, left, right, wide, ridge, tolerance, steps, theta):
    """Conjugate gradients for min |half (residual - F P^(1/2) u)|^2 + ridge |u|^2 from u = 0; theta = P^(1/2) u.

    The columns of F are 1, z_i, (z_i^2 - 1) / sqrt(2), and z_i z_j for i in left, j in right; P^(1/2) multiplies the
    first 1 + n numbers and the mean of the next n by `wide`. The formulas are those of `quadratic.fit` in strategies.
    """
    number, n = z.shape
    p = theta.shape[0]
    features = np.empty((number, p))
    for i in range(number):
        row, z_i, w = features[i], z[i], half[i]
        row[0] = wide * w
        total = 0.0
        for c in range(n):
            row[1 + c] = wide * w * z_i[c]
            square = w * (z_i[c] * z_i[c] - 1.0) * np.sqrt(0.5)
            row[1 + n + c] = square
            total += square
        total *= (wide - 1.0) / n
        for c in range(n):
            row[1 + n + c] += total
        for k in range(p - 1 - 2 * n):
            row[1 + 2 * n + k] = w * z_i[left[k]] * z_i[right[k]]
    r, u, gradient = np.empty(number), np.zeros(p), np.zeros(p)
    for i in range(number):
        r[i] = half[i] * residual[i]
        row, r_i = features[i], r[i]
        for k in range(p):
            gradient[k] += r_i * row[k]
    direction, image = gradient.copy(), np.empty(number)
    square = 0.0
    for k in range(p):
        square += gradient[k] * gradient[k]
    first = square
    for _ in range(steps):
        if square <= tolerance * tolerance * first or square == 0.0:
            break
        length, size = 0.0, 0.0
        for i in range(number):
            row = features[i]
            total = 0.0
            for k in range(p):
                total += row[k] * direction[k]
            image[i] = total
            length += total * total
        for k in range(p):
            size += direction[k] * direction[k]
        length = square / (length + ridge * size)
        for k in range(p):
            u[k] += length * direction[k]
            gradient[k] = -ridge * u[k]
        for i in range(number):
            r[i] -= length * image[i]
            row, r_i = features[i], r[i]
            for k in range(p):
                gradient[k] += r_i * row[k]
        before, square = square, 0.0
        for k in range(p):
            square += gradient[k] * gradient[k]
        for k in range(p):
            direction[k] = gradient[k] + square / before * direction[k]
    common = 0.0
    for c in range(n):
        common += u[1 + n + c]
    common *= (wide - 1.0) / n
    for k in range(p):
        if k < 1 + n:
            theta[k] = wide * u[k]
        elif k < 1 + 2 * n:
            theta[k] = u[k] + common
        else:
            theta[k] = u[k]
