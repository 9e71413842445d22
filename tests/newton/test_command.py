"""esgroup run --method newton."""

import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from esgroup.command import cli

MODULE = """
def bowl(x):
    return float(((x - 1) ** 2).sum())

def slope(x):
    return 2 * (x - 1)

def bend(x, v):
    return 2 * v

def broken(x):
    raise ZeroDivisionError("no slope here")
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "smooth", raising=False)
    (tmp_path / "smooth.py").write_text(MODULE)
    return tmp_path


def output(*words: str, code: int = 0) -> str:
    result = CliRunner().invoke(cli.app, ("run", *words, "--method", "newton"))
    assert result.exit_code == code, result.output
    return result.output


def test_a_problem_with_derivatives_is_solved() -> None:
    shown = output("rosenbrock", "--dim", "20", "--target", "1e-8")
    assert "rosenbrock, 20 variables, structure Moving(k=10" in shown
    assert "stopped  target: " in shown and "Hessian products" in shown


def test_the_result_as_json_has_the_counts_of_derivatives() -> None:
    found = json.loads(output("rosenbrock", "--dim", "5", "--structure", "full", "--json"))
    assert found["fun"] < 1e-9 and found["nhvp"] == 5 * found["nit"] and found["njev"] == found["nit"] + 1
    assert found["structure"] == "Full(dim=5)" and found["success"]


def test_derivatives_of_the_users_own_function_can_be_named() -> None:
    known = ("smooth:bowl", "--dim", "3", "--json", "--jac", "smooth:slope")
    by_products = json.loads(output(*known, "--hessp", "smooth:bend"))
    by_differences = json.loads(output(*known))
    for found in (by_products, by_differences):
        assert found["x"] == pytest.approx([1, 1, 1], abs=1e-6)
    assert by_products["njev"] < by_differences["njev"]


def test_an_exception_in_a_derivative_is_shown_as_such() -> None:
    shown = output("smooth:bowl", "--dim", "3", "--jac", "smooth:broken", code=1)
    assert "no slope here" in shown and "smooth:bowl" in shown


@pytest.mark.parametrize(("words", "parts"), [
    (("smooth:bowl", "--dim", "3"), ("smooth:bowl", "gradient", "--jac")),
    (("metric_nearness",), ("metric_nearness", "matrices", "vectors")),
    (("rosenbrock", "--plot", "run.png"), ("--plot", "--method newton", "leave it out")),
    (("rosenbrock", "--bounds", "0,1"), ("bounds", "searches")),
    (("rosenbrock", "--noise", "adapt"), ("noise", "searches")),
    (("rosenbrock", "--structure", "moving:k=0"), ("k must be", "got 0")),
])  # fmt: skip
def test_arguments_that_do_not_fit_are_refused_in_one_line(words: tuple[str, ...], parts: tuple[str, ...]) -> None:
    shown = output(*words, code=2)
    message = " ".join(shown.split())
    assert all(part in message for part in parts) and "Traceback" not in shown
