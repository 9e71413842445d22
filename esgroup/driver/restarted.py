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
from esgroup.running.limits import BUDGETS, TARGET, Limits, budget_reasons, parse_limits
from esgroup.search import tell_input
from esgroup.search.ledger import Mark
from esgroup.search.searcher import Searcher

if TYPE_CHECKING:
    from esgroup.running.result import SearchResult

_LIMITS = (TARGET, *BUDGETS)


class Past(NamedTuple):
    """What the runs that are over came to."""

    restarts: int = 0
    nfev: int = 0
    nit: int = 0
    nfailed: int = 0
    seconds: float = 0.0
    best_f: float = math.nan
    best_x: Array | None = None


class Campaign:
    """One search after another, each told whole generations.

    It shows the counts and the best point of all runs together, and otherwise what its present search shows.
    """

    def __init__(self, first: Searcher, restarts: Restarts | None = None) -> None:
        self.search = first
        self.limits = first.limits
        self.past = Past()
        self.schedule = Schedule(first.popsize)
        self.plan = Plan(first.popsize)
        self.rng = None if restarts is None else _spawned(first.rng)
        self.ended: dict[str, str] = {}  # reasons that are not the search's own
        self.torn: dict[int, float] | None = None  # after an exception: values of the last ask by row, others missing
        self.untold: Mark | None = None  # the ledger before those were told to it
        self._restarts, self._first = restarts, first.strategy

    # ---- all runs together --------------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.search, name)

    @property
    def restart(self) -> int:
        """Restarts so far."""
        return self.past.restarts

    @property
    def nfev(self) -> int:
        """Evaluations of all runs."""
        return self.past.nfev + self.search.nfev

    @property
    def nit(self) -> int:
        """Generations of all runs."""
        return self.past.nit + self.search.nit

    @property
    def nfailed(self) -> int:
        """Failed evaluations of all runs."""
        return self.past.nfailed + self.search.nfailed

    @property
    def seconds(self) -> float:
        """Time of all runs."""
        return self.past.seconds + self.search.seconds

    @property
    def best_f(self) -> float:
        """The best value of all runs."""
        return self.past.best_f if self._past_is_better else self.search.best_f

    @property
    def best_x(self) -> Any:
        """The best point of all runs."""
        best = self._best_point
        return None if best is None else self.search.strategy.to_user(best[None])[0]

    @property
    def _best_point(self) -> Array | None:
        return self.past.best_x if self._past_is_better else self.search.ledger.best_x

    @property
    def _past_is_better(self) -> bool:
        return self.past.best_x is not None and not self.search.best_f < self.past.best_f

    @property
    def result(self) -> SearchResult:
        """Best point, value and counts of all runs, and why the last one stopped."""
        from esgroup.search.result import result

        found = result(self)  # it shows all that a Searcher shows
        found.restarts = self.restart
        if self.restart:
            found.message += f". Restarts: {self.restart}; xmean and stds are those of the last run"
        return found

    # ---- one run after another ----------------------------------------------------------------------------------

    def stop(self) -> dict[str, str]:
        """Why the present run should end: the limits of all runs together, or what its search says."""
        reasons = budget_reasons(self.limits, self.nfev, self.nit, self.seconds, self.best_f)
        reasons |= {name: text for name, text in self.search.stop().items() if name not in _LIMITS}
        if self.plan.max_evals is not None and self.search.nfev >= self.plan.max_evals:
            reasons["small_run"] = f"a run with a small population has used its {self.plan.max_evals:,} evaluations"
        return reasons | self.ended

    def go_on(self, reasons: dict[str, str]) -> bool:
        """Begin the next run; False if there is none."""
        if self._restarts is None or self.rng is None:
            return False
        if not reasons.keys().isdisjoint((*_LIMITS, *self.ended)):
            return False
        planned = self._restarts.next(self.schedule, self.search.nfev, self.rng)
        if planned is None:
            self.ended["restarts"] = f"the restarts end here, after {self.restart} of them"
            return False
        past = Past(self.restart + 1, self.nfev, self.nit, self.nfailed, self.seconds, self.best_f, self._best_point)
        schedule, plan = planned
        strategy = self._first.restarted(plan.popsize, plan.sigma_factor, self.rng)
        limits = _remaining(self.limits, past, plan)
        self.search = Searcher(strategy, rng=_spawned(self.rng), **limits._asdict())
        self.past, self.schedule, self.plan = past, schedule, plan
        return True

    # ---- generations --------------------------------------------------------------------------------------------

    def ask(self) -> Any:
        """The points to evaluate next: a new generation, or those of a torn one that have no value yet."""
        return self.search.ask() if self.torn is None else self._points(self._missing())

    def _points(self, rows: list[int]) -> Any:
        """Points of the last ask, as users see them."""
        return self.search.strategy.to_user(_out(self.search)[rows])

    def tell(self, values: Any) -> None:
        """The values of the points asked last, all of them."""
        if self.torn is not None:
            rows = self._missing()
            whole = self.torn | dict(zip(rows, tell_input.values(values, len(rows)).tolist(), strict=True))
            values = [whole[row] for row in sorted(whole)]
        self.search.tell(values)
        self.torn = self.untold = None

    def rescue(self, arrived: dict[int, Any]) -> None:
        """After an exception: tell the numbers among the values of the points asked last, by their rows."""
        rows, values = self._missing(), dict(self.torn or {})
        for i, value in arrived.items():
            with suppress(ValueError, TypeError):
                values[rows[i]] = float(tell_input.values([value], 1)[0])
        self.torn = values
        self.tell_torn()

    def tell_torn(self) -> None:
        """Tell what is there of a torn generation; `restore` takes it back, so that it can be told as a whole."""
        if not self.torn:
            return
        search, rows = self.search, sorted(self.torn)
        self.untold = search.ledger.mark()
        search.tell(self._points(rows), [self.torn[row] for row in rows])
        if not search.ledger.asked:  # it was all of it
            self.torn = self.untold = None

    def _missing(self) -> list[int]:
        return [row for row in range(len(_out(self.search))) if row not in (self.torn or {})]

    # ---- checkpoints --------------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """All that is not in the search."""
        untold = self.untold
        return {
            "limits": self.limits._asdict(),
            "past": self.past._replace(best_x=_listed(self.past.best_x))._asdict(),
            "schedule": self.schedule._asdict(),
            "plan": self.plan._asdict(),
            "rng": None if self.rng is None else checked.generator_to_json(self.rng),
            "torn": None if self.torn is None else list(self.torn.items()),
            "untold": None if untold is None else untold._replace(best_x=_listed(untold.best_x))._asdict(),
        }

    def restore(self, search: Searcher, saved: Any) -> None:
        """Go on with a search, and with what `to_json` said of the rest; limits that are set replace the saved ones."""
        self.search = search
        limits = search.limits
        if saved is not None:  # otherwise Searcher.save wrote the file
            limits = parse_limits(**saved["limits"])
            self.past = _from_json(Past, saved["past"], search.shape)
            self.schedule = _from_json(Schedule, saved["schedule"])
            self.plan = _from_json(Plan, saved["plan"])
            if (state := checked.optional_entry(saved, "rng", dict)) is not None and self.rng is not None:
                self.rng = checked.generator_from_json(state)
            self._restore_torn(checked.optional_entry(saved, "torn", list), saved["untold"])
        self.limits = limits._replace(**{name: new for name, new in self.limits._asdict().items() if new is not None})
        search.limits = _remaining(self.limits, self.past, self.plan)

    def _restore_torn(self, torn: list[Any] | None, untold: Any) -> None:
        if torn is None:
            return
        points, ledger = _out(self.search), self.search.ledger
        ledger.last = ledger.asked[-1]
        most = len(points) - 1
        self.torn = {checks.whole_number("row", row, most=most): float(value) for row, value in torn}
        if self.torn:
            ledger.rewind(_from_json(Mark, untold, self.search.shape))


