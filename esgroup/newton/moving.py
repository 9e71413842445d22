"""The moving block: a block triangular group whose hub follows the search."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from esgroup import checks
from esgroup.checks import Array
from esgroup.newton.precision import Breakdown, Look, Precision, finite, largest_curvature

Rule = Literal["gradient", "residual"]

FLOOR = 1e-8  # of the largest |H_ii|: the least curvature that is believed outside the hub


@dataclass(frozen=True)
class Moving:
    """B_low(k) with a hub of k coordinates that is chosen anew in every iteration; spelled "moving:k=10".

    A coordinate's score is the largest of `memory` times its last score and, by the rule "gradient",
    |g_i| / sqrt|H_ii|: the step that a diagonal precision would take, in units of its standard deviation; by the rule
    "residual", |(H s)_i - H_ii s_i| / sqrt|H_ii| for the last step s: what a diagonal precision has missed there, for
    one more product. The hub is the k coordinates of the largest scores. With "residual", k = 5 is enough where
    "gradient" needs 10 (tried on Rosenbrock's function in 200 dimensions).
    """

    k: int = 10
    memory: float = 0.5
    rule: Rule = "gradient"

    def __post_init__(self) -> None:
        checks.store_whole_number(self, "k", least=1)
        if not 0 <= checks.real_number("memory", self.memory) < 1:
            raise ValueError(f"memory must be at least 0 and below 1, got {self.memory!r}")
        if self.rule not in get_args(Rule):
            raise ValueError(f"rule must be 'gradient' or 'residual', got {self.rule!r}")


def parse_moving(text: str) -> Moving | None:
    """The moving block that a text spells, such as "moving:k=5,residual"; None if it names something else."""
    name, _, rest = text.strip().partition(":")
    if name.strip() != "moving":
        return None
    found = Moving()
    for word in filter(None, (word.strip() for word in rest.split(","))):
        if size := re.fullmatch(r"k\s*=\s*(-?\d+)", word):
            found = replace(found, k=int(size[1]))
        elif word in get_args(Rule):
            found = replace(found, rule=word)  # type: ignore[arg-type]
        else:
            raise ValueError(f"{word!r} in structure {text!r} is not understood: moving takes k=<size> and residual")
    return found


class Block(NamedTuple):
    """S = B B^T, B = [[A, 0], [C, D]] in the order (hub K, all others).

    `inverse` is A^-1, (k, k); `coupling` is C^T, (k, dim), and `middle` is D^2, (dim,), over all coordinates: what they
    have on the hub has no meaning and no use.
    """

    hub: NDArray[np.int64]
    inverse: Array
    coupling: Array
    middle: Array


@dataclass(frozen=True, eq=False)
class MovingPrecision(Precision):
    """Where the group update of BlockTriangular(k), conjugated by a permutation, ends: its fixed point, at once.

        A A^T = |H_KK| + mu,   C = H_rK A^-T,   D^2 = |H_rr - C C^T| + mu   on the diagonal

    for the damping mu. For mu = 0 and a positive-definite H this is X_KK = I, X_rK = 0, X_jj = 1, hence
    B = B h(beta C (.) kappa(X - I)). O(k^2 dim) beside k products with unit vectors and the diagonal.
    """

    moving: Moving
    scores: Array
    block: Block | None = None
    needs_diagonal = True

    def advance(self, look: Look) -> MovingPrecision:
        diagonal = look.diagonal
        assert diagonal is not None  # as needs_diagonal says
        floor = FLOOR * largest_curvature(diagonal, look.gradient)
        new = np.abs(self._missed(look, diagonal)) / np.sqrt(np.maximum(np.abs(diagonal), floor))
        scores = np.maximum(new, self.moving.memory * self.scores)
        hub = _largest(scores, self.moving.k)
        rows = look.products(_units(hub, len(scores)))
        with np.errstate(over="ignore", invalid="ignore"):
            return replace(self, scores=scores, block=_block(hub, rows, diagonal, look.damping, floor))

    def _missed(self, look: Look, diagonal: Array) -> Array:
        if self.moving.rule == "gradient" or look.last_step is None:
            return look.gradient
        missed: Array = look.products(look.last_step[None])[0] - diagonal * look.last_step
        return missed

    def solve(self, vector: Array) -> Array:
        assert self.block is not None  # it is asked after `advance` only
        return _solve(self.block, vector)


def moving_precision(moving: Moving, dim: int) -> MovingPrecision:
    """Before the first look: nothing is known."""
    return MovingPrecision(replace(moving, k=min(moving.k, dim)), np.zeros(dim))


def _largest(scores: Array, k: int) -> NDArray[np.int64]:
    return np.sort(np.argpartition(scores, len(scores) - k)[len(scores) - k :])


def _units(hub: NDArray[np.int64], dim: int) -> Array:
    units = np.zeros((len(hub), dim))
    units[np.arange(len(hub)), hub] = 1.0
    return units


def _block(hub: NDArray[np.int64], rows: Array, diagonal: Array, damping: float, floor: float) -> Block:
    """The fixed point from H's rows of the hub and its diagonal."""
    corner = rows[:, hub]
    try:
        e, u = np.linalg.eigh((corner + corner.T) / 2)
    except np.linalg.LinAlgError as error:
        raise Breakdown("singular", f"the block of the precision has no eigenvalues: {error}") from error
    # the corner is exact, and so are its eigenvalues to rounding; the diagonal outside may be an estimate
    least = np.finfo(np.float64).eps * len(e) * np.abs(e).max(initial=0.0) or floor
    inverse = (u / np.sqrt(np.maximum(np.abs(e), least) + damping)).T  # of A = U sqrt|e|
    coupling = inverse @ rows
    rest = diagonal - np.einsum("ij,ij->j", coupling, coupling)
    middle = np.maximum(np.abs(rest), floor) + damping
    return Block(hub, inverse, finite("the coupling of the moving block", coupling), middle)


def _solve(block: Block, vector: Array) -> Array:
    """S^-1 v = B^-T B^-1 v."""
    hub, inverse, coupling, middle = block
    local = inverse @ vector[hub]
    solution = (vector - local @ coupling) / middle
    solution[hub] = 0.0
    solution[hub] = inverse.T @ (local - coupling @ solution)
    return solution
