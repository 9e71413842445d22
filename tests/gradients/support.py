"""Groups of every kind, and states of Gaussians, for the tests of estimators."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from esgroup.distributions import Gaussian, State
from esgroup.groups import (
    BlockDiagonal,
    BlockTriangular,
    Circulant,
    Conjugate,
    Diagonal,
    Full,
    Group,
    Heisenberg,
    Kronecker,
    Sparse,
    ToeplitzTriangular,
    Triangular,
)
from tests.groups.cases import CASES
from tests.groups.elements import element, frozen

FORMS = ("covariance", "precision")

#: One group of every kind in tests/groups/cases.py, for tests that need many samples.
ONE_OF_EACH = {
    "diagonal": Diagonal(4),
    "full": Full(4),
    "triangular": Triangular(4),
    "block_triangular": BlockTriangular(5, 2, False),
    "heisenberg": Heisenberg(5, 1, 2),
    "toeplitz_triangular": ToeplitzTriangular(4, 2),
    "circulant": Circulant(4, 1),
    "sparse": Sparse.from_edges(4, [(1, 0), (3, 1), (2, 0)], close=True),
    "kronecker": Kronecker(Full(2), Triangular(2, False)),
    "block_diagonal": BlockDiagonal([Full(2), Triangular(3)]),
    "conjugate": Conjugate(Heisenberg(4, 1, 1), [2, 0, 3, 1]),
    "nested": BlockDiagonal([Kronecker(Full(2), Diagonal(2)), Diagonal(1)]),
}


def on_every_group(test: Callable) -> Callable:
    """Run a test (form, group, rng) in both forms on groups of every kind, of random sizes."""

    @pytest.mark.parametrize("form", FORMS)
    @pytest.mark.parametrize("name", CASES)
    @settings(max_examples=settings.default.max_examples // 2)  # there are many such tests
    @given(data=st.data(), seed=st.integers(0, 2**32 - 1))
    def run(form: str, name: str, data: st.DataObject, seed: int) -> None:
        group = data.draw(CASES[name].filter(lambda g: g.dim <= 9))
        test(form, group, np.random.default_rng(seed))

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


def on_one_of_each(test: Callable) -> Callable:
    """Run a test (form, group) in both forms on one group of every kind."""
    of_groups = pytest.mark.parametrize("group", ONE_OF_EACH.values(), ids=repr)
    return pytest.mark.parametrize("form", FORMS)(of_groups(test))


def some_state(family: Gaussian, rng: np.random.Generator) -> State:
    return State(frozen(rng.standard_normal(family.dim)), element(family.group, rng))


def inner(group: Group, m: np.ndarray, n: np.ndarray) -> float:
    """The Fisher metric <M + M^T, N + N^T> / 2 of local vectors."""
    dense_m, dense_n = group.dense_local(m), group.dense_local(n)
    return float(np.sum((dense_m + dense_m.T) * (dense_n + dense_n.T)) / 2)
