"""Univariate exponential families against scipy.stats, quadrature and finite differences."""

import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, special, stats

from esgroup.distributions import Gaussian, gamma_functions
from esgroup.distributions.families import (
    Bernoulli,
    Beta,
    Exponential,
    Gamma,
    Laplace,
    Normal,
    Pareto,
    Poisson,
    PoissonPower,
    Product,
    Wald,
    Weibull,
)
from esgroup.distributions.univariate import Univariate, UnivariateState, natural, slopes, unconstrained
from tests.groups.laws import close


class PowerOracle:
    """(rate^w / w!)^power over its sum, plainly."""

    def __init__(self, rate: float, power: float) -> None:
        self.counts = np.arange(150.0)
        weights = np.exp(power * (self.counts * math.log(rate) - special.gammaln(self.counts + 1)))
        self.table = weights / weights.sum()

    def logpmf(self, w):
        w = np.asarray(w)
        inside = (w >= 0) & (w == np.floor(w))
        return np.where(inside, np.log(self.table[np.where(inside, w, 0).astype(int)]), -np.inf)

    def expect(self, function) -> float:
        return float(np.sum(self.table * function(self.counts)))

    def mean(self) -> float:
        return self.expect(lambda w: w)

    def std(self) -> float:
        return math.sqrt(self.expect(lambda w: (w - self.mean()) ** 2))

    def entropy(self) -> float:
        return -self.expect(lambda w: self.logpmf(w))


ORACLES = {
    Bernoulli: lambda f: stats.bernoulli(f.probability),
    Exponential: lambda f: stats.expon(scale=1 / f.rate),
    Pareto: lambda f: stats.pareto(f.alpha, scale=f.scale),
    Weibull: lambda f: stats.weibull_min(f.shape, scale=f.scale),
    Laplace: lambda f: stats.laplace(f.location, f.scale),
    Wald: lambda f: stats.invgauss(f.mean / f.shape, scale=f.shape),
    Normal: lambda f: stats.norm(f.mean, f.std),
    Beta: lambda f: stats.beta(f.a, f.b),
    Gamma: lambda f: stats.gamma(f.shape, scale=1 / f.rate),
    Poisson: lambda f: stats.poisson(f.rate),
    PoissonPower: lambda f: PowerOracle(f.rate, f.power),
}
CASES = [
    Bernoulli(0.3), Exponential(2.3), Pareto(5.7, 1.9), Weibull(2.1, 1.7), Laplace(0.7, 1.3), Wald(2.1, 3.4),
    Normal(1.6, 0.6), Beta(2.6, 1.8), Gamma(3.2, 0.45), Poisson(4.3), PoissonPower(4.3, 1.7),
]  # fmt: skip
DISCRETE = (Bernoulli, Poisson, PoissonPower)
SHARP = [family for family in CASES if family.concentrates]
on_families = pytest.mark.parametrize("family", CASES, ids=lambda family: type(family).__name__)
on_sharp = pytest.mark.parametrize("family", SHARP, ids=lambda family: type(family).__name__)


def oracle(family: Univariate):
    return ORACLES[type(family)](family)


def log_density(family: Univariate, w):
    found = oracle(family)
    return found.logpmf(w) if isinstance(family, DISCRETE) else found.logpdf(w)


def expected(family: Univariate, function) -> float:
    """E function(w), by SciPy's density and quadrature (in two pieces for the Laplace, which has a kink) or sums."""
    found = oracle(family)
    if isinstance(family, DISCRETE):
        return float(found.expect(function))
    nodes, weights = np.polynomial.legendre.leggauss(400)
    ends = (0.0, 0.5, 1.0)  # w = ppf(u), u close to the ends as t^4 is to 0
    total = 0.0
    for low, high, edge in ((ends[0], ends[1], 0.0), (ends[1], ends[2], 1.0)):
        t = (nodes + 1) / 2
        u = 0.5 * t**4
        w = found.ppf(low + u) if edge == 0.0 else found.isf(u)
        total += float(np.sum(weights / 2 * (high - low) * 4 * t**3 * function(w)))
    return total


