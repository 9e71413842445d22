"""The figure of one generation: what it shows is what the search did."""

from __future__ import annotations

from pathlib import Path

import figure_generation
import numpy as np
import pytest

pytestmark = pytest.mark.scripts


def test_a_generation_starts_with_a_circle_and_moves_toward_better_points() -> None:
    found = figure_generation.generation()
    old, new = found.means
    np.testing.assert_allclose(np.linalg.norm(found.ellipses[0] - old, axis=1), figure_generation.SIGMA0)
    assert sorted(found.order) == list(range(figure_generation.POPSIZE))
    values = figure_generation.valley(found.points[found.order])
    assert (np.diff(values) >= 0).all()
    better = found.points[found.order[: figure_generation.POPSIZE // 2]].mean(axis=0)
    assert (new - old) @ (better - old) > 0 and figure_generation.valley(new) < figure_generation.valley(old)


def test_the_figure_shows_all_points_and_a_shape_that_has_turned_toward_the_valley() -> None:
    found = figure_generation.generation()
    (left, right), (low, high) = figure_generation.VIEW
    assert (found.points > [left, low]).all() and (found.points < [right, high]).all()
    lengths, axes = np.linalg.svd(found.ellipses[1] - found.means[1])[1:]
    assert lengths[0] > 1.5 * lengths[1] and abs(axes[0] @ [1, -1]) / np.sqrt(2) > 0.9


def test_the_figure_is_drawn(tmp_path: Path) -> None:
    figure_generation.main(tmp_path / "generation.png")
    assert 20_000 < (tmp_path / "generation.png").stat().st_size < 250_000
