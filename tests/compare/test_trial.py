"""What the harness counts, keeps and ends, at runs written out by hand."""

import math

import numpy as np
import pytest

from esgroup.compare.records import Ended, Improvement
from esgroup.compare.trial import FINER, Over, Recorder


def first(x: np.ndarray) -> np.ndarray:
    return x[:, 0]


def recorder(**more: object) -> Recorder:
    return Recorder(first, **{"targets": (5.0, 1.0), "budget": 100, **more})  # type: ignore[arg-type]


def column(*values: float) -> np.ndarray:
    return np.array(values)[:, None]


def test_hits_are_the_numbers_of_the_first_evaluations_within_the_targets() -> None:
    run = recorder()
    for value in (9.0, 7.0, 5.0, 6.0, 3.0):
        run.fun(np.array([value]))
    with pytest.raises(Over) as over:
        run.fun(np.array([1.0]))
    assert over.value.args == (Ended.TARGET,)
    assert run.hits == [3, 6] and run.evals == 6 and run.gap == 1.0


def test_a_batch_is_counted_row_by_row_up_to_the_one_that_ends_the_run() -> None:
    run = recorder()
    run.batch(column(9, 8, 4))
    with pytest.raises(Over):
        run.batch(column(6, 0.5, 0.1, 0.0))
    assert run.hits == [3, 5] and run.evals == 5 and run.gap == 0.5


def test_one_value_may_reach_several_targets() -> None:
    run = recorder()
    with pytest.raises(Over):
        run.fun(np.array([0.0]))
    assert run.hits == [1, 1]


def test_gaps_are_distances_to_the_minimum() -> None:
    run = recorder(minimum=-10.0)
    run.fun(np.array([-5.5]))
    assert run.gap == 4.5 and run.hits == [1, math.inf]


def test_values_and_gradients_are_counted_apart_and_spend_one_budget() -> None:
    run = recorder(gradient=lambda x: 2 * x, budget=5)
    run.fun(np.array([9.0]))
    assert run.gradient(np.array([3.0])).tolist() == [6.0]
    run.batch(column(8, 7))
    with pytest.raises(Over) as over:
        run.gradient(np.array([1.0]))
    assert over.value.args == (Ended.BUDGET,)
    assert (run.evals, run.gradients) == (3, 2)


def test_the_cost_of_a_hit_has_the_gradients_before_it() -> None:
    run = recorder(gradient=lambda x: x)
    run.fun(np.array([9.0]))
    run.gradient(np.array([9.0]))
    run.fun(np.array([2.0]))
    assert run.hits[0] == 3 and run.trajectory[-1] == Improvement(2, 1, 2.0)


def test_products_and_diagonals_cost_one_each_as_gradients_do() -> None:
    run = recorder(gradient=lambda x: x, product=lambda x, v: x * v, diagonal=lambda x: 3 * x, budget=5)
    run.fun(np.array([9.0]))
    assert run.product(np.array([3.0, 4.0]), np.array([5.0, 6.0])).tolist() == [15.0, 24.0]
    assert run.diagonal(np.array([2.0])).tolist() == [6.0]
    assert (run.evals, run.gradients) == (1, 2)
    run.fun(np.array([2.0]))
    assert run.hits[0] == 4 and run.trajectory[-1] == Improvement(2, 2, 2.0)
    with pytest.raises(Over) as over:
        run.product(np.array([1.0]), np.array([1.0]))
    assert over.value.args == (Ended.BUDGET,) and (run.evals, run.gradients) == (2, 3)


def test_a_product_has_one_vector() -> None:
    run = recorder(product=lambda x, v: v)
    with pytest.raises(ValueError, match=r"v must have the shape of x, \(2,\), got \(3, 2\)"):
        run.product(np.zeros(2), np.ones((3, 2)))
    assert run.gradients == 0


