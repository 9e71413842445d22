"""Searches with univariate families: one generation written out, the Gaussian search as a special case, then optima."""

import math
from typing import Any

import numpy as np
import pytest

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
from esgroup.groups import Diagonal
from esgroup.search.searcher import Searcher
from esgroup.strategies import rates
from esgroup.strategies.base import Ranked
from esgroup.strategies.evolution import Evolution, Generation
from esgroup.strategies.in_domain import elsewhere
from esgroup.strategies.univariate import UnivariateSearch, UnivariateSearchState
from tests.groups.laws import close
from tests.strategies import dense

ALL = (
    Gamma(2.0, 1.0), Beta(2.0, 3.0), Wald(2.0, 5.0), Normal(1.0, 2.0), PoissonPower(3.0, 1.5), Exponential(0.5),
    Weibull(2.0, 1.5), Pareto(2.0, 1.0), Laplace(1.0, 0.5), Bernoulli(0.4), Poisson(3.0),
)  # fmt: skip
MIXED = Product(ALL)


def searched(strategy: UnivariateSearch, f, seed: int, max_evals: int, target: float):
    """Return the evaluations, the best value and the last state."""
    rng, state, evals, best = np.random.default_rng(seed), strategy.start(), 0, np.inf
    while evals < max_evals and best > target:
        drawn = strategy.sample(state, strategy.popsize, rng)
        values = f(drawn.points)
        evals, best = evals + len(values), min(best, float(values.min()))
        state = strategy.update(state, Ranked(drawn.local, np.argsort(values, kind="stable")))
    return evals, best, state


def natural(strategy: UnivariateSearch, state: UnivariateSearchState) -> np.ndarray:
    return strategy._tau(state)


# ---- laws ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dim", [1, 3])
def test_normals_are_searched_as_by_a_gaussian_with_the_diagonal_group_step_by_step(dim: int) -> None:
    rng, n = np.random.default_rng(4), 7
    means, stds = rng.standard_normal(dim), np.exp(rng.standard_normal(dim))
    strategy = UnivariateSearch(Product(tuple(Normal(m, s) for m, s in zip(means, stds, strict=True))))
    evolution = Evolution(Diagonal(dim))
    state, other = strategy.start(), evolution.start(means, stds)
    for scale in (1.0, 1.0, 3.0, 0.2, 1.0, 6.0, 1.0):  # the long ones stop p_c and are clipped
        generation, x = Generation.empty(n, dim), np.empty((n, dim))
        generation.z[:n] = scale * rng.standard_normal((n, dim)) + (scale - 1) / 2
        evolution.place(other, generation, x)
        order = rng.permutation(n)
        local = strategy.local(state, x)
        close(local, np.hstack([generation.z[:n], generation.z[:n] ** 2]), 1e-9)
        evolution.update(other, generation, order)
        state = strategy.update(state, Ranked(local, order))
        close(state.path_s, other.path_s, 1e-9)
        close(state.path_c, other.path_c, 1e-9)
        close(strategy.mean(state), other.mean, 1e-9)
        close(np.log(strategy.stds(state)), np.log(evolution.variances(other)) / 2, 1e-9)


