"""A group whose dense directions follow the gradients: k of them, in a frame that turns.

With block triangular matrices the k coordinates with a dense block are always the first ones. Here
the basis is reflected first: Q = I - V V^T with V^T V = 2 I is symmetric and orthogonal, and its first k columns are
any k orthonormal directions. In this basis the matrices are [[F, 0], [0, D]] with F dense and D diagonal. For a fixed Q
they are a group, and every formula of a group holds.

The local vectors are those of the block triangular group. The block that couples the k directions with all others,
which that group stores, turns the frame here: if it is zero on average, the frame spans k eigenvectors.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from torch import Tensor, bmm
from torch.linalg import vecdot

from esgroup import checks
from esgroup.groups.block_diagonal import BlockDiagonal
from esgroup.groups.conjugate import Conjugate
from esgroup.groups.diagonal import Diagonal
from esgroup.groups.full import Full
from esgroup.torch.groups import TensorGroup, Tensors, divided_blocks, divided_entries

Parts = tuple[Tensor, Tensor, Tensor]


@dataclass(frozen=True)
class TensorFrame(TensorGroup):
    """Q [[F, 0], [0, D]] Q with F of k x k, packed as F, D and V; a local vector as [F, C^T] with a coupling C, and D.

    An element stands for the root [[F, 0], [0, D]] Q, which has the same Gram matrix: `apply` ends in the reflected
    basis, where `project` reads it.

    Parameters
    ----------
    dim : int
        Number of rows.
    k : int
        Number of dense directions, below dim.
    """

    dim: int
    k: int = 8

    def __post_init__(self) -> None:
        checks.store_whole_number(self, "dim", least=2)
        checks.store_whole_number(self, "k", least=1, most=self.dim - 1)

    @property
    def size(self) -> int:
        return self._core + self.dim * self.k

    @property
    def _core(self) -> int:
        """The number of numbers in F and D."""
        return self.k**2 + self.dim - self.k

    def identity(self, like: Tensor) -> Tensor:
        f = torch.eye(self.k, dtype=like.dtype, device=like.device)
        v = f.new_zeros(self.dim, self.k)
        v.diagonal().fill_(2**0.5)
        return torch.cat([f.flatten(), f.new_ones(self.dim - self.k), v.flatten()])

    def scaled(self, a: Tensor, factor: float) -> Tensor:
        return torch.cat([a[..., : self._core] * factor, a[..., self._core :]], -1)

    def parts(self, a: Tensor) -> Parts:
        """F, D as a row, and V, as views."""
        f, d, v = a.split_with_sizes([self.k**2, self.dim - self.k, self.dim * self.k], -1)
        lead = a.shape[:-1]
        return f.view(*lead, self.k, self.k), d.unsqueeze(-2), v.view(*lead, self.dim, self.k)

    def local_parts(self, m: Tensor) -> Parts:
        """F, D as a row, and C^T of a local vector, as views."""
        wide, d = m.split_with_sizes([self.k * self.dim, self.dim - self.k], -1)
        f, c_t = self._halves(wide.view(*m.shape[:-1], self.k, self.dim))
        return f, d.unsqueeze(-2), c_t

    def _halves(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return x.narrow(-1, 0, self.k), x.narrow(-1, self.k, self.dim - self.k)

    def apply(self, a: Tensor, x: Tensor) -> Tensor:
        f, d, v = self.parts(a)
        y = _reflected(v, x)
        hub, rest = self._halves(y)
        hub.copy_(bmm(hub, f.mT))
        rest.mul_(d)
        return y

    def apply_transposed(self, a: Tensor, x: Tensor) -> Tensor:
        (f, d, v), (hub, rest) = self.parts(a), self._halves(x)
        return _reflected(v, torch.cat([bmm(hub, f), rest * d], -1))

    def gram(self, a: Tensor) -> Parts:
        f, d, v = self.parts(a)
        return f, d.square(), v

    def gram_right(self, gram: Parts, x: Tensor) -> Tensor:
        f, squares, v = gram
        y = _reflected(v, x)
        hub, rest = self._halves(y)
        hub.copy_(bmm(bmm(hub, f.mT), f))
        rest.mul_(squares)
        return _reflected(v, y)

    def project(self, x: Tensor, scale: float = 1.0) -> Tensor:
        hub, rest = self._halves(x)
        wide = bmm(hub.mT * scale, x)
        wide.narrow(-1, 0, self.k).mul_(0.5)
        return torch.cat([wide.flatten(-2), vecdot(rest, rest, dim=-2).mul_(scale / 2)], -1)

    def add_gram(self, m: Tensor, a: Tensor, amounts: Tensor, scale: float = 1.0) -> None:
        (f, d, _), (local_f, local_d, _) = self.parts(a), self.local_parts(m)
        amounts = amounts.unsqueeze(-1)
        local_f.addcmul_(bmm(f, f.mT), amounts, value=scale / 2)
        local_d.addcmul_(d.square(), amounts, value=scale / 2)

    def squared_norm(self, a: Tensor) -> Tensor:
        core = a.narrow(-1, 0, self._core)
        return vecdot(core, core)

    @property
    def kind(self) -> Hashable:
        return type(self), self.k

    @classmethod
    def moved_together(cls, groups: Sequence[Self], a: Tensors, m: Tensors, less: float | Tensor) -> list[Tensor]:
        """h(M)^-1 K of F and D, in frames turned by the couplings.

        The coupling C of whitened rows is F X_hub^T X_rest D, so the power method in the frame's basis has the tangent
        T = D^-1 C F: the new directions are those of [I; T]. Only k x k matrices are decomposed.
        """
        k, layers = groups[0].k, [len(one) for one in a]
        fs, ds, vs = zip(*(group.parts(one) for group, one in zip(groups, a, strict=True)), strict=True)
        local_fs, local_ds, c_ts = zip(*(g.local_parts(one) for g, one in zip(groups, m, strict=True)), strict=True)
        new_ds = divided_entries(ds, local_ds, less)
        new_f = torch.cat(list(divided_blocks(fs, local_fs, less)[0]))
        tangents = [bmm(f.mT, c_t) / d for f, c_t, d in zip(fs, c_ts, ds, strict=True)]  # T^T
        values, vectors = torch.linalg.eigh(torch.cat([bmm(t, t.mT) for t in tangents]))
        scales = (1 + values.clamp_(min=0)).rsqrt().unsqueeze(-2)
        roots = bmm(vectors * scales, vectors.mT).split(layers)  # (I + T^T T)^-1/2
        turned = [  # rows, in the original basis
            _reflected(v, torch.cat([root, bmm(root, tangent)], -1))
            for v, root, tangent in zip(vs, roots, tangents, strict=True)
        ]
        corner, mix, turn = _reflector(torch.cat([rows.narrow(-1, 0, k) for rows in turned]))
        new_f = bmm(new_f, turn)
        new_vs = [bmm(rows.mT, one) for rows, one in zip(turned, mix.split(layers), strict=True)]
        for v, one in zip(new_vs, corner.split(layers), strict=True):
            v.narrow(-2, 0, k).add_(one)
        parts = zip(new_f.split(layers), new_ds, new_vs, strict=True)
        return [torch.cat([f.flatten(-2), d.squeeze(-2), v.flatten(-2)], -1) for f, d, v in parts]

    def group_of(self, a: Tensor) -> Conjugate:
        v = self.parts(a)[2].detach().cpu().double().numpy()
        q = np.eye(self.dim) - v @ v.T
        return Conjugate(BlockDiagonal((Full(self.k), Diagonal(self.dim - self.k))), q)

    def numbers(self, a: Tensor) -> Tensor:
        return a[..., : self._core]


def _reflected(v: Tensor, x: Tensor) -> Tensor:
    """X Q = X - (X V) V^T."""
    return torch.baddbmm(x, bmm(x, v), v.mT, alpha=-1)


def _reflector(tops: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The reflection whose first k columns span orthonormal rows R, (..., k, dim), from the first k columns of R.

    With U = -R^T T for the orthogonal T that makes the first k rows of U positive semidefinite, U_1 >= 0, it has
    V = (U + [I; 0]) (I + U_1)^-1/2, and the first k columns of Q = I - V V^T are -U. Returns W = (I + U_1)^-1/2 and
    X with V = R^T X + [W; 0], and how the basis of the rows turns, which is -T.
    """
    left, singular, right = torch.linalg.svd(tops.mT)
    corner = bmm(left * (1 + singular).rsqrt().unsqueeze(-2), left.mT)
    turn = -bmm(left, right).mT
    return corner, -bmm(turn, corner), turn
