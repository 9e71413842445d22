"""When a search ends: rules, their composition, limits and tolerances.

A rule looks at a search and returns the reason to stop as a text, or None. `minimize(..., stop=)` and
`Searcher(..., stop=)` take rules besides those that every search has.
"""

from esgroup.stopping.base import Rule
from esgroup.stopping.budgets import MaxEvals, MaxIters, MaxTime, Target
from esgroup.stopping.tolerances import TolFun, TolX
from esgroup.stopping.values import Stagnation

__all__ = ["MaxEvals", "MaxIters", "MaxTime", "Rule", "Stagnation", "Target", "TolFun", "TolX"]