def test_one_generation_is_the_published_update_in_the_coordinates_of_the_families() -> None:
    """Scores come from T, m and F of the public methods; rates and the move of tau are written out."""
    families = (Gamma(9.0, 3.0), Exponential(0.5), Beta(8.0, 5.0), Bernoulli(0.45), Wald(2.0, 30.0))
    strategy, rng, n = UnivariateSearch(Product(families)), np.random.default_rng(8), 9
    state = strategy.start()
    state = state._replace(path_s=rng.standard_normal(3), path_c=rng.standard_normal(3), fade=np.array(0.3))
    points, order = strategy.sample(state, n, rng).points, rng.permutation(n)
    moved = strategy.update(state, Ranked(strategy.local(state, points), order))

    k = dense.numbers(3, n, 3, 0.5 - 1 / 3, rates.damping_factor(3, dense.numbers(3, n, 3).mu_eff))
    rate = 0.5 * (3 + math.log(5)) / (5 * math.sqrt(5))
    shifts, zs, ys = [], [], []
    for family, w in zip(families, points[order].T, strict=True):
        s = family.state()
        tau, m, fisher = family.natural(s), family.expectation(s), family.fisher(s)
        u, v = fisher @ tau if len(tau) == 2 else (0.0, 1.0)
        direction = np.array([v, -u])[: len(tau)]
        if isinstance(family, Gamma):
            direction = np.array([0.0, 1.0])  # where u and v are rounding errors of 0
        if isinstance(family, Wald):
            direction = np.array([1.0, 0.0])
        direction = direction / math.sqrt(direction @ fisher @ direction)
        centerd = family.statistics(w) - m
        z = centerd @ direction
        change = (k.u @ z) * direction * (1.0 if len(tau) == 2 else rate)
        shifts.append(tau + change if isinstance(family, Bernoulli) else tau * np.exp(change / tau))
        if len(tau) == 2:
            zs.append(-z if isinstance(family, (Gamma, Wald)) else z)  # a larger w is a larger z
            ys.append(1 - centerd @ tau / (tau @ fisher @ tau))
    z, y = np.array(zs).T, np.array(ys).T
    delta = k.u @ z
    path_s = (1 - k.c_s) * state.path_s + math.sqrt(k.c_s * (2 - k.c_s) * k.mean_mu_eff) * delta
    length, fade = np.linalg.norm(path_s), 0.3 * (1 - k.c_s) ** 2
    steady = length / math.sqrt(1 - fade) < (1.4 + 2 / 4) * dense.chi(3)
    path_c = (1 - k.c_c) * state.path_c + steady * math.sqrt(k.c_c * (2 - k.c_c) * k.mean_mu_eff) * delta
    w = np.where(k.w < 0, k.w * 3 / y.sum(axis=1), k.w)
    pull = 1 if steady else 1 - k.c_c * (2 - k.c_c)
    m = 0.5 * (k.c_1 * (path_c**2 - pull) + k.c_mu * (w @ y - k.w.sum()))
    m /= max(1, (k.c_1 * path_c**2 + k.c_mu * np.abs(w) @ y).max())
    assert k.c_1 + k.c_mu > 0.1  # the widths take the whole flow
    width = np.exp(min(1, k.c_s / k.d_s * (length / dense.chi(3) - 1))) * np.sqrt(1 + 2 * m)
    for index, factor in zip((0, 2, 4), width, strict=True):
        shifts[index] = shifts[index] * factor**-2
    close(natural(strategy, moved), np.concatenate(shifts), 1e-8)
    close(moved.path_s, path_s, 1e-8)
    close(moved.path_c, path_c, 1e-8)
    close(moved.fade, fade)


@pytest.mark.parametrize("family", ALL, ids=lambda family: type(family).__name__)
def test_a_short_step_follows_the_direction_of_the_location(family) -> None:
    tau = np.array(family._natural())
    direction = np.array(family._location(tau.tolist()))
    moved = UnivariateSearch(family)._shifted(tau, np.array([1e-6]))
    np.testing.assert_allclose((moved - tau) / 1e-6, direction, rtol=1e-4, atol=1e-9)


def test_an_update_changes_none_of_its_arguments() -> None:
    strategy, rng = UnivariateSearch(MIXED), np.random.default_rng(0)
    state = strategy.start()
    drawn = strategy.sample(state, 9, rng)
    before = [array.copy() for array in (*state, *drawn[:2])]
    after = strategy.update(state, Ranked(drawn.local, np.arange(9)))
    for array, copy in zip((*state, *drawn[:2]), before, strict=True):
        assert np.array_equal(array, copy)
    assert not np.array_equal(after.unconstrained, state.unconstrained)
    assert all(array.dtype == np.float64 for array in after)
    close(strategy.local(state, drawn.points), drawn.local, 1e-12)
    assert strategy.update(state, Ranked(drawn.local[:1], np.arange(1))) is state  # a single point has no rank


@pytest.mark.parametrize("make", [
    lambda c: Gamma(3.0, 2.0 / c), lambda c: Wald(1.5 * c, 4.0 * c), lambda c: Exponential(2.0 / c),
    lambda c: Weibull(2.0 * c, 1.3), lambda c: Pareto(2.0, c), lambda c: Laplace(c, 0.0), lambda c: Normal(2 * c, c),
], ids=["gamma", "wald", "exponential", "weibull", "pareto", "laplace", "normal"])  # fmt: skip
def test_another_unit_changes_nothing_but_the_unit(make) -> None:
    unit = 2.0**40
    strategies = [UnivariateSearch(make(1.0)), UnivariateSearch(make(unit))]
    states, rngs = [s.start() for s in strategies], [np.random.default_rng(3) for _ in strategies]
    for _ in range(15):
        drawn = [s.sample(state, 6, rng) for s, state, rng in zip(strategies, states, rngs, strict=True)]
        np.testing.assert_allclose(drawn[1].points / unit, drawn[0].points, rtol=1e-6)
        order = np.argsort(np.abs(drawn[0].points[:, 0] - 2.7), kind="stable")
        states = [s.update(x, Ranked(d.local, order)) for s, x, d in zip(strategies, states, drawn, strict=True)]


