"""What a type checker says of a user's script: where a line must be refused it says so, and mypy sees that it is.

mypy runs on this file in strict mode (pyproject.toml), where an ignore that hides no error is an error itself.
"""

from typing import Any, assert_type

import numpy as np
from scipy.optimize import NonlinearConstraint

import esgroup
from esgroup import Choice, Integer, Real
from esgroup.newton import NewtonSettings
from esgroup.running.result import SearchResult
from esgroup.stopping import MaxEvals, TolFun, TolX


def sphere(x: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    return float(x @ x)


def loss(parameters: dict[str, Any]) -> float:
    return float(parameters["rate"] * parameters["depth"])


def narrow(search: esgroup.Searcher) -> bool:
    return bool(search.stds.max() < 1e-3)


def right() -> None:
    search = esgroup.Searcher(np.zeros(3), 0.5, structure="full", noise="adapt", decoding=False, rng=1)
    assert_type(search.result, SearchResult)
    assert_type(search.result.fun, float)
    assert_type(search.result.stop, dict[str, str])
    result = esgroup.minimize(sphere, np.zeros(3), 0.5, restarts="bipop", step_size="tpa")
    assert_type(result.nfev, int)
    esgroup.minimize(sphere, np.zeros(3), 0.5, stop=[TolX(1e-3), narrow, TolFun(1e-3) & narrow | MaxEvals(100)])
    esgroup.Searcher(np.zeros(3), 0.5, stop=narrow)
    limit = NonlinearConstraint(lambda x: x[0] * x[1], 1.0, np.inf)
    limited = esgroup.minimize(sphere, np.ones(3), 0.5, bounds=(0, 9), constraints=[limit], constraint_tol=1e-8)
    if isinstance(limited, SearchResult):
        assert_type(limited.feasible, bool)
        assert_type(limited.constr_violation, float)
    constrained = esgroup.Searcher(np.ones(3), 0.5, constraints=2, equalities=[1])
    X = constrained.ask()
    constrained.tell([sphere(x) for x in X], constraints=[[1 - x[0], x[1] - x[2]] for x in X])
    space = esgroup.Space({"rate": Real(1e-3, 1.0, log=True), "depth": Integer(1, 9), "kind": Choice("a", "b")})
    named = esgroup.minimize(loss, space, constraints={"type": "ineq", "fun": lambda p: p["rate"] - 0.01})
    assert_type(named.fun, float)
    esgroup.minimize(sphere, np.zeros(3), method="newton", jac=sphere, newton=NewtonSettings(line_search="none"))


def wrong() -> None:
    esgroup.Searcher(np.zeros(3), strcture="full")  # type: ignore[call-arg]
    esgroup.Searcher(np.zeros(3), noise="adap")  # type: ignore[arg-type]
    esgroup.Searcher(np.zeros(3), step_size="tap")  # type: ignore[arg-type]
    esgroup.minimize(sphere, np.zeros(3), strcture="full")  # type: ignore[call-arg]
    esgroup.minimize(sphere, np.zeros(3), noise="adap")  # type: ignore[arg-type]
    esgroup.minimize(sphere, np.zeros(3), method="newtn")  # type: ignore[arg-type]
    esgroup.minimize(sphere, np.zeros(3), constraint_tol="small")  # type: ignore[arg-type]
    esgroup.Searcher(np.zeros(3), constraints="two")  # type: ignore[arg-type]
    esgroup.minimize(sphere, np.zeros(3), stop=1e-3)  # type: ignore[arg-type]
    esgroup.minimize(sphere, np.zeros(3), restarts="ipo")  # type: ignore[arg-type]
    NewtonSettings(line_serch="none")  # type: ignore[call-arg]
    NewtonSettings(line_search="armjo")  # type: ignore[arg-type]
    esgroup.minimise(sphere, np.zeros(3))  # type: ignore[attr-defined]
