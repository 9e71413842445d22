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
    with pytest.raises(ValueError, match=r"minimiser must have shape \(3,\), got \(2,\)"):
        dataclasses.replace(zoo.sphere(3), minimiser=np.zeros(2))
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
