"""The functions of COCO's suites against ioh, which has the same ones."""

import inspect
import pickle
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import esgroup_problems as zoo
from esgroup_problems import bbob

pytest.importorskip("cocoex")

NUMBERS = range(1, 25)


def make(name: str, dim: int, seed: int = 0) -> zoo.Problem:
    return zoo.PROBLEMS[name](dim, seed=seed)


@pytest.mark.parametrize("number", NUMBERS)
def test_a_function_is_that_of_ioh_with_its_optimum(number: int) -> None:
    ioh = pytest.importorskip("ioh")
    rng = np.random.default_rng(number)
    for dim, seed in [(2, 0), (5, 1), (20, 4)]:
        problem = make(f"bbob_f{number}", dim, seed)
        twin = ioh.get_problem(number, seed + 1, dim, ioh.ProblemClass.BBOB)
        x = rng.uniform(-5, 5, (3, dim))
        np.testing.assert_allclose(problem.batch(x), [twin(row) for row in x], rtol=1e-9)
        assert problem.minimum == pytest.approx(twin.optimum.y, abs=1e-13)
        np.testing.assert_allclose(problem.minimizer, twin.optimum.x, atol=1e-9)
        assert problem.fun(problem.minimizer) == pytest.approx(problem.minimum, abs=1e-12)
        assert [problem.fun(row) for row in x] == problem.batch(x).tolist()


@pytest.mark.parametrize("number", NUMBERS)
def test_the_minimum_of_a_large_function_is_its_value_at_the_optimum_of_coco(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = make(f"bbob_largescale_f{number}", 80 if number % 2 else 20, seed=number % 15)
    monkeypatch.chdir(tmp_path)  # where COCO writes its optimum to
    pickle.loads(pickle.dumps(problem.batch)).problem._best_parameter("print")
    best = np.loadtxt(tmp_path / "._bbob_problem_best_parameter.txt")
    assert problem.fun(best) == pytest.approx(problem.minimum, abs=1e-10)
    assert problem.batch(best + np.random.default_rng(1).normal(size=(20, problem.dim))).min() > problem.minimum


def test_the_seed_counts_the_instances_of_the_suite() -> None:
    assert [make("bbob_f1", 2, seed).batch.problem.id_instance for seed in (0, 4, 5)] == [1, 5, 71]
    assert make("bbob_largescale_f3", 20, 14).batch.problem.id_instance == 15


def test_an_instance_that_is_not_there_is_refused() -> None:
    with pytest.raises(ValueError, match="seed must be less than 15, the number of instances in suite bbob, got 15"):
        make("bbob_f24", 2, 15)
    with pytest.raises(ValueError, match="seed must be an integer >= 0, got -1"):
        make("bbob_f24", 2, -1)


def test_a_dimension_that_is_not_there_is_refused() -> None:
    with pytest.raises(ValueError, match="dim must be one of 2, 3, 5, 10, 20, 40 for the suite bbob, got 4"):
        make("bbob_f1", 4)
    with pytest.raises(ValueError, match="dim must be one of 20, 40, 80, 160, 320, 640 for the suite bbob-largescale"):
        make("bbob_largescale_f1", 10)


def test_a_problem_is_opened_again_where_it_is_sent_to() -> None:
    problem, x = make("bbob_f17", 5, 6), np.linspace(-3, 2, 5)
    sent = pickle.loads(pickle.dumps(problem))
    assert sent.fun(x) == problem.fun(x) and sent.batch.problem.id == problem.batch.problem.id == "bbob_f017_i72_d05"
    assert len(pickle.dumps(problem.fun)) < 300


def test_every_function_has_a_maker_with_its_name() -> None:
    for suite, prefix in ((bbob.BBOB, "bbob_f"), (bbob.LARGESCALE, "bbob_largescale_f")):
        assert [name for name in zoo.PROBLEMS if name.startswith(prefix)] == [f"{prefix}{k}" for k in NUMBERS]
        maker = zoo.PROBLEMS[f"{prefix}9"]
        assert maker.__doc__ == f"Rosenbrock, rotated: function 9 of COCO's suite {suite.name}."
        assert pickle.loads(pickle.dumps(maker)) is maker
        assert list(inspect.signature(maker).parameters) == ["dim", "seed"]
        assert maker().dim == suite.usual and maker().name == f"{prefix}9" and maker().source == suite.source


@pytest.mark.parametrize("number", NUMBERS)
def test_a_function_has_the_name_that_ioh_gives_it(number: int) -> None:
    ioh = pytest.importorskip("ioh")
    theirs = ioh.get_problem(number, 1, 2, ioh.ProblemClass.BBOB).meta_data.name  # as in "BentCigar"
    ours = (zoo.PROBLEMS[f"bbob_f{number}"].__doc__ or "").partition(":")[0].lower()
    assert all(word[:6].lower() in ours for word in re.findall(r"[A-Z][a-z]+|\d+", theirs))


def test_a_problem_begins_in_the_middle_of_the_region_of_interest() -> None:
    problem = make("bbob_f10", 3)
    assert problem.x0.tolist() == [0, 0, 0] and problem.sigma0 == 2 and problem.start_box == (-4, 4)


def test_nothing_is_printed_or_written(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("bbob_f3", "bbob_largescale_f3"):
        problem = make(name, 20)
        problem.fun(problem.x0)
    assert capfd.readouterr() == ("", "") and not list(tmp_path.iterdir())


def test_without_coco_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cocoex", None)
    with pytest.raises(ImportError, match=r"the bbob problems need coco-experiment: pip install 'esgroup\[bench\]'"):
        make("bbob_f1", 2)
