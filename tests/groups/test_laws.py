"""Every law on every group."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.groups.cases import CASES
from tests.groups.laws import LAWS, GroupLaws


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("law", LAWS)
@given(data=st.data(), seed=st.integers(0, 2**32 - 1))
def test_law(law: str, name: str, data: st.DataObject, seed: int) -> None:
    group = data.draw(CASES[name])
    getattr(GroupLaws(), law)(group, np.random.default_rng(seed))
