"""The figure of a run: what is drawn, how it is named, and that drawing changes nothing else."""

import itertools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from esgroup.plots import run, style
from esgroup.plots.axes import MOST_POINTS
from esgroup.running.history import read


def write_history(
    path: Path, best_f: Any, *, dim: int = 3, restart: Any = None, violation: Any = None, **header: Any
) -> Path:
    """A history with values of our own: nfev = 10, 20, ..., mean_j = j + 1, stds_j = 0.1 (j + 1)."""
    count = min(dim, 100)
    start = {"esgroup_history": 1, "problem": "bowl", "dim": dim, "coordinates": count, "structure": "full"}
    rows = [json.dumps(start | header)]
    for i, value in enumerate(best_f):
        rows.append(
            json.dumps(
                {
                    "nit": i + 1,
                    "nfev": 10 * (i + 1),
                    "best_f": value,
                    "gen_best": value,
                    "sigma": 0.5**i,
                    "axis_ratio": 2.0 + i if i % 2 == 0 else None,
                    "restart": 0 if restart is None else restart[i],
                    "elapsed": 0.25 * (i + 1),
                    "mean": list(range(1, count + 1)),
                    "stds": [0.1 * (j + 1) for j in range(count)],
                }
                | ({} if violation is None else {"violation": violation[i], "feasible": violation[i] == 0})
            )
        )
    path.write_text("\n".join(rows) + "\n")
    return path


def drawn(path: Path) -> Any:
    figure = style.new_figure(11, 7)
    run._draw(figure, read(path))
    return figure


def panel(figure: Any, label: str) -> Any:
    return next(axes for axes in figure.axes if axes.get_ylabel().startswith(label))


def curve(axes: Any, k: int = -1) -> np.ndarray:
    return np.array(axes.lines[k].get_xydata())


def test_best_values_are_drawn_in_another_way_until_they_are_feasible(tmp_path: Path) -> None:
    path = write_history(tmp_path / "h", [4.0, 2.0, 3.0, 2.5], violation=[0.5, 0.1, 0.0, 0.0])
    figure = drawn(path)
    axes = panel(figure, "best value")
    by_name = {line.get_label(): line for line in axes.lines}
    assert np.array_equal(by_name["so far, not feasible"].get_ydata(), [4, 2, np.nan, np.nan], equal_nan=True)
    assert np.array_equal(by_name["so far, feasible"].get_ydata(), [np.nan, np.nan, 3, 2.5], equal_nan=True)
    assert by_name["so far, not feasible"].get_linestyle() != by_name["so far, feasible"].get_linestyle()
    assert "not feasible" not in axes.get_title(loc="left")


def test_the_title_says_that_nothing_feasible_was_found(tmp_path: Path) -> None:
    axes = panel(drawn(write_history(tmp_path / "h", [4.0, 2.0], violation=[0.5, 0.1])), "best value")
    assert "best value 2 (not feasible)" in axes.get_title(loc="left")
    assert "so far, feasible" not in [line.get_label() for line in axes.lines]


def test_the_panels_show_the_history(tmp_path: Path) -> None:
    figure = drawn(write_history(tmp_path / "h", [4.0, 2.0, 1.0, 0.5]))
    best = next(line for line in panel(figure, "best value").lines if line.get_label() == "so far")
    assert best.get_xydata().tolist() == [[10, 4], [20, 2], [30, 1], [40, 0.5]]
    assert curve(panel(figure, "step size"), 0)[:, 1].tolist() == [1, 0.5, 0.25, 0.125]
    assert curve(panel(figure, "axis ratio"), 0).tolist() == [[10, 2], [30, 4]]
    assert [curve(panel(figure, "mean"), j)[0, 1] for j in range(3)] == [1, 2, 3]
    assert curve(panel(figure, "standard deviations"), 2)[:, 1].tolist() == pytest.approx([0.3] * 4)
    scales = {axes.get_ylabel(): axes.get_yscale() for axes in figure.axes}
    assert scales.pop("mean") == "linear" and set(scales.values()) == {"log"}


