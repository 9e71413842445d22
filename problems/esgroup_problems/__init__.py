"""The problem zoo: functions to try searches on. A problem is one function under `@register`."""

from __future__ import annotations

# importing a module registers its problems; `esgroup list` shows them in this order
from esgroup_problems import convex, valleys, separable, multimodal, chains, large, noisy  # isort: skip  # noqa: F401
from esgroup_problems import matrices, covariances, scalars, inference, mixtures  # isort: skip  # noqa: F401
from esgroup_problems import populations, simulators, bbob  # isort: skip  # noqa: F401
from esgroup_problems.convex import ellipsoid, sphere
from esgroup_problems.problem import OnPoint, Problem
from esgroup_problems.registry import PROBLEMS, get, register
from esgroup_problems.valleys import dixon_price, rosenbrock

__all__ = ["PROBLEMS", "OnPoint", "Problem", "dixon_price", "ellipsoid", "get", "register", "rosenbrock", "sphere"]
