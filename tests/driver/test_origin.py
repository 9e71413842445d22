"""A resumed search must be that of its file: its problem, popsize, start and seed are those with which it began."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import esgroup
from esgroup import Choice, Real, Space
from esgroup.distributions.families import Categorical
from esgroup.driver.origin import CheckpointFile
from esgroup.files import npz
from tests.driver.support import X0, Recorder, ellipsoid, rastrigin

COV0 = np.diag([1.0, 2.0, 3.0])
FIRST: dict[str, Any] = {"x0": X0, "sigma0": 0.5, "rng": 7, "popsize": 8, "cov0": COV0}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A checkpoint after three generations."""
    path = tmp_path / "run.npz"
    esgroup.minimize(ellipsoid, **FIRST, max_iters=3, checkpoint=path)
    return path


def resumed(path: Any, fun: Any = ellipsoid, **changes: Any) -> Any:
    return esgroup.minimize(fun, **{**FIRST, "max_iters": 6, **changes}, checkpoint=path, resume=True)


@pytest.mark.parametrize(
    "name, value, message",
    [
        ("x0", [1.0, -0.5, 2.5], "x0 was different"),
        ("sigma0", 0.6, r"sigma0 was 0\.5, not 0\.6"),
        ("sigma0", [0.5, 0.5, 0.6], "sigma0 was different"),
        ("cov0", 2 * COV0, "cov0 was different"),
        ("rng", 8, "rng was 7, not 8"),
        ("popsize", 9, "popsize is 8, not 9"),
    ],
)
def test_another_start_is_refused_and_the_file_is_left_alone(path: Path, name: str, value: Any, message: str) -> None:
    before, fun = path.read_bytes(), Recorder(ellipsoid)
    with pytest.raises(ValueError, match=rf"run\.npz.* {message}"):
        resumed(path, fun, **{name: value})
    assert path.read_bytes() == before and not fun.points


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"sigma0": None, "rng": None, "popsize": None, "cov0": None},  # not given
        {"x0": [1, -0.5, 2], "sigma0": [0.5, 0.5, 0.5], "cov0": COV0.tolist(), "rng": np.int64(7)},  # the same numbers
        {"rng": np.random.default_rng(5)},  # cannot be compared
    ],
)
def test_the_same_start_in_another_form_or_none_continues_the_search(path: Path, changes: dict[str, Any]) -> None:
    whole = esgroup.minimize(ellipsoid, **FIRST, max_iters=6)
    assert np.array_equal(resumed(path, **changes).x, whole.x)


