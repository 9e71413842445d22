"""Checking all rules of a search: limits, the general rules, and those of its strategy and of its user."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from esgroup.stopping.base import Answer
from esgroup.stopping.budgets import budget_reasons
from esgroup.stopping.tolerances import TolFun
from esgroup.stopping.values import NARROW, Failed, Look, Stagnation, short_span, still_improving


class Looked(NamedTuple):
    """A rule and how often to check it."""

    name: str
    every: int  # moves between two checks; the answer holds until the next one; 0: check every time
    look: Callable[..., Answer]
    of_state: bool = False  # whether it looks at the state and the first spread, as a `Criterion` does
    waits_at: float = 0.0  # size of the distribution at which the reason NARROW waits while values improve


def rules_of(strategy: Any) -> tuple[Looked, ...]:
    """Return the rules of every search with this strategy; whatever depends only on sizes is computed here, once."""
    values = [Looked("failed", 0, Failed().look), Looked("tolfun", 0, TolFun(0.0, short_span(strategy)).look)]
    if strategy.traits.patience < math.inf:  # sorting a long history in every generation would be expensive
        values.append(Looked("stagnation", 10, Stagnation().look))
    criteria = (Looked(name, every, look, True, waits_at) for name, every, look, waits_at in strategy.criteria)
    return (*values, *criteria)


def look_at(search: Any) -> dict[str, str]:
    """Return why a Searcher should stop, by name: limits apply to all runs, everything else to the current one.

    User-defined rules wait for the end of the first generation: with restarts, one that always holds would never end.
    """
    found = budget_reasons(search.limits, search)
    strategy, ledger, state, first = search.strategy, search.ledger, search.state, search.first_spread
    nit, looks = ledger.nit - ledger.began.nit, ledger.record.looks
    if search._looked[0] is not strategy:
        search._looked = strategy, rules_of(strategy)
    for name, every, look, of_state, waits_at in search._looked[1]:
        last = looks.get(name) if every else None
        if every and nit - (0 if last is None else last.nit) < every:
            answer = None if last is None else last.reasons
        else:
            answer = look(state, first) if of_state else look(search)
            if every:
                looks[name] = Look(_by_name(name, answer) if answer else {}, nit)
        if answer:
            found |= _by_name(name, answer)
        if NARROW in found:
            text = found.pop(NARROW)
            if not still_improving(ledger.record, strategy.size, strategy.traits.least_batch, waits_at):
                found["tolx"] = text
    for rule in search.rules if nit else ():
        if answer := rule.look(search):
            if not isinstance(answer, str | dict):
                raise TypeError(f"the rule {rule.name!r} must return a string, a dict or None, got {answer!r}")
            found |= _by_name(rule.name, answer)
    return found


def _by_name(name: str, answer: str | dict[str, str]) -> dict[str, str]:
    return answer if isinstance(answer, dict) else {name: answer}
