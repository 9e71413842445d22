"""Two-point step-size adaptation: the published formula, and samples that keep their identity."""

import math
from pathlib import Path

import numpy as np
import pytest

import esgroup
from esgroup import Searcher
from esgroup.groups import Diagonal, Full, Group, Heisenberg, Kronecker, Triangular
from esgroup.strategies.evolution import Evolution, Generation
from esgroup.strategies.recombination import Cumulative
from esgroup.strategies.step_size import CumulativeStepSize, Moved
from esgroup.strategies.two_point import AHEAD, BEHIND, TwoPointStepSize
from tests.groups.elements import element
from tests.groups.laws import close
from tests.strategies.states import DAMPING, NEGATIVE_MEAN, some_state

GROUPS = [Full(4), Triangular(4), Diagonal(4), Heisenberg(4, 1, 1), Kronecker(Full(2), Full(2))]


def evolution_of(group: Group) -> Evolution:
    return Evolution(group, Cumulative(NEGATIVE_MEAN, DAMPING), step_size=TwoPointStepSize())


def log_step(order: list[int], tags: list[int] | None, shift: np.ndarray, memory: np.ndarray) -> float:
    constants = Cumulative().constants(len(order), len(shift), len(shift))
    marked = None if tags is None else np.array(tags)
    return TwoPointStepSize().log_step(Moved(constants, 1.0, np.array(order), marked, shift, memory))


@pytest.mark.parametrize("group", GROUPS, ids=str)
def test_two_samples_lie_ahead_of_and_behind_the_last_move(group: Group) -> None:
    rng = np.random.default_rng(1)
    root, scale, v = element(group, rng), rng.uniform(0.5, 2.0, 4), rng.standard_normal(4)
    z = rng.standard_normal((6, 4))
    before = z.copy()
    tags = TwoPointStepSize().mark(group, root, scale, np.append(v, 0.3), z)
    assert tags is not None and tags.tolist() == [AHEAD, BEHIND, 0, 0, 0, 0]
    step = scale[:, None] * group.dense(root) @ z[0]  # in the coordinates of the mean
    close(step / np.linalg.norm(step), v / np.linalg.norm(v))
    close(np.linalg.norm(z[0]), np.linalg.norm(before[0]))  # the length of a sample
    close(z[1], -z[0])
    assert np.array_equal(z[2:], before[2:])


@pytest.mark.parametrize("n, v", [(6, np.zeros(3)), (1, np.ones(3))])
def test_without_a_last_move_or_a_second_sample_there_are_no_test_points(n: int, v: np.ndarray) -> None:
    z = np.random.default_rng(0).standard_normal((n, 3))
    before = z.copy()
    assert TwoPointStepSize().mark(Full(3), np.eye(3).ravel(), np.ones(3), np.append(v, 0.0), z) is None
    assert np.array_equal(z, before)


def test_ranks_decide_as_published() -> None:
    shift = np.array([0.5, -1.0, 2.0, 0.0])
    memory = np.array([9.0, 9.0, 9.0, 9.0, 0.2])
    # rows 0 and 1 are the test points, at ranks 1 and 4 of 0 ... 5
    found = log_step([3, 0, 2, 5, 1, 4], [AHEAD, BEHIND, 0, 0, 0, 0], shift, memory)
    s = 0.7 * 0.2 + 0.3 * (4 - 1) / 5
    close(found, s / math.sqrt(4))
    close(memory, [*shift, s])
    found = log_step([1, 5, 2, 3, 4, 0], [AHEAD, BEHIND, 0, 0, 0, 0], shift, memory)
    s = 0.7 * s - 0.3
    close(found, s / 2)
    assert found < 0


@pytest.mark.parametrize("tags", [None, [0] * 4, [AHEAD, 0, 0, 0], [0, BEHIND, 0, 0], [AHEAD, AHEAD, BEHIND, 0]])
def test_a_generation_without_the_pair_leaves_sigma(tags: list[int] | None) -> None:
    memory = np.array([0.0, 0.0, 0.4])
    assert log_step([2, 0, 3, 1], tags, np.array([1.0, 2.0]), memory) == 0.0
    close(memory, [1.0, 2.0, 0.4])


