"""Search over positive-definite matrices: one generation written out, laws of the update, convergence last."""

import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import gammaln

from esgroup.distributions.wishart import Wishart, WishartState
from esgroup.groups import BlockTriangular, Diagonal, Full, Group, Triangular
from esgroup.search.searcher import Searcher
from esgroup.strategies.base import Ranked
from esgroup.strategies.in_domain import elsewhere
from esgroup.strategies.wishart import MOST_DOF, WishartSearch, WishartSearchState, wishart_rates
from esgroup_problems.matrices import matrix_inversion, metric_nearness
from tests.groups import oracle
from tests.groups.cases import CASES
from tests.groups.elements import covariance, element
from tests.groups.laws import close

Rng = np.random.Generator
GROUPS = [
    Full(3),
    Full(1),
    Diagonal(3),
    Triangular(4),
    Triangular(3, False),
    BlockTriangular(4, 2),
    BlockTriangular(4, 1, False),
]


def on_every_group(test):
    """Run a test with arguments (strategy, state, rng) on groups of every kind, at a generic state."""

    @pytest.mark.parametrize("name", CASES)
    @given(data=st.data(), seed=st.integers(0, 2**32 - 1))
    def run(name: str, data: st.DataObject, seed: int) -> None:
        group, rng = data.draw(CASES[name].filter(lambda g: g.dim <= 6)), np.random.default_rng(seed)
        strategy = WishartSearch(Wishart(np.eye(group.dim), structure=group))
        test(strategy, some_state(strategy, rng), rng)

    run.__name__ = test.__name__
    return run


def some_state(strategy: WishartSearch, rng: Rng) -> WishartSearchState:
    group = strategy.group
    path = group.project(rng.standard_normal((4, group.dim)), rng.standard_normal(4))
    return WishartSearchState(np.array(strategy.least_dof * rng.uniform(2, 50)), element(group, rng), path)


def search(strategy: WishartSearch, f, rng: Rng, max_evals: int, target: float, noise: float = 0.0):
    state, evals, best, dofs = strategy.start(), 0, np.inf, []
    while evals < max_evals and best > target:
        drawn = strategy.sample(state, strategy.popsize, rng)
        values = f(drawn.points)
        evals, best = evals + len(values), min(best, values.min())
        order = np.argsort(values + noise * rng.standard_normal(len(values)), kind="stable")
        state = strategy.update(state, Ranked(drawn.local, order))
        dofs.append(float(state.dof))
    return evals, best, dofs


# ---- one generation ---------------------------------------------------------------------------------------------


def projected(group: Group, y: np.ndarray) -> np.ndarray:
    """Return the local matrix M of the oracle's basis whose M + M^T is nearest to Y."""
    basis = oracle.local_basis(group)
    symmetric = np.array([(b + b.T).ravel() for b in basis])
    return np.tensordot(np.linalg.lstsq(symmetric.T, y.ravel(), rcond=None)[0], basis, 1)


@pytest.mark.parametrize("popsize", [2, 5, 8])
@pytest.mark.parametrize("group", GROUPS, ids=repr)
def test_one_generation_is_the_formula_written_out(group: Group, popsize: int) -> None:
    rng, p = np.random.default_rng(1), group.dim
    strategy = WishartSearch(Wishart(covariance(p, rng), structure=group), popsize)
    state = some_state(strategy, rng)
    n, root, path = float(state.dof), strategy.group.dense(state.root), strategy.group.dense_local(state.path)
    drawn, order = strategy.sample(state, popsize, rng), rng.permutation(popsize)
    next_state = strategy.update(state, Ranked(drawn.local, order))

    m = group.dof
    ranks = [math.log((popsize + 1) / 2) - math.log(k + 1) for k in range(popsize)]
    better, worse = sum(r for r in ranks if r > 0), -sum(r for r in ranks if r < 0)
    negative = m**2 / (m**2 + 1225)
    u = np.array([r / better if r > 0 else negative * r / worse for r in ranks])
    u -= u.sum() / popsize
    mu_eff = 1 / np.sum(u**2)
    c = (mu_eff + 2) / (m / 2 + mu_eff + 15)
    d = (0.6 - 0.35 * negative) * (1 + c + 2 * max(0, math.sqrt(max(0, mu_eff - 1) / (m + 1)) - 1))
    inverse = np.linalg.inv(root)
    y = sum(u[k] * (inverse @ drawn.points[i] @ inverse.T - np.eye(p)) for k, i in enumerate(order))
    step = projected(group.transposed, y)
    new_path = (1 - c) * path + math.sqrt(c * (2 - c) * mu_eff * n / 2) * step
    chi = math.sqrt(2) * math.exp(gammaln((m + 1) / 2) - gammaln(m / 2))
    exponent = -2 * c / d * (np.linalg.norm(new_path + new_path.T) / (chi - 0.1) - 1)
    close(strategy.group.dense(next_state.root), root @ (np.eye(p) + 2 * step + 2 * step @ step), 1e-9)
    close(strategy.group.dense_local(next_state.path), new_path, 1e-8)
    close(next_state.dof, max(strategy.least_dof, n * math.exp(np.clip(exponent, -1, 1))), 1e-8)


