"""The functions of COCO's suites bbob and bbob-largescale, through coco-experiment.

    bbob_f1 ... bbob_f24                            2, 3, 5, 10, 20 or 40 dimensions
    bbob_largescale_f1 ... bbob_largescale_f24      20, 40, 80, 160, 320 or 640 dimensions

The seed counts the instances that a suite lists, from zero; coco-experiment 2.8 lists 15 of every function. The number
of an instance may differ from its place: the sixth of a recent bbob is instance 71. A problem starts at the suite's
initial solution, the middle of its region of interest [-5, 5], without bounds and with sigma0 = 2. Random starts are
uniform in [-4, 4], where most functions have their optima. (The suite's own proposals for restarts are means of two
uniform numbers, and depend on how often they have been requested.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from esgroup import checks
from esgroup.checks import Array
from esgroup_problems.making import optional_module
from esgroup_problems.problem import OnPoint, Problem, register

_NAMES = (
    "Sphere",
    "Ellipsoid, separable",
    "Rastrigin, separable",
    "Bueche-Rastrigin",
    "Linear slope",
    "Attractive sector",
    "Step ellipsoid",
    "Rosenbrock, original",
    "Rosenbrock, rotated",
    "Ellipsoid, rotated",
    "Discus",
    "Bent cigar",
    "Sharp ridge",
    "Sum of different powers",
    "Rastrigin, rotated",
    "Weierstrass",
    "Schaffer F7, condition 10",
    "Schaffer F7, condition 1000",
    "Griewank-Rosenbrock F8F2",
    "Schwefel x sin(x)",
    "Gallagher, 101 peaks",
    "Gallagher, 21 peaks",
    "Katsuura",
    "Lunacek bi-Rastrigin",
)
_BBOB = (
    "Hansen, Finck, Ros, Auger: Real-parameter black-box optimization benchmarking 2009, noiseless functions (2009); "
    "Hansen et al.: COCO, a platform for comparing continuous optimizers (Optimization Methods and Software 36, 2021)"
)
_LARGESCALE = (
    "Varelas et al.: Benchmarking large-scale continuous optimizers, the bbob-largescale testbed, a COCO software "
    "guide and beyond (Applied Soft Computing 97, 2020)"
)


@dataclass(frozen=True)
class Suite:
    """A suite of COCO: its name there, its dimensions, the default dimension here, and where it is described."""

    name: str
    dims: tuple[int, ...]
    usual: int
    source: str


BBOB = Suite("bbob", (2, 3, 5, 10, 20, 40), 10, _BBOB)
LARGESCALE = Suite("bbob-largescale", (20, 40, 80, 160, 320, 640), 40, _LARGESCALE)


class SuiteFunction:
    """Values of rows for a problem of a suite. Only its identifiers are pickled; unpickling opens the problem again."""

    def __init__(self, suite: str, number: int, dim: int, index: int) -> None:
        self._named = (suite, number, dim, index)
        chosen = f"function_indices:{number} dimensions:{dim} instance_indices:{index}"
        self._suite = _cocoex().Suite(suite, "", chosen)  # kept, because the problem is freed with it
        self.problem: Any = self._suite[0]  #: COCO's own object

    def __call__(self, x: Array) -> Array:
        return np.array([self.problem(row) for row in np.ascontiguousarray(x)], dtype=np.float64)

    def __reduce__(self) -> tuple[type[SuiteFunction], tuple[str, int, int, int]]:
        return SuiteFunction, self._named


def make(suite: Suite, number: int, dim: int, seed: int) -> Problem:
    """Make function `number` of a suite, in the instance at place seed + 1."""
    if checks.whole_number("dim", dim) not in suite.dims:
        known = ", ".join(map(str, suite.dims))
        raise ValueError(f"dim must be one of {known} for the suite {suite.name}, got {dim}")
    index = _index(suite, number, dim, seed)
    rows = SuiteFunction(suite.name, number, dim, index)
    minimum, minimizer = _optimum(suite, number, dim, rows.problem.id_instance)
    return Problem(
        name=_maker_name(suite, number),
        description=_description(suite, number),
        source=suite.source,
        fun=OnPoint(rows),
        batch=rows,
        x0=np.array(rows.problem.initial_solution),
        sigma0=2.0,
        start_box=(-4.0, 4.0),
        minimum=minimum,
        minimizer=minimizer,
    )


def _index(suite: Suite, number: int, dim: int, seed: int) -> int:
    count = len(_cocoex().Suite(suite.name, "", f"function_indices:{number} dimensions:{dim}"))
    if checks.whole_number("seed", seed) >= count:
        raise ValueError(f"seed must be less than {count}, the number of instances in suite {suite.name}, got {seed}")
    return seed + 1


def _optimum(suite: Suite, number: int, dim: int, instance: int) -> tuple[float, Array | None]:
    # COCO gives the optimum of bbob only. The minimum values of both suites are the same: they depend on the function
    # and the instance, not on the dimension. The minimizers differ, and asking for 80 dimensions ends the process.
    twin = _cocoex().BareProblem("bbob", number, dim if suite is BBOB else 2, instance)
    return float(twin.best_value()), np.array(twin.best_parameter()) if suite is BBOB else None


def _cocoex() -> Any:
    return optional_module("cocoex", package="coco-experiment", extra="bench", who="the bbob problems")


def _maker_name(suite: Suite, number: int) -> str:
    return f"{suite.name.replace('-', '_')}_f{number}"


def _description(suite: Suite, number: int) -> str:
    return f"{_NAMES[number - 1]}: function {number} of COCO's suite {suite.name}."


def _maker(suite: Suite, number: int) -> Callable[..., Problem]:
    def maker(dim: int = suite.usual, *, seed: int = 0) -> Problem:
        return make(suite, number, dim, seed)

    maker.__name__ = maker.__qualname__ = _maker_name(suite, number)
    maker.__doc__ = _description(suite, number)
    return register(maker)


for _suite in (BBOB, LARGESCALE):
    for _number in range(1, len(_NAMES) + 1):
        globals()[_maker_name(_suite, _number)] = _maker(_suite, _number)  # pickle looks for it here
