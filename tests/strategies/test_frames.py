"""The search with a frame: one generation from the formulas on dense matrices, and each device by itself."""

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from esgroup import Searcher
from esgroup.checks import Array
from esgroup.groups import Diagonal, Frame, Full
from esgroup.strategies import rates
from esgroup.strategies.adaptation import RateAdaptation
from esgroup.strategies.decoding import Decoding
from esgroup.strategies.evolution import Evolution, Generation, SearchState
from esgroup.strategies.frames import (
    PROBES,
    Follow,
    FrameEvolution,
    _carried,
    _dense_step,
    _squared_norm,
    beside,
    directions_rates,
    orthonormal,
    shortened_along,
)
from esgroup.strategies.recombination import Cumulative, Published
from esgroup.strategies.vector_coordinates import root_step
from esgroup.surrogates import Axes
from tests.groups.elements import axes_of
from tests.groups.laws import close
from tests.groups.test_frame import definition, dense_step, nearest
from tests.strategies import dense
from tests.strategies.states import copied, placed

Rng = np.random.Generator


def evolution_of(dim: int, k: int | None = None, *, adapted: bool = False) -> FrameEvolution:
    return FrameEvolution(Frame(dim, k), Follow(), Decoding(by_mean=True), RateAdaptation() if adapted else None)


def published(dim: int, k: int | None = None) -> FrameEvolution:
    return FrameEvolution(Frame(dim, k), Published())


def some_state(evolution: FrameEvolution, k: int, rng: Rng) -> SearchState:
    dim = evolution.dim
    state = evolution.start(rng.standard_normal(dim), rng.uniform(0.3, 2.0, dim))
    _, ratios, u = axes_of(dim, k, rng)
    state = state._replace(root=Frame.pack(1.0, ratios, u))
    evolution.refresh(state)
    return state


def covariance_of(evolution: Evolution, state: SearchState) -> Array:
    root = state.sigma * state.scale[:, None] * evolution.group.dense(state.root)
    return root @ root.T


