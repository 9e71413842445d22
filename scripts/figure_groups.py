"""The figure docs/concepts/groups.png: a matrix A of every group, its covariance A A^T, and the Gaussian of that.

    python scripts/figure_groups.py [--out groups.png]        seconds; needs matplotlib

The matrices are random elements of the groups in esgroup.groups, with eight coordinates each.
"""
# extras: compare

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import typer
from figure_search import save

from esgroup.groups import (
    BlockDiagonal,
    BlockTriangular,
    Circulant,
    Conjugate,
    Diagonal,
    Frame,
    Full,
    Group,
    Heisenberg,
    Kronecker,
    Sparse,
    ToeplitzTriangular,
    Triangular,
)
from esgroup.plots.style import INK, check_out, new_figure

OUT = Path(__file__).parents[1] / "docs" / "concepts" / "groups.png"
DIM = 8
LARGEST = 0.7  # entry of a local step M; smaller ones show little, larger ones dwarf all but a few entries
ZERO, POSITIVE, NEGATIVE, MUTED = "#eceff1", "#1b6ca8", "#c4572e", "#55636e"
PER_ROW = 2
PANEL, GAP, HEAD, FOOT = 1.55, 0.12, 0.52, 0.36  # inches: a panel, the space between two, what is above and below
BETWEEN, MARGIN = 0.4, 0.12  # inches: between two groups, and around all


class Structure(NamedTuple):
    """A group with its name, and how one writes it."""

    name: str
    spelling: str
    group: Group


def structures() -> list[Structure]:
    """Return all groups, relatives side by side."""
    hubs = np.array([4, 6, *(i for i in range(DIM) if i not in (4, 6))])
    turned = np.linalg.qr(np.random.default_rng(7).standard_normal((DIM, DIM)))[0]
    blocks = BlockDiagonal([Full(3), Full(3), Diagonal(2)])
    return [
        Structure("full", '"full"', Full(DIM)),
        Structure("diagonal", '"diagonal"', Diagonal(DIM)),
        Structure("triangular, lower", '"triangular"', Triangular(DIM)),
        Structure("triangular, upper", '"triangular:upper"', Triangular(DIM, lower=False)),
        Structure("block triangular, lower", '"block_triangular:k=2"', BlockTriangular(DIM, k=2)),
        Structure("block triangular, upper", '"block_triangular:k=2,upper"', BlockTriangular(DIM, k=2, lower=False)),
        Structure("Heisenberg, lower", '"heisenberg:k1=2,k2=2"', Heisenberg(DIM, k1=2, k2=2)),
        Structure("Heisenberg, upper", '"heisenberg:k1=2,k2=2,upper"', Heisenberg(DIM, k1=2, k2=2, lower=False)),
        Structure(
            "block triangular, other hubs", "Conjugate(..., [4, 6, ...])", Conjugate(BlockTriangular(DIM, k=2), hubs)
        ),
        Structure("diagonal in rotated axes", "Conjugate(Diagonal(8), Q)", Conjugate(Diagonal(DIM), turned)),
        Structure("block diagonal", "BlockDiagonal([...])", blocks),
        Structure("sparse", "Sparse(pattern)", Sparse(tree_pattern())),
        Structure("Toeplitz, lower", '"toeplitz_triangular"', ToeplitzTriangular(DIM)),
        Structure("circulant", '"circulant"', Circulant(DIM)),
        Structure("Kronecker", "Kronecker(Full(2), Full(4))", Kronecker(Full(2), Full(4))),
        Structure("frame", '"frame:k=2"', Frame(DIM, k=2)),
    ]


