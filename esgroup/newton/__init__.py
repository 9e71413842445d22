"""Structured Newton methods: S = B B^T, with B in a group, follows the Hessian from a few products with it.

`minimize_newton` is the method, `Moving` the structure that needs no knowledge of the function; the other classes are
schedules of the rate, which derive from `RateSchedule` (also called `Schedule`).
"""

from esgroup.newton.method import minimize_newton as minimize_newton
from esgroup.newton.moving import Moving as Moving
from esgroup.newton.steps import Constant as Constant
from esgroup.newton.steps import Exponential as Exponential
from esgroup.newton.steps import Inverse as Inverse
from esgroup.newton.steps import Linear as Linear
from esgroup.newton.steps import RateSchedule as RateSchedule

Schedule = RateSchedule
