"""Histories of all kinds: vectors, restarts, constraints, matrices, names, many coordinates, no values."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import NonlinearConstraint

import esgroup
from esgroup.running.history import HistoryFile
from esgroup.space import Choice, Integer, Real

LONG = "a <b>very</b> long name of a parameter " + "which goes on " * 4


def sphere(x: Any) -> float:
    return float((np.asarray(x) ** 2).sum())


def bumps(x: Any) -> float:
    return float(10 * len(x) + (x * x - 10 * np.cos(2 * np.pi * x)).sum())


def network(parameters: dict[str, Any]) -> float:
    return float((np.log10(parameters["rate"]) + 3) ** 2 + (parameters["layers"] - 3) ** 2)


def searched(fun: Callable[..., Any], x0: Any, *given: Any, **options: Any) -> Callable[[Path], Any]:
    return lambda path: esgroup.minimize(fun, x0, *given, rng=1, history=HistoryFile(path, "a <problem>"), **options)


NAMED = esgroup.Space(
    {"rate": Real(1e-5, 1.0, log=True), "layers": Integer(1, 8), "kind": Choice("relu", "tanh"), LONG: Real(0.0, 1.0)}
)
AT_LEAST_8 = NonlinearConstraint(lambda x: [x.sum()], 8.0, np.inf)
KINDS: dict[str, Callable[[Path], Any]] = {
    "vector": searched(sphere, np.ones(5), 0.5, max_evals=600, target=1e-30),
    "negative": searched(lambda x: sphere(x) - 1000.0, np.ones(3), 0.5, max_evals=300),
    "restarts": searched(bumps, np.full(3, 3.0), 1.0, max_evals=3000, restarts="ipop"),
    "constraints": searched(sphere, np.zeros(3), 0.3, max_evals=600, constraints=AT_LEAST_8),
    "spd": searched(lambda x: sphere(x - np.diag([1.0, 2.0])), np.eye(2), space="spd", max_evals=400),
    "matrix": searched(sphere, np.ones((2, 3)), 0.5, space="matrix", max_evals=300),
    "space": searched(network, NAMED, max_evals=300),
    "basins": searched(sphere, np.ones(2), 0.5, basins=2, max_evals=200),
    "large": searched(sphere, np.ones(300), 0.5, structure="diagonal", max_iters=30, max_time=1e6),
    "nothing": searched(lambda x: float("nan"), np.ones(2), 0.5, max_iters=3),
    "one": searched(sphere, [1.0], 0.5, max_iters=1),
}


def without_end(path: Path, keep: int | None = None) -> None:
    """Make the history one of a search that still runs, after so many generations."""
    lines = path.read_text(encoding="utf-8").splitlines()[: None if keep is None else keep + 1]
    path.write_text(
        "".join(line.partition(', "end": ')[0].removesuffix("}") + "}\n" for line in lines), encoding="utf-8"
    )
