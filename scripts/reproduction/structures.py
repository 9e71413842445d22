"""Figure 3: what the groups look like, as matrices A, as covariances A A^T and as precisions (A A^T)^-1.

A is a random element of each group. Besides the pictures: products, inverses and h(M) stay in the group, the Fisher
matrix of the local space is not singular, and block triangular matrices give low rank plus a diagonal.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from esgroup.compare.report import drawing
from esgroup.groups import (
    BlockTriangular,
    Circulant,
    Conjugate,
    Diagonal,
    Full,
    Group,
    Heisenberg,
    Kronecker,
    Sparse,
    ToeplitzTriangular,
    Triangular,
)
from reproduction.experiment import Array, Experiment, Plan, Row, Table, Verdict, entries, judged
from reproduction.figures import INK, headed, picture
from reproduction.structured import generic, local_basis, random_local

DIM, K = 12, 2
EXACT = 1e-10  # relative; rounding is below 1e-12
VIEWS = ("A", "covariance", "precision")


def groups() -> dict[str, Group]:
    """Those of the paper's figure, and their relatives; sizes as in its caption."""
    permutation = [5, 9, *(i for i in range(DIM) if i not in (5, 9))]
    return {
        "diagonal": Diagonal(DIM),
        "block lower": BlockTriangular(DIM, k=K),
        "block upper": BlockTriangular(DIM, k=K, lower=False),
        "Heisenberg lower": Heisenberg(DIM, k1=K, k2=4),
        "Heisenberg upper": Heisenberg(DIM, k1=K, k2=4, lower=False),
        "permuted block": Conjugate(BlockTriangular(DIM, k=K), np.array(permutation)),
        "sparse Cholesky": sparse_cholesky(),
        "Toeplitz": ToeplitzTriangular(DIM),
        "Kronecker": Kronecker(BlockTriangular(3, k=1), BlockTriangular(4, k=2)),
        "circulant": Circulant(DIM),
        "triangular": Triangular(DIM),
        "full": Full(DIM),
    }


