"""Search with mixtures: one component is the search of a Gaussian, and several optima are found and reported."""

import copy
import tracemalloc
from typing import Any

import numpy as np
import pytest
from scipy.stats import multivariate_normal

import esgroup
from esgroup import Searcher, minimize
from esgroup.distributions import Gaussian
from esgroup.distributions.mixture import Mixture
from esgroup.driver.spaces import mixture_over
from esgroup.files.states import all_finite, flattened, rebuilt, same_shapes
from esgroup.groups import Diagonal, Frame, Full, Group, Heisenberg, Triangular
from esgroup.options import SearchOptions
from esgroup.search.arguments import generator
from esgroup.strategies.base import Ranked
from esgroup.strategies.criteria import CONDITION
from esgroup.strategies.decoding import Decoding
from esgroup.strategies.evolution import Evolution, Generation
from esgroup.strategies.mixture import MixtureSearch
from esgroup.strategies.mixture_descents import DUEL, PROBE, SCOUT, SEARCH, MixtureSearchState
from esgroup.strategies.mixture_optima import Neighborhoods, ValuedPoints, best_near, folded, segment, valley
from esgroup.strategies.vector import VectorSearch
from tests.groups.elements import covariance
from tests.groups.laws import close

BOX = np.array([(-6.0, 6.0), (-6.0, 6.0)])
HIMMELBLAU = np.array(
    [(3.0, 2.0), (-2.805118087, 3.131312518), (-3.779310253, -3.283185991), (3.584428340, -1.848126527)]
)


def valued(strategy: MixtureSearch, state: Any, points: np.ndarray, values: np.ndarray) -> Any:
    """The state after values that end no generation."""
    return strategy.update(state, Ranked(np.empty((0, 0)), np.empty(0, dtype=np.int64), points=points, values=values))


def same(one: Any, other: Any) -> bool:
    arrays, others = flattened("state", one), flattened("state", other)
    assert arrays.keys() == others.keys()
    return all(np.array_equal(a, others[name]) and a.dtype == np.float64 for name, a in arrays.items())


def assert_same(one: MixtureSearchState, other: MixtureSearchState) -> None:
    assert same(one, other)


def himmelblau(x: np.ndarray) -> np.ndarray:
    a, b = x.T
    return (a**2 + b - 11) ** 2 + (a + b**2 - 7) ** 2


def rastrigin(x: np.ndarray) -> np.ndarray:
    return (10 + x**2 - 10 * np.cos(2 * np.pi * x)).sum(axis=1)


def wells(x: np.ndarray) -> np.ndarray:
    """Two minima on the first axis: at -1 and, a little higher, at 1."""
    return (x[:, 0] ** 2 - 1) ** 2 + 0.1 * x[:, 0] + (x[:, 1:] ** 2).sum(axis=1)


def bowl(x: np.ndarray) -> np.ndarray:
    return ((x - 0.3) ** 2 @ np.arange(1, x.shape[1] + 1)) ** 0.7


def generation(strategy: MixtureSearch, state, fun, rng: np.random.Generator, n: int | None = None):
    drawn = strategy.sample(state, strategy.popsize if n is None else n, rng)
    return strategy.update(state, Ranked(drawn.local, np.argsort(fun(drawn.points), kind="stable")))


def run(strategy: MixtureSearch, fun, seed: int, max_evals: int) -> tuple[MixtureSearchState, int]:
    rng, state, evals = np.random.default_rng(seed), strategy.start(), 0
    while evals < max_evals and not strategy.criteria[1].look(state, strategy.stds(state)):
        state = generation(strategy, state, fun, rng)
        evals += strategy.popsize
    return state, evals


def number_found(optima: np.ndarray, state: MixtureSearchState, accuracy: float) -> int:
    gaps = np.abs(optima[:, None] - state.known.points[state.known.hits > 0]).max(axis=2)
    return int((gaps.min(axis=1) < accuracy).sum())


def pair(**options) -> MixtureSearch:
    """Return a search with components at -1 and 1 on the first axis."""
    mixture = Mixture(tuple(Gaussian("full", [m, 0.0], sigma0=0.3) for m in (-1.0, 1.0)))
    return MixtureSearch(mixture, **options)


# ---- one component ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["covariance", "precision"])
@pytest.mark.parametrize("group", [Full(3), Triangular(3), Diagonal(3), Heisenberg(3, 1, 1)], ids=repr)
def test_one_component_is_the_evolution_of_its_gaussian_step_for_step(group: Group, form: str) -> None:
    sigma = np.diag([1.0, 4.0, 0.25])
    gaussian = Gaussian(group, np.array([1.0, 2.0, 3.0]), covariance=sigma, form=form)
    strategy = MixtureSearch(Mixture((gaussian,)))
    own = group if form == "covariance" else group.transposed
    evolution = Evolution(own, decoding=Decoding() if isinstance(group, Full | Triangular) else None)
    expected = evolution.start(np.array([1.0, 2.0, 3.0]), np.ones(3), None)
    expected.root[:] = own.from_dense(np.sqrt(sigma))
    evolution.refresh(expected)
    state, n = strategy.start(), strategy.popsize
    assert n == 7
    rngs = np.random.default_rng(3), np.random.default_rng(3)
    for _ in range(25):
        drawn = strategy.sample(state, n, rngs[0])
        samples, x = Generation.empty(n, 3), np.empty((n, 3))
        evolution.sample(expected, n, rngs[1], samples, x)
        close(drawn.points, x)
        order = np.argsort(bowl(x), kind="stable")
        state = strategy.update(state, Ranked(drawn.local, order))
        evolution.update(expected, samples, order)
        search = state.searches[0]
        for found, wanted in zip(search, expected, strict=True):
            close(found, wanted)
    close(strategy.mean(state), expected.mean)
    close(strategy.stds(state), np.sqrt(evolution.variances(expected)))


