"""Functions of one number."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from esgroup.checks import Array
from esgroup.problem_registry import summary
from esgroup_problems.functions import Separable
from esgroup_problems.making import fixed_dim
from esgroup_problems.problem import OnPoint, Problem, register


@dataclass(frozen=True)
class ItakuraSaito(Separable):
    """f(x) = y/x - log(y/x) - 1 for x > 0, and NaN elsewhere: steep below y, with a long slope above it."""

    y: float

    def terms(self, x: Array) -> Array:
        ratio = self.y / self._positive(x)
        return (ratio - 1) - np.log(ratio)

    def slopes(self, x: Array) -> Array:
        x = self._positive(x)
        return (x - self.y) / x**2

    def bends(self, x: Array) -> Array:
        x = self._positive(x)
        return (2 * self.y - x) / x**3

    @staticmethod
    def _positive(x: Array) -> Array:
        return np.where(x > 0, x, np.nan)


@register
def itakura_saito(dim: int = 1) -> Problem:
    """Itakura-Saito divergence of a positive number from 2: steep toward zero, flat above 2.

    f(x) = 2/x - log(2/x) - 1 on [10^-6, 100], with the minimum 0 at 2 and an inflection at 4.
    """
    function = ItakuraSaito(2.0)
    return Problem(
        name=itakura_saito.__name__,
        description=summary(itakura_saito),
        source="Itakura, Saito: Analysis synthesis telephony based on the maximum likelihood method (ICA 6, 1968)",
        space="scalar",
        fun=OnPoint(function.rows),
        batch=function.rows,
        gradient=function.gradient,
        hessian_product=function.product,
        hessian_diagonal=function.diagonal,
        bounds=(1e-6, 100.0),
        x0=np.full(fixed_dim("itakura_saito", dim, 1), 12.0),
        sigma0=5.0,
        start_box=(0.1, 20.0),
        minimizer=np.array([function.y]),
        minimum=0.0,
    )
