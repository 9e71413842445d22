"""Laws that every problem of the zoo obeys, in several dimensions."""

import pickle

import numpy as np
import pytest
from scipy.optimize import nnls

import esgroup_problems as zoo
from esgroup.checks import Array
from tests.problems import laws

every_problem = pytest.mark.parametrize("name", laws.NAMES)


def smooth(name: str, *needed: str) -> list[zoo.Problem]:
    """Those instances of a problem that have these derivatives; what is noisy may have noisy ones, tested elsewhere."""
    exact = [problem for problem in laws.instances(name) if problem.noiseless is None]
    return [problem for problem in exact if all(getattr(problem, derivative) is not None for derivative in needed)]


def limited(name: str) -> list[zoo.Problem]:
    """Those instances of a problem that have constraints."""
    return [problem for problem in laws.instances(name) if problem.constraints is not None]


@every_problem
def test_the_minimum_is_the_value_at_the_minimizer(name: str) -> None:
    for problem in laws.instances(name):
        if problem.minimizer is not None and problem.minimum is not None:
            there = laws.clean(problem)(problem.minimizer[None])[0]
            assert there == pytest.approx(problem.minimum, rel=1e-10, abs=1e-12)
            for start in laws.feasible(problem, problem.x0[None]):
                assert laws.clean(problem)(start[None])[0] > problem.minimum + 1e-3 * abs(problem.minimum)


@every_problem
def test_no_value_is_below_the_minimum(name: str) -> None:
    rng = np.random.default_rng(4)
    for problem in laws.instances(name):
        if problem.minimum is None:
            continue
        tried = [laws.points(problem, 100)]
        if problem.minimizer is not None:
            tried += [laws.near(problem, problem.minimizer, size, 20, rng) for size in (0.9, 1e-1, 1e-2, 1e-3, 1e-4)]
        found = laws.feasible(problem, np.concatenate(tried))
        assert len(found) >= 5
        lowest = laws.clean(problem)(found).min()
        assert lowest >= problem.minimum - 1e-10 * (1 + abs(problem.minimum))


@every_problem
def test_the_constraints_hold_at_the_minimizer_and_some_are_active(name: str) -> None:
    for problem in limited(name):
        there = problem.constraints(problem.minimizer)
        assert there.shape == (problem.n_constraints,)
        assert there.max() == pytest.approx(0, abs=1e-9)  # they are relative to their limits
        assert (problem.minimizer[list(problem.integer)] % 1 == 0).all()


@every_problem
def test_the_minimizer_is_a_stationary_point_with_multipliers_of_the_right_sign(name: str) -> None:
    # Karush, Kuhn, Tucker: -grad f is a combination, with positive factors, of the gradients of what is active
    for problem in limited(name):
        x = problem.minimizer
        free = [i for i in range(problem.dim) if i not in problem.integer]
        low, high = np.asarray(problem.bounds).T
        bounds = [-np.eye(problem.dim)[i] for i in free if x[i] == low[i]]
        bounds += [np.eye(problem.dim)[i] for i in free if x[i] == high[i]]
        active = problem.constraints(x) > -1e-6
        steps = 1e-5 * np.diag(x)
        both = [(function(x + steps) - function(x - steps)).T for function in (problem.batch, problem.constraints)]
        slope, curved = both[0] / 2e-5, both[1][active] / 2e-5  # of relative changes of the coordinates
        normals = np.array([*curved, *(bound * x for bound in bounds)])
        _, left = nnls(normals[:, free].T, -slope[free])
        assert left < 1e-6 * np.abs(slope[free]).max()


@every_problem
def test_several_points_have_the_constraints_of_each(name: str) -> None:
    for problem in limited(name):
        x = laws.points(problem, 5)
        together = problem.constraints(x)
        assert together.shape == (5, problem.n_constraints) and np.isfinite(together).all()
        np.testing.assert_allclose(together, [problem.constraints(row) for row in x], rtol=1e-9, atol=1e-12)
        assert (pickle.loads(pickle.dumps(problem)).constraints(x) == together).all()