@on_every_group
def test_the_step_is_that_of_the_distribution_to_first_order(
    strategy: WishartSearch, state: WishartSearchState, rng: Rng
) -> None:
    """L h(2 N) against B h(2 M), M the natural score of the utilities: the means agree up to squares of the step."""
    distribution, group = strategy.distribution, strategy.group
    state = state._replace(dof=np.array(1e9))
    drawn, order = strategy.sample(state, 5, rng), rng.permutation(5)
    moved = strategy.mean(strategy.update(state, Ranked(drawn.local, order)))
    weights = np.empty(5)
    weights[order] = wishart_rates(5, group.dof).utilities
    b = WishartState(np.array(5e8), group.transpose(group.inverse(state.root)))
    factors = distribution.local(b, drawn.points)
    score = distribution.natural_score(b, factors, weights)
    expected = distribution.mean_of(distribution.move(b, score.scaled(2.0, 0.0)))
    change = np.abs(expected - distribution.mean_of(b)).max()
    assert np.abs(moved - expected).max() < 1e-2 * change


@on_every_group
def test_local_coordinates_undo_sampling(strategy: WishartSearch, state: WishartSearchState, rng: Rng) -> None:
    drawn = strategy.sample(state, 5, rng)
    p = strategy.dim
    assert drawn.points.shape == (5, p, p)
    assert drawn.local.shape == (5, p * p)
    assert np.array_equal(drawn.points, drawn.points.swapaxes(1, 2))
    assert np.linalg.eigvalsh(drawn.points).min() > 0
    root = strategy.group.dense(state.root)
    close(root @ drawn.local.reshape(5, p, p) @ root.T, drawn.points, 1e-9)
    close(strategy.local(state, drawn.points), drawn.local, 1e-9)
    close(strategy.mean(state), root @ root.T, 1e-9)


# ---- laws -------------------------------------------------------------------------------------------------------


def test_a_change_of_coordinates_changes_nothing_else() -> None:
    """W -> T W T^T: the same random numbers then give the same values, generation by generation."""
    rng = np.random.default_rng(2)
    t, strategy = rng.standard_normal((4, 4)), WishartSearch(Wishart(covariance(4, rng)))
    inverse, f = np.linalg.inv(t), matrix_inversion(4, seed=1).batch
    here = strategy.start()
    there = here._replace(root=(t @ here.root.reshape(4, 4)).ravel())
    first, second = np.random.default_rng(3), np.random.default_rng(3)
    for _ in range(30):
        a, b = strategy.sample(here, 7, first), strategy.sample(there, 7, second)
        fa, fb = f(a.points), f(inverse @ b.points @ inverse.T)
        close(fa, fb, 1e-7)
        here = strategy.update(here, Ranked(a.local, np.argsort(fa)))
        there = strategy.update(there, Ranked(b.local, np.argsort(fb)))
    close(here.dof, there.dof, 1e-7)


