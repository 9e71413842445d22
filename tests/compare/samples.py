"""Runs written out by hand, for tests."""

import math

from esgroup.compare.records import Cost, Ended, Improvement, RunRecord


def run(**more: object) -> RunRecord:
    """A run that has reached both of its targets; any field may be another."""
    fields: dict[str, object] = {
        "problem": "sphere",
        "dim": 3,
        "method": "cma",
        "seed": 0,
        "ended": Ended.TARGET,
        "message": "",
        "evals": 40,
        "gradients": 0,
        "size": 3,
        "best": 0.5,
        "minimum": 0.0,
        "cost": Cost.VALUES,
        "cpu": 0.004,
        "cpu_fun": 0.001,
        "versions": "cma 4.5.0",
        "targets": (10.0, 1.0),
        "hits": (7.0, 40.0),
        "trajectory": (Improvement(1, 0, 12.0), Improvement(7, 0, 1 / 3 + 5), Improvement(40, 0, 0.5)),
    }
    return RunRecord(**(fields | more))  # type: ignore[arg-type]


def failure(message: str, **more: object) -> RunRecord:
    """A run that went wrong before its first value."""
    nothing = {"evals": 0, "best": math.inf, "minimum": math.nan, "hits": (math.inf, math.inf), "trajectory": ()}
    return run(ended=Ended.ERROR, message=message, **{**nothing, **more})
