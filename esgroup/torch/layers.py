"""Layers and their Gaussians: the formulas of one step, on tensors that hold all layers of one shape.

A weight matrix W of shape (d, p) has the mean E, the parameter itself, and the precision N S with
S = (A A^T) (x) (B B^T), A for the p columns and B for the d rows. The state holds K_A = A^-1 and K_B = B^-1. With the
gradient G of the mean loss and the curvature E[g g^T] of one example (Lin et al. 2021, eq. gauss_newton_matgauss, in
which 1/(2 d) {...} is the projection C (.) kappa(...) / d for symmetric matrices):

    Z   <- c1 Z + (1 - c1) (G + alpha E)
    M_A  = (rate / d) C (.) kappa(K_A (E[g^T (B B^T)^-1 g] + (alpha + damping) tr(B B^T)^-1 I) K_A^T - gamma d I)
    M_B  = (rate / p) C (.) kappa(K_B (E[g (A A^T)^-1 g^T] + (alpha + damping) tr(A A^T)^-1 I) K_B^T - gamma p I)
    A   <- A h(M_A),  B <- B h(M_B)
    E   <- E - lr (B B^T)^-1 Z (A A^T)^-1 / (1 - c1^t)

A vector (a bias, the scale of a norm) is a matrix with one column and A = 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from esgroup.torch.groups import TensorGroup

#: The largest part of M that comes from the loss, |M|_F: A A^T and B B^T grow at most by h(1)^2 = 6.25 in a refresh.
LARGEST_LOCAL = 1.0


class Gradients(NamedTuple):
    """Gradients g_i of single examples or batches, (..., n, d, p), with E[g g^T] = weight sum_i g_i g_i^T."""

    g: Tensor
    weight: float


class Factors(NamedTuple):
    """E[g g^T] = weight (sum_i a_i a_i^T) (x) (sum_j b_j b_j^T): a is (..., n, p), of inputs; b is (..., m, d)."""

    a: Tensor
    b: Tensor
    weight: float


Seen = Gradients | Factors  # what a curvature has seen of layers


class Constants(NamedTuple):
    """The numbers of one step; rates may be tensors without dimensions.

    Attributes
    ----------
    curvature_rate : float or Tensor
        Step of the factors.
    l2 : float
        alpha.
    damping : float
        Added to alpha in the curvature only.
    entropy : float
        gamma.
    """

    curvature_rate: float | Tensor
    l2: float
    damping: float
    entropy: float


class Roots(NamedTuple):
    """K_B of the rows and K_A of the columns, packed, (layers, size)."""

    rows: Tensor
    cols: Tensor


@dataclass(frozen=True)
class MatrixLayers:
    """The Gaussians of weight matrices of one shape."""

    rows: TensorGroup
    cols: TensorGroup

    def first_roots(self, precision: float, like: Tensor) -> Roots:
        """S = precision I, shared equally by both sides."""
        size = precision**-0.25
        return Roots(*(side.scaled(side.identity(like), size) for side in (self.rows, self.cols)))

    def grams(self, roots: Roots) -> tuple[Any, Any]:
        """What the products with S^-1 need of both sides."""
        return self.rows.gram(roots.rows), self.cols.gram(roots.cols)

    def colored(self, roots: Roots, white: Tensor) -> Tensor:
        """K_B^T X K_A: a white matrix becomes a sample of N(0, S^-1), a whitened gradient a natural one."""
        return self.rows.apply_transposed(roots.rows, self.cols.apply_transposed(roots.cols, white).mT).mT

    def local_curvature(self, roots: Roots, seen: Seen, ridge: float) -> Roots:
        """The parts of M_B / rate and M_A / rate that come from the loss and from the ridge, packed."""
        of_rows, of_cols, d, p = self._seen(roots, seen)
        if ridge:
            trace_rows, trace_cols = self.rows.squared_norm(roots.rows), self.cols.squared_norm(roots.cols)
            self.rows.add_gram(of_rows, roots.rows, trace_cols.unsqueeze(-1), ridge / p)
            self.cols.add_gram(of_cols, roots.cols, trace_rows.unsqueeze(-1), ridge / d)
        return Roots(of_rows, of_cols)

    def _seen(self, roots: Roots, seen: Seen) -> tuple[Tensor, Tensor, int, int]:
        """The projected curvature of rows, over p, and of columns, over d; d and p."""
        if isinstance(seen, Factors):
            b, a = self.rows.apply(roots.rows, seen.b), self.cols.apply(roots.cols, seen.a)
            d, p = b.shape[-1], a.shape[-1]
            size_b, size_a = (x.square().sum((-1, -2)).unsqueeze(-1) for x in (b, a))
            of_rows, of_cols = self.rows.project(b, seen.weight / p), self.cols.project(a, seen.weight / d)
            return of_rows * size_a, of_cols * size_b, d, p
        n, d, p = seen.g.shape[-3:]
        white = self.cols.apply(roots.cols, seen.g.flatten(-3, -2))  # g_i K_A^T
        if n == 1:
            columns = self.rows.apply(roots.rows, white.mT)
            rows = columns.mT
        else:  # all columns of all of them, times K_B^T
            columns = self.rows.apply(roots.rows, white.unflatten(-2, (n, d)).mT.flatten(-3, -2))
            rows = columns.unflatten(-2, (n, p)).mT.flatten(-3, -2)
        return self.rows.project(columns, seen.weight / p), self.cols.project(rows, seen.weight / d), d, p


class Side(NamedTuple):
    """One side of layers of one shape: its group, its roots and the local vectors by which these move."""

    group: TensorGroup
    roots: Tensor
    local: Tensor


def shorten(sides: list[Side], rate: float | Tensor) -> None:
    """Multiply local vectors by the rate, or by less where they would be longer than LARGEST_LOCAL, in place."""
    local = [m for side in sides for m in side.local.unbind()]
    wide = None if local[0].device.type == "mps" else torch.float64  # squares may overflow in single precision
    sizes = torch.stack(torch._foreach_norm(local, dtype=wide)).to(local[0].dtype) * rate
    torch._foreach_mul_(local, (LARGEST_LOCAL / sizes.clamp_(min=LARGEST_LOCAL) * rate).unbind())


def move(sides: list[Side], less: float | Tensor) -> None:
    """A <- A h(M_A), B <- B h(M_B) with the local vectors, less the part of the entropy, in place."""
    kinds: dict[Any, list[Side]] = {}
    for side in sides:
        kinds.setdefault(side.group.kind, []).append(side)
    for same in kinds.values():
        groups, roots, local = zip(*same, strict=True)
        torch._foreach_copy_(roots, groups[0].moved_together(groups, roots, local, less))


# ---- vectors --------------------------------------------------------------------------------------------------------


def refreshed_vector(root: Tensor, squares: Tensor, constants: Constants) -> Tensor:
    """K of a diagonal Gaussian after one step, from the curvature E[g^2] of its entries."""
    ridge = constants.l2 + constants.damping
    m = (root.square() * (squares + ridge) - constants.entropy) * (constants.curvature_rate / 2)
    m = m.clamp(-LARGEST_LOCAL, LARGEST_LOCAL)
    return root / torch.addcmul(1 + m, m, m, value=0.5)
