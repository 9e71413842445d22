"""The command over spaces other than vectors: matrices for such problems, several optima with --basins."""

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from esgroup.command import cli
from esgroup.plots.axes import size
from esgroup.running.history import read


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "hills", raising=False)
    (tmp_path / "hills.py").write_text("def four(x):\n    return (x[0] ** 2 - 1) ** 2 + (x[1] ** 2 - 4) ** 2\n")
    return tmp_path


def output(*words: str, code: int = 0) -> str:
    result = CliRunner().invoke(cli.app, words)
    assert result.exit_code == code, result.output
    return result.output


def test_a_positive_definite_problem_is_searched_by_a_wishart(here: Path) -> None:
    words = ("--dim", "4", "--seed", "1", "--max-evals", "3000", "--history", "run.jsonl")
    shown = output("run", "metric_nearness", *words)
    assert "metric_nearness, 4 x 4 matrices, structure Wishart, full" in shown
    header = read(here / "run.jsonl").header
    assert header["shape"] == [4, 4] and size(header["dim"], header["shape"]) == "4 x 4"
    rows = [line for line in shown.splitlines() if "[" in line]
    assert len(rows) == 4 and rows[0].startswith("at       [[")


def test_the_result_as_json_is_a_matrix_near_the_minimum() -> None:
    words = ("run", "matrix_inversion", "--dim", "3", "--seed", "1", "--target", "1e-6", "--json")
    found = json.loads(output(*words))
    x = np.array(found["x"])
    assert x.shape == (3, 3) and np.array_equal(x, x.T) and found["fun"] <= 1e-6 and found["success"]


def test_a_matrix_problem_takes_a_structure_of_rows_and_columns() -> None:
    words = ("run", "kronecker_ellipsoid", "--dim", "3", "--structure", "diagonal", "--max-evals", "100")
    assert "Kronecker(first=Diagonal(dim=3), second=Diagonal(dim=3))" in output(*words)


def test_all_optima_are_listed_best_first() -> None:
    words = ("run", "hills:four", "--dim", "2", "--basins", "4", "--bounds=-3,3", "--seed", "1")
    lines = [line for line in output(*words).splitlines() if line.startswith("mode ")]
    assert len(lines) == 4 and all("of descents" in line for line in lines)
    modes = json.loads(output(*words, "--json"))["modes"]
    points = np.abs([mode["point"] for mode in modes])
    np.testing.assert_allclose(points, np.tile([1.0, 2.0], (4, 1)), atol=1e-4)
    values = [mode["value"] for mode in modes]
    assert values == sorted(values) and sum(mode["weight"] for mode in modes) == pytest.approx(1)


def test_a_run_over_matrices_continues_from_its_checkpoint() -> None:
    words = ("run", "matrix_inversion", "--dim", "3", "--seed", "2", "--json", "--max-evals")
    whole = json.loads(output(*words, "600"))
    output(*words, "300", "--checkpoint", "run.npz")
    resumed = json.loads(output(*words, "600", "--checkpoint", "run.npz", "--resume"))
    assert resumed["x"] == whole["x"] and resumed["nfev"] == whole["nfev"]


@pytest.mark.parametrize(("words", "message"), [
    (("matrix_inversion", "--dim", "2", "--x0", "1,0,0,1"), r"x0 .*vectors.*matrix_inversion"),
    (("matrix_inversion", "--x0", "1,2,3"), r"x0 .*vectors.*matrix_inversion"),
    (("matrix_inversion", "--bounds", "0,1"), r"bounds .*Wishart"),
    (("matrix_inversion", "--basins", "2"), r"basins .*vectors.*space='spd'"),
    (("hills:four", "--dim", "2", "--basins", "2", "--bounds", "0,1", "--sigma0", "1"), r"sigma0 .*left out"),
])  # fmt: skip
def test_what_does_not_fit_the_space_is_refused_in_a_line(words: tuple[str, ...], message: str) -> None:
    shown = output("run", *words, code=2)
    assert re.search(message, " ".join(shown.split())) and "Traceback" not in shown
