"""Rankings: what you tell in addition to a value, and which points are better.

`ByValue` uses only values, and `AugmentedLagrangian` adds constraints. `Ranking` is their base class, and `register`
makes one of your own storable in files.
"""

from esgroup.rankings.base import Ranking, Scored, register
from esgroup.rankings.lagrangian import AugmentedLagrangian
from esgroup.rankings.outcomes import Evaluated
from esgroup.rankings.plain import ByValue

__all__ = ["AugmentedLagrangian", "ByValue", "Evaluated", "Ranking", "Scored", "register"]
