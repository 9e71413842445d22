"""When the Fisher matrix of a rank-one Gaussian is singular: Sigma = v v^T + Diag(d^2), v and d both free.

For N(0, Sigma) it is F_ij = 1/2 tr(Sigma^-1 dSigma_i Sigma^-1 dSigma_j). The group B_low(1) has 2p - 1 parameters for
the same kind of covariance, v v^T + Diag(0, d^2), in local coordinates A h(M).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from esgroup.compare.report import drawing
from esgroup.groups import BlockTriangular
from reproduction.experiment import Array, Experiment, Plan, Row, Table, Verdict, entries, judged, slope
from reproduction.figures import INK, headed, picture
from reproduction.structured import generic, local_basis

RANK_TOLERANCE = 1e-10  # of the largest eigenvalue; what is not zero is above 1e-6 here
#: Printed in the paper for v = (1, 0, 0), d = (1, 1, 1), parameters in the order d, v.
PRINTED = np.diag([0.5, 2.0, 2.0, 0.5, 0.5, 0.5])
PRINTED[0, 3] = PRINTED[3, 0] = 0.5


def fisher(covariance: Array, slopes: Array) -> Array:
    """F_ij = 1/2 tr(Sigma^-1 D_i Sigma^-1 D_j) from the derivatives D_i of Sigma, (parameters, p, p)."""
    pulled = np.linalg.solve(covariance, slopes)
    matrix: Array = 0.5 * np.einsum("iab,jba->ij", pulled, pulled)
    return matrix


def rank_one_slopes(v: Array, d: Array) -> Array:
    """Derivatives of v v^T + Diag(d^2) by d_1 ... d_p, then by v_1 ... v_p."""
    eye = np.eye(len(v))
    by_d = np.array([2 * d[i] * np.outer(eye[i], eye[i]) for i in range(len(d))])
    by_v = np.array([np.outer(eye[i], v) + np.outer(v, eye[i]) for i in range(len(v))])
    return np.concatenate([by_d, by_v])


def rank_one_fisher(v: Array, d: Array) -> Array:
    """The Fisher matrix in (d, v) of N(0, v v^T + Diag(d^2))."""
    return fisher(np.outer(v, v) + np.diag(d**2), rank_one_slopes(v, d))


def scalar_fisher(v: Array, d: float) -> Array:
    """The Fisher matrix in (d, v) of N(0, v v^T + d^2 I) with one number d."""
    by_v = rank_one_slopes(v, np.ones(len(v)))[len(v) :]
    slopes = np.concatenate([2 * d * np.eye(len(v))[None], by_v])
    return fisher(np.outer(v, v) + d**2 * np.eye(len(v)), slopes)


def group_fisher(dim: int, rng: np.random.Generator) -> Array:
    """The Fisher matrix of A h(M) at M = 0 in an orthonormal basis of the local space of B_low(1), A random."""
    group = BlockTriangular(dim, k=1)
    a = group.dense(generic(group, rng))
    slopes = np.array([a @ (m + m.T) @ a.T for m in local_basis(group)])  # d/dt of A h(tM) h(tM)^T A^T at 0
    return fisher(a @ a.T, slopes)


def rank(matrix: Array) -> int:
    values = np.linalg.eigvalsh(matrix)
    return int((values > RANK_TOLERANCE * values.max()).sum())


def ratio(matrix: Array) -> float:
    """The smallest eigenvalue over the largest, at least the rounding error."""
    values = np.linalg.eigvalsh(matrix)
    return float(max(values.min() / values.max(), 1e-17))


# ---- run ------------------------------------------------------------------------------------------------------------


def run(plan: Plan) -> Iterator[Row]:
    rng = np.random.default_rng(plan.seed)
    example = rank_one_fisher(np.array([1.0, 0.0, 0.0]), np.ones(3))
    yield from entries("example 2", "v = (1, 0, 0)", "Fisher matrix", example)
    yield Row("rank", "example 2", "rank", 3, rank(example))
    yield Row("rank", "example 2", "parameters", 3, len(example))
    yield from _random(rng, draws=3 if plan.quick else 50, dims=range(2, 6 if plan.quick else 13))
    yield from _few_entries(rng, 5 if plan.quick else 8)
    for t in np.geomspace(1e-4, 1, 5 if plan.quick else 17):
        yield Row("third entry", "p = 3", "v = (1, 1, t)", t, ratio(rank_one_fisher(np.array([1, 1, t]), np.ones(3))))


def _random(rng: np.random.Generator, draws: int, dims: range) -> Iterator[Row]:
    """Random v and d: the lowest rank seen, the number of parameters, and the smallest of the ratios."""
    for p in dims:
        seen: dict[str, list[Array]] = {"v v' + Diag(d^2)": [], "v v' + d^2 I": [], "group B_low(1)": []}
        for _ in range(draws):
            v, d = rng.standard_normal(p), rng.uniform(0.5, 2.0, p)
            seen["v v' + Diag(d^2)"].append(rank_one_fisher(v, d))
            seen["v v' + d^2 I"].append(scalar_fisher(v, d[0]))
            seen["group B_low(1)"].append(group_fisher(p, rng))
        for name, matrices in seen.items():
            yield Row("lowest rank", name, "rank", p, min(map(rank, matrices)))
            yield Row("lowest rank", name, "parameters", p, len(matrices[0]))
            yield Row("eigenvalue ratio", name, "median", p, float(np.median(list(map(ratio, matrices)))))


def _few_entries(rng: np.random.Generator, p: int) -> Iterator[Row]:
    """Only the first entries of v are not zero."""
    for count in range(p + 1):
        v = np.where(np.arange(p) < count, rng.uniform(0.5, 2.0, p), 0.0)
        yield Row("entries of v", f"p = {p}", "v v' + Diag(d^2)", count, rank(rank_one_fisher(v, np.ones(p))))
        yield Row("entries of v", f"p = {p}", "v v' + d^2 I", count, rank(scalar_fisher(v, 1.0)))


# ---- verdicts -------------------------------------------------------------------------------------------------------


def verdicts(table: Table) -> list[Verdict]:
    return [_example_one(table), _example_two(table), _always(table), _groups(table), _scalar(table)]


def _regular(table: Table, name: str) -> dict[int, bool]:
    """By p: whether the rank of every draw was the number of parameters."""
    p, ranks = table.curve("lowest rank", name, "rank")
    _, sizes = table.curve("lowest rank", name, "parameters")
    return {int(a): bool(b) for a, b in zip(p, ranks == sizes, strict=True)}


def _full(regular: dict[int, bool]) -> str:
    return ", ".join(str(p) for p, ok in regular.items() if ok) or "none"


def _example_one(table: Table) -> Verdict:
    ranks = dict(zip(*table.curve("lowest rank", "v v' + Diag(d^2)", "rank"), strict=True))
    why = f"p = 2, random v and d: rank {ranks[2]:.0f} of 4"
    return judged("Example 1: for p = 2 the Fisher matrix in (v, d) is singular.", why, {"p = 2": ranks[2] < 4})


def _example_two(table: Table) -> Verdict:
    gap = np.abs(table.matrix("example 2", "v = (1, 0, 0)", "Fisher matrix") - PRINTED).max()
    found, size = (table.value("rank", "example 2", name) for name in ("rank", "parameters"))
    why = f"largest difference from the printed matrix {gap:.1g}; rank {found:.0f} of {size:.0f}"
    claim = "Example 2: at v = (1, 0, 0), d = (1, 1, 1) it is the printed matrix, with two equal columns, and singular."
    return judged(claim, why, {"": gap < 1e-12 and found < size})


def _always(table: Table) -> Verdict:
    """Where the singularity is found: by p for random v, and by the number of entries of v."""
    regular = _regular(table, "v v' + Diag(d^2)")
    (case,) = table.cases("entries of v")
    counts, ranks = table.curve("entries of v", case, "v v' + Diag(d^2)")
    low = counts[ranks < 2 * counts.max()]
    singular = [p for p, ok in regular.items() if not ok]
    outcomes = {f"p = {p}": not ok for p, ok in regular.items()}
    if singular and low.size and low.max() == low.size - 1 and len(singular) < len(regular):
        outcomes = {f"p = {', '.join(map(str, singular))}": True, "p is larger and v is random": False}
        outcomes[f"v has at most {low.max():.0f} entries that are not zero"] = True
    x, y = table.curve("third entry", "p = 3", "v = (1, 1, t)")
    small = x < 0.1
    why = (
        f"random v: full rank for p = {_full(regular)}; {case}: singular "
        f"with {', '.join(f'{c:.0f}' for c in low) or 'no'} non-zero entries of v; at v = (1, 1, t) the smallest "
        f"eigenvalue goes as t^{slope(x[small], y[small]):.2f}"
    )
    return judged("The Fisher matrix in (v, d) is singular, also in higher dimensions.", why, outcomes)


def _groups(table: Table) -> Verdict:
    regular = _regular(table, "group B_low(1)")
    _, sizes = table.curve("lowest rank", "group B_low(1)", "parameters")
    _, ratios = table.curve("eigenvalue ratio", "group B_low(1)", "median")
    why = f"p = {min(regular)} to {max(regular)}: {sizes[0]:.0f} to {sizes[-1]:.0f} parameters, all ranks full: "
    why += f"{'yes' if all(regular.values()) else 'no'}; smallest over largest eigenvalue {ratios.min():.2g}"
    claim = "In the local coordinates of the block triangular group (2p - 1 parameters) it is never singular."
    return judged(claim, why, {f"p = {p}": ok for p, ok in regular.items()})


def _scalar(table: Table) -> Verdict:
    regular = _regular(table, "v v' + d^2 I")
    (case,) = table.cases("entries of v")
    counts, ranks = table.curve("entries of v", case, "v v' + d^2 I")
    bad = counts[ranks < counts.max() + 1]
    why = f"random v: full rank for p = {_full(regular)}; {case}: "
    why += f"singular with {', '.join(f'{c:.0f}' for c in bad) or 'no'} non-zero entries of v"
    outcomes = {"v is random": all(regular.values())}
    outcomes |= {f"v has {c:.0f} non-zero entries": r == counts.max() + 1 for c, r in zip(counts, ranks, strict=True)}
    if all(regular.values()) and bad.tolist() == [0.0]:
        outcomes = {"v is not zero": True, "v = 0": False}
    return judged("One number d for all (v v^T + d^2 I, p >= 2) avoids the singularity.", why, outcomes)


# ---- figure ---------------------------------------------------------------------------------------------------------


def figure(table: Table, path: Path) -> None:
    note = "Fisher matrix of N(0, v v' + Diag(d²)) in d and v; zero ratios are drawn at the rounding error"
    with drawing.plain():
        made = headed("A rank-one covariance: where its Fisher matrix is singular", note, 8.0, 3.5)
        left, middle, right = made.subplots(1, 3, width_ratios=(1.0, 1.15, 1.15))
        _draw_example(left, table)
        _draw_dims(middle, table)
        _draw_third(right, table)
        drawing.save(made, path)


def _draw_example(axes: Any, table: Table) -> None:
    matrix = table.matrix("example 2", "v = (1, 0, 0)", "Fisher matrix")
    picture(axes, matrix, f"v = (1, 0, 0): rank {table.value('rank', 'example 2', 'rank'):.0f} of {len(matrix)}")
    for (i, j), value in np.ndenumerate(matrix):
        if value > 1e-12:
            axes.text(j, i, f"{value:g}", ha="center", va="center", fontsize=8, color="white" if value > 1 else INK)
    names = [f"d{i}" for i in "₁₂₃"] + [f"v{i}" for i in "₁₂₃"]
    axes.set_xticks(range(6), names)
    axes.set_yticks(range(6), names)
    axes.tick_params(length=0, labelsize=8.5)
    for column in (0, 3):  # the equal ones
        look = {"fill": False, "edgecolor": drawing.COLORS[1], "linewidth": 2, "clip_on": False}
        axes.add_patch(_box(column - 0.5, -0.5, 1, 6, look))
    axes.set_xlabel("framed: two equal columns", fontsize=8.5, color=drawing.COLORS[1])


def _box(x: float, y: float, width: float, height: float, look: dict[str, Any]) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle((x, y), width, height, **look)


def _draw_dims(axes: Any, table: Table) -> None:
    axes.set(yscale="log", ylim=(1e-18, 10))
    places = {"v v' + Diag(d^2)": (0.3, 0.62), "v v' + d^2 I": (0.3, 0.8), "group B_low(1)": (0.3, 0.97)}
    for i, name in enumerate(table.cases("eigenvalue ratio")):
        x, y = table.curve("eigenvalue ratio", name, "median")
        axes.plot(x, y, color=drawing.COLORS[i], marker=drawing.MARKERS[i], markersize=4)
        axes.text(
            *places[name], name.replace("^2", "²"), transform=axes.transAxes, color=drawing.COLORS[i], fontsize=9
        )
    drawing.notebook(axes, "random v and d")
    drawing.name_axis(axes.xaxis, "p")
    drawing.name_axis(axes.yaxis, "smallest / largest eigenvalue")


def _draw_third(axes: Any, table: Table) -> None:
    axes.set(xscale="log", yscale="log")
    axes.plot(*table.curve("third entry", "p = 3", "v = (1, 1, t)"), color=drawing.COLORS[0], marker="o", markersize=4)
    drawing.notebook(axes, "v = (1, 1, t), d = (1, 1, 1)")
    drawing.name_axis(axes.xaxis, "t")


SINGULAR = Experiment(
    name="singular",
    title="A singular Fisher matrix (figure 1 (I), appendix on singular matrices)",
    about="Sigma = v v^T + Diag(d^2) with v and d both free: ranks of its Fisher matrix, computed exactly.",
    run=run,
    figure=figure,
    verdicts=verdicts,
)
