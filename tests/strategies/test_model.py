"""Searches with a quadratic model: steps are the formulas, and asks, tells and files behave as everywhere."""

import copy
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import esgroup
from esgroup import Searcher
from esgroup.distributions.families import Gamma
from esgroup.files.states import flattened
from esgroup.groups import BlockTriangular, Diagonal, Full, Group, Heisenberg
from esgroup.running.history import read
from esgroup.strategies.evolution import SearchState
from esgroup.strategies.frames import FrameEvolution
from esgroup.strategies.model import ModelSearch
from esgroup.strategies.model_state import ASKED, COUNTED, NEW, Numbers
from esgroup.strategies.recombination import Published
from esgroup.strategies.surrogate_step import SurrogateStep
from esgroup.strategies.vector import VectorSearch
from esgroup.strategies.vector_coordinates import root_step
from esgroup.surrogates import Axes, QuadraticSurrogate
from esgroup.surrogates.quadratic import QuadraticState, root_logs
from esgroup.surrogates.quadratic_model import Quadratic, Support
from tests.groups.elements import element

Array = NDArray[np.float64]
Objective = Callable[[Array], float]


def sphere(x: Array) -> float:
    return float(((x - 0.5) ** 2).sum())


def ellipsoid(x: Array) -> float:
    turned = np.roll(x, 1) + 0.5 * x - 0.3
    return float((10.0 ** np.linspace(0, 3, len(x)) * turned**2).sum())


def rosenbrock(x: Array) -> float:
    return float((100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum())


def searcher(dim: int = 4, **options: Any) -> Searcher:
    given: dict[str, Any] = {"rng": 1, "model": "quadratic"}
    return Searcher(np.linspace(-1.0, 2.0, dim), 0.7, **(given | options))


def run(search: Searcher, fun: Objective, evaluations: int) -> list[Array]:
    """Ask and tell; returns all points."""
    asked = []
    while search.nfev < evaluations:
        X = search.ask()
        asked.append(X)
        search.tell([fun(x) for x in X])
    return asked


def numbers(search: Searcher) -> Numbers:
    return Numbers(*search.state.numbers.tolist())


def same(one: Searcher, other: Searcher) -> None:
    others = flattened("state", other.state)
    for name, kept in flattened("state", one.state).items():
        assert np.array_equal(kept, others[name], equal_nan=True), name
    assert one.nfev == other.nfev and one.best_f == other.best_f


def with_model(step: SurrogateStep, model: Quadratic, error: float) -> None:
    """Put a model into the place of the one in use, with the error of its predictions, and no pairs."""
    state: QuadraticState = copy.deepcopy(step.model)._replace(used=np.array(2.0))
    state.constants[2], state.slopes[2], state.curvatures[2] = model
    state.judged[2] = 0.0, 0.0, error
    step.model = state


# ---- formulas ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("group", "decoding"),
    [
        *((group, False) for group in (Full(4), Diagonal(4), BlockTriangular(4, 1), Heisenberg(4, 1, 1))),
        (Full(4), True),  # which carries its inverse along
    ],
    ids=str,
)
def test_a_change_of_frame_takes_new_local_coordinates_to_old_ones(group: Group, decoding: bool) -> None:
    rng = np.random.default_rng(1)

    def state() -> SearchState:
        first: SearchState = Searcher(rng.standard_normal(4), 1.0, structure=group, decoding=decoding).state
        first.mean[:], first.scale[:] = rng.standard_normal(4), rng.uniform(0.5, 2, 4)
        first.sigma[0] = 0.3 + rng.random()
        first.root[:] = element(group, rng)
        if decoding:
            first.inverse[:] = group.inverse(first.root)
        return first

    old, new = state(), state()
    strategy = Searcher(np.ones(4), 1.0, structure=group, decoding=decoding).strategy
    shift, turn = strategy.coordinates(old).change(new)
    T = np.diag(turn) if turn.ndim == 1 else turn
    z = rng.standard_normal((5, 4))
    there, here = (
        s.mean + s.sigma * s.scale * (u @ group.dense(s.root).T) for s, u in ((new, z), (old, shift + z @ T.T))
    )
    assert np.allclose(there, here, rtol=1e-10, atol=1e-10)


