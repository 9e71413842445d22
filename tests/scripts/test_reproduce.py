"""The reproduction runs, writes its files, and judges by its numbers: other numbers, other words."""

# A folder of results has the name of the package: with it there, the order of imports would be another.
# isort: skip_file
from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import reproduce
import reproduction.fig1 as fig1
import reproduction.nearness as nearness
import reproduction.nearness_methods as nearness_methods
import reproduction.singular as singular
import reproduction.structures as structures
from reproduction.experiment import (
    Experiment,
    Plan,
    Row,
    Table,
    Verdict,
    entries,
    judged,
    plan_rows,
    read_rows,
    write_rows,
)
from reproduction.experiment import slope as order_of
from reproduction.pages import page
from reproduction.readings import CONDITIONAL, READINGS, kind, reading
from reproduction.structured import local_basis
from typer.testing import CliRunner

from esgroup.groups import BlockTriangular, Circulant, Full, Kronecker

pytestmark = pytest.mark.scripts

EXPERIMENTS, PLANNED = reproduce.EXPERIMENTS, reproduce.PLANNED
NAMES = [experiment.name for experiment in EXPERIMENTS if not experiment.resumable]  # of the quick runs
ALL = [experiment.name for experiment in EXPERIMENTS]


@pytest.fixture(scope="module")
def folder(quick_runs: Path) -> Path:
    return quick_runs


@pytest.fixture(scope="module")
def tables(folder: Path) -> dict[str, Table]:
    return {name: read_rows(folder / name / f"{name}.csv") for name in NAMES}


def changed(table: Table, change: Callable[[Row], Row]) -> Table:
    return Table(change(row) for row in table.rows)


def with_value(part: str, value: float, case: str | None = None, series: str | None = None) -> Callable[[Row], Row]:
    """All rows of a quantity get this value."""

    def change(row: Row) -> Row:
        hit = row.part == part and case in (None, row.case) and series in (None, row.series)
        return row._replace(value=value) if hit else row

    return change


def swapped(first: str, second: str) -> Callable[[Row], Row]:
    """Two methods change their names."""
    names = {first: second, second: first}
    return lambda row: row._replace(series=names.get(row.series, row.series))


def decaying(rates: dict[str, float]) -> Callable[[Row], Row]:
    """The test losses of these methods fall exponentially, or stay."""

    def change(row: Row) -> Row:
        hit = row.part == "test loss" and row.series in rates
        return row._replace(value=math.exp(-rates[row.series] * row.x)) if hit else row

    return change


def word(verdicts: list[Verdict], beginning: str) -> str:
    (found,) = (verdict.word for verdict in verdicts if verdict.claim.startswith(beginning))
    return found


# ---- files


