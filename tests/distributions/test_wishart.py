"""Wishart distributions against scipy.stats and against the Fisher matrix rebuilt from first principles."""

import math
import pickle
from decimal import Decimal, localcontext
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, special, stats
from scipy.linalg import expm

from esgroup.distributions import gamma_functions
from esgroup.distributions.wishart import Wishart, WishartState, WishartStep
from esgroup.groups import BlockTriangular, Circulant, Diagonal, Full, Group, Heisenberg, Triangular
from tests.groups import oracle
from tests.groups.cases import CASES
from tests.groups.elements import covariance, element, local
from tests.groups.laws import close

Rng = np.random.Generator


def on_every_group(test):
    """Run a test (distribution, state, rng) on groups of every kind, at a generic state."""

    @pytest.mark.parametrize("name", CASES)
    @settings(max_examples=max(4, settings.default.max_examples // 4))
    @given(data=st.data(), seed=st.integers(0, 2**32 - 1))
    def run(name: str, data: st.DataObject, seed: int) -> None:
        group, rng = data.draw(CASES[name].filter(lambda g: g.dim <= 4)), np.random.default_rng(seed)
        distribution = Wishart(np.eye(group.dim), structure=group)
        test(distribution, WishartState(np.array(rng.uniform(-1, 4)), element(group, rng)), rng)

    run.__name__ = test.__name__
    return run


def dense(distribution: Wishart, state: WishartState) -> tuple[float, np.ndarray]:
    """n and S = n B B^T, from the definition."""
    n = 2 * math.log1p(math.exp(state.b)) + distribution.dim - 1
    root = distribution.group.dense(state.root)
    return n, n * root @ root.T


def scipys(n: float, s: np.ndarray):
    return stats.wishart(n, np.linalg.inv(s))


def logpdf(n: float, s: np.ndarray, w: np.ndarray) -> np.ndarray:
    """scipy.stats has it with points along the last axis."""
    return np.reshape(scipys(n, s).logpdf(np.moveaxis(w, 0, -1)), len(w))


def some_points(p: int, count: int, rng: Rng) -> np.ndarray:
    return np.array([covariance(p, rng) for _ in range(count)])


def along(distribution: Wishart, state: WishartState, coordinates: np.ndarray) -> tuple[float, np.ndarray]:
    """n and S at b + delta, B Exp(M), with delta and then the coefficients of M in the oracle's basis."""
    basis, group = oracle.local_basis(distribution.group), distribution.group
    n = 2 * np.logaddexp(0, float(state.b) + coordinates[0]) + distribution.dim - 1
    root = group.dense(state.root) @ expm(np.tensordot(coordinates[1:], basis, 1))
    return n, n * root @ root.T


def slopes(function, size: int, step: float = 1e-5) -> np.ndarray:
    units = step * np.eye(size)
    return np.array([(function(u) - function(-u)) / (2 * step) for u in units])


def cross_entropy(n0: float, s0: np.ndarray, n: float, s: np.ndarray) -> float:
    """-E[log q(n, S)] under q(n0, S0), from E W = n0 S0^-1 and E log|W| = psi_p(n0/2) + p log 2 - log|S0|."""
    p = len(s)
    log_det = special.psi((n0 - np.arange(p)) / 2).sum() + p * np.log(2) - np.linalg.slogdet(s0)[1]
    energy = (n - p - 1) / 2 * log_det - np.trace(s @ np.linalg.inv(s0)) * n0 / 2 + n / 2 * np.linalg.slogdet(s)[1]
    return -(energy - n * p / 2 * np.log(2) - special.multigammaln(n / 2, p))


def fisher(distribution: Wishart, state: WishartState) -> np.ndarray:
    """The Hessian of the cross entropy in delta and the coefficients of M, by differences."""
    size, origin = 1 + len(oracle.local_basis(distribution.group)), dense(distribution, state)

    def slope(x: np.ndarray) -> np.ndarray:
        return slopes(lambda u: cross_entropy(*origin, *along(distribution, state, x + u)), size, 1e-3)

    return slopes(slope, size, 1e-3)


def solved(distribution: Wishart, inverse: np.ndarray, gradient: np.ndarray) -> tuple[float, np.ndarray]:
    """The natural gradient for a gradient in these coordinates, by the inverse Fisher matrix: delta and the dense M."""
    coordinates = inverse @ gradient
    return coordinates[0], np.tensordot(coordinates[1:], oracle.local_basis(distribution.group), 1)


def agree(distribution: Wishart, step: WishartStep, delta: float, m: np.ndarray, tolerance: float) -> None:
    scale = 1 + max(abs(delta), np.abs(m).max())
    close(float(step.delta) / scale, delta / scale, tolerance)
    close(distribution.group.dense_local(step.m) / scale, m / scale, tolerance)


# ---- first principles -------------------------------------------------------------------------------------------


@on_every_group
def test_the_fisher_matrix_is_block_diagonal_as_stated(distribution: Wishart, state: WishartState, rng: Rng) -> None:
    n, _ = dense(distribution, state)
    found, basis = fisher(distribution, state), oracle.local_basis(distribution.group)
    symmetric = np.array([(b + b.T).ravel() for b in basis])
    expected = np.zeros(found.shape)
    expected[1:, 1:] = n / 2 * symmetric @ symmetric.T
    trigamma = special.polygamma(1, (n - np.arange(distribution.dim)) / 2).sum() - 2 * distribution.dim / n
    expected[0, 0] = trigamma / (1 + math.exp(-state.b)) ** 2
    close(found / np.abs(expected).max(), expected / np.abs(expected).max(), 1e-4)


@on_every_group
def test_natural_gradients_are_slopes_over_fisher(distribution: Wishart, state: WishartState, rng: Rng) -> None:
    """Of scipy.stats' log density for the score, of f at the mean for the gradient there."""
    inverse = np.linalg.inv(fisher(distribution, state))
    w, weights = some_points(distribution.dim, 3, rng), rng.standard_normal(3)
    slope = slopes(lambda u: weights @ logpdf(*along(distribution, state, u), w), len(inverse))
    found = distribution.natural_score(state, distribution.local(state, w), weights)
    agree(distribution, found, *solved(distribution, inverse, slope), 1e-4)
    g = rng.standard_normal(distribution.shape)
    g = g + g.T

    def at_mean(u: np.ndarray) -> float:
        n, s = along(distribution, state, u)
        return float(np.sum(g * np.linalg.inv(s)) * n)

    found = distribution.natural_gradient_at_mean(state, g)
    agree(distribution, found, *solved(distribution, inverse, slopes(at_mean, len(inverse))), 1e-4)
    assert found.delta == 0


# ---- density and samples ----------------------------------------------------------------------------------------


@on_every_group
def test_density_entropy_and_mean_are_scipys(distribution: Wishart, state: WishartState, rng: Rng) -> None:
    n, s = dense(distribution, state)
    w = some_points(distribution.dim, 3, rng)
    expected = logpdf(n, s, w)
    close(distribution.log_density(state, w), expected, 1e-8 * (1 + np.abs(expected).max()))
    close(distribution.log_density(state, w[1]), expected[1], 1e-8 * (1 + np.abs(expected).max()))
    close(distribution.entropy(state), float(scipys(n, s).entropy()), 1e-8 * (1 + n))
    close(distribution.dof_of(state), n)
    close(distribution.mean_of(state), n * np.linalg.inv(s), 1e-8)


@on_every_group
def test_local_factors_undo_sampling(distribution: Wishart, state: WishartState, rng: Rng) -> None:
    samples = distribution.sample(state, 4, rng)
    outward = np.linalg.inv(distribution.group.dense(state.root)).T
    z = samples.factors @ samples.factors.swapaxes(1, 2)
    close(samples.points, outward @ z @ outward.T, 1e-8)
    assert np.array_equal(samples.points, samples.points.swapaxes(1, 2))
    if distribution.dof_of(state) > distribution.dim:  # else Z may be too near to a singular matrix
        close(distribution.local(state, samples.points), samples.factors, 1e-5)


def test_samples_have_the_law_of_the_wishart_distribution() -> None:
    rng, p, n, count = np.random.default_rng(1), 3, 5.7, 40_000
    mean = covariance(p, rng)
    distribution = Wishart(mean, dof=n)
    w = distribution.sample(distribution.state(), count, rng).points
    deviations = np.sqrt((mean**2 + np.outer(np.diag(mean), np.diag(mean))) / n)
    assert np.all(np.abs(w.mean(axis=0) - mean) < 5 * deviations / math.sqrt(count))
    close(w.std(axis=0) / deviations, np.ones((p, p)), 0.03)
    v = rng.standard_normal(p)  # v^T W v n / v^T mean v ~ chi2_n
    assert stats.kstest(n * (w @ v @ v) / (v @ mean @ v), stats.chi2(n).cdf).pvalue > 0.001
    # n^p |W| / |mean| is a product of chi2 of n, n - 1, ... degrees of freedom (Muirhead 1982, theorem 3.2.15)
    chi2 = rng.chisquare(n - np.arange(p), (count, p))
    logs = np.linalg.slogdet(n * w)[1] - np.linalg.slogdet(mean)[1]
    assert stats.ks_2samp(logs, np.log(chi2).sum(axis=1)).pvalue > 0.001
    others = np.linalg.inv(stats.wishart(n, mean / n).rvs(count, random_state=rng))[:, 0, 1]
    assert stats.ks_2samp(np.linalg.inv(w)[:, 0, 1], others).pvalue > 0.001


@pytest.mark.parametrize("n", [2.3, 40.0, 1e15])
def test_with_one_row_it_is_the_gamma_distribution(n: float) -> None:
    mean, rng = 2.5, np.random.default_rng(2)
    distribution = Wishart([[mean]], dof=n)
    state = distribution.state()
    samples = distribution.sample(state, 20_000, rng)
    z = samples.points[:, 0, 0] / mean
    assert stats.kstest(z, stats.gamma(n / 2, scale=2 / n).cdf).pvalue > 0.001
    weights = rng.standard_normal(len(z))
    step = distribution.natural_score(state, samples.factors, weights)
    close(step.m, [0.5 * weights @ (1 - z)], 1e-10)
    if n < 1e3:
        x = n / 2
        score = weights @ (np.log(z) - z + 1 + np.log(x) - special.psi(x))
        sigmoid = 1 / (1 + math.exp(-float(state.b)))
        close(step.delta, score / sigmoid / (special.polygamma(1, x) - 1 / x), 1e-8 * abs(float(step.delta)))
    moved = distribution.move(state, step.scaled(0.01, 0.02))
    close(moved.root, state.root * (1 + 0.01 * step.m + (0.01 * step.m) ** 2 / 2))
    close(moved.b, state.b + 0.02 * step.delta)


@pytest.mark.parametrize("n", [4.0, 1e3, 1e9, 1e15])
def test_the_score_of_the_degrees_of_freedom_has_mean_0_and_variance_d_at_any_n(n: float) -> None:
    """Both drown in rounding if they are written with logarithms of n."""
    distribution = Wishart(np.diag([3.0, 1.0, 0.2]), dof=n)
    state, count = distribution.state(), 1000
    factors = distribution.sample(state, count, np.random.default_rng(3)).factors
    steps = [float(distribution.natural_score(state, f[None], [1.0]).delta) for f in factors]
    d = gamma_functions.trigamma_gap((n - 2) / 2, 3)
    scores = np.array(steps) * d / (1 + math.exp(-float(state.b)))  # delta = s / (sigmoid(b) D)
    assert abs(scores.mean()) < 5 * math.sqrt(d / count)
    close(scores.var() / d, 1.0, 0.3)
    weights = np.random.default_rng(0).standard_normal(count)
    together = distribution.natural_score(state, factors, weights)
    close(float(together.delta), weights @ steps, 1e-9 * np.abs(steps).sum())


# ---- sampled natural gradients ----------------------------------------------------------------------------------

Q = np.array([[1.0, 0.4, 0.0], [0.4, 0.5, -0.2], [0.0, -0.2, 2.0]])


def values(w: np.ndarray) -> np.ndarray:
    return 0.5 * ((w @ Q - np.eye(3)) ** 2).sum(axis=(1, 2))


def gradients(w: np.ndarray) -> np.ndarray:
    g = (w @ Q - np.eye(3)) @ Q
    return (g + g.swapaxes(1, 2)) / 2


def expected_value(n: float, s: np.ndarray) -> float:
    """E values(W), from E W A W = m A m + (m A^T m + tr(A m) m) / n for the mean m (Muirhead 1982, section 3.2)."""
    m, square = n * np.linalg.inv(s), Q @ Q
    second = np.trace(square @ m @ m) * (1 + 1 / n) + np.trace(square @ m) * np.trace(m) / n
    return 0.5 * second - float(np.trace(m @ Q)) + 1.5


GROUPS = [Full(3), Diagonal(3), Triangular(3), Triangular(3, False), BlockTriangular(3, 1), Circulant(3)]


@pytest.mark.parametrize("how", ["score", "pathwise"])
@pytest.mark.parametrize("group", GROUPS, ids=repr)
@pytest.mark.parametrize("b", [0.3, 20.0])
def test_sampled_natural_gradients_are_unbiased(how: str, group: Group, b: float) -> None:
    rng, parts = np.random.default_rng(4), 50
    distribution = Wishart(np.eye(3), structure=group)
    state = WishartState(np.array(b), element(group, rng))
    size = 1 + len(oracle.local_basis(group))
    gradient = slopes(lambda u: expected_value(*along(distribution, state, u)), size)
    delta, m = solved(distribution, np.linalg.inv(fisher(distribution, state)), gradient)
    found = []
    for _ in range(parts):
        samples = distribution.sample(state, 400, rng)
        if how == "score":
            f = values(samples.points)
            weights = (f - expected_value(*dense(distribution, state))) / len(f)
            step = distribution.natural_score(state, samples.factors, weights)
        else:
            step = distribution.natural_gradient(state, samples.factors, gradients(samples.points))
        found.append(np.append(group.dense_local(step.m), step.delta))
    exact, found = np.append(m, delta), np.array(found)
    errors = found.std(axis=0, ddof=1) / math.sqrt(parts)
    assert np.all(np.abs(found.mean(axis=0) - exact) < 5 * errors + 1e-5 * (1 + np.abs(exact)))
    if how == "pathwise":
        assert errors[:9].max() < 0.1 * np.abs(m).max()  # and not for want of samples


@pytest.mark.parametrize("n", [6.5, 300.0, 1e5])
def test_the_pathwise_slope_is_that_of_samples_at_fixed_probabilities(n: float) -> None:
    """tr(G W) as n moves, with the quantiles of the gamma variables and the normal variables of one sample fixed."""
    rng = np.random.default_rng(13)
    distribution, g = Wishart(covariance(4, rng), dof=n), rng.standard_normal((4, 4))
    state, g = distribution.state(), g + g.T
    factors = distribution.sample(state, 1, rng).factors
    scaled, i = math.sqrt(n) * factors[0], np.arange(4)
    chances = special.gammainc((n - i) / 2, np.diag(scaled) ** 2 / 2)
    outward = np.linalg.inv(distribution.group.dense(state.root)).T

    def value(at: float) -> float:
        omega = np.tril(scaled, -1) + np.diag(np.sqrt(2 * special.gammaincinv((at - i) / 2, chances)))
        root = outward @ omega / math.sqrt(at)
        return float(np.sum(g * (root @ root.T)))

    h = 1e-3 * n
    slope = (8 * (value(n + h) - value(n - h)) - (value(n + 2 * h) - value(n - 2 * h))) / (12 * h)
    step = distribution.natural_gradient(state, factors, g[None])
    d = special.polygamma(1, (n - i) / 2).sum() - 8 / n
    expected = 2 * slope * (1 + math.exp(-float(state.b))) / d
    assert float(step.delta) == pytest.approx(expected, rel=2e-5, abs=0)


def test_the_pathwise_gradient_is_good_at_high_concentration() -> None:
    """At large n, n (E f - f(mean)) tends to a constant c, so that dL/dn = -c / n^2 and delta = -2 c / (p (p + 1))."""
    distribution = Wishart(np.diag([1.0, 2.0, 0.5]), dof=1e12)
    state, rng = distribution.state(), np.random.default_rng(5)
    samples = distribution.sample(state, 100_000, rng)
    c = expected_value(1.0, np.linalg.inv(distribution.mean)) - values(distribution.mean[None])[0]
    # only the curvature of f counts for delta; the slope's part is an odd function of the noise: take it away
    flat = gradients(samples.points) - gradients(distribution.mean[None])
    step = distribution.natural_gradient(state, samples.factors, flat)
    close(float(step.delta) / (-2 * c / 12), 1.0, 0.02)


# ---- Riemannian gradient descent --------------------------------------------------------------------------------


@pytest.mark.parametrize("map", ["h", "exp"])
def test_steps_at_the_mean_are_riemannian_gradient_descent_to_second_order(map: str) -> None:
    """U <- U + t G + t^2/2 G U^-1 G for U = mean^-1 (paper, section 3.4); the error is of third order."""
    rng = np.random.default_rng(6)
    distribution = Wishart(covariance(4, rng), dof=17.0)
    state, g = distribution.state(), rng.standard_normal((4, 4))
    g, u = g + g.T, np.linalg.inv(distribution.mean)
    gaps = []
    for rate in (1e-2, 1e-3):
        step = distribution.natural_gradient_at_mean(state, g).scaled(-rate * 17 / 2)
        moved = distribution.move(state, step, map)
        assert moved.b == state.b
        retracted = u + rate * g + rate**2 / 2 * g @ distribution.mean @ g
        gaps.append(np.abs(np.linalg.inv(distribution.mean_of(moved)) - retracted).max())
        assert gaps[-1] < rate**3 * 1e3
    assert 500 < gaps[0] / gaps[1] < 2000


def test_with_the_exponential_map_steps_at_the_mean_follow_the_geodesic() -> None:
    """U^1/2 Exp(t U^-1/2 G U^-1/2) U^1/2 is the geodesic of the affine-invariant metric through U along G."""
    rng = np.random.default_rng(7)
    distribution = Wishart(covariance(4, rng), dof=9.0)
    state, g = distribution.state(), rng.standard_normal((4, 4))
    g, u = g + g.T, np.linalg.inv(distribution.mean)
    eigenvalues, vectors = np.linalg.eigh(u)
    half, inverse_half = (vectors * eigenvalues**power @ vectors.T for power in (0.5, -0.5))
    geodesic = half @ expm(0.05 * inverse_half @ g @ inverse_half) @ half
    step = distribution.natural_gradient_at_mean(state, g).scaled(-0.05 * 9 / 2)
    close(np.linalg.inv(distribution.mean_of(distribution.move(state, step, "exp"))), geodesic, 1e-9)


def test_descent_along_the_gradient_at_the_mean_inverts_a_matrix() -> None:
    distribution = Wishart(np.eye(3), dof=50.0)
    state = distribution.state()
    for _ in range(300):
        step = distribution.natural_gradient_at_mean(state, gradients(distribution.mean_of(state)[None])[0])
        state = distribution.move(state, step.scaled(-0.2 * 50 / 2))
    close(distribution.mean_of(state), np.linalg.inv(Q), 1e-6)


# ---- special functions ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [1, 2, 5, 50])
def test_gaps_are_those_of_scipys_functions(p: int) -> None:
    for least in (0.005, 0.4, 3.0, 19.0, 21.0, 300.0):
        x = least + (p - 1) / 2
        y = x - np.arange(p) / 2
        close(gamma_functions.shapes(least, p), y)
        normalizer = p * x * np.log(x) - p * x - special.multigammaln(x, p)
        assert gamma_functions.log_normalizer(least, p) == pytest.approx(normalizer, rel=1e-9, abs=1e-9)
        assert gamma_functions.digamma_gap(least, p) == pytest.approx(
            p * np.log(x) - special.psi(y).sum(), rel=1e-9, abs=0
        )
        exact = special.polygamma(1, y).sum() - p / x
        assert gamma_functions.trigamma_gap(least, p) == pytest.approx(exact, rel=1e-9, abs=0)


@pytest.mark.parametrize("p", [1, 4, 50])
def test_gaps_keep_their_digits_up_to_1e15_degrees_of_freedom(p: int) -> None:
    """Both series in 1/x = 2/n; the neglected terms are smaller by (p/n)^2."""
    for n in (1e9, 1e12, 1e15):
        x, i = n / 2, np.arange(p)
        digamma = ((i + 1) / (2 * x) + (i**2 / 8 + i / 4 + 1 / 12) / x**2).sum()
        trigamma = ((i + 1) / (2 * x**2) + (i**2 / 4 + i / 2 + 1 / 6) / x**3).sum()
        least = (n - p + 1) / 2
        assert gamma_functions.digamma_gap(least, p) == pytest.approx(digamma, rel=1e-12, abs=0)
        assert gamma_functions.trigamma_gap(least, p) == pytest.approx(trigamma, rel=1e-12, abs=0)
        assert gamma_functions.trigamma_gap(least, p) == pytest.approx(p * (p + 1) / n**2, rel=100 / n + 1e-15, abs=0)
        h = 0.01 * least
        rise = (gamma_functions.log_normalizer(least + h, p) - gamma_functions.log_normalizer(least - h, p)) / (2 * h)
        assert rise == pytest.approx(gamma_functions.digamma_gap(least, p), rel=1e-3, abs=0)


def test_the_remainder_of_stirlings_formula_is_exact_where_its_series_starts() -> None:
    """At integers, in fifty digits: log (y - 1)!, psi(y) = H_(y-1) - gamma, psi'(y) = pi^2/6 - sum_k<y 1/k^2."""
    with localcontext(prec=50):
        _compare_remainders()


def _compare_remainders() -> None:
    pi = Decimal("3.14159265358979323846264338327950288419716939937510")
    gamma = Decimal("0.57721566490153286060651209008240243104215933593992")
    for y in (20, 21, 30):
        x, below = Decimal(y), [Decimal(k) for k in range(1, y)]
        stirling = (x - Decimal("0.5")) * x.ln() - x + (2 * pi).ln() / 2
        exact = (
            sum(k.ln() for k in below) - stirling,
            sum(1 / k for k in below) - gamma - x.ln() + 1 / (2 * x),
            pi**2 / 6 - sum(1 / k**2 for k in below) - 1 / x - 1 / (2 * x**2),
        )
        for order in range(3):
            found = gamma_functions.remainder(np.array([float(y)]), order)[0]
            assert found == pytest.approx(float(exact[order]), rel=1e-14, abs=0)


def sample_slope(a: float, g: float) -> float:
    """dg/da = int_g^inf (log t - psi(a)) q(t) dt / q(g), or minus the integral from 0 to g; adaptive quadrature."""

    def height(t: float, sign: int) -> float:
        return sign * (np.log(t) - special.psi(a)) * np.exp((a - 1) * np.log(t / g) - (t - g))

    options = {"epsabs": 0, "epsrel": 1e-11, "limit": 400}
    if g > a:
        ends = g + np.array([0, 0.1, 1, 5]) * (1 + math.sqrt(a))
        ends = np.append(ends, g + 40 + 40 * math.sqrt(a))
        sign = 1
    else:
        ends = g * np.array([0, 1e-9, 1e-4, 0.01, 0.1, 0.5, 1])
        ends = np.unique(np.append(ends, np.maximum(0, g - np.array([8, 4, 2, 1]) * math.sqrt(a))))
        sign = -1
    return sum(integrate.quad(height, low, high, args=(sign,), **options)[0] for low, high in pairwise(ends))


@pytest.mark.parametrize("a", [0.5, 1.0, 3.3, 40.0, 700.0, 9e3])
def test_a_gamma_sample_follows_its_shape_as_implicit_differentiation_says(a: float) -> None:
    g = stats.gamma(a).ppf([0.01, 0.3, 0.5, 0.7, 0.99, 1 - 1e-8])
    found = gamma_functions.sample_elasticity(np.full(g.shape, a), g, g - a)
    close(found, np.array([a * sample_slope(a, x) / x - 1 for x in g]), 1e-7 / math.sqrt(a))
    # and as the quantiles move: less exact, but free of our formulas
    h = 1e-3 * math.sqrt(a) * min(a, 1.0)
    below, above = (special.gammainccinv(b, special.gammaincc(a, g)) for b in (a - h, a + h))
    close(found, a * (above - below) / (2 * h) / g - 1, 1e-5)


def test_a_tiny_gamma_sample_follows_its_shape() -> None:
    """P(a, g) tends to g^a / Gamma(a + 1) as g -> 0, so that dg/da = g (psi(a + 1) - log g) / a."""
    g = np.array([1e-280, 1e-100, 1e-20])
    found = gamma_functions.sample_elasticity(np.full(3, 0.02), g, g - 0.02)
    close(found / (special.psi(1.02) - np.log(g) - 1), np.ones(3), 1e-12)


def test_the_three_ways_to_differentiate_a_gamma_sample_meet() -> None:
    a = np.full(13, 1e4)
    excess = np.linspace(-6, 6, 13) * 100.0
    below, above = (np.full(13, 1e4 * (1 - 1e-12)), np.full(13, 1e4))
    close(
        gamma_functions.sample_elasticity(below, a + excess, a + excess - below) * 100, _expanded(above, excess), 1e-7
    )
    edge = math.exp(special.psi(51.0))
    g = edge * np.array([1 - 1e-9, 1 + 1e-9])
    low, high = gamma_functions.sample_elasticity(np.full(2, 50.0), g, g - 50.0)
    assert low == pytest.approx(high, rel=1e-6, abs=0)


def _expanded(a: np.ndarray, excess: np.ndarray) -> np.ndarray:
    return 100 * gamma_functions.sample_elasticity(a, a + excess, excess)


# ---- parameters, moves, bad input -------------------------------------------------------------------------------


@pytest.mark.parametrize("dof", [2.0 + 1e-6, 3.0, 77.5, 1e8, 1e15])
def test_the_first_state_has_the_given_mean_and_degrees_of_freedom(dof: float) -> None:
    mean = covariance(3, np.random.default_rng(8))
    distribution = Wishart(mean, dof=dof)
    state = distribution.state()
    assert distribution.dof_of(state) == pytest.approx(dof, rel=1e-14, abs=0)
    close(distribution.mean_of(state), mean, 1e-12)
    assert np.isfinite(distribution.entropy(state))
    assert np.isfinite(distribution.log_density(state, mean))
    assert Wishart(mean).dof_of(Wishart(mean).state()) == pytest.approx(120)


def test_a_structure_starts_at_the_nearest_mean_that_it_can_hold() -> None:
    mean = covariance(4, np.random.default_rng(9))
    for structure in ("triangular", "triangular:upper", Full(4)):
        distribution = Wishart(mean, structure=structure)
        close(distribution.mean_of(distribution.state()), mean, 1e-10)
    diagonal = Wishart(mean, structure="diagonal")
    close(diagonal.mean_of(diagonal.state()), np.diag(np.diag(mean)), 1e-12)
    held = Wishart(mean, structure=Heisenberg(4, 1, 1))
    again = Wishart(held.mean_of(held.state()), structure=Heisenberg(4, 1, 1))
    close(again.mean_of(again.state()), held.mean_of(held.state()), 1e-8)


def test_an_ill_conditioned_mean_still_works() -> None:
    rng = np.random.default_rng(10)
    vectors = np.linalg.qr(rng.standard_normal((5, 5)))[0]
    mean = vectors * np.geomspace(1e-6, 1e6, 5) @ vectors.T
    mean = (mean + mean.T) / 2
    distribution = Wishart(mean, dof=30.0)
    state = distribution.state()
    assert np.abs(distribution.mean_of(state) - mean).max() < 1e-9 * 1e6
    samples = distribution.sample(state, 50, rng)
    assert np.linalg.eigvalsh(samples.points).min() > 0
    # in the smallest direction, too: v^T W^-1 v does not feel the large eigenvalues' rounding
    z = distribution.local(state, samples.points)
    assert np.abs(z - samples.factors).max() < 1e-3
    assert np.all(np.isfinite(distribution.log_density(state, samples.points)))


@on_every_group
def test_moves_follow_their_maps(distribution: Wishart, state: WishartState, rng: Rng) -> None:
    group = distribution.group
    step = WishartStep(np.array(0.3), local(group, rng, 0.3))
    root, m = group.dense(state.root), group.dense_local(step.m)
    moved = distribution.move(state, step, "exp")
    close(group.dense(moved.root), root @ expm(m))
    close(moved.b, state.b + 0.3)
    close(distribution.move(state, step).root, group.product_h(state.root, step.m))
    scaled = step.scaled(0.5)
    close(scaled.m, 0.5 * step.m)
    close(scaled.delta, 0.15)
    close(step.scaled(0.5, 2.0).delta, 0.6)


def test_a_distribution_is_its_fields_and_its_arrays_are_its_own() -> None:
    mean = np.array([[2.0, 0.5], [0.5, 1.0]])
    first = Wishart(mean, 9.0, "triangular")
    mean[0, 0] = 7.0
    assert first.mean[0, 0] == 2.0
    copy = pickle.loads(pickle.dumps(first))
    assert copy == first
    assert hash(copy) == hash(first)
    assert not copy.mean.flags.writeable
    assert first != Wishart(first.mean, 10.0, "triangular")
    assert first != Wishart(first.mean, 9.0)
    assert first != Wishart(2 * first.mean, 9.0, "triangular")
    assert first != "triangular"
    assert first.group == Triangular(2)
    assert first.shape == (2, 2)


GOOD = Wishart(np.eye(2))
STATE = GOOD.state()
BAD = [
    (lambda: Wishart([1.0, 2.0]), "mean must have shape"),
    (lambda: Wishart(np.ones((2, 3))), "mean must be a square matrix, got shape (2, 3)"),
    (lambda: Wishart(np.zeros((0, 0))), "mean must be a square matrix"),
    (lambda: Wishart([[1.0, 0.5], [0.4, 1.0]]), "mean must be symmetric, but differs from its transpose by 0.1"),
    (lambda: Wishart([[1.0, 2.0], [2.0, 1.0]]), "mean must be positive definite, but its smallest eigenvalue is -1"),
    (lambda: Wishart([[1.0, np.nan], [np.nan, 1.0]]), "mean must be finite"),
    (lambda: Wishart(np.eye(3), dof=2), "dof must be greater than p - 1 = 2, got 2"),
    (lambda: Wishart(np.eye(3), dof=math.inf), "dof must be a finite number"),
    (lambda: Wishart(np.eye(3), structure="fool"), "unknown structure 'fool'"),
    (lambda: Wishart(np.eye(3), structure=Full(2)), "structure must have dimension 3"),
    (lambda: GOOD.sample(STATE, -1, np.random.default_rng(0)), "n must be an integer >= 0"),
    (lambda: GOOD.sample(WishartState(np.array(np.nan), STATE.root), 1, np.random.default_rng(0)), "state.b must be"),
    (lambda: GOOD.mean_of(WishartState(STATE.b, np.ones(3))), "state.root must have shape (4,)"),
    (lambda: GOOD.dof_of(WishartState(np.array(-800.0), STATE.root)), "state.b must be greater than -700, got -800"),
    (lambda: GOOD.log_density(STATE, np.eye(3)), "points must have shape (2, 2)"),
    (lambda: GOOD.log_density(STATE, [[1.0, 0.5], [0.1, 1.0]]), "points must be symmetric"),
    (lambda: GOOD.log_density(STATE, [np.eye(2), [[1, 3], [3, 1]]]), "points[1] must be positive definite"),
    (lambda: GOOD.log_density(STATE, [[1, 3], [3, 1]]), "points must be positive definite, but its smallest"),
    (lambda: GOOD.natural_score(STATE, np.eye(2)[None], [1.0, 2.0]), "weights must have shape (1,)"),
    (lambda: GOOD.natural_score(STATE, np.ones((1, 2, 2)), [1.0]), "factors must be lower triangular"),
    (lambda: GOOD.natural_gradient(STATE, np.eye(2)[None], np.eye(2)), "gradients must have shape (1, 2, 2)"),
    (lambda: GOOD.natural_gradient(STATE, np.ones((0, 2, 2)), np.ones((0, 2, 2))), "factors must have at least one"),
    (lambda: GOOD.natural_gradient_at_mean(STATE, [[1, 2], [3, 4]]), "gradient must be symmetric"),
    (lambda: GOOD.move(STATE, WishartStep(np.array(0.0), np.ones(3))), "step.m must have shape (4,)"),
    (lambda: GOOD.move(STATE, WishartStep(np.array(0.0), np.ones(4)), "linear"), "map must be 'h' or 'exp'"),
]


@pytest.mark.parametrize(("call", "message"), BAD, ids=[m for _, m in BAD])
def test_bad_input_is_named(call, message: str) -> None:
    with pytest.raises(ValueError) as caught:
        call()
    assert message in str(caught.value)


def test_a_generator_is_needed_and_the_global_one_is_not_touched() -> None:
    before = np.random.get_state()[1].copy()
    GOOD.sample(STATE, 3, np.random.default_rng(0))
    assert np.array_equal(before, np.random.get_state()[1])
    for rng in (None, 0, np.random.RandomState(0)):
        with pytest.raises(TypeError, match="rng must be a Generator"):
            GOOD.sample(STATE, 3, rng)
    with pytest.raises(TypeError, match="state must be a WishartState"):
        GOOD.mean_of((STATE.b, STATE.root))
