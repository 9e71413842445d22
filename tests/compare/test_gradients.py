"""Methods with gradients and products with the Hessian: their counts, what they are given, and what they refuse."""

import math
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from typer.testing import CliRunner

from esgroup.command.cli import app
from esgroup.compare import execution, records
from esgroup.compare.charts import Logarithm
from esgroup.compare.execution import Settings, execute, prepare
from esgroup.compare.methods import choose
from esgroup.compare.methods.with_scipy import minimize as scipys
from esgroup.compare.plan import plan
from esgroup.compare.presets import PRESETS
from esgroup.compare.records import Cell, Cost, Ended
from esgroup.compare.trial import Recorder, Trial
from esgroup.newton import minimize_newton
from esgroup.problem_registry import Task, find
from tests.compare.test_execution import NEVER, ODD, USUAL, start

SCIPYS = {"newton-cg": ("Newton-CG", {"xtol": 1e-15}), "trust-krylov": ("trust-krylov", {"gtol": 1e-11})}
ENDLESS = 10**9


class Reached(BaseException):
    """The value is as low as it should be."""


class Counted:
    """The functions of a problem, their calls, and the first call with a value at most so low, perhaps the last."""

    def __init__(self, task: Any, below: float = 1e-8, ends: bool = False) -> None:
        self.task, self.below, self.ends, self.hit = task, below, ends, math.inf
        self.values = self.gradients = self.products = self.diagonals = 0

    @property
    def derivatives(self) -> int:
        return self.gradients + self.products + self.diagonals

    def fun(self, x: np.ndarray) -> float:
        self.values += 1
        value = self.task.fun(x)
        if value <= self.below:
            self.hit = min(self.hit, self.values + self.derivatives)
            if self.ends:
                raise Reached
        return value

    def gradient(self, x: np.ndarray) -> np.ndarray:
        self.gradients += 1
        return self.task.gradient(x)

    def product(self, x: np.ndarray, v: np.ndarray) -> np.ndarray:
        self.products += 1
        return self.task.hessian_product(x, v)

    def diagonal(self, x: np.ndarray) -> np.ndarray:
        self.diagonals += 1
        return self.task.hessian_diagonal(x)


def trial_of(cell: Cell) -> tuple[Trial, Recorder]:
    stage = prepare(cell, choose(cell.method), USUAL)
    recorder = execution._recorder(stage, NEVER)
    return recorder.trial(stage.x0, stage.sigma0, stage.bounds, stage.box, cell.seed), recorder


def made(monkeypatch: pytest.MonkeyPatch, task: Task) -> None:
    monkeypatch.setattr(execution, "find", lambda *_, **__: task)


# ---- counts ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("structure", [None, "diagonal", "heisenberg:k1=2,k2=1", "moving:k=3", "moving:k=2,residual"])
def test_the_counts_of_newton_are_those_of_a_direct_call(structure: str | None) -> None:
    cell = Cell("dixon_price", 8, "newton" if structure is None else f"newton:{structure}", 3)
    direct = Counted(find("dixon_price", 8))
    found = minimize_newton(
        direct.fun,
        start(cell),
        jac=direct.gradient,
        hessp=direct.product,
        hess_diag=direct.diagonal,
        gtol=1e-11,
        max_iters=ENDLESS,
        rng=3,
        **({} if structure is None else {"structure": structure}),  # the default is that of minimize_newton
    )
    ours = execute(cell, NEVER)
    assert ours.ended is Ended.STOPPED and ours.message == found.message and ours.cost is Cost.GRADIENTS
    assert (ours.evals, ours.gradients) == (found.nfev, found.njev + found.nhvp + found.ndiag)
    assert (ours.evals, ours.gradients) == (direct.values, direct.derivatives)
    assert min(direct.gradients, direct.diagonals, direct.products + (structure == "diagonal")) > 0
    assert execute(cell, USUAL).hits[-1] == direct.hit < ours.used


@pytest.mark.parametrize("problem", ["rosenbrock", "dixon_price"])
@pytest.mark.parametrize("name", list(SCIPYS))
def test_the_counts_of_scipys_newton_methods_are_those_of_a_direct_call(name: str, problem: str) -> None:
    cell, direct, (method, options) = (
        Cell(problem, 8, name, 3),
        Counted(find(problem, 8), 1e-12, ends=True),
        SCIPYS[name],
    )
    with pytest.raises(Reached):
        minimize(direct.fun, start(cell), jac=direct.gradient, hessp=direct.product, method=method, options=options)
    ours = execute(cell, Settings((1e-12,)))
    assert ours.ended is Ended.TARGET and ours.cost is Cost.GRADIENTS
    assert (ours.evals, ours.gradients) == (direct.values, direct.derivatives)
    assert direct.products > 10 and direct.gradients > 5 and direct.diagonals == 0


def test_scipys_newton_methods_do_not_end_before_the_target() -> None:
    for name, (method, tolerance) in SCIPYS.items():
        run = choose(name).method.run
        assert isinstance(run, partial) and run.func is scipys and run.keywords["method"] == method
        assert run.keywords.items() >= {**tolerance, "maxiter": ENDLESS}.items()


