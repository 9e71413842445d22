"""Which searches have a quadratic model: those that request one, and with "auto" those with few evaluations.

"auto" decides by the arguments alone, never by the clock, so that a search is the same wherever it runs. The time of
evaluations only leads to a remark in the message of a result.
"""

from __future__ import annotations

from typing import Any

from esgroup.groups import Full
from esgroup.options import Model, SearchOptions
from esgroup.strategies.base import Strategy
from esgroup.strategies.in_domain import innermost
from esgroup.strategies.model import ModelSearch, all_real, real_variables, refuse_without_model, vectors
from esgroup.strategies.vector import VectorSearch

# Evaluations per variable that count as few. On the ten bbob functions of the README's table, with up to 20 variables,
# a search with a model reaches 1e-8 within 460, in the median, and within 340 on all but f6: with more than 500 there
# is no need to save them.
FEW = 500
# Most variables for which "auto" uses a model, and one is recommended: the savings were measured up to there. It takes
# 0.5 to 0.8 milliseconds per evaluation.
MOST_COORDINATES = 40
# Seconds between values that make a search slow: a model takes at most a tenth of that even if it saves nothing, and
# on smooth functions it saves two thirds of the evaluations.
SLOW = 0.01

USED = f"A quadratic model was used because max_evals is at most {FEW} evaluations per variable"
LEFT_OUT = "No quadratic model was used: there are only integers and choices, which are searched by ranks"


def assisted(
    plain: Strategy, options: SearchOptions, max_evals: int | None, *, constrained: bool
) -> Strategy:
    """Return the search with a model if it was requested or "auto" chooses it, else the search unchanged.

    "auto" uses a model if `max_evals` allows few evaluations, with the full structure, without constraints, and if the
    search can have one; it does so in every run of a search with restarts, which only begin when a run has ended.

    "quadratic" raises ValueError for what cannot be combined with a model. But without real variables, only integers
    and choices, which a quadratic does not describe, the search has no model, and `note` says so.
    """
    if options.model is None:
        return plain
    if options.model == "auto":
        few = max_evals is not None and max_evals <= FEW * plain.size
        use = few and not constrained and isinstance(plain.traits.structure, Full) and _can_be_assisted(plain)
        return ModelSearch(plain) if use else plain
    numbers = vectors(plain)
    refuse_without_model(options, None if numbers is None else numbers.group)
    return ModelSearch(plain) if real_variables(plain) else plain


def unassisted(strategy: Strategy) -> Strategy:
    """Return the search without its model."""
    return strategy.plain if isinstance(strategy, ModelSearch) else strategy


def has_model(strategy: Strategy) -> bool:
    """Whether a search has a model."""
    return isinstance(strategy, ModelSearch)


def note(model: Model | None, strategy: Strategy) -> str:
    """What was decided for this option, for the message of a result."""
    if model == "auto" and has_model(strategy):
        return USED
    return LEFT_OUT if model == "quadratic" and not has_model(strategy) else ""


def remark(search: Any, *, ended: bool, noisy: bool) -> str:
    """What the message of a result says about models: what was decided, or that one would save evaluations.

    A model is recommended even after a success, because the next search of this kind is as slow.
    """
    interval = search.ledger.clock.interval
    if search.model_note or not ended or noisy or interval is None or interval <= SLOW:
        return str(search.model_note)
    if not search.ranking.by_values or not _can_be_assisted(search.strategy):
        return ""
    time = f"{1e3 * interval:.0f} ms" if interval < 1.0 else f"{interval:,.1f} s"
    return f'Values came every {time}: on smooth functions, model="quadratic" takes about a third of the evaluations'


def _can_be_assisted(strategy: Strategy) -> bool:
    """Whether model="quadratic" would be accepted, and the search is not too large for it."""
    if has_model(strategy) or strategy.size > MOST_COORDINATES:
        return False
    try:
        ModelSearch(strategy)
    except ValueError:
        return False
    return all_real(strategy) and isinstance(innermost(strategy), VectorSearch)
