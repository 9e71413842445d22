"""A surrogate and strategies that esgroup does not know, in the same step as ours."""

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import esgroup
from esgroup import Choice, Integer, Real, Searcher, Space
from esgroup.distributions.matrix_gaussian import MatrixGaussian
from esgroup.distributions.wishart import Wishart
from esgroup.files.states import flattened
from esgroup.strategies import Strategy, register, within
from esgroup.strategies.model import ModelSearch
from esgroup.strategies.wishart import WishartSearch
from esgroup.surrogates import Minimum, Surrogate
from esgroup.surrogates import register as register_surrogate
from esgroup.surrogates.base import UNJUDGED, forgotten
from tests.search.test_strangers import OnePlusOne, Plain
from tests.surrogates.strangers import Radial


def sphere(x: Any) -> float:
    return float(((np.ravel(x) - 0.3) ** 2).sum())


def valley(x: Any) -> float:
    turned = np.ravel(x) - 0.3 + 0.3 * np.roll(np.ravel(x), 1)
    return float((10.0 ** np.linspace(0, 2, len(turned)) * turned**2).sum())


def evaluations(strategy: Strategy, f: Callable[[Any], float], target: float = 1e-6) -> float:
    """How many it takes to the target, the median of five searches."""
    found = []
    for seed in range(5):
        search = Searcher(strategy, rng=seed, target=target, max_evals=3000)
        while not search.stop():
            search.tell([f(x) for x in search.ask()])
        found.append(search.nfev)
    return statistics.median(found)


def vectors(dim: int, **options: Any) -> Strategy:
    return Searcher(np.full(dim, 3.0), 1.0, **options).strategy


@pytest.mark.parametrize("dim", [5, 10])
def test_another_surrogate_saves_evaluations_in_the_same_step(dim: int) -> None:
    assert evaluations(ModelSearch(vectors(dim), Radial(dim)), sphere) < 0.4 * evaluations(vectors(dim), sphere)
    assert evaluations(ModelSearch(vectors(dim), Radial(dim)), valley) < 0.8 * evaluations(vectors(dim), valley)


@pytest.mark.parametrize(
    ("plain", "dim"),
    [(Searcher(MatrixGaussian(np.full((3, 2), 3.0))).strategy, 6), (Plain(5), 5), (OnePlusOne(5), 5)],
    ids=lambda given: type(given).__name__,
)
def test_strategies_without_steps_of_a_surrogate_are_helped_by_its_points(plain: Strategy, dim: int) -> None:
    without = evaluations(plain, sphere)
    assert evaluations(ModelSearch(plain), sphere) < 0.2 * without
    assert evaluations(ModelSearch(plain, Radial(dim)), sphere) < 0.7 * without
    assert evaluations(ModelSearch(plain), valley) < 0.5 * evaluations(plain, valley)


def test_a_stranger_with_a_surrogate_keeps_to_its_bounds() -> None:
    seen: list[np.ndarray] = []

    def f(x: np.ndarray) -> float:
        seen.append(x.copy())
        return float(((x - [9.0, 0.5, 0.5]) ** 2).sum())

    strategy = Searcher(OnePlusOne(dim=3), bounds=[(2, 5), (-4, 5), (None, 9)]).strategy
    result = esgroup.minimize(f, ModelSearch(strategy), rng=1, max_evals=400)
    assert np.allclose(result.x, [5.0, 0.5, 0.5], atol=1e-3)
    X = np.array(seen)
    assert (X[:, 0] >= 2).all() and (X <= [5, 5, 9]).all() and (X[:, 1] >= -4).all()


def named(p: dict[str, Any]) -> float:
    return float((p["a"] - 1) @ (p["a"] - 1) + (np.log10(p["rate"]) + 2) ** 2)


REALS = Space({"a": Real(-3, 3, shape=2), "rate": Real(1e-4, 1.0, log=True)})


@pytest.mark.parametrize("plain", [vectors(3), within(OnePlusOne(dim=3), REALS)], ids=["vectors", "stranger"])
@pytest.mark.parametrize("surrogate", [None, Radial(3)], ids=["quadratic", "radial"])
def test_a_search_with_any_surrogate_continues_from_a_file_bit_for_bit(
    plain: Strategy, surrogate: Surrogate | None, tmp_path: Path
) -> None:
    register(OnePlusOne)
    f = sphere if isinstance(plain.start().mean, np.ndarray) and plain.domain.labels is None else named
    search = Searcher(ModelSearch(plain, surrogate), rng=1)  # type: ignore[arg-type]
    for _ in range(9):
        search.tell([f(x) for x in search.ask()])
    search.save(tmp_path / "run.npz")
    loaded = Searcher.load(tmp_path / "run.npz")
    for one in (search, loaded):
        for _ in range(9):
            one.tell([f(x) for x in one.ask()])
    others = flattened("state", loaded.state)
    for name, part in flattened("state", search.state).items():
        assert np.array_equal(part, others[name], equal_nan=True), name


