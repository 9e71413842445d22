"""The command with constraints: those of a problem of the zoo, and those of a function of one's own."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import NonlinearConstraint
from typer.testing import CliRunner, Result

import esgroup
import esgroup_problems
from esgroup.command import cli
from esgroup.running.history import read

MODULE = """
import numpy as np
from esgroup import Choice, Real, Space

def bowl(x):
    return float((x ** 2).sum())

def outside(x):
    return [1 - x[0] * x[1], x[2] - 5]          # the second is never active

def never(x):
    return np.array([1 + x[0] ** 2])

def broken(x):
    raise ZeroDivisionError("no limit today")

def breaks(x):
    if x[0] < 1.2:
        raise ZeroDivisionError("too small")
    return 1 - x

def words(x):
    return "text"

space = Space({"a": Real(0, 4, start=3), "kind": Choice("flat", "steep")})

def cost(p):
    return p["a"] * (2 if p["kind"] == "steep" else 1)

def least(p):
    return 1.5 - p["a"]
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "limits_rig", raising=False)
    (tmp_path / "limits_rig.py").write_text(MODULE)
    return tmp_path


def command(*words: str, code: int = 0) -> Result:
    result = CliRunner().invoke(cli.app, ["run", *words])
    assert result.exit_code == code, result.output
    return result


def run(*words: str) -> Any:
    return json.loads(command(*words, "--json").stdout)


OWN = ("limits_rig:bowl", "--x0", "2,2,2", "--sigma0", "0.5", "--constraints", "limits_rig:outside", "--seed", "1")


def test_a_problem_of_the_zoo_is_searched_with_its_constraints() -> None:
    spring = esgroup_problems.get("spring")
    found = run("spring", "--seed", "1", "--max-evals", "600")
    constraints = NonlinearConstraint(spring.constraints, -np.inf, 0.0)
    expected = esgroup.minimize(
        spring.batch, spring.x0, spring.sigma0, bounds=spring.bounds, constraints=constraints, vectorized=True,
        rng=1, max_evals=600,
    )  # fmt: skip
    assert found["x"] == expected.x.tolist()
    assert found["multipliers"] == expected.multipliers[0].tolist()
    assert found["constr"] == expected.constr[0].tolist()
    assert found["feasible"] is True and found["constr_violation"] == expected.constr_violation


def test_the_answer_for_the_spring_is_the_known_one_and_names_what_is_active() -> None:
    found = run("spring", "--seed", "1")
    assert found["fun"] == pytest.approx(found["known_minimum"], rel=1e-5)
    assert found["active"] == [0, 1]
    np.testing.assert_allclose(np.array(found["multipliers"])[:2], [0.01076, 0.02438], rtol=1e-2)
    assert found["success"]


def test_a_problem_of_the_zoo_is_searched_with_its_integers() -> None:
    found = run("pressure_vessel", "--seed", "1", "--max-evals", "400")
    assert [x == round(x) for x in found["x"][:2]] == [True, True]
    assert run("pressure_vessel", "--seed", "1", "--max-evals", "40", "--integer", "1")["x"][0] % 1 != 0


def test_constraints_of_ones_own() -> None:
    found = run(*OWN)
    np.testing.assert_allclose(np.abs(found["x"]), [1, 1, 0], atol=1e-3)  # or both negative
    assert found["active"] == [0]
    assert found["multipliers"][0] == pytest.approx(2.0, rel=1e-2)  # grad (x^2 + y^2) = 2 grad (x y) at (1, 1)
    assert len(found["constr"]) == 2


def test_a_person_reads_whether_the_best_point_is_feasible() -> None:
    lines = dict(line.split(maxsplit=1) for line in command(*OWN).stdout.splitlines())
    assert lines["feasible"].startswith("yes, largest violation ")
    assert "active with multipliers: g[0] 2" in lines["feasible"] and lines["feasible"].endswith("(of 2)")
    never = command("limits_rig:bowl", "--dim", "2", "--constraints", "limits_rig:never", "--max-evals", "60").stdout
    assert "feasible no, largest violation 1" in never
    assert "feasible " not in command("sphere", "--dim", "2", "--max-evals", "20").stdout


def test_the_history_has_violations_and_the_figure_is_drawn(here: Path) -> None:
    words = ("limits_rig:bowl", "--x0", "0.1,0.1,2", "--sigma0", "0.2", "--constraints", "limits_rig:outside")
    command(*words, "--seed", "1", "--max-evals", "400", "--history", "h.jsonl", "--plot", "f.svg")
    recorded = read("h.jsonl")
    assert recorded.violation[0] > 0 and not recorded.feasible[0] and recorded.feasible[-1]
    assert "so far, not feasible" in (here / "f.svg").read_text()


def test_named_parameters_have_constraints_of_their_own() -> None:
    words = ("limits_rig:cost", "--space", "limits_rig:space", "--constraints", "limits_rig:least")
    found = run(*words, "--seed", "1", "--max-evals", "2000")
    assert found["x"]["a"] == pytest.approx(1.5, abs=1e-3) and found["x"]["kind"] == "flat"


def test_a_resumed_run_equals_the_uninterrupted_one() -> None:
    whole = run(*OWN, "--max-evals", "300")
    run(*OWN, "--max-evals", "100", "--checkpoint", "c.npz")
    rest = run(*OWN, "--max-evals", "300", "--checkpoint", "c.npz", "--resume")
    assert [rest[name] for name in ("x", "fun", "multipliers")] == [whole[name] for name in ("x", "fun", "multipliers")]


def test_workers_give_the_same_result() -> None:
    one, two = (run(*OWN, "--max-evals", "60", "--workers", n) for n in ("1", "2"))
    assert (one["x"], one["constr"]) == (two["x"], two["constr"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("limits_rig:bowl --dim 2 --constraints limits_rig:nowhere", "has no function 'nowhere'"),
        ("limits_rig:bowl --dim 2 --constraints limits_rig:space", "limits_rig:space must be a function"),
        ("limits_rig:bowl --dim 2 --constraints outside", "MODULE:FUNCTION"),
        ("limits_rig:bowl --dim 2 --constraints limits_rig:words", "constraints must return a number or a vector"),
        ("metric_nearness --constraints limits_rig:never", "constraints must return a number or a vector"),
        ("rosenbrock --method newton --constraints limits_rig:never", "--method newton does not support constraints"),
    ],
)
def test_wrong_input_is_one_line_and_status_2(words: str, message: str) -> None:
    result = command(*words.split(), code=2)
    assert message in result.stderr
    assert result.stderr.startswith("error: ") and result.stderr.count("\n") == 1


def test_an_exception_in_a_constraint_shows_its_traceback() -> None:
    result = command("limits_rig:bowl", "--dim", "2", "--constraints", "limits_rig:broken", code=1)
    assert "no limit today" in result.stderr and "limits_rig.py" in result.stderr
    assert "limits_rig:bowl or limits_rig:broken raised an exception" in result.stderr


def test_an_exception_in_a_constraint_may_count_as_a_failed_run() -> None:
    words = ("limits_rig:bowl", "--x0", "2,2", "--sigma0", "0.3", "--constraints", "limits_rig:breaks")
    found = run(*words, "--on-error", "nan", "--seed", "1", "--max-evals", "200")
    assert found["nfailed"] > 0 and found["x"][0] >= 1.2