# ---- the way between two points ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("start", "end", "same", "better"), [
    (-1.0, 1.0, False, True), (1.0, -1.0, False, False), (-1.4, -0.7, True, False), (0.5, 0.98, True, False),
    (0.9, 0.4, True, True), (-1.0, 0.9, False, True),
])  # fmt: skip
def test_a_hill_between_two_points_is_seen_from_ranks(start: float, end: float, same: bool, better: bool) -> None:
    points, fractions = segment(np.array([start, 0.0]), np.array([end, 0.0]), 6)
    assert points.shape == (6, 2)
    close(points[:, 0], start + fractions * (end - start))
    assert valley(fractions[np.argsort(wells(points), kind="stable")]) == (same, better)


def test_equal_values_do_not_look_like_a_hill() -> None:
    _, fractions = segment(np.zeros(2), np.ones(2), 6)
    found = valley(fractions[np.argsort(np.zeros(6), kind="stable")])
    assert found is not None
    assert found[0]


def test_no_verdict_without_both_ends_and_a_point_between() -> None:
    assert valley(np.array([0.0, 0.5])) is None
    assert valley(np.array([0.5, 1.0])) is None
    assert valley(np.array([0.0, 1.0])) is None
    assert valley(np.array([0.0, 1.0, 0.5])) == (False, True)


def test_points_beyond_a_box_are_mirrored() -> None:
    box = np.array([(0.0, 1.0), (-2.0, 2.0)])
    points = np.array([[0.25, -1.0], [1.25, 2.5], [-0.25, -3.0], [2.25, 6.5], [-1.75, 3.0]])
    close(folded(box, points), [[0.25, -1.0], [0.75, 1.5], [0.25, -1.0], [0.25, -1.5], [0.25, 1.0]])
    assert np.array_equal(folded(box, points[:1]), points[:1])  # to the last bit
    assert folded(None, points) is points


# ---- samples ----------------------------------------------------------------------------------------------------


def test_components_get_points_by_their_weights() -> None:
    components = tuple(Gaussian("full", [float(m), 0.0]) for m in range(3))
    for n in (4, 6, 13, 24):
        strategy = MixtureSearch(Mixture(components, [0.6, 0.3, 0.1]), popsize_wanted=n)
        state, counts, rng = strategy.start(), np.zeros(3), np.random.default_rng(0)
        for _ in range(200):
            drawn = strategy.sample(state, n, rng)
            assert drawn.points.shape == (n, 2)
            labels = drawn.local[:, 0].astype(int)
            counts += np.bincount(labels, minlength=3)
            # only what the update does to the shares matters here
            credit = strategy.update(state, Ranked(drawn.local, np.arange(n))).credit
            state = state._replace(credit=credit)
        close(counts / counts.sum(), [0.6, 0.3, 0.1], 0.02)


def test_equal_components_get_a_generation_each() -> None:
    strategy = MixtureSearch(Mixture.spread(5, mean=np.zeros(2), sigma0=1.0, rng=0))
    drawn = strategy.sample(strategy.start(), strategy.popsize, np.random.default_rng(0))
    assert strategy.popsize == 30
    assert np.array_equal(np.bincount(drawn.local[:, 0].astype(int)), [6] * 5)


def one_by_one(strategy: MixtureSearch, state: MixtureSearchState, count: int, rng: np.random.Generator) -> list:
    return [strategy.sample(state, 1, rng) for _ in range(count)]


def test_points_drawn_one_by_one_are_shared_by_the_weights() -> None:
    components = tuple(Gaussian("full", [float(m), 0.0]) for m in range(3))
    strategy, rng = MixtureSearch(Mixture(components, [0.6, 0.3, 0.1])), np.random.default_rng(0)
    labels = [int(drawn.local[0, 0]) for drawn in one_by_one(strategy, strategy.start(), 2000, rng)]
    close(np.bincount(labels) / 2000, [0.6, 0.3, 0.1], 0.04)


def test_a_probe_drawn_one_by_one_is_that_of_a_generation() -> None:
    strategy, rng = pair(), np.random.default_rng(0)
    state = at_age(strategy, 3, [[-1.0122, 0.0]])
    state.phase[:], state.target[:] = PROBE, [-1.0122, 0.0]
    whole = strategy.sample(state, 12, rng)
    expected = {(*row[:2], *point) for row, point in zip(whole.local, whole.points, strict=True)}
    ones = one_by_one(strategy, state, 200, rng)
    assert {(*one.local[0, :2], *one.points[0]) for one in ones} == expected
    points, local = np.concatenate([one.points for one in ones]), np.concatenate([one.local for one in ones])
    state = strategy.update(state, Ranked(local, np.argsort(wells(points), kind="stable")))
    assert list(state.phase) == [SCOUT, SEARCH]  # the second is beyond the hill


def test_samples_stay_in_the_box() -> None:
    strategy = MixtureSearch(Mixture((Gaussian("full", [0.9, 0.1], sigma0=2.0),)), bounds=[(0.0, 1.0), (0.0, 0.5)])
    points = strategy.sample(strategy.start(), 500, np.random.default_rng(0)).points
    assert (points >= 0).all()
    assert (points <= [1, 0.5]).all()
    assert len(np.unique(points)) == 1000  # mirrored, not clipped


def test_points_not_asked_for_belong_to_the_component_that_is_most_likely() -> None:
    rng = np.random.default_rng(1)
    components = tuple(Gaussian("full", m, covariance=covariance(2, rng)) for m in ([0.0, 0.0], [1.0, 1.0], [0.0, 3.0]))
    weights = np.array([0.2, 0.5, 0.3])
    strategy = MixtureSearch(Mixture(components, weights))
    points = 2 * rng.standard_normal((40, 2)) + 1
    local = strategy.local(strategy.start(), points)
    logs = [w * multivariate_normal(g.mean, g.covariance).pdf(points) for w, g in zip(weights, components, strict=True)]
    assert np.array_equal(local[:, 0], np.argmax(logs, axis=0))
    assert len(set(local[:, 0])) == 3
    for k, gaussian in enumerate(components):
        rows = local[:, 0] == k
        placed = strategy._descents.components[k].placed(
            strategy.start().searches[k], np.ascontiguousarray(local[rows, 3:])
        )
        close(placed, points[rows])
        assert gaussian.dim == 2


# ---- updates ----------------------------------------------------------------------------------------------------