def test_the_logarithms_of_a_step_of_the_root_are_those_of_the_formula() -> None:
    e = np.array([-1.0, 0.5, 4.0])
    mixed = 0.75 * np.array([0.0, 0.5, 4.0]) + 0.25 * 1.5 + 0.1
    logs = 0.4 * (-np.log(mixed) / 2 + np.log(mixed).mean() / 2)
    found, clipped = root_logs(e, 0.25, 0.1), root_logs(np.array([1e-9, 1.0, 1e9]), 0.0, 0.0)
    assert found is not None and clipped is not None
    assert np.allclose(found, logs) and np.abs(clipped).max() == 1.0
    assert root_logs(np.array([-1.0, 0.0]), 0.0, 0.0) is None


def test_the_full_step_of_the_root_makes_the_hessian_rounder_and_never_the_opposite() -> None:
    rng = np.random.default_rng(2)
    H = rng.standard_normal((3, 3))
    values, vectors = np.linalg.eigh(H @ H.T)
    logs = root_logs(values, 0.0, 0.0)
    assert logs is not None
    S = Full(3).dense(root_step(Full(3), Axes(logs, vectors)))
    assert np.allclose(S, vectors @ np.diag(np.exp(logs)) @ vectors.T)
    assert np.linalg.cond(S.T @ H @ H.T @ S) < np.linalg.cond(H @ H.T)


@pytest.mark.parametrize("group", [Diagonal(4), BlockTriangular(4, 2), Heisenberg(4, 1, 1)], ids=str)
def test_the_step_of_another_group_is_the_exponential_of_its_projection(group: Group) -> None:
    rng = np.random.default_rng(3)
    matrix = rng.standard_normal((4, 4))
    vectors = np.linalg.eigh(matrix + matrix.T).eigenvectors
    logs = 0.3 * rng.standard_normal(4)
    axes = Axes(logs, None if isinstance(group, Diagonal) else vectors)
    V = np.eye(4) if axes.vectors is None else axes.vectors
    m = group._project_columns((2 * V @ np.diag(logs) @ V.T)[:, group.hub], np.diagonal(2 * V @ np.diag(logs) @ V.T))
    assert np.allclose(root_step(group, axes), group._exp(m))


def test_a_step_by_the_model_of_the_full_group_equals_the_formula_written_out(monkeypatch: pytest.MonkeyPatch) -> None:
    search = searcher(decoding=False)
    run(search, rosenbrock, 60)
    strategy = search.strategy
    assert isinstance(strategy, ModelSearch)
    step = SurrogateStep(strategy, search.state)
    ends: list[SearchState] = []
    monkeypatch.setattr(SurrogateStep, "_end", lambda self, moved: ends.append(moved))
    rng, n = np.random.default_rng(4), 4
    matrix = rng.standard_normal((n, n))
    G, b = matrix + matrix.T, rng.standard_normal(n)
    with_model(step, Quadratic(1.0, b, G), error=0.04)
    step.trial, step.outcomes[0], step.record, step.length = 0, -math.inf, 0.0, 0.5
    step.at_edge, step.kept, step.radius = False, 1.0, 0.8
    before = copy.deepcopy(step.plain)
    A = before.root.reshape(n, n)
    z, values = step.known()
    near = np.flatnonzero((z**2).sum(axis=1) <= 2.5**2 * n)
    best = z[near[values[near].argmin()]]
    step._step_by_surrogate(1)
    (after,) = ends
    assert all(map(np.array_equal, step.plain, before))  # a step writes to no state
    share = min(1.0, 0.5 * (15 / 30) ** 2)  # p = 1 + 4 + 10, and the archive of 2 p points is full
    e, V = np.linalg.eigh(math.sqrt(2) * G)
    e = np.maximum(e, 0)
    e = (1 - share) * e + share * e.mean() + 2.8 * 0.2 * math.sqrt(b @ b + (G * G).sum()) / math.sqrt(n)
    L = 0.4 * (-np.log(e) / 2 - (-np.log(e) / 2).mean())
    assert np.allclose(after.mean, before.mean + before.sigma * before.scale * (A @ best))
    assert np.allclose(after.root.reshape(n, n), A @ V @ np.diag(np.exp(np.clip(L, -1, 1))) @ V.T)
    factor = np.clip(math.sqrt(0.5 / (0.3 * 2)), 0.5, 1.2)
    assert after.sigma[0] == pytest.approx(before.sigma[0] * factor ** min(1.0, 3 / 4))
    assert np.allclose(after.path_s, before.path_s / 2)
    assert step.radius == pytest.approx(min(1.5, 1.5 * 0.8)) and step.failures == 0.0