def tree_pattern() -> np.ndarray:
    """Return the pattern of a binary tree: entry (i, j) where j is i or one of its ancestors."""
    pattern = np.eye(DIM, dtype=bool)
    for i in range(1, DIM):
        pattern[i] |= pattern[(i - 1) // 2]
    return pattern


def element(group: Group, rng: np.random.Generator) -> np.ndarray:
    """Return a random element as a matrix: a product of two steps h(M), or for a frame one long and one short axis."""
    if isinstance(group, Frame):
        directions = np.linalg.qr(rng.standard_normal((group.dim, 2)))[0].T
        return group.dense(group.pack(1.0, np.array([2.5, 0.3]), directions))
    return group.dense(group.product(*(group.h(_local(group, rng)) for _ in range(2))))


def _local(group: Group, rng: np.random.Generator) -> np.ndarray:
    matrix = rng.standard_normal((group.dim, group.dim))
    m = group.project_dense(matrix + matrix.T)
    scaled: np.ndarray = LARGEST / np.abs(group.dense_local(m)).max() * m
    return scaled


def pair_ellipse(covariance: np.ndarray, i: int, j: int, deviations: float = 2.0) -> np.ndarray:
    """Return points (x_j, x_i) on the ellipse of the distribution of two coordinates, this far from the mean."""
    angles = np.linspace(0, 2 * np.pi, 61)
    root = np.linalg.cholesky(covariance[np.ix_([j, i], [j, i])])
    ellipse: np.ndarray = deviations * root @ np.array([np.cos(angles), np.sin(angles)])
    return ellipse


# ---- the figure -----------------------------------------------------------------------------------------------------


def draw(out: Path, seed: int) -> None:
    """Draw all groups, two in a row."""
    found = structures()
    rows = -(-len(found) // PER_ROW)
    cell_width, cell_height = 3 * PANEL + 2 * GAP + BETWEEN, HEAD + PANEL + FOOT
    width, height = 2 * MARGIN + PER_ROW * cell_width - BETWEEN, 2 * MARGIN + rows * cell_height
    figure = new_figure(width, height)
    figure.set_layout_engine("none")  # places are known
    for number, structure in enumerate(found):
        row, column = divmod(number, PER_ROW)
        left, top = MARGIN + column * cell_width, height - MARGIN - row * cell_height
        x, y = left / width, 1 / height
        figure.text(x, (top - 0.04) * y, structure.name, va="top", fontsize=11, fontweight="bold", color=INK)
        line = f"{structure.spelling},  {structure.group.dof} degrees of freedom"
        figure.text(x, (top - 0.26) * y, line, va="top", fontsize=9, color=MUTED)
        bottom = (top - HEAD - PANEL) / height
        places = [((left + i * (PANEL + GAP)) / width, bottom, PANEL / width, PANEL / height) for i in range(3)]
        _panels([figure.add_axes(place) for place in places], element(structure.group, np.random.default_rng(seed)))
    save(figure, out, dpi=140)


def _panels(panels: list[Any], a: np.ndarray) -> None:
    covariance = a @ a.T
    _entries(panels[0], a)
    _entries(panels[1], covariance)
    _pairs(panels[2], covariance)
    for panel, label in zip(panels, ("A", "covariance A Aᵀ", "pairs of coordinates"), strict=True):
        panel.set_xlabel(label, fontsize=9, color=MUTED)


def _entries(axes: Any, matrix: np.ndarray) -> None:
    """Draw the entries by sign and size; those that are zero have a color of their own."""
    from matplotlib.colors import LinearSegmentedColormap

    ramp = [NEGATIVE, "#f6d9cb", "#ffffff", "#cfe3f3", POSITIVE]
    colors = LinearSegmentedColormap.from_list("signed", ramp).with_extremes(bad=ZERO)
    largest = np.abs(matrix).max()
    shown = np.ma.masked_where(np.abs(matrix) < 1e-12 * largest, np.sign(matrix) * np.sqrt(np.abs(matrix) / largest))
    axes.imshow(shown, cmap=colors, vmin=-1, vmax=1, interpolation="nearest")
    _grid(axes)


def _pairs(axes: Any, covariance: np.ndarray) -> None:
    """Draw an ellipse for every pair of coordinates, and on the diagonal the width of a single one."""
    size = 0.45 / (2 * np.sqrt(np.diagonal(covariance).max()))
    for i, j in _lower():
        if i == j:
            half = 2 * size * np.sqrt(covariance[i, i])
            axes.plot([i - half, i + half], [i, i], color=INK, linewidth=2.2, solid_capstyle="butt")
            continue
        x, y = size * pair_ellipse(covariance, i, j)
        related = abs(covariance[i, j]) > 1e-12 * np.sqrt(covariance[i, i] * covariance[j, j])
        sign = POSITIVE if covariance[i, j] > 0 else NEGATIVE
        axes.plot(j + x, i - y, color=sign if related else "#9aa6ae", linewidth=1.0)
    axes.set(xlim=(-0.5, DIM - 0.5), ylim=(DIM - 0.5, -0.5), aspect="equal")
    _grid(axes)


def _lower() -> Iterator[tuple[int, int]]:
    return ((i, j) for i in range(DIM) for j in range(i + 1))


def _grid(axes: Any) -> None:
    edges = np.arange(DIM + 1) - 0.5
    axes.set_xticks(edges, minor=True)
    axes.set_yticks(edges, minor=True)
    axes.grid(which="minor", color="white", linewidth=0.7)
    axes.tick_params(which="both", length=0)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[:].set(color="#b4bec5", linewidth=0.8)


def main(out: Path = OUT, seed: int = 5) -> None:
    """Draw the figure."""
    path = check_out(out)
    draw(path, seed)
    print(f"figure {path}")


if __name__ == "__main__":
    typer.run(main)
