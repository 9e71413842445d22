"""Figures: the lines that are drawn of known runs, panels, styles, and the SVG for a page."""

import itertools
import math
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from esgroup.compare.records import Cost, Improvement, RunRecord
from esgroup.compare.report import drawing, figures
from tests.compare.test_summary import a_run, failed

INF = math.inf


def titled(figure: Any, title: str) -> Any:
    return next(axes for axes in figure.axes if axes.get_title(loc="left").startswith(title))


def line(axes: Any, method: str) -> Any:
    return next(one for one in axes.lines if one.get_label() == method)


def curve(axes: Any, method: str) -> tuple[np.ndarray, np.ndarray]:
    x, y = line(axes, method).get_data()
    return np.asarray(x), np.asarray(y)


def several(dims: tuple[int, ...] = (4,), problems: tuple[str, ...] = ("bowl",), seeds: int = 2) -> list[RunRecord]:
    return [
        a_run(method, problem=problem, dim=dim, size=dim, seed=seed, hit=hit + 10 * seed)
        for problem, dim, seed in itertools.product(problems, dims, range(seeds))
        for method, hit in (("ours", 100), ("cma", 160))
    ]


# ---- convergence ----------------------------------------------------------------------------------------------------


def test_a_line_of_convergence_is_the_median_of_the_best_gaps() -> None:
    gaps = {0: 4.0, 1: 8.0, 2: 30.0}
    runs = [
        a_run(seed=seed, trajectory=(Improvement(1, 0, 50.0), Improvement(10, 0, gap), Improvement(100, 0, 0.1)))
        for seed, gap in gaps.items()
    ]
    (figure,) = figures.convergence(runs)
    x, y = curve(figure.axes[0], "ours")
    assert x[0] == 1 and x[-1] == 100 and y[-1] == 0.1
    assert set(y[x < 10]) == {50.0} and set(y[(x >= 10) & (x < 100)]) == {8.0}


def test_a_band_of_convergence_is_between_quartiles_and_open_where_they_are_infinite() -> None:
    points = (Improvement(1, 0, 50.0), Improvement(10, 0, 4.0))
    runs = [a_run(seed=seed, hit=INF, used=100, trajectory=points) for seed in range(3)]
    runs += [failed(seed=3), failed(seed=4)]
    axes = figures.convergence(runs)[0].axes[0]
    corners = axes.collections[0].get_paths()[0].vertices
    at_end = corners[np.isclose(corners[:, 0], corners[:, 0].max())][:, 1]
    assert at_end.min() == 4.0 and at_end.max() == pytest.approx(axes.get_ylim()[1])
    assert curve(axes, "ours")[1][-1] == 4.0


def test_a_line_of_convergence_ends_at_the_median_cost() -> None:
    runs = [a_run(seed=seed, hit=hit) for seed, hit in enumerate((100, 200, 400, 800, INF))]
    axes = figures.convergence(runs)[0].axes[0]
    assert curve(axes, "ours")[0][-1] == 400
    ends = [one.get_xydata().tolist() for one in axes.lines if one.get_marker() == "o"]
    assert ends == [[[400.0, 0.1]]]


def test_costs_of_convergence_are_values_and_gradients() -> None:
    points = (Improvement(1, 1, 9.0), Improvement(100, 100, 0.1))
    runs = [a_run(evals=100, gradients=100, cost=Cost.GRADIENTS, trajectory=points)]
    (axes,) = figures.convergence(runs)[0].axes
    assert curve(axes, "ours")[0][[0, -1]].tolist() == [2, 200]
    assert axes.get_xlabel() == "values and gradients"
    assert figures.convergence([a_run()])[0].axes[0].get_xlabel() == "evaluations"


def test_values_are_shown_above_the_lowest_where_the_minimum_is_not_known() -> None:
    points = (Improvement(1, 0, 20.0), Improvement(10, 0, -2.0), Improvement(100, 0, -5.0))
    (axes,) = figures.convergence(
        [a_run(minimum=math.nan, hit=INF, used=100, targets=(-9.0, -10.0), trajectory=points)]
    )[0].axes
    x, y = curve(axes, "ours")
    assert axes.get_ylabel() == "value − lowest (−5)" and axes.get_yscale() == "log"
    assert set(y[x < 10]) == {25.0} and set(y[(x >= 10) & (x < 100)]) == {3.0}
    assert all(
        len(set(one.get_ydata())) > 1 or len(one.get_xdata()) == 1 for one in axes.lines
    )  # target is out of sight


