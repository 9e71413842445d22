"""A frame in searches as users have them: bounds, integers, constraints, late and foreign points, other starts."""

import numpy as np
import pytest
from scipy.optimize import NonlinearConstraint

import esgroup
from esgroup import Searcher
from esgroup.checks import Array
from esgroup.groups import Frame, Full

DIM = 24


def bowl(x: Array) -> float:
    return float((np.arange(1, len(x) + 1) * (x - 0.5) ** 2).sum())


def test_bounds_are_kept_and_the_minimum_on_them_is_found() -> None:
    result = esgroup.minimize(
        bowl, np.full(DIM, 2.0), 0.5, bounds=[(1.0, 4.0)] * 12 + [(None, None)] * 12, structure="frame", rng=1,
        target=bowl(np.array([1.0] * 12 + [0.5] * 12)) + 1e-6, max_evals=20_000,
    )  # fmt: skip
    assert result.success and (result.x[:12] >= 1.0).all()


def test_whole_numbers_are_searched_among_others() -> None:
    result = esgroup.minimize(
        lambda x: bowl(x - np.where(np.arange(DIM) < 4, 2.4, 0.0)), np.full(DIM, 6.0), 2.0, integer=[0, 1, 2, 3],
        structure="frame", rng=1, target=0.1001, max_evals=30_000,
    )  # fmt: skip
    assert result.success and result.x[:4].tolist() == [3.0] * 4


def test_constraints_are_met_and_have_their_multipliers() -> None:
    """|x|^2 with sum x >= 1: x = 1 / n, and a multiplier of 2 / n."""
    result = esgroup.minimize(
        lambda x: float(x @ x), np.ones(DIM), 0.3, structure="frame", rng=1, max_evals=20_000,
        constraints=NonlinearConstraint(lambda x: x.sum(), 1.0, np.inf),
    )  # fmt: skip
    assert result.feasible
    np.testing.assert_allclose(result.x, np.full(DIM, 1 / DIM), atol=2e-3)
    np.testing.assert_allclose(np.abs(result.multipliers[0]), 2 / DIM, rtol=0.1)


def test_values_come_late_and_from_points_that_were_never_asked_for() -> None:
    search = Searcher(np.ones(DIM), 1.0, structure="frame", rng=1, target=1e-6, max_evals=30_000)
    rng, out = np.random.default_rng(1), []
    while not search.stop():
        out += [(x, bowl(x)) for x in search.ask(7)]
        told = [out.pop(int(rng.integers(len(out)))) for _ in range(7 if len(out) > 20 else 1)]
        search.tell(told)
        if search.nit == 5:
            near = search.mean + 0.1 * rng.standard_normal((3, DIM))
            search.tell(near, [bowl(x) for x in near])
    assert search.result.success


def test_the_two_point_rule_works_as_well() -> None:
    result = esgroup.minimize(
        bowl, np.ones(DIM), 1.0, structure="frame", step_size="tpa", rng=1, target=1e-8, max_evals=20_000
    )
    assert result.success


def test_a_search_starts_from_a_frame_of_any_number_of_axes() -> None:
    first = Searcher(np.ones(DIM), 1.0, structure="frame", rng=1)
    while len(first.state.root) == Frame(DIM).size:
        first.tell([float(x @ x + 1e4 * x[:2].sum() ** 2 + 1e3 * x[5] * x[5]) for x in first.ask()])
    again = Searcher(first, rng=2)
    assert again.structure == Frame(DIM) and len(again.state.root) == len(first.state.root)
    np.testing.assert_allclose(again.stds, first.stds, rtol=1e-10)
    dense = Searcher(first, structure="full", rng=2)
    np.testing.assert_allclose(dense.stds, first.stds, rtol=1e-8)
    few = Searcher(dense, structure="frame:k=2", rng=2)
    assert few.structure == Frame(DIM, 2) and len(few.state.root) == Frame(DIM, 2).size


def test_a_start_from_a_frame_with_what_a_frame_does_not_have_is_another_structure() -> None:
    first = Searcher(np.ones(DIM), 1.0, structure="frame", rng=1)
    for _ in range(20):
        first.tell([bowl(x) for x in first.ask()])
    noisy = Searcher(first, noise="adapt", rng=2)
    assert noisy.structure == Full(DIM)
    np.testing.assert_allclose(noisy.stds, first.stds, rtol=1e-8)


def test_restarts_begin_with_a_frame_again() -> None:
    """After the full matrix has taken its place in the run before."""
    structures = []
    turn = np.linalg.qr(np.random.default_rng(1).standard_normal((8, 8)))[0]

    def rugged(x: Array) -> float:
        y = turn @ x
        return float((10.0 ** np.arange(8) * y * y).sum() + 5 * (1 - np.cos(9 * y)).sum())

    esgroup.minimize(
        rugged, np.full(8, 2.0), 1.0, structure="frame", restarts="ipop", rng=1, max_evals=40_000,
        callback=lambda search: structures.append(search.structure),
    )  # fmt: skip
    names = [type(one).__name__ for one in structures]
    assert names[0] == "Frame" and "Full" in names
    assert "Frame" in names[names.index("Full") :]


def test_a_full_matrix_that_took_over_is_no_longer_given_up() -> None:
    search = Searcher(np.ones(8), 1.0, structure="frame", rng=1)
    turn = np.linalg.qr(np.random.default_rng(2).standard_normal((8, 8)))[0]
    for _ in range(300):
        search.tell([float((10.0 ** np.arange(8) * (turn @ x) ** 2).sum()) for x in search.ask()])
    assert search.structure == Full(8)
    assert search.strategy.successor(search.state) is None


def test_a_state_that_is_no_frame_is_refused() -> None:
    search = Searcher(np.ones(6), 1.0, structure="frame", rng=1)
    state = search.state._replace(root=np.ones(9))
    with pytest.raises(ValueError, match=r"root must have 1 \+ 7 k numbers"):
        search.strategy.checked(state)


def test_a_frame_goes_with_samples_in_pairs() -> None:
    search = Searcher(np.ones(16), 1.0, structure="frame:k=4", mirrored=True, rng=1)
    X = search.ask()
    half = len(X) // 2
    assert np.allclose(X[:half] + X[half : 2 * half], 2 * search.mean, atol=1e-12)
    while search.best_f > 1e-8 or not search.nfev:
        search.tell([float(x[0] ** 2 + 1e4 * (x[1:] @ x[1:])) for x in search.ask()])
        assert search.nfev < 6000
