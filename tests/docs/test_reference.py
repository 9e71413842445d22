"""Every public name is in the reference, and the examples of the first pages do what they say."""

import importlib
import re
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

DOCS = Path(__file__).parents[2] / "docs"
DIRECTIVE = re.compile(r"^\.\. (?:auto(?:module|class|function|exception|data)|py:data):: (\S+)$", re.MULTILINE)
LISTED = sorted(
    name for path in (DOCS / "reference").glob("*.rst") for name in DIRECTIVE.findall(path.read_text(encoding="utf-8"))
)
PUBLIC = (
    "esgroup",
    "esgroup.compare.methods",
    "esgroup.distributions",
    "esgroup.distributions.families",
    "esgroup.gradients",
    "esgroup.groups",
    "esgroup.newton",
    "esgroup.optuna",
    "esgroup.restarts",
    "esgroup.space",
    "esgroup.stopping",
    "esgroup.strategies",
    "esgroup.surrogates",
    "esgroup.torch",
    "esgroup.variational",
    "esgroup_problems",
)
NEEDS = {"esgroup.optuna": "optuna", "esgroup.torch": "torch"}


def imported(name: str) -> ModuleType:
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    return importlib.import_module(name)


def public(module: ModuleType) -> dict[str, object]:
    """What a module offers: its __all__, else all names without an underscore that are ours and no modules."""
    if hasattr(module, "__all__"):
        return {name: getattr(module, name) for name in module.__all__}
    found = {name: thing for name, thing in vars(module).items() if not name.startswith("_")}
    ours = ("esgroup.", "esgroup_problems.")
    return {
        name: thing
        for name, thing in found.items()
        if not isinstance(thing, ModuleType)
        and (f"{getattr(thing, '__module__', '')}.".startswith(ours) or isinstance(thing, dict))
        and (not module.__file__.endswith("restarts.py") or thing.__module__ == module.__name__)
    }


def resolved(name: str) -> object:
    """The object of a dotted name."""
    try:
        return importlib.import_module(name)
    except ImportError:
        owner, _, last = name.rpartition(".")
        return getattr(resolved(owner), last)


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_is_in_the_reference(name: str) -> None:
    module = imported(name)
    offered = public(module)
    assert len(offered) >= 1
    others = tuple(needing for needing in NEEDS if needing != name)
    there = [resolved(one) for one in LISTED if not one.startswith(others)]
    assert [one for one, thing in offered.items() if not any(thing is other for other in there)] == []


def test_nothing_is_described_twice() -> None:
    described = [name for name in LISTED if not name.startswith(tuple(NEEDS))]
    things = [resolved(name) for name in described]
    twice = [a for i, a in enumerate(described) if any(things[i] is thing for thing in things[:i])]
    # values, unlike classes and functions, may be equal by chance
    assert [name for name in twice if not isinstance(resolved(name), (str, type(None)))] == []


@pytest.mark.parametrize("page", ["index", "start"])
def test_the_examples_of_the_first_pages_find_the_minimum(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    examples = re.findall(r"```python\n(.*?)```", (DOCS / f"{page}.md").read_text(encoding="utf-8"), re.DOTALL)
    assert examples
    for code in examples:
        names: dict = {}
        exec(compile(code, page, "exec"), names)
        result = names["result"] if "result" in names else names["search"].result
        np.testing.assert_allclose(result.x, np.round(result.x), atol=1e-4)
        assert result.success and np.round(result.x[0]) in (1, 3)
    assert capsys.readouterr().out


def test_the_numbers_of_the_start_page_are_those_of_its_examples(capsys: pytest.CaptureFixture[str]) -> None:
    text = (DOCS / "start.md").read_text(encoding="utf-8")
    first, second = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    one: dict = {}
    two: dict = {}
    exec(compile(first, "start", "exec"), one)
    exec(compile(second, "start", "exec"), two)
    assert f"| {one['result'].nfev}, {one['result'].nit} |" in text
    assert f"{one['result'].fun:.2e} after {one['result'].nfev} evaluations" in text
    result = two["search"].result
    assert f"# {result.nfailed} of {result.nfev} runs failed" in text
    assert f"# {len(two['X'])} points within the bounds" in text
    capsys.readouterr()