@pytest.mark.parametrize("group", [Full(3), Diagonal(5), BlockTriangular(4, 1), Triangular(3)], ids=repr)
def test_without_selection_the_path_has_unit_variance_at_every_concentration(group: Group) -> None:
    """The mean of |p + p^T|^2 is m, that of a chi-squared variable, at the smallest n and above."""
    strategy, rng = WishartSearch(Wishart(np.eye(group.dim), structure=group)), np.random.default_rng(4)
    for n in (strategy.least_dof, 1e9):
        state, squares = strategy.start(), []
        for generation in range(1500):
            state = state._replace(dof=np.array(n))
            drawn = strategy.sample(state, 6, rng)
            state = strategy.update(state, Ranked(drawn.local, rng.permutation(6)))
            if generation >= 100:
                path = strategy.group.dense_local(state.path)
                squares.append(np.sum((path + path.T) ** 2))
        correlated = 1 / wishart_rates(6, group.dof).c  # generations over which a square is correlated
        error = math.sqrt(2 * group.dof * correlated / len(squares))
        assert abs(np.mean(squares) - group.dof) < 5 * error


def test_without_selection_the_concentration_falls_slowly() -> None:
    """The drift is weaker than its own noise: in 300 generations n falls, and by a few powers of ten at most."""
    strategy = WishartSearch(Wishart(np.eye(3)))
    ends = []
    for seed in range(12):
        rng, state = np.random.default_rng(seed), strategy.start()._replace(dof=np.array(1e10))
        for _ in range(300):
            drawn = strategy.sample(state, 6, rng)
            state = strategy.update(state, Ranked(drawn.local, rng.permutation(6)))
        ends.append(math.log10(float(state.dof)) - 10)
    assert -5 < np.mean(ends) < -0.5


def test_the_order_of_points_does_not_matter_but_their_ranks_do() -> None:
    strategy, rng = WishartSearch(Wishart(np.eye(3))), np.random.default_rng(5)
    state = some_state(strategy, rng)
    drawn, values, shuffle = strategy.sample(state, 6, rng), rng.standard_normal(6), rng.permutation(6)
    first = strategy.update(state, Ranked(drawn.local, np.argsort(values)))
    second = strategy.update(state, Ranked(drawn.local[shuffle], np.argsort(values[shuffle])))
    reverse = strategy.update(state, Ranked(drawn.local, np.argsort(-values)))
    for a, b in zip(first, second, strict=True):
        close(a, b, 1e-12)
    assert not np.allclose(first.root, reverse.root)


def test_an_update_changes_none_of_its_arguments() -> None:
    strategy, rng = WishartSearch(Wishart(np.eye(3))), np.random.default_rng(6)
    state = some_state(strategy, rng)
    drawn = strategy.sample(state, 6, rng)
    for array in (*state, drawn.local):
        array.flags.writeable = False
    next_state = strategy.update(state, Ranked(drawn.local, np.arange(6)))
    assert all(array.dtype == np.float64 for array in next_state)
    assert next_state.dof.shape == ()
    alone = strategy.update(state, Ranked(drawn.local[:1], np.arange(1)))
    assert alone is state  # a single value has no rank


def test_points_from_far_away_do_not_spoil_the_search() -> None:
    strategy = WishartSearch(Wishart(np.eye(3)))
    state = strategy.start()
    points = np.stack([1e12 * np.eye(3), np.eye(3), 1e-12 * np.eye(3), np.diag([1e9, 1.0, 1.0])])
    for order in ([0, 1, 2, 3], [2, 1, 3, 0], [3, 2, 1, 0]):
        moved = strategy.update(state, Ranked(strategy.local(state, points), np.array(order)))
        eigenvalues = np.linalg.eigvalsh(strategy.mean(moved))
        assert 0.05 < eigenvalues.min() <= eigenvalues.max() < 10
        assert strategy.least_dof <= moved.dof <= MOST_DOF