@pytest.mark.parametrize("name", NAMES)
def test_a_quick_run_writes_numbers_figure_and_verdicts(folder: Path, name: str) -> None:
    assert {path.name for path in (folder / name).iterdir()} == {f"{name}.csv", f"{name}.png", f"{name}.md"}
    assert (folder / name / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    text = (folder / name / f"{name}.md").read_text(encoding="utf-8")
    assert "--quick --seed 3`" in text and "A quick try, not a result" in text
    assert text.count("| **") == text.count("** |") >= 1


@pytest.mark.parametrize("experiment", EXPERIMENTS[:2], ids=NAMES[:2])
def test_the_same_seed_gives_the_same_numbers(folder: Path, experiment: Experiment) -> None:
    again = Table([*plan_rows(Plan(quick=True, seed=3)), *experiment.run(Plan(quick=True, seed=3))])
    assert again.rows == read_rows(folder / experiment.name / f"{experiment.name}.csv").rows


def test_numbers_survive_the_file_to_the_last_bit(tmp_path: Path) -> None:
    rows = [Row("a", "b, c", 'd "e"', 0.1 + 0.2, math.pi), Row("", "", "σ²", 1e-300, math.inf)]
    write_rows(tmp_path / "numbers.csv", rows)
    assert list(read_rows(tmp_path / "numbers.csv").rows) == rows


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other.csv").write_text("x,y\n1,2\n")
    with pytest.raises(ValueError, match="must begin with the columns part, case, series, x, value"):
        read_rows(tmp_path / "other.csv")


def test_drawing_again_needs_the_numbers_only(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "singular.csv").write_bytes((folder / "singular" / "singular.csv").read_bytes())
    result = CliRunner().invoke(reproduce.app, ["singular", "--draw", "--out", str(tmp_path)])
    assert result.exit_code == 0
    assert (tmp_path / "singular.png").read_bytes() == (folder / "singular" / "singular.png").read_bytes()
    assert (tmp_path / "singular.md").read_bytes() == (folder / "singular" / "singular.md").read_bytes()


def test_the_report_has_every_run_and_a_place_for_those_to_come(folder: Path, tmp_path: Path) -> None:
    runs, docs = tmp_path / "runs", tmp_path / "docs"
    (runs / "singular").mkdir(parents=True)
    (runs / "singular" / "singular.csv").write_bytes((folder / "singular" / "singular.csv").read_bytes())
    arguments = ["report", "--out", str(runs), "--page", str(tmp_path / "page.md"), "--figures", str(docs)]
    assert CliRunner().invoke(reproduce.app, arguments).exit_code == 0
    text = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert "](docs/reproduce-singular.png)" in text and (docs / "reproduce-singular.png").exists()
    absent = [name for name in (*ALL, *PLANNED) if name != "singular"]
    assert text.count("Not run yet.") == len(set(absent))
    assert all(f"## {name}\n" in text for name in absent)
    (runs / "singular" / "singular.csv").unlink()  # what is not there stays as it was
    assert CliRunner().invoke(reproduce.app, arguments).exit_code == 0
    assert (tmp_path / "page.md").read_text(encoding="utf-8") == text


def made_up(claim: str, word: str, why: str, note: str = "") -> Experiment:
    """An experiment with one claim and at most one note."""
    notes = [note] if note else []
    verdicts = [Verdict(claim, word, why)]
    return Experiment("x", "X", "About.", lambda p: [], lambda t, path: None, lambda t: verdicts, lambda t: notes)


def test_a_bar_in_a_claim_does_not_break_the_table() -> None:
    text = page(made_up("|a|", "holds", "b|c"), Table(plan_rows(Plan())), "x.png")
    assert "| \\|a\\| | **holds** |  |" in text
    assert "| \\|a\\| | holds | b\\|c |" in text
    assert "Full size: `scripts/run scripts/reproduce.py x`" in text


def test_numbers_and_notes_fold_away_with_blank_lines_around_markdown() -> None:
    """Without a blank line Markdown between HTML tags would be text."""
    text = page(made_up("A.", "holds when b", "c", "Note.\n\n| d |\n|---|\n| e |"), Table(plan_rows(Plan())), "x.png")
    assert text.count("<details>") == text.count("\n\n</details>\n") == text.count("</summary>\n\n") == 2
    before, numbers, run = text.split("<details>")
    assert "| A. | **holds, under conditions** |  |" in before and "holds when b" not in before
    assert "| A. | holds when b | c |" in numbers
    assert "- Note.\n\n| d |\n|---|\n| e |\n" in run


# ---- sentences


def test_a_sentence_is_for_one_kind_of_verdict() -> None:
    name, claim = "newton", "The same of Tri-low and Tri-up."
    assert "same number of iterations" in reading(name, Verdict(claim, "does not hold", ""))
    assert reading(name, Verdict(claim, "holds", "")) == reading("fig1", Verdict(claim, "does not hold", "")) == ""
    assert kind(Verdict(claim, "holds when it rains", "")) == CONDITIONAL


def test_every_claim_has_a_sentence_and_every_sentence_a_claim(tables: dict[str, Table]) -> None:
    for experiment in EXPERIMENTS:
        if experiment.name in tables:
            claims = {verdict.claim for verdict in experiment.verdicts(tables[experiment.name])}
            assert claims == READINGS[experiment.name].keys()


def test_the_page_has_all_sections_sentences_and_figures() -> None:
    path = Path(reproduce.__file__).parents[1] / "docs" / "paper" / "reproduction.md"
    text = path.read_text(encoding="utf-8")
    for experiment in EXPERIMENTS:
        _, _, rest = text.partition(f"\n## {experiment.title}\n")
        section = rest.partition("\n## ")[0]
        assert experiment.about in section
        assert (path.parent / f"../reproduce-{experiment.name}.png").exists()
        assert f"](../reproduce-{experiment.name}.png)" in section
        for claim, (word, sentence) in READINGS[experiment.name].items():
            assert f"| {claim} | **{word}** | {sentence} |" in section
    assert "Not run yet" not in text


# ---- verdicts


def test_a_verdict_has_one_of_three_words() -> None:
    for good in ("holds", "does not hold", "holds when it rains"):
        assert Verdict("c", good, "w").word == good
    for bad in ("yes", "holds when ", "Holds", ""):
        with pytest.raises(ValueError, match="word must be"):
            Verdict("c", bad, "w")


def test_outcomes_become_words() -> None:
    assert judged("c", "w", {"a": True, "b": True}).word == "holds"
    assert judged("c", "w", {"a": False, "b": False}).word == "does not hold"
    assert judged("c", "w", {"a": True, "b": False, "c": True}).word == "holds when a or c"
    with pytest.raises(ValueError, match="at least one"):
        judged("c", "w", {})


def test_the_order_of_a_power_is_its_exponent() -> None:
    assert order_of([0.1, 0.2, 0.4], [3 * x**2.5 for x in (0.1, 0.2, 0.4)]) == pytest.approx(2.5)


TURNED = [
    ("structures", "The structures", with_value("outside the group", 0.1, "product"), "does not hold"),
    ("structures", "h(M)", with_value("outside the group", 0.0, "h(M)"), "holds"),
    ("structures", "Sparse", with_value("sparse pattern", 0.0), "holds"),
    ("structures", "Sparse", with_value("sparse pattern", 0.5), "does not hold"),
    ("structures", "The Fisher", with_value("Fisher ratio", 0.0), "does not hold"),
    ("structures", "The Fisher", with_value("Fisher ratio", 0.5), "holds"),
    ("structures", "Block triangular", swapped("block lower", "block upper"), "does not hold"),
    ("singular", "Example 1", with_value("lowest rank", 4.0, series="rank"), "does not hold"),
    ("singular", "Example 2", with_value("example 2", 1.0), "does not hold"),
    ("singular", "Example 2", with_value("rank", 6.0), "does not hold"),
    ("singular", "The Fisher", with_value("lowest rank", 1.0, series="rank"), "holds"),
    ("singular", "In the local", with_value("lowest rank", 1.0, series="rank"), "does not hold"),
    ("singular", "One number", with_value("lowest rank", 0.0, series="rank"), "holds when v has"),
    ("fig1", "With Exp", with_value("distance", 0.1), "does not hold"),
    ("fig1", "NGD is invariant", with_value("distance", 0.0), "holds"),
    ("fig1", "NGD is invariant", with_value("distance", 0.1), "does not hold"),
    ("fig1", "In practice", with_value("iterations", 7.0), "holds"),
    ("fig1", "In practice", with_value("iterations", 700.0, series="ours, precision, h"), "does not hold"),
    ("fig1", "GD is not", with_value("between", 0.0), "does not hold"),
    ("fig1", "NGD converges", with_value("iterations", 1.0, series="ours, covariance, Exp"), "holds"),
    ("fig1", "NGD converges", with_value("iterations", 900.0, series="ours, covariance, Exp"), "does not hold"),
    ("nearness", "At the mean", lambda row: row._replace(x=row.x**3) if row.part == "order" else row, "does not hold"),
    ("nearness", "our-mean", decaying({"our-mean": 1.0, "RGD": 0.0}), "does not hold"),
    ("nearness", "our-rep", with_value("test loss", 1.0), "does not hold"),
    ("nearness", "Updating", with_value("test loss", 1.0), "does not hold"),
    ("nearness", "Updating", with_value("test loss", 1e-9, series="our-rep"), "does not hold"),
]


@pytest.mark.parametrize(("name", "claim", "change", "expected"), TURNED)
def test_other_numbers_give_another_word(
    tables: dict[str, Table], name: str, claim: str, change: Callable[[Row], Row], expected: str
) -> None:
    (experiment,) = (each for each in EXPERIMENTS if each.name == name)
    found = word(experiment.verdicts(changed(tables[name], change)), claim)
    assert found.startswith(expected) if expected.endswith("has") else found == expected


def small_nearness(losses: dict[str, list[float]], half: float, end: float) -> Table:
    """A table with two reported seeds, and what the verdicts need of the rest."""
    rows = [
        Row("test loss", case, name, 10.0 * t, value)
        for case in ("seed 1", "seed 2")
        for name, values in losses.items()
        for t, value in enumerate(values)
    ]
    for case in ("seed 8", "seed 9"):
        for name in nearness.ADAMS:
            rows += [Row("tuning half", case, name, 0.1, half), Row("tuning end", case, name, 0.1, end)]
    return Table([*rows, Row("chosen", "", "our-mean", 0, 0.1)])


FAST, SLOW, STUCK = [1.0, 1e-8, 1e-9, 1e-9, 1e-9], [1.0, 0.1, 1e-2, 1e-8, 1e-9], [1.0, 0.5, 0.5, 0.5, 0.5]


def nearness_words(ours: list[float], adam: list[float], half: float = 1e-3, end: float = 1e-9) -> list[Verdict]:
    import reproduction.nearness_verdicts as judge

    table = small_nearness({"our-mean": ours, "RGD": ours, **{name: adam for name in nearness.ADAMS}}, half, end)
    return [judge._faster(table), judge._trapped(table)]


def test_who_is_faster_is_read_from_the_curves() -> None:
    assert nearness_words(FAST, SLOW)[0].word == "holds"
    assert nearness_words(SLOW, FAST)[0].word == "does not hold"


def test_only_a_run_that_stalls_above_the_optimum_is_trapped() -> None:
    assert nearness_words(FAST, SLOW)[1].word == "does not hold"
    assert nearness_words(FAST, STUCK)[1].word == "holds when its step is tuned"
    assert nearness_words(FAST, [1.0, 0.5, 0.2, 0.05, 0.01])[1].word == "does not hold"  # slow, but on its way
    assert nearness_words(FAST, SLOW, half=0.5, end=0.4)[1].word == "holds when its step is 0.1"
    assert nearness_words(FAST, SLOW, half=0.5, end=0.01)[1].word == "does not hold"


def test_a_loss_that_comes_back_has_not_arrived() -> None:
    x = np.arange(4.0)
    assert nearness.arrival(x, np.array([1.0, 1e-7, 1e-7, 1e-8])) == 1.0
    assert nearness.arrival(x, np.array([1.0, 1e-7, 1e-2, 1e-8])) == 3.0
    assert nearness.arrival(x, np.array([1.0, 1e-7, 1e-7, 1e-2])) == math.inf
    assert nearness.arrival(x, np.array([1.0, 1e-7, 1e-7, math.nan])) == math.inf


# ---- structures and singular


def test_the_local_basis_has_the_degrees_of_freedom_of_its_group() -> None:
    for group in (Full(4), BlockTriangular(5, k=2), Circulant(6), Kronecker(Full(2), BlockTriangular(3, k=1))):
        basis = local_basis(group).reshape(-1, group.dim**2)
        assert len(basis) == group.dof
        np.testing.assert_allclose(basis @ basis.T, np.eye(group.dof), atol=1e-12)


def test_the_tree_pattern_is_transitive_and_the_band_is_not() -> None:
    for pattern, closed in ((structures.tree_pattern(), True), (structures.banded_pattern(), False)):
        assert bool((((pattern.astype(int) @ pattern) > 0) <= pattern).all()) == closed


def kl(first: np.ndarray, second: np.ndarray) -> float:
    """KL(N(0, first) || N(0, second))."""
    ratio = np.linalg.solve(second, first)
    return 0.5 * float(np.trace(ratio) - len(first) - np.linalg.slogdet(ratio)[1])


def test_the_fisher_matrix_is_the_second_derivative_of_the_divergence() -> None:
    rng = np.random.default_rng(0)
    v, d = rng.standard_normal(3), rng.uniform(0.5, 2, 3)

    def divergence(step: np.ndarray) -> float:
        new_d, new_v = d + step[:3], v + step[3:]
        return kl(np.outer(v, v) + np.diag(d**2), np.outer(new_v, new_v) + np.diag(new_d**2))

    eye, t = np.eye(6), 1e-3
    found = np.array(
        [
            [
                (divergence(t * (a + b)) - divergence(t * (a - b)) - divergence(t * (b - a)) + divergence(-t * (a + b)))
                / (4 * t * t)
                for a in eye
            ]
            for b in eye
        ]
    )
    np.testing.assert_allclose(found, singular.rank_one_fisher(v, d), rtol=1e-4, atol=1e-4)


# ---- fig1


@cache
def objective() -> fig1.Objective:
    return fig1.Objective(fig1.logistic_regression_1d().batch)


def test_the_gradient_of_the_elbo_agrees_with_differences() -> None:
    at, t = fig1.Point(0.4, 0.7), 1e-5
    by_mean = objective().loss(fig1.Point(0.4 + t, 0.7)) - objective().loss(fig1.Point(0.4 - t, 0.7))
    by_log = objective().loss(fig1.Point(0.4, 0.7 * math.exp(t))) - objective().loss(
        fig1.Point(0.4, 0.7 * math.exp(-t))
    )
    assert objective().gradient(at) == pytest.approx((by_mean / (2 * t), by_log / (2 * t)), rel=1e-7)


@pytest.mark.parametrize("name", fig1.SCALES)
def test_a_scale_is_undone_and_has_its_slope(name: str) -> None:
    scale, sigma, t = fig1.SCALES[name], 0.7, 1e-6
    assert scale.sigma(scale.theta(sigma)) == pytest.approx(sigma)
    slope = (scale.theta(sigma * math.exp(t)) - scale.theta(sigma * math.exp(-t))) / (2 * t)
    assert scale.slope(sigma) == pytest.approx(slope, rel=1e-6)


def test_a_small_step_of_each_method_is_what_the_paper_prints() -> None:
    at, beta = fig1.Point(0.4, 0.7), 1e-4
    by_mean, by_log = objective().gradient(at)
    natural = {"NGD in σ": (0.49, 0.5), "ours, precision, h": (0.49, 0.5), "ours, covariance, Exp": (0.49, 0.5)}
    plain = {"GD in log σ": (1.0, 1.0), "GD in log σ²": (1.0, 0.25), "GD in σ": (1.0, 1 / 0.49)}
    for name, (of_mean, of_log) in {**natural, **plain}.items():
        moved = fig1.METHODS[name](objective(), at, beta)
        assert moved.mean - at.mean == pytest.approx(-beta * of_mean * by_mean, rel=1e-3), name
        assert math.log(moved.sigma / at.sigma) == pytest.approx(-beta * of_log * by_log, rel=1e-2), name


# ---- nearness


@cache
def task(seed: int = 5) -> nearness.Task:
    return nearness.Task(replace(nearness.QUICK, iterations=30), seed)


def test_tuning_and_reports_have_different_seeds(tables: dict[str, Table]) -> None:
    assert not set(tables["nearness"].cases("tuning end")) & set(tables["nearness"].cases("test loss"))


def test_all_methods_of_a_seed_see_the_same_batches_and_the_gradient_is_that_of_the_loss() -> None:
    first, second = (next(task().gradients()) for _ in range(2))
    w = np.eye(4) + 0.1
    np.testing.assert_array_equal(first(w), second(w))
    chosen = np.random.default_rng([5, 2]).integers(len(task().data), size=50)
    x = task().data[chosen]

    def loss(point: np.ndarray) -> float:
        return 0.5 * float(np.mean(np.sum((x @ (point @ task().q).T - x) ** 2, axis=1)))

    direction = np.diag([1.0, -2.0, 0.5, 3.0]) + 0.3
    difference = (loss(w + 1e-5 * direction) - loss(w - 1e-5 * direction)) / 2e-5
    assert np.vdot(first(w), direction) == pytest.approx(difference, rel=1e-6)


def test_one_step_along_the_geodesic_is_that_of_the_paper_up_to_third_order() -> None:
    w, g = np.eye(4) + 0.1, next(task().gradients())(np.eye(4) + 0.1)
    gaps = [
        np.abs(nearness_methods.geodesic(w, g, t) - nearness_methods.retraction(w, g, t)).max() for t in (0.02, 0.01)
    ]
    assert math.log2(gaps[0] / gaps[1]) == pytest.approx(3.0, abs=0.1)
    exact = nearness_methods.AtMean(w, 0.3, "exp")
    exact.advance(lambda point: g)
    np.testing.assert_allclose(exact.point, nearness_methods.geodesic(w, g, 0.3), rtol=1e-10)


def test_the_degrees_of_freedom_change_by_five_percent_at_most_and_not_at_all_when_fixed() -> None:
    gradients = task().gradients()
    for joint, least, most in ((True, 1 / 1.05, 1.05), (False, 1.0, 1.0)):
        method = nearness_methods.Sampled(np.eye(4), 0.1, 8.0, joint, np.random.default_rng(0))
        ratios = []
        for _ in range(20):
            before = method.dof
            method.advance(next(gradients))
            ratios.append(method.dof / before)
        assert least - 1e-12 <= min(ratios) and max(ratios) <= most + 1e-12
        assert (max(ratios) > 1.01) == joint


def test_adam_takes_its_rate_in_every_coordinate_at_first() -> None:
    method = nearness_methods.Adam(np.eye(4), 0.01, nearness_methods.Logarithm((4, 4)))
    method.advance(next(task().gradients()))
    np.testing.assert_allclose(np.abs(method.vector), 0.01, rtol=1e-4)


def test_a_run_that_fails_is_worse_than_any_other() -> None:
    values = [value for _, value in nearness.losses(task(), nearness_methods.Riemannian(np.eye(4), 1e4))]
    assert values[-1] == math.inf


def test_a_matrix_comes_back_from_its_rows() -> None:
    matrix = np.arange(9.0).reshape(3, 3)
    np.testing.assert_array_equal(Table(entries("a", "b", "c", matrix)).matrix("a", "b", "c"), matrix)
