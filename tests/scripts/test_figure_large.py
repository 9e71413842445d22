"""The figure of a frame at work."""

from pathlib import Path

import figure_large
import numpy as np
import pytest

pytestmark = pytest.mark.scripts


def test_the_function_has_two_axes_of_each_kind() -> None:
    dim, rows = 8, figure_large.axes_of_both_kinds(8)
    points = 1.0 + np.vstack([np.eye(dim)[i] + np.eye(dim)[j] for i in range(dim) for j in range(dim)])
    values = rows(points).reshape(dim, dim)  # of e_i + e_j, from which the Hessian follows
    single = rows(1.0 + np.eye(dim))
    hessian = values - single[:, None] - single
    expected = [1e-6] * 2 + [1.0] * 4 + [1e6] * 2
    np.testing.assert_allclose(np.linalg.eigvalsh(hessian / 2), expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("structure", figure_large.COLORS)
def test_a_search_is_followed(structure: str) -> None:
    found = figure_large.course(structure, figure_large.axes_of_both_kinds(12), 12, 600)
    assert found.evaluations[-1] == 600 and (np.diff(found.best) <= 0).all() and found.best[-1] < 0.1 * found.best[0]
    assert (len(found.lengths[0]) > 0) == (structure == "frame")


def test_the_figure_is_drawn(tmp_path: Path) -> None:
    figure_large.draw(tmp_path / "large.png", dim=12, budget=400)
    assert (tmp_path / "large.png").stat().st_size > 20_000
