"""What can be seen of a search: counts, the best point, the distribution, without changing anything."""

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
    """The attributes of a Searcher that can be read: rules, observers and results know nothing else of it."""

    strategy: Strategy
    state: Any
    ledger: Ledger
    runs: Runs | None

    @property
    def popsize(self) -> int:
        """Values in a generation."""
        return self.strategy.popsize

    @property
    def batch_size(self) -> int:
        """Points that `ask` returns if `max_evals` leaves as many: `popsize`, unless the strategy varies it."""
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
        """The group of the square root A; over other spaces the distribution in a few words."""
        return self.strategy.traits.structure

    @property
    def mean(self) -> Array:
        """The mean of the distribution, as a feasible point: an array; `result.xmean` is as users see points."""
        return self.strategy.mean(self.state).copy()

    @property
    def stds(self) -> Array:
        """Standard deviation of every entry of a point, 0 where it is fixed."""
        return self.strategy.stds(self.state).copy()

    @property
    def labels(self) -> list[str] | None:
        """Names of the entries of `mean` and `stds`, if they have any."""
        return self.strategy.domain.labels

    @property
    def sigma(self) -> float:
        """The overall step size: the geometric mean of the standard deviations of what is searched."""
        return self.strategy.view(self.state).sigma()

    @property
    def axis_ratio(self) -> float:
        """Longest to shortest axis of the distribution; beyond 100 coordinates that of single coordinates."""
        return self.strategy.view(self.state).axis_ratio()

    @property
    def nfev(self) -> int:
        """Evaluations that were told."""
        return self.ledger.nfev

    @property
    def nit(self) -> int:
        """Generations that have ended."""
        strategy, began = self.strategy, self.ledger.began
        own = strategy.view(self.state).generations if strategy.traits.in_parts else None
        return began.generations + (self.ledger.nit - began.nit if own is None else own)

    @property
    def restart(self) -> int:
        """Restarts so far."""
        return self.ledger.run

    @property
    def nfailed(self) -> int:
        """Evaluations that failed: their value was NaN."""
        return self.ledger.nfailed

    @property
    def best_x(self) -> Any:
        """The best point told, None before there is one."""
        best = self.ledger.best_x
        return None if best is None else self.strategy.domain.to_user(best[None])[0]

    @property
    def best_f(self) -> float:
        """The best value told, NaN before there is one."""
        return self.ledger.best_f

    @property
    def ranking(self) -> Ranking:
        """What is told beside values, and which points are better."""
        return self.ledger.ranking

    @property
    def best_outcome(self) -> Array | None:
        """The best value with what was told beside it, None before there is one."""
        return self.ledger.best

    @property
    def constraints(self) -> AugmentedLagrangian | None:
        """What the search knows of its constraints in general: their number, equalities and tolerance."""
        ranking = self.ledger.ranking
        return ranking if isinstance(ranking, AugmentedLagrangian) else None

    @property
    def best_constraints(self) -> Array | None:
        """The constraints of the best point, None without constraints or values."""
        best = self.ledger.best
        return None if best is None or len(best) == 1 else best[1:]

    @property
    def feasible(self) -> bool:
        """Whether the best point fulfills all constraints within their tolerance."""
        return self.ledger.feasible

    @property
    def multipliers(self) -> Array | None:
        """Lagrange multipliers of the constraints, positive where active; of equalities with either sign.

        With restarts they are those of the run that has found the best point.
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
        """Time since the search began, that before `save` included and that between `save` and `load` not."""
        return self.ledger.clock.seconds

    @property
    def noisy(self) -> bool:
        """Whether the values look noisy, or rugged: the best of each generation varies about one level at random."""
        return looks_noisy(self.ledger.record)

    @property
    def result_fields(self) -> dict[str, Any]:
        """What the result of a search over this space has besides, by name: nothing over vectors."""
        return self.strategy.view(self.state).fields()

    record = property(attrgetter("ledger.record"), doc="Best and median values of the generations so far.")
