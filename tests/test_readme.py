"""The README's examples run as they stand."""

import re
from pathlib import Path

import numpy as np
import pytest

import esgroup

README = Path(__file__).parents[1] / "README.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)


@pytest.fixture(scope="module", autouse=True)
def compiled() -> None:
    """The notice that loops are being compiled, on a slow machine, is not the examples' fault."""
    esgroup.minimize(lambda x: float(x @ x), np.ones(3), 0.5, max_evals=50, rng=1)
    esgroup.minimize(lambda x: float(x @ x), np.ones(3), 0.5, bounds=(-9, 9), max_evals=50, rng=1)
    esgroup.minimize(lambda x: float(x @ x), np.ones(3), 0.5, structure="frame", max_evals=50, rng=1)


LARGE = re.findall(r"```python\n(.*?)```", (README.parent / "docs" / "LARGE.md").read_text(), re.DOTALL)
EVERY = {f"example{i}": code for i, code in enumerate(EXAMPLES)} | {f"large{i}": code for i, code in enumerate(LARGE)}


@pytest.mark.parametrize("code", EVERY.values(), ids=EVERY)
def test_an_example_runs(code: str, capsys: pytest.CaptureFixture[str]) -> None:
    if "esgroup.torch" in code or "import math, torch" in code:
        pytest.importorskip("torch", reason="torch is not installed: the example with a network is skipped")
    names: dict[str, object] = {}
    exec(compile(code, str(README), "exec"), names)
    assert capsys.readouterr().err == ""


def test_the_first_examples_find_the_minimum() -> None:
    """One call, and ask and tell."""
    one: dict = {}
    two: dict = {}
    exec(compile(EXAMPLES[0], str(README), "exec"), one)
    np.testing.assert_allclose(one["res"].x, np.ones(10), atol=1e-3)
    exec(compile(EXAMPLES[1], str(README), "exec"), two)
    np.testing.assert_allclose(two["search"].result.x, [3.0, 3.0, 3.0], atol=1e-4)


def test_the_spring_is_as_light_as_it_can_be() -> None:
    names: dict = {}
    exec(compile(next(code for code in EXAMPLES if "def limits" in code), str(README), "exec"), names)
    res = names["res"]
    assert res.fun < 0.01268 and res.feasible
    assert [bool(m > 1e-3) for m in res.multipliers[0]] == [True, True, False, False]
    assert max(names["limits"](res.x)) < 1e-5


def test_nothing_is_left_to_be_filled_in() -> None:
    assert not re.search(r"@[A-Z0-9]+@", README.read_text())


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 2
