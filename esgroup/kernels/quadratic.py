"""The kernels of quadratic models: the fit, and the comparison with new values.

The second-order part of a model is passed as two-dimensional arrays, n rows for each model, or one row if it is
diagonal. Formulas and names are those of `esgroup.surrogates.quadratic_model`.
"""
# mypy: disable-error-code="no-untyped-def"

import numpy as np

from esgroup.kernels.jit import kernel


@kernel("in2, int, in1, in2, in2, out1")
def predict(z, model, constants, slopes, curvatures, predicted):
    """Values of one of several models at the rows of z."""
    number, n = z.shape
    rows = curvatures.shape[0] // constants.shape[0]
    diagonal = rows < n or n == 1
    slope, curvature = slopes[model], curvatures[model * rows : (model + 1) * rows]
    trace = 0.0
    for c in range(n):
        trace += curvature[0, c] if diagonal else curvature[c, c]
    for i in range(number):
        z_i = z[i]
        value, square = constants[model], -trace
        for c in range(n):
            value += slope[c] * z_i[c]
            if diagonal:
                square += curvature[0, c] * z_i[c] * z_i[c]
            else:
                inner = 0.0
                for k in range(n):
                    inner += curvature[c, k] * z_i[k]
                square += inner * z_i[c]
        predicted[i] = value + square * np.sqrt(0.5)


@kernel("in2, in1, in1, idx1, idx1, idx1, float, float, idx1, idx1, int, out1, out2, out2")
def fit(z, y, half, lefts, begins, ends, wide, tolerance, windows, steps, chained, constants, slopes, curvatures):
    """Move every model to the last `windows` points by `steps` steps of conjugate gradients, in place.

    From theta, the coefficients of a model, each minimizes |half (y - F (theta + P^(1/2) u))|^2 over u from u = 0. The
    columns of F are 1, z_i, (z_i^2 - 1) / sqrt(2), and z_i z_j for i in lefts, j from begins to ends; P^(1/2)
    multiplies the first 1 + n numbers, and the mean of the next n, by `wide`. If `chained`, a model begins with the one
    before it.

    A step takes one pass over the features, F^T (F d), four rows at a time. They are kept in single precision, which
    halves the memory that every pass has to read. Residuals have double precision: where a quadratic explains the
    values, fits that follow each other find it to the last digits, elsewhere the solution has an error of 1e-7.
    """
    number, n = z.shape
    p = 1 + 2 * n + np.sum(ends - begins)
    rows = curvatures.shape[0] // constants.shape[0]  # of the curvature of one model
    diagonal = rows < n or n == 1
    padded = (number + 3) // 4 * 4  # in front, so that windows end with the last row
    first = padded - number
    # Arrays that lie close together would be taken for overlapping ones, and summed in another order: the result would
    # depend on where memory was free. So they are parts of two blocks, 1024 bytes apart.
    singles, doubles = np.empty(padded * p + 2 * (p + 256), np.float32), np.empty((5, max(p, padded) + 128))
    features = singles[: padded * p].reshape(padded, p)
    unit, image = singles[padded * p + 256 : (padded + 1) * p + 256], singles[-p:]
    row, u, gradient, direction = doubles[0, :p], doubles[1, :p], doubles[2, :p], doubles[3, :p]
    residual = doubles[4, :padded]
    features[:first] = 0.0
    for i in range(number):
        z_i, w = z[i], half[i]
        total = 0.0
        row[0] = wide * w
        for c in range(n):
            row[1 + c] = wide * w * z_i[c]
            square = w * (z_i[c] * z_i[c] - 1.0) * np.sqrt(0.5)
            row[1 + n + c] = square
            total += square
        total *= (wide - 1.0) / n
        for c in range(n):
            row[1 + n + c] += total
        place = 1 + 2 * n
        for run in range(lefts.shape[0]):
            left = w * z_i[lefts[run]]
            for c in range(begins[run], ends[run]):
                row[place] = left * z_i[c]
                place += 1
        for k in range(p):
            features[first + i, k] = row[k]
    for model in range(constants.shape[0]):
        slope, curvature = slopes[model], curvatures[model * rows : (model + 1) * rows]
        if chained and model > 0:
            constants[model] = constants[model - 1]
            slope[:] = slopes[model - 1]
            curvature[:] = curvatures[(model - 1) * rows : model * rows]
        begin = (padded - min(windows[model], number)) // 4 * 4
        least = max(first, begin)
        residual[:least] = 0.0
        predict(z[least - first :], model, constants, slopes, curvatures, residual[least:])
        for i in range(least, padded):
            residual[i] = half[i - first] * (y[i - first] - residual[i])
        gradient[:] = 0.0
        for i in range(begin, padded):
            r_i = residual[i]
            for k in range(p):
                gradient[k] += r_i * features[i, k]
        square = 0.0
        for k in range(p):
            u[k] = 0.0
            direction[k] = gradient[k]
            square += gradient[k] * gradient[k]
        enough = tolerance * tolerance * square
        for _ in range(steps[model]):
            if not enough < square:
                break
            norm = np.sqrt(square)
            for k in range(p):
                unit[k] = direction[k] / norm  # single precision has fewer exponents as well
                image[k] = 0.0
            length = 0.0
            for i in range(begin, padded, 4):
                row_0, row_1, row_2, row_3 = features[i], features[i + 1], features[i + 2], features[i + 3]
                t_0 = t_1 = t_2 = t_3 = np.float32(0.0)
                for k in range(p):
                    d_k = unit[k]
                    t_0 += row_0[k] * d_k
                    t_1 += row_1[k] * d_k
                    t_2 += row_2[k] * d_k
                    t_3 += row_3[k] * d_k
                for k in range(p):
                    image[k] += (t_0 * row_0[k] + t_1 * row_1[k]) + (t_2 * row_2[k] + t_3 * row_3[k])
                length += float(t_0 * t_0 + t_1 * t_1 + t_2 * t_2 + t_3 * t_3)
            if length == 0.0:
                break
            before, square = square, 0.0
            for k in range(p):
                u[k] += direction[k] / length
                gradient[k] -= norm / length * image[k]
                square += gradient[k] * gradient[k]
            for k in range(p):
                direction[k] = gradient[k] + square / before * direction[k]
        common = 0.0
        for c in range(n):
            common += u[1 + n + c]
        common *= (wide - 1.0) / n
        constants[model] += wide * u[0]
        for c in range(n):
            slope[c] += wide * u[1 + c]
            if diagonal:
                curvature[0, c] += u[1 + n + c] + common
            else:
                curvature[c, c] += u[1 + n + c] + common
        place = 1 + 2 * n
        for run in range(lefts.shape[0]):
            for c in range(begins[run], ends[run]):
                entry = u[place] * np.sqrt(0.5)
                curvature[lefts[run], c] += entry
                curvature[c, lefts[run]] += entry
                place += 1


