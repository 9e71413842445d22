"""Targets reached by searches with models are counted within budgets, beside the noise of the plain search."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import bench_model as bench
import model_targets as targets
import pytest
from bbob_statistics import Cell, Comparison
from bbob_tables import cell_ratios, surely_above
from model_runs import TARGETS, ModelRow, ModelSetup, append_model_rows
from typer.testing import CliRunner

pytestmark = pytest.mark.scripts

SETUP = ModelSetup("esgroup", "", 2000, "", 0.0, 0.0)


def run_of(
    label: str, hits: Sequence[int], function: int = 8, dim: int = 5, instance: int = 1, seed: int = 0
) -> ModelRow:
    """A row of a run that hit the first targets at these evaluations."""
    evals = hits[-1] if len(hits) == len(TARGETS) else None
    return ModelRow(label, function, dim, instance, seed, evals, 10_000, 9, "tolfun", 0.5, (), tuple(hits), *SETUP)


def three(ours: int, plain: int, again: int, function: int = 8, dim: int = 5) -> list[ModelRow]:
    """Runs of three labels on three instances, each of which hits ten targets at this evaluation."""
    return [
        run_of(label, [at] * 10, function, dim, instance, seed=int(label == "again"))
        for instance in (1, 2, 3)
        for label, at in (("model", ours), ("plain", plain), ("again", again))
    ]


def test_hits_beyond_the_budget_are_missed() -> None:
    rows = [run_of("a", [3, 50, 51, 2001, 9000])]
    found = {budget: targets.outcomes_by(rows, "a", budget)[Cell(8, 5), 1][0] for budget in (10, 400, 2000, None)}
    assert {budget: outcome.hits for budget, outcome in found.items()} == {10: 2, 400: 3, 2000: 5, None: 5}
    assert found[10].evals == (3, 50, *[None] * 49)
    with pytest.raises(ValueError, match="label 'a' must have runs of 3000 d evaluations, got runs of 2000 d"):
        targets.outcomes_by(rows, "a", 3000)


def test_runs_are_by_seed_and_the_last_of_repeated_ones_counts() -> None:
    rows = [run_of("a", [5], seed=2), run_of("a", [7], seed=1), run_of("b", [9]), run_of("a", [6], seed=2)]
    assert [one.evals[0] for one in targets.outcomes_by(rows, "a")[Cell(8, 5), 1]] == [7, 6]


def test_only_problems_and_seeds_that_all_three_have_are_compared() -> None:
    rows = [*three(10, 20, 20), run_of("model", [1] * 51, function=9), run_of("plain", [1] * 51, function=9)]
    rows += [
        run_of("plain", [1] * 51, seed=5),
        run_of("again", [1] * 51, seed=5),
    ]  # the label that is judged has no second
    found = targets.BesideChance.of(rows, ["model", "plain", "again"], 2000)
    assert found.targets == "30 : 30 : 30" and found.solved == "0 : 0 : 0"
    assert found.judged.ratio.value == pytest.approx(0.5) and found.chance.ratio.value == pytest.approx(1.0)
    with pytest.raises(ValueError, match="must have a problem in common"):
        targets.BesideChance.of([run_of("a", [1]), run_of("b", [1], function=9)], ["a", "a", "b"], 2000)


def test_the_plain_search_is_compared_by_dimension_and_budget() -> None:
    rows = three(1500, 3000, 3300) + three(200, 100, 100, function=3, dim=10)
    text = targets.plain(rows, "model", "plain", "again", [400, 2000])
    assert "2 functions, instances 1-3, 51 targets a run" in text
    assert "| 5 | 400 d | 30 : 0 : 0 of 153 | 0 : 0 : 0 of 3 | - | - |" in text
    assert "| 5 | 2000 d | 30 : 30 : 30 of 153 | 0 : 0 : 0 of 3 | 0.50 [0.50, 0.50] | 1.10 [1.10, 1.10] |" in text
    assert "| all | 400 d | 60 : 30 : 30 of 306 | 0 : 0 : 0 of 6 | 2.00 [2.00, 2.00] | 1.00 [1.00, 1.00] |" in text
    assert "| 10 | 400 d | f3 d10 | none |" in text and "| 5 | 2000 d | none | none |" in text
    assert "| f3 | - | 30 : 30 : 30 | 30 : 30 : 30 |" in text and "| f3 | - | **2.00 [2.00, 2.00]** |" in text
    with pytest.raises(ValueError, match="label 'other'"):
        targets.plain(rows, "model", "plain", "other", [400])


def test_cells_above_a_limit_have_their_whole_interval_there() -> None:
    rows = [run_of("a", [130 + i], instance=i) for i in (1, 2)] + [run_of("b", [100], instance=i) for i in (1, 2)]
    rows += [run_of("a", [at], function=9, instance=i) for i, at in ((1, 200), (2, 90))]
    rows += [run_of("b", [100], function=9, instance=i) for i in (1, 2)]
    ratios = cell_ratios(Comparison.paired(targets.outcomes_by(rows, "a"), targets.outcomes_by(rows, "b")))
    assert ratios[Cell(8, 5)].value == pytest.approx(math.sqrt(1.31 * 1.32)) and ratios[Cell(9, 5)].value > 1.1
    assert surely_above(ratios, 1.1) == "f8 d5" and surely_above(ratios, 1.5) == "none"


def test_successes_are_counted_for_every_label_and_compared(tmp_path: Path) -> None:
    rows = [run_of("bipop", [9] * 51), run_of("bipop", [9] * 20, dim=10), run_of("model-bipop", [9] * 51)]
    rows += [run_of("model-bipop", [9] * 51, dim=10), run_of("alone", [9] * 51, function=7)]
    append_model_rows(tmp_path / "rows.csv", rows)
    found = CliRunner().invoke(bench.app, ["successes", str(tmp_path / "rows.csv")])
    assert found.exit_code == 0
    assert "| model-bipop | 1 (1.000) | 1 (1.000) | 2 (1.000) |" in found.stdout
    assert (
        "| bipop | 1 (1.000) | 0 (0.000) | 1 (0.500) |" in found.stdout and "| alone | 1 (1.000) | - |" in found.stdout
    )
    assert "| f8 | 51 : 51 (1 : 1) | 51 : 20 (1 : 0) | 102 : 71 (2 : 1) |" in found.stdout
    assert "model-bipop : alone" not in found.stdout


def test_the_command_says_the_comparison(tmp_path: Path) -> None:
    append_model_rows(tmp_path / "rows.csv", three(10, 20, 20))
    found = CliRunner().invoke(bench.app, ["plain", str(tmp_path / "rows.csv"), "--budgets", "100"])
    assert found.exit_code == 0 and "| 5 | 100 d | 30 : 30 : 30 of 153 |" in found.stdout
    refused = CliRunner().invoke(bench.app, ["plain", str(tmp_path / "rows.csv"), "--budgets", "9000"])
    assert refused.exit_code == 2 and "9000 d evaluations" in refused.stderr
