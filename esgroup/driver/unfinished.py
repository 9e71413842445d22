"""A generation interrupted when only some values are known: they count, and it can be completed later."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any

import numpy as np

from esgroup import checks
from esgroup.checks import Array
from esgroup.files import checked
from esgroup.search.ledger import Mark, PendingPoint
from esgroup.search.searcher import Searcher


class Unfinished:
    """The last ask of a search, while some of its values are known and told, and others missing.

    Values are told when a run is interrupted, so that they count; once the others have arrived, in this run or after a
    resume, the ledger is restored, and the generation is told as a whole, as if nothing had happened.
    """

    def __init__(self, search: Searcher) -> None:
        self.search = search
        self.known: dict[int, list[float]] | None = None  # outcomes of the last ask, by row
        self.before: Mark | None = None  # the ledger before they were told

    @property
    def affordable(self) -> float:
        """How many evaluations `max_evals` leaves."""
        most = self.search.limits.max_evals
        return math.inf if most is None else most - self.search.nfev

    def ask(self, least: int) -> Any:
        """Return the points to evaluate: a new generation, or those of an unfinished one that have no value yet.

        If `affordable` is less, only the first ones are evaluated. The generation is drawn as a whole anyway, so that a
        search continued later with a larger budget behaves as if it had had that budget from the beginning. `least` is
        how many points the workers can use when the search chooses how many are worth evaluating.
        """
        search = self.search
        if self.known is not None:
            return self._points(self._missing())
        search.begin_next_run()
        batch = search.batch_size
        return search.ask(max(batch, least) if search.strategy.traits.in_parts else batch)

    def tell(self, values: Any) -> None:
        """Tell the values of all points that `ask` returned last."""
        search = self.search
        if self.known is None:
            search.tell(values)
            return
        missing = self._missing()
        rows = search.ranking.outcomes(values, None, len(missing)).tolist()
        told = _in_order(self.known | dict(zip(missing, rows, strict=True)))
        if self.before is not None:
            search.ledger.rewind(self.before)
        search.ledger.ask_again()
        search.tell(told[:, 0], constraints=told[:, 1:])
        self.known = self.before = None

    def salvage(self, arrived: dict[int, Any]) -> None:
        """After an exception, tell the values that are numbers; `arrived` has them by row of the last `ask`."""
        rows, known = self._missing(), dict(self.known or {})
        fresh = {}
        for i, value in arrived.items():
            with suppress(ValueError, TypeError):
                fresh[rows[i]] = self.search.ranking.outcomes([value], None, 1)[0].tolist()
        if not fresh:
            self.known = known
            return
        ledger, told = self.search.ledger, _in_order(fresh)
        self.before, nit = self.before or ledger.mark(), ledger.nit
        self.known = known | fresh
        self.search.tell(self._points(sorted(fresh)), told[:, 0], constraints=told[:, 1:])
        if ledger.nit > nit:  # the generation was complete
            self.known = self.before = None

    def points_out(self) -> list[tuple[Any, PendingPoint]]:
        """Return the pending points, as users see them, with their places; known values are not told again."""
        self.known = self.before = None
        search = self.search
        return [(search.strategy.domain.to_user(place.point[None])[0], place) for place in search.ledger.out]

    def _points(self, rows: list[int]) -> Any:
        """Points of the last ask, as users see them."""
        return self.search.strategy.domain.to_user(self._asked[rows])

    def _missing(self) -> list[int]:
        """The rows of the last ask that have no value yet."""
        return [row for row in range(len(self._asked)) if row not in (self.known or {})]

    @property
    def _asked(self) -> Array:
        """The points of the last ask, some of which have no value yet."""
        if not self.search.ledger.asked:
            raise ValueError("the file has values of a generation, but not its points")
        return self.search.ledger.asked[-1].drawn.points

    # ---- checkpoints --------------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any] | None:
        """Return what the file of the search does not hold."""
        if self.known is None:
            return None
        before = None if self.before is None else checked.listed(self.before._asdict())
        return {"known": list(self.known.items()), "before": before}

    def restore(self, search: Searcher, saved: Any) -> None:
        """Continue with a saved search and the output of `to_json`."""
        self.search = search
        if saved is None:
            return
        most, wide = len(self._asked) - 1, 1 + search.ranking.columns
        known = checked.entry(saved, "known", list)
        self.known = {}
        for row, outcome in known:
            row = checks.whole_number("row", row, most=most)
            self.known[row] = checks.real_array("outcome", outcome, (wide,), finite=False).tolist()
        before = checked.optional_entry(saved, "before", dict)
        self.before = None if before is None else _mark(before, search.shape, wide)


def _in_order(known: dict[int, list[float]]) -> Array:
    """The outcomes of rows, in the order of these."""
    return np.array([known[row] for row in sorted(known)])


def _mark(saved: dict[str, Any], shape: tuple[int, ...], wide: int) -> Mark:
    """Rebuild a mark of the ledger from JSON and check it."""
    x, best = (checked.optional_entry(saved, name, list) for name in ("best_x", "best"))
    return Mark(
        **{name: checked.entry(saved, name, int) for name in ("nfev", "nfailed", "pool", "ranked")},
        best_x=None if x is None else checks.real_array("best_x", x, shape),
        best=None if best is None else checks.real_array("best", best, (wide,)),
    )
