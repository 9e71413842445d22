"""Presets: comparisons that have a name."""

from __future__ import annotations

from dataclasses import dataclass

_CHEAP = ("esgroup:diagonal", "esgroup:heisenberg:k1=4,k2=4", "esgroup:block_triangular:k=4")
_BBOB = tuple(range(1, 25))
_LARGE = (1, 2, 6, 8, 9, 10, 11, 12, 13, 14)  # on the others no method makes progress in a single run


@dataclass(frozen=True)
class Preset:
    """Arguments of a comparison, under the names of the command's options."""

    about: str
    problems: tuple[str, ...]
    methods: tuple[str, ...]
    dims: tuple[int, ...] = ()
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    targets: tuple[float, ...] | None = None
    max_evals: int | None = None
    max_time: float = 600.0
    reference: str | None = None


PRESETS = {
    "quick": Preset(
        "seven functions of ten variables, under two minutes",
        ("ellipsoid", "rotated_ellipsoid", "discus", "sharp_ridge", "rosenbrock", "rastrigin", "noisy_ellipsoid"),
        (
            "esgroup",
            "esgroup:diagonal",
            "esgroup:heisenberg:k1=4,k2=4",
            "cma",
            "cmaes",
            "bfgs",
            "bfgs-fd",
            "nelder-mead",
        ),
        dims=(10,),
    ),
    "paper": Preset(
        "Rosenbrock and Dixon-Price with 200 variables, as in the paper: search and Newton against cma and BFGS",
        ("rosenbrock", "dixon_price"),
        ("esgroup", *_CHEAP, "newton", "newton:heisenberg", "cma", "bfgs", "bfgs-fd"),
        dims=(200,),
        targets=(1e1, 1e0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-6),
        max_evals=1_000_000,
        max_time=1200.0,
    ),
    "bbob": Preset(
        "the 24 functions of the bbob suite, on instances that nothing here was tuned on",
        tuple(f"bbob_f{i}" for i in _BBOB),
        ("esgroup", "cma", "bfgs-fd"),
        dims=(5, 10, 20),
        seeds=(5, 6, 7, 8, 9),
    ),
    "largescale": Preset(
        "ten functions of the bbob-largescale suite, for structures that cost little",
        tuple(f"bbob_largescale_f{i}" for i in _LARGE),
        ("esgroup", *_CHEAP, "cma-vkd", "cma-diagonal", "cmaes-sep"),
        dims=(80, 160),
        seeds=(5, 6, 7, 8, 9),
        reference="cma-vkd",
    ),
    "spd": Preset(
        "functions of positive-definite matrices, searched themselves and through their logarithm and Cholesky factor",
        ("matrix_inversion", "metric_nearness", "covariance_selection", "nearest_correlation"),
        ("wishart", "esgroup@log", "esgroup@cholesky", "cma@log", "cma@cholesky", "bfgs@log"),
        dims=(3, 6, 10),
        seeds=(100, 101, 102, 103, 104),  # instances that nothing was tuned on
        targets=(1e1, 1e0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-6),
    ),
}
