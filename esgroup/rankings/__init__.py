"""What is better: values as they are, with constraints an augmented Lagrangian, or a ranking of your own."""

from esgroup.rankings.base import Ranking, Scored, register
from esgroup.rankings.lagrangian import AugmentedLagrangian
from esgroup.rankings.outcomes import Evaluated
from esgroup.rankings.plain import ByValue

__all__ = ["AugmentedLagrangian", "ByValue", "Evaluated", "Ranking", "Scored", "register"]
