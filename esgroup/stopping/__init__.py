"""When a search stops: rules, their composition, limits and tolerances.

A rule looks at a search and returns the reason to stop as a string, or None. `minimize(..., stop=)` and
`Searcher(..., stop=)` take rules in addition to the built-in ones.
"""

from esgroup.stopping.base import Rule
from esgroup.stopping.budgets import MaxEvals, MaxIters, MaxTime, Target
from esgroup.stopping.tolerances import TolFun, TolX
from esgroup.stopping.values import Stagnation

__all__ = ["MaxEvals", "MaxIters", "MaxTime", "Rule", "Stagnation", "Target", "TolFun", "TolX"]
