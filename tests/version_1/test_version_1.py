"""Checkpoints of format version 1 load, and go on as recorded: as their writers did where the update is the same."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from esgroup import Searcher
from tests.version_1.cases import FOLDER, KINDS, go_on, restarted

EXPECTED = json.loads((FOLDER / "expected.json").read_text())


def same(found: dict[str, Any], expected: dict[str, Any]) -> None:
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        if isinstance(value, (float, list)) and name != "stop":
            # on the machine that wrote the files the bits are the same; others round differently
            np.testing.assert_allclose(found[name], value, rtol=1e-7, atol=1e-12, err_msg=name)
        else:
            assert found[name] == value, name


@pytest.mark.parametrize("kind", KINDS)
def test_a_search_goes_on_from_an_old_file(kind: str) -> None:
    same(go_on(Searcher.load(FOLDER / f"{kind}.npz"), kind), EXPECTED[kind])


@pytest.mark.parametrize("kind", KINDS)
def test_an_old_search_can_be_saved_in_the_present_form(kind: str, tmp_path: Path) -> None:
    Searcher.load(FOLDER / f"{kind}.npz").save(tmp_path / "new.npz")
    same(go_on(Searcher.load(tmp_path / "new.npz"), kind), EXPECTED[kind])


def test_a_run_with_restarts_resumes(tmp_path: Path) -> None:
    copy = tmp_path / "restarts.npz"
    shutil.copy(FOLDER / "restarts.npz", copy)
    same(restarted(copy, True, 6002), EXPECTED["restarts"])
