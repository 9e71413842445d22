"""One search after another under common limits."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from esgroup import checks
from esgroup.checks import Array
from esgroup.files import checked
from esgroup.restarts import Plan, Restarts, Schedule
from esgroup.search.ledger import Ledger, Mark
from esgroup.search.searcher import Searcher
from esgroup.stopping.budgets import BUDGETS, Limits, budget_reasons, parse_limits
from esgroup.stopping.looking import look_at
from esgroup.strategies.base import Strategy
from esgroup.strategies.in_domain import elsewhere

if TYPE_CHECKING:
    from esgroup.running.result import SearchResult

# Evaluations for each variable after which no further run begins without a budget: a usual budget on bbob. Restarts
# have no end of their own within reach: BIPOP made 788,157 evaluations and 53 restarts on a function of 12 variables
# that its first run had solved, and was not at its end.
_WITHOUT_BUDGET = 10_000
_PLACES = 1000  # that are tried for one that fulfils what has keep_feasible=True, before there is no other run


class Past(NamedTuple):
    """Totals of the finished runs: counts, time and the best point."""

    restarts: int = 0
    nfev: int = 0
    nit: int = 0
    nfailed: int = 0
    seconds: float = 0.0
    best_x: Array | None = None
    best: Array | None = None  # its value, with what was told beside it
    feasible: bool = True
    multipliers: Array | None = None  # at the end of the run that has found it

    @property
    def best_f(self) -> float:
        """The value of the best point."""
        return math.nan if self.best is None else float(self.best[0])


class RestartedSearch:
    """A search that may be restarted; each run receives the values of whole generations.

    Counts and the best point are those of all runs together; every other attribute is that of the current search.
    """

    def __init__(self, first: Searcher, restarts: Restarts | None = None) -> None:
        self.search = first
        self.limits = first.limits
        self.past = Past()
        self.schedule = Schedule(first.popsize)
        self.plan = Plan(first.popsize)
        self.rng = None if restarts is None else first.rng.spawn(1)[0]
        self.other_reasons: dict[str, str] = {}  # why to stop, apart from limits and the search's own criteria
        self.partial: dict[int, list[float]] | None = None  # after an exception: known outcomes of the last ask, by row
        self.undo: Mark | None = None  # the ledger before it received them
        self.least_batch = 1  # workers that wait for points, where the search says how many are worth evaluating
        self._restarts, self._first = restarts, first.strategy

    # ---- all runs together --------------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.search, name)

    @property
    def restart(self) -> int:
        """Number of restarts so far."""
        return self.past.restarts

    @property
    def nfev(self) -> int:
        """Number of evaluations in all runs."""
        waiting = len(self.partial) if self.partial and self.undo is None else 0
        return self.past.nfev + self.search.nfev + waiting

    @property
    def nit(self) -> int:
        """Number of generations in all runs."""
        return self.past.nit + self.search.nit

    @property
    def nfailed(self) -> int:
        """Number of failed evaluations in all runs."""
        return self.past.nfailed + self.search.nfailed

    @property
    def seconds(self) -> float:
        """Running time of all runs in seconds."""
        return self.past.seconds + self.search.seconds

    @property
    def best_f(self) -> float:
        """Best value of all runs."""
        return self._books.best_f

    @property
    def best_x(self) -> Any:
        """Best point of all runs, as users see it; None before the first value."""
        best = self._books.best_x
        return None if best is None else self.search.strategy.domain.to_user(best[None])[0]

    @property
    def best_outcome(self) -> Array | None:
        """Best value of all runs with what was told beside it, None before the first value."""
        return self._books.best

    @property
    def _books(self) -> Past | Ledger:
        """Those of the runs that have found the best point: the past ones, or the present one."""
        past, ledger = self.past, self.search.ledger
        if past.best is None or (ledger.best is not None and ledger.ranking.best(ledger.best[None], past.best) == 0):
            return ledger
        return past

    @property
    def best_constraints(self) -> Array | None:
        """Constraints of the best point of all runs, None if there are none."""
        best = self.best_outcome
        return None if best is None or len(best) == 1 else best[1:]

    @property
    def multipliers(self) -> Array | None:
        """Lagrange multipliers of the run that has found the best point, None without constraints."""
        past = self.past.multipliers if self._books is self.past else None
        return self.search.multipliers if past is None else past

    @property
    def feasible(self) -> bool:
        """Whether the best point of all runs fulfils all constraints."""
        return self._books.feasible

    @property
    def result(self) -> SearchResult:
        """Best point, value and counts of all runs, and why the last run stopped."""
        from esgroup.search.result import result

        found = result(self)  # it has every attribute of a Searcher
        found.restarts = self.restart
        if self.restart:
            found.message += f". Restarts: {self.restart}; xmean and stds are those of the last run"
        return found

    # ---- one run after another ----------------------------------------------------------------------------------

    def stop(self) -> dict[str, str]:
        """Return the reasons to end the current run: limits of all runs together and criteria of the search."""
        found = look_at(self.search, self)
        if self.plan.max_evals is not None and self.search.nfev >= self.plan.max_evals:
            found["small_run"] = f"a run with a small population has used its {self.plan.max_evals:,} evaluations"
        return found | self.other_reasons

    def begin_next_run(self, reasons: dict[str, str]) -> bool:
        """Begin the next run after one that stopped for these reasons; return False if there is none."""
        if self._restarts is None or self.rng is None:
            return False
        if not reasons.keys().isdisjoint(self.other_reasons) or budget_reasons(self.limits, self):
            return False
        unlimited = all(getattr(self.limits, name) is None for name in BUDGETS)
        if unlimited and self.nfev >= _WITHOUT_BUDGET * self._first.size:
            enough = f"no further run begins after {_WITHOUT_BUDGET:,} evaluations for each variable without a budget"
            self.other_reasons["restarts"] = f"{enough}: set max_evals for a longer search"
            return False
        planned = self._restarts.next(self.schedule, self.search.nfev, self.rng)
        if planned is None:
            self.other_reasons["restarts"] = f"the restart strategy ended the search after {self.restart} restarts"
            return False
        books, totals = self._books, (self.nfev, self.nit, self.nfailed, self.seconds)
        past = Past(self.restart + 1, *totals, books.best_x, books.best, books.feasible, self.multipliers)
        schedule, plan = planned
        accepts, ranking, note = self.search.accepts, self.search.ranking, self.search.model_note
        stop = self.search.rules
        for _ in range(_PLACES):
            strategy = elsewhere(self._first, plan.popsize, plan.sigma_factor, self.rng)
            if strategy is None or accepts is None or accepts(_start_of(strategy)):
                break
        else:
            self.other_reasons["restarts"] = "no other place was found that fulfils what has keep_feasible=True"
            return False
        if strategy is None:
            self.other_reasons["restarts"] = "the strategy knows no other place to begin at"
            return False
        limits = _remaining(self.limits, past)
        self.search = Searcher(strategy, constraints=ranking, rng=self.rng.spawn(1)[0], stop=stop, **limits._asdict())
        self.search.accepts, self.search.model_note = accepts, note
        self.past, self.schedule, self.plan = past, schedule, plan
        return True

    # ---- generations --------------------------------------------------------------------------------------------

    def ask(self) -> Any:
        """Return the points to evaluate: a new generation, or those of a partial generation that have no value yet.

        If `affordable` is less, only the first ones are to be evaluated. The generation is drawn as a whole all the
        same: if the search continues later with a larger budget, it continues as if it had had it from the beginning.
        """
        if self.partial is not None:
            return self._points(self._missing())
        batch = self.search.batch_size
        return self.search.ask(max(batch, self.least_batch) if self.search.strategy.notes_asks else batch)

    @property
    def affordable(self) -> float:
        """How many evaluations `max_evals` leaves."""
        return math.inf if self.limits.max_evals is None else self.limits.max_evals - self.nfev

    def _points(self, rows: list[int]) -> Any:
        """Return points of the last ask, as users see them."""
        return self.search.strategy.domain.to_user(_outstanding_points(self.search)[rows])

    def tell(self, values: Any) -> None:
        """Pass on the values of all points that `ask` returned last."""
        if self.partial is None:
            self.search.tell(values)
            return
        missing = self._missing()
        rows = self.search.ranking.outcomes(values, None, len(missing)).tolist()
        told = _in_order(self.partial | dict(zip(missing, rows, strict=True)))
        self.search.tell(told[:, 0], constraints=told[:, 1:])
        self.partial = self.undo = None

    def salvage(self, arrived: dict[int, Any]) -> None:
        """After an exception, pass on the values that are numbers; `arrived` has them by row of the last `ask`."""
        rows, values = self._missing(), dict(self.partial or {})
        for i, value in arrived.items():
            with suppress(ValueError, TypeError):
                values[rows[i]] = self.search.ranking.outcomes([value], None, 1)[0].tolist()
        self.partial = values
        self.tell_partial()

    def tell_partial(self) -> None:
        """Pass on the values of a partial generation; `restore` undoes this, so that it can be completed."""
        if not self.partial or self.undo is not None:
            return
        ledger, told = self.search.ledger, _in_order(self.partial)
        self.undo, nit = ledger.mark(), ledger.nit
        self.search.tell(self._points(sorted(self.partial)), told[:, 0], constraints=told[:, 1:])
        if ledger.nit > nit:  # the generation was complete
            self.partial = self.undo = None

    def points_out(self) -> list[Any]:
        """Return the points that are out, as users see them, after passing on the values of a partial generation."""
        self.tell_partial()
        self.partial = self.undo = None
        search = self.search
        return [search.strategy.domain.to_user(place.point[None])[0] for place in search.ledger.out]

    def tell_one(self, x: Any, value: Any, *, current: bool) -> None:
        """Pass on the value of a point; that of an earlier run counts, but does not move the present one."""
        if current and not self.search.ranking.columns:
            self.search.tell(x if type(x) is np.ndarray else [x], np.array([value]))  # arrays need fewer checks
            return
        if current:
            self.search.tell([x], [value])
            return
        past, ranking = self.past, self.search.ranking
        told = ranking.outcomes([value], None, 1)
        past = past._replace(nfev=past.nfev + 1, nfailed=past.nfailed + int(np.isnan(told[0, 0])))
        if ranking.best(told, past.best) is not None:
            best_x, feasible = self.search.strategy.domain.from_user("x", [x])[0], bool(ranking.feasible(told)[0])
            past = past._replace(best_x=best_x, best=told[0], feasible=feasible)
        self.past = past
        self.search.limits = _remaining(self.limits, past)

    def _missing(self) -> list[int]:
        """Return the rows of the last ask that have no value yet."""
        return [row for row in range(len(_outstanding_points(self.search))) if row not in (self.partial or {})]

    # ---- checkpoints --------------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """Return everything that is not in the file of the search."""
        undo = self.undo if self.undo or not self.partial else self.search.ledger.mark()  # they are not told yet
        return {
            "limits": self.limits._asdict(),
            "past": _as_json(self.past),
            "schedule": self.schedule._asdict(),
            "plan": self.plan._asdict(),
            "rng": None if self.rng is None else checked.generator_to_json(self.rng),
            "partial": None if self.partial is None else list(self.partial.items()),
            "undo": None if undo is None else _as_json(undo),
        }

    def restore(self, search: Searcher, saved: Any) -> None:
        """Continue from a saved search and the output of `to_json`; limits that are set replace the saved ones."""
        search.rules, self.search = self.search.rules, search
        limits = search.limits
        if saved is not None:  # otherwise Searcher.save wrote the file
            limits = parse_limits(**saved["limits"])
            self.past = _from_json(Past, saved["past"], search.shape)
            self.schedule = _from_json(Schedule, saved["schedule"])
            self.plan = _from_json(Plan, saved["plan"])
            if (state := checked.optional_entry(saved, "rng", dict)) is not None and self.rng is not None:
                self.rng = checked.generator_from_json(state)
            self._restore_partial(checked.optional_entry(saved, "partial", list), saved["undo"])
        self.limits = limits._replace(**{name: new for name, new in self.limits._asdict().items() if new is not None})
        search.limits = _remaining(self.limits, self.past)

    def _restore_partial(self, partial: list[Any] | None, undo: Any) -> None:
        if partial is None:
            return
        points, ledger = _outstanding_points(self.search), self.search.ledger
        ledger.last = ledger.asked[-1]
        ledger.last.nit, ledger.last.out = ledger.nit, set(range(len(points)))  # its points are not late
        most, wide = len(points) - 1, 1 + self.search.ranking.columns
        rows = [(checks.whole_number("row", row, most=most), _row(outcome, wide)) for row, outcome in partial]
        self.partial = dict(rows)
        if self.partial:
            ledger.rewind(_from_json(Mark, undo, self.search.shape))


def _outstanding_points(search: Searcher) -> Array:
    """Return the points of the last ask, some of which have no value yet."""
    if not search.ledger.asked:
        raise ValueError("the file has values of a generation, but not its points")
    return search.ledger.asked[-1].drawn.points


def _start_of(strategy: Strategy) -> Any:
    """Return the point at which a strategy begins, as users see it."""
    return strategy.domain.to_user(strategy.mean(strategy.start())[None])[0]


def _in_order(partial: dict[int, list[float]]) -> Array:
    """The outcomes of rows, in the order of these."""
    return np.array([partial[row] for row in sorted(partial)])


def _row(outcome: list[float], wide: int) -> list[float]:
    """Check a stored outcome: a value and what was told beside it."""
    if len(outcome) != wide:
        raise ValueError(f"an outcome must have {wide} numbers, got {len(outcome)}")
    return [float(number) for number in outcome]


def _as_json(kept: Past | Mark) -> dict[str, Any]:
    entries = kept._asdict()
    return entries | {name: one.tolist() for name, one in entries.items() if isinstance(one, np.ndarray)}


# types of the stored fields; those that are not listed are int
_KINDS = {
    "seconds": float,
    "sigma_factor": float,
    "small": bool,
    "feasible": bool,
    "best_x": list,
    "best": list,
    "multipliers": list,
}
_OPTIONAL = ("best_x", "best", "multipliers", "max_evals")


def _from_json(kind: Any, saved: dict[str, Any], shape: tuple[int, ...] = ()) -> Any:
    """Rebuild a named tuple from JSON and check it; `shape` is that of a point."""
    values: dict[str, Any] = {}
    for name in kind._fields:
        get: Any = checked.optional_entry if name in _OPTIONAL else checked.entry
        values[name] = get(saved, name, _KINDS.get(name, int))
    if values.get("best_x") is not None:
        values["best_x"] = checks.real_array("best_x", values["best_x"], shape)
    for name in ("best", "multipliers"):
        if values.get(name) is not None:
            values[name] = checks.real_array(name, values[name], (None,))
    return kind(**values)


def _remaining(limits: Limits, past: Past) -> Limits:
    """Return the limits of the current run: what others left, at least a little, because `stop` checks the totals."""
    evals, iters, seconds, target = limits
    return Limits(
        None if evals is None else max(1, evals - past.nfev),
        None if iters is None else max(1, iters - past.nit),
        None if seconds is None else max(1e-9, seconds - past.seconds),
        target,
    )
