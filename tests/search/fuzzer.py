"""Random sequences of calls on random searches; after every call a model in plain Python says what must be true.

    python -m tests.search.fuzzer --seed 123                  one sequence, with all its operations
    python -m tests.search.fuzzer --seed 123 --only 0,4,17    some of them only
    python -m tests.search.fuzzer --sequences 1000            seeds 0 to 999

What a search must do whatever happens:

- only ValueError and TypeError for wrong arguments, RuntimeError for values without an ask, and no warnings;
- a refused call changes nothing, bit for bit, the generator included;
- points are feasible, finite and read-only, never change after they were handed out, and begin with injected ones;
- counts, generations and the best point are those of the values told; arguments are neither changed nor kept;
- with constraints a point is feasible, or better than another, by the tolerance alone;
- searches and results can be printed and pickled at any time;
- copies, pickles and files go on like the original, bit for bit: they live beside it and see the same calls.

Every operation has a generator of its own, of the seed and its number: leaving out others changes it little, so that a
failing sequence can be made short.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import math
import pickle
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from esgroup import Searcher
from esgroup.search import models
from esgroup.strategies.model_state import COUNTED, ModelState
from tests.search.fuzz_bits import compare, everything, forget_descriptions, frozen, keys
from tests.search.fuzz_cases import Case, Rng, Rule, random_case

REFUSED = (ValueError, TypeError)
TWINS = 2  # copies that live beside a search, at most
LEAST, MOST = 20, 70  # operations in a sequence


class SequenceFailed(AssertionError):
    """What went wrong, in which sequence, and how to see it again."""


# ---- the books ----------------------------------------------------------------------------------------------------


@dataclass
class Books:
    """What a search must say, from what it was told."""

    nfev: int = 0
    nfailed: int = 0
    nit: int = 0  # moves of the distribution: generations, or parts of them
    best_f: float = math.nan
    best_x: Any = None
    violation: float = 0.0  # of the best point,
    best_g: Any = None  # whose constraints these are
    last: list[Any] | None = None  # keys of the ask to which tell(fitness) belongs
    injected: list[Any] = field(default_factory=list)  # keys

    def told(self, points: Any, values: list[Any], rule: Rule | None, g: Any) -> None:
        """Count valid values, and with a rule the constraints beside them."""
        for i, (point, value) in enumerate(zip(points, map(float, values), strict=True)):
            self.nfev += 1
            if math.isnan(value) or (rule is not None and not np.isfinite(g[i]).all()):
                self.nfailed += 1
                continue
            violation = 0.0 if rule is None else rule.violation(g[i].tolist())
            if self.best_x is None or (violation, value) < (self.violation, self.best_f):
                self.best_f, self.best_x, self.violation = value, copy.copy(point), violation
                self.best_g = None if rule is None else g[i]


# ---- a sequence -----------------------------------------------------------------------------------------------------


class Sequence:
    """One random search under random operations, with its books and copies."""

    def __init__(self, case: Case, folder: Path) -> None:
        self.case, self.folder = case, folder
        self.searches = [case.make()]  # the original, or what took its place, and its copies
        self.books = Books()
        if case.best is not None:
            self.books.best_x, self.books.best_f = case.best
        self.batches: list[Any] = []  # points that were handed out
        self.copies: list[Any] = []  # what they were
        self.log: list[str] = []

    @property
    def search(self) -> Searcher:
        return self.searches[0]

    def batch_size(self) -> int:
        return self.search.batch_size

    # ---- calls --------------------------------------------------------------------------------------------------

    def call(self, text: str, act: Callable[..., Any], *arguments: Any, expect: Any = None) -> Any:
        """Call act(search, *arguments) on all copies, which must agree; `expect` are the exceptions that it must raise.

        Each has arguments of its own. Those of the first are overwritten afterwards: it must not have kept them.
        """
        self.log.append(text)
        outcomes, before = [], [everything(search) for search in self.searches if expect is not None]
        given = [copy.deepcopy(arguments) for _ in self.searches]
        for search, own in zip(self.searches, given, strict=True):
            try:
                outcomes.append(act(search, *own))
            except Exception as error:
                if expect is None or not isinstance(error, expect):
                    raise
                outcomes.append((type(error).__name__, str(error)))
            else:
                assert expect is None, f"accepted: {text}"
            assert frozen(own) == frozen(arguments), "the arguments were changed"
        for argument in given[0]:
            if isinstance(argument, np.ndarray) and argument.dtype.kind == "f":
                argument.fill(-1e9)
        assert all(frozen(outcome) == frozen(outcomes[0]) for outcome in outcomes), f"copies answer {outcomes}"
        if expect is not None:
            for search, earlier in zip(self.searches, before, strict=True):
                compare(earlier, everything(search), "a refused call changed")
        return outcomes[0]

    def tell(self, text: str, points: Any, values: list[Any], *arguments: Any) -> None:
        """tell(*arguments), which says that the points have these values."""
        batch, pooled, lag = self.batch_size(), self._pooled(), self._lag()
        rule = self.case.rule
        g = None if rule is None else rule.values(np.random.default_rng(len(self.log)), len(values))
        if g is None:
            self.call(f"tell({text}, {values})", Searcher.tell, *arguments)
        else:
            self.call(f"tell({text}, {values}, constraints={_short(g)})", _tell_both, g, *arguments)
        self.books.told(points, values, rule, g)
        self._end_generation(pooled + len(values) if values else 0, batch, late=lag > 0 or self._lag() > 0)
        told = set(keys(points))
        if self.books.last is not None and not told.isdisjoint(self.books.last):
            asked = Counter(key for batch in self.copies for key in keys(batch))
            if text and all(asked[key] > 1 for key in told & set(self.books.last)):
                self.books.last = None if self.search.ledger.last is None else self.books.last  # of equal points, any
            else:
                self.books.last = None

    def _end_generation(self, values: int, batch: int, late: bool) -> None:
        """So many values make a generation if they are at least `batch`; if values usually come late, it takes more."""
        moved = self.search.ledger.nit - self.books.nit
        enough = bool(values) and values >= batch
        allowed = (0, 1) if enough and late else (int(enough),)
        assert moved in allowed, f"{values} values with generations of {batch} made {moved} generations"
        assert self._pooled() == 0 if moved else late or not values or self._pooled() == values, self._pooled()
        self.books.nit += moved

    def _pooled(self) -> int:
        """Values that wait for a generation."""
        return sum(len(part.outcomes) for part in self.search.ledger.pool)

    def _lag(self) -> float:
        """How late values usually are, if the search knows."""
        return float(getattr(self.search.ledger, "lag", 0.0))

    def check(self) -> None:
        """The invariants."""
        search, books = self.search, self.books
        got = (search.nfev, search.nfailed, search.ledger.nit, search.best_f)
        want = (books.nfev, books.nfailed, books.nit, books.best_f)
        assert frozen(got) == frozen(want), f"(nfev, nfailed, nit, best_f) is {got}, must be {want}"
        in_parts = search.strategy.traits.in_parts  # also where a part is a generation, to which a model adds a point
        assert search.nit == books.nit or (in_parts and search.nit <= books.nfev), "generations"
        if books.best_x is None:
            assert search.best_x is None
        else:
            assert keys([search.best_x]) == keys([books.best_x]), f"best_x is {search.best_x}, not {books.best_x}"
            assert isinstance(search.best_x, (str, dict)) or not search.best_x.flags.writeable
        assert search.feasible == (self.case.rule is None or (books.best_x is not None and books.violation == 0.0))
        assert frozen(search.best_constraints) == frozen(books.best_g), search.best_constraints
        for batch, kept in zip(self.batches[-8:], self.copies[-8:], strict=True):
            assert frozen(batch) == frozen(kept), "points changed after they were handed out"
        first = everything(search)
        for other in self.searches[1:]:
            compare(first, everything(other), "a copy differs in")

    # ---- operations: ask --------------------------------------------------------------------------------------------

    def ask(self, rng: Rng) -> None:
        most = self.search.limits.max_evals
        left = math.inf if most is None or most <= self.books.nfev else most - self.books.nfev
        self._ask("ask()", min(self.batch_size(), left))

    def ask_some(self, rng: Rng) -> None:
        popsize = self.search.popsize
        sizes = [1, 2, popsize - 1, popsize, int(rng.integers(1, 2 * popsize + 1))]
        n = sizes[int(rng.integers(len(sizes)))]
        if self.batches and rng.random() < 0.4:
            n = len(self.batches[-1])  # whose arrays it might use again
        self._ask(f"ask({n})", n, [n, np.int64(n)][int(rng.integers(2))])

    def _ask(self, text: str, n: float, *arguments: Any) -> None:
        before = self._outside_of_an_ask()
        points = self.call(text, Searcher.ask, *arguments)
        after = self._outside_of_an_ask()
        compare(before, {**after, "asked": after["asked"][: len(before["asked"])]}, "an ask changed")
        assert len(points) == n, f"{text} gave {len(points)} points, not {n}"
        self.log[-1] += f"  # batch {len(self.batches)}, {n} points"
        for point in points:
            assert self.case.good(point), f"{point} is not feasible"
        taken, self.books.injected = self.books.injected[: len(points)], self.books.injected[len(points) :]
        assert keys(points)[: len(taken)] == taken, "injected points must come first"
        if isinstance(points, np.ndarray):
            assert points.shape[1:] == self.search.shape and not points.flags.writeable
            with contextlib.suppress(ValueError):
                points.flags.writeable = True
                raise AssertionError("points can be made writeable")
        self.batches.append(points)
        self.copies.append(copy.deepcopy(points))
        self.books.last = keys(points)

    def _outside_of_an_ask(self) -> dict[str, Any]:
        """What an ask must leave as it is: the distribution, values that wait, and samples that are out."""
        ledger = self.search.ledger
        asked, state = tuple(frozen(drawn) for drawn in ledger.asked), self.search.state
        if isinstance(state, ModelState):
            state = state._replace(stages=state.stages == COUNTED)  # but not which points are out
        return {"state": frozen(state), "pool": frozen(ledger.pool), "asked": asked}

    def ask_wrongly(self, rng: Rng) -> None:
        n = [0, -1, 1.5, "3", True, [2], math.nan][int(rng.integers(7))]
        self.call(f"ask({n!r})", Searcher.ask, n, expect=REFUSED)

    # ---- operations: tell -------------------------------------------------------------------------------------------

    def tell_last(self, rng: Rng) -> None:
        """Values of the last ask, if they may be told."""
        if self.books.last is None:
            self.call("tell([1.0, 2.0])", Searcher.tell, [1.0, 2.0], expect=RuntimeError)
            return
        values = self.values(rng, self.copies[-1])
        self.tell("", self.copies[-1], values, _dressed(rng, values))

    def tell_last_points(self, rng: Rng) -> None:
        """The last ask once more, with its points, in their order or not, told before or not."""
        if self.batches:
            self._tell_rows(rng, -1, np.arange(len(self.copies[-1])))

    def tell_part(self, rng: Rng) -> None:
        """Some points of one of the last asks in any order, some of them twice."""
        if self.batches:
            i = -1 - int(rng.integers(min(3, len(self.batches))))
            n = len(self.copies[i])
            self._tell_rows(rng, i, rng.integers(n, size=int(rng.integers(0, 3 if rng.random() < 0.5 else n + 1))))
            if rng.random() < 0.3:
                self.check()
                self.duplicate(rng)  # while part of a generation is told

    def tell_late(self, rng: Rng) -> None:
        """All points of any ask in any order."""
        if self.batches:
            i = int(rng.integers(len(self.batches)))
            self._tell_rows(rng, i, rng.permutation(len(self.copies[i])))

    def _tell_rows(self, rng: Rng, i: int, rows: Any) -> None:
        points = _rows(self.copies[i], rows)
        self._tell_points(rng, f"batch {i % len(self.batches)} rows {rows.tolist()}", points)

    def tell_foreign(self, rng: Rng) -> None:
        """Points that were never asked for."""
        points = self.case.foreign(rng, int(rng.integers(1, 2 + self.search.popsize)))
        self._tell_points(rng, f"foreign {_short(points)}", points)

    def tell_mixed(self, rng: Rng) -> None:
        """Points that were asked for among points that were not."""
        if self.batches:
            mixed = [*self.copies[-1][:2], *self.case.foreign(rng, 2), *self.copies[-1][-2:]]
            points = mixed if isinstance(mixed[0], (str, dict)) else np.array(mixed)
            self._tell_points(rng, f"mixed {_short(points)}", points)

    def _tell_points(self, rng: Rng, text: str, points: Any) -> None:
        values = self.values(rng, points)
        form = str(rng.choice(["arrays", "lists", "pairs", "one by one"]))
        if form == "one by one":
            for point, value in zip(points, values, strict=True):
                self.tell(f"one of {text}", [point], [value], point, _dressed(rng, [value]))
        elif form == "pairs" and values:
            pairs = [(point, value) for point, value in zip(points, values, strict=True)]
            self.tell(f"pairs of {text}", points, values, pairs)
        elif form == "lists" and values:
            listed = points if isinstance(points, list) else points.tolist()
            self.tell(f"lists of {text}", points, values, listed, values)
        else:
            self.tell(text, points, values, points, _dressed(rng, values))

    def tell_wrongly(self, rng: Rng) -> None:
        """Points or values that must be refused, among good ones."""
        expect: Any = REFUSED
        asked = self.copies[-1] if self.batches else self.case.foreign(rng, 3)
        n, kind = len(asked), int(rng.integers(8))
        if kind == 0:
            wrong = [(), (1.0, 2.0, 3.0)][int(rng.integers(2))]
            self.call(f"tell{wrong}", Searcher.tell, *wrong, expect=TypeError)
        elif kind == 1:
            values = _wrong_values(rng, n)
            expect = REFUSED if self.books.last is not None else RuntimeError
            self.call(f"tell({values!r})", Searcher.tell, values, expect=expect)
        elif kind == 2:
            values = _wrong_values(rng, n)
            self.call(f"tell(last points, {values!r})", Searcher.tell, asked, values, expect=expect)
        elif kind == 3:
            bad = self.case.bad(rng)
            self.call(f"tell({bad!r}, [1.0])", Searcher.tell, [bad], [1.0], expect=expect)
        elif kind == 4:
            pairs = [
                *((x, 1.0) for x in asked[:2]),
                [(self.case.bad(rng), 1.0), 5.0, (asked[0],)][int(rng.integers(3))],
            ]
            self.call(f"tell({pairs!r})", Searcher.tell, pairs, expect=expect)
        else:
            rows = [*asked[: int(rng.integers(1, n + 1))], *self.case.foreign(rng, 1), self.case.bad(rng)]
            self.call(f"tell(asked points and {rows[-2:]!r})", Searcher.tell, rows, [1.0] * len(rows), expect=expect)

    def tell_constraints_wrongly(self, rng: Rng) -> None:
        """Good points and values, with constraints that must be refused; or without any where there must be some."""
        points = self.case.foreign(rng, int(rng.integers(1, 5)))
        n, m = len(points), 1 if self.case.rule is None else self.case.rule.number
        wrong: list[Any] = [np.ones((n, m + 1)), np.ones((n + 1, m)), [["a"] * m] * n, [[1j] * m] * n, 5.0, "many"]
        wrong += [np.ma.masked_array(np.ones((n, m)), True), [[1.0] * m] * n + [[]], {"g": 1.0}]
        wrong = [np.ones((n, m))] if self.case.rule is None else [*wrong, None]
        g = wrong[int(rng.integers(len(wrong)))]
        self.call(f"tell(X, f, constraints={g!r})", _tell_both, g, points, [1.0] * n, expect=REFUSED)

    def values(self, rng: Rng, points: Any) -> list[Any]:
        """Values of points: those of a function, or strange ones."""
        n = len(points)
        if rng.random() < 0.5:
            return [_objective(point) for point in points]
        strange = [
            math.nan,
            math.nan,
            math.nan,
            math.inf,
            -math.inf,
            0.0,
            -0.0,
            1e308,
            -1e308,
            5e-324,
            3,
            -(10**30),
            True,
        ]
        if rng.random() < 0.5:
            return [strange[int(rng.integers(len(strange)))]] * n
        usual = [float(value) for value in rng.normal(size=3)]
        return [(strange + usual * 4)[int(i)] for i in rng.integers(len(strange) + 12, size=n)]

    # ---- operations: the rest ---------------------------------------------------------------------------------------

    def generations(self, rng: Rng) -> None:
        """A few generations as everybody makes them."""
        for _ in range(int(rng.integers(1, 6))):
            self.ask(rng)
            values = [_objective(point) for point in self.copies[-1]]
            self.tell("", self.copies[-1], values, values)
            self.check()
            self.stop(rng)

    def inject(self, rng: Rng) -> None:
        points = self.case.foreign(rng, int(rng.integers(1, 4)))
        if self.batches and rng.random() < 0.5:
            points = self.copies[int(rng.integers(len(self.copies)))][:2]
        one = len(points) == 1 and rng.random() < 0.5
        self.call(f"inject({_short(points)})", Searcher.inject, points[0] if one else points)
        self.books.injected += keys(points)

    def inject_wrongly(self, rng: Rng) -> None:
        points: Any = [*self.case.foreign(rng, 1 + int(rng.integers(2))), self.case.bad(rng)]
        if rng.random() < 0.3:
            points = [self.case.bad(rng), "none", None, 5.5][int(rng.integers(4))]
        self.call(f"inject({points!r})", Searcher.inject, points, expect=REFUSED)

    def duplicate(self, rng: Rng) -> None:
        """A copy beside the original, or in its place."""
        way = str(rng.choice(["file", "file", "deepcopy", "pickle"]))
        before = everything(self.search)
        if way == "file":
            self.search.save(self.folder / "run.npz")
            twin = Searcher.load(self.folder / "run.npz")
        else:
            twin = copy.deepcopy(self.search) if way == "deepcopy" else pickle.loads(pickle.dumps(self.search))
        compare(before, everything(self.search), f"{way} changed")
        instead = rng.random() < 0.4
        self.searches = ([twin, *self.searches] if instead else [*self.searches, twin])[: 1 + TWINS]
        self.log.append(f"copied by {way}" + ", the copy is the first from now on" * instead)

    def save_nowhere(self, rng: Rng) -> None:
        self.call("save(in no folder)", Searcher.save, str(self.folder / "none" / "run.npz"), expect=OSError)
        (self.folder / "half.npz").write_bytes(b"PK\x03\x04 half a file")
        self.call(
            "load(half a file)", lambda _, path: Searcher.load(path), str(self.folder / "half.npz"), expect=ValueError
        )

    def stop(self, rng: Rng) -> None:
        reasons, limits, books = self.call("stop()", Searcher.stop), self.search.limits, self.books
        reached = {
            "max_evals": limits.max_evals is not None and books.nfev >= limits.max_evals,
            "max_iters": limits.max_iters is not None and self.search.nit >= limits.max_iters,
            "target": limits.target is not None and books.violation == 0 and books.best_f <= limits.target,
        }
        assert all((name in reasons) == is_reached for name, is_reached in reached.items()), (reasons, reached)

    def result(self, rng: Rng) -> None:
        found, books = self.call("result", lambda search: search.result), self.books
        got = (found.nfev, found.nfailed, found.nit, found.fun)
        assert frozen(got) == frozen((books.nfev, books.nfailed, self.search.nit, books.best_f)), got
        if books.best_x is not None:
            assert keys([found.x]) == keys([books.best_x]), f"result.x is {found.x}, not {books.best_x}"
        assert str(found) and frozen(pickle.loads(pickle.dumps(found))) == frozen(found)
        if self.case.rule is not None and books.best_x is not None:
            assert found.feasible == (books.violation == 0.0) and (found.constr == books.best_g).all()
            assert found.success <= found.feasible
        for own in (found.x, found.xmean, found.stds):
            if isinstance(own, np.ndarray):
                own.fill(0.25)  # results belong to the caller

    def look(self, rng: Rng) -> None:
        """All properties, which change nothing."""
        before = everything(self.search)
        names = "popsize shape dim structure mean stds sigma axis_ratio nfev nit nfailed best_x best_f generation_best"
        seen = {name: getattr(self.search, name) for name in names.split()}
        assert repr(self.search) and self.search.seconds >= 0 and isinstance(self.search.result_fields, dict)
        compare(before, everything(self.search), "looking changed")
        mean, stds = seen["mean"], seen["stds"]
        assert mean.shape == stds.shape == self.search.shape and np.isfinite(mean).all(), mean
        assert (stds >= 0).all() and seen["sigma"] > 0 and seen["axis_ratio"] >= 1, (stds, seen)
        if self.case.fixed.any():
            assert self.case.good(mean) and (stds[self.case.fixed] == 0).all(), (mean, stds)
        for own in (mean, stds):
            own.fill(0.25)
        self.log.append("all properties")


OPERATIONS: dict[Callable[[Sequence, Rng], None], int] = {
    Sequence.ask: 12,
    Sequence.ask_some: 8,
    Sequence.ask_wrongly: 2,
    Sequence.tell_last: 14,
    Sequence.tell_last_points: 6,
    Sequence.tell_part: 10,
    Sequence.tell_late: 6,
    Sequence.tell_foreign: 5,
    Sequence.tell_mixed: 4,
    Sequence.tell_wrongly: 12,
    Sequence.tell_constraints_wrongly: 3,
    Sequence.generations: 4,
    Sequence.inject: 4,
    Sequence.inject_wrongly: 3,
    Sequence.duplicate: 9,
    Sequence.save_nowhere: 1,
    Sequence.stop: 6,
    Sequence.result: 3,
    Sequence.look: 4,
}


def _tell_both(search: Searcher, constraints: Any, *told: Any) -> None:
    search.tell(*told, constraints=constraints)


def _rows(points: Any, rows: Any) -> Any:
    return [points[i] for i in rows] if isinstance(points, list) else points[rows]


def _short(points: Any) -> str:
    return np.array2string(np.asarray(points), precision=3, threshold=12).replace("\n", "")


def _objective(point: Any) -> float:
    if isinstance(point, dict):
        numbers = [1.0 if isinstance(value, str | tuple | type(None)) else abs(value - 0.5) for value in point.values()]
        return float(sum(numbers))
    return float(point.count("a")) if isinstance(point, str) else float(np.sum(np.abs(np.clip(point, -1e9, 1e9) - 0.5)))


def _dressed(rng: Rng, values: list[Any]) -> Any:
    """The same values as an array, a list, a tuple, a column, arrays of one element, or one number."""
    forms: list[Callable[[], Any]] = [lambda: np.array(values, dtype=float), lambda: values, lambda: tuple(values)]
    forms += [
        lambda: np.array(values, dtype=float)[:, None],
        lambda: [np.array([value], dtype=float) for value in values],
    ]
    forms += [lambda: values[0]] * (len(values) == 1)
    return forms[int(rng.integers(len(forms)))]()


def _wrong_values(rng: Rng, n: int) -> Any:
    """What cannot be the values of n points."""
    wrong: list[Any] = [[1.0] * (n + 1), [1.0] * (n - 1), "a" * n, ["a"] * n, [None] * n, [1j] * n, np.ones((n, 2))]
    wrong += [[1.0] * (n - 1) + ["b"], np.ma.masked_array(np.ones(n), True), {"a": 1}, [[1.0, 2.0]] * n, None, int]
    wrong += [np.ones(n + 1), [10**400] * n, np.array(["x"] * n), [np.ones(2)] * n]
    return wrong[int(rng.integers(len(wrong)))]


# ---- many sequences -------------------------------------------------------------------------------------------------


def run(seed: int, only: frozenset[int] | None = None, log: list[str] | None = None) -> list[int]:
    """Run the sequence of a seed, or some of its operations, and return their numbers; raises what goes wrong."""
    rng = np.random.default_rng(seed)
    log, numbers = [] if log is None else log, []
    state = frozen(np.random.get_state())
    forget_descriptions()
    timeless = mock.patch.object(models, "SLOW", math.inf)  # advice that depends on how busy the machine is
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(), timeless:
        warnings.simplefilter("error")
        case = random_case(rng)
        log.append(case.text)
        sequence = Sequence(case, Path(folder))
        sequence.log = log
        operations, weights = list(OPERATIONS), np.array(list(OPERATIONS.values()))
        for i in range(int(rng.integers(LEAST, MOST))):
            if only is not None and i not in only:
                continue
            numbers.append(i)
            own = np.random.default_rng([seed, i])
            log.append(f"--- {i}")
            operations[int(own.choice(len(operations), p=weights / weights.sum()))](sequence, own)
            sequence.check()
    assert frozen(np.random.get_state()) == state, "NumPy's global generator was used"
    return numbers


def failure(seed: int, only: frozenset[int] | None = None) -> tuple[Exception, list[str]] | None:
    """What goes wrong in a sequence, and its operations up to there; None if nothing does."""
    log: list[str] = []
    try:
        run(seed, only, log)
    except Exception as error:
        return error, log
    return None


def _same_failure(first: Exception, second: Exception) -> bool:
    return type(first) is type(second) and str(first).split()[:4] == str(second).split()[:4]


def shortened(seed: int, error: Exception, log: list[str]) -> frozenset[int]:
    """Numbers of operations that still fail in the same way, without any that is not needed."""
    needed = frozenset(int(line[4:]) for line in log if line.startswith("--- "))
    for i in sorted(needed, reverse=True):
        found = failure(seed, needed - {i})
        if found is not None and _same_failure(error, found[0]):
            needed -= {i}
    return needed


def verify(seed: int, only: frozenset[int] | None = None) -> None:
    """Run a sequence; a failure says which operations it takes and how to repeat it."""
    found = failure(seed, only)
    if found is None:
        return
    needed = shortened(seed, *found)
    error, log = failure(seed, needed) or found
    command = f"python -m tests.search.fuzzer --seed {seed} --only {','.join(map(str, sorted(needed)))}"
    operations = "\n".join(line for line in log if not line.startswith("--- "))
    text = f"{type(error).__name__}: {error}\n{operations}\nseed {seed}, again with: {command}"
    raise SequenceFailed(text) from error


def _failing(seeds: Iterator[int] | range) -> list[int]:
    failing = []
    for seed in seeds:
        try:
            verify(seed)
        except SequenceFailed as error:
            failing.append(seed)
            print(error, end="\n\n", flush=True)
    return failing


def main() -> None:
    parser = argparse.ArgumentParser(description="Random sequences of calls on random searches.")
    parser.add_argument("--seed", type=int, default=None, help="of the only sequence")
    parser.add_argument("--only", default=None, help="numbers of operations, with commas")
    parser.add_argument("--sequences", type=int, default=50)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    given = parser.parse_args()
    if given.seed is None:
        failing = _failing(range(given.first, given.first + given.sequences))
        print(f"{given.sequences} sequences, {len(failing)} failed: {failing}")
        sys.exit(bool(failing))
    only = None if given.only is None else frozenset(map(int, given.only.split(",")))
    log: list[str] = []
    try:
        run(given.seed, only, log)
    finally:
        print("\n".join(log))


if __name__ == "__main__":
    main()
