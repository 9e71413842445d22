"""The problem zoo: functions to try searches on. A problem is one function under `@register`."""

from __future__ import annotations

from esgroup_problems.classics import dixon_price, ellipsoid, rosenbrock, sphere
from esgroup_problems.problem import OnPoint, Problem
from esgroup_problems.registry import PROBLEMS, get, register

__all__ = ["PROBLEMS", "OnPoint", "Problem", "dixon_price", "ellipsoid", "get", "register", "rosenbrock", "sphere"]
