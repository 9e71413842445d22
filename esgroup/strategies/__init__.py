"""Search strategies: samples with local coordinates, updates by ranks.

`Strategy` is what every search is made of, `ModelSearch` one that is assisted by a surrogate, and `register` makes one
of your own known to files and to `Searcher`.
"""

from esgroup.strategies.base import Criterion, Drawn, Strategy, Told
from esgroup.strategies.in_domain import Within, within
from esgroup.strategies.model import ModelSearch
from esgroup.strategies.registry import register

__all__ = ["Criterion", "Drawn", "ModelSearch", "Strategy", "Told", "Within", "register", "within"]
