"""The examples in docstrings do what they say."""

import doctest
import importlib
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "esgroup"
MODULES = sorted(
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")
    for path in PACKAGE.rglob("*.py")
    if ">>> " in path.read_text()
)


@pytest.mark.parametrize("name", MODULES)
def test_examples_do_what_they_say(name: str) -> None:
    if name.startswith("esgroup.torch"):
        pytest.importorskip("torch", reason="torch is not installed: the examples of networks are skipped")
    found = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert found.attempted > 0 and found.failed == 0


def test_there_are_examples() -> None:
    assert {"esgroup.search.searcher", "esgroup.driver.minimize"} <= set(MODULES)
