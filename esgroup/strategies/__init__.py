"""Search strategies: samples with local coordinates, updates by ranks.

`Strategy` is what every search is made of, `ModelSearch` one that is assisted by a surrogate, and `register` makes one
of your own known to files and to `Searcher`.
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