def test_components_are_ranked_among_their_own_samples() -> None:
    """An offset between the values of two components does not matter: both descend their own slope."""
    strategy, rng = pair(), np.random.default_rng(2)
    state = strategy.start()
    drawn = strategy.sample(state, 12, rng)
    first = drawn.local[:, 0] == 0
    values = wells(drawn.points)
    moved = [strategy.update(state, Ranked(drawn.local, np.argsort(values + c * first))) for c in (-100.0, 0.0, 100.0)]
    for other in moved[1:]:
        assert same(moved[0].searches, other.searches)
    assert not same(moved[0].searches, state.searches)
    assert [int(s.leader) for s in moved] == [0, int(np.argmin(values) >= 6), 1]


def test_a_component_with_a_frame_is_the_search_with_this_frame() -> None:
    """Axes that come while it searches are the same, and so are the points: a state may change its size."""
    dim, rng = 12, np.random.default_rng(4)
    mixture = Mixture((Gaussian("diagonal", np.ones(dim), sigma0=0.5),))
    strategy = MixtureSearch(mixture, axes=Frame(dim))
    alone = VectorSearch(Frame(dim), np.ones(dim), np.full(dim, 0.5), options=SearchOptions(decoding=True))
    state, other = strategy.start(), alone.start()
    sizes = {len(other.root)}
    for _ in range(60):
        drawn = strategy.sample(state, strategy.popsize, rng)
        order = np.argsort(drawn.points**2 @ np.array([1e4, *np.ones(dim - 1)]))
        state = strategy.update(state, Ranked(drawn.local, order))
        other = alone.update(other, Ranked(np.ascontiguousarray(drawn.local[:, 3:]), order))
        assert same(state.searches[0], other)
        sizes.add(len(other.root))
    assert len(sizes) > 1 and state.phase[0] == SEARCH
    assert_same(strategy.checked(rebuilt("s", flattened("s", state), strategy.start())), state)


def test_an_update_changes_neither_the_state_nor_the_samples() -> None:
    strategy, rng = MixtureSearch(Mixture.spread(3, bounds=BOX, rng=0), bounds=BOX), np.random.default_rng(0)
    state = strategy.start()
    for _ in range(90):
        for array in flattened("state", state).values():
            array.flags.writeable = False
        drawn = strategy.sample(state, strategy.popsize, rng)
        drawn.local.flags.writeable = False
        state = strategy.update(state, Ranked(drawn.local, np.argsort(himmelblau(drawn.points))))
    assert (state.known.hits > 0).any()


def test_a_search_continues_exactly_from_a_copy_of_its_state() -> None:
    strategy = MixtureSearch(Mixture.spread(3, bounds=BOX, rng=0), bounds=BOX)
    again = MixtureSearch(Mixture.spread(3, bounds=BOX, rng=0), bounds=BOX)
    rng, state = np.random.default_rng(0), strategy.start()
    for _ in range(40):
        state = generation(strategy, state, himmelblau, rng)
    stored = copy.deepcopy(state)
    other = np.random.default_rng(1)
    other.bit_generator.state = rng.bit_generator.state
    for _ in range(40):
        state, stored = generation(strategy, state, himmelblau, rng), generation(again, stored, himmelblau, other)
    assert_same(state, stored)
    same_shapes(state, strategy.start())


def test_generations_of_any_size_and_foreign_points_are_accepted() -> None:
    strategy, rng = MixtureSearch(Mixture.spread(4, bounds=BOX, rng=0), bounds=BOX), np.random.default_rng(0)
    state = strategy.start()
    for t in range(150):
        drawn = strategy.sample(state, 1 + t % 40, rng)
        keep = rng.random(len(drawn.points)) < 0.8
        stray = rng.uniform(-6, 6, (t % 3, 2))
        local = np.concatenate([drawn.local[keep], strategy.local(state, stray)])
        values = himmelblau(np.concatenate([drawn.points[keep], stray]))
        state = strategy.update(state, Ranked(local, np.argsort(values)))
    all_finite(state._replace(best=state.known))  # no values are known
    assert number_found(HIMMELBLAU, state, 1e-3) == (state.known.hits > 0).sum() > 0


# ---- what becomes of a component --------------------------------------------------------------------------------


def at_age(strategy: MixtureSearch, age: float, known: list[list[float]]) -> MixtureSearchState:
    """Return the first state with known optima, and component 0 one generation before this age."""
    state = strategy._descents.resized(strategy.start(), max(len(known), len(strategy.start().known.hits)))
    state.known.points[: len(known)], state.known.hits[: len(known)] = np.reshape(known, (-1, 2)), 1.0
    state.age[:] = age - 1, -500.5
    return state


def test_a_descent_in_the_basin_of_a_known_optimum_is_abandoned() -> None:
    strategy, rng = pair(), np.random.default_rng(0)
    state = at_age(strategy, strategy._descents.period, [[-1.0122, 0.0]])
    state = generation(strategy, state, wells, rng)
    assert list(state.phase) == [PROBE, SEARCH]
    assert state.rival[0] == 0
    drawn = strategy.sample(state, 12, rng)
    probes = drawn.points[drawn.local[:, 0] == 0]
    close(probes[-1], strategy._descents.center(state, 0))
    close(probes[-2], [-1.0122, 0.0])
    state = strategy.update(state, Ranked(drawn.local, np.argsort(wells(drawn.points), kind="stable")))
    assert list(state.phase) == [SCOUT, SEARCH]
    assert state.known.hits[0] == 2
    assert state.known.idle == 1
    scouted = strategy.sample(state, 12, rng)
    scouts = scouted.points[scouted.local[:, 0] == 0]
    values = wells(scouted.points)
    state = strategy.update(state, Ranked(scouted.local, np.argsort(values, kind="stable")))
    assert list(state.phase) == [PROBE, SEARCH]  # the way to the known optimum comes first
    close(state.target[0], [-1.0122, 0.0])
    close(strategy._descents.center(state, 0), scouts[np.argmin(wells(scouts))])
    assert state.age[0] == 0


