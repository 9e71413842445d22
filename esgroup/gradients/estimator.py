"""What an estimator of natural gradients is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

import numpy as np

from esgroup.distributions.base import State, Step
from esgroup.distributions.gaussian import Gaussian
from esgroup.gradients.function import Gradients, Hessians, Products, Values

Needed = TypeVar("Needed", bound=Values)

_WHAT = {
    Values: "values",
    Gradients: "gradients: give jac=",
    Products: "products with the Hessian: give hessp= (or hess=)",
    Hessians: "Hessians: give hess=",
}


class Estimator(ABC, Generic[Needed]):
    """Estimates the natural gradient of L = E_q f + entropy_weight E_q log q in the local coordinates of a Gaussian.

    `needs` is the class of functions that it takes; `check` refuses others, before anything is computed.
    """

    needs: type[Needed]

    @abstractmethod
    def step(
        self, family: Gaussian, state: State, function: Needed, rng: np.random.Generator, entropy_weight: float = 0.0
    ) -> Step:
        """dL in local coordinates, so that `family.move(state, step.scaled(-rate))` descends."""

    def check(self, function: Values) -> None:
        """Refuse a function of which too little is known, with a TypeError that says what is missing."""
        if not isinstance(function, self.needs):
            raise TypeError(f"{type(self).__name__} needs {_WHAT[self.needs]}")