def test_the_last_target_is_a_horizontal_line() -> None:
    axes = figures.convergence([a_run()])[0].axes[0]
    assert [one.get_ydata() for one in axes.lines if len(one.get_xdata()) == 2] == [[0.1, 0.1]]
    assert axes.get_ylim()[0] < 0.1 and axes.get_xscale() == axes.get_yscale() == "log"


def test_there_is_a_panel_for_each_problem_in_each_dimension() -> None:
    (figure,) = figures.convergence(several((4, 8, 16), ("b", "a")))
    names = [f"{problem}  ·  d = {dim}" for problem in "ba" for dim in (4, 8, 16)]
    assert [axes.get_title(loc="left") for axes in figure.axes] == names
    assert len({axes.get_position().x0 for axes in figure.axes}) == 3  # a row for each problem
    assert figure.get_label() == "convergence"


def test_many_panels_are_split_into_several_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    assert figures.MOST_PANELS == 24
    monkeypatch.setattr(figures, "MOST_PANELS", 8)
    drawn = figures.convergence(several((2, 3, 4, 5), tuple("abc"), seeds=1))
    assert [figure.get_label() for figure in drawn] == ["convergence-1", "convergence-2"]
    assert [len(figure.axes) for figure in drawn] == [8, 4]
    assert drawn[0].axes[0].get_position().width * 11 == pytest.approx(
        drawn[1].axes[0].get_position().width * 11, rel=0.1
    )


def test_runs_without_any_value_leave_an_empty_panel() -> None:
    (figure,) = figures.convergence([failed("ours"), failed("ours", seed=1, evals=0)])
    assert [text.get_text() for text in figure.axes[0].texts] == ["no median"]
    figures.profile([failed("ours", evals=0)])


@pytest.mark.parametrize("value", [0.0, -1e-17])
def test_gaps_of_zero_are_drawn_on_the_target(value: float) -> None:
    axes = figures.convergence([a_run(trajectory=(Improvement(1, 0, 5.0), Improvement(100, 0, value)))])[0].axes[0]
    assert curve(axes, "ours")[1][-1] == 0.1


def test_of_runs_of_the_same_cell_the_last_one_is_drawn() -> None:
    again = [a_run(hit=900), a_run(hit=100)]
    assert curve(figures.convergence(again)[0].axes[0], "ours")[0][-1] == 100
    assert curve(figures.profile(again).axes[0], "ours")[0][-1] == 25


def test_a_problem_that_is_scaled_says_so_in_its_title() -> None:
    (figure,) = figures.convergence(several((4, 8)), {("bowl", 4): "divided by d", ("bowl", 8): ""})
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["bowl  ·  d = 4  ·  divided by d", "bowl  ·  d = 8"]


# ---- profiles -------------------------------------------------------------------------------------------------------


def test_a_profile_is_the_distribution_of_costs_per_coordinate_over_runs_and_targets() -> None:
    runs = [a_run(seed=seed, hit=hit, size=10, used=600) for seed, hit in enumerate((100, 400, INF))]
    runs[2] = runs[2]._replace(hits=(500.0, INF))
    axes = figures.profile(runs).axes[0]
    x, share = curve(axes, "ours")
    assert line(axes, "ours").get_drawstyle() == "steps-post"
    assert x.tolist() == [5, 5, 10, 20, 40, 50, 60]
    assert share.tolist() == pytest.approx([0, 1 / 6, 2 / 6, 3 / 6, 4 / 6, 5 / 6, 5 / 6])


def test_a_cross_is_where_the_longest_run_has_ended_unless_everything_is_reached() -> None:
    runs = [a_run("all"), a_run("some", hit=INF, used=800, hits=(40.0, INF))]
    axes = figures.profile(runs).axes[0]
    crosses = [one.get_xydata().tolist() for one in axes.lines if one.get_marker() == "x"]
    assert crosses == [[[200.0, 0.5]]]
    flat = [one for one in axes.lines if one.get_linewidth() < 1]
    assert [one.get_xdata()[0] for one in flat] == [25, 200]
    assert all(one.get_xdata()[1] == axes.get_xlim()[1] and len(set(one.get_ydata())) == 1 for one in flat)


def test_a_profile_has_a_panel_for_all_and_one_for_each_dimension() -> None:
    assert len(figures.profile(several((4,))).axes) == 1
    figure = figures.profile(several((16, 4), ("a", "b")))
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles == ["all  ·  16 pairs", "d = 4  ·  8 pairs", "d = 16  ·  8 pairs"]
    assert "16 pairs of a run and a target" in figure.texts[1].get_text()
    assert len({axes.get_xlim() for axes in figure.axes}) == 1


