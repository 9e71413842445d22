"""What pages, docstrings and help say of `sigma0` is the same everywhere, and true."""

import inspect
import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import esgroup
from esgroup.command.cli import app
from tests.docs.test_commands import DOCS, PAGES

ADVICE = "about a quarter of the width of the region in which you expect the minimum"
DEFAULT = "By default it is a quarter of the range between finite bounds, elsewhere 0.3 max|x0|, or 1 if x0 is 0."
PLACES = {page: (DOCS / page).read_text(encoding="utf-8") for page in ("start.md", "how-to/calling.md")}
PLACES |= {"Searcher": inspect.getdoc(esgroup.Searcher) or "", "minimize": inspect.getdoc(esgroup.minimize) or ""}


def one_line(text: str) -> str:
    return " ".join(re.sub(r"[│`]", " ", text).split())


@pytest.mark.parametrize("place", PLACES)
def test_the_advice_is_the_same(place: str) -> None:
    assert ADVICE in one_line(PLACES[place])
    assert DEFAULT in one_line(PLACES[place]) or place == "start.md"


def test_the_help_of_the_command_has_the_same_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert ADVICE in one_line(CliRunner().invoke(app, ["run", "--help"]).stdout)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_no_page_has_other_advice(page: Path) -> None:
    sentences = re.split(r"(?<=[.])\s|\n\n|\|\n", page.read_text(encoding="utf-8"))
    shares = [
        one_line(one) for one in sentences if "`sigma0`" in one and re.search(r"\b(third|half|order of|as wide)\b", one)
    ]
    assert shares == []


@pytest.mark.parametrize(
    ("x0", "bounds", "wanted"),
    [
        ([3.0, -8.0], (-10, 10), [5.0, 5.0]),
        ([3.0, -8.0], None, [2.4, 2.4]),
        ([0.0, 0.0], None, [1.0, 1.0]),
        ([3.0, -8.0], [(0, 4), (None, 5)], [1.0, 2.4]),
    ],
)
def test_the_default_is_what_is_said(x0: list[float], bounds: object, wanted: list[float]) -> None:
    search = esgroup.Searcher(x0, bounds=bounds, rng=1)
    np.testing.assert_allclose(search.strategy.view(search.state).spread(), wanted)
