"""A search of any kind can be pickled and copied at any time, and its result printed, compared and pickled."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import esgroup
from esgroup import Angle, Choice, Integer, Real, Searcher, Space
from tests.search.support import OPTIONS, STRUCTURES, X0
from tests.search.test_spaces import SPACES
from tests.search.test_strangers import OnePlusOne

REALS = Space({"a": Real(0, 1), "b": Real(1e-3, 1, log=True), "c": Angle()})
MIXED = Space(
    {
        "a": Real(0, 1, shape=2),
        "n": Integer(1, 9),
        "kind": Choice(None, (1, 2), True),
        "z": Real(0, 1, when={"kind": (None,)}),
        "many": Choice(1, "two", shape=2),
    }
)
DATA = np.random.default_rng(1).normal(size=(20, 3)), np.arange(20.0)

MADE: dict[str, Callable[[], Searcher]] = {
    **{f"structure {name}": lambda a=a: Searcher(X0, 0.5, structure=a, rng=1) for name, a in STRUCTURES.items()},
    **{f"options {name}": lambda some=some: Searcher(X0, 0.5, rng=1, **some) for name, some in OPTIONS.items()},
    **{f"over {name}": lambda start=start: Searcher(start[0], rng=1) for name, start in SPACES.items()},
    "two points": lambda: Searcher(X0, 0.5, step_size="tpa", rng=1),
    "large": lambda: Searcher(np.ones(90), 0.5, rng=1),
    "model": lambda: Searcher(X0[:3], 0.5, model="quadratic", rng=1),
    "few evaluations": lambda: Searcher(X0[:3], 0.5, model="auto", max_evals=300, rng=1),
    "data": lambda: Searcher.from_data(*DATA, rng=1),
    "data with a model": lambda: Searcher.from_data(*DATA, model="quadratic", rng=1),
    "constraints": lambda: Searcher(X0, 0.5, constraints=2, equalities=[1], rng=1),
    "reals": lambda: Searcher(REALS, rng=1),
    "reals with a model": lambda: Searcher(REALS, model="quadratic", rng=1),
    "reals with constraints": lambda: Searcher(REALS, constraints=2, rng=1),
    "mixed": lambda: Searcher(MIXED, rng=1),
    "mixed with constraints": lambda: Searcher(MIXED, constraints=2, rng=1),
    "choices": lambda: Searcher(Space({"a": Choice(1, 2), "b": Choice(None, "x")}), rng=1),
}


def value(x: Any) -> float:
    if isinstance(x, dict):
        return float(sum(float(one) for one in x.values() if isinstance(one, (int, float))))
    return float((np.asarray(x) ** 2).sum())


def tell(search: Searcher, points: Any) -> None:
    values = [value(x) for x in points]
    beside = {} if search.constraints is None else {"constraints": [[f - 2.0, 0.1 * f] for f in values]}
    search.tell(points, values, **beside)


def copies(search: Searcher) -> list[Searcher]:
    return [pickle.loads(pickle.dumps(search)), copy.deepcopy(search), copy.copy(search)]


def continued(search: Searcher, points: Any) -> str:
    """How a search ends its generation and begins the next one."""
    tell(search, points)
    return repr((search.ask(), search.stop(), search.best_f))


@pytest.mark.parametrize("name", MADE)
def test_a_search_is_copied_before_within_and_after_generations(name: str) -> None:
    search = MADE[name]()
    for stage in ("new", "asked", "partly told", "later"):
        points = [] if stage == "new" else search.ask()
        if stage == "partly told":
            tell(search, points[:1])
            points = points[1:]
        search.stop()  # which makes the search look at itself
        found = search.result
        for other in copies(search):
            assert other.result == found and repr(other.result) == repr(found), stage
        assert pickle.loads(pickle.dumps(found)) == copy.deepcopy(found) == found
        if len(points):
            first, second = copies(search)[:2]
            expected = continued(search, points)
            assert continued(first, points) == continued(second, points) == expected


LIMIT = {"type": "ineq", "fun": value}


@pytest.mark.parametrize("restarts", [None, "bipop"])
@pytest.mark.parametrize("x0", [X0, REALS, MIXED], ids=["vectors", "reals", "mixed"])
@pytest.mark.parametrize("more", [{}, {"model": "quadratic"}, {"constraints": LIMIT}], ids=list)
def test_a_callback_copies_the_search(x0: Any, more: dict[str, Any], restarts: Any) -> None:
    def callback(search: Searcher) -> None:
        search.stop()
        for other in copies(search):
            assert other.result == search.result
        seen.append(search.nit)

    seen: list[int] = []
    options = more | ({} if isinstance(x0, Space) else {"sigma0": 0.5})
    options |= {"restarts": restarts, "max_evals": 60, "callback": callback, "rng": 1}
    esgroup.minimize(lambda x: round(value(x), 1), x0, **options)
    assert len(seen) >= 3


def test_a_shallow_copy_is_another_search() -> None:
    search = Searcher(X0, 0.5, rng=1)
    other = copy.copy(search)
    for _ in range(3):
        other.tell([x @ x for x in other.ask()])
    assert (search.nfev, search.nit) == (0, 0) and np.array_equal(search.mean, X0)


def test_writing_to_what_is_seen_changes_nothing() -> None:
    """A strategy may show its own arrays."""

    class Careless(OnePlusOne):
        def mean(self, state: Any) -> np.ndarray:
            return state.mean

    search, other = (Searcher(Careless(dim=3), rng=1) for _ in range(2))
    search.mean[:], search.stds[:] = 99.0, 99.0
    assert np.array_equal(search.ask(), other.ask())