def test_without_selection_paths_keep_unit_variance_and_locations_do_not_drift() -> None:
    strategy, rng = (
        UnivariateSearch(Product((Gamma(3.0, 1.0), Beta(2.0, 4.0), Wald(1.0, 3.0)))),
        np.random.default_rng(1),
    )
    state, n, count = strategy.start(), 9, 1500
    paths, shifts = np.empty((count, 3)), np.empty((count, 3))
    for i in range(count):
        placed = state._replace(path_s=rng.standard_normal(3), fade=np.zeros(()))
        moved = strategy.update(placed, Ranked(strategy.sample(placed, n, rng).local, np.arange(n)))
        paths[i] = moved.path_s
        shifts[i] = np.log(strategy.mean(moved) / strategy.mean(state))
    for zero in (paths, paths**2 - 1):
        assert np.abs(zero.mean(axis=0) / (zero.std(axis=0) / math.sqrt(count))).max() < 5
    # steps are straight in tau, so that the drift of the log mean is of second order: a tenth of its deviation
    assert np.abs(shifts.mean(axis=0) / shifts.std(axis=0)).max() < 0.15


# ---- ends ---------------------------------------------------------------------------------------------------------


def test_points_from_far_away_move_the_search_but_do_not_break_it() -> None:
    strategy = UnivariateSearch(MIXED)
    state = strategy.start()
    far = [1e30, 1 - 1e-16, 1e-30, -1e12, 1e6, 1e30, 1e30, 1e30, 1e30, 1.0, 1e9]
    near = [1e-30, 1e-30, 1e30, 1e12, 0.0, 0.0, 1e-30, 1.0, 0.5, 0.0, 0.0]
    for _ in range(50):
        local = strategy.local(state, np.array([far, near, far, near]))
        state = strategy.update(state, Ranked(local, np.arange(4)))
        assert all(np.isfinite(array).all() for array in state)
        assert np.isfinite(strategy.stds(state)).all()
        strategy.domain.check("X", strategy.sample(state, 20, np.random.default_rng(0)).points)


@pytest.mark.parametrize("family", ALL, ids=lambda family: type(family).__name__)
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_an_optimum_at_the_end_of_the_domain_is_approached_with_finite_numbers(family, sign: float) -> None:
    strategy = UnivariateSearch(family)
    _, best, state = searched(strategy, lambda x: sign * x[:, 0], 2, 3000, -math.inf)
    assert all(np.isfinite(array).all() for array in state)
    strategy.domain.check("X", strategy.mean(state)[None])
    ends = {
        Gamma: 0,
        Beta: 0,
        Wald: 0,
        Exponential: 0,
        Weibull: 0,
        Pareto: 1,
        Bernoulli: 0,
        Poisson: 0,
        PoissonPower: 0,
    }
    if sign > 0 and type(family) in ends:
        assert best - ends[type(family)] < 1e-15
    if sign < 0 and isinstance(family, (Beta, Bernoulli)):
        assert best + 1 < 1e-14


def test_a_search_at_the_limits_of_float64_gives_a_reason_to_stop() -> None:
    strategy = UnivariateSearch(Gamma(1.0, 1.0))
    assert strategy.criteria[1].look(strategy.start(), strategy.stds(strategy.start())) == {}
    _, _, state = searched(strategy, lambda x: x[:, 0], 0, 6000, -math.inf)
    assert list(strategy.criteria[1].look(state, strategy.stds(state))) == ["limit"]
    _, _, state = searched(strategy, lambda x: np.abs(x[:, 0] - 3), 0, 3000, -math.inf)
    assert list(strategy.criteria[1].look(state, strategy.stds(state))) == ["width"]


