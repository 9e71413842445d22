"""Two files of a run that are one would destroy each other: an error before anything is written or evaluated."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import esgroup
from esgroup.command import cli
from esgroup.files.autosave import must_differ
from esgroup.plots.overlay import overlay
from esgroup.plots.run import plot


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def same(here: Path) -> tuple[str, str]:
    return "run", "run"


def absolute(here: Path) -> tuple[str, str]:
    return "run", str(here / "run")


def roundabout(here: Path) -> tuple[str, str]:
    (here / "folder").mkdir()
    return "run", os.path.join("folder", "..", ".", "run")


def linked(here: Path) -> tuple[str, str]:
    os.symlink("run", "link")  # to a file that does not exist yet
    return "run", "link"


def in_a_linked_folder(here: Path) -> tuple[str, str]:
    (here / "folder").mkdir()
    os.symlink("folder", "link")
    return os.path.join("folder", "run"), os.path.join("link", "run")


def with_two_names(here: Path) -> tuple[str, str]:
    (here / "run").write_bytes(b"")
    os.link("run", "other")
    return "run", "other"


WAYS = [same, absolute, roundabout, linked, in_a_linked_folder, with_two_names]
Way = Callable[[Path], tuple[str, str]]


def contents() -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(Path().rglob("*")) if path.is_file()}


def search(**files: Any) -> Any:
    return esgroup.minimize(_never, np.ones(2), 0.5, rng=1, max_iters=3, **files)


def fit(**files: Any) -> Any:
    return esgroup.fit_posterior(_never, np.zeros(2), rng=1, max_iters=3, **files)


def _never(x: np.ndarray) -> float:
    raise AssertionError("nothing may be evaluated")


@pytest.mark.parametrize("run", [search, fit])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("resume", [False, True])
def test_history_and_checkpoint_must_be_two_files(here: Path, way: Way, run: Callable[..., Any], resume: bool) -> None:
    one, other = way(here)
    before = contents()
    for history, checkpoint in ((one, other), (Path(other), Path(one))):
        with pytest.raises(ValueError, match=r"history and checkpoint must be different files, got '.*run"):
            run(history=history, checkpoint=checkpoint, resume=resume)
    assert contents() == before


@pytest.mark.parametrize("pair", ["--history --checkpoint", "--history --plot", "--checkpoint --plot"])
@pytest.mark.parametrize("other", ["a.png", "folder/../a.png"])
def test_the_files_of_the_command_must_differ(here: Path, pair: str, other: str) -> None:
    (here / "folder").mkdir()
    first, second = pair.split()
    result = CliRunner().invoke(cli.app, ["run", "sphere", "--max-iters", "2", first, "a.png", second, other])
    assert result.exit_code == 2 and contents() == {}
    assert re.match(f"error: {first} and {second} must be different files, got 'a.png'", result.stderr)


def test_a_figure_does_not_replace_the_history_that_it_shows(here: Path) -> None:
    esgroup.minimize(lambda x: x @ x, np.ones(2), 0.5, rng=1, max_iters=3, history="run.png")
    before = contents()
    with pytest.raises(ValueError, match=r"history and out must be different files, got 'run\.png' for both"):
        plot("run.png", "run.png")
    with pytest.raises(ValueError, match="histories and out must be different files"):
        overlay(["run.png", "run.png"], here / "run.png")
    assert CliRunner().invoke(cli.app, ["plot", "run.png"]).exit_code == 2  # whose figure would have that name
    assert contents() == before


def test_other_files_and_files_that_are_not_given_are_no_pair() -> None:
    Path("run").write_bytes(b"")
    must_differ({"history": "run", "checkpoint": None, "plot": None})
    must_differ({"history": "run", "checkpoint": "run.npz", "plot": "Run"})