def state_at(family: Univariate, tau) -> UnivariateState:
    return UnivariateState(unconstrained(np.asarray(tau, dtype=float), family.signs))


def centerd_differences(function, x: np.ndarray, step: float) -> np.ndarray:
    """d function / d x_j as rows j."""
    moves = step * np.maximum(1.0, np.abs(x))[:, None] * np.eye(len(x))
    return np.array([(function(x + m) - function(x - m)) / (2 * m.max()) for m in moves])


# ---- densities ----------------------------------------------------------------------------------------------------


def test_a_family_that_says_nothing_of_its_base_has_no_entropy() -> None:
    """The entropy of a constant base would be wrong without a word."""

    class Squared(Normal):
        def _log_base(self, w):
            return -(w**2)

    family = Squared(0.0, 1.0)
    with pytest.raises(NotImplementedError, match="Squared must have _mean_log_base"):
        family.entropy(family.state())


@on_families
def test_log_density_moments_and_entropy_are_scipys(family: Univariate) -> None:
    state, found = family.state(), oracle(family)
    w = family.sample(state, 50, np.random.default_rng(1))
    close(family.log_density(state, w), log_density(family, w), 1e-10)
    mean, std = family.moments(state)
    close(mean, found.mean(), 1e-10)
    close(std, found.std(), 1e-10)
    close(family.entropy(state), found.entropy(), 1e-8)


@pytest.mark.parametrize("family", [f for f in CASES if not isinstance(f, (Normal, Laplace))], ids=str)
def test_outside_the_support_the_density_is_zero(family: Univariate) -> None:
    outside = {Bernoulli: 0.5, Pareto: 1.8, Beta: 1.0, Poisson: 2.5, PoissonPower: 2.5}.get(type(family), -1.0)
    assert family.log_density(family.state(), [outside])[0] == -np.inf == log_density(family, outside)
    with pytest.raises(ValueError, match=r"points must be .* got .* at index 0"):
        family.statistics([outside])


@on_families
def test_samples_follow_scipys_distribution(family: Univariate) -> None:
    n, found = 40_000, oracle(family)
    w = family.sample(family.state(), n, np.random.default_rng(7))
    assert w.shape == (n,)
    family.check_points("w", w)
    if isinstance(family, DISCRETE):
        counts = np.arange(8 if not isinstance(family, Bernoulli) else 2)
        p = np.exp(found.logpmf(counts))
        assert np.abs((w[:, None] == counts).mean(axis=0) - p).max() < 5 * np.sqrt(p * (1 - p) / n).max()
    else:
        assert stats.kstest(w, found.cdf).pvalue > 1e-4


@on_families
def test_the_statistics_have_the_moments_of_the_log_partition(family: Univariate) -> None:
    """grad A = E[T] and Hess A = Cov[T], by quadrature of SciPy's density."""
    state, k = family.state(), family.size

    def statistic(j):
        return lambda w: np.asarray(family._statistics(np.atleast_1d(w))[j])

    m = family.expectation(state)
    close(m, [expected(family, statistic(j)) for j in range(k)], 1e-7)
    covariance = [
        [expected(family, lambda w, i=i, j=j: (statistic(i)(w) - m[i]) * (statistic(j)(w) - m[j])) for j in range(k)]
        for i in range(k)
    ]
    close(family.fisher(state), covariance, 1e-6)


@on_families
def test_expectations_and_fisher_matrices_are_derivatives_of_the_log_partition(family: Univariate) -> None:
    tau = family.natural(family.state())
    first = centerd_differences(lambda t: family.log_partition(state_at(family, t)), tau, 1e-5)
    close(family.expectation(family.state()), first, 1e-7)
    second = centerd_differences(lambda t: family.expectation(state_at(family, t)), tau, 1e-5)
    close(family.fisher(family.state()), second, 1e-7)


