"""A generation of a search with constraints: new multipliers, scores to rank by, and a point to try in the next one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from esgroup.checks import Array
from esgroup.search.ledger import Ledger, tags_of
from esgroup.strategies.base import INNER, Drawn, Indices, Strategy

# Generations from one inner point to the next: with 2, 4 and 8, searches on bbob-constrained (f1, 3, 6, 8, 16, 28, 31,
# 42, instances 1-3, 5 and 10 coordinates) take 1.01, 1 and 1.06 as many evaluations.
_INNER_EVERY = 4
_LEAST_POINTS = 4  # of which one may be an inner point: fewer samples cannot spare one


def scores(ledger: Ledger, strategy: Strategy, state: Any, values: Array, tags: Indices | None) -> Array:
    """Return the numbers (n,) by which a generation is ranked, from its rows of values and constraints (n, 1 + m).

    Before that, multipliers are computed from all evaluations that the ledger remembers, in the coordinates of the
    distribution from which the generation was drawn; now and then a point that they recommend is noted in the ledger.
    """
    rule, before = ledger.rule, ledger.lagrangian
    if rule is None or before is None:
        raise RuntimeError("a search without constraints is ranked by its values")
    after, models = rule.updated(before, *strategy.model_coordinates(state, before.points), strategy.popsize)
    if tags is not None and (inner := (tags == INNER) & ~np.isnan(values[:, 0])).any():
        after = rule.with_margin(after, values[inner, 1:])
    ledger.lagrangian, ledger.inner = after, None
    if ledger.nit % _INNER_EVERY == 0 and strategy.popsize >= _LEAST_POINTS:
        step = rule.inner_step(after, models)
        ledger.inner = None if step is None else strategy.at(state, step)
    return rule.scores(after, values)


def best_value(ledger: Ledger, values: Array) -> float:
    """Return the least value of the feasible points of a generation, infinite if there are none.

    Scores are no measure of success from one generation to another: they change with multipliers and penalties.
    """
    if ledger.rule is None:
        raise RuntimeError("a search without constraints has no feasible points")
    feasible = (ledger.rule.violation(values[:, 1:]) == 0.0) & ~np.isnan(values[:, 0])
    return float(values[feasible, 0].min(initial=math.inf))


def with_inner_point(drawn: Drawn, point: Array | None) -> Drawn:
    """Return samples with an inner point, if there is one, in place of the last that no device has marked.

    It counts like any other point, but has a middle rank in the update, whose coordinates stay those of the sample.
    """
    if point is None or len(drawn.points) < _LEAST_POINTS:
        return drawn
    tags = tags_of(drawn)
    unmarked = np.flatnonzero(tags == 0)
    if unmarked.size:
        drawn.points[unmarked[-1]], tags[unmarked[-1]] = point, INNER
    return drawn._replace(tags=tags)
