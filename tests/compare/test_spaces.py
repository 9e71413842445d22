"""Methods that search matrices themselves: their counts, where they begin, and what they refuse."""

import numpy as np
import pytest

import esgroup
from esgroup.compare import execution
from esgroup.compare.charts import Logarithm
from esgroup.compare.execution import EVALS_PER_COORDINATE, Settings, execute, prepare
from esgroup.compare.methods import choose
from esgroup.compare.records import Cell, Ended
from esgroup.problem_registry import Task, find
from tests.compare.test_execution import NEVER, ODD, USUAL, start


def values_of(search: esgroup.Searcher, batch) -> list[float]:
    values: list[float] = []
    while not search.stop():
        told = batch(search.ask())
        search.tell(told)
        values += told.tolist()
    return values


def first_below(values: list[float], target: float) -> int:
    return 1 + next(i for i, value in enumerate(values) if value <= target)


@pytest.mark.parametrize("structure", ["full", "triangular"])
def test_the_counts_of_wishart_are_those_of_a_search_with_it(structure: str) -> None:
    cell, problem = Cell("metric_nearness", 3, f"wishart:{structure}", 4), find("metric_nearness", 3, seed=4)
    values = values_of(esgroup.Searcher(esgroup.Wishart(mean=problem.x0, structure=structure), rng=4), problem.batch)
    assert execute(cell, NEVER).evals == len(values)
    assert execute(cell, USUAL).hits == tuple(first_below(values, target) for target in USUAL.targets or ())


def test_wishart_is_full_if_nothing_is_said() -> None:
    hits = [execute(Cell("metric_nearness", 3, name, 4), USUAL).hits for name in ("wishart", "wishart:full")]
    assert hits[0] == hits[1]


@pytest.mark.parametrize(("name", "side"), [("matrix-gaussian", "full"), ("matrix-gaussian:triangular", "triangular")])
def test_the_counts_of_the_matrix_gaussian_are_those_of_a_search_with_it(name: str, side: str) -> None:
    cell, problem = Cell("kronecker_ellipsoid", 3, name, 2), find("kronecker_ellipsoid", 3, seed=2)
    distribution = esgroup.MatrixGaussian(start(cell), problem.sigma0, rows=side, cols=side)
    values = values_of(esgroup.Searcher(distribution, rng=2), problem.batch)
    assert execute(cell, NEVER).evals == len(values)
    assert execute(cell, USUAL).hits[-1] == first_below(values, 1e-8)


def test_a_search_of_matrices_begins_where_those_of_coordinates_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the start is drawn in the logarithm; it has as many coordinates, and so the same budget."""
    cells = [Cell("kronecker_ellipsoid", 4, method, 3) for method in ("matrix-gaussian", "cma")]
    assert start(cells[0]).shape == (4, 4) and start(cells[0]).ravel().tolist() == start(cells[1]).tolist()
    task = Task("own", np.trace, np.array([[2.0, 0.3], [0.3, 1.0]]), 0.5, space="spd")
    monkeypatch.setattr(execution, "find", lambda *_, **__: task)
    ours, theirs = (prepare(Cell("own", 2, name, 3), choose(name), USUAL) for name in ("wishart", "cma@log"))
    np.testing.assert_array_equal(ours.x0, Logarithm((2, 2)).points(theirs.x0))
    assert ours.size == theirs.size == len(theirs.x0) == 3 and not np.allclose(ours.x0, task.x0)


def test_the_usual_budget_is_that_of_coordinates() -> None:
    run = execute(Cell("metric_nearness", 2, f"{ODD}:endless_itself", 1), Settings((-1.0,)))
    assert (run.size, run.evals) == (3, 3 * EVALS_PER_COORDINATE)


@pytest.mark.parametrize("problem", ["kronecker_ellipsoid", "metric_nearness"])
def test_a_gradient_in_the_space_itself_has_the_shape_of_a_point(problem: str) -> None:
    cell, task = Cell(problem, 3, f"{ODD}:descending", 1), find(problem, 3, seed=1)
    x, values = start(cell), []
    for _ in range(10):
        values.append(task.fun(x))
        x = x - 1e-4 * task.gradient(x)
    run = execute(cell, Settings((-1.0,), max_evals=20))
    assert (run.evals, run.gradients) == (10, 10)
    assert run.best == pytest.approx(values[-1], rel=1e-12) and values[-1] < values[0]


def test_a_problem_of_another_space_is_a_failure() -> None:
    run = execute(Cell("sphere", 3, "wishart", 0), USUAL)
    assert run.ended is Ended.ERROR
    assert run.message == "ValueError: the method wishart searches positive-definite matrices; sphere has vectors"


def test_searches_of_matrices_take_no_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    task = Task("own", np.sum, np.ones((2, 3)), 0.5, space="matrix", bounds=(0.0, 2.0))
    monkeypatch.setattr(execution, "find", lambda *_, **__: task)
    with pytest.raises(ValueError, match=r"matrix-gaussian .* bounds, and own has"):
        start(Cell("own", 2, "matrix-gaussian", 0))
    assert start(Cell("own", 2, "cma", 0)).shape == (6,)


def test_methods_are_loaded_with_points_of_their_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    ended, searched = [], execution._searched
    monkeypatch.setattr(execution, "_searched", lambda *them: ended.append(searched(*them)))
    for name, shape in (("esgroup", (3,)), ("wishart", (3, 3)), ("matrix-gaussian", (2, 5))):
        execution._warm_up.__wrapped__(name, shape)
    assert ended == [(Ended.BUDGET, "")] * 3
