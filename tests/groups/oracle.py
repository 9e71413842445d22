"""What the groups are, written out on dense matrices straight from their definitions; trusts nothing in esgroup."""

import numpy as np
from scipy.linalg import block_diag

from esgroup.groups import (
    BlockDiagonal,
    BlockTriangular,
    Circulant,
    Conjugate,
    Diagonal,
    Full,
    Heisenberg,
    Kronecker,
    Sparse,
    ToeplitzTriangular,
    Triangular,
)
from tests.groups.strangers import Exchangeable, Scalar
from tests.kernels import naive


def matrix(group, a: np.ndarray, *, local: bool = False) -> np.ndarray:
    """The matrix of a packed element or, if `local`, of a packed local vector, from the definition of the packing."""
    d = group.dim
    match group:
        case Diagonal():
            return np.diag(a)
        case Triangular():
            out = np.zeros((d, d))
            out[np.tril_indices(d)] = a
            return out if group.lower else out[::-1, ::-1]
        case BlockTriangular():
            return _bordered(a, d, group.k, 0, group.lower)
        case Heisenberg():
            return _bordered(a, d, group.k1, group.k2, group.lower)
        case Full() | Sparse():
            out = np.zeros((d, d))
            out[pattern(group)] = a  # row by row
            return out
        case ToeplitzTriangular():
            return sum(
                np.kron(np.eye(d // group.block, k=-lag if group.lower else lag), block)
                for lag, block in enumerate(a.reshape(-1, group.block, group.block))
            )
        case Circulant():
            return sum(
                np.kron(np.roll(np.eye(d // group.block), lag, axis=0), block)
                for lag, block in enumerate(a.reshape(-1, group.block, group.block))
            )
        case Scalar():
            return a[0] * np.eye(d)
        case Exchangeable():
            return a[0] * np.eye(d) + a[1] * np.ones((d, d))
        case Kronecker():
            first, second = np.split(a, [group.first.size])
            first, second = matrix(group.first, first, local=local), matrix(group.second, second, local=local)
            if local:
                return np.kron(first, np.eye(len(second))) + np.kron(np.eye(len(first)), second)
            return np.kron(first, second)
        case BlockDiagonal():
            parts = np.split(a, np.cumsum([part.size for part in group.groups])[:-1])
            return block_diag(*(matrix(g, b, local=local) for g, b in zip(group.groups, parts, strict=True)))
        case Conjugate():
            return _rotation(group) @ matrix(group.group, a, local=local) @ _rotation(group).T
    raise TypeError(group)


def _bordered(a: np.ndarray, d: int, k1: int, k2: int, lower: bool) -> np.ndarray:
    """Packed as [[F, 0, 0], [P, D, 0], [X, Q, L]] in the order of coordinates that makes it block lower triangular."""
    mid = d - k1 - k2
    first, last, order = (k1, k2, np.arange(d)) if lower else (k2, k1, np.r_[k1 + mid : d, k1 : k1 + mid, :k1])
    out = np.zeros((d, d))
    out[np.ix_(order, order)] = naive.bordered(a, first, mid, last)
    return out


def _rotation(group) -> np.ndarray:
    return group.by if group.by.ndim == 2 else np.eye(group.dim)[:, group.by]


def pattern(group) -> np.ndarray:
    """The places where a masked group may differ from zero."""
    d = group.dim
    row, col = np.indices((d, d))
    same = row == col
    match group:
        case Diagonal():
            return same
        case Full():
            return np.ones((d, d), bool)
        case Triangular():
            return row >= col if group.lower else row <= col
        case BlockTriangular():
            lower = same | (col < group.k)
            return lower if group.lower else lower.T
        case Heisenberg():
            lower = same | (col < group.k1) | (row >= d - group.k2)
            lower &= ~((row < group.k1) & (col >= group.k1)) & ~((row < d - group.k2) & (col >= d - group.k2))
            if group.lower:
                return lower
            return (same | (row < group.k1) | (col >= d - group.k2)) & _upper_zero(group)
        case Sparse():
            dense = group.pattern
            return np.asarray(dense.toarray() if hasattr(dense, "toarray") else dense, dtype=bool)
    raise TypeError(group)


def _upper_zero(group) -> np.ndarray:
    d = group.dim
    row, col = np.indices((d, d))
    return ~((col < group.k1) & (row >= group.k1)) & ~((col < d - group.k2) & (row >= d - group.k2))


def local_basis(group) -> list[np.ndarray]:
    """A basis of the local space: the group's tangent space, symmetric where it contains symmetric pairs."""
    match group:
        case ToeplitzTriangular():
            return _toeplitz_basis(group)
        case Circulant():
            return _circulant_basis(group)
        case Scalar():
            return [np.eye(group.dim)]
        case Exchangeable():
            return independent([np.eye(group.dim), np.ones((group.dim, group.dim))])
        case Kronecker():
            left = [np.kron(b, np.eye(group.second.dim)) for b in local_basis(group.first)]
            right = [np.kron(np.eye(group.first.dim), b) for b in local_basis(group.second)]
            return independent(left + right)
        case BlockDiagonal():
            basis, start = [], 0
            for part in group.groups:
                for b in local_basis(part):
                    whole = np.zeros((group.dim, group.dim))
                    whole[start : start + part.dim, start : start + part.dim] = b
                    basis.append(whole)
                start += part.dim
            return basis
        case Conjugate():
            q = _rotation(group)
            return [q @ b @ q.T for b in local_basis(group.group)]
    allowed = pattern(group)
    basis = []
    for i, j in np.argwhere(allowed):
        if allowed[j, i] and i < j:
            continue  # M_ij = M_ji is one direction
        b = np.zeros(allowed.shape)
        b[i, j] = 1.0
        if allowed[j, i]:
            b[j, i] = 1.0
        basis.append(b)
    return basis


def natural_gradient(group, g: np.ndarray) -> np.ndarray:
    """The local matrix N = sum_i n_i B_i with F n = g: F_ij = <B_i + B_i^T, B_j + B_j^T>/2, g_i = <B_i, G>."""
    basis = np.array(local_basis(group))
    symmetric = (basis + basis.transpose(0, 2, 1)).reshape(len(basis), -1)
    solution = np.linalg.solve(symmetric @ symmetric.T / 2, basis.reshape(len(basis), -1) @ g.ravel())
    return np.tensordot(solution, basis, 1)


def _toeplitz_basis(group) -> list[np.ndarray]:
    size, count = group.block, group.dim // group.block
    basis = []
    for shift in range(count):
        for i, j in np.ndindex(size, size):
            if shift == 0 and i < j:
                continue
            unit = np.zeros((size, size))
            unit[i, j] = 1.0
            if shift == 0:
                unit[j, i] = 1.0
            places = np.eye(count, k=-shift) if group.lower else np.eye(count, k=shift)
            basis.append(np.kron(places, unit))
    return basis


def _circulant_basis(group) -> list[np.ndarray]:
    size, count = group.block, group.dim // group.block
    basis = []
    for shift in range(count):
        cycle = np.roll(np.eye(count), shift, axis=0)
        for i, j in np.ndindex(size, size):
            unit = np.zeros((size, size))
            unit[i, j] = 1.0
            one = np.kron(cycle, unit)
            basis.append(one + one.T)
    return independent(basis)


def independent(matrices: list[np.ndarray]) -> list[np.ndarray]:
    """A linearly independent subset that spans the same space."""
    kept: list[np.ndarray] = []
    for m in matrices:
        rank = np.linalg.matrix_rank(np.array([k.ravel() for k in [*kept, m]]))
        if rank > len(kept):
            kept.append(m)
    return kept


def has_kronecker(group) -> bool:
    parts = [getattr(group, name) for name in ("group", "first", "second") if hasattr(group, name)]
    return isinstance(group, Kronecker) or any(map(has_kronecker, [*parts, *getattr(group, "groups", ())]))