def test_a_trial_that_fails_makes_the_ball_smaller_and_at_its_least_sigma_too() -> None:
    search = searcher()
    run(search, rosenbrock, 60)
    strategy = search.strategy
    assert isinstance(strategy, ModelSearch)
    step = SurrogateStep(strategy, search.state)
    step.trial, step.outcomes[0], step.record, step.length, step.failures = 0, 1.0, 0.0, 0.8, 1.0
    step.radius = 1.0
    assert step._sigma_factor() == 1.0 and step.radius == pytest.approx(0.6 * 0.4) and step.failures == 2.0
    step.radius = 0.2
    assert step._sigma_factor() == 0.7 and step.radius == 0.2


def test_a_model_is_judged_by_pairs_of_values_that_it_has_not_seen() -> None:
    search = searcher(2)
    run(search, sphere, 8)
    strategy = search.strategy
    assert isinstance(strategy, ModelSearch)
    step = SurrogateStep(strategy, search.state)
    with_model(step, Quadratic(0.0, np.array([1.0, 0.0]), np.zeros((2, 2))), error=0.25)  # q = z_1
    step.archive, step.values, step.count = step.archive[-4:], step.values[-4:], 4
    z_old, f_old = step.known()
    z, values = np.array([[3.0, 0.0], [-1.0, 5.0]]), np.array([1.0, 2.0])
    step._learn_from(z, values, z)
    known_q, known_f = [*z_old[:, 0], 3.0, -1.0], [*f_old, 1.0, 2.0]
    pairs = [(4, j) for j in range(4)] + [(5, j) for j in range(5)]
    agreement = sum(np.sign((known_q[i] - known_q[j]) * (known_f[i] - known_f[j])) for i, j in pairs)
    error = 0.25
    for value, q, square in ((1.0, 3.0, 9.0), (2.0, -1.0, 26.0)):
        error = 0.9 * error + 0.1 * min(1.0, ((value - q) / max(1.0, square / 2)) ** 2)
    assert step.model.judged[2] == pytest.approx([agreement, 9.0, error])


@pytest.mark.parametrize("seed", range(5))
def test_the_search_does_not_see_the_units_of_the_function(seed: int) -> None:
    one, other = searcher(rng=seed), searcher(rng=seed)
    for a, b in zip(run(one, rosenbrock, 120), run(other, lambda x: 2.0**-60 * rosenbrock(x), 120), strict=True):
        assert np.array_equal(a, b)


def test_a_model_of_noise_is_not_trusted_although_it_interpolates() -> None:
    search, rng = searcher(), np.random.default_rng(11)
    taus, asked = [], 0
    while search.nfev < 300:
        X = search.ask()
        asked += 1
        search.tell(rng.standard_normal(len(X)))
        judged = search.state.surrogate.judged[2:]
        taus.append((judged[:, 0] / np.maximum(1.0, judged[:, 1])).max())
    assert np.mean(taus[5:]) < 0.3


def test_a_trial_that_failed_ends_the_generation_only_if_the_model_is_better_than_its_error() -> None:
    search = searcher()
    run(search, rosenbrock, 60)
    strategy = search.strategy
    assert isinstance(strategy, ModelSearch)
    step = SurrogateStep(strategy, search.state)
    step.trial, step.record = 0, 1.0
    with_model(step, Quadratic(0.0, np.ones(4), np.zeros((4, 4))), error=0.25)
    for value, tau, holds in ((0.9, 0.5, True), (1.1, 0.5, False), (1.1, 0.64, False), (1.1, 0.66, True)):
        step.outcomes[0] = value
        assert step._holds(tau) is holds
    step.outcomes[0] = math.nan
    assert not step._holds(0.5)


def test_the_first_generation_is_for_the_model_and_leaves_the_distribution_as_it_is() -> None:
    search = searcher()
    before = copy.deepcopy(search.state.plain)
    search.tell([rosenbrock(x) for x in search.ask()])
    assert all(map(np.array_equal, search.state.plain, before))
    assert numbers(search).generation == 1.0 and numbers(search).trial >= 0.0


