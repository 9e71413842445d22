"""Rankings: what is told beside a value and which points are better.

`ByValue` takes values as they are, `AugmentedLagrangian` has constraints beside them; `Ranking` is what both are, and
`register` makes one of your own known to files.
"""

from esgroup.rankings.base import Ranking, Scored, register
from esgroup.rankings.lagrangian import AugmentedLagrangian
from esgroup.rankings.outcomes import Evaluated
from esgroup.rankings.plain import ByValue

__all__ = ["AugmentedLagrangian", "ByValue", "Evaluated", "Ranking", "Scored", "register"]
