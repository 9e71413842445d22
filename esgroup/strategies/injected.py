"""Points that the search did not draw, or not from its present distribution: how far they may pull it."""

from __future__ import annotations

import math

import numpy as np

from esgroup.checks import Array


def longest(dim: int) -> float:
    """sqrt(n) + 2 n / (n + 2)."""
    return math.sqrt(dim) + 2 * dim / (dim + 2)


def shortened(z: Array) -> Array:
    """Rows, those that are too long scaled down."""
    largest = np.abs(z).max(axis=1, initial=1.0, keepdims=True)  # squares of large numbers overflow
    length = largest * np.linalg.norm(z / largest, axis=1, keepdims=True)
    short: Array = z * np.minimum(1.0, longest(z.shape[1]) / np.maximum(length, 1.0))
    return short
