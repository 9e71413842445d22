"""Invalid arguments are refused by name before anything is computed."""

import numpy as np
import pytest

from esgroup.groups import Diagonal
from esgroup.newton import Exponential, Inverse, Linear, minimize_newton
from tests.newton.reference import cosh

DIM = 6
X0 = np.zeros(DIM)


def solve(**given):
    function = cosh(DIM)
    known = {"fun": function.fun, "x0": X0, "jac": function.jac, "hess": function.hess}
    return minimize_newton(**known | {"structure": "heisenberg"} | given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"x0": np.zeros((2, 3))}, r"x0 must have shape \(n,\), got \(2, 3\)"),
        ({"x0": 1.0}, r"x0 must have shape \(n,\)"),
        ({"x0": []}, "x0 must have at least one variable"),
        ({"x0": [0.0, np.nan]}, "x0 must be finite, got nan at index 1"),
        ({"jac": None}, "jac must be given.*None"),
        ({"jac": False}, "jac must be given.*False"),
        ({"jac": lambda x: np.zeros(3)}, r"jac\(x\) must have shape \(6,\), got \(3,\)"),
        ({"hess": lambda x: np.zeros((6, 2))}, r"hess\(x\) must have shape \(6, 6\), got \(6, 2\)"),
        ({"hess": None, "hessp": lambda x, v: v[:2]}, r"hessp\(x, v\) must have shape \(6,\), got \(2,\)"),
        ({"hess": None, "hess_diag": lambda x: x[:2]}, r"hess_diag\(x\) must have shape \(6,\), got \(2,\)"),
        ({"fun": lambda x: x}, r"fun\(x\) must be a real number"),
        ({"structure": "fulll"}, "structure 'fulll'.*'full'.*moving"),
        ({"structure": "moving:k=0"}, "k must be an integer >= 1, got 0"),
        ({"structure": Diagonal(5)}, "structure must have dimension 6"),
        ({"form": "both"}, "form must be 'precision' or 'covariance', got 'both'"),
        ({"structure": "moving", "form": "covariance"}, "form must be 'precision'.*moving.*'covariance'"),
        ({"structure": "moving", "rate": 0.5}, "rate must be left out.*moving.*0.5"),
        ({"structure": "moving", "precision0": 2.0}, "precision0 must be left out.*2.0"),
        ({"structure": "moving", "clip": None}, "clip must be left out.*None"),
        ({"structure": "moving", "absolute": False}, "absolute must be left out.*False"),
        ({"rate": 0.0}, "rate must be a positive finite number, got 0.0"),
        ({"mean_rate": -1.0}, "mean_rate must be a positive"),
        ({"momentum": 1.0}, "momentum must be at least 0 and below 1, got 1.0"),
        ({"line_search": "wolfe"}, "line_search must be 'none' or 'armijo', got 'wolfe'"),
        ({"clip": 0.0}, "clip must be a positive"),
        ({"damping": -1.0}, "damping must be at least 0"),
        ({"damping_decay": 1.5}, "damping_decay must be at least 0 and below 1"),
        ({"precision0": 0.0}, "precision0 must be a positive"),
        ({"gtol": -1.0}, "gtol must be at least 0"),
        ({"schedule": "cosine"}, "schedule must be 'constant', 'linear', 'inverse', 'exponential', a RateSchedule or"),
        ({"schedule": "linear"}, "give max_iters="),
        ({"schedule": lambda t: -1.0}, r"schedule\(t\) must be a positive"),
        ({"max_iters": 0}, "max_iters must be an integer >= 1"),
    ],
)
def test_invalid_values_are_refused(given: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        solve(**given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"structure": 3}, "structure must be a group or a spelling"),
        ({"absolute": 1}, "absolute must be True or False"),
        ({"callback": 3}, "callback must be a function"),
        ({"fun": 3}, "fun must be a function, got 3"),
        ({"progress": "yes"}, "progress must be True or False"),
    ],
)
def test_arguments_of_the_wrong_type_are_refused(given: dict, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        solve(**given)


@pytest.mark.parametrize(
    "make", [lambda: Linear(0), lambda: Linear(5, last=0.0), lambda: Inverse(0.0), lambda: Exponential(1.0)]
)
def test_invalid_schedules_are_refused(make) -> None:
    with pytest.raises(ValueError, match="must be"):
        make()
