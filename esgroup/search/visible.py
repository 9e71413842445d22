"""The readable attributes of a search: counts, the best point, the distribution."""

from __future__ import annotations

import math
from operator import attrgetter
from typing import Any

from esgroup.checks import Array
from esgroup.rankings import AugmentedLagrangian, Ranking
from esgroup.search.ledger import Ledger
from esgroup.search.runs import Runs
from esgroup.stopping.values import looks_noisy
from esgroup.strategies.base import Strategy


class VisibleSearch:
    """The readable attributes of a Searcher; rules, observers and results use nothing else."""

    strategy: Strategy
    state: Any
    ledger: Ledger
    runs: Runs | None

    @property
    def popsize(self) -> int:
        """Values per generation."""
        return self.strategy.popsize

    @property
    def batch_size(self) -> int:
        """Points that `ask` returns if `max_evals` allows: `popsize`, unless the strategy varies it."""
        strategy = self.strategy
        batch = strategy.view(self.state).batch if strategy.traits.in_parts else None
        return strategy.popsize if batch is None else batch

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one point."""
        return self.strategy.shape

    @property
    def dim(self) -> int:
        """Numbers in a point."""
        return math.prod(self.strategy.shape)

    @property
    def structure(self) -> Any:
        """The group of the square root A; over other spaces a short description of the distribution."""
        return self.strategy.traits.structure

    @property
    def mean(self) -> Array:
        """The mean of the distribution as a feasible point, an array; `result.xmean` has the form that users see."""
        return self.strategy.mean(self.state).copy()

    @property
    def stds(self) -> Array:
        """Standard deviation of every entry of a point, 0 where it is fixed."""
        return self.strategy.stds(self.state).copy()

    @property
    def labels(self) -> list[str] | None:
        """Names of the entries of `mean` and `stds`, or None."""
        return self.strategy.domain.labels

    @property
    def sigma(self) -> float:
        """The overall step size: the geometric mean of the standard deviations of the searched variables."""
        return self.strategy.view(self.state).sigma()

    @property
    def axis_ratio(self) -> float:
        """Ratio of the longest to the shortest axis of the distribution; beyond 100 variables, of single variables."""
        return self.strategy.view(self.state).axis_ratio()

    @property
    def nfev(self) -> int:
        """Evaluations told so far."""
        return self.ledger.nfev

    @property
    def nit(self) -> int:
        """Completed generations."""
        strategy, began = self.strategy, self.ledger.began
        own = strategy.view(self.state).generations if strategy.traits.in_parts else None
        return began.generations + (self.ledger.nit - began.nit if own is None else own)

    @property
    def restart(self) -> int:
        """Restarts so far."""
        return self.ledger.run

    @property
    def nfailed(self) -> int:
        """Failed evaluations, whose value was NaN."""
        return self.ledger.nfailed

    @property
    def best_x(self) -> Any:
        """The best point so far, or None."""
        best = self.ledger.best_x
        return None if best is None else self.strategy.domain.to_user(best[None])[0]

    @property
    def best_f(self) -> float:
        """The best value so far, or NaN."""
        return self.ledger.best_f

    @property
    def ranking(self) -> Ranking:
        """What is told in addition to values, and which points are better."""
        return self.ledger.ranking

    @property
    def best_outcome(self) -> Array | None:
        """The best value and what was told with it, or None."""
        return self.ledger.best

    @property
    def constraints(self) -> AugmentedLagrangian | None:
        """The constraints of the search: their number, equalities and tolerance; None without constraints."""
        ranking = self.ledger.ranking
        return ranking if isinstance(ranking, AugmentedLagrangian) else None

    @property
    def best_constraints(self) -> Array | None:
        """The constraints of the best point, None without constraints or values."""
        best = self.ledger.best
        return None if best is None or len(best) == 1 else best[1:]

    @property
    def feasible(self) -> bool:
        """Whether the best point satisfies all constraints within their tolerance."""
        return self.ledger.feasible

    @property
    def multipliers(self) -> Array | None:
        """Lagrange multipliers of the constraints, positive where active; either sign for equalities.

        With restarts they are from the run that found the best point.
        """
        ledger, runs = self.ledger, self.runs
        if runs is not None and runs.found_best(ledger):
            return runs.multipliers
        return ledger.ranking.multipliers(ledger.standing)

    @property
    def generation_best(self) -> float:
        """The best value of the last generation, or of the last part of one; NaN if all of it failed."""
        record = self.ledger.record
        return record.best[-1] if record.best and not record.failed_in_a_row else math.nan

    @property
    def seconds(self) -> float:
        """Seconds since the search began, not counting the time between `save` and `load`."""
        return self.ledger.clock.seconds

    @property
    def noisy(self) -> bool:
        """Whether the function looks noisy or rugged: the best values vary at random around one level."""
        return looks_noisy(self.ledger.record)

    @property
    def result_fields(self) -> dict[str, Any]:
        """Additional fields of the result of a search over this space, by name: none over vectors."""
        return self.strategy.view(self.state).fields()

    record = property(attrgetter("ledger.record"), doc="Best and median values of the generations so far.")
