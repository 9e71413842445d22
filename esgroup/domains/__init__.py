"""What a point is: bounds, integers, fixed variables, named parameters, around any strategy over vectors.

`Domain` is the protocol; `Box` and `Named`, the points of a `Space`, are domains.
"""

from esgroup.domains.base import Affine, Arrays, Domain, Fixed, Limits, Place, register
from esgroup.domains.box import Box
from esgroup.domains.named import Named

__all__ = ["Affine", "Arrays", "Box", "Domain", "Fixed", "Limits", "Named", "Place", "register"]