def test_the_title_names_problem_dimension_and_structure(tmp_path: Path) -> None:
    figure = drawn(write_history(tmp_path / "h", [4.0, -2.0]))
    assert figure.get_suptitle() == "bowl  ·  3 variables  ·  full"
    assert panel(figure, "best value").get_title(loc="left") == (
        "best value −2,  20 evaluations,  2 generations,  0.5 s"
    )
    assert drawn(write_history(tmp_path / "h", [4.0], dim=1, problem=None)).get_suptitle() == "1 variable  ·  full"


@pytest.mark.parametrize(
    "values, label, shown",
    [
        ([4.0, 1.0], "best value", [4, 1]),
        ([4.0, 1.0, -3.0], "best value − lowest (−3)", [7, 4, np.nan]),
        ([4.0, 0.0], "best value − lowest (0)", [4, np.nan]),
        ([1000.25, 1000.125], "best value − lowest (1000.125)", [0.125, np.nan]),
        ([5.0, 5.0], "best value", [5, 5]),
        ([None, 4.0, 1.0], "best value", [np.nan, 4, 1]),
    ],
)
def test_values_are_shifted_where_a_logarithm_needs_it_and_the_label_says_so(
    tmp_path: Path, values: list[float], label: str, shown: list[float]
) -> None:
    axes = panel(drawn(write_history(tmp_path / "h", values)), "best value")
    assert axes.get_ylabel() == label
    best = next(line for line in axes.lines if line.get_label() == "so far")
    np.testing.assert_array_equal(best.get_ydata(), shown)


def test_a_history_without_any_value_can_be_drawn(tmp_path: Path) -> None:
    path = write_history(tmp_path / "h", [None, None])
    assert "no finite value so far" in [text.get_text() for text in panel(drawn(path), "best value").texts]
    run.plot(path, tmp_path / "h.png")


def test_restarts_are_marked_in_every_panel_and_break_the_lines(tmp_path: Path) -> None:
    figure = drawn(write_history(tmp_path / "h", [4.0, 3.0, 3.0, 2.0, 1.0], restart=[0, 0, 1, 1, 2]))
    for axes in figure.axes:
        marks = [line.get_xdata()[0] for line in axes.lines if list(line.get_ydata()) == [0, 1]]
        assert marks == [20, 40]
    assert np.isnan(curve(panel(figure, "step size"), 0)[2]).all()
    names = [text.get_text().strip() for text in panel(figure, "best value").texts]
    assert names == ["restart 1", "restart 2"]


def test_a_few_lines_are_named_at_the_edge(tmp_path: Path) -> None:
    def names(dim: int) -> list[str]:
        axes = panel(drawn(write_history(tmp_path / "h", [2.0, 1.0], dim=dim)), "mean")
        return sorted((t.get_text() for t in axes.texts), key=lambda name: (len(name), name))

    assert names(3) == ["x₁", "x₂", "x₃"]
    assert names(100) == ["x₁", "x₂₁", "x₄₁", "x₆₀", "x₈₀", "x₁₀₀"]


def test_coordinates_that_were_left_out_are_mentioned(tmp_path: Path) -> None:
    figure = drawn(write_history(tmp_path / "h", [2.0, 1.0], dim=2500))
    assert panel(figure, "mean").get_ylabel() == "mean, first 100 of 2,500"


def test_long_lines_are_thinned_but_keep_their_ends(tmp_path: Path) -> None:
    axes = panel(drawn(write_history(tmp_path / "h", np.linspace(9, 1, 5000).tolist(), dim=1)), "step size")
    line = curve(axes, 0)
    assert len(line) == MOST_POINTS and (line[0, 0], line[-1, 0]) == (10, 50_000)


@given(st.lists(st.floats(0, 1), max_size=6))
def test_names_do_not_touch_and_stay_in_the_panel(heights: list[float]) -> None:
    placed = run._apart(sorted(heights), 0.07)
    assert all(b - a >= 0.07 - 1e-12 for a, b in itertools.pairwise(placed))
    assert all(-1e-12 <= y <= 1 + 1e-12 for y in placed)


