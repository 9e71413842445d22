"""Imports go down only, the top level is small, and the picture of the layers is current."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import architecture  # noqa: E402


def test_every_import_goes_down_and_none_in_a_circle() -> None:
    assert architecture.faults(architecture.imports()) == []


def test_the_picture_is_current() -> None:
    assert architecture.PICTURE.read_text() == architecture.svg(architecture.imports()), "run scripts/architecture.py"


def test_the_top_level_has_at_most_eight_files_and_packages_state_their_subject() -> None:
    assert len(list((ROOT / "esgroup").glob("*.py"))) <= 8
    for layer in architecture.SHOWN:
        assert len(architecture.subject(layer)) > 10, layer


def test_an_import_that_goes_up_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    up = architecture.Import("groups.full", "search.searcher")
    assert architecture.faults([up]) == ["groups.full imports search.searcher, which is above it"]
    types = architecture.Import("groups.full", "search.searcher", for_types=True)
    assert len(architecture.faults([types])) == 1
    circle = [architecture.Import("groups.a", "groups.b"), architecture.Import("groups.b", "groups.a")]
    assert architecture.faults(circle) == ["modules import each other in a circle: groups.a -> groups.b -> groups.a"]
