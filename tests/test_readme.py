"""The examples of the README and of the pages run as they stand."""

import re
from pathlib import Path

import numpy as np
import pytest

README = Path(__file__).parents[1] / "README.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
DOCS = README.parent / "docs"
PAGES = {"large": DOCS / "LARGE.md"} | {page.stem: page for page in sorted((DOCS / "how-to").glob("*.md"))}


def examples(page: Path) -> list[str]:
    """The blocks of a page that are marked as Python; those marked as py are not run."""
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)


EVERY = {f"example{i}": code for i, code in enumerate(EXAMPLES)}
EVERY |= {f"{name}{i}": code for name, page in PAGES.items() for i, code in enumerate(examples(page))}
NEEDED = ("torch", "optuna", "cma", "cmaes")  # packages without which an example is skipped


@pytest.mark.parametrize("code", EVERY.values(), ids=EVERY)
def test_an_example_runs(
    code: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for package in NEEDED:
        if re.search(rf"^(import|from) (\w+, )?(esgroup\.)?{package}\b", code, re.MULTILINE):
            pytest.importorskip(package, reason=f"{package} is not installed: an example that needs it is skipped")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__main__"}
    exec(compile(code, str(README), "exec"), names)
    said = capsys.readouterr().err.splitlines()
    assert [line for line in said if "compiling kernels" not in line] == []  # a notice of slow machines


def test_the_first_examples_find_the_minimum() -> None:
    """One call, and ask and tell."""
    one: dict = {}
    two: dict = {}
    first, second = examples(PAGES["calling"])[:2]
    exec(compile(first, str(README), "exec"), one)
    np.testing.assert_allclose(one["res"].x, np.ones(10), atol=1e-3)
    exec(compile(second, str(README), "exec"), two)
    np.testing.assert_allclose(two["search"].result.x, [3.0, 3.0, 3.0], atol=1e-4)


def test_the_spring_is_as_light_as_it_can_be() -> None:
    names: dict = {}
    exec(compile(next(code for code in EVERY.values() if "def limits" in code), str(README), "exec"), names)
    res = names["res"]
    assert res.fun < 0.01268 and res.feasible
    assert [bool(m > 1e-3) for m in res.multipliers[0]] == [True, True, False, False]
    assert max(names["limits"](res.x)) < 1e-5


def test_nothing_is_left_to_be_filled_in() -> None:
    assert not re.search(r"@[A-Z0-9]+@", README.read_text())


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 2


def test_every_page_is_in_the_index() -> None:
    text = (DOCS / "how-to" / "index.md").read_text(encoding="utf-8")
    listed = text[text.index("```{toctree}") :].split("```")[1].split("\n")
    assert {line for line in listed if re.fullmatch(r"[\w-]+", line)} == set(PAGES) - {"large", "index"}
    for name in set(PAGES) - {"large", "index"}:
        assert f"]({name}.md)" in text, name