# ---- natural gradients --------------------------------------------------------------------------------------------


@on_families
def test_the_natural_score_is_the_slope_of_scipys_log_density_over_its_fisher_matrix(family: Univariate) -> None:
    """In lambda: slopes by differences of log densities at the usual parameters, F = E[slope slope^T]."""
    state, rng = family.state(), np.random.default_rng(3)

    def slope(w):
        return centerd_differences(
            lambda v: log_density(family.at(UnivariateState(v)), w), state.unconstrained, 1e-5
        )  # (K, n)

    k = family.size
    fisher = np.array(
        [[expected(family, lambda w, i=i, j=j: slope(w)[i] * slope(w)[j]) for j in range(k)] for i in range(k)]
    )
    w, weights = family.sample(state, 6, rng), rng.standard_normal(6)
    found = family.natural_score(state, w, weights)
    wanted = np.linalg.solve(fisher, slope(w) @ weights)
    close(found / np.abs(wanted).max(), wanted / np.abs(wanted).max(), 1e-5)


@on_families
def test_direct_and_indirect_natural_gradients_are_equal(family: Univariate) -> None:
    """L(tau) = <c, tau> + tau_1^2 / 2: by dL/dtau and F, and by differences of L in the expectation parameters m."""
    state, coefficients = family.state(), np.array([0.7, -1.3])[: family.size]
    tau, m = family.natural(state), family.expectation(state)
    scale = np.maximum(np.abs(tau), 1e-3)

    def loss_of_expectation(target: np.ndarray) -> float:
        """tau with grad A(tau) = target, then L."""
        residual = lambda t: (np.array(family._expectation((t * scale).tolist())) - target) / np.abs(m)  # noqa: E731
        solved = optimize.root(residual, tau / scale, tol=1e-14).x * scale
        return float(coefficients @ solved + solved[0] ** 2 / 2)

    steps = 1e-5 * np.abs(m)
    by_m = [
        (loss_of_expectation(m + s * e) - loss_of_expectation(m - s * e)) / (2 * s)
        for s, e in zip(steps, np.eye(family.size), strict=True)
    ]
    gradient = coefficients + tau[0] * np.eye(family.size)[0]
    direct = family.natural_gradient(state, gradient)
    indirect = family.natural_gradient_indirect(state, by_m)
    close(indirect / np.abs(direct).max(), direct / np.abs(direct).max(), 1e-5)


@on_families
def test_the_sampled_natural_gradient_is_unbiased(family: Univariate) -> None:
    """E[natural_score weighted by f] against the natural gradient of E f: dE f / dtau = Cov(f, T), by quadrature."""
    rng, state = np.random.default_rng(11), family.state()
    scale = family.moments(state)[0]

    def f(w):
        return np.exp(-((np.asarray(w) / scale - 0.8) ** 2))

    m = family.expectation(state)
    slope = [
        expected(family, lambda w, j=j: f(w) * (family._statistics(np.atleast_1d(w))[j] - m[j]))
        for j in range(family.size)
    ]
    exact = family.natural_gradient(state, slope)
    w = family.sample(state, 200_000, rng)
    values = f(w) - f(w).mean()
    parts = zip(np.split(w, 100), np.split(values, 100), strict=True)
    found = np.array([family.natural_score(state, part, v / len(v)) for part, v in parts])
    error = found.std(axis=0, ddof=1) / 10
    assert np.abs((found.mean(axis=0) - exact) / error).max() < 5
    assert np.abs(exact / error).max() > 20  # otherwise nothing was seen