def test_discrete_numbers_keep_a_probability_for_every_value() -> None:
    strategy = UnivariateSearch(Product((Bernoulli(0.5), Poisson(5.0), PoissonPower(5.0))), 10)
    _, _, state = searched(strategy, lambda x: x @ [1.0, 1.0, 0.0] + np.abs(x[:, 2] - 7), 1, 5000, -math.inf)
    bernoulli, poisson, power = strategy.view(state).fields()["distribution"].families
    assert bernoulli.probability == pytest.approx(1 / 30, rel=0.3)  # 1 / (n k), and above
    assert bernoulli.probability >= 1 / 30 - 1e-12
    assert poisson.rate >= 1 / 30 - 1e-12
    assert math.floor(power.rate) == 7
    likely = np.exp(power.log_density(power.state(), [6.0, 7.0, 8.0]))
    assert likely[1] > 0.5
    assert likely[[0, 2]].max() > 1e-2


# ---- what is known ------------------------------------------------------------------------------------------------


def test_sizes_and_descriptions() -> None:
    single, several = UnivariateSearch(Gamma(4.0, 2.0)), UnivariateSearch(MIXED, 20)
    assert (single.shape, single.size, single.popsize) == ((1,), 1, 6)
    assert (several.shape, several.size, several.popsize) == ((11,), 11, 20)
    close(single.mean(single.start()), [2.0])
    close(single.stds(single.start()), [1.0])
    assert isinstance(single.view(single.start()).fields()["distribution"], Gamma)
    assert isinstance(several.view(several.start()).fields()["distribution"], Product)
    several.domain.check("X", several.mean(several.start())[None])  # the middle is a point of the space
    heavy = UnivariateSearch(Pareto(1.0, 3.0))
    assert np.isfinite([heavy.mean(heavy.start()), heavy.stds(heavy.start())]).all()
    close(heavy.mean(heavy.start()), [6.0])  # the median


def test_bad_input_is_refused() -> None:
    with pytest.raises(TypeError, match=r"distribution .*univariate.* Product.* 3$"):
        UnivariateSearch(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"popsize_wanted .*>= 2.* 1$"):
        UnivariateSearch(Gamma(), 1)
    strategy = UnivariateSearch(Product((Gamma(), Bernoulli())))
    with pytest.raises(ValueError, match=r"X\[:, 1\] .*0 or 1.* Bernoulli.* 0.5 at index 1"):
        strategy.domain.check("X", np.array([[1.0, 0.0], [1.0, 0.5]]))
    with pytest.raises(ValueError, match=r"X .*\(n, 2\).* \(1, 3\)"):
        strategy.domain.check("X", np.ones((1, 3)))
    with pytest.raises(ValueError, match=r"X .*finite"):
        strategy.domain.check("X", np.array([[math.nan, 0.0]]))


# ---- optima -------------------------------------------------------------------------------------------------------


def ratio(x0: float):
    """x / x0 - 1 - log(x / x0): an asymmetric function of positive numbers, least and 0 at x0."""
    return lambda x: x[:, 0] / x0 - 1 - np.log(x[:, 0] / x0)


def divergence(p: float):
    """The divergence of two Bernoulli distributions, least and 0 at p."""
    return lambda x: p * np.log(p / x[:, 0]) + (1 - p) * np.log((1 - p) / (1 - x[:, 0]))


def skewed(x0: float):
    """e^t - 1 - t with t = x - x0."""
    return lambda x: np.expm1(np.minimum(x[:, 0] - x0, 700)) - (x[:, 0] - x0)


@pytest.mark.parametrize("family, f", [
    (Gamma(1.0, 1.0), ratio(37.0)), (Gamma(100.0, 100.0), ratio(1e5)), (Wald(1.0, 4.0), ratio(1e-4)),
    (Beta(1.0, 1.0), divergence(0.83)), (Beta(50.0, 50.0), divergence(0.003)), (Normal(0.0, 1.0), skewed(7.0)),
    (PoissonPower(3.0), skewed(60.0)),
], ids=lambda part: "" if callable(part) else str(part))  # fmt: skip
def test_families_that_concentrate_find_an_optimum_to_twelve_digits(family, f) -> None:
    for seed in range(100, 105):
        assert searched(UnivariateSearch(family), f, seed, 1000, 1e-12)[1] <= 1e-12