def test_at_the_ends_of_its_sizes_a_structure_takes_the_steps_of_the_simpler_one() -> None:
    rng = np.random.default_rng(9)
    matrix, logs = rng.standard_normal((4, 4)), 0.3 * rng.standard_normal(4)
    axes = Axes(logs, np.linalg.eigh(matrix + matrix.T).eigenvectors)
    full, all_hub = Full(4), BlockTriangular(4, 4)
    assert np.allclose(full.dense(root_step(full, axes)), all_hub.dense(root_step(all_hub, axes)))
    along = axes._replace(vectors=None)
    diagonal, no_hub = Diagonal(4), BlockTriangular(4, 0)
    assert np.allclose(root_step(diagonal, along), np.exp(logs))
    assert np.allclose(diagonal.dense(np.exp(logs)), no_hub.dense(root_step(no_hub, along)))


# ---- asks -------------------------------------------------------------------------------------------------------


def test_the_first_ask_has_the_mean_and_as_many_points_as_the_first_model_needs() -> None:
    search = searcher(12)
    X = search.ask()
    assert len(X) == 14 and np.array_equal(X[0], search.mean)


def test_no_point_is_handed_out_twice_whatever_is_asked_for() -> None:
    search = searcher()
    run(search, rosenbrock, 40)
    asked = np.concatenate([search.ask(n) for n in (1, 3, 1, 20, 2)])
    assert len(np.unique(asked, axis=0)) == 27


def test_the_minimizer_of_the_model_comes_first_and_then_what_it_takes_for_the_best() -> None:
    search = searcher()
    run(search, ellipsoid, 40)
    state, strategy = search.state, search.strategy
    assert isinstance(strategy, ModelSearch)
    known = numbers(search)
    assert known.trial >= 0 and (state.stages == NEW).sum() == search.popsize
    X = search.ask(search.popsize)
    assert np.array_equal(X[0], state.points[int(known.trial)])
    predicted = state.surrogate.model.values(strategy.local(state, X))
    assert (np.diff(predicted[1:]) >= 0).all()
    assert (search.state.stages[: search.popsize] == ASKED).all()


def test_a_sphere_takes_no_more_evaluations_than_interpolation() -> None:
    for dim in (5, 10, 20):
        search = searcher(dim, target=1e-8)
        while not search.stop():
            search.tell([sphere(x) for x in search.ask()])
        assert search.best_f <= 1e-8 and search.nfev <= 2 * dim + 4


@pytest.mark.parametrize("structure", ["full", "diagonal", "block_triangular:k=2", "heisenberg:k1=1,k2=1"])
def test_every_structure_that_is_taken_finds_the_minimum(structure: str) -> None:
    search = searcher(5, structure=structure, target=1e-9, max_evals=1500)
    while not search.stop():
        search.tell([float((10.0 ** np.arange(5) * (x - 0.1) ** 2).sum()) for x in search.ask()])
    assert search.result.success and search.nfev < 400


# ---- tells ------------------------------------------------------------------------------------------------------


def test_values_told_in_parts_and_in_another_order_lead_to_the_same_search() -> None:
    whole, parts = searcher(), searcher()
    rng = np.random.default_rng(5)
    while whole.nfev < 120:
        X, Y = whole.ask(), parts.ask()
        assert np.array_equal(X, Y)
        whole.tell([rosenbrock(x) for x in X])
        for i in rng.permutation(len(Y)):
            parts.tell(Y[i : i + 1], [rosenbrock(Y[i])])
    same(whole, parts)


def test_failed_values_are_neither_in_the_archive_nor_an_end_of_the_search() -> None:
    search, rng = searcher(5, target=1e-8, max_evals=600), np.random.default_rng(6)
    failed = 0
    while not search.stop():
        X = search.ask()
        values = [sphere(x) for x in X]
        for i in np.flatnonzero(rng.random(len(X)) < 0.3):
            values[i] = (math.nan, math.inf)[failed % 2]
            failed += 1
        search.tell(values)
    assert search.result.success and failed > 3
    assert numbers(search).archived == search.nfev - failed or numbers(search).waiting > 0
    assert np.isfinite(search.state.values).all()