def test_a_component_beyond_a_hill_continues() -> None:
    strategy, rng = pair(), np.random.default_rng(0)
    state = at_age(strategy, strategy._descents.period, [[0.9873, 0.0]])
    state.phase[1] = SCOUT  # so that the known optimum is the nearest
    state = generation(strategy, state, wells, rng)
    assert state.phase[0] == PROBE
    state.phase[1] = SCOUT  # so that it does not end at the known optimum
    before = strategy._descents.center(state, 0).copy()
    state = generation(strategy, state, wells, rng)
    assert state.phase[0] == SEARCH
    close(strategy._descents.center(state, 0), before)
    assert state.known.hits[0] == 1


def test_of_two_components_in_one_basin_the_worse_is_abandoned() -> None:
    mixture = Mixture(tuple(Gaussian("full", [m, 0.0], sigma0=0.01) for m in (0.5, 0.9)))
    strategy, rng = MixtureSearch(mixture), np.random.default_rng(0)
    state = strategy.start()
    state.age[:] = strategy._descents.period - 1
    state = generation(strategy, state, wells, rng)
    assert list(state.phase) == [PROBE, PROBE]
    assert list(state.rival) == [-1, -1]
    state = generation(strategy, state, wells, rng)
    assert list(state.phase) == [SCOUT, SEARCH]
    assert not state.known.hits.any()


def converged(strategy: MixtureSearch, state: MixtureSearchState, k: int, mean: list[float]) -> None:
    search = state.searches[k]
    search.mean[:], search.sigma[0] = mean, 1e-9


def test_a_component_that_has_converged_is_a_new_optimum_or_a_known_one() -> None:
    strategy, rng = pair(), np.random.default_rng(0)
    state = strategy.start()
    converged(strategy, state, 0, [-1.0122, 0.0])
    state = generation(strategy, state, wells, rng)  # there is nothing to probe
    assert list(state.phase) == [SCOUT, SEARCH]
    assert (state.known.hits > 0).sum() == 1
    close(state.known.points[0], [-1.0122, 0.0], 1e-6)
    converged(strategy, state, 1, [0.9873, 0.0])
    state = generation(strategy, state, wells, rng)
    assert state.phase[1] == PROBE
    state = generation(strategy, state, wells, rng)
    assert state.phase[1] == SCOUT
    assert (state.known.hits > 0).sum() == 2
    close(state.known.points[1], [0.9873, 0.0], 1e-6)
    state.phase[0] = SEARCH
    converged(strategy, state, 0, [0.98731, 0.0])  # 1e-5 from the second
    state = generation(strategy, state, wells, rng)
    assert (state.known.hits[0], state.known.hits[1], float(state.known.idle)) == (1, 2, 1)
    assert state.phase[0] == SCOUT


def test_a_better_point_of_the_same_basin_replaces_a_known_optimum() -> None:
    strategy, rng = pair(), np.random.default_rng(0)
    state = at_age(strategy, 3, [[-0.8, 0.1]])
    converged(strategy, state, 0, [-1.0122, 0.0])
    state = generation(strategy, state, wells, rng)
    assert state.phase[0] == PROBE
    state = generation(strategy, state, wells, rng)
    close(state.known.points[0], [-1.0122, 0.0], 1e-6)
    assert (state.known.hits > 0).sum() == 1


def test_a_full_list_forgets_its_worst_optimum() -> None:
    strategy, rng = pair(most_modes=2), np.random.default_rng(0)
    assert strategy.start().known.points.shape == (2, 2)
    for place, expected in (([-1.0122, 0.0], {-1.0122, 5.0}), ([9.0, 9.0], {5.0, 6.0})):
        state = at_age(strategy, 3, [[6.0, 0.0], [5.0, 0.0]])
        state.phase[0] = DUEL
        converged(strategy, state, 0, place)
        state = generation(strategy, state, lambda x: np.minimum(wells(x), 50 + x[:, 0]), rng)
        close(sorted(state.known.points[:, 0]), sorted(expected), 1e-6)
        assert state.phase[0] == SCOUT


def test_no_optimum_is_forgotten_unless_the_new_one_was_compared_with_others() -> None:
    strategy = pair(most_modes=3)
    for tags, forgotten in (([0, 1], None), ([3, 3], None), ([1, 0, 1], None), ([3, 1, 0], 0), ([0, 3, 1, 0, 3, 1], 1)):
        state = at_age(strategy, 3, [[6.0, 0.0], [5.0, 0.0], [4.0, 0.0]])
        state.phase[0], before = DUEL, state.known.points.copy()
        local = np.column_stack([np.zeros(len(tags)), tags, np.full(len(tags), -1.0), np.zeros((len(tags), 2))])
        after = strategy.update(state, Ranked(local, np.arange(len(tags))))
        changed = np.flatnonzero((after.known.points != before).any(axis=1)).tolist()
        assert changed == ([] if forgotten is None else [forgotten])
        assert after.phase[0] == (DUEL if forgotten is None else SCOUT)


def test_known_optima_are_compared_with_new_ones_in_turn() -> None:
    strategy, rng = pair(most_modes=40), np.random.default_rng(0)
    known = [[10.0 + i, 0.0] for i in range(40)]
    state = at_age(strategy, 3, known)
    seen = []
    for _ in range(4):
        state.phase[0], state.age[1] = DUEL, -500.5
        converged(strategy, state, 0, [90.0, 0.0])
        tags = strategy.sample(state, 12, rng).local[:6, 1]
        seen += tags[:-1].tolist()
        assert tags[-1] == 40
        idle = float(state.known.idle)
        state = generation(strategy, state, lambda x: x[:, 0], rng)  # the new one is the worst and is not kept
        assert state.known.idle == idle + 1
        close(state.known.points, known)
    assert seen == list(range(20))


def test_components_that_converge_together_are_one_optimum() -> None:
    strategy, rng = pair(), np.random.default_rng(0)
    state = at_age(strategy, 3, [[0.9873, 0.0]])
    state.known.idle[...] = 7
    for k in range(2):
        converged(strategy, state, k, [-1.0122, 0.0])
    state = generation(strategy, state, wells, rng)
    assert list(state.phase) == [PROBE, PROBE]
    state = generation(strategy, state, wells, rng)
    assert list(state.known.hits[:3]) == [1, 2, 0]
    assert state.known.idle == 1  # a new optimum, then a known one


