"""The problem zoo: functions to test searches on.

A problem is made by one function under `@register`; `get` finds it by name.
"""

from __future__ import annotations

# importing a module registers its problems; `esgroup list` shows them in this order
from esgroup_problems import convex, valleys, separable, multimodal, chains, large, noisy  # isort: skip  # noqa: F401
from esgroup_problems import matrices, covariances, scalars, inference, mixtures  # isort: skip  # noqa: F401
from esgroup_problems import designs, populations, simulators, bbob  # isort: skip  # noqa: F401
from esgroup_problems.convex import ellipsoid, sphere
from esgroup_problems.problem import PROBLEMS, OnPoint, Problem, get, register
from esgroup_problems.valleys import dixon_price, rosenbrock

__all__ = ["PROBLEMS", "OnPoint", "Problem", "dixon_price", "ellipsoid", "get", "register", "rosenbrock", "sphere"]