def test_generations_without_any_value_are_followed_by_others() -> None:
    search = searcher()
    run(search, ellipsoid, 18)
    before, seen = numbers(search).generation, []
    for _ in range(12):
        X = search.ask()
        seen.append(X)
        search.tell(np.full(len(X), math.nan))
    assert numbers(search).generation > before and len(np.unique(np.concatenate(seen), axis=0)) > 12
    run(search, ellipsoid, search.nfev + 300)
    assert search.best_f < 1e-3


def test_a_minimizer_whose_evaluation_fails_has_broken_its_promise() -> None:
    search = searcher()
    run(search, ellipsoid, 40)
    row = int(numbers(search).trial)
    assert row >= 0
    X = search.ask()
    search.tell([math.nan, *[1e9] * (len(X) - 1)])
    assert search.state.stages[row] != COUNTED or numbers(search).kept == 0.0 or numbers(search).failures == 1.0


def test_points_that_were_never_asked_for_are_in_the_archive_many_of_them_too() -> None:
    search = searcher()
    run(search, ellipsoid, 40)
    archived = numbers(search).archived
    rng = np.random.default_rng(7)
    X = search.mean + 0.1 * rng.standard_normal((100, 4))
    search.tell(X, [ellipsoid(x) for x in X])
    assert numbers(search).archived == archived + 100
    kept = {row.tobytes() for row in search.state.archive}
    assert all(row.tobytes() in kept for row in X[-20:])
    run(search, ellipsoid, 400)
    assert search.best_f < 1e-6


def test_values_that_come_late_are_in_the_archive_and_the_search_goes_on_without_them() -> None:
    search = searcher()
    late = search.ask(3)
    run(search, rosenbrock, 60)
    archived, mean = numbers(search).archived, search.mean.copy()
    search.tell(late[:1], [rosenbrock(late[0])])
    assert np.array_equal(search.mean, mean)
    run(search, rosenbrock, 75)
    assert numbers(search).archived > archived
    assert late[0].tobytes() in {row.tobytes() for row in search.state.archive}


def test_many_workers_that_ask_one_by_one_get_to_the_minimum() -> None:
    search, rng = searcher(target=1e-8, max_evals=2000), np.random.default_rng(8)
    out: list[Array] = []
    while not search.stop():
        while len(out) < 12:
            out.append(search.ask(1)[0])
        x = out.pop(int(rng.integers(len(out))))
        search.tell(x[None], [rosenbrock(x)])
    assert search.result.success


def test_evaluations_from_before_the_search_feed_the_archive_and_take_the_place_of_the_first_generation() -> None:
    rng = np.random.default_rng(12)
    X = 0.5 + rng.standard_normal((40, 4))
    f = [ellipsoid(x) for x in X]
    f[7] = math.nan
    search = Searcher.from_data(X, f, model="quadratic", rng=1)
    assert numbers(search).archived == 39.0 and numbers(search).generation == 1.0 and search.nfev == 0
    assert search.best_f == np.nanmin(f)
    assert ellipsoid(search.ask()[0]) < 0.5 * search.best_f
    few = Searcher.from_data(X[:4], f[:4], model="quadratic", rng=1)
    assert numbers(few).archived == 4.0 and numbers(few).generation == 0.0


# ---- generations ------------------------------------------------------------------------------------------------


def test_a_search_counts_generations_and_not_their_parts() -> None:
    search, tells, seen = searcher(10), 0, [0]
    while search.nfev < 200:
        search.tell([rosenbrock(x) for x in search.ask()])
        tells += 1
        seen.append(search.nit)
    assert search.nit == numbers(search).generation < tells == search.ledger.nit
    assert seen[1] == 1 and set(np.diff(seen)) == {0, 1}  # the first ask is a whole generation
    assert search.result.nit == search.nit