class Twin:
    """One generation on dense matrices, from the formulas in the heads of evolution.py and frames.py."""

    def __init__(self, evolution: FrameEvolution, state: SearchState, popsize: int) -> None:
        n, frame = evolution.dim, evolution.group
        self.n, self.k = n, len(frame.axes(state.root).ratios)
        self.parts = tuple(part.copy() for part in frame.axes(state.root))
        self.mean, self.sigma, self.d = state.mean.copy(), state.sigma.item(), state.scale.copy()
        self.p_s, self.p_c = np.zeros(n), np.zeros(n)  # p_c as an image, A times the local one
        self.q = evolution._probe_views(state)[0].copy()
        self.e, self.trend, self.t, self.shortened = np.zeros(len(self.q)), dense.Trend(n), 0, 0
        ranks = math.log((popsize + 1) / 2) - np.log(np.arange(1, popsize + 1))
        plus, minus = np.maximum(ranks, 0), np.minimum(ranks, 0)
        plus, minus = plus / plus.sum(), minus / -minus.sum()
        self.both = plus + minus
        mu_eff, mu_minus = 1 / (plus @ plus), 1 / (minus @ minus)
        full = n * n + n
        c_1, c_mu = 2 / (full + 1.6 * n + 1.7 + mu_eff), 2 * (mu_eff - 1.75 + 1 / mu_eff) / (full + 3 * n + 4 + mu_eff)
        f = max(1.0, (n + 1) / (3 * (self.k + 1)))
        self.c_1, self.c_mu = min(0.5, 5 * f * c_1), f * c_mu
        total = min(1 + self.c_1 / self.c_mu, 1 + 2 * mu_minus / (mu_eff + 2))
        total = min(total, (1 - self.c_1 - self.c_mu) / (n * self.c_mu))
        away = min(1.0, 0.6 + n / 1600) * min(1.0, 10 * n / (3 * mu_eff))
        self.u, self.w = plus + away * minus, plus + total * minus
        self.mass, self.inner = 1 / (self.u @ self.u), min(5.0, 0.5 / self.c_mu)
        self.c_s = min(0.5, (mu_eff + 2) / (n + mu_eff + 5))
        self.d_s = max(0.7, min(1.0, 0.55 + 0.3 * mu_eff / n)) * (
            1 + 2 * max(0.0, math.sqrt((mu_eff - 1) / (n + 1)) - 1) + self.c_s
        )
        self.c_c = min(1.0, (4 + mu_eff / n) / (n + 4 + 2 * mu_eff / n) * math.sqrt(n / (self.k + 1)))
        self.c_1d, self.c_mud, self.least = rates.decoding_rates(n, mu_eff)
        self.eta = min(0.5, 0.35 * mu_eff / n)
        self.adapted, self.exchanged = evolution.adaptation is not None, 0.0
        self.eta_mean = self.eta_root = 1.0
        self.v_mean = self.v_root = 0.0
        self.e_mean, self.e_d, self.e_p = np.zeros(n), np.zeros(n), np.zeros((n, n))

    @property
    def a(self) -> Array:
        bulk, ratios, u = self.parts
        return definition(float(bulk[0]), ratios, u)

    def move(self, z: Array, order: Array, fisher: Array) -> None:
        n, k, z = self.n, self.k, z[order]
        a, inverse = self.a, np.linalg.inv(self.a)
        delta = self.u @ z
        eta = self.eta_root
        self.exchanged += eta * self.c_c
        self.mean = self.mean + self.eta_mean * self.sigma * self.d * (a @ delta)
        self.t += 1
        self.p_s = (1 - self.c_s) * self.p_s + math.sqrt(self.c_s * (2 - self.c_s) * self.mass) * delta
        length = np.linalg.norm(self.p_s)
        steady = length / math.sqrt(1 - (1 - self.c_s) ** (2 * self.t)) < (1.4 + 2 / (n + 1)) * dense.chi(n)
        gain = math.sqrt(self.c_c * (2 - self.c_c) * self.mass) if steady else 0.0
        self.p_c = (1 - self.c_c) * self.p_c + gain * (a @ delta)
        pull, path = 1.0 if steady else 1 - self.c_c * (2 - self.c_c), inverse @ self.p_c
        score = self.c_mud * (self.both @ ((z @ inverse) * (z @ a))) + self.c_1d * ((inverse @ path) * self.p_c - pull)
        step = np.clip(eta * score / fisher, -1, 1)
        step = self.trend.share(step, self.least, 0.15) * step
        self.d = self.d * np.exp(step)
        lengths = (z**2).sum(axis=1)
        w = self.c_mu * np.where(self.w < 0, self.w * n / lengths, self.w)
        clip = 1 / max(1.0, (np.abs(w) @ z**2 + self.c_1 * path**2).max())
        cross = (z.T * w) @ z + self.c_1 * np.outer(path, path)
        among = self.inner * ((z.T * w) @ z - self.c_mu * self.w.sum() * np.eye(n))
        among += self.c_1 * (np.outer(path, path) - pull * np.eye(n))
        u = self.parts[2]
        inside = u.T @ u
        g = clip * (cross + inside @ (among - cross) @ inside)  # only the block within the frame learns faster
        bulk = float(self.parts[0][0])
        moved = dense_step(n, (bulk, *self.parts[1:]), eta * g, still=True)[2]
        values, vectors = np.linalg.eigh(nearest(moved, k, bulk))
        kept = np.argsort(-np.abs(np.log(values / bulk**2)))[:k]
        logs = 0.5 * np.log(values[kept] / bulk**2)
        less = np.where(logs < math.log(5.0), eta * 0.3 * self.inner * self.c_mu, 0.0)
        logs = np.sign(logs) * np.maximum(0.0, np.abs(logs) - less)
        self.parts = np.array([bulk]), np.exp(logs), vectors[:, kept].T
        c_e = 2 * self.eta
        self.e = (1 - c_e) * self.e + c_e * (self.both @ (z @ self.q.T) ** 2)
        noise = math.sqrt(self.mass) * delta
        q = self.q - self.eta * ((z @ self.q.T).T * self.both) @ z + np.outer(self.q @ noise, noise) / n
        longs = self.parts[2][self.parts[1] > 1.0]
        q = q - q @ longs.T @ longs
        for j in range(len(q)):  # Gram-Schmidt
            for i in range(j):
                q[j] -= (q[j] @ q[i]) * q[i]
            q[j] /= np.linalg.norm(q[j])
        self.q = q
        limit = -4 * math.sqrt(2 * (self.both @ self.both) * c_e / (2 - c_e))
        for j in np.flatnonzero(self.e < limit):
            self.shorten(q[j])
            self.e[j] /= 2
        log_step = min(1.0, self.c_s / self.d_s * (length / dense.chi(n) - 1))
        self.sigma *= math.exp(eta * log_step)
        if self.adapted:
            others = np.eye(n) - inside
            self.adapt(delta, step / eta + log_step, g - others @ g @ others)

    def adapt(self, delta: Array, of_d: Array, of_axes: Array) -> None:
        """Both rates, from what the mean does and M = diag(of D and sigma) + of axes / 2 (Nomura et al. 2023)."""

        def follow(eta: float, signal: float, total: float, beta: float) -> float:
            snr = (signal - beta / (2 - beta) * total) / (total - signal)
            return min(1.0, eta * math.exp(min(0.1 * eta, beta) * min(1.0, max(-1.0, snr / (1.4 * eta) - 1))))

        before, m = self.eta_mean, np.diag(of_d) + of_axes / 2
        self.e_mean, self.v_mean = 0.9 * self.e_mean + 0.1 * delta, 0.9 * self.v_mean + 0.1 * delta @ delta
        self.e_d, self.e_p = 0.97 * self.e_d + 0.03 * of_d, 0.97 * self.e_p + 0.03 * of_axes
        self.v_root = 0.97 * self.v_root + 0.03 * (m**2).sum()
        average = np.diag(self.e_d) + self.e_p / 2
        self.eta_mean = follow(self.eta_mean, self.e_mean @ self.e_mean, self.v_mean, 0.1)
        self.eta_root = follow(self.eta_root, (average**2).sum(), self.v_root, 0.03)
        self.sigma *= before / self.eta_mean
        u = self.parts[2]  # as they are now: what they cannot hold is forgotten
        others = np.eye(self.n) - u.T @ u
        self.e_p = self.e_p - others @ self.e_p @ others

    def shorten(self, q: Array) -> None:
        """A (I - 0.4 q q^T), of which the shortest axis is kept and those furthest from the others."""
        self.shortened += 1
        bulk = float(self.parts[0][0])
        root = self.a @ (np.eye(self.n) - 0.4 * np.outer(q, q)) / bulk
        values, vectors = np.linalg.eigh(root @ root.T)
        furthest = [i for i in np.argsort(-np.abs(np.log(values))) if i != 0]
        kept = [0, *furthest[: self.k - 1]]
        self.parts = np.array([bulk]), np.sqrt(values[kept]), vectors[:, kept].T


