"""Domains: bounds, integers, fixed variables and named parameters for any strategy over vectors.

`Domain` is the base class; `Box` and `Named`, the points of a `Space`, are domains.
"""

from esgroup.domains.base import Affine, Arrays, Domain, Limits, Place, Shaped, register
from esgroup.domains.box import Box, Fixed
from esgroup.domains.named import Named
from esgroup.domains.positive import PositiveDefinite

__all__ = [
    "Affine", "Arrays", "Box", "Domain", "Fixed", "Limits", "Named", "Place", "PositiveDefinite", "Shaped", "register",
]  # fmt: skip