@pytest.mark.parametrize("family, f", [
    (Exponential(1.0), ratio(37.0)), (Weibull(1.0, 3.0), ratio(37.0)), (Pareto(1.0, 1.0), ratio(37.0)),
    (Laplace(1.0, 0.0), skewed(-3.7)), (Poisson(1.0), skewed(40.0)), (Bernoulli(0.7), lambda x: x[:, 0]),
], ids=lambda part: "" if callable(part) else str(part))  # fmt: skip
def test_families_of_one_parameter_find_it_as_the_best_of_many_samples(family, f) -> None:
    for seed in range(100, 105):
        assert searched(UnivariateSearch(family, 20), f, seed, 10_000, 1e-4)[1] <= 1e-4


def test_a_mixed_product_finds_a_scale_a_probability_and_a_count_at_once() -> None:
    strategy = UnivariateSearch(Product((Gamma(1.0, 1.0), Beta(1.0, 1.0), PoissonPower(3.0))))

    def f(x):
        return ratio(0.02)(x) + divergence(0.97)(x[:, 1:]) + skewed(7.0)(x[:, 2:]) / 10

    for seed in range(100, 105):
        _, best, state = searched(strategy, f, seed, 2000, 1e-6)
        assert best <= 1e-6
        assert strategy.mean(state)[2] == 7


# ---- minima of any size -------------------------------------------------------------------------------------------


def to_the_end(family: Any, fun: Any) -> Searcher:
    search = Searcher(family, rng=1)
    while not search.stop():
        search.tell([fun(float(x[0])) for x in search.ask()])
        assert search.nfev < 30_000
    return search


@pytest.mark.parametrize("family", [Gamma(4.0, 4.0), Wald(1.0, 4.0)])
@pytest.mark.parametrize("wanted", [1e-100, 1e-20, 1e20, 1e100])
def test_a_positive_number_of_any_size_is_found(family: Any, wanted: float) -> None:
    """On the way there the width falls or grows with the mean, which is neither a contraction nor a divergence."""
    search = to_the_end(family, lambda w: abs(math.log(w / wanted)))
    assert search.result.success and search.best_x[0] == pytest.approx(wanted, rel=1e-9, abs=0)


@pytest.mark.parametrize(
    "family", [Gamma(4.0, 4.0), Wald(1.0, 4.0), Beta(2.0, 2.0), Exponential(1.0), Weibull(1.0, 2.0)]
)
def test_a_success_is_a_minimum_below_the_first_width(family: Any) -> None:
    search = to_the_end(family, lambda w: (w - 1e-20) ** 2)
    assert search.best_x[0] == pytest.approx(1e-20, rel=1e-2, abs=0)
    assert not search.result.success or search.best_x[0] == pytest.approx(1e-20, rel=1e-9, abs=0)


@pytest.mark.parametrize("family", [Gamma(4.0, 4.0), Wald(1.0, 4.0), Exponential(1.0), Weibull(1.0, 2.0)])
def test_the_end_of_a_half_line_is_a_success_and_infinity_is_none(family: Any) -> None:
    near, far = to_the_end(family, lambda w: w), to_the_end(family, lambda w: -w)
    assert list(near.stop()) == ["limit"] and near.result.success and near.best_x[0] < 1e-60
    assert list(far.stop()) == ["divergence"] and not far.result.success


@pytest.mark.parametrize("family", [Normal(1e18, 1.0), Gamma(1e30, 1.0), Wald(1.0, 1e30)])
def test_a_distribution_that_is_a_point_from_the_start_finds_nothing(family: Any) -> None:
    search = Searcher(family, rng=1)
    assert list(search.stop()) == ["resolution"] and not search.result.success


def test_a_beta_is_as_far_from_either_end_as_its_smaller_shape_says() -> None:
    assert Beta(2.0, 6.0)._distance((2.0, 6.0)) == pytest.approx(0.25)
    assert Beta(6.0, 2.0)._distance((6.0, 2.0)) == pytest.approx(0.25)


# ---- where it begins --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", [Normal(2.0, 1.0), Gamma(4.0, 2.0), Beta(2.0, 3.0), Wald(2.0, 3.0)], ids=str)
def test_sigma0_is_the_standard_deviation_about_the_same_mean(family: Any) -> None:
    for sigma0 in (1e-3, 0.2):
        search, first = Searcher(family, sigma0), Searcher(family)
        np.testing.assert_allclose(search.stds, sigma0, rtol=1e-9)
        np.testing.assert_allclose(search.mean, first.mean, rtol=1e-9)
        assert type(search.result.distribution) is type(family)


