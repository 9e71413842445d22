"""Random elements of groups, and their local spaces as dense matrices."""

from __future__ import annotations

import numpy as np

from esgroup.groups import Group

Array = np.ndarray


def local_basis(group: Group) -> Array:
    """Matrices M, orthonormal in the Frobenius product, that span the local space: (degrees of freedom, p, p).

    The space is the image of C (.) kappa over the symmetric matrices.
    """
    p, eye = group.dim, np.eye(group.dim)
    pairs = [(i, j) for i in range(p) for j in range(i + 1)]
    symmetric = [np.outer(eye[i], eye[j]) + np.outer(eye[j], eye[i]) for i, j in pairs]
    images = np.array([group.dense_local(group.project_dense(s)).ravel() for s in symmetric])
    _, sizes, rows = np.linalg.svd(images)
    return rows[: int((sizes > 1e-10 * sizes[0]).sum())].reshape(-1, p, p)


def random_local(group: Group, rng: np.random.Generator, size: float = 0.3) -> Array:
    """A packed local vector: C (.) kappa of a symmetric matrix with entries of about that size."""
    matrix = size * rng.standard_normal((group.dim, group.dim))
    return group.project_dense((matrix + matrix.T) / np.sqrt(2))


def generic(group: Group, rng: np.random.Generator) -> Array:
    """A packed element that is no special one: a product of two steps h(M) from the identity."""
    return group.product(group.h(random_local(group, rng)), group.h(random_local(group, rng)))