def test_runs_that_are_missing_count_as_not_reached_in_a_profile() -> None:
    runs = [*(a_run("ref", seed=seed) for seed in range(4)), a_run("ours")]
    axes = figures.profile(runs).axes[0]
    assert curve(axes, "ours")[1][-1] == 0.25 and curve(axes, "ref")[1][-1] == 1


def test_a_method_without_success_is_drawn_at_zero() -> None:
    axes = figures.profile([a_run("ours"), failed("bad")]).axes[0]
    x, share = curve(axes, "bad")
    assert set(share) == {0.0} and (x >= axes.get_xlim()[0]).all()


def test_long_profiles_are_thinned_and_keep_their_ends() -> None:
    targets = tuple(np.arange(5000.0, 0.0, -1.0))
    (axes,) = figures.profile([a_run(size=1, targets=targets, hits=tuple(np.arange(1.0, 5001)), used=5000)]).axes
    x, share = curve(axes, "ours")
    assert len(x) == 300 + 2 and x[[0, -1]].tolist() == [1, 5000] and share[-1] == 1
    np.testing.assert_array_equal(share[1:], x[1:] / 5000)


# ---- styles ---------------------------------------------------------------------------------------------------------


def test_a_method_looks_the_same_in_all_figures() -> None:
    runs = [run for run in several((4, 8)) if (run.method, run.dim) != ("ours", 4)]  # a panel lacks a method
    looks = drawing.styles(["cma", "ours"])
    drawn = [axes for figure in (*figures.convergence(runs), figures.profile(runs)) for axes in figure.axes]
    found = {(one.get_label(), one.get_color()) for axes in drawn for one in axes.lines if one.get_label() in looks}
    assert found == {(name, look.color) for name, look in looks.items()}


def test_thirty_methods_differ_with_and_without_color() -> None:
    looks = list(drawing.styles(f"method {i}" for i in range(30)).values())
    assert len({look[1:] for look in looks}) == len({look[:2] for look in looks}) == 30
    assert len({look.color for look in looks[:7]}) == 7


# Machado, Oliveira and Fernandes, A physiologically-based model for simulation of color vision deficiency, 2009
_MISSING = {
    "red": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "green": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "blue": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
    "none": np.eye(3),
}


@pytest.mark.parametrize("missing", _MISSING)
def test_colors_differ_for_all_kinds_of_color_vision(missing: str) -> None:
    seen = [_lab(np.clip(np.array(_MISSING[missing]) @ _linear(color), 0, 1)) for color in drawing.COLORS]
    assert min(math.dist(a, b) for a, b in itertools.combinations(seen, 2)) > 10  # 2.3 is just noticeable


def test_colors_can_be_seen_on_white_and_on_black() -> None:
    for color in drawing.COLORS:
        luminance = float(_linear(color) @ [0.2126, 0.7152, 0.0722])
        assert 1.05 / (luminance + 0.05) > 2 and (luminance + 0.05) / 0.05 > 3