@pytest.mark.parametrize("group", GROUPS, ids=str)
def test_one_generation_changes_sigma_alone(group: Group) -> None:
    """Mean, paths and root move as with the cumulative rule; sigma by the factor of the formula."""
    rng = np.random.default_rng(2)
    one, two = evolution_of(group), Evolution(group, Cumulative(NEGATIVE_MEAN, DAMPING), step_size=CumulativeStepSize())
    state = some_state(one, rng)
    state.memory[:] = rng.standard_normal(5)
    other = state._replace(memory=np.empty(0))
    other = type(state)(*(array.copy() for array in other))
    generation, x = Generation.empty(7, 4), np.empty((7, 4))
    tags = one.sample(state, 7, rng, generation, x)
    order, before, s = rng.permutation(7), state.mean.copy(), float(state.memory[-1])
    copy = Generation.empty(7, 4)
    copy.z[:], copy.y[:] = generation.z, generation.y
    sigma = float(state.sigma[0])
    one.update(state, generation, order, tags)
    two.update(other, copy, order)
    for name in set(state._fields) - {"sigma", "memory"}:
        close(getattr(state, name), getattr(other, name))
    ranks = np.argsort(order)
    s = 0.7 * s + 0.3 * (ranks[1] - ranks[0]) / 6
    close(state.sigma[0], sigma * math.exp(s / 2), 1e-9)
    close(state.memory, [*(state.mean - before), s])


def tell(search: Searcher, rng: np.random.Generator | None = None) -> None:
    X = search.ask()
    order = np.arange(len(X)) if rng is None else rng.permutation(len(X))
    search.tell(X[order], [float(np.sum((x - 0.3) ** 2 * [1, 10, 100])) for x in X[order]])


def test_the_order_in_which_values_are_told_does_not_count() -> None:
    one, two = (Searcher(np.ones(3), 0.5, step_size="tpa", rng=1) for _ in range(2))
    rng = np.random.default_rng(0)
    for _ in range(12):
        tell(one)
        tell(two, rng)
    close([*one.state.memory, one.sigma], [*two.state.memory, two.sigma], 1e-8)
    assert one.state.memory[-1] != 0.0


def test_a_saved_search_continues_exactly(tmp_path: Path) -> None:
    search = Searcher(np.ones(3), 0.5, step_size="tpa", rng=1)
    for _ in range(5):
        tell(search)
    X = search.ask()
    search.save(tmp_path / "run.npz")
    other = Searcher.load(tmp_path / "run.npz")
    for one in (search, other):
        one.tell(X[::-1], [float(np.sum(x**2)) for x in X[::-1]])
        for _ in range(3):
            tell(one)
    assert np.array_equal(search.ask(), other.ask()) and np.array_equal(search.state.memory, other.state.memory)


def test_steps_grow_on_a_slope_and_shrink_around_the_minimum() -> None:
    slope, bowl = (Searcher(np.full(5, 1e-3), 1.0, step_size="tpa", rng=1) for _ in range(2))
    for _ in range(60):
        slope.tell([x[0] for x in slope.ask()])
        bowl.tell([x @ x for x in bowl.ask()])
    assert slope.sigma > 100 and bowl.sigma < 1e-3


@pytest.mark.parametrize("structure", ["full", "diagonal", "heisenberg:k1=1,k2=1"])
def test_it_finds_the_minimum(structure: str) -> None:
    search = Searcher(np.ones(6), 0.5, structure=structure, step_size="tpa", rng=3, target=1e-8, max_evals=8000)
    while not search.stop():
        search.tell([float(10 ** np.linspace(0, 4, 6) @ (x - 0.3) ** 2) for x in search.ask()])
    assert search.best_f <= 1e-8


@pytest.mark.parametrize("popsize", [6, 7])
def test_among_mirrored_samples_the_test_points_are_a_pair(popsize: int) -> None:
    search = Searcher(np.ones(3), 0.5, step_size="tpa", mirrored=True, popsize=popsize, rng=1)
    for _ in range(3):
        mean, X = search.mean, search.ask()
        paired = [bool((np.abs(X - (2 * mean - x)).max(axis=1) < 1e-12).any()) for x in X]
        assert sum(paired) == 2 * (popsize // 2)
        drawn = search.ledger.last.drawn  # type: ignore[union-attr]
        search.tell((X**2).sum(axis=1))
    tags = drawn.tags
    assert tags is not None
    ahead, behind = X[tags == AHEAD], X[tags == BEHIND]
    assert len(ahead) == len(behind) == 1
    close(ahead + behind, 2 * mean[None])


def test_an_unknown_rule_is_refused() -> None:
    with pytest.raises(ValueError, match=r"step_size .*'csa' or 'tpa'.* 'msr'"):
        Searcher(np.ones(3), 0.5, step_size="msr")  # type: ignore[arg-type]


def test_the_test_points_are_not_all_there_is() -> None:
    """With two points a generation would never leave the line of its first move, and end there as a success."""
    with pytest.raises(ValueError, match=r"popsize must be at least 3 .*tpa.* 2"):
        Searcher(np.ones(3), 0.5, popsize=2, step_size="tpa")
    for seed in range(3):
        result = esgroup.minimize(lambda x: float(x @ x), np.ones(3), 0.5, popsize=3, step_size="tpa", rng=seed)
        assert result.success and result.fun < 1e-12
