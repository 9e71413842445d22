"""Noise on values: its law, its stream, and that the function under it is left alone."""

import pickle

import numpy as np
import pytest

import esgroup_problems as zoo
from esgroup_problems.noisy import noisy

X = np.array([1.0, -2.0, 2.0])  # the sphere is 9


@pytest.mark.parametrize("levels, deviation", [((0.5, 0.0), 0.5), ((0.0, 0.1), 0.9), ((1.2, 0.1), 1.5)])
def test_the_noise_has_mean_zero_and_the_stated_deviation(levels: tuple[float, float], deviation: float) -> None:
    problem, n = noisy(zoo.sphere(3), additive=levels[0], relative=levels[1]), 40_000
    values = problem.batch(np.tile(X, (n, 1)))
    assert values.mean() == pytest.approx(9, abs=5 * deviation / n**0.5)
    assert values.std() == pytest.approx(deviation, abs=5 * deviation / (2 * n) ** 0.5)


@pytest.mark.parametrize(
    "name, deviation", [("noisy_sphere", 1.0), ("noisy_ellipsoid", 0.3 * 4_004_001), ("noisy_rosenbrock", 0.01)]
)
def test_the_registered_ones_have_the_levels_they_state(name: str, deviation: float) -> None:
    problem, x, n = zoo.get(name, 3), np.array([1.0, -2.0, 2.0]), 20_000  # the ellipsoid is 1 + 4000 + 4 10^6
    noise = problem.batch(np.tile(x, (n, 1))) - problem.noiseless(x[None])
    assert noise.std() == pytest.approx(deviation, abs=5 * deviation / (2 * n) ** 0.5)
    assert abs(noise.mean()) < 5 * deviation / n**0.5


def test_every_call_draws_again_and_points_and_rows_draw_from_one_stream() -> None:
    one, other = zoo.get("noisy_sphere", 3), zoo.get("noisy_sphere", 3)
    together = other.batch(np.stack([X, X, X]))
    assert len(set(together)) == 3
    assert [one.fun(X), one.batch(X[None])[0], one.fun(X)] == together.tolist()


def test_a_copy_goes_on_with_the_same_draws() -> None:
    problem = zoo.get("noisy_sphere", 3)
    problem.fun(X)
    copy = pickle.loads(pickle.dumps(problem))
    later = [problem.fun(X), problem.fun(X)]
    assert [copy.fun(X), copy.batch(X[None])[0]] == later
    assert later != [zoo.get("noisy_sphere", 3).fun(X) for _ in range(2)]


def test_the_clean_function_is_left_alone() -> None:
    clean = zoo.rosenbrock(3)
    problem = noisy(clean, additive=1.0)
    x = np.stack([X, X + 1])
    problem.batch(x)
    assert (problem.noiseless(x) == clean.batch(x)).all()
    assert clean.fun(X) == clean.batch(X[None])[0] == zoo.rosenbrock(3).fun(X)
    assert clean.gradient is not None and problem.gradient is None
    assert problem.hessian_product is None and problem.hessian_diagonal is None
    assert (problem.minimum, problem.minimizer.tolist()) == (0, [1, 1, 1])
    assert problem.start_box == clean.start_box and problem.name == "noisy_rosenbrock"


def test_the_noise_is_independent_of_the_instance_under_it() -> None:
    seeds = [zoo.PROBLEMS["rotated_ellipsoid"](3, seed=seed) for seed in (1, 2)]
    first, second = (noisy(problem, additive=1.0, seed=1) for problem in seeds)
    gaps = [p.batch(X[None]) - p.noiseless(X[None]) for p in (first, second)]
    assert gaps[0] == pytest.approx(gaps[1], abs=1e-8)
    assert (first.noiseless(X[None]) != second.noiseless(X[None])).all()


def test_no_noise_changes_nothing_and_global_randomness_is_untouched() -> None:
    before = np.random.get_state()[1].tolist()
    assert noisy(zoo.sphere(3)).fun(X) == 9
    assert np.random.get_state()[1].tolist() == before


def test_what_is_no_noise_level_is_refused() -> None:
    with pytest.raises(ValueError, match=r"additive must be a number >= 0, got -1\.0"):
        noisy(zoo.sphere(3), additive=-1.0)
    with pytest.raises(ValueError, match="relative must be a finite number, got nan"):
        noisy(zoo.sphere(3), relative=float("nan"))
    with pytest.raises(ValueError, match="noise, got noisy_sphere"):
        noisy(zoo.get("noisy_sphere", 3), additive=1.0)
