"""Equality, hashing and pickling, which all distributions with array fields share."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

from esgroup import Gaussian, MatrixGaussian, Mixture, Wishart
from esgroup.distributions.base import Distribution

GAUSSIAN = Gaussian("triangular", mean=[1.0, 2.0], covariance=[[2.0, 0.5], [0.5, 1.0]], form="precision")
PAIRS = [
    (GAUSSIAN, {"mean": [1.0, 3.0]}),
    (GAUSSIAN, {"covariance": np.eye(2)}),
    (GAUSSIAN, {"covariance": None}),
    (GAUSSIAN, {"structure": "full"}),
    (MatrixGaussian([[1.0, 2.0]], 0.5, exact=False), {"mean": [[1.0, 2.5]]}),
    (MatrixGaussian([[1.0, 2.0]], 0.5, exact=False), {"exact": True}),
    (Wishart(np.eye(2), 7.0), {"mean": 2 * np.eye(2)}),
    (Wishart(np.eye(2), 7.0), {"dof": None}),
    (Mixture((GAUSSIAN, GAUSSIAN), [0.25, 0.75]), {"weights": [0.75, 0.25]}),
    (Mixture((GAUSSIAN, GAUSSIAN), [0.25, 0.75]), {"weights": None}),
    (Mixture((GAUSSIAN, GAUSSIAN), [0.25, 0.75]), {"components": (GAUSSIAN, replace(GAUSSIAN, mean=[0.0, 0.0]))}),
]
IDS = [f"{type(distribution).__name__}-{'-'.join(change)}" for distribution, change in PAIRS]


@pytest.mark.parametrize(("distribution", "change"), PAIRS, ids=IDS)
def test_distributions_are_equal_exactly_if_their_fields_are(distribution: Distribution, change: dict) -> None:
    copy, other = replace(distribution), replace(distribution, **change)
    assert copy == distribution and hash(copy) == hash(distribution)
    assert other != distribution and distribution != other
    assert len({distribution, copy, other}) == 2
    assert distribution != "distribution"


@pytest.mark.parametrize("distribution", list(dict.fromkeys(d for d, _ in PAIRS)), ids=lambda d: type(d).__name__)
def test_a_pickled_distribution_is_equal_and_its_arrays_stay_read_only(distribution: Distribution) -> None:
    copy = pickle.loads(pickle.dumps(distribution))
    assert copy == distribution
    for part in copy._fields():
        assert not isinstance(part, np.ndarray) or not part.flags.writeable


def test_distributions_of_different_classes_differ() -> None:
    assert Wishart(np.eye(2)) != MatrixGaussian(np.eye(2))
    assert Gaussian("full") != Gaussian("diagonal")