@pytest.mark.parametrize("adapted", [False, True])
@pytest.mark.parametrize(("dim", "k", "popsize"), [(12, 3, 8), (20, 4, 13), (10, 2, 60), (30, 1, 6)])
def test_generations_are_those_of_the_formulas(dim: int, k: int, popsize: int, adapted: bool) -> None:
    rng = np.random.default_rng(dim)
    evolution = evolution_of(dim, k, adapted=adapted)
    state = some_state(evolution, k, rng)
    twin = Twin(evolution, state, popsize)
    for turn in range(6):  # the refresh comes after ten
        z = rng.standard_normal((popsize, dim)) * (2.0 if turn == 3 else 1.0) + (3.0 if turn == 4 else 0.0)
        order, fisher = rng.permutation(popsize), state.fisher.copy()
        generation, x = placed(evolution, state, z)
        close(x, twin.mean + twin.sigma * twin.d * (z @ twin.a), 1e-8)
        evolution.update(state, generation, order)
        twin.move(z, order, fisher)
        close(state.mean, twin.mean, 1e-7)
        close(state.sigma[0], twin.sigma, 1e-8)
        close(state.path_s, twin.p_s, 1e-8)
        close(evolution.group.apply(state.root, state.path_c), twin.p_c, 1e-6)
        close(state.scale, twin.d, 1e-7)
        close(evolution.group.dense(state.root), twin.a, 1e-5)
        q, e = evolution._probe_views(state)
        close(e, twin.e, 1e-8)
        close(q, twin.q, 1e-6)
        if adapted:
            close(state.rates, [twin.eta_mean, twin.eta_root, twin.v_mean, twin.v_root, 0.9], 1e-6)
            close(state.average_delta, twin.e_mean, 1e-8)
            average = _dense_step(evolution.group.axes(state.root).directions, state.average_m)
            close(average, np.diag(twin.e_d) + twin.e_p / 2, 1e-5)
    close(state.course[:3], [twin.exchanged, 6 * popsize, 0.0])
    assert (twin.shortened > 0) == (popsize in (8, 60))
    assert (twin.eta_root < 0.9) is adapted


def test_without_axes_the_search_is_that_of_a_diagonal() -> None:
    """k = 0: only D learns, with weights that sum to 0."""
    evolution = evolution_of(9, 0)
    state, rng = evolution.start(np.zeros(9), np.ones(9)), np.random.default_rng(1)
    for _ in range(150):
        generation, x = Generation.empty(8, 9), np.empty((8, 9))
        evolution.sample(state, 8, rng, generation, x)
        evolution.update(state, generation, np.argsort((10.0 ** np.arange(9) * x**2).sum(axis=1)))
        state = evolution.exchange(state)
    close(evolution.group.dense(state.root), state.root[0] * np.eye(9))
    assert state.scale[0] > 2 * state.scale[-1]


def test_f_is_divided_by_its_mean() -> None:
    rng = np.random.default_rng(2)
    evolution = evolution_of(8, 2)
    state = some_state(evolution, 2, rng)
    a = evolution.group.dense(state.root)
    fisher = 1 + np.diagonal(a @ a) * np.diagonal(np.linalg.inv(a @ a))
    close(state.fisher, fisher * math.sqrt(fisher.mean() / 2))


def test_rates_grow_as_there_is_less_to_learn() -> None:
    c_1, c_mu = rates.root_rates(100, 5050, 6.0)
    close(directions_rates(100, 4, 6.0), (5 * 101 / 15 * c_1, 101 / 15 * c_mu))
    close(directions_rates(100, 99, 6.0), (5 * c_1, c_mu))  # not below those of the full group
    c_1, c_mu = directions_rates(10, 1, 500.0)
    assert c_1 <= 0.5 and c_mu <= 0.5


# ---- probes -------------------------------------------------------------------------------------------------------


def test_what_selection_does_along_a_probe_has_the_mean_and_variance_that_are_stated() -> None:
    """Without selection: mean 0, and beyond the limit as seldom as 4 standard deviations are."""
    evolution, rng = evolution_of(20, 1), np.random.default_rng(7)
    state = evolution.start(np.zeros(20), np.ones(20))
    found = []
    for _ in range(6000):
        generation, x = Generation.empty(10, 20), np.empty((10, 20))
        rng.standard_normal(out=generation.samples)
        evolution.place(state, generation, x)
        before = state.probes[-PROBES:].copy()
        evolution.update(state, generation, np.arange(10))
        own = evolution._constants_for(10, 1)[1]
        found.append((state.probes[-PROBES:] - (1 - own.c_e) * before) / own.c_e)  # this generation's part
        state.probes[-PROBES:] = 0.0
    found = np.array(found)
    variance = 2 * float(own.both @ own.both)
    assert abs(found.mean()) < 5 * math.sqrt(variance / found.size)
    assert found.var() == pytest.approx(variance, rel=0.06)
    close(own.limit, -4 * math.sqrt(variance * own.c_e / (2 - own.c_e)))


def test_a_short_axis_is_found_by_a_probe_and_made_short() -> None:
    """A discus in a random direction: within the frame after the search, and as short as it should be."""
    rng = np.random.default_rng(3)
    axis = rng.standard_normal(60)
    axis /= np.linalg.norm(axis)
    search = Searcher(np.ones(60), 1.0, structure="frame", rng=1, target=1e-9, max_evals=30_000)
    while not search.stop():
        x = search.ask()
        search.tell((x**2).sum(axis=1) + 1e6 * (x @ axis) ** 2)
    assert search.result.success
    _, ratios, u = search.strategy.group.axes(search.state.root)
    shortest = ratios.argmin()
    assert abs(u[shortest] @ axis) > 0.99 and 1e-4 < ratios[shortest] < 1e-2


@given(seed=st.integers(0, 2**32 - 1), within=st.booleans())
def test_shortening_is_a_step_of_the_group_of_which_the_shortest_axis_is_kept(seed: int, within: bool) -> None:
    rng = np.random.default_rng(seed)
    parts = axes_of(9, 3, rng)
    frame, a = Frame(9, 3), Frame.pack(*parts)
    q = parts[2][1] if within else rng.standard_normal(9)
    q = q / np.linalg.norm(q)
    wanted = definition(*parts) @ (np.eye(9) - 0.4 * np.outer(q, q))
    values, vectors = np.linalg.eigh(wanted @ wanted.T / parts[0] ** 2)
    logs = np.log(values)
    if not within:  # else the axes remain those of the frame
        kept = [0, *[i for i in np.argsort(-np.abs(logs)) if i != 0][:2]]
        logs[[i for i in range(9) if i not in kept]] = 0.0
    found = frame.dense(shortened_along(frame, a, q))
    close(found @ found.T, parts[0] ** 2 * (vectors * np.exp(logs)) @ vectors.T, 1e-8)