def test_a_limit_of_generations_is_for_whole_ones_over_all_runs_and_in_the_history(tmp_path: Path) -> None:
    search = searcher(10, max_iters=6)
    while not search.stop():
        search.tell([rosenbrock(x) for x in search.ask()])
    assert list(search.stop()) == ["max_iters"] and search.nit == 6 < search.ledger.nit
    calls: list[int] = []

    def constant(x: Array) -> float:
        return 1.0

    result = esgroup.minimize(
        constant, np.ones(3), 0.5, model="quadratic", restarts="ipop", max_iters=70, rng=1,
        history=tmp_path / "h.jsonl", callback=lambda current: calls.append(current.nit),
    )  # fmt: skip
    assert result.nit == 70 and result.restarts > 0 and list(result.stop) == ["max_iters"]
    recorded = read(tmp_path / "h.jsonl")
    assert recorded.nit[-1] == 70 and set(np.diff(recorded.nit)) <= {0.0, 1.0}
    assert recorded.nit.tolist() == calls and len(calls) >= 70


def test_earlier_evaluations_are_no_generation() -> None:
    X = np.random.default_rng(12).standard_normal((40, 4))
    search = Searcher.from_data(X, [ellipsoid(x) for x in X], model="quadratic", rng=1, max_iters=1)
    assert numbers(search).generation == 1.0 and search.nit == 0
    while not search.stop():
        search.tell([ellipsoid(x) for x in search.ask()])
    assert search.nit == 1 and numbers(search).generation == 2.0


# ---- files ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("structure", ["full", "diagonal", "heisenberg:k1=1,k2=1"])
def test_a_checkpoint_in_the_middle_of_a_generation_continues_bit_for_bit(structure: str, tmp_path: Path) -> None:
    for cut in (0, 3, 30, 47, 88):
        search = searcher(structure=structure)
        run(search, rosenbrock, cut)
        X = search.ask(5)
        search.tell(X[2:3], [rosenbrock(X[2])])  # one of them, not the first
        search.save(tmp_path / "s.npz")
        loaded = Searcher.load(tmp_path / "s.npz")
        same(search, loaded)
        for s in (search, loaded):
            s.tell(X[:2], [rosenbrock(x) for x in X[:2]])
            run(s, rosenbrock, cut + 60)
        same(search, loaded)
        assert np.array_equal(search.ask(), loaded.ask())


def test_a_run_that_is_resumed_equals_the_uninterrupted_one_with_restarts_too(tmp_path: Path) -> None:
    def rugged(x: Array) -> float:
        return float((x * x + 1 - np.cos(6 * x)).sum())

    given: dict[str, Any] = {"model": "quadratic", "restarts": "ipop", "rng": 3}
    whole = esgroup.minimize(rugged, [2.0, 3.0], 0.3, max_evals=900, **given)
    assert whole.restarts >= 1
    for cut in (37, 500):
        path = tmp_path / f"{cut}.npz"
        esgroup.minimize(rugged, [2.0, 3.0], 0.3, max_evals=cut, checkpoint=path, **given)
        resumed = esgroup.minimize(rugged, [2.0, 3.0], 0.3, max_evals=900, checkpoint=path, resume=True, **given)
        assert resumed.fun == whole.fun and np.array_equal(resumed.x, whole.x)
        assert (resumed.nfev, resumed.nit) == (whole.nfev, whole.nit)


def test_a_search_without_a_model_can_begin_where_one_with_a_model_is() -> None:
    search = searcher()
    run(search, ellipsoid, 60)
    plain = Searcher(search, rng=1)
    assert np.allclose(plain.mean, search.mean) and np.allclose(plain.stds, search.stds)


# ---- options ----------------------------------------------------------------------------------------------------


def test_bounds_and_fixed_coordinates_are_kept() -> None:
    seen = []

    def fun(x: Array) -> float:
        seen.append(x.copy())
        return float(((x - np.array([2.0, -1.0, 0.3, 9.0])) ** 2).sum())

    result = esgroup.minimize(
        fun, [0.5, 0.5, 0.5, 0.5], 0.3, bounds=(0, 1), fixed={3: 0.25}, model="quadratic", rng=1, max_evals=400
    )
    points = np.array(seen)
    assert points.min() >= 0 and points.max() <= 1 and (points[:, 3] == 0.25).all()
    assert np.allclose(result.x, [1.0, 0.0, 0.3, 0.25], atol=1e-6)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"model": "cubic"}, "model must be None or 'auto' or 'quadratic', got 'cubic'"),
        ({"structure": "triangular"}, "structure must be 'full'"),
        ({"noise": "adapt"}, "noise cannot be combined with model='quadratic'.*'adapt'"),
        ({"step_size": "tpa"}, "step_size cannot be combined"),
        ({"constraints": 2}, "constraints cannot be combined"),
    ],
)
def test_what_does_not_go_with_a_model_is_refused_by_name(options: dict[str, Any], name: str) -> None:
    with pytest.raises(ValueError, match=name):
        searcher(**options)


