"""One run: the counts are those of the methods called directly, and what goes wrong is in the record."""

import math
from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pytest
from scipy.optimize import minimize

import esgroup
from esgroup.compare.execution import (
    EVALS_PER_COORDINATE,
    TARGETS,
    Settings,
    execute,
    failed,
    installed,
    prepare,
    targets_of,
)
from esgroup.compare.methods import choose, known
from esgroup.compare.records import Cell, Cost, Ended, RunRecord
from esgroup.problem_registry import Task, find

ODD = "tests.compare.oddities"
NEVER = Settings(targets=(-1e300,), max_evals=100_000)  # below every value: the methods stop by themselves
USUAL = Settings(targets=(1e1, 1e-2, 1e-8))


class Counter:
    """A function that counts and notes when it was first at most so low."""

    def __init__(self, fun, below: float) -> None:
        self.fun, self.below, self.count, self.hit = fun, below, 0, math.inf

    def __call__(self, x: np.ndarray) -> float:
        self.count += 1
        value = self.fun(x)
        if value <= self.below:
            self.hit = min(self.hit, self.count)
        return value


def start(cell: Cell) -> np.ndarray:
    return prepare(cell, choose(cell.method), USUAL).x0


@pytest.mark.skipif(find_spec("cma") is None, reason="cma is not installed")
def test_the_counts_of_cma_are_its_own() -> None:
    import cma

    cell = Cell("rosenbrock", 4, "cma", 3)
    ours = execute(cell, NEVER)
    fun = Counter(find("rosenbrock", 4).fun, 1e-8)
    _, search = cma.fmin2(fun, start(cell), find("rosenbrock", 4).sigma0, {"seed": 4, "verbose": -9})
    assert ours.ended is Ended.STOPPED and ours.message.startswith("cma: tol")
    assert ours.evals == search.result.evaluations == fun.count
    assert execute(cell, USUAL).hits[-1] == fun.hit < fun.count


def test_the_counts_of_bfgs_are_scipys() -> None:
    cell, problem = Cell("rosenbrock", 6, "bfgs", 2), find("rosenbrock", 6)
    ours = execute(cell, NEVER)
    fun = Counter(problem.fun, 1e-8)
    theirs = minimize(fun, start(cell), jac=problem.gradient, method="BFGS", options={"gtol": 1e-11})
    assert ours.cost is Cost.GRADIENTS
    assert (ours.evals, ours.gradients) == (theirs.nfev, theirs.njev) == (fun.count, theirs.njev)
    assert ours.gradients > 10


def test_bfgs_by_differences_counts_every_value() -> None:
    cell, problem = Cell("rosenbrock", 6, "bfgs-fd", 2), find("rosenbrock", 6)
    ours = execute(cell, NEVER)
    fun = Counter(problem.fun, 1e-8)
    theirs = minimize(fun, start(cell), method="BFGS", options={"gtol": 1e-11})
    assert ours.cost is Cost.DIFFERENCES and ours.gradients == 0
    assert ours.evals == theirs.nfev == fun.count
    assert execute(cell, USUAL).hits[-1] == fun.hit


def test_bfgs_takes_differences_where_there_is_no_gradient() -> None:
    run = execute(Cell(f"{ODD}:sphere", 3, "bfgs", 0), USUAL)
    assert run.cost is Cost.DIFFERENCES and run.gradients == 0 and run.evals > 0


def test_the_counts_of_esgroup_are_those_of_minimize() -> None:
    cell, problem = Cell("ellipsoid", 5, "esgroup", 1), find("ellipsoid", 5)
    theirs = esgroup.minimize(problem.batch, start(cell), problem.sigma0, vectorized=True, rng=1, max_evals=100_000)
    assert execute(cell, NEVER).evals == theirs.nfev


def test_the_same_cell_gives_the_same_run() -> None:
    cell = Cell("rotated_ellipsoid", 4, "esgroup", 7)
    first, second = execute(cell, USUAL), execute(cell, USUAL)
    assert first.hits == second.hits and first.trajectory == second.trajectory and first.solved


