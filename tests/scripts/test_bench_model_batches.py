"""What points that are evaluated at the same time cost and save: ratios to the serial search, on made-up runs."""

from __future__ import annotations

from pathlib import Path

import bench_model as bench
import model_batches
import pytest
from model_runs import ModelRow, ModelSetup, append_model_rows
from typer.testing import CliRunner

pytestmark = pytest.mark.scripts

SETUP = ModelSetup("esgroup", "model=quadratic", 100, "", 0.0, 0.0)


def run_of(batch: str, evals: int | None, asks: int, function: int = 8, instance: int = 1, used: int = 250) -> ModelRow:
    """A row of a run in 5 dimensions; the serial one has the label model."""
    label, setup = f"model{batch}", SETUP._replace(batch=batch)
    return ModelRow(label, function, 5, instance, 0, evals, evals or used, asks, "x", 0.5, (), (), *setup)


def test_a_run_that_fails_counts_with_the_asks_of_its_budget() -> None:
    assert model_batches.asks(run_of("1x", 40, 5)) == 5
    assert model_batches.asks(run_of("1x", None, 25)) == 50  # half of 500 evaluations were used


def test_ratios_are_to_the_serial_run_on_the_same_problem() -> None:
    rows = [run_of("", 100, 50), run_of("", 100, 50, instance=2), run_of("", 40, 4, function=1)]
    rows += [run_of("2x", 200, 10), run_of("2x", 200, 10, instance=2), run_of("2x", 20, 1, function=1)]
    rows += [run_of("10", 50, 5), run_of("0.5x", None, 25)]
    text = model_batches.batches(rows, "model")
    assert "| d | ratio of | 10 | 0.5x | 2x |" in text
    assert "| 5 | evaluations | 0.50, 1 of 2 functions | 5.00, 1 of 2 functions | 1.00 |" in text
    assert "| 5 | asks | 0.10, 1 of 2 functions | 1.00, 1 of 2 functions | 0.22 |" in text
    assert "| 5, f8 | 100 | 0.50 | 5.00 (0/1) | 2.00 [2.00, 2.00] |" in text
    assert "| 5, f8 | 50 | 5 | 50 | 10 |" in text and "| 5, f1 | 4 | - | - | 1 |" in text
    assert "Not run, and left out of what is compared: 0.5x, d = 5: f1; 0.5x, d = 5: f8 (1 of 2 runs);" in text


def test_runs_of_another_kind_are_left_out() -> None:
    other = run_of("2x", 1, 1)._replace(options="", label="other")
    text = model_batches.batches([run_of("", 100, 50), run_of("2x", 200, 10), other], "model")
    assert "| 5, f8 | 100 | 2.00 |" in text
    with pytest.raises(ValueError, match="with --batch that are otherwise those of label 'model', got none"):
        model_batches.batches([run_of("", 100, 50), other], "model")
    with pytest.raises(ValueError, match="without --batch, got --batch 2x"):
        model_batches.batches([run_of("2x", 100, 50)], "model2x")


def test_the_command_says_the_table(tmp_path: Path) -> None:
    append_model_rows(tmp_path / "rows.csv", [run_of("", 100, 50), run_of("1", 100, 100)])
    found = CliRunner().invoke(bench.app, ["batches", str(tmp_path / "rows.csv")])
    assert found.exit_code == 0 and "| 5 | asks | 2.00 |" in found.stdout
    refused = CliRunner().invoke(bench.app, ["batches", str(tmp_path / "rows.csv"), "--label", "none"])
    assert refused.exit_code == 2 and "label 'none'" in refused.stderr