def test_a_descent_ends_after_its_longest_duration() -> None:
    strategy, rng = pair(), np.random.default_rng(0)
    state = at_age(strategy, np.ceil(strategy._descents.longest), [])
    state = generation(strategy, state, wells, rng)
    assert state.known.hits.sum() == 1
    state = at_age(strategy, np.ceil(strategy._descents.longest) - 2, [])
    state = generation(strategy, state, wells, rng)
    assert state.known.hits.sum() == 0


def test_a_descent_ends_when_its_covariance_is_ill_conditioned() -> None:
    for condition, over in ((0.1 * CONDITION, False), (10 * CONDITION, True)):
        mixture = Mixture((Gaussian("diagonal", [-1.0, 0.0]), Gaussian("full", [1.0, 0.0])))
        strategy = MixtureSearch(mixture)
        state = at_age(strategy, strategy._descents.period, [])
        state.searches[0].root[:] = 1.0, condition**-0.5
        state.age[0] += 1
        assert strategy._descents._is_over(state, 0) == over


def test_standard_deviations_stay_below_a_third_of_the_box() -> None:
    gaussian = Gaussian("full", [0.5, 0.5], sigma0=0.1)
    for box, most in (([(0.0, 1.0), (0.0, 2.0)], [1 / 3, 2 / 3]), (None, [np.inf, np.inf])):
        strategy = MixtureSearch(Mixture((gaussian,)), bounds=box)
        state, rng = strategy.start(), np.random.default_rng(0)
        for _ in range(8):
            state = generation(strategy, state, lambda x: -np.abs(x - 0.5).sum(axis=1), rng)
        assert (strategy.stds(state) <= np.array(most) * (1 + 1e-12)).all()
        assert (strategy.stds(state) > 0.2).any()


def test_points_not_asked_for_do_not_count_in_the_shares() -> None:
    strategy, rng = pair(), np.random.default_rng(0)
    state = strategy.start()
    stray = strategy.local(state, rng.standard_normal((5, 2)) - [3, 0])
    assert np.array_equal(strategy.update(state, Ranked(stray, np.arange(5))).credit, [0, 0])
    drawn = strategy.sample(state, 12, rng)
    close(strategy.update(state, Ranked(drawn.local[:6], np.arange(6))).credit, [-3, 3])


def test_scouted_descents_are_as_wide_as_a_fifth_of_the_way_to_the_nearest_optimum() -> None:
    strategy = pair()
    unit = strategy._descents.niches.scale[0]  # of the first coordinate, which is the wider one
    for distance in (0.01, 0.1, 1.0, 9.0):
        state = at_age(strategy, 3, [[1.0, 0.0]])
        state.phase[0] = SCOUT
        strategy._descents._start_descent(state, 0, np.array([[1.0 + distance, 0.0]]))
        stds = np.sqrt(strategy._descents.components[0].evolution.variances(state.searches[0]))
        widest = (stds / strategy._descents.niches.scale).max()
        close(widest, min(0.2 * distance / unit, (0.3 / strategy._descents.niches.scale).max()))
    state = strategy.start()
    strategy._descents._start_descent(state, 0, np.array([[1.0, 0.0]]))
    close(state.searches[0].sigma, [0.3])
    assert state.phase[0] == SEARCH  # there is nothing to probe


def test_a_descent_does_not_start_at_a_known_optimum() -> None:
    """As scouts never are there, but points that were not asked for can be."""
    strategy = pair()
    state = at_age(strategy, 3, [[1.0, 0.0]])
    state.phase[0] = SCOUT
    strategy._descents._start_descent(state, 0, np.array([[1.0, 0.0]]))
    assert state.phase[0] == SCOUT and state.known.hits[0] == 1
    strategy._descents._start_descent(state, 0, np.array([[1.0, 0.0], [1.0 + 1e-6, 0.0], [2.0, 0.0], [3.0, 0.0]]))
    assert state.phase[0] == PROBE
    close(strategy._descents.center(state, 0), [2.0, 0.0])


# ---- results ----------------------------------------------------------------------------------------------------


def test_modes_are_the_components_until_there_are_optima() -> None:
    strategy = pair()
    state = strategy.start()
    close([mode.point for mode in strategy.modes(state)], [[-1, 0], [1, 0]])
    state.known.points[3], state.known.hits[3] = [7.0, 8.0], 3
    state.known.points[5], state.known.hits[5] = [9.0, 8.0], 1
    modes = strategy.view(state).fields()["modes"]
    close([mode.point for mode in modes], [[7, 8], [9, 8]])
    assert [mode.weight for mode in modes] == [0.75, 0.25]
    assert all(np.isnan(mode.value) for mode in modes)


def test_descents_close_to_another_optimum_are_reported() -> None:
    strategy = pair()
    for width, mean, reported in ((2e-4, 1.0, True), (2e-2, 1.0, False), (2e-4, -1.0121, False), (2e-4, -1.0, True)):
        state = at_age(strategy, 3, [[-1.0122, 0.0]])
        state.known.hits[0] = 3
        search = state.searches[1]
        search.mean[0], search.sigma[0] = mean, width
        modes = strategy.modes(state)
        assert len(modes) == 1 + reported
        assert [mode.weight for mode in modes] == ([0.75, 0.25] if reported else [1.0])
        if reported:
            close(modes[1].point, [mean, 0.0])


def test_the_value_of_an_optimum_is_the_best_one_evaluated_near_it() -> None:
    strategy = pair()
    state = at_age(strategy, 3, [[5.0, 0.0], [5.0, 1.0]])
    near = 0.9 * strategy._descents.niches.resolution
    told = np.array([[5.0 + near, 0.0], [5.0, 1.0], [5.0 + 9 * near, 0.0], [5.0, -0.3 * near], [5.0, 0.0]])
    state = valued(strategy, state, told, np.array([3.0, 7.0, 2.5, 2.0, np.nan]))
    modes = strategy.modes(state)
    assert [mode.value for mode in modes] == [2.0, 7.0]  # the best first
    close([mode.point for mode in modes], [[5.0, -0.3 * near], [5.0, 1.0]])
    state.known.points[0, 0] += 1.0  # another optimum replaces the first
    later = strategy.modes(valued(strategy, state, np.array([[6.0, 0.0], [5.0, 1.0]]), np.array([1.0, 8.0])))
    assert [mode.value for mode in later] == [1.0, 7.0]
    state.known.points[1, 0] += 1.0
    nowhere = strategy.modes(valued(strategy, state, told[1:2], np.array([8.0])))
    assert nowhere[0].value == 2.0 and np.isnan([mode.value for mode in nowhere[1:]]).all()
    close([mode.point for mode in nowhere[1:]], [[6.0, 0.0], [6.0, 1.0]])