def _spawned(rng: np.random.Generator) -> np.random.Generator:
    return rng.spawn(1)[0]


def _out(search: Searcher) -> Array:
    """The points that were asked for last and are not told as a whole."""
    if not search.ledger.asked:
        raise ValueError("there are values of a generation whose points are not known")
    return search.ledger.asked[-1].points


def _listed(x: Array | None) -> Any:
    return None if x is None else x.tolist()


_KINDS = {"seconds": float, "best_f": float, "sigma_factor": float, "small": bool, "best_x": list}  # others are int
_OPTIONAL = ("best_x", "max_evals")


def _from_json(kind: Any, saved: dict[str, Any], shape: tuple[int, ...] = ()) -> Any:
    """A named tuple from what it was as JSON, checked; points have this shape."""
    values: dict[str, Any] = {}
    for name in kind._fields:
        get: Any = checked.optional_entry if name in _OPTIONAL else checked.entry
        values[name] = get(saved, name, _KINDS.get(name, int))
    if values.get("best_x") is not None:
        values["best_x"] = checks.real_array("best_x", values["best_x"], shape)
    return kind(**values)


def _remaining(limits: Limits, past: Past, plan: Plan) -> Limits:
    """The limits of a run after others: never none at all, for a budget that is used up is the campaign's affair."""
    evals, iters, seconds, target = limits
    left = None if evals is None else max(1, evals - past.nfev)
    return Limits(
        min((n for n in (left, plan.max_evals) if n is not None), default=None),
        None if iters is None else max(1, iters - past.nit),
        None if seconds is None else max(1e-9, seconds - past.seconds),
        target,
    )
