"""Every law on every group."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import expm

from esgroup.checks import Array
from esgroup.groups import circulant, toeplitz
from tests.groups.cases import CASES, STRANGERS
from tests.groups.laws import LAWS, GroupLaws, close
from tests.groups.strangers import Scalar

EVERY = CASES | {"stranger": STRANGERS}


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("law", LAWS)
@given(data=st.data(), seed=st.integers(0, 2**32 - 1))
def test_law(law: str, name: str, data: st.DataObject, seed: int) -> None:
    group = data.draw(EVERY[name])
    getattr(GroupLaws(), law)(group, np.random.default_rng(seed))


@pytest.mark.parametrize("name", ["toeplitz_triangular", "circulant"])
@pytest.mark.parametrize("law", LAWS)
@given(data=st.data(), seed=st.integers(0, 2**32 - 1))
def test_law_by_the_fft(law: str, name: str, data: st.DataObject, seed: int) -> None:
    """At sizes where these groups would compute by loops or dense products."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(toeplitz, "DIRECT_DIM", 0)
        patch.setattr(toeplitz, "LEAF_DIM", 1)
        patch.setattr(circulant, "DIRECT_DIM", 0)
        test_law.hypothesis.inner_test(law, name, data, seed)


@dataclass(frozen=True)
class Thousandths(Scalar):
    """A = 1000 a I: packed numbers much smaller than the entries."""

    def _identity(self) -> Array:
        return np.full(1, 1e-3)

    def _product(self, a: Array, b: Array) -> Array:
        return 1000 * a * b

    def _apply(self, a: Array, x: Array) -> Array:
        return 1000 * a * x


def test_the_exponential_does_not_depend_on_the_units_of_packed_numbers() -> None:
    group, m = Thousandths(2), np.full(1, 0.007)
    close(group.dense(group.exp(m)), expm(group.dense_local(m)))
