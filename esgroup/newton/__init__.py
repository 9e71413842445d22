"""Structured Newton methods: S = B B^T, with B in a group, follows the Hessian from a few products with it."""

from esgroup.newton.method import minimize_newton as minimize_newton
from esgroup.newton.moving import Moving as Moving
from esgroup.newton.schedules import Constant as Constant
from esgroup.newton.schedules import Exponential as Exponential
from esgroup.newton.schedules import Inverse as Inverse
from esgroup.newton.schedules import Linear as Linear
from esgroup.newton.schedules import Schedule as Schedule
