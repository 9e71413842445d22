"""The figure of the groups: its matrices are elements of them, its ellipses belong to their covariances."""

from __future__ import annotations

from pathlib import Path

import figure_groups
import numpy as np
import pytest

import esgroup.groups
from esgroup.groups import Frame, Group

pytestmark = pytest.mark.scripts

STRUCTURES = {structure.name: structure for structure in figure_groups.structures()}


def test_every_group_is_drawn() -> None:
    classes = [value for value in vars(esgroup.groups).values() if isinstance(value, type)]
    public = {cls for cls in classes if issubclass(cls, Group) and cls is not Group}
    assert {type(structure.group) for structure in STRUCTURES.values()} == public


@pytest.mark.parametrize("name", STRUCTURES)
def test_a_drawn_matrix_is_an_element_of_its_group(name: str) -> None:
    group = STRUCTURES[name].group
    a = figure_groups.element(group, np.random.default_rng(3))
    if isinstance(group, Frame):  # all but two axes are equally long
        lengths = np.sort(np.linalg.eigvalsh(a))
        np.testing.assert_allclose(lengths, [0.3, *np.ones(6), 2.5])
    else:
        np.testing.assert_allclose(group.dense(group.from_dense(a)), a, atol=1e-12)
        assert np.abs(a - np.eye(figure_groups.DIM)).max() > 0.3


@pytest.mark.parametrize("name", STRUCTURES)
def test_a_spelling_is_that_of_the_group(name: str) -> None:
    structure = STRUCTURES[name]
    if structure.spelling.startswith('"'):
        assert esgroup.groups.parse(structure.spelling.strip('"'), figure_groups.DIM) == structure.group


def test_an_ellipse_is_at_two_deviations() -> None:
    covariance = np.array([[2.0, 0.3, 0.5], [0.3, 1.0, -0.4], [0.5, -0.4, 3.0]])
    x_j, x_i = figure_groups.pair_ellipse(covariance, 2, 0)
    points = np.stack([x_j, x_i], axis=1)
    part = covariance[np.ix_([0, 2], [0, 2])]
    np.testing.assert_allclose(np.vecdot(points, np.linalg.solve(part, points.T).T), 4.0)


def test_the_figure_is_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figure_groups.main(tmp_path / "groups.png")
    assert (tmp_path / "groups.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "groups.png").stat().st_size > 50_000