def test_no_iteration_is_too_many() -> None:
    """Our usual limit of 200 for every coordinate does not end a run."""
    run = execute(Cell("rosenbrock", 2, "newton:diagonal", 0), Settings((1e-3,), max_evals=20_000))
    direct = Counted(find("rosenbrock", 2))
    found = minimize_newton(
        direct.fun, start(run.cell), jac=direct.gradient, hessp=direct.product, structure="diagonal",
        hess_diag=direct.diagonal, gtol=0.0, target=1e-3, max_iters=ENDLESS,
    )  # fmt: skip
    assert found.nit > 2 * 200 and run.solved


# ---- what a trial has -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("problem", "method"), [("rosenbrock", "newton"), ("kronecker_ellipsoid", "newton")])
def test_products_and_diagonals_are_those_of_the_coordinates(problem: str, method: str) -> None:
    """Against differences of the trial's own gradients; matrices are flat here."""
    trial, recorder = trial_of(Cell(problem, 3, method, 1))
    x, eye, h = trial.x0, np.eye(len(trial.x0)), 1e-5
    assert trial.gradient is not None and trial.product is not None and trial.diagonal is not None
    hessian = np.array([(trial.gradient(x + h * e) - trial.gradient(x - h * e)) / (2 * h) for e in eye])
    size, v = np.abs(hessian).max(), np.arange(1.0, 1 + len(x))
    assert recorder.gradients == 2 * len(x)
    np.testing.assert_allclose(trial.product(x, v), hessian @ v, atol=1e-6 * size * len(x) ** 2)
    np.testing.assert_allclose(trial.diagonal(x), np.diag(hessian), atol=1e-6 * size)
    assert recorder.gradients == 2 * len(x) + 2 and recorder.evals == 0


def test_in_the_space_itself_they_have_the_shape_of_a_point() -> None:
    cell, task = Cell("kronecker_ellipsoid", 3, "matrix-gaussian", 1), find("kronecker_ellipsoid", 3, seed=1)
    trial, _ = trial_of(cell)
    v = np.arange(9.0).reshape(3, 3)
    assert trial.product is not None and trial.diagonal is not None
    np.testing.assert_array_equal(trial.product(trial.x0, v), task.hessian_product(trial.x0, v))
    np.testing.assert_array_equal(trial.diagonal(trial.x0), task.hessian_diagonal(trial.x0))


@pytest.mark.parametrize("chart", ["log", "cholesky"])
def test_coordinates_that_bend_have_a_gradient_only(chart: str, monkeypatch: pytest.MonkeyPatch) -> None:
    task = find("covariance_selection", 3)
    assert task.hessian_product is not None
    made(monkeypatch, replace(task, hessian_diagonal=np.ones_like))
    trial, _ = trial_of(Cell("covariance_selection", 3, f"newton@{chart}", 1))
    assert trial.gradient is not None and trial.product is None and trial.diagonal is None


def test_what_a_problem_has_not_is_not_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    own = Task("own", np.sum, np.ones(3), 0.5, gradient=np.ones_like, hessian_product=lambda x, v: 0 * v)
    made(monkeypatch, own)
    trial, _ = trial_of(Cell("own", 3, "newton", 1))
    assert trial.product is not None and trial.diagonal is None
    made(monkeypatch, Task("own", np.sum, np.ones(3), 0.5, gradient=np.ones_like, hessian_diagonal=np.zeros_like))
    trial, _ = trial_of(Cell("own", 3, "newton", 1))
    assert trial.product is None and trial.diagonal is not None


# ---- differences of gradients ---------------------------------------------------------------------------------------


def test_newton_in_a_chart_is_a_direct_call_with_differences_of_gradients() -> None:
    """With 15 coordinates, whose diagonal is estimated at random."""
    cell = Cell("covariance_selection", 5, "newton@log", 2)
    task, chart = find("covariance_selection", 5, seed=2), Logarithm((5, 5))
    values, gradients = [], []

    def fun(x: np.ndarray) -> float:
        values.append(task.fun(chart.points(x)))
        return values[-1]

    def jac(x: np.ndarray) -> np.ndarray:
        gradients.append(chart.pull_back(x, task.gradient(chart.points(x))))
        return gradients[-1]

    minimize_newton(fun, start(cell), jac=jac, gtol=1e-11, max_iters=ENDLESS, rng=2)
    ours = execute(cell, NEVER)
    assert (ours.evals, ours.gradients) == (len(values), len(gradients)) and ours.cost is Cost.GRADIENTS
    assert ours.best == min(values) and execute(cell, Settings((1e-2, 1e-6))).solved


