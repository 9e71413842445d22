"""What a type checker says of a user's script: where a line must be refused it says so, and mypy sees that it is.

mypy runs on this file in strict mode (pyproject.toml), where an ignore that hides no error is an error itself.
"""

from typing import assert_type

import numpy as np

import esgroup
from esgroup.newton import NewtonSettings
from esgroup.running.result import SearchResult


def sphere(x: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    return float(x @ x)


def right() -> None:
    search = esgroup.Searcher(np.zeros(3), 0.5, structure="full", noise="adapt", decoding=False, rng=1)
    assert_type(search.result, SearchResult)
    assert_type(search.result.fun, float)
    assert_type(search.result.stop, dict[str, str])
    result = esgroup.minimize(sphere, np.zeros(3), 0.5, restarts="bipop", step_size="tpa")
    assert_type(result.nfev, int)
    esgroup.minimize(sphere, np.zeros(3), method="newton", jac=sphere, newton=NewtonSettings(line_search="none"))


def wrong() -> None:
    esgroup.Searcher(np.zeros(3), strcture="full")  # type: ignore[call-arg]
    esgroup.Searcher(np.zeros(3), noise="adap")  # type: ignore[arg-type]
    esgroup.Searcher(np.zeros(3), step_size="tap")  # type: ignore[arg-type]
    esgroup.minimize(sphere, np.zeros(3), strcture="full")  # type: ignore[call-arg]
    esgroup.minimize(sphere, np.zeros(3), noise="adap")  # type: ignore[arg-type]
    esgroup.minimize(sphere, np.zeros(3), method="newtn")  # type: ignore[arg-type]
    esgroup.minimize(sphere, np.zeros(3), restarts="ipo")  # type: ignore[arg-type]
    NewtonSettings(line_serch="none")  # type: ignore[call-arg]
    NewtonSettings(line_search="armjo")  # type: ignore[arg-type]
    esgroup.minimise(sphere, np.zeros(3))  # type: ignore[attr-defined]
