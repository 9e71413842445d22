"""Problems cannot be changed, and are found by name."""

import dataclasses
import tomllib
from pathlib import Path

import numpy as np
import pytest

import esgroup_problems as zoo
from esgroup import problem_registry

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"


def test_the_start_is_a_copy_that_cannot_be_written_to() -> None:
    x0 = np.ones(3)
    problem = dataclasses.replace(zoo.sphere(3), x0=x0)
    x0[0] = 7.0
    assert problem.x0.tolist() == [1, 1, 1]
    with pytest.raises(ValueError, match="read-only"):
        problem.x0[0] = 2.0
    with pytest.raises(dataclasses.FrozenInstanceError):
        problem.sigma0 = 1.0  # type: ignore[misc]


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match=r"minimizer must have shape \(3,\), got \(2,\)"):
        dataclasses.replace(zoo.sphere(3), minimizer=np.zeros(2))
    with pytest.raises(ValueError, match="sigma0 must be a positive finite number, got 0"):
        dataclasses.replace(zoo.sphere(3), sigma0=0.0)
    with pytest.raises(ValueError, match="x0 must be finite, got nan at index 1"):
        dataclasses.replace(zoo.sphere(3), x0=[0.0, np.nan, 1.0])


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"'rosenbrok' \(did you mean 'rosenbrock'\?\): the problems are sphere, "):
        zoo.get("rosenbrok")


def test_a_name_is_taken_once() -> None:
    def sphere(dim: int = 2) -> zoo.Problem:
        return zoo.sphere(dim)

    with pytest.raises(ValueError, match="the problem 'sphere' is registered twice"):
        zoo.register(sphere)


def test_the_package_offers_its_problems_to_the_command() -> None:
    group = tomllib.loads(PYPROJECT.read_text())["project"]["entry-points"][problem_registry.GROUP]
    zoo_entry = problem_registry._ZOO
    assert group == {zoo_entry.name: zoo_entry.value}
    assert zoo_entry.load() is zoo.PROBLEMS


def test_random_beginnings_are_uniform_in_the_start_box() -> None:
    problem = dataclasses.replace(zoo.sphere(2), start_box=(1.0, 3.0))
    starts = np.stack([problem.start(rng) for rng in [np.random.default_rng(1)] for _ in range(4000)])
    assert starts.min() > 1 and starts.max() < 3
    assert starts.mean(axis=0) == pytest.approx([2, 2], abs=5 * (1 / 3 / 4000) ** 0.5)
    assert starts.std(axis=0) == pytest.approx([3**-0.5] * 2, rel=0.05)


def test_without_a_box_random_beginnings_are_around_x0_and_in_the_bounds() -> None:
    problem = dataclasses.replace(zoo.sphere(2), start_box=None, sigma0=0.5)
    rng = np.random.default_rng(1)
    starts = np.stack([problem.start(rng) for _ in range(4000)])
    assert starts.mean(axis=0) == pytest.approx([3, 3], abs=5 * 0.5 / 4000**0.5)
    assert starts.std(axis=0) == pytest.approx([0.5, 0.5], rel=0.1)
    bounded = dataclasses.replace(problem, bounds=np.array([[2.9, 3.1], [-9.0, 9.0]]))
    inside = np.stack([bounded.start(rng) for _ in range(100)])
    assert inside[:, 0].min() == 2.9 and inside[:, 0].max() == 3.1
    assert np.ptp(inside[:, 1]) > 1


def test_positive_definite_problems_begin_at_x0() -> None:
    problem = dataclasses.replace(zoo.sphere(2), space="spd", x0=np.diag([1.0, 2.0]), minimizer=None)
    assert problem.start(np.random.default_rng(1)).tolist() == [[1, 0], [0, 2]]
    assert problem.dim == 2


def test_spaces_are_checked() -> None:
    with pytest.raises(ValueError, match="space must be one of vector, spd, matrix, scalar, got 'cone'"):
        dataclasses.replace(zoo.sphere(2), space="cone")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"x0 must have shape \(n, n\), got \(2,\)"):
        dataclasses.replace(zoo.sphere(2), space="matrix")
    with pytest.raises(ValueError, match="x0 must be positive definite, but its smallest eigenvalue is -1"):
        dataclasses.replace(zoo.sphere(2), space="spd", x0=np.diag([1.0, -1.0]), minimizer=None)


def test_the_default_beginning_has_no_pattern() -> None:
    x0 = zoo.get("rastrigin", 50).x0
    assert len(set(np.round(x0, 6))) == 50
    assert np.abs(np.corrcoef(x0[1:], x0[:-1])[0, 1]) < 0.5 and abs(x0.mean()) < 0.5
    assert np.sort(x0)[[0, -1]] == pytest.approx([-5.12, 5.12], abs=0.5)