def test_names_that_have_room_stay_where_they_are_and_others_share_the_way() -> None:
    assert run._apart([0.1, 0.5, 0.9], 0.07) == pytest.approx([0.1, 0.5, 0.9])
    assert run._apart([0.1, 0.5, 0.5], 0.1) == pytest.approx([0.1, 0.45, 0.55])
    assert run._apart([1.0, 1.0], 0.1) == pytest.approx([0.9, 1.0])


@pytest.mark.parametrize("suffix, begins", [(".png", b"\x89PNG"), (".SVG", b"<?xml"), (".pdf", b"%PDF")])
def test_the_suffix_says_what_is_written(tmp_path: Path, suffix: str, begins: bytes) -> None:
    out = tmp_path / f"figure{suffix}"
    assert run.plot(write_history(tmp_path / "h", [2.0, 1.0]), out) == out
    assert out.read_bytes().startswith(begins)


def test_a_figure_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    path = write_history(tmp_path / "h", [2.0, 1.0])
    with pytest.raises(ValueError, match=r"\.png, \.svg, \.pdf.* '.*x\.gif'"):
        run.plot(path, tmp_path / "x.gif")
    with pytest.raises(ValueError, match=r"exist.* '.*nowhere"):
        run.plot(path, tmp_path / "nowhere" / "x.png")


def test_without_matplotlib_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"matplotlib.*'esgroup\[plot\]'"):
        run.plot(write_history(tmp_path / "h", [2.0, 1.0]), tmp_path / "x.png")


def test_the_place_of_a_figure_is_checked_without_loading_matplotlib(tmp_path: Path) -> None:
    """A search that is to be drawn at its end begins without that delay."""
    code = "import sys; from esgroup.plots.style import check_out; check_out('x.png'); "
    code += "assert 'matplotlib' not in sys.modules"
    root = Path(run.__file__).parents[2]
    subprocess.run([sys.executable, "-c", code], check=True, cwd=root)


def test_neither_pyplot_nor_an_optimizer_is_loaded(tmp_path: Path) -> None:
    """Pyplot may open windows, and what is loaded in vain makes every call slower."""
    path = write_history(tmp_path / "h", [2.0, 1.0])
    code = (
        "import sys; from esgroup.plots import run; run.plot(*sys.argv[1:]); "
        "assert not {'matplotlib.pyplot', 'scipy.optimize'} & sys.modules.keys()"
    )
    root = Path(run.__file__).parents[2]
    subprocess.run([sys.executable, "-c", code, path, tmp_path / "x.png"], check=True, cwd=root)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("low, high", [(1e-300, 1e300), (-1.7e308, 1.7e308), (5e-324, 5e-324)])
def test_the_largest_and_the_smallest_values_are_drawn(tmp_path: Path, low: float, high: float) -> None:
    figure = drawn(write_history(tmp_path / "run.jsonl", [high, high, low]))
    figure.savefig(tmp_path / "run.png", dpi=30)
    assert f"best value {low:.4g}".replace("-", "−") in panel(figure, "best value").get_title(loc="left")


@pytest.mark.filterwarnings("error")
def test_names_may_have_signs_of_formulas_and_any_length(tmp_path: Path) -> None:
    names = ["cost in $", "$\\frac{$", "x" * 3000]
    path = write_history(tmp_path / "run.jsonl", [3.0, 2.0, 1.0], names=names, problem="$\\alpha_{$" + "y" * 3000)
    figure = drawn(path)
    figure.savefig(tmp_path / "run.svg")
    texts = [text.get_text() for text in panel(figure, "mean").texts]
    assert sorted(texts) == sorted(["cost in $", "$\\frac{$", "x" * 39 + "…"])
    assert figure.get_suptitle().startswith("$\\alpha_{$yy") and len(figure.get_suptitle()) <= 110
