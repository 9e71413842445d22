"""Named parameters: what to search, and the conversion between dicts and rows of numbers.

    >>> from esgroup import Choice, Integer, Real, Space
    >>> space = Space({
    ...     "C": Real(1e-3, 1e3, log=True),
    ...     "kernel": Choice("rbf", "linear"),
    ...     "gamma": Real(1e-4, 10.0, log=True, when={"kernel": "rbf"}),
    ... })

A row has one number for every entry of every parameter, in the order of the space: a number as users see it (C itself,
not its logarithm), an angle in [0, 2 pi), or the index of an option of a choice. A dict and its row therefore determine
each other bit for bit. If a parameter is inactive, the dict has no entry for it and the row has the parameter's start.

The search works in coordinates u: the logarithm of a number with log=True, an angle that is not wrapped, otherwise the
number itself. `Columns` holds them for all numbers of a space at once.
"""

from esgroup.space.named import Space as Space
from esgroup.space.parameters import Angle as Angle
from esgroup.space.parameters import Choice as Choice
from esgroup.space.parameters import Integer as Integer
from esgroup.space.parameters import Real as Real
