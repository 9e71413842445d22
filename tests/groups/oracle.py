"""What the groups are, written out on dense matrices straight from their definitions; trusts nothing in esgroup."""

import numpy as np

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
            q = group.by if group.by.ndim == 2 else np.eye(group.dim)[:, group.by]
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