def _linear(color: str) -> np.ndarray:
    parts = np.array([int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def _lab(linear: np.ndarray) -> list[float]:
    """CIE L*a*b* of linear sRGB."""
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    xyz = to_xyz @ linear / to_xyz.sum(axis=1)
    x, y, z = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return [116 * y - 16, 500 * (x - y), 200 * (y - z)]


# ---- files ----------------------------------------------------------------------------------------------------------


def test_an_svg_for_a_page_has_the_color_of_the_text_and_no_background() -> None:
    for figure in (*figures.convergence(several()), figures.profile(several())):
        svg = drawing.to_svg(figure)
        root = ElementTree.fromstring(svg)
        assert svg.startswith("<svg") and "currentColor" in svg and drawing.INK not in svg
        assert "#ffffff" not in svg and "white" not in svg
        assert "<metadata" not in svg and "<style" not in svg and "<?xml" not in svg
        texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
        assert "ours" in texts and "cma" in texts  # text is text
        assert set(re.findall(r"font-family: ([^;\"]*)", svg)) == {"sans-serif"}


def test_lines_have_titles_with_their_last_points() -> None:
    runs = [a_run(seed=seed, hit=100) for seed in range(3)]
    for figure, text in (
        (figures.convergence(runs)[0], "ours: median gap to the minimum 0.10 at 100 evaluations"),
        (figures.profile(runs), "ours: targets reached 100 % at 25 evaluations / dimension"),
    ):
        root = ElementTree.fromstring(drawing.to_svg(figure))
        assert [title.text for title in root.iter("{http://www.w3.org/2000/svg}title")] == [text]


def test_numbers_can_be_read_off_the_svg_by_its_panels() -> None:
    points = tuple(Improvement(n, 0, 50.0 / n) for n in (1, 3, 10, 30, 100, 300))
    runs = [a_run(seed=seed, hit=INF, used=300, trajectory=points, targets=(1.0, 0.01)) for seed in range(3)]
    (figure,) = figures.convergence(runs)
    (panel,), svg = drawing.panels(figure), drawing.to_svg(figure)
    (line,), (x0, x1), (y0, y1) = panel["lines"], panel["x"], panel["y"]
    assert (panel["x_label"], panel["y_label"]) == ("evaluations", "median gap to the minimum")
    assert line["label"] == "ours" and panel["floor"] == pytest.approx(0.01)
    path = re.search(rf'<g id="convergence-{line["name"]}">.*?<path d="([^"]*)"', svg, flags=re.DOTALL)
    assert path is not None
    places = np.array(re.findall(r"([\d.]+) ([\d.]+)", path[1]), dtype=float)
    x = x0 * (x1 / x0) ** ((places[:, 0] - panel["left"]) / (panel["right"] - panel["left"]))
    y = y0 * (y1 / y0) ** ((panel["bottom"] - places[:, 1]) / (panel["bottom"] - panel["top"]))
    assert (x[-1], y[-1]) == (pytest.approx(300, rel=0.01), pytest.approx(50 / 300, rel=0.01))
    drawn_x, drawn_y = curve(figure.axes[0], "ours")
    np.testing.assert_allclose(y, np.exp(np.interp(np.log(x), np.log(drawn_x), np.log(drawn_y))), rtol=0.02)


def test_names_in_svgs_differ_between_figures_and_every_reference_has_its_target() -> None:
    svgs = [drawing.to_svg(figure) for figure in (*figures.convergence(several()), figures.profile(several()))]
    names = [re.findall(r'\bid="([^"]*)"', svg) for svg in svgs]
    assert not set(names[0]) & set(names[1])
    for svg, own in zip(svgs, names, strict=True):
        used = re.findall(r'url\(#([^)]*)\)|href="#([^"]*)"', svg)
        assert used and {a or b for a, b in used} <= set(own) and len(own) == len(set(own))


def test_the_same_runs_give_the_same_bytes(tmp_path: Path) -> None:
    (first,), (second,) = figures.convergence(several()), figures.convergence(several())
    assert drawing.to_svg(first) == drawing.to_svg(second) == drawing.to_svg(first)
    for suffix in (".png", ".svg"):
        files = [drawing.save(figure, tmp_path / f"{i}{suffix}") for i, figure in enumerate((first, second))]
        assert files[0].read_bytes() == files[1].read_bytes()


def test_panels_stay_where_they_are_in_all_files(tmp_path: Path) -> None:
    figure = figures.profile(several((4, 8)))
    before = [axes.get_position().bounds for axes in figure.axes]
    drawing.save(figure, tmp_path / "profile.png")
    drawing.to_svg(figure)
    assert [axes.get_position().bounds for axes in figure.axes] == before


def test_files_are_on_white(tmp_path: Path) -> None:
    from matplotlib.image import imread

    figure = figures.profile(several())
    svg = drawing.save(figure, tmp_path / "profile.svg").read_text(encoding="utf-8")
    assert svg.startswith("<?xml") and "fill: #ffffff" in svg and drawing.INK in svg
    pixels = imread(drawing.save(figure, str(tmp_path / "p.png")))
    assert pixels[0, 0].tolist() == [1, 1, 1, 1] and pixels.shape[1] == 1200


def test_names_of_methods_and_problems_are_taken_as_they_are() -> None:
    run = a_run("a<b>&$x$_", problem="$y$ <i>")
    root = ElementTree.fromstring(drawing.to_svg(figures.convergence([run])[0]))
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "a<b>&$x$_" in texts and any(text and text.startswith("$y$ <i>") for text in texts)


def test_settings_of_the_user_are_neither_used_nor_changed() -> None:
    import matplotlib

    plain = drawing.to_svg(figures.profile(several()))
    with matplotlib.rc_context({"axes.facecolor": "red", "font.size": 30, "svg.fonttype": "path"}):
        assert drawing.to_svg(figures.profile(several())) == plain
        assert matplotlib.rcParams["font.size"] == 30


def test_no_window_is_opened() -> None:
    code = """
import sys
from tests.compare.test_summary import a_run
from esgroup.compare.report import drawing, figures
assert "matplotlib" not in sys.modules
figures.profile([a_run()])
assert "matplotlib.pyplot" not in sys.modules
"""
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