def test_a_width_that_a_family_cannot_have_is_refused() -> None:
    with pytest.raises(ValueError, match=r"sigma0 must be a width that Beta can have at its mean, got 0.9: try 0.26"):
        Searcher(Beta(2.0, 3.0), 0.9)
    with pytest.raises(ValueError, match=r"sigma0 cannot be given with Exponential, whose width follows from its mean"):
        Searcher(Product((Normal(0.0, 1.0), Exponential(1.0))), 0.9)
    with pytest.raises(ValueError, match=r"sigma0 must be positive, got -1\.0"):
        Searcher(Normal(0.0, 1.0), -1.0)
    with pytest.raises(ValueError, match="cov0 cannot be given here"):
        Searcher(Normal(0.0, 1.0), cov0=np.eye(1))


def test_a_restart_begins_at_a_sample_with_the_first_widths_times_a_factor() -> None:
    first = UnivariateSearch(Product((Normal(5.0, 2.0), Gamma(400.0, 100.0), Exponential(3.0))))
    others = [elsewhere(first, 30, 0.5, np.random.default_rng(seed)) for seed in range(200)]
    means, stds = (np.array([getattr(one, name)(one.start()) for one in others]) for name in ("mean", "stds"))
    np.testing.assert_allclose(means.mean(axis=0)[:2], [5.0, 4.0], atol=0.5)
    np.testing.assert_allclose(means.std(axis=0)[:2], [2.0, 0.2], rtol=0.25)
    np.testing.assert_allclose(stds[:, :2], [[1.0, 0.1]] * 200, rtol=1e-9)
    np.testing.assert_allclose(means[:, 2], 1 / 3)  # which cannot concentrate
    assert {one.popsize for one in others} == {30}


def test_bounds_fixed_and_integer_numbers_are_those_of_a_box() -> None:
    bounded = Searcher(Gamma(4.0, 2.0), bounds=(0.5, 2.5), rng=1)
    X = np.concatenate([bounded.ask() for _ in range(30)])
    assert X.min() >= 0.5 and X.max() <= 2.5
    wide = Searcher(Normal(1.0, 50.0), bounds=(-3, 3), rng=1)
    assert wide.result.distribution.std < 3
    three = Product((Normal(1.0, 1.0), Normal(-1.0, 2.0), Gamma(4.0, 2.0)))
    bounds = [(None, None), (None, None), (0.5, 9)]
    search = Searcher(three, fixed={0: 3.0}, integer=[1], bounds=bounds, rng=1)
    for _ in range(60):
        X = search.ask()
        assert (X[:, 0] == 3).all() and (X[:, 1] == np.rint(X[:, 1])).all()
        search.tell(((X - [9.0, 2.2, 1.5]) ** 2).sum(axis=1))
    assert search.best_x[1] == 2 and abs(search.best_x[2] - 1.5) < 0.01 and search.stds[0] == 0


@pytest.mark.parametrize(("family", "bounds"), [(Gamma(4.0, 2.0), (0, 3)), (Beta(2.0, 3.0), (0.1, None))], ids=str)
def test_bounds_beyond_the_support_are_refused(family: Any, bounds: Any) -> None:
    with pytest.raises(ValueError, match="bounds must lie within the support of"):
        Searcher(family, bounds=bounds)


def test_normals_with_a_device_of_gaussians_are_the_gaussian_with_the_diagonal_group() -> None:
    normals = Product((Normal(1.0, 0.5), Normal(-1.0, 2.0)))
    given: list[dict[str, Any]] = [{"mirrored": True}, {"step_size": "tpa"}, {"noise": "adapt"}, {"algorithm": "paper"}]
    for options in (*given, {"decoding": True}, {"structure": "full"}):
        search = Searcher(normals, rng=1, **options)
        vectors = Searcher([1.0, -1.0], [0.5, 2.0], rng=1, **{"structure": "diagonal", **options})
        assert search.structure == vectors.structure and search.popsize == vectors.popsize
        for _ in range(5):
            X = search.ask()
            np.testing.assert_allclose(X, vectors.ask(), rtol=1e-12)
            search.tell((X**2).sum(axis=1))
            vectors.tell((X**2).sum(axis=1))
    with pytest.raises(ValueError, match="mirrored cannot be given here: leave it out, Gamma has none"):
        Searcher(Gamma(2.0, 1.0), mirrored=True)