def test_a_model_over_other_spaces_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="model cannot be given here"):
        Searcher(Gamma(), model="quadratic")


def test_supports_have_the_sizes_of_their_archive() -> None:
    for structure, features in (("full", 15), ("diagonal", 9), ("block_triangular:k=1", 12)):
        strategy = searcher(structure=structure).strategy
        assert isinstance(strategy, ModelSearch) and isinstance(strategy.surrogate, QuadraticSurrogate)
        assert strategy.surrogate.support.features == features
        assert len(strategy.start().values) == 2 * features == 2 * Support.of(strategy.traits.structure).features


# ---- beside other devices -----------------------------------------------------------------------------------------


def test_samples_of_a_mirrored_search_with_a_model_come_in_pairs_but_for_its_trial() -> None:
    search = searcher(mirrored=True, popsize=8)
    run(search, rosenbrock, 60)
    known, samples = numbers(search), search.state.samples[:8]
    pairs = [np.array_equal(samples[i], -samples[i + 4]) for i in range(4)]
    assert pairs.count(True) == 4 - (known.trial >= 0)


def test_where_the_model_is_no_better_than_ranks_the_published_update_moves_the_search() -> None:
    search = searcher(algorithm="paper", popsize=12)
    strategy = search.strategy
    assert isinstance(strategy, ModelSearch) and isinstance(strategy.plain, VectorSearch)
    assert isinstance(strategy.plain.evolution.recombination, Published)
    given: dict[str, Any] = {"algorithm": "paper", "target": 1e-8, "rng": 1}
    found = [esgroup.minimize(rosenbrock, np.full(4, 0.5), 0.5, model=model, **given) for model in (None, "quadratic")]
    assert found[1].success and found[1].nfev < 0.4 * found[0].nfev


@pytest.mark.parametrize("structure", ["full", "diagonal"])
def test_a_matrix_search_learns_its_factors_from_a_model_of_all_entries(structure: str) -> None:
    def distance(W: Array) -> float:
        return float(np.sum((np.diag([1.0, 3.0, 10.0]) @ (W - np.eye(3)[:, :2])) ** 2))

    start, given = np.full((3, 2), 1.5), {"space": "matrix", "structure": structure, "target": 1e-8, "rng": 2}
    plain, modeled = (esgroup.minimize(distance, start, model=model, **given) for model in (None, "quadratic"))
    assert plain.success and modeled.success and modeled.nfev < 0.2 * plain.nfev
    assert modeled.structure == plain.structure


def test_a_search_over_positive_definite_matrices_has_a_model_of_their_logarithms() -> None:
    def nearness(W: Array) -> float:
        return float(np.sum((W @ np.diag([1.0, 2.0, 5.0]) - np.eye(3)) ** 2))

    given = {"space": "spd", "target": 1e-8, "rng": 2}
    plain, modeled = (esgroup.minimize(nearness, np.eye(3), model=model, **given) for model in (None, "quadratic"))
    assert plain.success and modeled.success and modeled.nfev < 0.4 * plain.nfev
    assert np.linalg.eigvalsh(modeled.x).min() > 0


def test_points_that_are_out_while_a_frame_is_given_up_remain_those_of_the_generation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A search may be told a part of a generation, and hand over, while other points of it are out."""
    search = Searcher(np.ones(8), 1.0, structure="frame", model="quadratic", rng=1)
    search.tell([float(x @ x) for x in search.ask()])
    points, part = search.ask(6), search.strategy.part
    monkeypatch.setattr(FrameEvolution, "outgrown", lambda self, state: "was given up")
    search.tell(points[:part], np.full(part, 1e3))  # so bad that the generation continues
    assert search.structure == Full(8) and numbers(search).generation == 1.0
    assert (search.state.stages == ASKED).sum() == 6 - part
    search.tell(points[part:], np.full(6 - part, 1e3))
    assert not (search.state.stages == ASKED).any() and numbers(search).others == 0.0
