"""Search strategies: samples with local coordinates, updates by ranks.

`Strategy` is their base class, `ModelSearch` is assisted by a surrogate, and `register` makes a strategy of your own
known to `Searcher` and to saved searches.
"""

from esgroup.strategies.base import Proposed, Ranked, Relocation, StateView, Strategy, Traits
from esgroup.strategies.coordinates import Coordinates
from esgroup.strategies.criteria import Criterion
from esgroup.strategies.in_domain import Within, within
from esgroup.strategies.model import ModelSearch
from esgroup.strategies.registry import register

__all__ = [
    "Coordinates",
    "Criterion",
    "ModelSearch",
    "Proposed",
    "Ranked",
    "Relocation",
    "StateView",
    "Strategy",
    "Traits",
    "Within",
    "register",
    "within",
]
