"""A differential equation fitted to data: populations of hares and lynxes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from esgroup.checks import Array
from esgroup.lazy import Lazy
from esgroup.problem_registry import summary
from esgroup_problems.making import fixed_dim
from esgroup_problems.problem import OnPoint, Problem, register

_integrate: Any = Lazy("scipy.integrate")

# pelts collected by the Hudson's Bay Company in the years 1900 to 1920, in thousands
_HARES = "30 47.2 70.2 77.4 36.3 20.6 18.1 21.4 22 25.4 27.1 40.3 57 76.6 52.3 19.5 11.2 7.6 14.6 16.2 24.7"
_LYNXES = "4 6.1 9.8 35.2 59.4 41.7 19 13 8.3 9.1 7.4 8 12.3 19.5 45.7 51.1 29.7 15.8 9.7 10.1 8.6"
_PELTS = np.log([[float(count) for count in counts.split()] for counts in (_HARES, _LYNXES)])
_YEARS = np.arange(21.0)
_PATIENCE = 10_000  # evaluations of the right-hand side; sensible weights need about 500
_SOURCE = (
    "Lotka: Elements of physical biology (1925), Volterra (1926); counts of the Hudson's Bay Company after "
    "Odum: Fundamentals of ecology (1953)"
)


class _NoEnd(Exception):
    """Raised when the integration takes too many steps."""


def lynx_hare_rows(x: Array) -> Array:
    """For each row of weights, the sum of the squared differences of logarithms between model and counts."""
    return np.array([_misfit(row.tolist()) for row in x])


def _misfit(weights: list[float]) -> float:
    if not all(map(math.isfinite, weights)):
        return math.nan
    try:
        fitted = _log_populations(weights)
    except (_NoEnd, OverflowError):
        return math.nan
    if fitted.shape != _PELTS.shape or not np.isfinite(fitted).all():
        return math.nan
    return float(((fitted - _PELTS) ** 2).sum())


def _log_populations(weights: list[float]) -> Array:
    # the logarithms of both populations in every year; logarithms need no guard against negative numbers
    a, b, c, d = map(math.exp, weights[:4])
    calls = 0

    def slopes(_: float, logs: Array) -> tuple[float, float]:
        nonlocal calls
        calls += 1
        if calls > _PATIENCE:
            raise _NoEnd
        hares, lynxes = logs.tolist()
        return a - b * math.exp(lynxes), d * math.exp(hares) - c

    ends = (_YEARS[0], _YEARS[-1])
    solution = _integrate.solve_ivp(slopes, ends, weights[4:], "LSODA", _YEARS, rtol=1e-10, atol=1e-10)
    return solution.y


@register
def lynx_hare(dim: int = 6) -> Problem:
    """Predator and prey (Lotka-Volterra) fitted to pelts of lynxes and hares, 1900 to 1920.

    hares' = (a - b lynxes) hares and lynxes' = (d hares - c) lynxes. The six coordinates are the logarithms of a, b, c,
    d and of both populations in 1900, in thousands. f is the sum of the squared differences between the logarithms of
    model and data; NaN where the equation cannot be solved. The minimum, 2.0186612, was found by least squares from 60
    starts; half ended there and half in a local minimum of 16.15. The integration leaves an uncertainty of
    about 10^-9 in f.
    """
    fixed_dim("lynx_hare", dim, 6)
    minimizer = np.array([-0.61589175, -3.60581275, -0.22767123, -3.74250649, 3.54392375, 1.7655021])
    return Problem(
        name=lynx_hare.__name__,
        description=summary(lynx_hare),
        source=_SOURCE,
        fun=OnPoint(lynx_hare_rows),
        batch=lynx_hare_rows,
        x0=np.log([1.0, 0.05, 1.0, 0.05, 20.0, 10.0]),
        sigma0=0.5,
        minimizer=minimizer,
        minimum=OnPoint(lynx_hare_rows)(minimizer),
    )