def test_methods_of_one_seed_begin_at_the_same_point() -> None:
    cells = [Cell("sphere", 4, method, 5) for method in ("esgroup", "cma", "nelder-mead")]
    assert len({tuple(start(cell)) for cell in cells}) == 1
    assert tuple(start(cells[0])) != tuple(start(cells[0]._replace(seed=6)))


def test_a_default_start_is_the_problems() -> None:
    cell, settings = Cell("sphere", 4, "esgroup", 5), Settings((1.0,), starts="default")
    assert prepare(cell, choose("esgroup"), settings).x0.tolist() == find("sphere", 4).x0.tolist()


def test_every_installed_method_reaches_the_target_on_a_sphere() -> None:
    """All plug-ins work, count, and are ended from outside; more is not asked of them here.

    Those that search matrices have one like a sphere.
    """
    problems = {(): "sphere", ("spd",): "metric_nearness", ("matrix",): "kronecker_ellipsoid"}
    settings = Settings((1e-3,), max_evals=20_000)
    ended = {}
    for name, method in known().items():
        if method.missing() is None and name != "nevergrad":  # 1.0.12 fails in some runs with NumPy 2.4
            run = execute(Cell(problems[method.spaces], 4, name, 1), settings)
            ended[name] = (run.ended, run.used == run.hits[0])
    assert set(ended.values()) == {(Ended.TARGET, True)}, ended


def test_a_budget_ends_a_run() -> None:
    run = execute(Cell("rosenbrock", 4, "esgroup", 1), Settings((1e-8,), max_evals=57))
    assert run.ended is Ended.BUDGET and run.evals == 57 and not run.solved and not run.failed


def test_the_usual_budget_grows_with_the_coordinates() -> None:
    vector = execute(Cell("sphere", 2, f"{ODD}:endless", 1), Settings((-1.0,)))
    assert (vector.size, vector.evals) == (2, 2 * EVALS_PER_COORDINATE)
    matrix = execute(Cell("metric_nearness", 2, f"{ODD}:endless", 1), Settings((-1.0,)))
    assert (matrix.size, matrix.evals) == (3, 3 * EVALS_PER_COORDINATE)


def test_positive_definite_problems_are_searched_through_a_chart() -> None:
    for method in ("esgroup@log", "esgroup@cholesky", "bfgs@cholesky"):
        run = execute(Cell("metric_nearness", 3, method, 1), Settings((1e-2, 1e-6)))
        assert run.solved, run


def test_gaps_are_above_the_minimum_of_the_problem() -> None:
    cell, problem = Cell("styblinski_tang", 3, f"{ODD}:giving_up", 1), find("styblinski_tang", 3)
    lowest = min(problem.fun(start(cell)), problem.fun(start(cell) / 2))
    run = execute(cell, USUAL)
    assert run.best == pytest.approx(lowest, rel=1e-14) and run.minimum == problem.minimum < -100
    assert run.trajectory[-1].gap == pytest.approx(lowest - problem.minimum, rel=1e-5)


def test_bounds_are_kept() -> None:
    for method in ("esgroup", "l-bfgs-b", "nelder-mead", "cmaes"):
        stage = prepare(Cell("schwefel", 3, method, 1), choose(method), USUAL)
        assert stage.bounds is not None and stage.bounds.tolist() == [[-500, 500]] * 3
        assert stage.box.tolist() == [[-500, 500]] * 3


# ---- what goes wrong ------------------------------------------------------------------------------------------------


def odd(problem: str = "sphere", method: str = "esgroup", **more: object) -> RunRecord:
    problem = f"{ODD}:{problem}" if problem in ("raises", "nan", "text") else problem
    return execute(Cell(problem, 3, method, 0), Settings((1e-8,), **{"max_evals": 200, **more}))  # type: ignore[arg-type]


def test_a_problem_that_raises_is_a_failure_with_its_message() -> None:
    run = odd("raises")
    assert run.ended is Ended.ERROR and run.failed and run.message == "ValueError: the simulator says no"
    assert run.hits == (math.inf,) and run.trajectory == ()


