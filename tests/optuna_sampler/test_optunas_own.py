"""Optuna's own tests of samplers, where the package has them."""

import warnings
from collections.abc import Callable

import pytest

optuna = pytest.importorskip("optuna")
theirs = pytest.importorskip("optuna.testing.pytest_samplers")

from esgroup.optuna import EsgroupSampler  # noqa: E402

pytestmark = pytest.mark.filterwarnings("default")


class TestEsgroupSampler(
    theirs.BasicSamplerTestCase, theirs.RelativeSamplerTestCase, theirs.SingleOnlySamplerTestCase
):
    @pytest.fixture
    def sampler(self) -> Callable[[], EsgroupSampler]:
        return EsgroupSampler

    def test_all_of_them_are_known(self) -> None:
        """A new kind of tests should be run, too; those of several objectives cannot be."""
        cases = {name for name in vars(theirs) if name.endswith("TestCase") and not name.startswith("_")}
        known = {"BasicSamplerTestCase", "RelativeSamplerTestCase", "SingleOnlySamplerTestCase"}
        if cases != known | {"MultiObjectiveSamplerTestCase"}:
            warnings.warn(f"Optuna has other tests of samplers: {sorted(cases)}", stacklevel=1)
