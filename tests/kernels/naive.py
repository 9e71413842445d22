"""Slow, obvious twins of the kernels: the blocks of a bordered matrix written into a dense one."""

import numpy as np


def bordered(a: np.ndarray, k: int, mid: int, q: int) -> np.ndarray:
    """[[F, 0, 0], [P, D, 0], [X, Q, L]] from its packed form F, P^T, D, Q, X, L."""
    rest = a.tolist()

    def take(rows: int, columns: int) -> np.ndarray:
        part = [rest.pop(0) for _ in range(rows * columns)]
        return np.array(part).reshape(rows, columns)

    f, p_t, d, q_rows, x, last = take(k, k), take(k, mid), take(1, mid), take(q, mid), take(q, k), take(q, q)
    assert not rest
    return np.block(
        [
            [f, np.zeros((k, mid)), np.zeros((k, q))],
            [p_t.T, np.diag(d[0]), np.zeros((mid, q))],
            [x, q_rows, last],
        ]
    )


def packed_bordered(dense: np.ndarray, k: int, mid: int) -> np.ndarray:
    f, p, x = dense[:k, :k], dense[k : k + mid, :k], dense[k + mid :, :k]
    d, q, last = dense[k : k + mid, k : k + mid], dense[k + mid :, k : k + mid], dense[k + mid :, k + mid :]
    return np.concatenate([f.ravel(), p.T.ravel(), np.diagonal(d), q.ravel(), x.ravel(), last.ravel()])


def weighted_outer_products(left: np.ndarray, right: np.ndarray, weights: np.ndarray, shift: float) -> np.ndarray:
    total = -shift * np.eye(left.shape[1])
    for x, y, w in zip(left, right, weights, strict=True):
        total += w * np.outer(x, y)
    return total