@kernel("in2, in1, int, idx1, in1, in2, in2, float, out2")
def judge(z, values, older, models, constants, slopes, curvatures, rate, judged):
    """Judge models by values that are new to them: those after the first `older` ones.

    Every new value is compared with all before it: `judged` counts the pairs that a model orders as the values do, less
    the others, then all pairs, and has the mean of squared errors, relative to the size of the model and cut at 1.
    """
    number, n = z.shape
    rows = curvatures.shape[0] // constants.shape[0]
    predicted = np.empty(number)
    for model in models:
        slope, curvature = slopes[model], curvatures[model * rows : (model + 1) * rows]
        size = 0.0
        for c in range(n):
            size += slope[c] * slope[c]
            for k in range(rows):
                size += curvature[k, c] * curvature[k, c]
        size = np.sqrt(size)
        if size == 0.0:
            continue
        predict(z, model, constants, slopes, curvatures, predicted)
        for i in range(older, number):
            for j in range(i):
                judged[model, 0] += np.sign(values[i] - values[j]) * np.sign(predicted[i] - predicted[j])
                judged[model, 1] += 1.0
            far = 0.0
            for c in range(n):
                far += z[i, c] * z[i, c]
            error = min(1.0, abs(values[i] - predicted[i]) / (size * max(1.0, far / n)))
            judged[model, 2] += rate * (error * error - judged[model, 2])
