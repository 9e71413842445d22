"""Weights and rates against the table of the CMA-ES tutorial and against other libraries."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import chi as chi_distribution

from esgroup.groups import Diagonal, Full, Group, Heisenberg, Triangular
from esgroup.strategies import rates
from esgroup.strategies.recombination import Constants, Cumulative, Published
from tests.groups.laws import close
from tests.strategies import dense

# (n, lambda): even and odd, few and many values
SIZES = [(2, 6), (2, 40), (3, 7), (10, 10), (10, 11), (20, 12), (40, 100), (5, 2), (1, 4)]

# Hansen, The CMA Evolution Strategy: A Tutorial, arXiv 1604.00772 (2023), table 1, worked out by hand for n = 10,
# lambda = 10: eqs. 49 (raw weights), 53 (positive ones), 8 (mu_eff), 55-58
TABLE = {
    "weights": [0.4562726469, 0.2707530970, 0.1622311172, 0.0852335471, 0.0255095918],
    "mu_eff": 3.1672992814,
    "c_s": 0.2844285879,
    "d_s": 1.2844285879,
    "c_c": 0.2949903830,
    "c_1": 0.0152838245,
    "c_mu": 0.0235517767,
}


def positive_and_negative(popsize: int) -> tuple[list[float], list[float]]:
    raw = [math.log((popsize + 1) / 2) - math.log(i) for i in range(1, popsize + 1)]
    return raw[: popsize // 2], raw[popsize // 2 :]


def mu_effective(weights: list[float]) -> float:
    return sum(weights) ** 2 / sum(w * w for w in weights)


def full(n: int) -> int:
    return n * (n + 1) // 2


def weights_of(popsize: int, n: int, dof: int, negative_mean: float | None) -> rates.RankWeights:
    c_1, c_mu = rates.root_rates(n, dof, rates.effective(rates.halves(popsize)[0]))
    return rates.recombination(popsize, n, c_1, c_mu, negative_mean)


def constants(
    n: int, popsize: int, dof: int | None = None, negative_mean: float = 0.0, damping: float = 1.0
) -> Constants:
    return Cumulative(negative_mean, damping).constants(popsize, n, full(n) if dof is None else dof)


def test_the_table_for_ten_coordinates_and_ten_values() -> None:
    weights = weights_of(10, 10, 55, 0.0)
    close(weights.mean, TABLE["weights"] + 5 * [0.0], 1e-9)
    close(weights.root[:5], TABLE["weights"], 1e-9)
    close(weights.mu_eff, TABLE["mu_eff"], 1e-9)
    close(rates.step_size_rates(10, weights.mu_eff), (TABLE["c_s"], TABLE["d_s"]), 1e-9)
    close(rates.path_rate(10, weights.mu_eff), TABLE["c_c"], 1e-9)
    c_1, c_mu = rates.root_rates(10, 55, weights.mu_eff)
    close(c_mu, TABLE["c_mu"], 1e-9)
    close(c_1, TABLE["c_1"], 1e-4)  # 2 m + 1.6 n + 1.7 has 1.7 where (n + 1.3)^2 has 1.69


@pytest.mark.parametrize(("n", "popsize"), SIZES)
def test_rates_of_the_full_group_are_the_tutorials(n: int, popsize: int) -> None:
    mu_eff = mu_effective(positive_and_negative(popsize)[0])
    c_1, c_mu = rates.root_rates(n, full(n), mu_eff)
    assert c_1 == pytest.approx(2 / ((n + 1.3) ** 2 + mu_eff), rel=2e-3)  # eq. 57; 1.7 for 1.69
    assert c_1 == pytest.approx(2 / ((n + 1.3) ** 2 + 0.01 + mu_eff), rel=1e-13)
    raw = 2 * (1 / 4 + mu_eff + 1 / mu_eff - 2) / ((n + 2) ** 2 + 2 * mu_eff / 2)  # eq. 58
    assert c_mu == pytest.approx(min(0.95 - c_1, raw), rel=1e-13)  # a twentieth of the covariance stays
    assert rates.path_rate(n, mu_eff) == pytest.approx((4 + mu_eff / n) / (n + 4 + 2 * mu_eff / n), rel=1e-13)
    c_s = min(0.5, (mu_eff + 2) / (n + mu_eff + 5))  # the limit is pycma's
    d_s = 1 + 2 * max(0.0, math.sqrt((mu_eff - 1) / (n + 1)) - 1) + c_s
    assert rates.step_size_rates(n, mu_eff) == pytest.approx((c_s, d_s), rel=1e-13)


@pytest.mark.parametrize(("n", "popsize"), SIZES)
@pytest.mark.parametrize("negative_mean", [0.0, 0.3, 1.0])
def test_weights_are_the_tutorials_with_negative_ones_for_the_mean(
    n: int, popsize: int, negative_mean: float
) -> None:
    plus, minus = positive_and_negative(popsize)
    mu_eff, mu_eff_minus = mu_effective(plus), mu_effective(minus)
    c_1, c_mu = rates.root_rates(n, full(n), mu_eff)
    limits = 1 + c_1 / c_mu, 1 + 2 * mu_eff_minus / (mu_eff + 2), (1 - c_1 - c_mu) / (n * c_mu)  # eqs. 50-52
    weights = weights_of(popsize, n, full(n), negative_mean)
    better, worse = np.array(plus) / sum(plus), np.array(minus) / -sum(minus)
    close(weights.root, np.concatenate([better, min(limits) * worse]), 1e-12)  # eq. 53
    close(weights.mean, np.concatenate([better, negative_mean * worse]), 1e-12)
    assert weights.mu_eff == pytest.approx(mu_eff, rel=1e-12)
    assert weights.mean_mu_eff == pytest.approx(1 / sum(u * u for u in weights.mean), rel=1e-12)
    if negative_mean == 0.0:
        assert weights.mean_mu_eff == pytest.approx(mu_eff, rel=1e-12)
    assert not weights.mean.flags.writeable and not weights.root.flags.writeable


def test_each_limit_of_the_negative_weights_is_met_somewhere() -> None:
    """At these sizes each of the three limits is the smallest once, so that the test above compares all of them."""
    met = set()
    for n, popsize in [*SIZES, (10, 40), (2, 30)]:
        plus, minus = positive_and_negative(popsize)
        c_1, c_mu = rates.root_rates(n, full(n), mu_effective(plus))
        limits = [1 + c_1 / c_mu, 1 + 2 * mu_effective(minus) / (mu_effective(plus) + 2)]
        limits.append((1 - c_1 - c_mu) / (n * c_mu))
        met.add(int(np.argmin(limits)))
        close(-weights_of(popsize, n, full(n), 0.0).root[popsize // 2 :].sum(), min(limits))
    assert met == {0, 1, 2}


@pytest.mark.parametrize("n", [1, 2, 3, 10, 200, 10_000])
def test_the_expected_length_is_that_of_a_normal_vector(n: int) -> None:
    assert rates.expected_norm(n) == pytest.approx(chi_distribution(n).mean(), rel=1e-9)
    if n <= 10:
        integral = quad(lambda r: r * chi_distribution(n).pdf(r), 0, np.inf)[0]
        assert rates.expected_norm(n) == pytest.approx(integral, rel=1e-8)
    series = math.sqrt(n) * (1 - 1 / (4 * n) + 1 / (21 * n * n))  # the tutorial's approximation
    assert rates.expected_norm(n) == pytest.approx(series, rel=0.02 / n**2)


@pytest.mark.parametrize("group", [Full(6), Triangular(6), Diagonal(6), Heisenberg(6, 2, 1)], ids=str)
@pytest.mark.parametrize(("negative_mean", "damping"), [(0.0, 1.0), (0.35, 0.6)])
def test_the_numbers_of_a_generation_follow_from_sizes_and_degrees_of_freedom(
    group: Group, negative_mean: float, damping: float
) -> None:
    k = dense.numbers(6, 9, group.dof, negative_mean, damping)
    found = constants(6, 9, group.dof, negative_mean, damping)
    close(found.mean_weights, k.u)
    close(found.root_weights, k.w)
    close(found.kernel, [k.c_s, k.c_c, k.c_1, k.c_mu, k.mean_mu_eff, (1.4 + 2 / 7) * dense.chi(6), 1])
    close([found.drive, found.chi, found.threshold], [k.c_s / k.d_s, dense.chi(6), 1.4 + 2 / 7])
    close(found.decoding, [k.c_mud / k.c_mu, k.c_1d / k.c_1, k.c_mud * k.w.sum(), k.c_1d, k.least])
    close((found.c_s, found.gain_s), (k.c_s, math.sqrt(k.c_s * (2 - k.c_s) * k.mean_mu_eff)))
    assert not found.kernel.flags.writeable


@pytest.mark.parametrize("n", [2, 7, 40])
def test_rates_of_a_group_follow_from_its_degrees_of_freedom(n: int) -> None:
    """2 m for n (n + 1) in the tutorial's squares, and twice c_mu or more where there is less to learn."""
    for dof in {1, n, 2 * n - 1, full(n) - 1, full(n)}:
        c_1, c_mu = rates.root_rates(n, dof, 3.5)
        assert c_1 == pytest.approx(2 / (2 * dof + 1.6 * n + 1.7 + 3.5), rel=1e-13)
        more = min(5 if dof <= n else 2, n * (n + 1) / (2 * dof))
        raw = 2 * more * (0.25 + 3.5 + 1 / 3.5 - 2) / (2 * dof + 3 * n + 4 + 3.5)
        assert c_mu == pytest.approx(min(0.95 - c_1, raw), rel=1e-13)  # a twentieth of the covariance stays


