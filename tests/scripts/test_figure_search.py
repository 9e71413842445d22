"""The figure of a search at work: its stages, its runs and their quartiles, and the picture itself."""

from __future__ import annotations

from pathlib import Path

import figure_search
import numpy as np
import pytest
from scipy.optimize import rosen

pytestmark = pytest.mark.scripts


def test_the_function_is_that_of_scipy() -> None:
    points = np.random.default_rng(1).standard_normal((5, 4))
    np.testing.assert_allclose(figure_search.rosenbrock(points), [rosen(x) for x in points])


def test_stages_begin_with_a_circle_and_end_along_the_valley() -> None:
    stages = figure_search.stages()
    first, last = stages[0], stages[-1]
    radii = np.linalg.norm(first.ellipse - figure_search.START, axis=1)
    np.testing.assert_allclose(radii, 2 * figure_search.SIGMA0)
    assert [stage.nfev for stage in stages] == [figure_search.POPSIZE * k for k in range(len(stages))]
    assert figure_search.rosenbrock(last.mean) < 0.1 * figure_search.rosenbrock(first.mean)
    axis = np.linalg.svd(last.ellipse - last.mean)[2][0]  # the long one
    valley = np.array([1.0, 2 * last.mean[0]])  # the tangent of y = x^2
    assert abs(axis @ valley) / np.linalg.norm(valley) > 0.95


@pytest.mark.parametrize("method", figure_search.COURSES)
def test_a_run_is_followed_to_its_target_or_its_budget(method: str) -> None:
    if method == "cma":
        pytest.importorskip("cma")
    done = figure_search.COURSES[method](2, 1, 5000)
    assert done.best[-1] <= figure_search.TARGET and (np.diff(done.best) <= 0).all()
    assert (np.diff(done.evaluations) > 0).all() and figure_search.evaluations_needed([done]) == [done.evaluations[-1]]
    cut = figure_search.COURSES[method](2, 1, 60)
    assert 60 <= cut.evaluations[-1] < 80 and figure_search.evaluations_needed([cut]) == []


def test_quartiles_are_those_of_the_best_values_so_far() -> None:
    runs = [figure_search.Course([10, 20], [float(k), k / 10]) for k in range(1, 6)]
    found = figure_search.quartiles(runs, np.array([5, 10, 19, 20, 99]))
    assert np.isinf(found[:, 0]).all()  # nobody has a value yet
    np.testing.assert_allclose(found[:, 1:], [[2, 2, 0.2, 0.2], [3, 3, 0.3, 0.3], [4, 4, 0.4, 0.4]])


def test_the_figure_is_drawn_and_is_small(tmp_path: Path) -> None:
    runs = {"esgroup": [figure_search.course_of_esgroup(2, seed, 400) for seed in (1, 2)]}
    runs["cma"] = [figure_search.Course([100, 500], [1.0, 1e-9]), figure_search.Course([100, 600], [2.0, 0.5])]
    figure_search.draw(tmp_path / "search.png", figure_search.stages(), runs, dim=2)
    assert 20_000 < (tmp_path / "search.png").stat().st_size < 250_000
