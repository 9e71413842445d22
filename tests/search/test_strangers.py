"""Strategies that esgroup does not know: instances, an installed package, and every hook that one may fill."""

import math
import os
import subprocess
import sys
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest

import esgroup
from esgroup import Searcher
from esgroup.strategies import Proposed, Ranked, Relocation, StateView, Strategy, Traits, register

PACKAGE = Path(__file__).parent / "their_package"
ROOT = Path(__file__).parents[2]


class State(NamedTuple):
    mean: np.ndarray
    sigma: np.ndarray


@dataclass(frozen=True)
class Plain(Strategy):
    """The smallest strategy there is: the mean of the better half, and a step size that shrinks."""

    dim: int = 2
    popsize: int = 6

    parts: ClassVar[bool] = False
    every_value: ClassVar[bool] = False

    @cached_property
    def traits(self) -> Traits:
        return Traits(
            size=self.dim,
            popsize=self.popsize,
            about="plain",
            in_parts=self.parts,
            every_value=self.every_value,
        )

    def start(self, rng: Any = None) -> Any:
        return State(np.full(self.dim, 3.0), np.array(1.0))

    def sample(self, state: Any, n: int, rng: np.random.Generator, out: Proposed | None = None) -> Proposed:
        z = rng.standard_normal((n, self.dim))
        return Proposed(state.mean + state.sigma * z, z)

    def local(self, state: Any, points: np.ndarray) -> np.ndarray:
        return (points - state.mean) / state.sigma

    def update(self, state: Any, told: Ranked, out: Any = None) -> Any:
        step = told.local[told.order[: len(told.order) // 2]].mean(axis=0)
        return state._replace(mean=state.mean + state.sigma * step, sigma=state.sigma * 0.95)

    def mean(self, state: Any) -> np.ndarray:
        return state.mean.copy()

    def stds(self, state: Any) -> np.ndarray:
        return np.full(self.dim, float(state.sigma))


def sphere(x: np.ndarray) -> float:
    return float(x @ x)


def generations(search: Searcher, n: int) -> Searcher:
    for _ in range(n):
        search.tell([sphere(x) for x in search.ask()])
    return search


def test_an_instance_can_be_searched_with() -> None:
    search = generations(Searcher(Plain(), rng=1, max_evals=600), 60)
    assert search.best_f < 0.1 and search.structure == "plain" and search.popsize == 6
    assert "plain" in repr(search) and search.result.structure == "plain"
    result = esgroup.minimize(sphere, Plain(dim=3), max_evals=600, rng=1)
    assert result.x.shape == (3,) and result.fun < 0.5
    with pytest.raises(ValueError, match=r"popsize .*Plain"):
        Searcher(Plain(), popsize=4)


def test_a_search_with_it_is_saved_once_its_class_is_registered(tmp_path: Path) -> None:
    search = generations(Searcher(Plain(), rng=1), 5)

    @dataclass(frozen=True)
    class Nobodys(Plain):
        pass

    with pytest.raises(TypeError, match=r"Nobodys.*esgroup\.strategies\.register"):
        Searcher(Nobodys()).save(tmp_path / "run.npz")
    register(Plain)
    search.save(tmp_path / "run.npz")
    loaded = Searcher.load(tmp_path / "run.npz")
    assert np.array_equal(generations(search, 3).ask(), generations(loaded, 3).ask())
    with pytest.raises(TypeError, match=r"cls .*Strategy.* 3"):
        register(3)  # type: ignore[type-var]


def test_a_name_is_registered_for_one_class() -> None:
    register(Plain)

    def other() -> type[Strategy]:
        @dataclass(frozen=True)
        class Plain(Strategy):  # type: ignore[misc]  # it is not complete
            pass

        return Plain

    with pytest.raises(ValueError, match="'Plain' is taken"):
        register(other())


@dataclass(frozen=True)
class OnePlusOne(Plain):
    """The (1+1)-ES with the one-fifth rule (Rechenberg 1973): a generation is one point."""

    popsize: int = 1

    def start(self, rng: Any = None) -> Any:
        return State(np.full(self.dim, 3.0), np.array([1.0, np.inf]))  # sigma, and the value of the mean

    def sample(self, state: Any, n: int, rng: np.random.Generator, out: Proposed | None = None) -> Proposed:
        return super().sample(state._replace(sigma=state.sigma[0]), n, rng)

    def local(self, state: Any, points: np.ndarray) -> np.ndarray:
        return (points - state.mean) / state.sigma[0]

    def update(self, state: Any, told: Ranked, out: Any = None) -> Any:
        sigma, value = state.sigma
        if told.best >= value:
            return state._replace(sigma=np.array([sigma * 1.5**-0.25, value]))
        return State(state.mean + sigma * told.local[0], np.array([sigma * 1.5, told.best]))

    def stds(self, state: Any) -> np.ndarray:
        return np.full(self.dim, state.sigma[0])


@pytest.mark.parametrize("level", [0.0, 1e3])
def test_a_search_with_one_point_in_a_generation_is_not_flat_because_its_values_differ_from_one_to_the_next(
    level: float,
) -> None:
    result = esgroup.minimize(lambda x: level + sphere(x), OnePlusOne(), rng=1, max_evals=5000)
    assert result.fun - level < 1e-9 and "flat" not in result.stop and result.success
    constant = esgroup.minimize(lambda x: 1.0, OnePlusOne(), rng=1, max_evals=5000)
    assert "flat" in constant.stop and not constant.success


# ---- hooks --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Varying(Plain):
    """Asks for more and more points: the size of a generation is in the state."""

    parts = True

    def view(self, state: Any) -> StateView:
        return StateView(lambda: self.stds(state), batch=3 if float(state.sigma) > 0.9 else 8)


def test_the_size_of_an_ask_may_vary() -> None:
    search = Searcher(Varying(), rng=1)
    sizes = []
    for _ in range(5):
        X = search.ask()
        sizes.append(len(X))
        search.tell([sphere(x) for x in X])
    assert sizes == [3, 3, 3, 8, 8] and search.nit == 5
    X = search.ask(5)
    search.tell([sphere(x) for x in X])  # less than a generation: it waits
    assert search.nit == 5 and len(search.ledger.pool) == 1


@dataclass(frozen=True)
class InHalves(Plain):
    """A generation is two asks."""

    parts = True

    def view(self, state: Any) -> StateView:
        return StateView(lambda: self.stds(state), generations=round(math.log(float(state.sigma), 0.95)) // 2)


def test_a_strategy_may_count_generations_of_its_own(tmp_path: Path) -> None:
    register(InHalves)
    search = generations(Searcher(InHalves(), rng=1, max_iters=3), 5)
    assert search.nit == search.result.nit == 2 and not search.stop()
    search.save(tmp_path / "run.npz")
    loaded = generations(Searcher.load(tmp_path / "run.npz"), 1)
    assert loaded.nit == 3 and list(loaded.stop()) == ["max_iters"]
    assert esgroup.minimize(sphere, InHalves(), max_iters=4, rng=1).nfev == 4 * 2 * 6


class Archive(NamedTuple):
    mean: np.ndarray
    sigma: np.ndarray
    points: np.ndarray  # all that were told
    values: np.ndarray


@dataclass(frozen=True)
class Remembering(Plain):
    """Keeps all values: arrays of the state change their shape."""

    every_value = True

    def start(self, rng: Any = None) -> Archive:
        return Archive(*super().start(), np.empty((0, self.dim)), np.empty(0))

    def update(self, state: Archive, told: Ranked, out: Any = None) -> Archive:
        moved = super().update(state, told) if len(told.order) else state
        return moved._replace(
            points=np.concatenate([state.points, told.points]), values=np.concatenate([state.values, told.values])
        )

    def checked(self, state: Archive) -> Archive:
        if state.points.shape != (len(state.values), self.dim):
            raise ValueError("points and values must have one length")
        return state


def test_arrays_of_a_state_may_change_their_shape(tmp_path: Path) -> None:
    register(Remembering)
    search = generations(Searcher(Remembering(), rng=1), 4)
    X = search.ask(2)
    search.tell(X, [1.0, np.nan])
    assert search.state.points.shape == (26, 2) and np.isnan(search.state.values[-1])
    search.save(tmp_path / "run.npz")
    loaded = Searcher.load(tmp_path / "run.npz")
    assert np.array_equal(loaded.state.points, search.state.points)
    assert np.array_equal(generations(search, 3).ask(), generations(loaded, 3).ask())


@dataclass(frozen=True)
class First(Plain):
    """Hands over to another strategy when its steps are small."""

    def successor(self, state: Any) -> Any:
        return (Plain(self.dim, 4), state) if float(state.sigma) < 0.8 else None


def test_a_strategy_may_hand_over_to_another(tmp_path: Path) -> None:
    register(First)
    register(Plain)
    search = generations(Searcher(First(), rng=1), 4)
    assert type(search.strategy) is First
    late = search.ask()
    generations(search, 1)
    assert type(search.strategy) is Plain and search.popsize == 4 and search.nit == 5
    search.tell(late[:2], [sphere(x) for x in late[:2]])  # of the first one's points
    assert generations(search, 20).best_f < 1.0
    search.save(tmp_path / "run.npz")
    assert type(Searcher.load(tmp_path / "run.npz").strategy) is Plain


@dataclass(frozen=True)
class Rotated(Plain):
    """Has other local coordinates, one more of them, and remembers how late points came."""

    seen: list[Any] = field(default_factory=list)

    def local(self, state: Any, points: np.ndarray) -> np.ndarray:
        return np.column_stack([super().local(state, points)[:, ::-1], np.ones(len(points))])

    def shortened(self, local: np.ndarray, then: np.ndarray | None = None) -> np.ndarray:
        if then is not None:
            self.seen.append((local.copy(), then.copy()))
        return local


@dataclass(frozen=True)
class ToRotated(First):
    after: Rotated = field(default_factory=Rotated)

    def successor(self, state: Any) -> Any:
        return (self.after, state) if float(state.sigma) < 0.8 else None


def test_points_that_are_out_have_the_coordinates_of_the_successor_when_they_are_told() -> None:
    """Those that they had in its first distribution, with which it begins, and those of the present one."""
    first = ToRotated()
    search = generations(Searcher(first, rng=1), 4)
    late = search.ask(3)
    while type(search.strategy) is not Rotated:
        generations(search, 1)
    asked = search.ledger.asked[0]
    assert np.array_equal(asked.drawn.points, late) and len(asked.out) == 3
    then = first.after.local(search.state, late)
    assert np.array_equal(asked.drawn.local, then) and then.shape == (3, 3)
    search.tell(late[1:], [1.0, 2.0])
    ((now, before),) = first.after.seen
    assert np.array_equal(before, then[1:]) and np.array_equal(now, first.after.local(search.state, late[1:]))
    assert search.ledger.pool[0].local.shape == (2, 3)


@dataclass(frozen=True)
class Restarting(Plain):
    """Begins again elsewhere, twice at most."""

    left: int = 2

    def relocated(self, to: Relocation) -> Any:
        return Restarting(self.dim, to.popsize, self.left - 1) if self.left else None


def test_a_strategy_that_can_begin_elsewhere_is_restarted() -> None:
    result = esgroup.minimize(lambda x: 1.0, Restarting(), restarts="ipop", rng=1, max_evals=10**5)
    assert result.restarts == 9 and result.nfev < 10**5  # each from the first strategy, whose count stays 2


@dataclass(frozen=True)
class Reusing(Plain):
    """Expects its own points as `out`, and searches one number more than it shows."""

    def sample(self, state: Any, n: int, rng: np.random.Generator, out: Proposed | None = None) -> Proposed:
        assert out is None or out.memo == "mine"
        return super().sample(state, n, rng)._replace(memo="mine")

    def view(self, state: Any) -> StateView:
        return StateView(lambda: np.append(self.stds(state), 1.0))


@dataclass(frozen=True)
class ToReusing(First):
    def successor(self, state: Any) -> Any:
        return (Reusing(self.dim, 4), state) if float(state.sigma) < 0.8 else None


def test_a_successor_gets_no_arrays_of_the_first_and_may_search_other_coordinates() -> None:
    search = generations(Searcher(ToReusing(), rng=1), 8)
    assert type(search.strategy) is Reusing and search.stop() == {} and search.best_f < 3.0


@dataclass(frozen=True)
class Tagging(Plain):
    """Marks its first two samples, and keeps what came back of them."""

    seen: list[Any] = field(default_factory=list)

    def sample(self, state: Any, n: int, rng: np.random.Generator, out: Proposed | None = None) -> Proposed:
        drawn = super().sample(state, n, rng)
        return drawn._replace(tags=np.where(np.arange(n) < 2, np.arange(n) + 1, 0))

    def update(self, state: Any, told: Ranked, out: Any = None) -> Any:
        self.seen.append(None if told.tags is None else told.tags.tolist())
        return super().update(state, told)


def test_samples_keep_their_tags_whatever_the_order_in_which_they_are_told() -> None:
    strategy = Tagging()
    search = Searcher(strategy, rng=1)
    generations(search, 1)
    X = search.ask()
    search.tell(X[::-1], [sphere(x) for x in X[::-1]])
    X = search.ask()
    search.tell(X[3:], [1.0] * 3)
    search.tell(X[:3], [2.0] * 3)
    assert strategy.seen == [[1, 2, 0, 0, 0, 0], [0, 0, 0, 0, 2, 1], [0, 0, 0, 1, 2, 0]]


def test_points_that_are_late_injected_or_foreign_have_no_tag() -> None:
    strategy = Tagging()
    search = Searcher(strategy, rng=1)
    late = search.ask()
    search.tell(np.ones((6, 2)), np.arange(6.0))
    search.tell(late, np.arange(6.0))
    search.inject([5.0, 5.0])
    search.ask()
    search.tell(np.arange(6.0))
    assert strategy.seen == [[0] * 6, [0] * 6, [0, 2, 0, 0, 0, 0]]


@dataclass(frozen=True)
class Equal(Tagging):
    """All samples are the same point."""

    def sample(self, state: Any, n: int, rng: np.random.Generator, out: Proposed | None = None) -> Proposed:
        drawn = super().sample(state, n, rng)
        z = rng.standard_normal((n, 2))
        return Proposed(np.tile(state.mean, (n, 1)), z, drawn.tags)


def test_of_equal_points_the_oldest_ask_is_told_first() -> None:
    strategy = Equal(popsize=4)
    search = Searcher(strategy, rng=1)
    first, second = search.ask(2), search.ask(2)
    kept = [asked.drawn.local.copy() for asked in search.ledger.asked]
    search.tell(second, [1.0, 2.0])  # which are the points of the first ask as well
    assert np.array_equal(search.ledger.pool[0].local, kept[0])
    search.tell(first[:1], [3.0])
    assert np.array_equal(search.ledger.pool[1].local, kept[1][:1])


# ---- another package ------------------------------------------------------------------------------------------------

SCRIPT = """
import sys
import esgroup
from their_search import Words

def distance(word):
    return sum(a != b for a, b in zip(word, "heisenberg"))

search = esgroup.Searcher(Words("abeghinrs", 10), popsize=30, rng=1, target=0)
asked = search.ask()
assert isinstance(asked, list) and all(len(word) == 10 for word in asked)
search.tell([(word, distance(word)) for word in reversed(asked)])
search.inject(["hhhhhhhhhh"])
asked = search.ask()
assert asked[0] == "hhhhhhhhhh"
search.tell(asked[1:] + asked[:1], [distance(word) for word in asked[1:] + asked[:1]])
while not search.stop():
    search.tell([distance(word) for word in search.ask()])
assert search.stop().keys() == {"target"}, search.stop()
search.save(sys.argv[1])
result = esgroup.minimize(distance, Words("abeghinrs", 10), popsize=30, rng=1, target=0)
print(search.best_x, search.result.x, result.x)
"""

LOADING = """
import sys
import esgroup
search = esgroup.Searcher.load(sys.argv[1])
print(search.structure, search.best_x)
"""


def run(code: str, path: Path, site: Path) -> str:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (site, PACKAGE, ROOT, ROOT / "problems")))}
    command = [sys.executable, "-c", code, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def installed(site: Path, target: str) -> Path:
    """A folder in which Python finds a package with an entry point of ours."""
    info = site / "their_search-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: their-search\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[esgroup.strategies]\nwords = {target}\n")
    return site


def test_a_package_brings_a_distribution_of_its_own_and_its_searches_are_loaded_without_it(tmp_path: Path) -> None:
    site = installed(tmp_path / "site", "their_search:WordSearch")
    assert run(SCRIPT, tmp_path / "run.npz", site) == "heisenberg heisenberg heisenberg"
    assert run(LOADING, tmp_path / "run.npz", site) == "words of 10 letters heisenberg"


def test_a_package_that_does_not_load_is_named(tmp_path: Path) -> None:
    site = installed(tmp_path / "site", "their_search:Nothing")
    with pytest.raises(AssertionError, match=r"their-search offers the strategy 'their_search:Nothing'"):
        run(SCRIPT, tmp_path / "run.npz", site)


def test_what_is_no_start_at_all_is_refused() -> None:
    class Thing:
        pass

    with pytest.raises(ValueError, match=r"x0 .*real numbers"):
        Searcher(Thing())
