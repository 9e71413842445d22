"""A group whose dense directions follow the gradients: k of them, in a frame that turns.

With block triangular matrices the k coordinates that have a dense block are the first ones, whichever they are. Here
the basis is reflected first: Q = I - V V^T with V^T V = 2 I is symmetric and orthogonal, and its first k columns are
any k orthonormal directions. In this basis the matrices are [[F, 0], [0, D]] with F dense and D diagonal. For a fixed Q
they are a group, and every formula of a group holds.

The local vectors are those of the block triangular group. Their block that couples the k directions with all others,
which there is stored, turns the frame here: where it is zero on average the frame spans k eigenvectors.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, bmm

from esgroup import checks
from esgroup.groups.block_diagonal import BlockDiagonal
from esgroup.groups.conjugate import Conjugate
from esgroup.groups.diagonal import Diagonal
from esgroup.groups.full import Full
from esgroup.torch.groups import TensorGroup

Parts = tuple[Tensor, Tensor, Tensor]


@dataclass(frozen=True)
class TensorFrame(TensorGroup):
    """Q [[F, 0], [0, D]] Q with F of k x k, packed as F, D and V; a local vector as F, D and the coupling C^T.

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

    def _split(self, a: Tensor) -> list[Tensor]:
        """F, D as a row, and the rest as it is packed."""
        f, d, rest = a.split_with_sizes([self.k**2, self.dim - self.k, a.shape[-1] - self._core], -1)
        return [f.view(*a.shape[:-1], self.k, self.k), d.unsqueeze(-2), rest]

    def parts(self, a: Tensor) -> Parts:
        """F, D as a row, and V, as views."""
        f, d, v = self._split(a)
        return f, d, v.view(*a.shape[:-1], self.dim, self.k)

    def _halves(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return x.narrow(-1, 0, self.k), x.narrow(-1, self.k, self.dim - self.k)

    def apply(self, a: Tensor, x: Tensor) -> Tensor:
        f, d, v = self.parts(a)
        hub, rest = self._halves(_reflected(v, x))
        return torch.cat([bmm(hub, f.mT), rest * d], -1)

    def apply_transposed(self, a: Tensor, x: Tensor) -> Tensor:
        (f, d, v), (hub, rest) = self.parts(a), self._halves(x)
        return _reflected(v, torch.cat([bmm(hub, f), rest * d], -1))

    def gram(self, a: Tensor) -> Parts:
        f, d, v = self.parts(a)
        return f, d.square(), v

    def gram_right(self, gram: Parts, x: Tensor) -> Tensor:
        f, squares, v = gram
        hub, rest = self._halves(_reflected(v, x))
        return _reflected(v, torch.cat([bmm(bmm(hub, f.mT), f), rest * squares], -1))

    def gram_left(self, gram: Parts, x: Tensor) -> Tensor:
        return self.gram_right(gram, x.mT).mT

    def project(self, x: Tensor) -> Tensor:
        hub, rest = self._halves(x)
        gram = bmm(hub.mT, hub) / 2
        return torch.cat([gram.flatten(-2), rest.square().sum(-2) / 2, (bmm(hub.mT, rest)).flatten(-2)], -1)

    def project_gram(self, a: Tensor) -> Tensor:
        f, d, _ = self._split(a)
        zero = a.new_zeros(*a.shape[:-1], self.k * (self.dim - self.k))
        return torch.cat([(bmm(f, f.mT) / 2).flatten(-2), d.squeeze(-2).square() / 2, zero], -1)

    def squared_norm(self, a: Tensor) -> Tensor:
        return a.narrow(-1, 0, self._core).square().sum(-1)

    def subtract_identity(self, m: Tensor, amount: float | Tensor) -> None:
        f, d, _ = self._split(m)
        f.diagonal(dim1=-2, dim2=-1).sub_(amount)
        d.sub_(amount)

    def moved(self, a: Tensor, m: Tensor) -> Tensor:
        """h(M)^-1 K of F and D, in a frame turned by the coupling.

        The coupling C of whitened rows is F X_hub^T X_rest D, so the power method in the frame's basis has the tangent
        T = D^-1 C F: the new directions are those of [I; T]. Only k x k matrices are decomposed.
        """
        (f, d, v), (local_f, local_d, c_t) = self.parts(a), self._split(m)
        new_d = d / torch.addcmul(1 + local_d, local_d, local_d, value=0.5)
        h = torch.baddbmm(local_f, local_f, local_f, alpha=0.5)
        h.diagonal(dim1=-2, dim2=-1).add_(1)
        tangent = bmm(f.mT, c_t.view(*a.shape[:-1], self.k, self.dim - self.k)) / d  # T^T
        values, vectors = torch.linalg.eigh(bmm(tangent, tangent.mT))
        scales = (1 + values.clamp_(min=0)).rsqrt().unsqueeze(-2)
        root = bmm(vectors * scales, vectors.mT)  # (I + T^T T)^-1/2
        turned = _reflected(v, torch.cat([root, bmm(root, tangent)], -1))  # rows, in the original basis
        new_v, turn = _reflector(turned)
        new_f = bmm(torch.linalg.solve(h, f), turn)
        return torch.cat([new_f.flatten(-2), new_d.squeeze(-2), new_v.flatten(-2)], -1)

    def group_of(self, a: Tensor) -> Conjugate:
        v = self.parts(a)[2].detach().cpu().double().numpy()
        q = -(v @ v.T)
        q.flat[:: self.dim + 1] += 1
        return Conjugate(BlockDiagonal((Full(self.k), Diagonal(self.dim - self.k))), q)

    def numbers(self, a: Tensor) -> Tensor:
        return a[..., : self._core]


def _reflected(v: Tensor, x: Tensor) -> Tensor:
    """X Q = X - (X V) V^T."""
    return torch.baddbmm(x, bmm(x, v), v.mT, alpha=-1)


def _reflector(rows: Tensor) -> tuple[Tensor, Tensor]:
    """V of the reflection whose first k columns span orthonormal rows, (..., k, dim), and how it turns their basis.

    With U = -rows^T T for the orthogonal T that makes the first k rows of U positive semidefinite, U_1 >= 0, it is
    V = (U + [I; 0]) (I + U_1)^-1/2, and the first k columns of Q = I - V V^T are -U.
    """
    k = rows.shape[-2]
    left, singular, right = torch.linalg.svd(rows[..., :k].mT)
    turn = -(bmm(left, right)).mT
    u = bmm(rows.mT, -turn)
    u.diagonal(dim1=-2, dim2=-1).add_(1)
    v = bmm(u, bmm(left * (1 + singular).rsqrt().unsqueeze(-2), left.mT))
    return v, turn