# ---- adapted rates ------------------------------------------------------------------------------------------------


def some_step(dim: int, k: int, rng: Rng) -> tuple[Array, Array, Array, Array]:
    """Directions, a packed step, the diagonal e and P, which is zero among the directions beside the frame."""
    u, e, g = axes_of(dim, k, rng)[2], rng.standard_normal(dim), rng.standard_normal((dim, dim))
    others = np.eye(dim) - u.T @ u
    p = g + g.T - others @ (g + g.T) @ others
    return u, np.concatenate([e, (u @ p).ravel()]), e, p


@given(seed=st.integers(0, 2**32 - 1), k=st.integers(0, 6))
def test_a_step_of_the_root_has_the_norm_of_its_matrix(seed: int, k: int) -> None:
    u, m, e, p = some_step(6, k, np.random.default_rng(seed))
    close(_dense_step(u, m), np.diag(e) + p / 2)
    close(_squared_norm(u, m), ((np.diag(e) + p / 2) ** 2).sum())


def test_without_axes_and_with_all_of_them_the_norm_is_that_of_the_diagonal_and_of_the_full_group() -> None:
    rng = np.random.default_rng(4)
    z, weights = rng.standard_normal((5, 4)), rng.standard_normal(5)
    none, _, e, _ = some_step(4, 0, rng)
    close(_squared_norm(none, e), Diagonal(4)._squared_local_norm(e))
    frame, a = Frame(4, 4), Frame.pack(*axes_of(4, 4, rng))
    u, full = frame.axes(a).directions, Full(4)
    step = frame.gradient(a, z, weights, 0.3)
    m = np.concatenate([np.full(4, 0.2), (step.among @ u + step.beside).ravel()])
    wanted = full.project(z, weights, 0.3) + 0.2 * full.identity()
    close(_squared_norm(u, m), full._squared_local_norm(wanted))


