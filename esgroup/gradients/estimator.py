"""What an estimator of natural gradients is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from esgroup import checks
from esgroup.checks import Array
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

    needs: ClassVar[type[Values]]

    @abstractmethod
    def step(
        self, family: Gaussian, state: State, function: Needed, rng: np.random.Generator, entropy_weight: float = 0.0
    ) -> Step:
        """dL in local coordinates, so that `family.move(state, step.scaled(-rate))` descends."""

    def check(self, function: Values, dim: int | None = None) -> None:
        """Refuse a function of which too little is known, with a TypeError that says what is missing.

        With `dim`, refuse one of another dimension as well.
        """
        if not isinstance(function, Values):
            raise TypeError(f"function must be made by as_function, got {function!r}")
        if not isinstance(function, self.needs):
            raise TypeError(f"{type(self).__name__} needs {_WHAT[self.needs]}")
        if dim is not None and function.dim != dim:
            raise ValueError(f"function must have dim {dim} to match the distribution, got {function.dim}")


def entropy_part(family: Gaussian, entropy_weight: float) -> Array:
    """M of entropy_weight E_q log q, exactly: g_Sigma = -entropy_weight Sigma^-1 / 2 is -I / 2 of it locally."""
    weight = checks.real_number("entropy_weight", entropy_weight)
    m: Array = -0.5 * weight * family._sign * family.group._local_identity()
    return m


def finite(name: str, array: Any) -> Array:
    """The array, or a ValueError that says where it is not finite: a step cannot be computed from it."""
    array = np.asarray(array)
    return checks.real_array(name, array, array.shape)