def test_the_normal_moves_as_a_gaussian_in_one_dimension_to_first_order() -> None:
    """Natural gradients do not depend on parameters: steps in lambda and of (mean, A h(M)) differ by O(rate^2)."""
    rng = np.random.default_rng(2)
    normal, gaussian = Normal(1.7, 0.6), Gaussian("full", mean=[1.7], sigma0=0.6)
    state, other = normal.state(), gaussian.state()
    w, weights = normal.sample(state, 7, rng), rng.standard_normal(7)
    step, local = normal.natural_score(state, w, weights), gaussian.local(other, w[:, None])
    gaps = []
    for rate in (1e-3, 1e-4):
        mean, std = normal.moments(normal.move(state, rate * step))
        moved = gaussian.move(other, gaussian.natural_score(local, weights).scaled(rate))
        gaps.append(abs(mean - moved.mean[0]) + abs(std - abs(moved.root[0])))
        assert abs(mean - 1.7) > 10 * gaps[-1]
    assert 0 < gaps[1] < 0.02 * gaps[0]


# ---- parameters ---------------------------------------------------------------------------------------------------


@given(st.lists(st.floats(-40, 40), min_size=3, max_size=3))
def test_unconstrained_parameters_and_natural_ones_determine_each_other(values: list[float]) -> None:
    signs, given_values = ("positive", "negative", "free"), np.array(values)
    tau = natural(given_values, signs)
    assert tau[0] > 0 > tau[1]
    assert tau[2] == values[2]
    close(unconstrained(tau, signs), given_values, 1e-9)
    close(tau[0], np.log1p(np.exp(values[0])), 1e-12)
    numeric = (natural(given_values + 1e-6, signs) - natural(given_values - 1e-6, signs)) / 2e-6
    np.testing.assert_allclose(slopes(given_values, signs), numeric, rtol=1e-6, atol=1e-8)


@on_families
def test_a_state_leads_back_to_the_usual_parameters(family: Univariate) -> None:
    again = family.at(family.state())
    assert type(again) is type(family)
    for name in vars(family):
        close(getattr(again, name), getattr(family, name), 1e-12)
    moved = family.at(family.move(family.state(), np.full(family.size, 0.1)))
    assert moved != family
    assert np.isfinite(moved.entropy(moved.state()))


@on_families
def test_families_are_values(family: Univariate) -> None:
    assert pickle.loads(pickle.dumps(family)) == family
    assert hash(pickle.loads(pickle.dumps(family))) == hash(family)
    with pytest.raises(AttributeError):
        family.rate = 3.0  # type: ignore[attr-defined]


@pytest.mark.parametrize("one, other", [
    (Gamma(1.0, 2.3), Exponential(2.3)), (Weibull(0.4, 1.0), Exponential(2.5)), (PoissonPower(3.7, 1.0), Poisson(3.7)),
    (Beta(1.0, 1.0), None),
], ids=str)  # fmt: skip
def test_at_the_ends_of_their_parameters_families_are_simpler_ones(one: Univariate, other: Univariate | None) -> None:
    w = one.sample(one.state(), 9, np.random.default_rng(0))
    wanted = np.zeros(9) if other is None else other.log_density(other.state(), w)
    close(one.log_density(one.state(), w), wanted, 1e-12)


# ---- location and concentration -----------------------------------------------------------------------------------


@on_families
def test_scores_of_location_and_concentration_are_those_of_their_definition(family: Univariate) -> None:
    state, k = family.state(), family.size
    tau, m, fisher = family.natural(state), family.expectation(state), family.fisher(state)
    direction = np.array(family._location(tau.tolist()))
    close(direction @ fisher @ direction, 1.0, 1e-9)
    w = family.sample(state, 8, np.random.default_rng(4))
    centerd = family.statistics(w) - m
    found = family._local(tau.tolist(), w)
    close(found.z, centerd @ direction, 1e-9)
    if k == 2:
        close(direction @ fisher @ tau / np.abs(fisher @ tau).max(), 0.0, 1e-9)
        close(found.y, 1 - centerd @ tau / (tau @ fisher @ tau), 1e-8)
        assert expected(family, lambda w: family._local(tau.tolist(), np.atleast_1d(w)).y) == pytest.approx(1, abs=1e-6)


