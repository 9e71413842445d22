"""Samples: every one N(0, I) by itself, within 5 standard errors; orthogonal, mirrored, reproducible."""

import numpy as np
import pytest
from scipy.stats import chi2, kstest, norm

from esgroup.strategies.sampling import Sampling

ALL = [Sampling(orthogonal, mirrored) for orthogonal in (False, True) for mirrored in (False, True)]


def fill(sampling: Sampling, n: int, dim: int, seed: int) -> np.ndarray:
    z = np.full((n + 1, dim), 7.0)
    sampling.fill(z, n, np.random.default_rng(seed))
    assert (z[n] == 7.0).all()  # the row of the path is not touched
    return z[:n]


def many(sampling: Sampling, n: int, dim: int, count: int = 4000) -> np.ndarray:
    """Return generations from one stream, an array (count, n, dim)."""
    rng, z = np.random.default_rng(5), np.empty((count, n + 1, dim))
    for generation in z:
        sampling.fill(generation, n, rng)
    return z[:, :n]


def within_five_errors(samples: np.ndarray, expected: float) -> None:
    """Check means over the first axis."""
    error = samples.std(axis=0) / np.sqrt(len(samples))
    worst = np.abs(samples.mean(axis=0) - expected) / error
    assert worst.max() < 5, f"{worst.max():.1f} standard errors from {expected}"


@pytest.mark.parametrize("sampling", ALL, ids=str)
@pytest.mark.parametrize(("n", "dim"), [(7, 3), (6, 2), (4, 9)])
def test_every_sample_is_standard_normal_by_itself(sampling: Sampling, n: int, dim: int) -> None:
    z = many(sampling, n, dim)
    within_five_errors(z, 0.0)
    within_five_errors(z**2, 1.0)
    within_five_errors(z**4, 3.0)
    within_five_errors(z[:, :, 0] * z[:, :, 1], 0.0)
    within_five_errors((z[:, :, 0] * z[:, :, 1]) ** 2, 1.0)
    squares = (z**2).sum(axis=2)
    for i in range(n):
        assert kstest(squares[:, i], chi2(dim).cdf).pvalue > 1e-6
        assert kstest(z[:, i] @ np.full(dim, dim**-0.5), norm.cdf).pvalue > 1e-6


@pytest.mark.parametrize(("n", "dim"), [(7, 3), (4, 9), (3, 30), (12, 12)])
def test_orthogonal_samples_are_orthogonal_in_blocks_of_dim(n: int, dim: int) -> None:
    z = fill(Sampling(), n, dim, 1)
    cosines = z @ z.T / np.outer(np.linalg.norm(z, axis=1), np.linalg.norm(z, axis=1))
    block = np.arange(n) // dim
    within = block[:, None] == block
    assert np.abs(cosines - np.eye(n))[within].max() < 1e-12
    assert within.all() or np.abs(cosines[~within]).max() > 1e-3  # blocks are independent of each other


@pytest.mark.parametrize(("n", "dim"), [(7, 3), (4, 9)])
def test_orthogonal_samples_keep_the_lengths_and_the_first_direction_of_independent_ones(n: int, dim: int) -> None:
    z, independent = fill(Sampling(), n, dim, 2), fill(Sampling(orthogonal=False), n, dim, 2)
    np.testing.assert_allclose(np.linalg.norm(z, axis=1), np.linalg.norm(independent, axis=1), rtol=1e-13)
    np.testing.assert_allclose(z[0], independent[0], rtol=1e-13)
    assert (np.vecdot(z, independent) > 0).all()  # turned by less than a right angle


def test_orthogonal_samples_are_uncorrelated_and_blocks_independent() -> None:
    z = many(Sampling(), 5, 3)
    within_five_errors(z[:, 0, :, None] * z[:, 2, None, :], 0.0)  # one block
    dots = np.vecdot(z[:, 0], z[:, 3])  # two blocks
    within_five_errors(dots[:, None] ** 2, 3.0)


def test_few_samples_of_many_coordinates_stay_independent() -> None:
    """Below dim / 10 they are nearly orthogonal anyway."""
    for n, orthogonal in ((5, True), (4, False)):
        z = fill(Sampling(), n, 50, 3)
        independent = fill(Sampling(orthogonal=False), n, 50, 3)
        assert np.array_equal(z, independent) != orthogonal


def test_one_coordinate_has_independent_samples() -> None:
    assert np.array_equal(fill(Sampling(), 6, 1, 4), fill(Sampling(orthogonal=False), 6, 1, 4))


@pytest.mark.parametrize("orthogonal", [False, True])
@pytest.mark.parametrize("n", [1, 2, 7, 8])
def test_mirrored_samples_come_in_pairs(orthogonal: bool, n: int) -> None:
    z, half = fill(Sampling(orthogonal, mirrored=True), n, 3, 6), (n + 1) // 2
    assert np.array_equal(z[half:], -z[: n - half])
    assert np.array_equal(z[:half], fill(Sampling(orthogonal), half, 3, 6))


@pytest.mark.parametrize("sampling", ALL, ids=str)
def test_equal_seeds_give_equal_samples_and_others_do_not(sampling: Sampling) -> None:
    assert np.array_equal(fill(sampling, 6, 4, 8), fill(sampling, 6, 4, 8))
    assert not np.isin(fill(sampling, 6, 4, 9), fill(sampling, 6, 4, 8)).any()
    rng, z = np.random.default_rng(8), np.empty((7, 4))
    sampling.fill(z, 6, rng)
    first = z[:6].copy()
    sampling.fill(z, 6, rng)  # the stream continues
    assert not np.isin(first, z[:6]).any()


def test_a_sample_in_the_span_of_those_before_it_gets_a_direction_of_its_own() -> None:
    """The nearer to it, the more of its length comes from rounding; 1e-6 of it leaves nine digits."""
    from esgroup.kernels.search import orthogonalize

    z = np.array([[1.0, 2.0, 2.0], [2.0, -1.0, 0.5], [3.0, 1.0, 2.5 + 1e-6]])
    lengths = np.linalg.norm(z, axis=1)
    orthogonalize(3, z)
    np.testing.assert_allclose(z @ z.T, np.diag(lengths**2), atol=3e-8)
