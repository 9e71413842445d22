"""Networks whose weights are searched: how a vector of weights is laid out, where searches start, what a problem is."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from large_runs import Array

Layers = tuple[tuple[int, int], ...]  # outputs and inputs of each


def weights_in(layers: Layers) -> int:
    """Return the number of weights, biases included."""
    return sum(outputs * (inputs + 1) for outputs, inputs in layers)


def split(weights: Array, layers: Layers) -> list[tuple[Array, Array]]:
    """Return views of the matrices and biases of rows of weights, of shapes (n, outputs, inputs) and (n, outputs).

    A row has the matrix of the first layer, row by row, then its biases, then the next layer.
    """
    found, at, n = [], 0, len(weights)
    for outputs, inputs in layers:
        middle, end = at + outputs * inputs, at + outputs * (inputs + 1)
        found.append((weights[:, at:middle].reshape(n, outputs, inputs), weights[:, middle:end]))
        at = end
    return found


def first_weights(layers: Layers, rng: np.random.Generator) -> Array:
    """Return where searches start: matrices from N(0, 1 / inputs), biases 0."""
    parts = []
    for outputs, inputs in layers:
        parts += [rng.standard_normal(outputs * inputs) / math.sqrt(inputs), np.zeros(outputs)]
    return np.concatenate(parts)


def kronecker_structure(layers: Layers) -> Any:
    """Return the direct sum of a Kronecker product of full matrices for every matrix, and a diagonal for its biases."""
    from esgroup.groups import BlockDiagonal, Diagonal, Full, Kronecker

    blocks: list[Any] = []
    for outputs, inputs in layers:
        blocks += [Kronecker(Full(outputs), Full(inputs)), Diagonal(outputs)]
    return BlockDiagonal(tuple(blocks))


@dataclass(frozen=True, eq=False)
class RealProblem:
    """An objective of rows of weights."""

    layers: Layers
    values: Callable[[Array], Array]
    accuracy: Callable[[Array], float] | None = None  # of one vector of weights, on data that no search sees
    floor: float = -math.inf  # the least value there is: a run that gets there is over

    @property
    def dim(self) -> int:
        return weights_in(self.layers)