@every_problem
def test_the_gradient_is_zero_at_the_minimizer(name: str) -> None:
    for problem in smooth(name, "gradient"):
        if problem.minimizer is not None:
            usual = min(np.abs(problem.gradient(x)).max() for x in laws.points(problem, 5))
            assert np.abs(problem.gradient(problem.minimizer)).max() < 1e-6 * usual


@every_problem
def test_the_gradient_is_that_of_finite_differences(name: str) -> None:
    for problem in smooth(name, "gradient"):
        for x in laws.points(problem, 3):
            gradient = problem.gradient(x)
            floor = 1e-9 * abs(problem.fun(x)) / problem.sigma0
            assert gradient.shape == problem.x0.shape
            for direction in [laws.axis(problem, index) for index in laws.axes(problem)]:
                numerical = laws.slopes(problem.batch, problem, x, direction)
                assert laws.agree(float((gradient * direction).sum()), numerical, floor)


@every_problem
def test_the_hessian_product_is_that_of_finite_differences(name: str) -> None:
    for problem in smooth(name, "gradient", "hessian_product"):
        x, direction = laws.points(problem, 1)[0], laws.directions(problem, 1)[0]
        numerical = laws.slopes(laws.rows_of(problem.gradient), problem, x, direction)
        floor = 1e-9 * np.abs(problem.gradient(x)).max() / problem.sigma0
        product = problem.hessian_product(x, direction)
        assert product.shape == problem.x0.shape
        assert laws.agree(product, numerical, floor)


@every_problem
def test_the_hessian_product_is_symmetric_and_linear(name: str) -> None:
    for problem in smooth(name, "hessian_product"):
        x, (u, v) = laws.points(problem, 1)[0], laws.directions(problem, 2)
        hu, hv = problem.hessian_product(x, u), problem.hessian_product(x, v)
        size = np.abs(hu).max() * np.abs(v).sum()
        assert (u * hv).sum() == pytest.approx((v * hu).sum(), abs=1e-12 * size)
        np.testing.assert_allclose(
            problem.hessian_product(x, 2 * u - v), 2 * hu - hv, atol=1e-12 * np.abs([hu, hv]).max()
        )


@every_problem
def test_the_hessian_diagonal_is_that_of_finite_differences(name: str) -> None:
    for problem in smooth(name, "gradient", "hessian_diagonal"):
        x = laws.points(problem, 1)[0]
        diagonal = problem.hessian_diagonal(x)
        floor = 1e-9 * np.abs(problem.gradient(x)).max() / problem.sigma0
        assert diagonal.shape == problem.x0.shape
        for index in laws.axes(problem):
            direction = np.zeros_like(x)
            direction[index] = 1.0
            numerical = laws.slopes(laws.rows_of(problem.gradient), problem, x, direction)
            assert laws.agree(diagonal[index], numerical[(slice(None), *index)], floor)


@every_problem
def test_the_hessian_diagonal_is_that_of_the_product(name: str) -> None:
    for problem in smooth(name, "hessian_product", "hessian_diagonal"):
        x = laws.points(problem, 1)[0]
        diagonal = problem.hessian_diagonal(x)
        for index in laws.axes(problem):
            direction = np.zeros_like(x)
            direction[index] = 1.0
            column = problem.hessian_product(x, direction)
            assert column[index] == pytest.approx(diagonal[index], rel=1e-9, abs=1e-13 * np.abs(column).max())


@every_problem
def test_several_points_have_the_values_of_each(name: str) -> None:
    for problem in laws.instances(name):
        x, batch = laws.points(problem, 5), laws.clean(problem)
        one_by_one = [zoo.OnPoint(batch)(row) for row in x]
        assert batch(x).shape == (5,)
        np.testing.assert_allclose(batch(x), one_by_one, rtol=1e-12)
        if problem.noiseless is None:
            assert [problem.fun(row) for row in x] == one_by_one


