"""The figure docs/model.png: best values over evaluations, with and without a quadratic model, beside cma and COBYQA.

    python scripts/figure_model.py [--out model.png]        four minutes; needs matplotlib and cma

Medians and quartiles of five random starts, the same for all methods, on three problems of the zoo. The minimum that
is known of lynx_hare is the best value that any method has found.
"""
# extras: compare

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import typer

import esgroup
import esgroup_problems as zoo
from esgroup.plots.style import check_out, new_figure

OUT = Path(__file__).parents[1] / "docs" / "model.png"
PROBLEMS = {  # dimension and title
    "rosenbrock": (10, "Rosenbrock, 10 variables"),
    "rotated_ellipsoid": (10, "rotated ellipsoid, 10 variables"),
    "lynx_hare": (6, "an ODE fitted to data, 6 variables"),
}
COLORS = {"with a model": "#d1495b", "without": "#2a7f9e", "cma": "#8c6d46", "COBYQA": "#7a7a7a"}
LOWEST = 1e-9


class Enough(Exception):
    """The budget is spent."""


class Watched:
    """A function whose best value after every evaluation is kept."""

    def __init__(self, fun: Callable[[np.ndarray], float], budget: int) -> None:
        self.fun, self.budget = fun, budget
        self.best: list[float] = []

    def __call__(self, x: Any) -> float:
        if len(self.best) >= self.budget:
            raise Enough
        value = float(self.fun(np.asarray(x)))
        self.best.append(min(value, self.best[-1]) if self.best else value)
        return value

    def curve(self) -> np.ndarray:
        """The best values, the last of which stays."""
        return np.pad(np.array(self.best), (0, self.budget - len(self.best)), mode="edge")


def search(method: str, fun: Watched, x0: np.ndarray, sigma0: float, seed: int) -> None:
    """Run a method until it stops or its budget is spent."""
    if method in ("with a model", "without"):
        model = "quadratic" if method == "with a model" else None
        esgroup.minimize(fun, x0, sigma0, model=model, max_evals=fun.budget, rng=seed)
    elif method == "cma":
        import cma

        cma.fmin2(fun, x0, sigma0, {"maxfevals": fun.budget, "verbose": -9, "verb_log": 0, "seed": seed + 1})
    else:
        from scipy.optimize import minimize

        minimize(fun, x0, method="COBYQA", options={"initial_tr_radius": sigma0, "maxfev": fun.budget})


def curves(name: str, dim: int, method: str, budget: int, seeds: int = 5) -> np.ndarray:
    """Gaps (seeds, budget): best values above the minimum."""
    problem = zoo.get(name, dim=dim)
    found = []
    for seed in range(seeds):
        fun = Watched(problem.fun, budget)
        with suppress(Enough):
            search(method, fun, problem.start(np.random.default_rng([5, seed])), float(problem.sigma0), seed)
        found.append(fun.curve() - problem.minimum)
    return np.maximum(np.array(found), LOWEST)


def draw(out: Path, budget: int = 300) -> None:
    """Draw one panel for each problem; the budget is for each variable."""
    figure = new_figure(11.4, 4.2)
    for axes, (name, (dim, title)) in zip(figure.subplots(1, len(PROBLEMS)), PROBLEMS.items(), strict=True):
        for method, color in COLORS.items():
            gaps = curves(name, dim, method, budget * dim)
            evaluations = np.arange(1, gaps.shape[1] + 1)
            low, middle, high = np.quantile(gaps, [0.25, 0.5, 0.75], axis=0)
            axes.fill_between(evaluations, low, high, color=color, alpha=0.15, linewidth=0)
            axes.plot(evaluations, middle, color=color, linewidth=1.7, label=method)
            good = f"1e-6 after {int((middle <= 1e-6).argmax()) + 1} evaluations" if middle[-1] <= 1e-6 else "not 1e-6"
            print(f"{name}, {method}: {good}, {middle[-1]:.2g} in the end")
        axes.set(yscale="log", xscale="log", ylim=(LOWEST, None), xlim=(dim, budget * dim), xlabel="evaluations")
        axes.set_title(title, loc="left", fontsize=10, color="#222222")
        axes.tick_params(colors="#555555", labelsize=9)
        axes.spines[:].set_color("#888888")
    figure.axes[0].set_ylabel("best value above the minimum")
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False, fontsize=10)
    figure.savefig(out, dpi=150)


def main(out: Path = OUT) -> None:
    """Search and draw."""
    path = check_out(out)
    draw(path)
    print(f"figure {path.name}")


if __name__ == "__main__":
    typer.run(main)
