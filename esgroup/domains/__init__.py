"""What a point is: bounds, integers, fixed variables, named parameters, around any strategy over vectors.

`Domain` is the protocol; `Box` and `Named`, the points of a `Space`, are domains.
"""

from esgroup.domains.base import Affine, Arrays, Domain, Limits, Place, Shaped, register
from esgroup.domains.box import Box, Fixed
from esgroup.domains.named import Named
from esgroup.domains.positive import PositiveDefinite

__all__ = [
    "Affine", "Arrays", "Box", "Domain", "Fixed", "Limits", "Named", "Place", "PositiveDefinite", "Shaped", "register",
]  # fmt: skip