# ---- starts, reports, checks ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("dof", "first"), [(None, 120.0), (5.0, 120.0), (3e3, 3e3), (1e18, MOST_DOF)])
def test_a_search_starts_at_the_given_mean_and_concentration_or_the_least_one(dof: float | None, first: float) -> None:
    mean = covariance(3, np.random.default_rng(7))
    strategy = WishartSearch(Wishart(mean, dof))
    close(strategy.start().dof, first)
    close(strategy.mean(strategy.start()), mean)
    reasons = strategy.criteria[1].look(strategy.start(), strategy.stds(strategy.start()))
    assert reasons.keys() == ({"dof"} if dof == 1e18 else set())
    assert strategy.view(strategy.start()).fields() == {"dof": first}


def test_sizes_are_those_of_symmetric_matrices_and_the_population_that_of_the_structure() -> None:
    full, diagonal = WishartSearch(Wishart(np.eye(10))), WishartSearch(Wishart(np.eye(10), structure="diagonal"))
    assert (full.shape, full.size, full.popsize) == ((10, 10), 55, 13)
    assert (diagonal.shape, diagonal.size, diagonal.popsize) == ((10, 10), 55, 7)
    assert WishartSearch(Wishart(np.eye(1))).popsize == 4
    assert WishartSearch(Wishart(np.eye(10)), 40).popsize == 40
    assert pickle.loads(pickle.dumps(full)) == full


def test_the_stated_deviations_are_those_of_samples() -> None:
    strategy, rng = WishartSearch(Wishart(covariance(3, np.random.default_rng(8)), 400.0)), np.random.default_rng(9)
    state = strategy.start()
    points = strategy.sample(state, 20_000, rng).points
    close(points.std(axis=0) / strategy.stds(state), np.ones((3, 3)), 0.03)
    assert np.all(np.abs(points.mean(axis=0) - strategy.mean(state)) < 5 * strategy.stds(state) / math.sqrt(20_000))


def test_with_one_row_samples_are_gamma_variables() -> None:
    strategy = WishartSearch(Wishart([[3.0]], 25.0))
    drawn = strategy.sample(strategy.start(), 10_000, np.random.default_rng(10))
    assert stats.kstest(drawn.points.ravel(), stats.gamma(12.5, scale=3 / 12.5).cdf).pvalue > 0.001


def test_an_ill_conditioned_start_gives_positive_definite_samples() -> None:
    vectors = np.linalg.qr(np.random.default_rng(11).standard_normal((6, 6)))[0]
    mean = vectors * np.geomspace(1e-6, 1e6, 6) @ vectors.T
    strategy = WishartSearch(Wishart((mean + mean.T) / 2))
    drawn = strategy.sample(strategy.start(), 50, np.random.default_rng(12))
    assert np.linalg.eigvalsh(drawn.points).min() > 0
    assert np.abs(strategy.local(strategy.start(), drawn.points) - drawn.local).max() < 1e-2
    strategy.domain.check("X", drawn.points)


BAD = [
    (np.eye(3)[None], r"X .*\(n, 2, 2\).* \(1, 3, 3\)"),
    (np.array([np.eye(2), [[1, 0.5], [0.1, 1]]]), r"X\[1\] .*symmetric.* 0.4"),
    (np.array([np.eye(2), [[1, 2], [2, 1]]]), r"X\[1\] .*positive definite.* -1"),
    (np.array([1e12 * np.eye(2), [[1, 0.5], [0.1, 1]]]), r"X\[1\] .*symmetric"),
    (np.array([[[1, 0], [0, 0]]]), r"X\[0\] .*positive definite.* 0"),
    (np.full((1, 2, 2), np.nan), "X .*finite"),
]


@pytest.mark.parametrize(("points", "message"), BAD, ids=[m for _, m in BAD])
def test_points_outside_the_space_are_refused(points: np.ndarray, message: str) -> None:
    strategy = WishartSearch(Wishart(np.eye(2)))
    strategy.domain.check("X", np.array([np.eye(2), [[2.0, 1.0], [1.0, 2.0]]]))
    strategy.domain.check("X", np.zeros((0, 2, 2)))
    with pytest.raises(ValueError, match=message):
        strategy.domain.check("X", points)


def test_bad_options_are_named() -> None:
    with pytest.raises(TypeError, match=r"distribution .*Wishart"):
        WishartSearch(np.eye(2))
    with pytest.raises(ValueError, match=r"popsize_wanted .*>= 2.* 1$"):
        WishartSearch(Wishart(np.eye(2)), 1)


