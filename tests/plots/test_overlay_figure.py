"""The figure of several runs: a line and a name for each file, on one axis."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from esgroup.plots import overlay, style
from esgroup.running.history import read
from tests.plots.test_run_figure import write_history


def drawn(*paths: Path) -> Any:
    figure = style.new_figure(9, 5)
    overlay.draw(figure, [read(path) for path in paths], overlay.names(paths))
    return figure.axes[0]


def lines(axes: Any) -> dict[str, Any]:
    return {line.get_label(): line for line in axes.lines if not line.get_label().startswith("_")}


def test_each_history_is_a_line_with_its_own_color_and_name(tmp_path: Path) -> None:
    a = write_history(tmp_path / "a.jsonl", [9.0, 3.0, 1.0])
    b = write_history(tmp_path / "b.jsonl", [8.0, 2.0])
    axes = drawn(a, b)
    there = lines(axes)
    assert list(there) == [text.get_text() for text in axes.get_legend().get_texts()] == ["a", "b"]
    np.testing.assert_array_equal(there["a"].get_xydata(), [[10, 9], [20, 3], [30, 1]])
    np.testing.assert_array_equal(there["b"].get_xydata(), [[10, 8], [20, 2]])
    assert there["a"].get_color() != there["b"].get_color()
    assert axes.get_yscale() == "log" and axes.get_ylabel() == "best value" and axes.get_xlabel() == "evaluations"
    assert axes.get_xlim()[1] >= 30
    ends = sorted(line.get_xydata()[0].tolist() for line in axes.lines if line.get_marker() == "o")
    assert ends == [[20, 2], [30, 1]]


def test_all_lines_are_shifted_by_the_same_value(tmp_path: Path) -> None:
    a, b = write_history(tmp_path / "a", [5.0, -1.0]), write_history(tmp_path / "b", [4.0, -3.0])
    axes = drawn(a, b)
    assert axes.get_ylabel() == "best value − lowest (−3)"
    np.testing.assert_array_equal(lines(axes)["a"].get_ydata(), [8, 2])
    np.testing.assert_array_equal(lines(axes)["b"].get_ydata(), [7, np.nan])


def test_a_restart_does_not_break_a_line_and_what_is_not_feasible_is_dotted(tmp_path: Path) -> None:
    a = write_history(tmp_path / "a", [4.0, 3.0, 2.0], restart=[0, 1, 1])
    b = write_history(tmp_path / "b", [4.0, 3.0, 2.0], violation=[1.0, 0.0, 0.0])
    axes = drawn(a, b)
    np.testing.assert_array_equal(lines(axes)["a"].get_ydata(), [4, 3, 2])
    np.testing.assert_array_equal(lines(axes)["b"].get_ydata(), [np.nan, 3, 2])
    dotted = [line for line in axes.lines if line.get_color() == lines(axes)["b"].get_color() and line.is_dashed()]
    np.testing.assert_array_equal(dotted[0].get_ydata(), [4, np.nan, np.nan])


def test_more_runs_than_colors_differ_in_the_kind_of_their_lines(tmp_path: Path) -> None:
    paths = [write_history(tmp_path / f"{i}.jsonl", [2.0, 1.0]) for i in range(3 * len(style.LINES))]
    there = lines(drawn(*paths))
    kinds = {(line.get_color(), str(line._unscaled_dash_pattern)) for line in there.values()}
    assert len(there) == len(kinds) == len(paths)


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        (["a.jsonl", "runs/b.jsonl"], ["a", "b"]),
        (["x/run.jsonl", "y/run.jsonl"], ["x/run", "y/run"]),
        (["p/x/run.jsonl", "q/x/run.jsonl", "run2.jsonl"], ["p/x/run", "q/x/run", "run2"]),
        (["a.jsonl", "a.json"], ["a.jsonl", "a.json"]),
        (["a.jsonl", "a.jsonl"], ["a", "a"]),
    ],
)
def test_names_are_as_short_as_they_can_be(paths: list[str], expected: list[str]) -> None:
    assert overlay.names([Path(path) for path in paths]) == expected


def test_the_title_has_what_the_runs_share(tmp_path: Path) -> None:
    a = write_history(tmp_path / "a", [2.0, 1.0])
    b = write_history(tmp_path / "b", [2.0, 1.0], structure="diagonal")
    c = write_history(tmp_path / "c", [2.0, 1.0], structure="diagonal", dim=4, problem="other")
    for paths, title in (((a, b), "bowl  ·  3 variables"), ((b, c), "diagonal"), ((a, c), "2 runs")):
        assert drawn(*paths).figure.get_suptitle() == title


def test_a_figure_is_written_also_where_no_value_is_known(tmp_path: Path) -> None:
    empty = write_history(tmp_path / "e", [None, None])
    for paths in ((empty, empty), (empty, write_history(tmp_path / "a", [2.0, 1.0]))):
        assert overlay.overlay(paths, tmp_path / "f.png") == tmp_path / "f.png"
        assert (tmp_path / "f.png").read_bytes().startswith(b"\x89PNG")
    assert "no finite value so far" in [text.get_text() for text in drawn(empty).texts]


def test_no_history_and_no_place_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="histories must be at least one file, got none"):
        overlay.overlay([], tmp_path / "f.png")
    with pytest.raises(ValueError, match=r"\.png, \.svg, \.pdf.* '.*x\.gif'"):
        overlay.overlay([write_history(tmp_path / "a", [1.0])], tmp_path / "x.gif")