def test_what_was_not_given_at_first_cannot_be_given_later(tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    esgroup.minimize(ellipsoid, X0, max_iters=3, checkpoint=path)
    with pytest.raises(ValueError, match=r"sigma0 was not given, not 0\.5"):
        esgroup.minimize(ellipsoid, X0, 0.5, checkpoint=path, resume=True)
    with pytest.raises(ValueError, match=r"cov0 was not given"):
        esgroup.minimize(ellipsoid, X0, cov0=COV0, checkpoint=path, resume=True)
    esgroup.minimize(ellipsoid, X0, rng=3, max_iters=4, checkpoint=path, resume=True)  # there is no seed to compare


def test_the_start_is_still_known_after_a_resume(path: Path) -> None:
    resumed(path, rng=None, sigma0=None)
    with pytest.raises(ValueError, match="rng was 7, not 8"):
        resumed(path, rng=8)
    with pytest.raises(ValueError, match="sigma0"):
        resumed(path, sigma0=0.6)


def test_with_restarts_the_popsize_of_the_first_run_counts(tmp_path: Path) -> None:
    path, options = tmp_path / "run.npz", {"rng": 4, "restarts": "ipop", "checkpoint": tmp_path / "run.npz"}
    first = esgroup.minimize(rastrigin, X0, 0.5, popsize=6, max_evals=3000, **options)
    assert first.restarts > 0 and esgroup.Searcher.load(path).popsize != 6
    esgroup.minimize(rastrigin, X0, 0.5, popsize=6, max_evals=3100, resume=True, **options)
    popsize = esgroup.Searcher.load(path).popsize
    with pytest.raises(ValueError, match=f"popsize is 6, not {popsize}"):
        esgroup.minimize(rastrigin, X0, 0.5, popsize=popsize, resume=True, **options)


def test_files_that_do_not_say_how_they_began_are_accepted(path: Path) -> None:
    header, arrays = npz.read(path, "searcher")
    del header["origin"]
    npz.write(path, "searcher", header, arrays)
    assert resumed(path, x0=X0 + 1, rng=8, sigma0=0.1).nit == 6
    esgroup.Searcher.load(path).save(path)
    assert resumed(path, x0=X0 + 1, rng=8, max_iters=8).nit == 8
    with pytest.raises(ValueError, match="popsize is 8, not 9"):
        resumed(path, popsize=9)


def test_a_start_that_is_no_array_is_accepted(tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    start = esgroup.Searcher(X0, 0.5, rng=1).strategy
    esgroup.minimize(ellipsoid, start, rng=1, max_iters=2, checkpoint=path)
    assert esgroup.minimize(ellipsoid, start, rng=1, max_iters=4, checkpoint=path, resume=True).nit == 4


def test_a_damaged_origin_is_refused(path: Path) -> None:
    header, arrays = npz.read(path, "searcher")
    for wrong in ([], {"problem": 3, "arguments": {}}, {"problem": None, "arguments": []}, {"problem": None}):
        npz.write(path, "searcher", {**header, "origin": wrong}, arrays)
        with pytest.raises(esgroup.CheckpointError, match=r"run\.npz"):
            resumed(path)


def test_a_problem_that_differs_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    esgroup.minimize(ellipsoid, **FIRST, max_iters=3, checkpoint=CheckpointFile(path, "bowl"))
    with pytest.raises(ValueError, match=r"run\.npz.* bowl, not of valley"):
        resumed(CheckpointFile(path, "valley"))
    resumed(path, max_iters=4)  # from Python no problem is known, and the file keeps its own
    with pytest.raises(ValueError, match=r"bowl, not of valley"):
        resumed(CheckpointFile(path, "valley"))
    assert resumed(CheckpointFile(path, "bowl")).nit == 6


def test_a_file_without_a_problem_is_accepted_and_gets_one(path: Path) -> None:
    resumed(CheckpointFile(path, "bowl"), max_iters=4)
    with pytest.raises(ValueError, match=r"bowl, not of valley"):
        resumed(CheckpointFile(path, "valley"))


def test_arguments_that_the_user_has_not_given_may_differ(path: Path) -> None:
    file = CheckpointFile(path, not_given=("x0", "sigma0"))
    assert resumed(file, x0=X0 + 1, sigma0=0.1).nit == 6


SPACE = Space({"a": Real(0, 1), "b": Real(0, 1)})


@pytest.mark.parametrize(
    ("first", "then", "text"),
    [
        ({}, {"model": "quadratic"}, "it has no quadratic model: resume it with model=None"),
        ({"model": "quadratic"}, {}, "it has a quadratic model: resume it with model='quadratic'"),
        ({"x0": SPACE}, {"x0": SPACE, "model": "quadratic"}, "it has no quadratic model"),
        ({"x0": [0.5, 0.5]}, {"x0": SPACE}, r"over 2 variables, Full\(dim=2\), not over 2 named parameters, Full"),
        ({"x0": Categorical.uniform(2, 2)}, {"x0": Space({"a": Choice(1, 2), "b": Choice(1, 2)})}, "not over 2 named"),
        ({"x0": [0.5, 0.5]}, {"x0": [0.5]}, "it has 2 variables and x0 has 1 variables"),
        ({"bounds": (-5, 5)}, {"bounds": [(-5, 5), (-4, 5), (-5, 5)]}, "lower bounds .* 1 is -5.0, not -4.0"),
        ({}, {"bounds": (None, 5)}, "upper bounds differ: that of variable 0 is inf, not 5.0"),
        ({}, {"fixed": [2]}, "its variable 2 is not fixed"),
        ({"integer": [1], "x0": [1.0, 1.0]}, {"x0": [1.0, 1.0]}, "its variable 1 is integer"),
        ({"x0": SPACE}, {"x0": Space({"a": Real(0, 1), "c": Real(0, 1)})}, "its parameters are a, b, not a, c"),
        ({"x0": SPACE}, {"x0": SPACE, "step_size": "tpa"}, "its step_size is 'csa', not 'tpa'"),
    ],
)
def test_a_search_of_another_kind_is_refused_with_the_difference(
    first: dict[str, Any], then: dict[str, Any], text: str, tmp_path: Path
) -> None:
    common: dict[str, Any] = {"x0": X0, "rng": 1, "checkpoint": tmp_path / "run.npz"}
    esgroup.minimize(lambda x: 1.0, **{**common, **first}, max_evals=20)
    with pytest.raises(ValueError, match=text) as caught:
        esgroup.minimize(lambda x: 1.0, **{**common, **then}, max_evals=40, resume=True)
    was, _, now = str(caught.value).partition(", not over ")
    assert not now or not was.endswith(now)
