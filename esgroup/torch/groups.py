"""The groups of structured matrices on tensors: what one step of the optimizer needs from them.

An element is packed as in `esgroup.groups`, in the last dimension of a tensor; dimensions before it are layers of one
shape. Points are rows. The optimizer keeps K = A^-1 of a square root A of the precision: with it a step of the mean
costs two products, and A <- A h(M) is K <- h(M)^-1 K, which needs no inverse larger than the dense blocks of the group.

Layers are small, and what a step costs is mostly the number of operations: elements of several shapes are moved
together, and h(M) is written as (N^2 + I) / 2 with N = M + I.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor, bmm
from torch.linalg import vecdot

from esgroup.groups.base import Group
from esgroup.groups.bordered import BlockTriangular, Bordered, Heisenberg
from esgroup.groups.diagonal import Diagonal
from esgroup.groups.full import Full
from esgroup.groups.spelling import described
from esgroup.groups.toeplitz import ToeplitzTriangular
from esgroup.groups.triangular import Triangular

Tensors = Sequence[Tensor]
#: Dense matrices up to this size are inverted at once, larger ones by halves.
LEAF = 144


class TensorGroup(ABC):
    """The arithmetic of one group on tensors. Everything is a pure function of packed elements.

    Attributes
    ----------
    group : Group
        The same group on NumPy arrays, which says how elements are packed. Where each element has a group of its own,
        there is none, and `size`, `identity` and `group_of` are replaced.
    """

    group: Group

    @property
    def size(self) -> int:
        """Length of a packed element."""
        return self.group.size

    def identity(self, like: Tensor) -> Tensor:
        """The packed identity, with the type and device of a tensor."""
        return torch.as_tensor(self.group.identity(), dtype=like.dtype, device=like.device)

    def scaled(self, a: Tensor, factor: float) -> Tensor:
        """The element factor A."""
        return a * factor

    def group_of(self, a: Tensor) -> Group:
        """The group of an element, on NumPy arrays."""
        return self.group

    def numbers(self, a: Tensor) -> Tensor:
        """An element as that group packs it."""
        return a

    @abstractmethod
    def apply(self, a: Tensor, x: Tensor) -> Tensor:
        """Rows A x_i, which are X A^T; x has the shape (..., n, dim)."""

    @abstractmethod
    def apply_transposed(self, a: Tensor, x: Tensor) -> Tensor:
        """Rows A^T x_i, which are X A."""

    @abstractmethod
    def gram(self, a: Tensor) -> Any:
        """What `gram_right` and `gram_left` need of an element, made once after each of its moves."""

    @abstractmethod
    def gram_right(self, gram: Any, x: Tensor) -> Tensor:
        """X A^T A, (layers, n, dim)."""

    def gram_left(self, gram: Any, x: Tensor) -> Tensor:
        """A^T A X, (layers, dim, n)."""
        return self.gram_right(gram, x.mT).mT

    @abstractmethod
    def project(self, x: Tensor, scale: float = 1.0) -> Tensor:
        """scale C (.) kappa(X^T X), the local vector of the sum of x_i x_i^T over the rows of (..., n, dim)."""

    @abstractmethod
    def add_gram(self, m: Tensor, a: Tensor, amounts: Tensor, scale: float = 1.0) -> None:
        """M += scale amounts C (.) kappa(A A^T), in place, with one amount for each layer, (..., 1)."""

    def squared_norm(self, a: Tensor) -> Tensor:
        """|A|_F^2 of an element, one for each layer."""
        return vecdot(a, a)

    @property
    def kind(self) -> Hashable:
        """Elements of groups of one kind are moved together."""
        return type(self)

    @classmethod
    @abstractmethod
    def moved_together(cls, groups: Sequence[Self], a: Tensors, m: Tensors, less: float | Tensor) -> list[Tensor]:
        """h(M - less I)^-1 A of every element, with h(M) = I + M + M^2 / 2."""


def flat(parts: Tensors) -> Tensor:
    """All numbers of several tensors in a row, a copy."""
    return torch.cat([part.reshape(-1) for part in parts])


def like(numbers: Tensor, parts: Tensors) -> list[Tensor]:
    """Undoes `flat`."""
    split = numbers.split([part.numel() for part in parts])
    return [new.view(part.shape) for new, part in zip(split, parts, strict=True)]


def divided_entries(a: Tensors, m: Tensors, less: float | Tensor) -> list[Tensor]:
    """a / h(m - less) of numbers, in tensors of any shapes."""
    n = flat(m).add_(1 - less)
    return like(flat(a).mul_(2).div_(n.square_().add_(1)), a)


def divided_blocks(a: Tensors, m: Tensors, less: float | Tensor) -> tuple[Tensors, Tensors, Tensors]:
    """h(M - less I)^-1 A of k x k blocks, N = M + (1 - less) I, and (N^2 + I)^-1, which is half of h^-1.

    All of them are computed at once, from tensors (layers, k, k).
    """
    layers = [len(block) for block in a]
    n = torch.cat(list(m))
    n.diagonal(dim1=-2, dim2=-1).add_(1 - less)
    twice = bmm(n, n)
    twice.diagonal(dim1=-2, dim2=-1).add_(1)
    inverse = torch.linalg.inv_ex(twice)[0]  # no check, which would wait for the device: M is symmetric
    new = bmm(inverse, torch.cat(list(a))).mul_(2)
    return new.split(layers), n.split(layers), inverse.split(layers)


# ---- diagonal -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TensorDiagonal(TensorGroup):
    """Diagonal matrices."""

    group: Diagonal

    def apply(self, a: Tensor, x: Tensor) -> Tensor:
        return x * a.unsqueeze(-2)

    apply_transposed = apply

    def gram(self, a: Tensor) -> tuple[Tensor, Tensor]:
        squares = a.square()
        return squares.unsqueeze(-2), squares.unsqueeze(-1)

    def gram_right(self, gram: tuple[Tensor, Tensor], x: Tensor) -> Tensor:
        return x * gram[0]

    def gram_left(self, gram: tuple[Tensor, Tensor], x: Tensor) -> Tensor:
        return x * gram[1]

    def project(self, x: Tensor, scale: float = 1.0) -> Tensor:
        return vecdot(x, x, dim=-2).mul_(scale / 2)

    def add_gram(self, m: Tensor, a: Tensor, amounts: Tensor, scale: float = 1.0) -> None:
        m.addcmul_(a.square(), amounts, value=scale / 2)

    @classmethod
    def moved_together(cls, groups: Sequence[Self], a: Tensors, m: Tensors, less: float | Tensor) -> list[Tensor]:
        return divided_entries(a, m, less)


# ---- block triangular and Heisenberg --------------------------------------------------------------------------------


class TensorBlocks(NamedTuple):
    """Views of [[F, 0, 0], [P, D, 0], [X, Q, L]]; P is stored transposed, D as a row; None has no numbers."""

    f: Any = None
    p_t: Any = None
    d: Any = None
    q: Any = None
    x: Any = None
    last: Any = None


Parted = tuple[Tensor | None, Tensor, Tensor | None]  # the coordinates of F, D and L; None where there are none


@dataclass(frozen=True)
class TensorBordered(TensorGroup):
    """[[F, 0, 0], [P, D, 0], [X, Q, L]] with diagonal D, F of k x k, L of q x q, up to the order of the blocks.

    Block triangular groups have k = 0 or q = 0; what would be an operation on nothing is left out.
    """

    group: Bordered

    @cached_property
    def _shapes(self) -> dict[str, tuple[int, int]]:
        """The shapes of the blocks that there are, in the order in which they are packed."""
        k, mid, q = self.group.layout[:3]
        shapes = {"f": (k, k), "p_t": (k, mid), "d": (1, mid), "q": (q, mid), "x": (q, k), "last": (q, q)}
        there = {"f": k, "p_t": k, "d": True, "q": q, "x": k and q, "last": q}
        return {name: shape for name, shape in shapes.items() if there[name]}

    @cached_property
    def _order(self) -> list[int]:
        """Which of the blocks F, D, L come first, second and third among the coordinates."""
        sizes, starts = self.group.layout[:3], self.group.layout[3:]
        return sorted((i for i in range(3) if sizes[i]), key=lambda i: starts[i])

    def gram(self, a: Tensor) -> TensorBlocks:
        return self.parts(a)  # A^T A would have as many numbers again

    def parts(self, a: Tensor) -> TensorBlocks:
        """The blocks of a packed element, as views."""
        lead, shapes = a.shape[:-1], self._shapes
        split = a.split_with_sizes([rows * columns for rows, columns in shapes.values()], -1)
        return TensorBlocks(**{name: part.view(*lead, *shapes[name]) for name, part in zip(shapes, split, strict=True)})

    def _pack(self, *blocks: Tensor | None) -> Tensor:
        return torch.cat([block.flatten(-2) for block in blocks if block is not None], -1)

    def _parted(self, x: Tensor, dim: int = -1) -> list[Tensor]:
        """The coordinates of F, D and L, as views; empty where there are none."""
        k, mid, q, first, middle, last = self.group.layout
        return [x.narrow(dim, first, k), x.narrow(dim, middle, mid), x.narrow(dim, last if q else 0, q)]

    def _joined(self, f: Tensor | None, d: Tensor | None, last: Tensor | None, dim: int = -1) -> Tensor:
        parts = (f, d, last)
        return torch.cat([parts[i] for i in self._order], dim)  # type: ignore[misc]

    def apply(self, a: Tensor, x: Tensor) -> Tensor:
        return self._joined(*self._applied(self.parts(a), *self._parted(x)))

    def _applied(self, b: TensorBlocks, f: Tensor, d: Tensor, last: Tensor) -> Parted:
        """The three parts of X A^T."""
        k, _, q = self.group.layout[:3]
        first = bmm(f, b.f.mT) if k else None
        middle = torch.baddbmm(d * b.d, f, b.p_t) if k else d * b.d
        end = bmm(d, b.q.mT) + bmm(last, b.last.mT) if q else None
        if k and end is not None:
            end = end + bmm(f, b.x.mT)
        return first, middle, end

    def apply_transposed(self, a: Tensor, x: Tensor) -> Tensor:
        return self._joined(*self._applied_transposed(self.parts(a), *self._parted(x)))

    def _applied_transposed(self, b: TensorBlocks, f: Tensor | None, d: Tensor, last: Tensor | None) -> Parted:
        """The three parts of X A."""
        k, _, q = self.group.layout[:3]
        first = torch.baddbmm(bmm(f, b.f), d, b.p_t.mT) if k and f is not None else None
        if not q or last is None:
            return first, d * b.d, None
        return first if first is None else first + bmm(last, b.x), d * b.d + bmm(last, b.q), bmm(last, b.last)

    def gram_right(self, gram: TensorBlocks, x: Tensor) -> Tensor:
        return self._joined(*self._applied_transposed(gram, *self._applied(gram, *self._parted(x))))

    def project(self, x: Tensor, scale: float = 1.0) -> Tensor:
        k, _, q = self.group.layout[:3]
        f, d, last = self._parted(x)
        diagonal = vecdot(d, d, dim=-2).unsqueeze(-2).mul_(scale / 2)
        ft, lt = f.mT * scale, last.mT * scale
        first = (bmm(ft, f).mul_(0.5), bmm(ft, d)) if k else (None, None)
        end = (bmm(lt, d), bmm(lt, f) if k else None, bmm(lt, last).mul_(0.5)) if q else (None, None, None)
        return self._pack(*first, diagonal, *end)

    def add_gram(self, m: Tensor, a: Tensor, amounts: Tensor, scale: float = 1.0) -> None:
        m.addcmul_(self._project_gram(a), amounts, value=scale)

    def _project_gram(self, a: Tensor) -> Tensor:
        """C (.) kappa(A A^T)."""
        k, _, q = self.group.layout[:3]
        b = self.parts(a)
        f = p_t = q_block = x = last = None
        diagonal = b.d.square()
        if k:
            f, p_t = bmm(b.f, b.f.mT).mul_(0.5), bmm(b.f, b.p_t)
            diagonal += vecdot(b.p_t, b.p_t, dim=-2).unsqueeze(-2)
        if q:
            last, q_block = torch.baddbmm(bmm(b.q, b.q.mT), b.last, b.last.mT), b.q * b.d
            if k:
                last, q_block, x = last + bmm(b.x, b.x.mT), q_block + bmm(b.x, b.p_t), bmm(b.x, b.f.mT)
            last = last / 2
        return self._pack(f, p_t, diagonal.mul_(0.5), q_block, x, last)

    @property
    def kind(self) -> Hashable:
        k, _, q = self.group.layout[:3]
        return type(self), k, q

    @classmethod
    def moved_together(cls, groups: Sequence[Self], a: Tensors, m: Tensors, less: float | Tensor) -> list[Tensor]:
        k, _, q = groups[0].group.layout[:3]
        own = [group.parts(one) for group, one in zip(groups, a, strict=True)]
        local = [group.parts(one) for group, one in zip(groups, m, strict=True)]
        own_d, n = [one.d for one in own], flat([one.d for one in local]).add_(1 - less)
        twice = n.square().add_(1)
        new_d = like(flat(own_d).mul_(2).div_(twice), own_d)
        middles = list(zip(new_d, like(n, own_d), like(twice, own_d), strict=True))
        none = [None] * len(own)
        firsts = zip(*divided_blocks([o.f for o in own], [o.f for o in local], less), strict=True) if k else none
        lasts = zip(*divided_blocks([o.last for o in own], [o.last for o in local], less), strict=True) if q else none
        return [
            group._pack(*_divided(*parts))
            for group, *parts in zip(groups, own, local, middles, firsts, lasts, strict=True)
        ]


Divided = tuple[Tensor, Tensor, Tensor]  # the new block, the block of N, and its part of (N^2 + I)^-1 or N^2 + I


def _divided(
    own: TensorBlocks, local: TensorBlocks, middle: Divided, first: Divided | None, last: Divided | None
) -> tuple[Tensor | None, ...]:
    """The blocks of B^-1 A with B = (N^2 + I) / 2, from those on its diagonal."""
    d, n_d, twice = middle
    f = p_t = q2 = q = x = end = None
    if first is not None:
        f, n_f, _ = first
        p2 = torch.baddbmm(local.p_t * n_d, n_f.mT, local.p_t)  # of N^2, transposed
        p_t = torch.baddbmm(own.p_t, f.mT, p2, beta=2, alpha=-1).div_(twice)
    if last is not None:
        end, n_last, inverse = last
        q2 = torch.baddbmm(local.q * n_d, n_last, local.q)
        q = bmm(inverse, torch.addcmul(own.q + own.q, q2, d, value=-1))
    if f is not None and p_t is not None and q2 is not None:
        x2 = bmm(local.x, n_f) + bmm(local.q, local.p_t.mT) + bmm(n_last, local.x)
        x = bmm(inverse, 2 * own.x - bmm(x2, f) - bmm(q2, p_t.mT))
    return f, p_t, d, q, x, end


# ---- dense ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TensorDense(TensorGroup):
    """Dense matrices, packed row by row."""

    group: Full

    def matrix(self, a: Tensor) -> Tensor:
        """The matrix of a packed element."""
        return a.unflatten(-1, (self.group.dim, self.group.dim))

    def pack(self, matrix: Tensor) -> Tensor:
        """The packed form of a matrix of the group."""
        return matrix.flatten(-2)

    def local(self, gram: Tensor) -> Tensor:
        """C (.) kappa(G) of a symmetric matrix, as a matrix."""
        return gram / 2

    def apply(self, a: Tensor, x: Tensor) -> Tensor:
        return bmm(x, self.matrix(a).mT)

    def apply_transposed(self, a: Tensor, x: Tensor) -> Tensor:
        return bmm(x, self.matrix(a))

    def gram(self, a: Tensor) -> Tensor:
        matrix = self.matrix(a)
        return bmm(matrix.mT, matrix)

    def gram_right(self, gram: Tensor, x: Tensor) -> Tensor:
        return bmm(x, gram)

    def gram_left(self, gram: Tensor, x: Tensor) -> Tensor:
        return bmm(gram, x)

    def project(self, x: Tensor, scale: float = 1.0) -> Tensor:
        return self.pack(self.local(bmm(x.mT * scale, x)))

    def add_gram(self, m: Tensor, a: Tensor, amounts: Tensor, scale: float = 1.0) -> None:
        matrix = self.matrix(a)
        m.addcmul_(self.pack(self.local(bmm(matrix, matrix.mT))), amounts, value=scale)

    def squared_norm(self, a: Tensor) -> Tensor:
        return self.matrix(a).square().sum((-1, -2))

    @classmethod
    def moved_together(cls, groups: Sequence[Self], a: Tensors, m: Tensors, less: float | Tensor) -> list[Tensor]:
        return [group._moved(own, local, less) for group, own, local in zip(groups, a, m, strict=True)]

    def _moved(self, a: Tensor, m: Tensor, less: float | Tensor) -> Tensor:
        n = self.matrix(m).clone()
        n.diagonal(dim1=-2, dim2=-1).add_(1 - less)
        twice = bmm(n, n)
        twice.diagonal(dim1=-2, dim2=-1).add_(1)
        return self.pack(self._solved(twice, self.matrix(a)).mul_(2))

    def _solved(self, b: Tensor, a: Tensor) -> Tensor:
        """B^-1 A of matrices, with B = N^2 + I."""
        return bmm(inverse_by_blocks(b), a)


def inverse_by_blocks(matrix: Tensor) -> Tensor:
    """The inverse of positive definite matrices of small condition, such as h(M) of a symmetric M, by products mostly.

    Halves are inverted in turn, [[P, Q], [Q^T, R]] with the complement R - Q^T P^-1 Q. No pivots are needed, and
    products are several times faster than the solution of triangular systems of this size.
    """
    size = matrix.shape[-1]
    if size <= LEAF:
        return torch.cholesky_inverse(torch.linalg.cholesky_ex(matrix)[0])
    half = size // 2
    p, q, r = matrix[..., :half, :half], matrix[..., :half, half:], matrix[..., half:, half:]
    p_inverse = inverse_by_blocks(p)
    gain = bmm(p_inverse, q)
    rest = inverse_by_blocks(r - bmm(q.mT, gain))
    corner = bmm(gain, rest)
    top = torch.cat([p_inverse + bmm(corner, gain.mT), -corner], -1)
    return torch.cat([top, torch.cat([-corner.mT, rest], -1)], -2)


@dataclass(frozen=True)
class TensorTriangular(TensorDense):
    """Triangular matrices; an upper one is packed as the lower one that it becomes in reversed coordinates."""

    group: Triangular  # type: ignore[assignment]

    def _rows_and_columns(self, like: Tensor) -> Tensor:
        found = torch.tril_indices(self.group.dim, self.group.dim, device=like.device)
        return found if self.group.lower else self.group.dim - 1 - found

    def matrix(self, a: Tensor) -> Tensor:
        rows, columns = self._rows_and_columns(a)
        full = a.new_zeros(*a.shape[:-1], self.group.dim, self.group.dim)
        full[..., rows, columns] = a
        return full

    def pack(self, matrix: Tensor) -> Tensor:
        rows, columns = self._rows_and_columns(matrix)
        return matrix[..., rows, columns]

    def local(self, gram: Tensor) -> Tensor:
        half = gram.diagonal(dim1=-2, dim2=-1).diag_embed() / 2
        return (gram.tril() if self.group.lower else gram.triu()) - half

    def _solved(self, b: Tensor, a: Tensor) -> Tensor:
        return torch.linalg.solve_triangular(b, a, upper=not self.group.lower)


# ---- triangular Toeplitz --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TensorToeplitz(TensorDense):
    """Triangular (block) Toeplitz matrices, packed as the blocks T_0, T_1, ...; products are those of dense matrices.

    The layers of a network are small enough for this: what is saved is the storage.
    """

    group: ToeplitzTriangular  # type: ignore[assignment]

    def _places(self, like: Tensor) -> tuple[Tensor, Tensor]:
        """For every entry of the matrix the number in the packed vector that it has, and whether it has one."""
        dim, block = self.group.dim, self.group.block
        at = torch.arange(dim, device=like.device)
        row, column = at[:, None], at[None, :]
        which = torch.div(row, block, rounding_mode="floor") - torch.div(column, block, rounding_mode="floor")
        which = which if self.group.lower else -which
        inside = which >= 0
        return torch.where(inside, (which * block + row % block) * block + column % block, 0), inside

    def matrix(self, a: Tensor) -> Tensor:
        index, inside = self._places(a)
        return a[..., index.flatten()].unflatten(-1, index.shape) * inside

    def pack(self, matrix: Tensor) -> Tensor:
        block = self.group.block
        if self.group.lower:
            return matrix[..., :, :block].flatten(-2)
        return matrix[..., :block, :].unflatten(-1, (self.group.count, block)).transpose(-3, -2).flatten(-3)

    def local(self, gram: Tensor) -> Tensor:
        """T_j is the mean over the j-th block diagonal, half of it for j = 0."""
        index, inside = self._places(gram)
        summed = gram.new_zeros(*gram.shape[:-2], self.group.size)
        summed = summed.index_add(-1, index.flatten(), torch.where(inside, gram, 0).flatten(-2))
        members = torch.arange(self.group.count, 0, -1, dtype=gram.dtype, device=gram.device)
        members[0] *= 2
        return self.matrix(summed / members.repeat_interleave(self.group.block**2))

    def _solved(self, b: Tensor, a: Tensor) -> Tensor:
        return torch.linalg.solve(b, a)


# ---- by group -------------------------------------------------------------------------------------------------------

_KINDS: dict[type[Group], type[TensorGroup]] = {
    Diagonal: TensorDiagonal,
    BlockTriangular: TensorBordered,
    Heisenberg: TensorBordered,
    Full: TensorDense,
    Triangular: TensorTriangular,
    ToeplitzTriangular: TensorToeplitz,
}


def tensor_group(name: str, group: Group) -> TensorGroup:
    """The arithmetic of a group on tensors; ValueError if it has none, with the name of the argument."""
    kind = _KINDS.get(type(group))
    if kind is None:
        known = ", ".join(cls.__name__ for cls in _KINDS)
        raise ValueError(f"{name} must be one of the groups {known}, got {described(group)}")
    return kind(group)  # type: ignore[call-arg]
