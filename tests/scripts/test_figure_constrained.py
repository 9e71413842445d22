"""The figure of a search with constraints: both are active at the optimum, the search finds it, a figure is drawn."""

from __future__ import annotations

from pathlib import Path

import figure_constrained
import numpy as np
import pytest

pytestmark = pytest.mark.scripts


def test_both_constraints_are_active_at_the_optimum_with_positive_multipliers() -> None:
    best, h = figure_constrained.optimum(), 1e-6
    np.testing.assert_allclose(figure_constrained.g(best), 0.0, atol=1e-8)
    moves = h * np.eye(2)
    slope = (figure_constrained.f(best + moves) - figure_constrained.f(best - moves)) / (2 * h)
    slopes = (figure_constrained.g(best + moves) - figure_constrained.g(best - moves)) / (2 * h)  # (coordinate, j)
    multipliers = np.linalg.solve(slopes, -slope)  # grad f + sum_j lambda_j grad g_j = 0
    assert (multipliers > 0.05).all()
    stages, found = figure_constrained.search(3)
    np.testing.assert_allclose(found.result.x, best, atol=1e-5)
    np.testing.assert_allclose(found.result.multipliers, multipliers, rtol=1e-2)
    assert not (figure_constrained.g(stages[0].points) <= 0).all(axis=-1).any()  # it begins outside


def test_an_ellipse_is_at_two_deviations_of_the_first_distribution() -> None:
    stages, _ = figure_constrained.search(1)
    distances = np.linalg.norm(stages[0].ellipse - figure_constrained.START, axis=1)
    np.testing.assert_allclose(distances, 2 * figure_constrained.SIGMA0)


def test_the_figure_is_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figure_constrained.main(tmp_path / "constrained.png")
    assert (tmp_path / "constrained.png").stat().st_size > 50_000
    assert "multipliers" in capsys.readouterr().out
