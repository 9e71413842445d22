"""A ranking that esgroup does not know: two objectives, ranked by domination."""

import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import esgroup
from esgroup import Searcher
from esgroup.rankings import Evaluated, Ranking, Scored, register

Array = Any


@register
@dataclass(frozen=True)
class Domination(Ranking):
    """Fronts of points that no other one dominates; within a front those far from their neighbors are better.

    The best point is the one with the least weighted sum.
    """

    weight: float = 1.0
    columns = 1

    def scores(self, state: Any, outcomes: Array, tags: Any, strategy: Any, distribution: Any) -> Scored:
        scores, left = np.full(len(outcomes), np.nan), np.flatnonzero(~np.isnan(outcomes[:, 0]))
        front = 0
        while len(left):
            of = outcomes[left]
            beats = (of[:, None] <= of).all(axis=2) & (of[:, None] < of).any(axis=2)
            first = left[~beats.any(axis=0)]
            first = first[np.argsort(outcomes[first, 0])]
            gaps = np.full(len(first), np.inf)
            gaps[1:-1] = np.abs(outcomes[first[2:]] - outcomes[first[:-2]]).sum(axis=1)
            scores[first] = front + 1 / (2 + gaps)
            left, front = np.setdiff1d(left, first), front + 1
        return Scored(state, scores)

    def sums(self, outcomes: Array) -> Array:
        return outcomes[:, 0] + self.weight * outcomes[:, 1]

    def best(self, outcomes: Array, than: Array | None = None) -> int | None:
        sums = np.where(np.isnan(outcomes[:, 0]), np.inf, self.sums(outcomes))
        i = int(sums.argmin())
        return i if sums[i] < (np.inf if than is None else self.sums(than[None])[0]) else None


ENDS = np.array([[-1.0, 0.5, 0.0], [1.0, 0.5, 0.0]])  # of the segment on which no point is better in both


def two(x: Array) -> tuple[float, float]:
    """The squared distances to both ends."""
    first, second = ((x - ENDS) ** 2).sum(axis=1).tolist()
    return first, second


def outcome(x: Array) -> Evaluated:
    first, second = two(x)
    return Evaluated(first, (second,))


def generation(search: Searcher) -> Array:
    X = search.ask()
    told = np.array([two(x) for x in X])
    search.tell(told[:, 0], constraints=told[:, 1:])
    return X


def searcher(**options: Any) -> Searcher:
    return Searcher([3.0, -2.0, 1.0], 1.0, constraints=Domination(**options), popsize=40, rng=3)


def test_a_search_keeps_a_spread_over_the_front() -> None:
    search = searcher()
    for _ in range(60):
        X = generation(search)
    along, across = X[:, 0], np.abs(X[:, 1:] - [0.5, 0.0]).max(axis=1)
    assert along.min() < -0.5 and along.max() > 0.5 and np.median(across) < 0.1 * np.ptp(along)
    assert np.median(across) < 0.2


def test_what_counts_as_the_best_is_what_the_ranking_says() -> None:
    search = searcher(weight=3.0)
    told = [(x, *two(x)) for _ in range(30) for x in generation(search)]
    x, first, second = min(told, key=lambda one: one[1] + 3 * one[2])
    assert np.array_equal(search.best_x, x) and search.best_f == first and search.feasible
    assert search.best_outcome is not None and search.best_outcome.tolist() == [first, second]
    assert search.constraints is None and search.multipliers is None and "constr" not in search.result
    assert search.result.fun == first


def test_all_spellings_of_tell_have_room_for_what_is_told_besides() -> None:
    searches = [searcher() for _ in range(4)]
    X, *_ = [search.ask() for search in searches]
    f, g = zip(*(two(x) for x in X), strict=True)
    searches[0].tell(f, constraints=g)
    searches[1].tell(X, f, constraints=[[one] for one in g])
    searches[2].tell([(x, *two(x)) for x in X])
    searches[3].tell([outcome(x) for x in X])
    for search in searches[1:]:
        assert np.array_equal(search.ask(), copy.deepcopy(searches[0]).ask())
    with pytest.raises(ValueError, match=r"constraints .*with the values.* None"):
        searches[0].tell(searches[0].ask(), f)


def test_failed_points_have_nothing_beside_their_value() -> None:
    search = searcher()
    X = search.ask()
    search.tell([outcome(x) if x[0] > 3 else np.nan for x in X])
    assert search.nfailed == sum(x[0] <= 3 for x in X) and search.best_x is not None and search.best_x[0] > 3
    search.tell([np.nan] * len(search.ask()))
    assert search.nfev == 80


def test_a_search_with_it_is_saved_and_continues_bit_for_bit(tmp_path: Path) -> None:
    search = searcher(weight=2.0)
    for _ in range(5):
        generation(search)
    part = search.ask(7)
    search.tell(part, *np.array([two(x) for x in part]).T[:1], constraints=[two(x)[1] for x in part])
    search.save(tmp_path / "run.npz")
    loaded = Searcher.load(tmp_path / "run.npz")
    assert loaded.ranking == Domination(2.0) and np.array_equal(loaded.best_outcome, search.best_outcome)
    for _ in range(3):
        assert np.array_equal(generation(loaded), generation(search))


def test_minimize_restarts_with_it_and_resumes_in_the_middle_of_a_generation(tmp_path: Path) -> None:
    def run(max_evals: int, **more: Any) -> Any:
        start = [3.0, -2.0, 1.0]
        return esgroup.minimize(
            outcome, start, 1.0, constraints=Domination(), restarts="ipop", rng=4, max_evals=max_evals, **more
        )

    whole = run(9000)
    assert whole.restarts > 0 and whole.fun == pytest.approx(1.0, abs=0.1) and whole.nfev == 9000
    path = tmp_path / "run.npz"
    run(6003, checkpoint=path)
    again = run(9000, checkpoint=path, resume=True)
    assert np.array_equal(whole.x, again.x) and whole.restarts == again.restarts and again.nfev == 9000
    with pytest.raises(ValueError, match=r"it has Domination\(weight=1.0\), not no constraints"):
        esgroup.minimize(lambda x: 0.0, [3.0, -2.0, 1.0], 1.0, rng=4, checkpoint=path, resume=True)


def test_a_class_that_is_not_registered_cannot_be_saved(tmp_path: Path) -> None:
    @dataclass(frozen=True)
    class Nobodys(Domination):
        pass

    with pytest.raises(TypeError, match="Nobodys"):
        Searcher([0.0], constraints=Nobodys()).save(tmp_path / "run.npz")
    with pytest.raises(TypeError, match=r"cls .*Ranking.* 3"):
        register(3)  # type: ignore[type-var]


def test_a_model_of_values_does_not_rank_by_anything_else() -> None:
    with pytest.raises(ValueError, match=r"constraints .*model='quadratic'"):
        Searcher([0.0, 1.0], constraints=Domination(), model="quadratic")


def test_a_function_that_returns_a_plain_value_is_told_what_to_return() -> None:
    with pytest.raises(ValueError, match=r"constraints must be told.* esgroup\.rankings\.Evaluated\(value, beside\)"):
        esgroup.minimize(lambda x: two(x)[0], np.zeros(3), 0.5, constraints=Domination(), max_evals=50)