def test_the_value_of_a_descent_is_the_best_one_within_ten_deviations() -> None:
    strategy = pair()
    state = at_age(strategy, 3, [[-1.0, 0.0]])
    search = state.searches[1]
    search.mean[:], search.sigma[0] = [1.0, 0.0], 1e-5
    told = np.array([[1.0 + 9e-5, 0.0], [1.0 + 11e-5, 0.0], [1.0, 5e-5]])
    modes = strategy.modes(valued(strategy, state, told, np.array([4.0, 1.0, 5.0])))
    assert [mode.value for mode in modes[:2]] == [1.0, 4.0] and np.array_equal(modes[1].point, told[0])


def test_the_best_point_overall_is_listed_although_no_optimum_is_near() -> None:
    strategy = pair()
    state = at_age(strategy, 3, [[5.0, 0.0]])
    state = valued(strategy, state, np.array([[0.5, 0.5], [5.0, 0.0]]), np.array([1.0, 2.0]))
    state = valued(strategy, state, np.array([[0.7, 0.5], [5.0, 0.0]]), np.array([1.0, 3.0]))
    modes = strategy.modes(state)
    assert [(mode.value, mode.weight) for mode in modes] == [(1.0, 0.0), (2.0, 1.0)]
    assert np.array_equal(modes[0].point, [0.5, 0.5])
    modes = strategy.modes(valued(strategy, state, np.array([[5.0, 0.0]]), np.array([-1.0])))
    assert [(mode.value, mode.weight) for mode in modes] == [(-1.0, 1.0)]


def test_two_components_in_one_place_are_one_mode_with_the_better_value() -> None:
    strategy = pair()
    state = strategy.start()
    for k, mean in enumerate((1.0, 1.0 + 1e-5)):
        search = state.searches[k]
        search.mean[0], search.sigma[0] = mean, 1e-5
    told = np.array([[1.0, 0.0], [1.0 + 1e-5, 0.0]])
    for values in ([1.0, 2.0], [2.0, 1.0]):
        modes = strategy.modes(valued(strategy, state, told, np.array(values)))
        assert [mode.value for mode in modes] == [1.0]


@pytest.mark.parametrize("dim", [2, 12])
def test_a_point_counts_for_the_nearest_place_that_it_is_near(dim: int) -> None:
    rng = np.random.default_rng(dim)
    centers, points, values = rng.random((5, dim)), rng.random((300, dim)), rng.random(300)
    widths, scale = rng.uniform(0.4, 0.9, (5, dim)), np.logspace(-1, 1, dim)
    values[::7] = np.nan
    expected = np.full(5, np.inf)
    for point, value in zip(points, values, strict=True):
        gaps = np.abs(point - centers)
        distances = np.where((gaps <= widths).all(axis=1), (gaps / scale).max(axis=1), np.inf)
        nearest = distances.argmin()
        if distances[nearest] < np.inf and value < expected[nearest]:
            expected[nearest] = value
    found = best_near(Neighborhoods(centers, widths, scale), ValuedPoints(points, values))
    assert np.array_equal(found.values, expected)
    rows = [int(np.flatnonzero(values == value)[0]) for value in expected]
    assert len(set(rows)) == 5 and np.array_equal(found.points, points[rows])


def test_before_there_is_an_optimum_modes_are_different_points() -> None:
    result = esgroup.minimize(himmelblau, [0.0, 0.0], bounds=(-6, 6), basins=4, max_evals=24, rng=1, vectorized=True)
    points = np.array([mode.point for mode in result.modes])
    assert len(np.unique(points, axis=0)) == len(points) == 4
    close([mode.value for mode in result.modes], himmelblau(points))


def test_components_that_are_scouting_are_no_modes() -> None:
    strategy = pair()
    state = strategy.start()
    state.phase[0] = SCOUT
    close([mode.point for mode in strategy.modes(state)], [[1, 0]])
    state.phase[1] = SCOUT
    assert [mode.weight for mode in strategy.modes(state)] == [1.0]


@pytest.mark.parametrize("n", [5, 24])
def test_the_first_mode_has_the_best_value_at_any_time(n: int) -> None:
    mixture = Mixture.spread(4, bounds=[(-5, 5)] * 2, rng=4)
    search = esgroup.Searcher(mixture, bounds=(-5, 5), rng=4, max_evals=720)
    while not search.stop():
        points = search.ask(n)
        search.tell(points, rastrigin(points))
        modes = search.result.modes
        assert modes[0].value == search.best_f
        assert len({tuple(mode.point) for mode in modes}) == len(modes)
        assert sum(mode.weight for mode in modes) == pytest.approx(1)


def test_standard_deviations_are_those_of_the_mixture() -> None:
    strategy = pair()
    close(strategy.stds(strategy.start()), [np.sqrt(1 + 0.09), 0.3])


@pytest.mark.parametrize("form", ["covariance", "precision"])
def test_scouts_are_drawn_from_a_gaussian_with_the_moments_of_the_mixture(form: str) -> None:
    rng = np.random.default_rng(1)
    parts = tuple(Gaussian("full", m, covariance=covariance(2, rng), form=form) for m in ([0.0, 0.0], [1.0, 4.0]))
    mixture = Mixture(parts, [0.3, 0.7])
    mean, stds = MixtureSearch(mixture)._descents.broad
    close(mean, mixture.mean(mixture.state()))
    close(stds**2, np.diagonal(mixture.dense_covariance(mixture.state())))


