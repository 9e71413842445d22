"""Models of a function that a search consults before it evaluates.

`Surrogate` is their interface, `QuadraticSurrogate` is the one behind model="quadratic", and `register` lets searches
with a surrogate of your own be saved.
"""

from esgroup.surrogates.base import Axes, Minimum, Surrogate, register
from esgroup.surrogates.quadratic import QuadraticSurrogate

__all__ = ["Axes", "Minimum", "QuadraticSurrogate", "Surrogate", "register"]