def test_no_more_than_the_budget_is_evaluated() -> None:
    seen = []

    def values(x: np.ndarray) -> np.ndarray:
        seen.extend(x[:, 0].tolist())
        return x[:, 0]

    run = Recorder(values, targets=(-1.0,), budget=3)
    with pytest.raises(Over) as over:
        run.batch(column(5, 4, 3, 2, 1))
    assert over.value.args == (Ended.BUDGET,) and seen == [5, 4, 3] and run.gap == 3


def test_a_method_that_swallows_the_end_gets_nothing_more() -> None:
    run = recorder(budget=1)
    for _ in range(5):
        with pytest.raises(Over):
            run.fun(np.array([9.0]))
    assert run.evals == 1


def test_the_end_is_not_an_exception_that_methods_catch() -> None:
    assert not issubclass(Over, Exception)


def test_nan_is_counted_but_is_no_progress() -> None:
    run = recorder()
    assert math.isnan(run.fun(np.array([math.nan])))
    run.batch(column(math.nan, 7.0))
    assert run.evals == 3 and run.finite == 1 and run.gap == 7.0
    assert run.trajectory == (Improvement(3, 0, 7.0),)


def test_infinite_values_are_no_progress() -> None:
    run = recorder()
    run.batch(column(math.inf, math.inf))
    assert run.trajectory == () and run.finite == 0 and run.gap == math.inf


def test_noise_goes_to_the_method_and_not_into_the_record() -> None:
    run = Recorder(lambda x: x[:, 0] + 100, noiseless=first, targets=(5.0, 1.0), budget=10)
    assert run.fun(np.array([4.0])) == 104.0
    assert run.gap == 4.0 and run.hits[0] == 1


def test_a_function_may_change_the_point_that_it_is_given() -> None:
    def values(x: np.ndarray) -> np.ndarray:
        x *= x
        return x[:, 0]

    run, mine = Recorder(values, noiseless=values, gradient=values, targets=(1.0,), budget=10), np.array([3.0])
    assert run.fun(mine) == 9.0 and mine.tolist() == [3.0] and run.gap == 9.0
    run.gradient(mine[None])
    assert mine.tolist() == [3.0]


def test_a_product_may_change_what_it_is_given() -> None:
    def product(x: np.ndarray, v: np.ndarray) -> np.ndarray:
        x *= v
        v *= 2
        return x

    run, x, v = recorder(product=product), np.array([3.0]), np.array([5.0])
    assert run.product(x, v).tolist() == [15.0] and (x[0], v[0]) == (3.0, 5.0)


def test_a_run_ends_when_its_time_is_spent() -> None:
    run = recorder(deadline=-math.inf)
    with pytest.raises(Over) as over:
        run.fun(np.array([9.0]))
    assert over.value.args == (Ended.TIMEOUT,) and run.evals == 0


def test_what_the_problem_raises_is_kept_and_passed_on() -> None:
    def values(x: np.ndarray) -> np.ndarray:
        raise KeyError("no such thing")

    run = Recorder(values, targets=(1.0,), budget=5)
    with pytest.raises(KeyError):
        run.fun(np.array([1.0]))
    assert isinstance(run.error, KeyError) and run.evals == 0


def test_a_trajectory_is_thinned_but_has_first_last_and_every_target() -> None:
    gaps = np.geomspace(100.0, 0.5, 5000)
    run = Recorder(first, targets=(50.0, 10.0, 2.0), budget=10_000)
    run.batch(gaps[:3500, None])
    costs = [p.cost for p in run.trajectory]
    assert costs[0] == 1 and costs[-1] == 3500
    assert set(run.hits) - {math.inf} <= set(costs)
    assert len(costs) <= 2 * math.log(3500) / math.log(FINER) + 8
    at = dict(zip(costs, (p.gap for p in run.trajectory), strict=True))
    for cost, gap in at.items():
        assert gap == pytest.approx(gaps[cost - 1], rel=1e-5)
    assert costs == sorted(set(costs))