# ---- convergence ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("dim", "evals"), [(1, 400), (2, 2_000), (3, 2_400), (6, 5_500)])
def test_it_inverts_a_matrix(dim: int, evals: int) -> None:
    strategy = WishartSearch(Wishart(np.eye(dim)))
    for seed in (200, 201):
        _, best, _ = search(strategy, matrix_inversion(dim, seed=seed).batch, np.random.default_rng(seed), evals, 1e-6)
        assert best <= 1e-6


@pytest.mark.parametrize("structure", ["triangular", "triangular:upper", "block_triangular:k=1", "diagonal"])
def test_structures_find_a_minimum_that_they_contain(structure: str) -> None:
    q = np.diag([0.2, 1.0, 4.0])
    _, best, _ = search(
        WishartSearch(Wishart(np.eye(3), structure=structure)),
        lambda w: 0.5 * ((w @ q - np.eye(3)) ** 2).sum(axis=(1, 2)),
        np.random.default_rng(0),
        4_000,
        1e-6,
    )
    assert best <= 1e-6


@pytest.mark.parametrize("dim", [3, 6])
def test_under_noise_the_concentration_does_not_run_away(dim: int) -> None:
    """Noise of one percent of the first value: over 1000 generations n stays where samples still differ widely."""
    f, strategy = matrix_inversion(dim, seed=202).batch, WishartSearch(Wishart(np.eye(dim)))
    noise = 0.01 * float(f(np.eye(dim)[None])[0])
    _, best, dofs = search(strategy, f, np.random.default_rng(202), 1000 * strategy.popsize, -1.0, noise)
    assert max(dofs) < 1e8
    assert np.median(dofs[500:]) < 1e6
    assert best < 5 * noise


@pytest.mark.slow
def test_it_solves_metric_nearness_with_ten_rows() -> None:
    strategy, evals = WishartSearch(Wishart(np.eye(10))), []
    for seed in range(200, 205):
        rng = np.random.default_rng(seed)
        used, best, _ = search(strategy, metric_nearness(10, seed=seed).batch, rng, 20_000, 1e-10)
        assert best <= 1e-10
        evals.append(used)
    assert np.median(evals) <= 7_000


# ---- where it begins --------------------------------------------------------------------------------------------


def test_sigma0_is_the_relative_standard_deviation_of_a_diagonal_entry() -> None:
    mean = np.array([[4.0, 0.5], [0.5, 1.0]])
    search = Searcher(Wishart(mean=mean, dof=1000.0), 1e-2)
    close(np.diagonal(search.stds), 1e-2 * np.diagonal(mean))
    with pytest.raises(ValueError, match=r"sigma0 must be at least 1e-6 .* got 1e-09"):
        Searcher(Wishart(mean=mean), 1e-9)


def test_another_structure_begins_at_the_nearest_mean_that_it_can_hold() -> None:
    mean = np.array([[4.0, 0.5], [0.5, 1.0]])
    search = Searcher(Wishart(mean=mean, dof=1000.0), structure="diagonal")
    close(search.mean, Searcher(Wishart(mean=mean, dof=1000.0, structure="diagonal")).mean)
    assert search.result.structure == "Wishart, diagonal" and search.result.dof == 1000.0


def test_a_restart_begins_at_a_sample_as_wide_as_at_first_times_a_factor() -> None:
    first = WishartSearch(Wishart(mean=np.diag([4.0, 1.0]), dof=1e4))
    others = [elsewhere(first, 20, 0.1, np.random.default_rng(seed)) for seed in range(200)]
    means = np.array([other.mean(other.start()) for other in others])
    close(means.mean(axis=0), np.diag([4.0, 1.0]), 5e-2)
    close(means[:, 0, 0].std() / 4, np.sqrt(2 / 1e4), 0.2 * np.sqrt(2 / 1e4))  # within 4 standard errors
    assert all(other.popsize == 20 and other.start().dof == pytest.approx(1e6) for other in others)
    assert elsewhere(first, 20, 100.0, np.random.default_rng(0)).start().dof == first.least_dof
