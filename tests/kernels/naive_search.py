"""Slow, obvious twins of the loops of the search: the formulas on whole arrays, with dense inverses."""

import numpy as np

Array = np.ndarray


def place(mean: Array, sigma: float, scale: Array, y: Array) -> Array:
    return np.array([mean + sigma * scale * row for row in y])


def orthogonalized(z: Array) -> Array:
    """Each row less its projections on those before it in its block, at its old length."""
    dim, rows = z.shape[1], []
    for i, row in enumerate(z):
        basis = np.array(rows[i - i % dim : i]).reshape(-1, dim)
        rest = row - basis.T @ np.linalg.lstsq(basis.T, row, rcond=None)[0] if len(basis) else row
        rows.append(rest * (np.linalg.norm(row) / np.linalg.norm(rest)))
    return np.array(rows)


def evolve(
    order: Array,
    u: Array,
    w: Array,
    constants: Array,
    step: float,
    scale: Array,
    z: Array,
    y: Array,
    state: dict[str, Array],
) -> dict[str, Array]:
    """What `evolve` writes, by name: paths, the mean, weights, a report, the path's rows of z and y."""
    c_s, c_c, c_1, c_mu, mass, threshold, rescaled = constants
    n, dim = len(order), z.shape[1]
    ranks = np.argsort(order)  # of the rows of z
    samples, images = z[:n], y[:n]
    weights = c_mu * w[ranks]
    if rescaled:
        squares = (samples**2).sum(axis=1)
        squares[squares <= 1e-8 * dim] = dim  # at the mean, without a direction
        weights = np.where(weights < 0, weights * dim / squares, weights)
    delta, image = u[ranks] @ samples, u[ranks] @ images
    path_s = (1 - c_s) * state["path_s"] + np.sqrt(c_s * (2 - c_s) * mass) * delta
    length = np.sqrt((path_s**2).sum())
    fade = state["fade"] * (1 - c_s) ** 2
    steady = length < threshold * np.sqrt(1 - fade[0])
    gain = steady * np.sqrt(c_c * (2 - c_c) * mass)
    path_c = (1 - c_c) * state["path_c"] + gain * delta
    clip = 1 / max(1, (c_1 * path_c**2 + np.abs(weights) @ samples**2).max())
    damped = 1.0 if steady else (1 - c_c) ** 2
    shift = clip * (c_1 * damped + c_mu * w.sum())
    return {
        "path_s": path_s,
        "fade": fade,
        "path_c": path_c,
        "mean": state["mean"] + step * scale * image,
        "weights": clip * np.append(weights, c_1),
        "report": np.array([length, shift, damped, clip]),
        "z": np.vstack([samples, path_c]),
        "y": np.vstack([images, (1 - c_c) * y[n] + gain * image]),
    }


def decode(v: Array, y: Array, weights: Array, fisher: Array, ratios: tuple[float, float], pull: float) -> Array:
    """The step of log D, before it is known how much of it is taken."""
    of_rows = weights * np.append(np.full(len(v) - 1, ratios[0]), ratios[1])
    return np.clip((of_rows @ (v * y) - pull) / fisher, -1, 1)


def trend_after(trend: Array, step: Array) -> Array:
    """Running means of the step and of its squared length, the sum of squared weights in them, and their sum."""
    dim = len(step)
    b = 1 / (2 * dim)
    mean, square, q, s = trend[:dim], *trend[dim:]
    return np.append(
        (1 - b) * mean + b * step, [(1 - b) * square + b * step @ step, (1 - b) ** 2 * q + b**2, (1 - b) * s + b]
    )


def share_taken(trend: Array, least: float) -> float:
    """How much of a step of log D is taken, after its trend is known."""
    dim = len(trend) - 3
    mean, square, q, s = trend[:dim], *trend[dim:]
    ratio = mean @ mean / (q * square / s)
    return float(np.clip((ratio - 1 - np.sqrt(2 / dim)) / 2, least, 1))


def h(z: Array, weights: Array, shift: float) -> Array:
    m = ((z.T * weights) @ z - shift * np.eye(z.shape[1])) / 2
    return np.eye(len(m)) + m + m @ m / 2


def flow(z: Array, weights: Array, shift: float) -> Array:
    """The symmetric root of (1 - s) I + Z^T W Z."""
    values, vectors = np.linalg.eigh((z.T * weights) @ z + (1 - shift) * np.eye(z.shape[1]))
    return (vectors * np.sqrt(values)) @ vectors.T