@on_sharp
def test_concentrating_leaves_the_mean_and_narrows_the_width(family: Univariate) -> None:
    tau = family.natural(family.state())
    mean, std = family.moments(state_at(family, 100 * tau))
    tolerance = 1.0 if isinstance(family, PoissonPower) else 1e-10  # a count moves to the likeliest one
    assert abs(mean - family.moments(family.state())[0]) < tolerance
    assert std < 0.25 * family.moments(family.state())[1]


@pytest.mark.parametrize("family", [
    Gamma(1e24, 3.0), Beta(1e24, 7e24), Beta(2.0, 1e20), Wald(2.0, 1e24), Normal(2.0, 1e-13), PoissonPower(1e7, 1e7),
], ids=str)  # fmt: skip
def test_scores_stay_white_when_the_distribution_is_almost_a_point(family: Univariate) -> None:
    state, n = family.state(), 50_000
    w = family.sample(state, n, np.random.default_rng(5))
    z, y = family._local(family.natural(state).tolist(), w)
    for zero in (z, z * z - 1, y - 1, z * y):
        assert abs(zero.mean()) < 5 * zero.std() / math.sqrt(n)
    if not isinstance(family, PoissonPower) and family != Beta(2.0, 1e20):
        assert np.abs(y - z * z).max() < 1e-2  # as for a normal


@pytest.mark.parametrize("x", [99.999, 100.0, 250.0, 3000.0])
@pytest.mark.parametrize("y", [0.7, 120.0])
def test_series_for_large_arguments_continue_the_plain_formulas(x: float, y: float) -> None:
    def trigamma(v: float) -> float:
        return float(special.polygamma(1, v))

    close(gamma_functions.log_gap(x), x * (math.log(x) - special.digamma(x)), 1e-11)
    close(gamma_functions.variance_gap(x), x * (x * trigamma(x) - 1), 1e-9)
    np.testing.assert_allclose(gamma_functions.trigamma_difference(x, y), trigamma(x) - trigamma(x + y), rtol=1e-8)
    direct = x * trigamma(x) - (x + y) * trigamma(x + y)
    np.testing.assert_allclose(gamma_functions.slope_difference(x, y), direct, rtol=1e-6)


# ---- products -----------------------------------------------------------------------------------------------------


def test_a_product_is_its_families_side_by_side() -> None:
    product, rng = Product(tuple(CASES)), np.random.default_rng(6)
    state, weights = product.state(), rng.standard_normal(5)
    points = product.sample(state, 5, rng)
    assert points.shape == (5, len(CASES))
    columns = list(zip(CASES, points.T, strict=True))
    close(product.log_density(state, points), sum(f.log_density(f.state(), w) for f, w in columns), 1e-12)
    close(product.entropy(state), sum(f.entropy(f.state()) for f in CASES), 1e-12)
    close(np.array(product.moments(state)).T, [f.moments(f.state()) for f in CASES], 1e-12)
    score = product.natural_score(state, points, weights)
    close(score, np.concatenate([f.natural_score(f.state(), w, weights) for f, w in columns]), 1e-12)
    moved = product.at(product.move(state, 0.01 * score))
    for family, part, step in zip(CASES, moved.families, [score[s] for s in product.slices], strict=True):
        close(part._natural(), family.at(family.move(family.state(), 0.01 * step))._natural(), 1e-12)
    close(product.state_of(product.natural(state)).unconstrained, state.unconstrained, 1e-12)
    assert pickle.loads(pickle.dumps(product)) == product == Product(list(CASES))  # type: ignore[arg-type]