def test_a_method_that_raises_is_a_failure_with_its_message() -> None:
    run = odd(method=f"{ODD}:raising")
    assert run.ended is Ended.ERROR and run.message == "ZeroDivisionError: by the method" and run.evals == 1


def test_values_that_are_not_numbers_are_a_failure() -> None:
    run = odd("nan")
    assert run.ended is Ended.NAN and run.failed and "none of" in run.message and run.evals > 0
    assert odd("text").ended is Ended.ERROR


def test_a_method_that_swallows_everything_is_counted_rightly() -> None:
    run = odd(method=f"{ODD}:swallowing", max_evals=4)
    assert run.ended is Ended.BUDGET and run.evals == 4


def test_a_method_that_gives_up_says_why() -> None:
    run = odd(method=f"{ODD}:giving_up")
    assert run.ended is Ended.STOPPED and run.message == "tired" and run.evals == 2 and not run.failed


def test_bounds_that_a_method_does_not_keep_are_a_failure() -> None:
    run = odd("schwefel", "bfgs")
    assert run.ended is Ended.ERROR and all(word in run.message for word in ("bfgs", "bounds", "schwefel"))


def test_a_problem_with_constraints_is_a_failure() -> None:
    run = odd("spring")
    assert run.ended is Ended.ERROR and all(word in run.message for word in ("spring", "constraints"))


def test_a_run_that_takes_too_long_ends_with_what_it_has() -> None:
    run = odd("rosenbrock", max_time=1e-9, max_evals=10**9)
    assert run.ended is Ended.TIMEOUT and run.failed


def test_the_record_of_nothing_claims_nothing() -> None:
    run = failed(Cell("no_such", 3, "nor_this", 0), Ended.KILLED, "gone")
    assert run.targets == run.hits == run.trajectory == () and run.evals == 0 and run.failed and not run.solved


def test_a_method_that_evaluates_nothing_is_a_failure() -> None:
    run = odd(method=f"{ODD}:idle")
    assert run.ended is Ended.ERROR and "evaluate" in run.message and "(bored)" in run.message


def test_gradients_that_a_method_takes_are_counted_whatever_it_says() -> None:
    run = odd(method=f"{ODD}:sneaky")
    assert run.cost is Cost.GRADIENTS and run.gradients == 1


def test_values_may_be_arrays_of_one_element_but_not_nothing() -> None:
    assert execute(Cell(f"{ODD}:array_of_one", 3, "nelder-mead", 0), Settings((1e-3,))).solved
    run = execute(Cell(f"{ODD}:none", 3, "nelder-mead", 0), Settings((1e-3,)))
    assert run.ended is Ended.ERROR and "must be a real number (NaN for a failed evaluation), got None" in run.message


def test_functions_of_ones_own_begin_at_random_points_too() -> None:
    starts = [start(Cell(f"{ODD}:sphere", 3, "cma", seed)) for seed in (0, 1)]
    assert np.abs(starts).min() > 0 and tuple(starts[0]) != tuple(starts[1])


def test_targets_are_values_where_the_minimum_is_not_known() -> None:
    task = Task("own", lambda x: 0.0, np.zeros(1), targets=(-10.0, -20.0))
    assert targets_of(task, Settings()) == (-10.0, -20.0)
    assert targets_of(replace(task, minimum=-21.0), Settings()) == TARGETS
    assert targets_of(replace(task, targets=()), Settings()) == ()


def test_targets_that_are_set_are_those_of_every_problem() -> None:
    task = Task("own", lambda x: 0.0, np.zeros(1), targets=(-10.0, -20.0))
    for one in (task, replace(task, minimum=3.0), replace(task, targets=())):
        assert targets_of(one, USUAL) == USUAL.targets


def test_versions_are_known() -> None:
    assert installed("scipy")[0].isdigit() and installed("esgroup") == esgroup.__version__
    assert execute(Cell("sphere", 2, "nelder-mead", 0), USUAL).versions.startswith("scipy 1.")
