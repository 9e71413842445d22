"""The figure of searches with and without a model: curves are best values, and a figure is drawn."""

from __future__ import annotations

from pathlib import Path

import figure_model
import numpy as np
import pytest

pytestmark = pytest.mark.scripts


def test_a_curve_has_the_best_value_after_every_evaluation() -> None:
    fun = figure_model.Watched(lambda x: float(x[0]), 6)
    for value in (3.0, 5.0, 2.0, 4.0):
        fun([value])
    np.testing.assert_array_equal(fun.curve(), [3.0, 3.0, 2.0, 2.0, 2.0, 2.0])


def test_a_run_ends_with_its_budget() -> None:
    fun = figure_model.Watched(lambda x: 1.0, 1)
    fun([0.0])
    with pytest.raises(figure_model.Enough):
        fun([0.0])


@pytest.mark.parametrize("method", figure_model.COLORS)
def test_every_method_comes_down(method: str) -> None:
    pytest.importorskip("cma")
    gaps = figure_model.curves("rosenbrock", 2, method, 150, seeds=2)
    assert gaps.shape == (2, 150) and (np.diff(gaps, axis=1) <= 0).all() and (gaps[:, -1] < 0.5 * gaps[:, 0]).all()


def test_the_figure_is_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("cma")
    monkeypatch.setattr(figure_model, "PROBLEMS", {"rosenbrock": (2, "one"), "rotated_ellipsoid": (3, "two")})
    figure_model.draw(tmp_path / "model.png", budget=20)
    assert (tmp_path / "model.png").stat().st_size > 20_000
