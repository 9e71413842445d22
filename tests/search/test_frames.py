"""A frame in searches as users have them: bounds, integers, constraints, late and foreign points, other starts."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import NonlinearConstraint

import esgroup
from esgroup import Choice, Real, Searcher, Space
from esgroup.checks import Array
from esgroup.groups import Frame, Full
from esgroup.strategies.integers import Widening

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


@pytest.mark.parametrize("options", [{"noise": "adapt"}, {"algorithm": "paper"}, {"model": "quadratic"}], ids=str)
def test_a_start_from_a_frame_is_a_frame_with_other_options_as_well(options: dict[str, Any]) -> None:
    first = Searcher(np.ones(DIM), 1.0, structure="frame", rng=1)
    for _ in range(20):
        first.tell([bowl(x) for x in first.ask()])
    other = Searcher(first, **options, rng=2)
    assert other.structure == Frame(DIM)
    np.testing.assert_allclose(other.stds, first.stds, rtol=1e-8)


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


def test_integers_at_rest_are_widened_with_any_number_of_axes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that begins anew has as many as at first."""
    search = Searcher(np.full(DIM, 6.0), 2.0, structure="frame", integer=[0, 1, 2, 3], rng=1)
    first = search.stds
    while len(search.state.root) == Frame(DIM).size:
        search.tell([turned(x) for x in search.ask()])
    monkeypatch.setattr(Widening, "due", lambda *of_search: 1.0)
    search.tell([turned(x) for x in search.ask()])
    assert len(search.state.root) == Frame(DIM).size
    np.testing.assert_allclose(search.stds, first, rtol=1e-10)


def turned(x: Array) -> float:
    turn = np.linalg.qr(np.random.default_rng(2).standard_normal((len(x), len(x))))[0]
    return float(10.0 ** np.linspace(0, 5, len(x)) @ (turn @ x) ** 2)


def test_a_space_with_a_frame_hands_over_beside_its_choices(tmp_path: Path) -> None:
    """To the full matrix, after 2 n^2 evaluations, in the same local coordinates; a file in between changes nothing."""
    space = Space({"a": Real(start=1.0, shape=8), "k": Choice("u", "v")})
    search, dims = Searcher(space, structure="frame", rng=1, target=1e-6, max_evals=20_000), set()
    while not search.stop():
        dims.add(len(search.state.numbers.root))
        if len(dims) == 2 and 64 in dims:
            search.save(tmp_path / "search.npz")
            search = Searcher.load(tmp_path / "search.npz")
        search.tell([turned(p["a"]) + (p["k"] == "u") for p in search.ask()])
    assert search.result.success and search.best_x["k"] == "v"
    assert Frame(8).size in dims and 64 in dims
    assert "Structure 'frame' had" in search.result.message
    assert "Full" in search.strategy.traits.about


def test_a_search_with_a_model_hands_over_what_the_model_has_learned() -> None:
    search = Searcher(np.ones(12), 1.0, structure="frame", model="quadratic", rng=2, max_evals=3000)
    while isinstance(search.structure, Frame):
        before, asked = search.state.surrogate, search.ask()
        search.tell([turned(x) for x in asked])
        assert search.nfev < 2000
    state, strategy = search.state, search.strategy
    assert search.structure == Full(12) and search.nfev >= 2 * 12**2 and "replaced by 'full'" in strategy.traits.note
    assert state.surrogate.seen > before.seen and len(state.plain.root) == 144
    z = strategy.coordinates(state).of_reals(strategy.mean(state)[None])
    np.testing.assert_allclose(z, np.zeros((1, 12)), atol=1e-12)
    known = strategy.inner.coordinates(state.plain).of_reals(state.archive[-20:])
    predicted = strategy.surrogate.predict(state.surrogate, known)
    assert np.corrcoef(predicted, state.values[-20:])[0, 1] > 0.9
    kept = Searcher(np.ones(12), 1.0, structure="frame:k=3", model="quadratic", rng=2)
    for _ in range(100):
        kept.tell([turned(x) for x in kept.ask()])
    assert kept.structure == Frame(12, 3)


def test_integers_are_searched_by_ranks_in_a_frame_beside_a_model() -> None:
    result = esgroup.minimize(
        lambda x: bowl(x[:12] - np.where(np.arange(12) < 2, 1.9, 0.0)), np.full(12, 4.0), 1.0, integer=[0, 1],
        structure="frame", model="quadratic", rng=1, target=0.0401, max_evals=4000,
    )  # fmt: skip
    assert result.success and result.x[:2].tolist() == [2.0, 2.0]


def test_noise_that_is_averaged_is_no_reason_to_give_a_frame_up() -> None:
    """With adapted rates a frame gets as near to the minimum as the diagonal and the full matrix, within a factor 2."""
    gaps = {}
    for structure in ("frame", "diagonal", "full"):
        rng = np.random.default_rng(3)
        search = Searcher(np.ones(30), 1.0, structure=structure, noise="adapt", rng=2, max_evals=15_000)
        while not search.stop():
            x = search.ask()
            search.tell((x**2).sum(axis=1) + rng.standard_normal(len(x)))
        gaps[structure] = float(search.mean @ search.mean)
        assert structure != "frame" or search.structure == Frame(30)
    assert gaps["frame"] < 2 * min(gaps.values()) < 0.2


def test_averages_of_another_number_of_axes_are_refused() -> None:
    search = Searcher(np.ones(6), 1.0, structure="frame", noise="adapt", rng=1)
    state = search.state._replace(average_m=np.ones(5))
    with pytest.raises(ValueError, match="average_m must have 24 numbers for 3 axes, got 5"):
        search.strategy.checked(state)


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
