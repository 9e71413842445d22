"""A search as the run loop sees it, one generation after another."""

from __future__ import annotations

from abc import abstractmethod
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from esgroup.driver.constraints import Constraints
from esgroup.driver.evaluate import Evaluation
from esgroup.driver.unfinished import Unfinished
from esgroup.running.interrupts import Interrupts
from esgroup.running.loop import Run
from esgroup.search.searcher import Searcher

if TYPE_CHECKING:
    from esgroup.running.result import SearchResult


class SearchRun(Run["SearchResult"]):
    """A search with its restarts; `Generations` and `Asynchronous` define the order of evaluations.

    `stack` closes the worker pool.
    """

    def __init__(
        self, evaluation: Evaluation, unfinished: Unfinished, constrained: Constraints, stack: ExitStack
    ) -> None:
        self.interrupts, self.search, self.unfinished = Interrupts(), unfinished.search, unfinished
        self.evaluation, self.failures, self.constrained = evaluation, evaluation.failures, constrained
        self.prepare(stack)

    @abstractmethod
    def prepare(self, stack: ExitStack) -> None:
        """Prepare the evaluation of points, until the stack is closed."""

    @property
    def view(self) -> Searcher:
        """The search."""
        return self.search

    def stop_for(self, name: str, text: str) -> None:
        """Note an external reason to stop."""
        self.search.noted[name] = text

    def result(self) -> SearchResult:
        """Return the result so far."""
        found, failures = self.search.result, self.failures
        self.constrained.present(found)
        if failures.last and "failures" not in found.stop:
            found.message += f". The last failure: {failures.last}"
        return found


class Generations(SearchRun):
    """A search by generations."""

    def prepare(self, stack: ExitStack) -> None:
        """Prepare the evaluation of generations."""
        timed = self.search.limits.max_time is not None
        self._evaluate = self.evaluation.generations(stack, timed=timed)
        self._should_stop = self._has_to_stop if timed or self.failures.most is not None else None

    def _has_to_stop(self) -> bool:
        """Whether no further evaluation may begin."""
        max_time = self.search.limits.max_time
        return bool(self.failures.too_many) or (max_time is not None and self.search.seconds >= max_time)

    def goes_on(self) -> bool:
        """Return whether there is no reason to stop.

        A generation that was interrupted is completed although its values reach the target: so it would have been.
        """
        reasons = self.search.stop()
        return not (reasons if self.unfinished.known is None else reasons.keys() - {"target"})

    def step(self) -> bool:
        """Evaluate a generation, or the part that the limits allow."""
        unfinished, arrived = self.unfinished, dict[int, Any]()
        X = unfinished.ask(self.evaluation.least_batch)
        whole = len(X)
        if whole > unfinished.affordable:
            X = X[: int(unfinished.affordable)]
        try:
            with self.interrupts.allowed:
                self._evaluate(X, arrived, self._should_stop)
            if len(arrived) == whole:
                unfinished.tell(list(map(arrived.__getitem__, range(whole))))
            else:
                unfinished.salvage(arrived)
        except BaseException:
            unfinished.salvage(arrived)
            raise
        if self.failures.too_many:
            self.stop_for("failures", self.failures.too_many)
        return True