# ---- bad input ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make, message", [
    (lambda: Bernoulli(1.0), r"probability must be strictly between 0 and 1, got 1\.0"),
    (lambda: Bernoulli(math.nan), r"probability must be a finite number, got nan"),
    (lambda: Exponential(-2), r"rate must be a positive finite number, got -2"),
    (lambda: Pareto(2.0, 0.0), r"scale must be a positive finite number, got 0\.0"),
    (lambda: Pareto("x"), r"alpha must be a positive finite number, got 'x'"),
    (lambda: Weibull(1.0, -1.0), r"shape must be a positive finite number, got -1\.0"),
    (lambda: Weibull(1e-100, 5.0), r"scale, shape must lead to natural parameters between .* got Weibull"),
    (lambda: Laplace(1.0, math.inf), r"location must be a finite number, got inf"),
    (lambda: Wald(0.0, 1.0), r"mean must be a positive finite number, got 0\.0"),
    (lambda: Wald(1e-200, 1.0), r"mean, shape must lead to natural parameters between .* got Wald"),
    (lambda: Normal(0.0, 0.0), r"std must be a positive finite number, got 0\.0"),
    (lambda: Normal(math.nan, 1.0), r"mean must be a finite number, got nan"),
    (lambda: Beta(1.0, None), r"b must be a positive finite number, got None"),
    (lambda: Gamma(1.0, -0.5), r"rate must be a positive finite number, got -0\.5"),
    (lambda: Poisson(1e16), r"rate must be at most 1e\+15, got 1e\+16"),
    (lambda: PoissonPower(1e9), r"rate must be at most 1e\+08 and power at least 0\.01"),
    (lambda: PoissonPower(1e-100), r"power must be at most 30 / log.* = 0\.130288 for a rate of 1e-100, got 1\.0"),
    (lambda: PoissonPower(5e-324, 0.01), r"power must be at most 30 / log.* = 0 for a rate of 5e-324, got 0\.01"),
    (lambda: PoissonPower(3.0, 1e100), r"power must be at most 30 / log.* = 104\.282 for a rate of 3\.0, got 1e\+100"),
    (lambda: Weibull(1.0, 0.09), r"shape must be from 0\.1 to 1e\+12, got 0\.09"),
    (lambda: Weibull(1.0, 2e12), r"shape must be from 0\.1 to 1e\+12, got 2000000000000\.0"),
])  # fmt: skip
def test_parameters_outside_their_domain_are_refused(make, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_other_bad_input_is_refused() -> None:
    gamma, rng = Gamma(2.0, 1.0), np.random.default_rng(0)
    state = gamma.state()
    with pytest.raises(ValueError, match=r"points must be finite, got nan at index 1"):
        gamma.log_density(state, [1.0, math.nan])
    with pytest.raises(ValueError, match=r"points must be positive for Gamma\(.*\), got -1 at index 1"):
        gamma.natural_score(state, [1.0, -1.0], [1.0, 1.0])
    with pytest.raises(ValueError, match=r"weights must have shape \(2,\), got \(3,\)"):
        gamma.natural_score(state, [1.0, 2.0], [1.0, 1.0, 1.0])
    with pytest.raises(ValueError, match=r"state.unconstrained must have shape \(2,\), got \(1,\)"):
        gamma.moments(Exponential(1.0).state())
    with pytest.raises(TypeError, match=r"state must be a UnivariateState"):
        gamma.moments([1.0, 2.0])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"rng must be a Generator, got 0"):
        gamma.sample(state, 3, 0)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"families must be a tuple of at least one univariate distribution, got \(\)"):
        Product(())
    with pytest.raises(TypeError, match=r"families\[1\] must be a Univariate, got 3"):
        Product((gamma, 3))  # type: ignore[arg-type]
    both = Product((gamma, Beta(1.0, 2.0)))
    with pytest.raises(ValueError, match=r"points\[:, 1\] must be strictly between 0 and 1 .* got 1 at index 0"):
        both.natural_score(both.state(), [[1.0, 1.0]], [1.0])
    with pytest.raises(ValueError, match=r"points must have shape \(n, 2\), got \(1, 3\)"):
        both.log_density(both.state(), [[1.0, 0.5, 1.0]])
    assert both.sample(both.state(), 0, rng).shape == (0, 2)
