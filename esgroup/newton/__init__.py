"""Structured Newton methods: S = B B^T, with B in a group, tracks the Hessian from a few products with it.

`minimize_newton` is the method and `NewtonSettings` holds its options for `esgroup.minimize`. `Moving` is the structure
that needs no knowledge of the function; the other classes are rate schedules, derived from `RateSchedule`.
"""

from esgroup.newton.method import minimize_newton as minimize_newton
from esgroup.newton.moving import Moving as Moving
from esgroup.newton.options import NewtonSettings as NewtonSettings
from esgroup.newton.steps import Constant as Constant
from esgroup.newton.steps import Exponential as Exponential
from esgroup.newton.steps import Inverse as Inverse
from esgroup.newton.steps import Linear as Linear
from esgroup.newton.steps import RateSchedule as RateSchedule