def tree_pattern() -> Array:
    """Entry (i, j) of a lower triangle where j is i or an ancestor of i in a binary tree: transitive."""
    pattern = np.eye(DIM, dtype=bool)
    for i in range(1, DIM):
        pattern[i] |= pattern[(i - 1) // 2]
    return pattern


def sparse_cholesky() -> Group:
    return Sparse(tree_pattern())


def banded_pattern() -> Array:
    """The diagonal and the one below it: not transitive."""
    return np.eye(DIM, dtype=bool) | np.eye(DIM, k=-1, dtype=bool)


def outside(group: Group, matrix: Array) -> float:
    """How far a matrix is from the nearest one in the group, relative to its largest entry."""
    nearest = group.dense(group._from_dense(np.ascontiguousarray(matrix)))
    return float(np.abs(nearest - matrix).max() / np.abs(matrix).max())


def outside_pattern(pattern: Array, rng: np.random.Generator) -> float:
    """The same for a product of two random lower triangles with a pattern, whatever it is."""
    a, b = (np.where(pattern, rng.uniform(0.5, 1.5, pattern.shape), 0.0) for _ in range(2))
    return float(np.abs(np.where(pattern, 0.0, a @ b)).max() / np.abs(a @ b).max())


def fisher_ratio(basis: Array) -> float:
    """Smallest over largest eigenvalue of F(M, M') = 1/2 <M + M^T, M' + M'^T> on a basis."""
    sums = (basis + basis.transpose(0, 2, 1)).reshape(len(basis), -1)
    values = np.linalg.eigvalsh(0.5 * sums @ sums.T)
    return float(max(values[0] / values[-1], 0.0))


def circulant_basis() -> Array:
    """All powers of the cyclic shift: circulant matrices, symmetric or not."""
    powers = [np.roll(np.eye(DIM), j, axis=0) / np.sqrt(DIM) for j in range(DIM)]
    return np.array(powers)


def low_rank_gap(matrix: Array) -> float:
    """Of a covariance or precision S: how far S - S[:, K] S[K, K]^-1 S[K, :] is from diagonal, K the first k.

    S = V V^T + Diag(0, D^2) with V of rank k if and only if it is 0.
    """
    head = matrix[:, :K]
    rest = matrix - head @ np.linalg.solve(matrix[:K, :K], head.T)
    return float(np.abs(rest - np.diag(np.diagonal(rest))).max() / np.abs(matrix).max())


def arrow_gap(matrix: Array) -> float:
    """How far the block beyond the first k coordinates is from diagonal."""
    block = matrix[K:, K:]
    return float(np.abs(block - np.diag(np.diagonal(block))).max() / np.abs(matrix).max())


# ---- run ------------------------------------------------------------------------------------------------------------


def run(plan: Plan) -> Iterator[Row]:
    rng = np.random.default_rng(plan.seed)
    for name, group in groups().items():
        a = group.dense(generic(group, rng))
        covariance = a @ a.T
        views = (a, covariance, np.linalg.inv(covariance))
        for view, matrix in zip(VIEWS, views, strict=True):
            yield from entries("picture", view, name, matrix)
        yield Row("degrees of freedom", "", name, DIM, len(local_basis(group)))
        yield Row("Fisher ratio", "local space", name, DIM, fisher_ratio(local_basis(group)))
        yield from _closed(name, group, rng, 2 if plan.quick else 20)
        for view, matrix in zip(VIEWS[1:], views[1:], strict=True):
            yield Row("low rank plus diagonal", view, name, K, low_rank_gap(matrix))
            yield Row("arrowhead", view, name, K, arrow_gap(matrix))
    yield Row("Fisher ratio", "all circulant matrices", "circulant", DIM, fisher_ratio(circulant_basis()))
    for name, pattern in (("transitive", tree_pattern()), ("banded", banded_pattern())):
        yield Row("sparse pattern", "product", name, DIM, outside_pattern(pattern, rng))


def _closed(name: str, group: Group, rng: np.random.Generator, draws: int) -> Iterator[Row]:
    """The worst of some random products, inverses and h(M), formed with dense matrices."""
    products, inverses, steps = [], [], []
    for _ in range(draws):
        a, b = (group.dense(generic(group, rng)) for _ in range(2))
        products.append(outside(group, a @ b))
        inverses.append(outside(group, np.linalg.inv(a)))
        m = group.dense_local(random_local(group, rng))
        steps.append(outside(group, np.eye(DIM) + m + m @ m / 2))
    for case, gaps in (("product", products), ("inverse", inverses), ("h(M)", steps)):
        yield Row("outside the group", case, name, DIM, max(gaps))


# ---- verdicts -------------------------------------------------------------------------------------------------------


def verdicts(table: Table) -> list[Verdict]:
    return [_groups(table), _steps(table), _sparse(table), _fisher(table), _low_rank(table)]


def _worst(table: Table, case: str) -> tuple[dict[str, float], str]:
    gaps = {row.series: row.value for row in table.where("outside the group", case).rows}
    return gaps, f"{case} {max(gaps.values()):.1g} ({max(gaps, key=lambda name: gaps[name])})"


def _groups(table: Table) -> Verdict:
    (products, first), (inverses, second) = _worst(table, "product"), _worst(table, "inverse")
    outcomes = {f"the group is {name}": max(products[name], inverses[name]) < EXACT for name in products}
    why = f"largest distance from the group, relative: {first}, {second}; {len(products)} structures, p = {DIM}"
    return judged("The structures of figure 3 are groups: closed under products and inverses.", why, outcomes)


def _steps(table: Table) -> Verdict:
    gaps, worst = _worst(table, "h(M)")
    bad = {name: gap for name, gap in gaps.items() if gap >= EXACT}
    outcomes = {f"the group is {name}": name not in bad for name in gaps}
    if 0 < len(bad) < len(gaps):
        outcomes = {f"the group is not {' or '.join(bad)}": True, "otherwise": False}
    why = f"largest distance from the group: {worst}"
    if "Kronecker" in bad:
        why += "; h of the Kronecker sum is not a Kronecker product, A1 h(M1) (x) A2 h(M2) is"
    return judged("h(M) = I + M + M²/2 of a local M lies in the group.", why, outcomes)


def _sparse(table: Table) -> Verdict:
    gaps = {name: table.value("sparse pattern", "product", name) for name in table.series("sparse pattern")}
    outcomes = {f"the pattern is {name}": gap < EXACT for name, gap in gaps.items()}
    why = "part of a product outside the pattern: " + ", ".join(f"{name} {gap:.2g}" for name, gap in gaps.items())
    return judged("Sparse Cholesky factors (sparse triangular matrices) form a group.", why, outcomes)


def _fisher(table: Table) -> Verdict:
    ratios = {row.series: row.value for row in table.where("Fisher ratio", "local space").rows}
    free = table.value("Fisher ratio", "all circulant matrices", "circulant")
    outcomes = {f"the group is {name}": ratio > EXACT for name, ratio in ratios.items()}
    if all(outcomes.values()):
        outcomes = {"M is restricted to the local space (for circulant groups: symmetric M)": True}
        outcomes["M is any circulant matrix"] = free > EXACT
    why = f"smallest over largest eigenvalue: at least {min(ratios.values()):.2g} on the local spaces, "
    why += f"{free:.1g} on all circulant matrices"
    return judged("The Fisher matrix in local coordinates is not singular, also for circulant groups.", why, outcomes)


def _low_rank(table: Table) -> Verdict:
    """A in B_low: covariance of low rank, precision an arrowhead; A in B_up: the other way round."""
    parts = (("low rank plus diagonal", "covariance", "precision"), ("arrowhead", "precision", "covariance"))
    gaps, others = {}, {}
    for part, of_lower, of_upper in parts:
        gaps[f"{part}, lower"] = table.value(part, of_lower, "block lower")
        gaps[f"{part}, upper"] = table.value(part, of_upper, "block upper")
        others[part] = table.value(part, of_lower, "full")
    outcomes = {name: gap < EXACT and min(others.values()) > EXACT for name, gap in gaps.items()}
    why = f"largest deviation {max(gaps.values()):.1g}; of the full group {min(others.values()):.2g} or more"
    claim = f"Block triangular A with k = {K}: A A^T has rank {K} plus a diagonal (lower), or its inverse has (upper)."
    return judged(claim, why, outcomes)


# ---- figure ---------------------------------------------------------------------------------------------------------


def figure(table: Table, path: Path) -> None:
    names = table.series("picture", "A")
    note = "One random element of each group. White: exactly zero. Darker: larger"
    with drawing.plain():
        made = headed(f"The groups, {DIM} x {DIM}, and the covariances that they make", note, 8.4, 6.9, arranged=False)
        half = (len(names) + 1) // 2
        panels = made.subplots(2 * len(VIEWS) + 1, half, height_ratios=(1, 1, 1, 0.5, 1, 1, 1))
        made.subplots_adjust(left=0.055, right=0.985, bottom=0.015, top=0.86, wspace=0.3, hspace=0.12)
        for axes in panels[len(VIEWS)]:
            axes.set_axis_off()
        for i, name in enumerate(names):
            top = 0 if i < half else len(VIEWS) + 1
            _draw_group(panels[top : top + len(VIEWS), i % half], table, name, first=i % half == 0)
        drawing.save(made, path)


def _draw_group(column: Any, table: Table, name: str, first: bool) -> None:
    dof = table.value("degrees of freedom", "", name)
    labels = {"A": "A", "covariance": "covariance\nA Aᵀ", "precision": "precision\n(A Aᵀ)⁻¹"}
    for axes, view in zip(column, VIEWS, strict=True):
        picture(axes, table.matrix("picture", view, name), f"{name}\n{dof:.0f} parameters" if view == "A" else "")
        axes.title.set_fontsize(8.5)
        if first:
            axes.set_ylabel(labels[view], fontsize=9, color=INK)


STRUCTURES = Experiment(
    name="structures",
    title="Groups of structured matrices (figure 3)",
    about="Random elements of the groups, their covariances and precisions; closure, Fisher matrices and low rank.",
    run=run,
    figure=figure,
    verdicts=verdicts,
)
