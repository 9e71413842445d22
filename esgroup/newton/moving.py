"""The moving block: a block triangular group whose hub changes with the iterations."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from esgroup import checks
from esgroup.checks import Array
from esgroup.newton.precision import Breakdown, Precision, UpdateData, finite_or_stop, largest_curvature

Rule = Literal["gradient", "residual"]

FLOOR = 1e-8  # of the largest |H_ii|: smaller curvature outside the hub is not trusted


@dataclass(frozen=True)
class Moving:
    """B_low(k) with a hub of k variables that is chosen anew in every iteration; spelled "moving:k=10".

    The hub consists of the k variables with the largest scores. The score of a variable is the larger of its new score
    and `memory` times its last one. With the rule "gradient", the new score is |g_i| / sqrt|H_ii|: the step that a
    diagonal precision would take, in units of its standard deviation. With the rule "residual" it is
    |(H s)_i - H_ii s_i| / sqrt|H_ii| for the last step s: what a diagonal precision missed there, at the cost of one
    more product. With "residual", k = 5 is enough where "gradient" needs 10 (tried on Rosenbrock's function in 200
    dimensions).

    Parameters
    ----------
    k : int
        Number of variables in the hub, at least 1. If it exceeds their total number, all are in the hub.
    memory : float
        Factor on old scores, at least 0 and below 1.
    rule : {"gradient", "residual"}
        How variables are scored.

    Examples
    --------
    >>> from scipy.optimize import rosen, rosen_der, rosen_hess_prod
    >>> import esgroup
    >>> more = {"method": "newton", "jac": rosen_der, "hessp": rosen_hess_prod}
    >>> more |= {"structure": "moving:k=5", "target": 1e-6}
    >>> res = esgroup.minimize(rosen, [0.0] * 20, **more)
    >>> res.success
    True
    """

    k: int = 10
    memory: float = 0.5
    rule: Rule = "gradient"

    def __post_init__(self) -> None:
        checks.store_whole_number(self, "k", least=1)
        checks.not_negative("memory", self.memory, below=1)
        checks.one_of("rule", self.rule, *get_args(Rule))


def parse_moving(text: str) -> Moving | None:
    """Return the moving block for "auto" or a text such as "moving:k=5,residual"; None if it names something else."""
    if text == "auto":
        return Moving()
    name, _, rest = text.strip().partition(":")
    if name.strip() != "moving":
        return None
    moving = Moving()
    for word in filter(None, (word.strip() for word in rest.split(","))):
        if size := re.fullmatch(r"k\s*=\s*(-?\d+)", word):
            moving = replace(moving, k=int(size[1]))
        elif word in get_args(Rule):
            moving = replace(moving, rule=word)  # type: ignore[arg-type]
        else:
            raise ValueError(f"{word!r} in structure {text!r} is not recognized: moving takes k=<size> and residual")
    return moving


class Block(NamedTuple):
    """S = B B^T, B = [[A, 0], [C, D]] in the order (hub K, all other coordinates).

    `inverse` is A^-1, (k, k). `coupling` is C^T, (k, dim), and `middle` is D^2, (dim,), both over all coordinates:
    their entries on the hub are meaningless and unused.
    """

    hub: NDArray[np.int64]
    inverse: Array
    coupling: Array
    middle: Array


@dataclass(frozen=True, eq=False)
class MovingPrecision(Precision):
    """The fixed point of the group update of BlockTriangular(k), conjugated by a permutation, reached in one update.

        A A^T = |H_KK| + mu,   C = H_rK A^-T,   D^2 = |H_rr - C C^T| + mu   on the diagonal

    for the damping mu. For mu = 0 and a positive-definite H this is X_KK = I, X_rK = 0, X_jj = 1, hence
    B = B h(beta C (.) kappa(X - I)). An update costs O(k^2 dim), k products with unit vectors and the diagonal.
    """

    moving: Moving
    scores: Array
    block: Block | None = None
    needs_diagonal = True

    def advance(self, data: UpdateData) -> MovingPrecision:
        diagonal = data.diagonal
        assert diagonal is not None  # as needs_diagonal says
        floor = FLOOR * largest_curvature(diagonal, data.gradient)
        missed = data.gradient  # by a diagonal precision: all of it, or with the rule "residual" a part
        if self.moving.rule == "residual" and data.last_step is not None:
            missed = data.products(data.last_step[None])[0] - diagonal * data.last_step
        found = np.abs(missed) / np.sqrt(np.maximum(np.abs(diagonal), floor))
        scores = np.maximum(found, self.moving.memory * self.scores)
        k, dim = self.moving.k, len(scores)
        hub = np.sort(np.argpartition(scores, dim - k)[dim - k :])
        rows = data.products((hub[:, None] == np.arange(dim)).astype(np.float64))  # with unit vectors
        with np.errstate(over="ignore", invalid="ignore"):
            return replace(self, scores=scores, block=_block(hub, rows, diagonal, data.damping, floor))

    def solve(self, vector: Array) -> Array:
        """Return S^-1 v = B^-T B^-1 v."""
        assert self.block is not None  # `advance` comes first
        hub, inverse, coupling, middle = self.block
        local = inverse @ vector[hub]
        solution = (vector - local @ coupling) / middle
        solution[hub] = 0.0
        solution[hub] = inverse.T @ (local - coupling @ solution)
        return solution


def moving_precision(moving: Moving, dim: int) -> MovingPrecision:
    """Return the initial estimate, before the first update."""
    return MovingPrecision(replace(moving, k=min(moving.k, dim)), np.zeros(dim))


def _block(hub: NDArray[np.int64], rows: Array, diagonal: Array, damping: float, floor: float) -> Block:
    """The fixed point, from the rows of H that belong to the hub and from its diagonal."""
    corner = rows[:, hub]
    try:
        e, u = np.linalg.eigh((corner + corner.T) / 2)
    except np.linalg.LinAlgError as error:
        raise Breakdown("singular", f"the block of the precision has no eigenvalues: {error}") from error
    # the corner is exact, and so are its eigenvalues up to rounding; the diagonal outside may be an estimate
    least = np.finfo(np.float64).eps * len(e) * np.abs(e).max(initial=0.0) or floor
    inverse = (u / np.sqrt(np.maximum(np.abs(e), least) + damping)).T  # of A = U sqrt|e|
    coupling = inverse @ rows
    rest = diagonal - np.einsum("ij,ij->j", coupling, coupling)
    middle = np.maximum(np.abs(rest), floor) + damping
    finite_or_stop("the middle of the moving block", middle)
    return Block(hub, inverse, finite_or_stop("the coupling of the moving block", coupling), middle)