@given(seed=st.integers(0, 2**32 - 1), k=st.integers(0, 5))
def test_what_is_averaged_is_projected_onto_the_axes_as_they_are(seed: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    old, m, e, p = some_step(7, 3, rng)
    new = axes_of(7, k, rng)[2]
    others = np.eye(7) - new.T @ new
    close(_dense_step(new, _carried(m, old, new)), np.diag(e) + (p - others @ p @ others) / 2)


def test_with_rates_at_one_a_generation_is_that_without_adaptation() -> None:
    rng = np.random.default_rng(6)
    plain, adapted = evolution_of(12, 3), evolution_of(12, 3, adapted=True)
    one = some_state(plain, 3, rng)
    kept = {name: getattr(one, name).copy() for name in one._fields if len(getattr(one, name))}
    other = adapted.start(one.mean, one.scale)._replace(**kept)
    z, order = rng.standard_normal((8, 12)), rng.permutation(8)
    for evolution, state in ((plain, one), (adapted, other)):
        evolution.update(state, placed(evolution, state, z)[0], order)
    for name in ("mean", "scale", "root", "path_s", "path_c", "probes", "course"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
    close(one.sigma, other.sigma * other.rates[0])


@pytest.mark.parametrize("options", [{}, {"algorithm": "paper"}], ids=str)
def test_rates_of_a_frame_fall_where_values_are_noise(options: dict[str, str]) -> None:
    rng = np.random.default_rng(1)
    for is_noise in (True, False):
        search = Searcher(np.ones(16), 1.0, structure="frame", noise="adapt", rng=1, **options)
        for _ in range(150):
            x = search.ask()
            search.tell(rng.random(len(x)) if is_noise else (x**2).sum(axis=1))
        mean, root = search.state.rates[:2].tolist()
        assert (mean < 0.3) is is_noise and (root < 0.3) is is_noise, (is_noise, mean, root)


@pytest.mark.parametrize("k", [2, 4, 7])
def test_a_search_with_adapted_rates_begins_with_a_frame_of_any_number_of_axes(k: int, tmp_path: Path) -> None:
    first = Searcher(np.ones(20), 1.0, structure="frame", rng=1)
    first.state = first.state._replace(root=Frame.pack(*axes_of(20, k, np.random.default_rng(k))))
    search = Searcher(first, noise="adapt", rng=2)
    assert len(search.state.root) == 1 + 21 * k and len(search.state.average_m) == 20 * (1 + k)
    for _ in range(3):
        search.tell((search.ask() ** 2).sum(axis=1))
    search.save(tmp_path / "search.npz")
    assert np.array_equal(Searcher.load(tmp_path / "search.npz").ask(), search.ask())


def test_axes_come_as_slowly_as_rates_are_low_and_keep_what_was_averaged() -> None:
    evolution, rng = evolution_of(20, adapted=True), np.random.default_rng(2)
    state = evolution.start(np.zeros(20), np.ones(20))
    state.rates[1] = 0.1
    before = copied(state)
    evolution.update(state, placed(evolution, state, rng.standard_normal((8, 20)))[0], np.arange(8))
    close(state.course[0], 0.1 * evolution.constants(8).kernel[1])
    state.root[1:5], state.course[0] = 3.0, 1.0
    state.average_m[:] = rng.standard_normal(len(state.average_m))
    old, m = evolution.group.axes(state.root).directions.copy(), state.average_m.copy()
    after = evolution.exchange(state)
    new = evolution.group.axes(after.root).directions
    assert len(new) == 5 and len(after.average_m) == 20 * 6 > len(before.average_m)
    close(after.average_m, _carried(m, old, new))


def test_a_frame_whose_rates_are_adapted_is_not_given_up_to_noise_and_hands_over_its_rates() -> None:
    evolution, rng = evolution_of(20, adapted=True), np.random.default_rng(3)
    state = some_state(evolution, evolution.group.first, rng)
    state.course[:] = 0.0, 0.0, 0.0, 1.0, 1e6
    assert evolution.outgrown(state) is None
    state.rates[:] = 0.3, 0.2, 1.0, 2.0, 0.85
    state.average_delta[:], state.average_m[:] = rng.standard_normal(20), rng.standard_normal(len(state.average_m))
    full = Evolution(Full(20), Cumulative(), Decoding(), RateAdaptation())
    other = evolution.as_full(state, full)
    assert np.array_equal(other.rates, state.rates) and np.array_equal(other.average_delta, state.average_delta)
    average = _dense_step(evolution.group.axes(state.root).directions, state.average_m)
    close(other.average_m.reshape(20, 20), average)
    close(covariance_of(full, other), covariance_of(evolution, state), 1e-8)


# ---- the published update -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [0, 2, 6])
def test_generations_of_the_published_update_are_its_formulas(k: int) -> None:
    """mu <- mu + A sum u z and A <- A h(M), M the gradient of eta sum u (z z^T - I) in the group: nothing else."""
    rng, n, popsize = np.random.default_rng(k), 6, 9
    evolution = published(n, k)
    state = some_state(evolution, k, rng)
    raw = np.maximum(0.0, math.log(popsize / 2 + 1) - np.log(np.arange(1, popsize + 1)))
    u = raw / raw.sum() - 1 / popsize
    eta = (3 + math.log(n)) / (5 * math.sqrt(n)) * min(1.0, 1.5 * (n + 1) / min(n * (n + 1) / 2, 1.5 * n * (k + 1)))
    for _ in range(4):
        z, order = rng.standard_normal((popsize, n)), rng.permutation(popsize)
        parts = tuple(part.copy() for part in evolution.group.axes(state.root))
        a, sigma, scale, mean = definition(float(parts[0][0]), *parts[1:]), state.sigma.item(), state.scale, state.mean
        mean = mean + sigma * scale * (a @ (u @ z[order]))
        g = eta * ((z[order].T * u) @ z[order] - u.sum() * np.eye(n))
        _, m, moved = dense_step(n, (float(parts[0][0]), *parts[1:]), g)
        first = int((parts[1] >= 1.0).sum())
        bulk = float(parts[0][0]) * ((1 + m[first, first] + m[first, first] ** 2 / 2) if k < n else 1.0)
        evolution.update(state, placed(evolution, state, z)[0], order)
        close(state.mean, mean)
        found = evolution.group.dense(state.root)
        close(found @ found.T, nearest(moved, k, bulk), 1e-6)
        close([state.sigma.item(), *state.scale], [sigma, *scale])
    close(state.course[:2], [4 * eta, 4 * popsize])


def test_the_published_update_with_all_axes_is_that_of_the_full_group() -> None:
    rng = np.random.default_rng(3)
    frame, full = published(5, 5), Evolution(Full(5), Published())
    one, other = (evolution.start(np.ones(5), np.full(5, 0.5)) for evolution in (frame, full))
    z, order = rng.standard_normal((9, 5)), rng.permutation(9)
    for evolution, state in ((frame, one), (full, other)):
        evolution.update(state, placed(evolution, state, z)[0], order)
    close(one.mean, other.mean)
    close(covariance_of(frame, one), covariance_of(full, other))


def test_the_published_update_adds_axes_only_which_change_nothing() -> None:
    rng = np.random.default_rng(5)
    evolution = published(40)
    for ratios, number in (([3.0, 0.3, 1.1, 2.5], 5), ([1.1, 1.2, 1.0, 3.0], 4), ([1.0] * 6, 6)):
        state = evolution.start(np.zeros(40), np.ones(40))
        u = np.linalg.qr(rng.standard_normal((40, len(ratios))))[0].T
        state = state._replace(root=Frame.pack(1.0, np.array(ratios), u))
        state.path_s[:], state.course[0] = rng.standard_normal(40), 1.0
        step, before = evolution.group.apply(state.root, state.path_s), covariance_of(evolution, state)
        after = evolution.exchange(state)
        _, found, directions = evolution.group.axes(after.root)
        assert len(found) == number and after.course[0] == 0.0
        close(covariance_of(evolution, after), before)
        if number == 5:
            close(directions[-1], beside(step, u))
    assert not state.probes.size and evolution.outgrown(state._replace(course=np.full(5, 1e9))) is None


def test_the_published_update_learns_few_long_axes_among_many() -> None:
    """|x|^2 with two directions a hundred times as long: no structure of scales alone gets there."""
    rng = np.random.default_rng(2)
    long = np.linalg.qr(rng.standard_normal((12, 2)))[0]
    search = Searcher(np.ones(12), 0.5, structure="frame:k=4", algorithm="paper", rng=1, target=1e-8, max_evals=40_000)
    while not search.stop():
        x = search.ask()
        search.tell(1e4 * (x**2).sum(axis=1) - (1e4 - 1) * ((x @ long) ** 2).sum(axis=1))
    assert search.result.success
    _, ratios, u = search.strategy.group.axes(search.state.root)
    assert (ratios[-2:] > 20.0).all()
    close(((u[-2:] @ long) ** 2).sum(axis=1), [1.0, 1.0], 1e-2)


# ---- steps by a model ---------------------------------------------------------------------------------------------


def stepped(evolution: FrameEvolution, k: int, seed: int) -> tuple[SearchState, SearchState, Axes]:
    rng = np.random.default_rng(seed)
    state = some_state(evolution, k, rng)
    state.path_c[:] = rng.standard_normal(evolution.dim)
    axes = Axes(0.3 * rng.standard_normal(evolution.dim), np.linalg.qr(rng.standard_normal((evolution.dim,) * 2))[0])
    return copied(state), evolution.stepped(copied(state), axes, 7), axes


@pytest.mark.parametrize("k", [0, 2, 6])
def test_a_step_by_a_model_keeps_what_d_and_the_axes_can_hold(k: int) -> None:
    """e from least squares over all entries beside the axes, written out; then the nearest frame of as many axes."""
    n, evolution = 6, evolution_of(6, k)
    before, after, (logs, vectors) = stepped(evolution, k, 11)
    a, u = evolution.group.dense(before.root), evolution.group.axes(before.root).directions
    others, t = np.eye(n) - u.T @ u, 2 * (vectors * logs) @ vectors.T
    basis = np.array([(others @ (2 * np.diag(row)) @ others).ravel() for row in np.eye(n)]).T
    e = np.linalg.lstsq(basis, (others @ t @ others).ravel(), rcond=0.01)[0] if k < n else np.zeros(n)
    close(after.scale, before.scale * np.exp(e))
    rest = np.diag(np.exp(-e)) @ a @ (vectors * np.exp(2 * logs)) @ vectors.T @ a @ np.diag(np.exp(-e))
    found = evolution.group.dense(after.root)
    wanted = Frame(n, k).dense(Frame(n, k).from_covariance(rest))
    close(found @ found.T, wanted @ wanted.T)
    close(after.scale * evolution.group.apply(after.root, after.path_c), before.scale * (a @ before.path_c))
    close(after.course[1], 7.0)


def test_at_the_ends_of_its_sizes_a_frame_takes_the_steps_of_the_simpler_structure() -> None:
    _, after, (logs, vectors) = stepped(evolution_of(6, 0), 0, 12)
    before, _, _ = stepped(evolution_of(6, 0), 0, 12)
    scales = np.diagonal(Diagonal(6).dense(root_step(Diagonal(6), Axes(logs, vectors))))
    close(np.sqrt(evolution_of(6, 0).variances(after)), scales * np.sqrt(evolution_of(6, 0).variances(before)))
    all_axes = evolution_of(6, 6)
    before, after, axes = stepped(all_axes, 6, 13)
    root = before.sigma * before.scale[:, None] * all_axes.group.dense(before.root)
    root = root @ Full(6).dense(root_step(Full(6), axes))
    close(covariance_of(all_axes, after), root @ root.T)


def test_a_step_by_a_model_may_need_one_axis_more() -> None:
    evolution = evolution_of(40)
    rng = np.random.default_rng(3)
    logs = np.concatenate([np.full(6, 1.0), np.full(34, -0.1)])
    vectors = np.linalg.qr(rng.standard_normal((40, 40)))[0]
    state = evolution.start(np.zeros(40), np.ones(40))
    found = evolution.stepped(copied(state), Axes(logs, vectors), 5)
    assert len(evolution.group.axes(found.root).ratios) == 5
    assert len(evolution_of(40, 4).stepped(copied(state), Axes(logs, vectors), 5).root) == Frame(40, 4).size


def test_a_step_without_a_curvature_only_counts_its_evaluations() -> None:
    evolution = evolution_of(8, 3)
    state = some_state(evolution, 3, np.random.default_rng(4))
    found = evolution.stepped(copied(state), None, 5)
    assert found.course[1] == state.course[1] + 5
    for name in set(state._fields) - {"course"}:
        assert np.array_equal(getattr(found, name), getattr(state, name)), name


# ---- directions that come and go ----------------------------------------------------------------------------------


@given(seed=st.integers(0, 2**32 - 1), rows=st.integers(1, 5))
def test_rows_are_made_orthonormal_in_their_order(seed: int, rows: int) -> None:
    rng = np.random.default_rng(seed)
    given_rows = rng.standard_normal((rows, 7)) * 10.0 ** rng.uniform(-5, 5, (rows, 1))
    made = orthonormal(given_rows)
    close(made @ made.T, np.eye(rows))
    lower = given_rows @ made.T
    close(np.triu(lower, 1) / np.abs(lower).max(axis=1, keepdims=True), np.zeros((rows, rows)), 1e-8)
    assert (np.diagonal(lower) > 0).all()


def test_dependent_rows_are_made_orthonormal_as_well() -> None:
    one = np.random.default_rng(1).standard_normal(6)
    for rows in (np.array([one, 2 * one]), np.array([one, one + 1e-12]), np.array([one, 0 * one])):
        made = orthonormal(rows)
        close(made @ made.T, np.eye(2))
        close(made[0], one / np.linalg.norm(one))


def test_a_new_direction_is_that_of_the_path_outside_the_frame() -> None:
    rng = np.random.default_rng(2)
    u = np.linalg.qr(rng.standard_normal((6, 2)))[0].T
    path = rng.standard_normal(6)
    found = beside(path, u)
    close(u @ found, np.zeros(2))
    close(np.linalg.norm(found), 1.0)
    assert found @ path > 0
    for nothing in (np.zeros(6), u[0] + u[1]):
        found = beside(nothing, u)
        close(u @ found, np.zeros(2))
        close(np.linalg.norm(found), 1.0)


def exchanged(
    ratios: list[float], k: int | None = None, dim: int = 40
) -> tuple[FrameEvolution, SearchState, SearchState]:
    """A state with axes of these lengths whose turn it is, and what an exchange makes of it."""
    rng = np.random.default_rng(5)
    evolution = evolution_of(dim, k)
    state = evolution.start(np.zeros(dim), np.ones(dim))
    u = np.linalg.qr(rng.standard_normal((dim, len(ratios))))[0].T
    state = state._replace(root=Frame.pack(1.0, np.array(ratios), u))
    state.path_c[:] = rng.standard_normal(dim)
    state.course[0] = 1.0
    return evolution, copied(state), evolution.exchange(state)


def test_there_is_always_one_more_axis_than_are_in_use() -> None:
    evolution, before, after = exchanged([3.0, 0.3, 1.9, 1.6])
    path = evolution.group.apply(before.root, before.path_c)
    assert len(evolution.group.axes(after.root).ratios) == 4  # two of four are in use
    evolution, before, after = exchanged([3.0, 0.3, 2.1, 1.6])
    _, ratios, u = evolution.group.axes(after.root)
    assert ratios.tolist() == [3.0, 0.3, 2.1, 1.6, 1.0]
    path = evolution.group.apply(before.root, before.path_c)
    rest = path - u[:4].T @ (u[:4] @ path)
    close(u[4], rest / np.linalg.norm(rest))
    close(evolution.group.apply(after.root, after.path_c), path)  # the image of the path stays
    assert after.course[0] == 0.0


def test_axes_out_of_use_leave_one_at_a_time() -> None:
    evolution, _, after = exchanged([3.0, 1.5, 1.6, 1.7, 1.8])
    assert evolution.group.axes(after.root).ratios.tolist() == [3.0, 1.6, 1.7, 1.8]
    evolution, _, after = exchanged([1.5, 1.6])
    assert len(evolution.group.axes(after.root).ratios) == 2  # never fewer


def test_an_idle_direction_becomes_that_of_the_path() -> None:
    evolution, before, after = exchanged([3.0, 1.3, 0.2, 0.9])
    _, ratios, u = evolution.group.axes(after.root)
    _, _, old = evolution.group.axes(before.root)
    assert ratios.tolist() == [3.0, 1.3, 0.2, 1.0]
    close(u[:3], old[:3])
    assert abs(u[3] @ old[3]) < 0.9 and np.abs(u[:3] @ u[3]).max() < 1e-12


def test_a_number_of_axes_that_was_given_stays() -> None:
    for ratios in ([3.0, 0.3, 2.1, 2.6], [1.1, 1.1, 1.1, 1.1]):
        _, before, after = exchanged(ratios, k=4)
        assert len(after.root) == len(before.root)


def test_nothing_is_exchanged_before_its_time() -> None:
    evolution = evolution_of(40)
    state = evolution.start(np.zeros(40), np.ones(40))
    state.course[0] = 0.99
    before = copied(state)
    assert evolution.exchange(state) is state
    assert all(np.array_equal(a, b) for a, b in zip(before, state, strict=True))


def test_the_number_of_axes_has_a_limit() -> None:
    _, before, after = exchanged([3.0] * 10)
    assert len(after.root) == len(before.root)  # a quarter of 40 coordinates


@pytest.mark.parametrize(("dim", "most"), [(90_000, 11), (200_000, 8)])
def test_the_axes_of_many_coordinates_have_a_million_numbers_or_there_are_eight(dim: int, most: int) -> None:
    for number, expected in ((most - 1, most), (most, most)):
        evolution, _, after = exchanged([3.0] * number, dim=dim)
        assert len(evolution.group.axes(after.root).ratios) == expected


# ---- hand-over ----------------------------------------------------------------------------------------------------


def test_the_full_matrix_goes_on_where_the_frame_was() -> None:
    rng = np.random.default_rng(6)
    evolution = evolution_of(9)
    state = some_state(evolution, 2, rng)
    state.path_c[:], state.path_s[:] = rng.standard_normal(9), rng.standard_normal(9)
    full = Evolution(Full(9), decoding=Decoding())
    other = evolution.as_full(state, full)
    close(covariance_of(full, other), covariance_of(evolution, state))
    close(full.local(other, state.mean[None] + 1.0), evolution.local(state, state.mean[None] + 1.0), 1e-9)
    for name in ("mean", "path_s", "path_c", "fade", "trend"):
        assert np.array_equal(getattr(other, name), getattr(state, name))
    assert [len(array) for array in other] == list(full.shapes().values())
    state.course[4] = 9**1.5 / 6  # generations without a lower median: noise, in which a distribution shrinks
    close(covariance_of(full, evolution.as_full(state, full)), 400 * covariance_of(evolution, state))


@pytest.mark.parametrize(
    ("ratios", "course", "why"),
    [
        ([3.0] * 5, [0.0, 799.0, 0.0, 1.0, 0.0], None),
        ([3.0] * 5, [0.0, 800.0, 0.0, 1.0, 0.0], "had 5 axes"),
        ([3.0, 0.3] * 2, [0.0, 1e9, 0.0, 1.0, 0.0], None),
        ([3.0, 0.3] * 3, [0.0, 1e9, 0.0, 1.0, 0.0], "had 6 axes"),
        ([1.0], [0.0, 0.0, 29.0, 1.0, 0.0], None),
        ([1.0], [0.0, 0.0, 30.0, 1.0, 0.0], "had shrunk to a point"),
        ([1.0], [0.0, 0.0, 0.0, 1.0, 14.0], None),
        ([1.0], [0.0, 0.0, 0.0, 1.0, 15.0], "had found nothing better for 15 generations"),  # 20^1.5 / 6 = 14.9
    ],
)
def test_a_frame_is_outgrown_by_many_axes_late_at_its_end_or_without_progress(
    ratios: list[float], course: list[float], why: str | None
) -> None:
    evolution = evolution_of(20)
    state = evolution.start(np.zeros(20), np.ones(20))
    u = np.eye(len(ratios), 20)
    state = state._replace(root=Frame.pack(1.0, np.array(ratios), u), course=np.array(course))
    assert evolution.outgrown(state) == why
    assert evolution_of(20, len(ratios)).outgrown(state) is None
    assert evolution_of(1001).outgrown(evolution_of(1001).start(np.zeros(1001), np.ones(1001))) is None


def test_generations_are_counted_from_the_lowest_median_on() -> None:
    evolution = evolution_of(9)
    state = evolution.start(np.zeros(9), np.ones(9))
    counted = []
    for median in (np.inf, 3.0, 4.0, 3.0, np.nan, 2.0, 2.5, -np.inf, 0.0):
        evolution.note_median(state, median)
        counted.append((state.course[3], state.course[4]))
    top = np.finfo(float).max
    assert counted == [(top, 1), (3, 0), (3, 1), (3, 2), (3, 2), (2, 0), (2, 1), (-top, 0), (-top, 1)]


def test_the_median_of_a_generation_is_that_of_its_values() -> None:
    search = Searcher(np.ones(30), 1.0, structure="frame", rng=2, popsize=8)
    search.ask()
    search.tell([5.0, 1.0, 3.0, 8.0, 2.0, 7.0, np.nan, 4.0])
    assert search.state.course[3] == 5.0  # of seven values and a failure the fifth: the upper one, as with eight


def test_in_noise_the_full_matrix_takes_over_and_without_it_the_frame_stays() -> None:
    for noise, expected in ((1.0, Full(30)), (0.0, Frame(30))):
        rng = np.random.default_rng(5)
        search = Searcher(np.ones(30), 1.0, structure="frame", rng=2, max_evals=3000)
        while not search.stop():
            points = search.ask()
            search.tell((points**2).sum(axis=1) + noise * rng.standard_normal(len(points)))
        assert search.structure == expected
        assert ("nothing better" in search.result.message) == bool(noise)



def test_a_rotated_ellipsoid_ends_with_the_full_matrix_and_the_message_says_so() -> None:
    rng = np.random.default_rng(8)
    turn = np.linalg.qr(rng.standard_normal((16, 16)))[0]
    scales = 10.0 ** np.linspace(0, 6, 16)
    search = Searcher(np.ones(16), 1.0, structure="frame", rng=2, target=1e-8, max_evals=40_000)
    while not search.stop():
        search.tell((search.ask() @ turn) ** 2 @ scales)
    assert search.result.success and search.structure == Full(16)
    assert "Structure 'frame' had" in search.result.message and "replaced by 'full'" in search.result.message


def test_refresh_keeps_the_distribution_and_makes_directions_orthonormal() -> None:
    rng = np.random.default_rng(9)
    evolution = evolution_of(9)
    state = some_state(evolution, 3, rng)
    before = covariance_of(evolution, state)
    state.scale[:] *= 2.0
    evolution.refresh(state)
    close(covariance_of(evolution, state), 4.0 * before)
    u = evolution.group.axes(state.root).directions
    u += 1e-6 * rng.standard_normal(u.shape)
    evolution.refresh(state)
    close(u @ u.T, np.eye(3))
    close(np.exp(0.5 * np.log(np.diagonal(covariance_of(evolution, state))).mean()), state.sigma[0])


def test_an_axis_of_length_zero_is_forgotten() -> None:
    evolution = evolution_of(6)
    state = some_state(evolution, 2, np.random.default_rng(1))
    evolution.group.axes(state.root).ratios[0] = 0.0
    variances = evolution.variances(state)
    evolution.refresh(state)
    close(evolution.variances(state), variances)
    assert evolution.condition(state) == 1.0


def test_the_condition_is_that_of_the_axes_and_the_others() -> None:
    evolution = evolution_of(6)
    state = some_state(evolution, 2, np.random.default_rng(1))
    dense_root = evolution.group.dense(state.root)
    close(evolution.condition(state), np.linalg.cond(dense_root) ** 2)


def test_a_search_far_beyond_its_end_goes_on() -> None:
    """Axes that no longer matter get shorter and shorter; nothing becomes 0 or infinite."""
    search = Searcher(np.ones(12), 1.0, structure="frame:k=3", rng=3)
    for _ in range(4000):
        x = search.ask()
        search.tell(np.round(1e14 * x[:, 0] ** 2 + (x**2).sum(axis=1)))
    assert "condition" in search.stop() or search.strategy.evolution.condition(search.state) < 1e18
    assert all(np.isfinite(array).all() for array in search.state)


@pytest.mark.parametrize("least", [1e-6, 1e-12])
def test_norms_of_rows_along_a_short_axis_are_not_lost_to_rounding(least: float) -> None:
    frame = Frame(5, 1)
    a = frame.pack(2.0, np.array([least]), np.eye(1, 5, 2))
    close(frame._squared_row_norms(a), [4.0, 4.0, 4.0 * least**2, 4.0, 4.0], 1e-4 * least**2)


@pytest.mark.parametrize("popsize", [10, 60, 100_000])
def test_the_path_of_the_step_size_has_a_shorter_memory_in_large_dimensions(popsize: int) -> None:
    """c_s is the tutorial's up to 1000 coordinates and above as 1 / sqrt(n), unless the tutorial's is larger."""
    mu_eff = rates.effective(rates.halves(popsize)[0])
    for dim in (80, 1000, 1001, 4000, 100_000):
        c_s, d_s = rates.step_size_rates(dim, mu_eff)
        at_1000, _ = rates.step_size_rates(1000, mu_eff)
        expected = c_s if dim <= 1000 else max(c_s, at_1000 * math.sqrt(1000 / dim))
        found = Follow().constants(popsize, dim, 4)
        close(found.c_s, expected, 1e-12)
        close(found.kernel[0], expected, 1e-12)
        close(found.drive, expected / (rates.damping_factor(dim, mu_eff) * (d_s - c_s + expected)), 1e-12)