def test_a_search_with_another_surrogate_begins_elsewhere_with_it() -> None:
    begun: list[Any] = []
    esgroup.minimize(
        lambda x: 1.0, ModelSearch(vectors(2), Radial(2)), restarts="ipop", rng=1, max_evals=1500,
        callback=lambda search: begun.append(search.strategy),
    )  # fmt: skip
    assert len({one.popsize for one in begun}) > 1 and all(isinstance(one.surrogate, Radial) for one in begun)


def test_what_has_no_surrogate_is_refused() -> None:
    for strategy in (
        WishartSearch(Wishart(np.eye(2))),
        Searcher(np.ones(3), integer=True).strategy,
        Searcher(Space({"n": Integer(1, 9)})).strategy,
        Searcher(Space({"k": Choice("u", "v")})).strategy,
        ModelSearch(vectors(2)),
    ):
        with pytest.raises(ValueError, match="must search real variables for a surrogate"):
            ModelSearch(strategy, Radial(strategy.size))
    with pytest.raises(ValueError, match=r"surrogate must have 3 coordinates, one for each real variable.*got 2"):
        ModelSearch(vectors(3), Radial(2))
    with pytest.raises(TypeError, match=r"surrogate must be .*Surrogate"):
        ModelSearch(vectors(3), 7)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"cls .*Surrogate.* 3"):
        register_surrogate(3)  # type: ignore[type-var]


class Kept(NamedTuple):
    """A state whose size changes, and that may hold NaN."""

    z: np.ndarray
    values: np.ndarray
    judged: np.ndarray


@register_surrogate
@dataclass(frozen=True)
class Nearest(Surrogate):
    """The value of the nearest point."""

    dim: int
    kind: str = "float64"
    capacity = 30
    least = 2

    def start(self) -> Kept:
        return Kept(np.zeros((0, self.dim)), np.zeros(0, dtype=self.kind), np.array(UNJUDGED))

    def fit(self, state: Kept, z: np.ndarray, values: np.ndarray) -> Kept:
        return state._replace(z=np.vstack([z, np.full(self.dim, np.nan)]), values=values.astype(self.kind))

    def predict(self, state: Kept, z: np.ndarray) -> np.ndarray:
        if not len(state.values):
            return np.zeros(len(z))
        return state.values[np.linalg.norm(z[:, None] - state.z[:-1], axis=2).argmin(axis=1)].astype(float)

    def size(self, state: Kept) -> float:
        return float(state.values.std()) if len(state.values) else 0.0

    def minimizer(self, state: Kept, radius: float) -> Minimum:
        return Minimum(np.zeros(self.dim), 0.0, False)

    def moved(self, state: Kept, shift: np.ndarray, turn: np.ndarray) -> Kept:
        return state._replace(judged=forgotten(state.judged))

    def checked(self, state: Kept) -> Kept:
        if state.z.shape[1:] != (self.dim,):
            raise ValueError(f"z must have {self.dim} columns")
        return state


def test_a_surrogate_whose_state_grows_and_holds_nan_checks_it_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    register(Plain)
    search = Searcher(ModelSearch(Plain(dim=3), Nearest(3)), rng=1)
    for _ in range(8):
        search.tell([float(x @ x) for x in search.ask()])
    search.save(tmp_path / "run.npz")
    assert np.isnan(search.state.surrogate.z).any()
    assert np.array_equal(Searcher.load(tmp_path / "run.npz").ask(), search.ask())
    monkeypatch.setattr(Nearest, "start", lambda self: Kept(np.zeros((0, 7)), np.zeros(0), np.array(UNJUDGED)))
    monkeypatch.setattr(Nearest, "checked", Surrogate.checked)
    with pytest.raises(esgroup.CheckpointError, match="state/"):
        Searcher.load(tmp_path / "run.npz")


def test_a_state_that_no_file_can_hold_is_refused_when_it_is_saved(tmp_path: Path) -> None:
    register(Plain)
    search = Searcher(ModelSearch(Plain(dim=3), Nearest(3, "bool")), rng=1)
    with pytest.raises(TypeError, match="state/surrogate/values must be an array of float64 to be stored, got bool"):
        search.save(tmp_path / "run.npz")
    assert not list(tmp_path.iterdir())


def test_a_strategy_that_sees_every_value_itself_has_no_surrogate() -> None:
    class Curious(Plain):
        every_value = True

    with pytest.raises(ValueError, match="real variables for a surrogate, got plain, which sees every value itself"):
        ModelSearch(Curious(dim=3))
