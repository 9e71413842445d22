"""Models of a function that a search consults before it evaluates: surrogates.

`Surrogate` is what a search asks of one, `QuadraticSurrogate` the one of model="quadratic", and `register` makes one of
your own known to files.
"""

from esgroup.surrogates.base import Axes, Minimum, Surrogate, register
from esgroup.surrogates.quadratic import QuadraticSurrogate

__all__ = ["Axes", "Minimum", "QuadraticSurrogate", "Surrogate", "register"]