def test_fewer_degrees_of_freedom_are_learned_faster_and_never_too_fast() -> None:
    for n in (1, 4, 30):
        for popsize in (2, 3, 8, 60, 3000):
            mu_eff = mu_effective(positive_and_negative(popsize)[0])
            found = [rates.root_rates(n, dof, mu_eff) for dof in range(full(n), 0, -max(1, n // 2))]
            assert found == sorted(found, key=lambda c: c[0])
            assert all(c_1 > 0 and c_mu > 0 and c_1 + c_mu <= 1 for c_1, c_mu in found)
            c_1d, c_mud, least = rates.decoding_rates(n, mu_eff)
            assert 0 < least <= 1
            assert 0 < c_1d <= 0.5 and 0 < c_mud <= 0.5 and c_1d + c_mud <= 1


def test_utilities_are_those_of_natural_evolution_strategies() -> None:
    """Wierstra et al. 2014: u_k = max(0, log(lambda/2 + 1) - log k) / sum - 1 / lambda."""
    raw = [max(0.0, math.log(4.5) - math.log(k)) for k in range(1, 8)]
    close(rates.utilities(7), [r / sum(raw) - 1 / 7 for r in raw])
    assert rates.utilities(7).sum() == pytest.approx(0.0, abs=1e-15)


@pytest.mark.parametrize("n", [3, 4, 10, 50])
def test_rates_of_the_published_update_are_those_of_xnes_and_snes(n: int) -> None:
    """The defaults of Wierstra et al. 2014."""
    assert rates.utility_rate(n, full(n)) == pytest.approx((9 + 3 * math.log(n)) / (5 * n * math.sqrt(n)), rel=1e-13)
    assert rates.utility_rate(n, n) == pytest.approx((3 + math.log(n)) / (5 * math.sqrt(n)), rel=1e-13)
    half_way = rates.utility_rate(n, n + 2)
    assert rates.utility_rate(n, full(n)) <= half_way <= rates.utility_rate(n, n)
    found = Published().constants(8, n, full(n))
    close(found.mean_weights, rates.utilities(8))
    close(found.root_weights, rates.utilities(8))


# ---- other libraries --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "popsize"), [(4, 8), (10, 10), (20, 13), (40, 60)])
def test_weights_and_rates_agree_with_cma_where_it_follows_the_tutorial(n: int, popsize: int) -> None:
    """pycma differs: its c_s has n + mu_eff + 3, its d_s further terms for many values, its c_1 min(1, lambda / 6)."""
    cma = pytest.importorskip("cma")
    search = cma.CMAEvolutionStrategy(n * [0.0], 1.0, {"popsize": popsize, "verbose": -9})
    theirs, step_size = search.sp, search.adapt_sigma
    step_size.initialize(search)
    ours = weights_of(popsize, n, full(n), 0.0)
    c_1, c_mu = rates.root_rates(n, full(n), ours.mu_eff)
    close(ours.root[: popsize // 2], theirs.weights[: popsize // 2], 1e-12)
    close(ours.root, theirs.weights, 1e-4)  # its negative weights contain c_1
    close((ours.mu_eff, c_mu, rates.path_rate(n, ours.mu_eff)), (theirs.weights.mueff, theirs.cmu, theirs.cc), 1e-12)
    assert c_1 == pytest.approx(theirs.c1, rel=1e-3)  # 1.7 for 1.69
    c_s, d_s = rates.step_size_rates(n, ours.mu_eff)
    assert step_size.cs == pytest.approx((ours.mu_eff + 2) / ((ours.mu_eff + 2) / c_s - 2), rel=1e-12)
    if popsize < 20:
        assert d_s - c_s == pytest.approx(step_size.damps - step_size.cs, rel=1e-12)


@pytest.mark.parametrize(("n", "popsize"), [(4, 8), (10, 10), (20, 13), (40, 60)])
def test_weights_and_rates_agree_with_cmaes_where_it_follows_the_tutorial(n: int, popsize: int) -> None:
    """Not compared: its c_mu has the 2016 tutorial's mu_eff - 2 where the revision has mu_eff - 1.75."""
    cmaes = pytest.importorskip("cmaes")
    theirs = cmaes.CMA(np.zeros(n), 1.0, population_size=popsize)
    ours = weights_of(popsize, n, full(n), 0.0)
    close(ours.mean[: popsize // 2], theirs._weights[: popsize // 2], 1e-12)
    close(rates.step_size_rates(n, ours.mu_eff), (theirs._c_sigma, theirs._d_sigma), 1e-12)
    close((ours.mu_eff, rates.path_rate(n, ours.mu_eff)), (theirs._mu_eff, theirs._cc), 1e-12)
    assert rates.root_rates(n, full(n), ours.mu_eff)[0] == pytest.approx(theirs._c1, rel=1e-3)
    assert rates.expected_norm(n) == pytest.approx(theirs._chi_n, rel=0.02 / n**2)


def test_a_large_population_damps_more_and_leaves_the_worse_half_out() -> None:
    """At the default population nothing changes; between, both follow mu_eff / n."""
    assert [rates.damping_factor(n, 0.4 * n) for n in (2, 10, 100)] == [0.7] * 3
    assert rates.damping_factor(20, 20.0) == pytest.approx(0.85, rel=1e-14)
    assert [rates.damping_factor(n, 1.6 * n) for n in (2, 10, 100)] == [1.0] * 3
    assert rates.negative_share(10, 33.0) == 0.4
    assert rates.negative_share(10, 100.0) == pytest.approx(0.4 / 3, rel=1e-14)
    assert rates.negative_share(2, 5.0) == 0.0


@pytest.mark.parametrize(("n", "popsize"), [(2, 6), (5, 8), (10, 10), (10, 512), (100, 17)])
def test_the_flow_is_taken_where_the_rates_are_large(n: int, popsize: int) -> None:
    constants = Cumulative().constants(popsize, n, full(n))
    assert constants.flows == (constants.kernel[2] + constants.kernel[3] > 0.1)
    assert constants.kernel[2] + constants.kernel[3] <= 0.95


@pytest.mark.parametrize("group", [Full, Diagonal, Triangular], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("n", [1, 2, 5, 20, 100])
@pytest.mark.parametrize("popsize", [3, 8, 17, 100, 1024, 20_000])
def test_no_samples_make_an_additive_step_singular(n: int, popsize: int, group: type[Group]) -> None:
    """At worst all samples of negative weight, of length sqrt(n), point in one direction, and no other one does."""
    dof = group(n).dof
    weights = weights_of(popsize, n, dof, None)
    c_1, c_mu = rates.root_rates(n, dof, weights.mu_eff)
    kept = 1 - c_1 - c_mu * weights.root.sum()
    assert kept + n * c_mu * np.minimum(weights.root, 0.0).sum() > 0