@pytest.mark.parametrize(("name", "slack"), [("newton-cg", 1e-5), ("trust-krylov", 1e-7)])
def test_without_products_scipys_methods_take_two_gradients_for_one(
    name: str, slack: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a quadratic function they go the same way as with products."""
    curvatures = np.array([1.0, 3.0, 10.0, 40.0])
    with_products = Task(
        "own", lambda x: float(x @ (curvatures * x)) / 2, np.ones(4), 0.5, minimum=0.0,
        gradient=lambda x: curvatures * x, hessian_product=lambda x, v: curvatures * v,
    )  # fmt: skip
    cell, settings = Cell("own", 4, name, 1), Settings((1e-3,), starts="default")
    made(monkeypatch, with_products)
    given = execute(cell, settings)
    made(monkeypatch, replace(with_products, hessian_product=None))
    differences = execute(cell, settings)
    assert given.solved and differences.solved and differences.evals == given.evals
    assert given.gradients < differences.gradients <= 2 * given.gradients
    assert differences.best == pytest.approx(given.best, abs=slack)


def test_newton_methods_reach_the_target_in_charts() -> None:
    for method in ("newton@cholesky", "newton:moving:k=3@log", "newton-cg@log", "trust-krylov@cholesky"):
        run = execute(Cell("metric_nearness", 3, method, 1), Settings((1e-2, 1e-6)))
        assert run.solved and run.cost is Cost.GRADIENTS, run


# ---- plans ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["newton", "newton:diagonal", "newton-cg", "trust-krylov"])
@pytest.mark.parametrize("problem", [f"{ODD}:sphere", "noisy_sphere"])
def test_a_problem_without_gradient_is_refused_by_what_needs_it(name: str, problem: str) -> None:
    message = f"^{name} needs the gradient; {problem} has none$"
    with pytest.raises(ValueError, match=message):
        plan([problem], [3], ["cma", name])
    run = execute(Cell(problem, 3, name, 0), USUAL)
    assert run.ended is Ended.ERROR and run.message == f"ValueError: {name} needs the gradient; {problem} has none"
    assert plan([problem], [3], ["bfgs"]).methods == ("bfgs",)  # which takes differences of values


@pytest.mark.parametrize(
    "structure", ["diagonal", "heisenberg:k1=5,k2=5", "moving", "moving:k=10", "moving:k=5,residual", "full"]
)
def test_the_structures_of_newton_are_groups_and_the_moving_block(structure: str) -> None:
    assert plan(["rosenbrock"], [10], [f"newton:{structure}"]).methods == (f"newton:{structure}",)


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ("newton:hiesenberg", r"unknown structure 'hiesenberg' \(did you mean 'heisenberg'\?\).*, and moving"),
        ("newton:moving:k=0", "k must be an integer >= 1, got 0"),
        ("newton:moving:j=3", "'j=3' in structure 'moving:j=3' is not recognized"),
        ("newton:heisenberg:k1=5,k2=6", "k1"),
        ("esgroup:moving:k=4", "unknown structure 'moving'"),
        ("newton-cg:diagonal", "the method newton-cg has no structures"),
    ],
)
def test_other_structures_are_refused(method: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        plan(["rosenbrock"], [10], [method])


def test_our_searches_may_still_choose_their_structure() -> None:
    assert plan(["rosenbrock"], [10], ["esgroup:auto"]).methods == ("esgroup:auto",)


def test_the_preset_of_the_paper_has_newton_methods() -> None:
    methods = PRESETS["paper"].arguments["methods"]
    assert {"esgroup", "newton", "newton:heisenberg", "cma", "bfgs", "bfgs-fd"} <= set(methods)
    assert "Newton" in PRESETS["paper"].about


def test_newton_counts_gradients() -> None:
    for name in ("newton", "newton:diagonal", "newton-cg", "trust-krylov"):
        assert choose(name).method.counts(has_gradient=True) is Cost.GRADIENTS


def test_loading_has_a_whole_iteration_of_every_structure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Products for the full structure are more than the usual evaluations of loading."""
    ended, searched = [], execution._searched
    monkeypatch.setattr(execution, "_searched", lambda *them: ended.append(searched(*them)))
    execution._warm_up.__wrapped__("newton:full", (100,))
    assert ended[0][0] is Ended.STOPPED and ended[0][1].startswith("gtol")


# ---- the command ----------------------------------------------------------------------------------------------------


def test_the_command_from_end_to_end(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    pytest.importorskip("jinja2")
    names, out = "newton,newton:moving:k=4,newton-cg,bfgs", tmp_path / "out"
    command = ["compare", "rosenbrock", "--dims", "10", "--methods", names, "--seeds", "1", "--out", str(out)]
    result = CliRunner().invoke(app, [*command, "--jobs", "1"])
    assert result.exit_code == 0, result.output
    runs = records.read(out / "runs.csv")
    assert sorted(run.method for run in runs) == sorted(names.split(","))
    assert all(run.ended is Ended.TARGET and run.gradients > 0 and run.cost is Cost.GRADIENTS for run in runs)
    assert {run.cell: run.hits for run in runs} == {run.cell: execute(run.cell, Settings()).hits for run in runs}
    said = "product of the Hessian with a vector, or its diagonal, counts as one gradient"
    assert "| newton:moving:k=4¹ |" in result.output
    for file in ("table.md", "index.html"):
        assert said in (out / file).read_text()


def test_the_command_refuses_a_problem_without_gradient(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["compare", "noisy_sphere", "--methods", "newton,cma"])
    assert result.exit_code == 2 and result.stderr == "error: newton needs the gradient; noisy_sphere has none\n"
    assert list(tmp_path.iterdir()) == []