@pytest.mark.parametrize("bounds", [None, [(-1.0, 1.0)] * 2000])
def test_no_array_of_a_mixture_of_diagonal_gaussians_is_as_large_as_a_matrix(bounds: list | None) -> None:
    dim, region = 2000, {"mean": np.zeros(2000), "sigma0": 1.0} if bounds is None else {"bounds": bounds}
    small = MixtureSearch(Mixture.spread(2, bounds=BOX, structure="diagonal", rng=0), bounds=BOX)
    small.sample(small.start(), 12, np.random.default_rng(0))  # what is imported for it does not count
    tracemalloc.start()
    try:
        strategy = MixtureSearch(Mixture.spread(4, structure="diagonal", rng=0, **region), bounds=bounds)
        state, rng = strategy.start(), np.random.default_rng(0)
        drawn = strategy.sample(state, strategy.popsize, rng)
        values = (drawn.points**2).sum(axis=1)
        state.known.hits[:] = 1  # a full list
        state = strategy.update(state, Ranked(drawn.local, np.argsort(values), points=drawn.points, values=values))
        assert strategy.modes(state)[0].value == values.min()
        assert tracemalloc.get_traced_memory()[1] < 8 * dim**2
    finally:
        tracemalloc.stop()


def test_a_search_ends_after_many_descents_without_a_new_optimum() -> None:
    strategy = pair()
    state = strategy.start()
    state.known.hits[:3], state.known.idle[...] = 1, 79
    assert not strategy.criteria[1].look(state, strategy.stds(state))
    state.known.idle[...] = 80
    assert list(strategy.criteria[1].look(state, strategy.stds(state))) == ["modes"]
    state.age[1] = strategy._descents.period  # a descent that has passed a probe may find another one
    assert not strategy.criteria[1].look(state, strategy.stds(state))
    state.known.idle[...] = 160
    assert strategy.criteria[1].look(state, strategy.stds(state))
    state.age[1], state.known.idle[...], state.known.hits[3] = 0, 80, 1
    assert not strategy.criteria[1].look(state, strategy.stds(state))


def test_a_search_with_a_full_list_ends_after_fewer_descents_without_a_better_optimum() -> None:
    for most, enough in ((2, 20), (5, 35), (500, 130)):
        strategy = pair(most_modes=most)
        state = strategy._descents.resized(strategy.start(), most)
        state.known.hits[:], state.known.idle[...] = 1, enough - 1
        assert not strategy.criteria[1].look(state, strategy.stds(state))
        state.known.idle[...] = enough
        assert list(strategy.criteria[1].look(state, strategy.stds(state))) == ["modes"]


@pytest.mark.parametrize("seed", range(3))
def test_all_four_optima_of_himmelblaus_function_are_found(seed: int) -> None:
    strategy = MixtureSearch(Mixture.spread(4, bounds=BOX, rng=seed), bounds=BOX)
    state, evals = run(strategy, himmelblau, seed, 12_000)
    assert number_found(HIMMELBLAU, state, 1e-5) == (state.known.hits > 0).sum() == 4
    assert evals < 12_000


@pytest.mark.parametrize(
    ("n", "box", "optima", "fun"),
    [(1, BOX[:1] / 3, np.roots([4, 0, -4, 0.1])[[0, 1], None], wells), (2, BOX, HIMMELBLAU, himmelblau)],
    ids=["1", "2"],
)
def test_all_optima_are_found_with_points_asked_for_one_or_two_at_a_time(n: int, box, optima, fun) -> None:
    search = esgroup.Searcher(Mixture.spread(len(optima), bounds=box, rng=1), bounds=box, rng=1, max_evals=12_000)
    while not search.stop():
        points = search.ask(n)
        search.tell(points, fun(points))
    assert list(search.stop()) == ["modes"]
    assert number_found(optima, search.state, 1e-5) == (search.state.known.hits > 0).sum() == len(optima)


def test_a_full_list_is_kept_with_points_asked_for_one_at_a_time() -> None:
    mixture = Mixture.spread(4, bounds=[(-5, 5)] * 2, rng=1)
    strategy, rng = MixtureSearch(mixture, bounds=(-5, 5), most_modes=3), np.random.default_rng(1)
    state, duels = strategy.start(), 0
    for _ in range(400):
        ones = one_by_one(strategy, state, strategy.popsize, rng)
        duels += int((state.phase == DUEL).any())
        order = np.argsort(rastrigin(np.concatenate([one.points for one in ones])), kind="stable")
        state = strategy.update(state, Ranked(np.concatenate([one.local for one in ones]), order))
    assert duels > 0
    assert (np.sort(rastrigin(state.known.points)) < 2.1).all()  # at 0, 1 and 2 there are nine optima


def test_two_wells_in_five_dimensions_are_both_found_without_a_box() -> None:
    strategy = MixtureSearch(Mixture.spread(3, mean=np.zeros(5), sigma0=1.0, rng=0))
    state, _ = run(strategy, wells, 0, 12_000)
    optima = np.zeros((2, 5))
    optima[:, 0] = np.roots([4, 0, -4, 0.1])[[0, 1]]
    assert number_found(optima, state, 1e-4) == 2


def test_a_minimum_at_the_bound_of_the_box_is_found() -> None:
    strategy = MixtureSearch(Mixture.spread(2, bounds=BOX, rng=0), bounds=BOX)
    state, _ = run(strategy, lambda x: x[:, 0] + (x[:, 1] - 1) ** 2, 0, 3_000)
    assert (state.known.hits > 0).sum() == 1
    close(state.known.points[0], [-6, 1], 1e-4)


@pytest.mark.parametrize(("options", "message"), [
    ({"popsize_wanted": 3}, "popsize_wanted .*>= 4.* 3$"),
    ({"most_modes": 0}, "most_modes .*>= 1.* 0$"),
    ({"bounds": [(0.0, 1.0)]}, "bounds .*1 pairs for 2 variables"),
    ({"bounds": [(0.0, 1.0), (1.0, 0.0)]}, r"bounds .*lower <= upper.* \(1.0, 0.0\).* variable 1"),
    ({"bounds": [(0.0, 1.0), (1.0, 1.0)]}, r"bounds .*lower < upper.* \(1.0, 1.0\).* variable 1"),
    ({"bounds": (0.0, None)}, r"bounds .*finite.* inf at index \(0, 1\)"),
])  # fmt: skip
def test_bad_options_are_refused_with_their_name_and_value(options: dict, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        pair(**options)


def test_a_distribution_of_another_kind_or_with_learned_weights_is_refused() -> None:
    with pytest.raises(TypeError, match=r"distribution .*Mixture"):
        MixtureSearch(Gaussian("full", [0.0]))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"distribution .*learn_weights=False.* True"):
        MixtureSearch(Mixture.spread(2, bounds=BOX, learn_weights=True, rng=0))


