"""One Gaussian of a mixture as a search of its own, with its state packed into a vector."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from esgroup.checks import Array
from esgroup.distributions.base import State
from esgroup.distributions.gaussian import Gaussian
from esgroup.groups import Full, Triangular
from esgroup.strategies.decoding import Decoding
from esgroup.strategies.evolution import Evolution, Generation, SearchState


class Component:
    """The update of `Evolution` for a Gaussian, with diagonal decoding for full and triangular groups.

    `most` are the largest standard deviations that it may have.
    """

    def __init__(self, gaussian: Gaussian, state: State, most: Array | None = None) -> None:
        if gaussian.form == "precision":
            gaussian, state = gaussian.converted(state)
        group = gaussian.group
        decoded = isinstance(group, Full | Triangular) and group.dim > 1
        self.evolution = Evolution(group, decoding=Decoding() if decoded else None)
        self.mean0, self.root0, self.most = state.mean, state.root, most

    @cached_property
    def _slices(self) -> list[slice]:
        ends = np.cumsum(list(self.evolution.shapes().values())).tolist()
        return [slice(start, end) for start, end in zip([0, *ends], ends, strict=False)]

    @property
    def size(self) -> int:
        """The length of a packed state."""
        return int(self._slices[-1].stop)

    def views(self, packed: Array) -> SearchState:
        """A state whose arrays are parts of a vector."""
        return SearchState(*(packed[part] for part in self._slices))

    def packed(self, search: SearchState) -> Array:
        """The arrays of a state in one vector."""
        return np.concatenate(search)

    def write(self, search: SearchState, values: SearchState) -> None:
        """Overwrite a state."""
        for array, value in zip(search, values, strict=True):
            array[:] = value

    def start(self, mean: Array) -> SearchState:
        """The first covariance at a mean."""
        search = self.evolution.start(mean, np.ones(len(mean)))
        search.root[:] = self.root0
        self.evolution.refresh(search)
        return search

    @cached_property
    def stds0(self) -> Array:
        """The first standard deviations."""
        return np.sqrt(self.evolution.group._squared_row_norms(self.root0))

    def shrinkage(self, search: SearchState) -> float:
        """The largest ratio of a standard deviation to the first one."""
        return float((np.sqrt(self.evolution.variances(search)) / self.stds0).max())

    def log_volume(self, search: SearchState) -> float:
        """log|sigma D A|."""
        scales = search.sigma * search.scale
        return self.evolution.group._log_abs_det(search.root) + float(np.log(scales).sum())

    def sample(self, search: SearchState, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """n points and their z."""
        generation, x = Generation.empty(n, self.evolution.dim), np.empty((n, self.evolution.dim))
        self.evolution.sample(search, n, rng, generation, x)
        return x, generation.z[:-1]

    def placed(self, search: SearchState, z: Array) -> Array:
        """The points of some z."""
        return self._generation(search, z)[1]

    def _generation(self, search: SearchState, z: Array) -> tuple[Generation, Array]:
        generation, x = Generation.empty(*z.shape), np.empty(z.shape)
        generation.z[:-1] = z
        self.evolution.place(search, generation, x)
        return generation, x

    def update(self, search: SearchState, z: Array, order: NDArray[np.int64]) -> None:
        """One generation of these z, from best to worst by `order`; the state changes in place."""
        self.evolution.update(search, self._generation(search, z)[0], order)
        if self.most is not None:
            self.evolution.limit_steps(search, None, self.most)
