"""Presets: named comparisons."""

from __future__ import annotations

from typing import Any, NamedTuple

_CHEAP = ("esgroup:diagonal", "esgroup:heisenberg:k1=4,k2=4", "esgroup:block_triangular:k=4")
_QUICK = ("ellipsoid", "rotated_ellipsoid", "discus", "sharp_ridge", "rosenbrock", "rastrigin", "noisy_ellipsoid")
_LARGE = (1, 2, 6, 8, 9, 10, 11, 12, 13, 14)  # on the others no method makes progress in a single run


class Preset(NamedTuple):
    """What a comparison is about, and its arguments: those of `plan.plan`."""

    about: str
    arguments: dict[str, Any]


PRESETS = {
    "quick": Preset(
        "seven functions of ten variables, under two minutes",
        {
            "problems": _QUICK,
            "methods": (
                *("esgroup", "esgroup:diagonal", "esgroup:heisenberg:k1=4,k2=4"),
                *("cma", "cmaes", "bfgs", "bfgs-fd", "nelder-mead"),
            ),
            "dims": (10,),
        },
    ),
    "paper": Preset(
        "Rosenbrock and Dixon-Price with 200 variables, as in the paper: search and Newton against cma and BFGS",
        {
            "problems": ("rosenbrock", "dixon_price"),
            "methods": ("esgroup", *_CHEAP, "newton", "newton:heisenberg", "cma", "bfgs", "bfgs-fd"),
            "dims": (200,),
            "targets": (1e1, 1e0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-6),
            "max_evals": 1_000_000,
            "max_time": 1200.0,
        },
    ),
    "bbob": Preset(
        "the 24 functions of the bbob suite, on instances that were not used for tuning",
        {
            "problems": tuple(f"bbob_f{i}" for i in range(1, 25)),
            "methods": ("esgroup", "cma", "bfgs-fd"),
            "dims": (5, 10, 20),
            "seeds": (5, 6, 7, 8, 9),
        },
    ),
    "largescale": Preset(
        "ten functions of the bbob-largescale suite, for cheap structures",
        {
            "problems": tuple(f"bbob_largescale_f{i}" for i in _LARGE),
            "methods": ("esgroup", *_CHEAP, "cma-vkd", "cma-diagonal", "cmaes-sep"),
            "dims": (80, 160),
            "seeds": (5, 6, 7, 8, 9),
            "reference": "cma-vkd",
        },
    ),
    "spd": Preset(
        "functions of positive-definite matrices, searched directly and through their logarithm and Cholesky factor",
        {
            "problems": ("matrix_inversion", "metric_nearness", "covariance_selection", "nearest_correlation"),
            "methods": ("wishart", "esgroup@log", "esgroup@cholesky", "cma@log", "cma@cholesky", "bfgs@log"),
            "dims": (3, 6, 10),
            "seeds": (100, 101, 102, 103, 104),  # instances not used for tuning
            "targets": (1e1, 1e0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-6),
        },
    ),
}