# ---- options of the components ----------------------------------------------------------------------------------


def himmelblau_beside(x: np.ndarray) -> float:
    """Four optima, at the third number 1."""
    return float((x[0] ** 2 + x[1] - 11) ** 2 + (x[0] + x[1] ** 2 - 7) ** 2 + (x[2] - 1) ** 2)


@pytest.mark.parametrize(
    "options",
    [
        {"mirrored": True},
        {"step_size": "tpa"},
        {"noise": "adapt"},
        {"decoding": False},
        {"algorithm": "paper"},
        {"cov0": np.diag([1.0, 2.0, 0.1])},
    ],
    ids=lambda one: next(iter(one)),
)
def test_all_optima_are_found_with_the_devices_of_gaussians(options: dict[str, Any]) -> None:
    result = minimize(himmelblau_beside, np.zeros(3), 3.0, basins=4, rng=1, max_evals=15_000, **options)
    assert len([mode for mode in result.modes if mode.value < 1e-9]) == 4
    plain = minimize(himmelblau_beside, np.zeros(3), 3.0, basins=4, rng=1, max_evals=100)
    other = minimize(himmelblau_beside, np.zeros(3), 3.0, basins=4, rng=1, max_evals=100, **options)
    assert not np.array_equal(other.stds, plain.stds)


def test_components_have_the_devices_and_samples_their_marks() -> None:
    mixture = Mixture.spread(2, mean=np.zeros(3), sigma0=1.0, rng=1)
    search = Searcher(mixture, mirrored=True, step_size="tpa", noise="adapt", rng=1)
    strategy = search.strategy
    assert isinstance(strategy, MixtureSearch)
    for component in strategy._descents.components:
        evolution = component.evolution
        assert evolution.sampling.mirrored and evolution.adaptation is not None and evolution.carries_inverse
        assert type(evolution.step_size).__name__ == "TwoPointStepSize"
    for _ in range(2):
        X = search.ask()
        search.tell([himmelblau_beside(x) for x in X])
    search.ask()
    marks = search.ledger.asked[-1].drawn.local[:, :2]
    for k in (0, 1):  # ahead, behind, and two near each other
        assert sorted(marks[marks[:, 0] == k, 1].tolist())[:4] == [-5.0, -4.0, -3.0, -2.0]
    first, second = (search.state.searches[k] for k in (0, 1))
    assert np.abs(first.memory).max() > 0 and first.rates[4] != 0.9 and second.rates[4] != 0.9


def test_fixed_variables_are_not_searched_and_modes_have_their_values() -> None:
    for bounds, sigma0 in ((None, 3.0), ((-6, 6), None)):
        options: dict[str, Any] = {"fixed": {2: 3.0}, "bounds": bounds, "rng": 1, "max_evals": 12_000}
        result = minimize(himmelblau_beside, np.zeros(3), sigma0, basins=4, **options)
        assert list(result.stop) == ["modes"] and result.x[2] == 3.0 and result.stds[2] == 0.0
        assert len(result.modes) == 4 and {mode.point[2] for mode in result.modes} == {3.0}
        assert [mode.value for mode in result.modes] == pytest.approx([4.0] * 4)


def test_equal_values_in_a_box_with_a_fixed_variable_are_a_plateau_and_no_error() -> None:
    result = minimize(lambda x: 1.0, np.ones(3), basins=2, fixed=[2], bounds=(-5.5, 5.5), rng=1, max_evals=400)
    assert result.fun == 1.0 and list(result.stop) == ["tolfun", "flat"]


def test_modes_differ_by_integers_where_there_are_integers() -> None:
    options: dict[str, Any] = {"integer": [0, 1], "fixed": [2], "bounds": (-5.5, 5.5), "rng": 1, "max_evals": 12_000}
    result = minimize(himmelblau_beside, np.ones(3), basins=4, **options)
    points = np.array([mode.point for mode in result.modes])
    assert np.array_equal(points[:, :2], np.rint(points[:, :2])) and len(np.unique(points, axis=0)) == len(points)
    assert points[0].tolist() == [3.0, 2.0, 1.0] and np.abs(points).max() <= 5
    assert [mode.value for mode in result.modes] == [himmelblau_beside(point) for point in points]
    with pytest.raises(ValueError, match=r"X\[0, 0\] must be an integer"):
        whole = mixture_over(2, "vector", np.ones(3), None, SearchOptions(integer=[0]), generator(1))
        Searcher(whole).inject([0.5] * 3)


def test_a_first_covariance_shapes_the_region_and_every_component() -> None:
    cov0 = np.array([[1.0, 0.3], [0.3, 0.5]])
    strategy = mixture_over(400, "vector", [5.0, -5.0], 2.0, SearchOptions(cov0=cov0), generator(1))
    assert isinstance(strategy, MixtureSearch)
    state = strategy.distribution.state()
    means = np.array([component.mean for component in strategy.distribution.components])
    np.testing.assert_allclose(np.cov(means.T), 4 * cov0, rtol=0.2)
    gaussian, first = strategy.distribution.components[0], strategy.distribution.component_states(state)[0]
    np.testing.assert_allclose(gaussian.dense_covariance(first), 4 * cov0 / 400, rtol=1e-9)
    with pytest.raises(ValueError, match="cov0 must be left out when basins are spread over bounds"):
        minimize(himmelblau_beside, np.zeros(3), basins=2, bounds=(-1, 1), cov0=np.eye(3))
    with pytest.raises(ValueError, match="restarts cannot be combined with basins"):
        minimize(himmelblau_beside, np.zeros(3), basins=2, restarts="ipop")
