"""Univariate families near the ends of their parameters: nothing overflows, cancels or warns there."""

import math

import numpy as np
import pytest
from scipy import special, stats

import esgroup
from esgroup.distributions.families import Poisson, PoissonPower, Weibull
from esgroup.distributions.univariate import UnivariateState, unconstrained

# ---- Poisson -------------------------------------------------------------------------------------------------------


def series(rate: float) -> float:
    """Of the entropy (Evans and Boersma 1988)."""
    tail = 1 / (12 * rate) + 1 / (24 * rate**2) + 19 / (360 * rate**3)
    return 0.5 * math.log(2 * math.pi * math.e * rate) - tail


@pytest.mark.parametrize("rate", [1e-3, 0.3, 7.0, 50.0, 1e4, 1e6])
def test_the_entropy_of_a_poisson_is_the_sum_of_scipys_probabilities(rate: float) -> None:
    w = np.arange(max(0.0, rate // 1 - 15 * math.sqrt(rate)), rate + 15 * math.sqrt(rate) + 60)
    probabilities = stats.poisson(rate).pmf(w)
    exact = special.entr(probabilities / probabilities.sum()).sum()
    assert Poisson(rate).entropy(Poisson(rate).state()) == pytest.approx(exact, rel=1e-9, abs=0)


@pytest.mark.parametrize("rate", [1e4, 9.99e5, 1e6, 1.001e6, 1e7, 1e8, 1e10, 1e15])
def test_the_entropy_of_a_poisson_with_a_large_rate_is_its_series(rate: float) -> None:
    assert Poisson(rate).entropy(Poisson(rate).state()) == pytest.approx(series(rate), rel=1e-13, abs=0)


@pytest.mark.parametrize("rate", [1e-300, 1e-100, 1e-20])
def test_the_entropy_of_a_poisson_with_a_tiny_rate_is_that_of_one_event(rate: float) -> None:
    exact = rate * (1 - math.log(rate))
    assert Poisson(rate).entropy(Poisson(rate).state()) == pytest.approx(exact, rel=1e-12, abs=0)


# ---- PoissonPower --------------------------------------------------------------------------------------------------

CORNERS = [
    PoissonPower(1e-300, 0.0434), PoissonPower(1e-300, 0.01), PoissonPower(1e-10, 1.3), PoissonPower(0.5, 27.0),
    PoissonPower(3.0, 104.0), PoissonPower(3.5, 119.0), PoissonPower(1e8, 2.9e9), PoissonPower(1e8, 0.01),
    PoissonPower(3.0, 0.01),
]  # fmt: skip
on_corners = pytest.mark.parametrize("family", CORNERS, ids=str)


@on_corners
def test_scores_of_counts_are_white_at_the_ends_of_the_parameters(family: PoissonPower) -> None:
    tau = family.natural(family.state()).tolist()
    table = family._table(tau)
    z, y = family._local(tau, table.counts)
    for values, wanted in ((z, 0.0), (z * z, 1.0), (y, 1.0), (z * y, 0.0)):
        assert table.probabilities @ values == pytest.approx(wanted, abs=0.05)
    assert np.isfinite(family._location(tau)).all()


@on_corners
def test_families_of_counts_at_the_ends_of_the_parameters_lead_back_to_themselves(family: PoissonPower) -> None:
    again = family.at(family.state())
    assert again.rate == pytest.approx(family.rate, rel=1e-12, abs=0)
    assert again.power == pytest.approx(family.power, rel=1e-12, abs=0)


@pytest.mark.parametrize("rate, power", [(1e-100, 0.13), (1e-20, 0.5), (1e-6, 0.05), (1e-10, 1.0)])
def test_tiny_rates_have_the_entropy_of_their_plain_sum(rate: float, power: float) -> None:
    w = np.arange(2000.0)
    logs = power * (w * math.log(rate) - special.gammaln(w + 1))
    logs -= special.logsumexp(logs)
    family = PoissonPower(rate, power)
    assert family.entropy(family.state()) == pytest.approx(-float(np.exp(logs) @ logs), rel=1e-9, abs=0)


@pytest.mark.parametrize("tau", [(5.0, 1e5), (-1e5, 1e3), (1e6, 1e3), (0.01, 1e-3), (5.0, 1e200)])
def test_states_beyond_the_ends_have_finite_moments_and_lead_to_the_nearest_family(tau: tuple[float, float]) -> None:
    family = PoissonPower()
    state = UnivariateState(unconstrained(np.array(tau), family.signs))
    assert np.isfinite([*family.moments(state), family.entropy(state)]).all()
    reached = family.at(state)
    assert reached.rate == pytest.approx(min(max(math.exp(min(tau[0] / tau[1], 90.0)), 1e-300), 1e8), rel=1e-9, abs=0)
    assert reached.power == pytest.approx(min(max(tau[1], 0.01), 30 / math.log1p(1 / reached.rate)), rel=1e-9)


# ---- Weibull -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [0.1, 0.4, 5.0, 19.99, 20.01, 50.0, 300.0])
def test_the_moments_of_a_weibull_are_scipys(shape: float) -> None:
    family = Weibull(1.3, shape)
    gamma = special.gamma(1 + np.array([1.0, 2.0]) / shape)
    mean, std = family.moments(family.state())
    assert mean == pytest.approx(1.3 * gamma[0], rel=1e-12, abs=0)
    assert std == pytest.approx(1.3 * math.sqrt(gamma[1] - gamma[0] ** 2), rel=1e-9, abs=0)


@pytest.mark.parametrize("shape", [1e5, 1e8, 1e12])
def test_a_weibull_of_a_large_shape_is_a_narrow_gumbel(shape: float) -> None:
    """log w = log(E) / k with E exponential: mean -gamma / k, deviation pi / (k sqrt 6), up to 1 / k^2."""
    family = Weibull(1.0, shape)
    mean, std = family.moments(family.state())
    assert mean - 1 == pytest.approx(-np.euler_gamma / shape, rel=2 / shape, abs=1e-15)
    assert std == pytest.approx(math.pi / (shape * math.sqrt(6)), rel=2 / shape + 1e-14, abs=0)


@pytest.mark.parametrize("shape", [0.1, 0.3, 1e4, 1e8, 1e12])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_searches_with_a_weibull_of_an_extreme_shape_keep_finite_numbers(shape: float, sign: float) -> None:
    searcher = esgroup.Searcher(Weibull(1.0, shape), rng=1)
    for _ in range(300):
        points = searcher.ask()
        assert np.isfinite(points).all()
        searcher.tell(points, sign * points[:, 0])
    assert np.isfinite([searcher.mean, searcher.stds]).all()
    assert (searcher.stds > 0).all()
    assert isinstance(searcher.result.distribution, Weibull)


def test_a_weibull_beyond_float64_is_confined_to_finite_scales() -> None:
    family = Weibull(1.0, 0.1)
    for tau in (1e-140, 1e140):
        confined = family._confined(np.array([tau]), 0.1).tolist()
        assert np.isfinite(family._middle(confined)).all()
        assert 1e-281 < family._usual(confined)["scale"] < 1e281
    assert family._usual([1e-140])["scale"] == 1e300
    assert family._moments([1e-140]) == (math.inf, math.inf)
    assert Weibull(1.0, 2.0)._confined(np.array([1e-150]), 0.1).tolist() == [1e-140]