@every_problem
def test_a_problem_can_be_sent_to_another_process(name: str) -> None:
    problem = laws.instances(name)[0]
    x, v = laws.points(problem, 2)
    first, second = (pickle.loads(pickle.dumps(problem)) for _ in range(2))
    assert first.fun(x) == second.fun(x) == pickle.loads(pickle.dumps(problem.fun))(x)
    assert (laws.clean(first)(x[None]) == laws.clean(problem)(x[None])).all()
    for derivative, arguments in {"gradient": (x,), "hessian_product": (x, v), "hessian_diagonal": (x,)}.items():
        ours, sent = getattr(problem, derivative), getattr(first, derivative)
        assert (ours is None and sent is None) or (ours(*arguments) == sent(*arguments)).all()


@pytest.mark.parametrize("name", [name for name in laws.NAMES if laws.takes(name, "seed")])
def test_the_seed_makes_the_instance(name: str) -> None:
    problem = laws.instances(name)[-1]
    x = laws.points(problem, 4)
    values = [laws.make(name, problem.dim, seed).batch(x) for seed in (7, 7, 8)]
    assert (values[0] == values[1]).all()
    assert (values[0] != values[2]).any()


@pytest.mark.parametrize("name", [name for name in laws.NAMES if not laws.takes(name, "seed")])
def test_a_problem_without_seed_is_always_the_same(name: str) -> None:
    problem = laws.instances(name)[-1]
    x = laws.points(problem, 4)
    assert (laws.make(name, problem.dim).batch(x) == problem.batch(x)).all()


@every_problem
def test_a_problem_says_what_it_is_and_where_it_comes_from(name: str) -> None:
    problem = laws.make(name)
    assert problem.name == name and problem.description and problem.source
    assert 0 < len((zoo.PROBLEMS[name].__doc__ or "").partition("\n")[0]) <= 110


@every_problem
def test_a_problem_refuses_no_coordinates(name: str) -> None:
    laws.make(name)
    with pytest.raises(ValueError, match="dim must be "):
        laws.make(name, 0)


@every_problem
def test_random_beginnings_differ_and_are_in_the_bounds(name: str) -> None:
    for problem in laws.instances(name):
        first, second = (problem.start(np.random.default_rng(seed)) for seed in (1, 2))
        assert first.shape == second.shape == problem.x0.shape
        assert problem.space == "spd" or (first != second).all()
        for x in (first, second, problem.x0, *([] if problem.minimizer is None else [problem.minimizer])):
            assert (laws.inside(problem, x) == x).all()


@every_problem
def test_the_beginning_is_in_the_start_box(name: str) -> None:
    for problem in laws.instances(name):
        if problem.start_box is not None:
            low, high = problem.start_box
            assert (problem.x0 >= low).all() and (problem.x0 <= high).all()
            assert problem.sigma0 <= (high - low) / 2


@every_problem
def test_values_are_finite_and_targets_fall(name: str) -> None:
    for problem in laws.instances(name):
        assert np.isfinite(laws.clean(problem)(laws.points(problem, 10))).all()
        assert np.isfinite(problem.fun(problem.x0))
        assert list(problem.targets) == sorted(set(problem.targets), reverse=True)


def test_a_wrong_derivative_is_noticed() -> None:
    problem = zoo.get("ackley", 4)
    x, direction = laws.points(problem, 1)[0], laws.directions(problem, 1)[0]
    right: Array = (problem.gradient(x) * direction).sum()
    numerical = laws.slopes(problem.batch, problem, x, direction)
    assert laws.agree(right, numerical, floor=1e-12)
    assert not laws.agree(1.0001 * right, numerical, floor=1e-12)
    assert not laws.agree(-right, numerical, floor=1e-12)
