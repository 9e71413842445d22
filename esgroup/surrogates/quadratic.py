"""Several quadratic models of different sizes, of which the one with the best predictions is used.

Few points determine only few features: G = g I (SPHERE) takes n + 2 points, a diagonal G (AXIAL) 2 n + 1. The G
of the group is fitted to a long memory (LONG), for functions that are nearly quadratic all over it, and to a short one
(SHORT), for all others. The constants were chosen on bbob f1-f3, f6, f8-f15 with 5, 10 and 20 coordinates, instances
1-5; differences below 1.2 are noise there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from esgroup import checks
from esgroup.checks import Array
from esgroup.groups import Group
from esgroup.kernels import quadratic as kernels
from esgroup.surrogates.base import ERROR_RATE, UNJUDGED, Axes, Minimum, Surrogate, forgotten
from esgroup.surrogates.quadratic_model import Quadratic, Quadratics, Support, changed_frame, fit, fit_few, near_weights

# the models: G = g I, G diagonal, G of the group from the last 2 p points, or fewer if that is many, and from .7 p
SPHERE, AXIAL, LONG, SHORT = range(4)
# Features up to which models are fitted after every part of a generation. More of them are fitted when it ends, with
# more steps, which takes half of the time and, with 20 coordinates, as many evaluations; with 5 it would take 1.1 times
# as many.
_FITTED_OFTEN = 100
_STEPS_OFTEN, _STEPS_AT_END = (20, 12), (30, 18)  # of the fits of the last two models
_MANY = 2000  # points: a memory of so many, if they are more than features, need not be longer
_FEW = 2.0  # times p: points up to which there are models with few features
_RATE, _FLOOR = 0.4, 2.8  # of the step of A
_LARGEST = 1e140  # times n^2: the size of a model beyond which squares of what follows would be no numbers


class QuadraticState(NamedTuple):
    """The models, and how well they predict."""

    constants: Array  # (4,): c of every model,
    slopes: Array  # (4, n): b,
    curvatures: Array  # (4, ...): G
    judged: Array  # (4, 3): agreeing less other pairs, all pairs, the mean squared error
    seen: Array  # (): values so far
    used: Array  # (): the model in use

    @property
    def models(self) -> Quadratics:
        """All of them; views."""
        return Quadratics(self.constants, self.slopes, self.curvatures)

    @property
    def model(self) -> Quadratic:
        """The one in use; its arrays are views."""
        return self.models.one(int(self.used))


@dataclass(frozen=True, eq=False)
class QuadraticSurrogate(Surrogate):
    """Quadratics whose G has the symmetric support of a group.

    Parameters
    ----------
    group : Group
        The group of the root of the search: full, diagonal, block triangular or Heisenberg.
    """

    about = "quadratic model"

    group: Group

    def __post_init__(self) -> None:
        checks.instance("group", self.group, Group)
        Support.of(self.group)  # or a ValueError

    # ---- sizes --------------------------------------------------------------------------------------------------

    @property
    def dim(self) -> int:  # type: ignore[override]
        return self.group.dim

    @cached_property
    def support(self) -> Support:
        """The entries of G."""
        return Support.of(self.group)

    @cached_property
    def windows(self) -> tuple[int, int, int, int]:
        """How many of the last points each model sees."""
        n, p = self.dim, self.support.features
        long = min(2 * p, max(_MANY, round(1.2 * p)))
        return 2 * (n + 2), 2 * (2 * n + 1), long, max(min(3 * n, _MANY), round(0.7 * p))

    @property
    def capacity(self) -> int:
        return self.windows[LONG]

    @property
    def least(self) -> int:
        return self.dim + 2

    @cached_property
    def fits_often(self) -> bool:  # type: ignore[override]
        return self.support.features <= _FITTED_OFTEN

    # ---- states -------------------------------------------------------------------------------------------------

    def start(self) -> QuadraticState:
        models = np.zeros(4), np.zeros((4, self.dim)), np.zeros((4, *self.support.shape))
        return QuadraticState(*models, np.array([UNJUDGED] * 4), np.zeros(()), np.zeros(()))

    def _fitted(self, seen: float) -> list[int]:
        """The models that are fitted after this many values; those with few features only until the memory is full."""
        n, few_until = self.dim, round(_FEW * self.support.features)
        few = [kind for kind, least in ((SPHERE, n + 2), (AXIAL, 2 * n + 1)) if least <= seen < few_until]
        if self.support.diagonal and AXIAL in few:
            few.remove(AXIAL)
        return few + ([LONG, SHORT] if seen >= n + 2 else [])

    def _keep(self, state: QuadraticState, number: int, model: Quadratic) -> None:
        """Write a model, or reset it if it overflows, for example if values differ by a factor of 1e100."""
        size = abs(model.constant) + float(np.abs(model.slope).sum()) + float(np.abs(model.curvature).sum())
        if not size < _LARGEST * self.dim**2:
            model, state.judged[number] = Quadratic(0.0, np.zeros(self.dim), np.zeros(self.support.shape)), UNJUDGED
        state.constants[number], state.slopes[number], state.curvatures[number] = model

    def _chosen(self, state: QuadraticState) -> QuadraticState:
        """Use the model with the highest tau; ties go to the smaller error, then to the first."""
        fitted = self._fitted(state.seen.item())
        if not fitted:
            return state
        judged = state.judged.tolist()
        used = max(fitted, key=lambda k: (round(judged[k][0] / max(1.0, judged[k][1]), 6), -judged[k][2]))
        return state._replace(used=np.array(float(used)))

    # ---- values -------------------------------------------------------------------------------------------------

    def judge(self, state: QuadraticState, z: Array, values: Array, new: int) -> QuadraticState:
        """Judge every model, including unused ones, and choose one."""
        judged, fitted = state.judged.copy(), np.array(self._fitted(state.seen.item()), dtype=np.int64)
        models = state.constants, state.slopes, state.models.rows
        kernels.judge(z, values, len(values) - new, fitted, *models, ERROR_RATE, judged)
        return self._chosen(state._replace(judged=judged, seen=state.seen + new))

    def judgment(self, state: QuadraticState) -> Array:
        return state.judged[int(state.used)]

    def fit(self, state: QuadraticState, z: Array, values: Array) -> QuadraticState:
        """Fit all models, each from its own past, and choose one."""
        fitted = self._fitted(state.seen.item()) if len(values) >= self.least else []
        weights = near_weights(z)
        low = float(values.min(initial=math.inf))
        scale = math.sqrt(float(weights @ (values - low) ** 2) / float(weights.sum())) if fitted else 0.0
        if scale == 0.0:
            return state
        state = QuadraticState(*(part.copy() for part in state))
        y, windows, both = (values - low) / scale, self.windows, slice(LONG, SHORT + 1)
        with np.errstate(over="ignore", invalid="ignore"):
            constants, slopes, curvatures = (part[both] for part in state.models)
            first = not slopes[0].any()  # nothing is known yet
            constants = np.zeros(2) if first else (constants - low) / scale
            models = Quadratics(constants, slopes / scale, curvatures / scale)
            # the short one has no past of its own before it sees fewer points than the long one
            chained, steps = len(y) <= windows[SHORT], _STEPS_OFTEN if self.fits_often else _STEPS_AT_END
            fit(self.support, models, z, y, weights, windows=windows[LONG:], steps=steps, chained=chained)
            for number in fitted:
                if number in (SPHERE, AXIAL):
                    part = slice(-windows[number], None)
                    few = 1 if number == SPHERE else self.dim
                    model = fit_few(self.support, z[part], y[part], weights[part], curvatures=few)
                else:
                    model = models.one(number - LONG)
                found = Quadratic(low + scale * model.constant, scale * model.slope, scale * model.curvature)
                self._keep(state, number, found)
        return self._chosen(state)

    # ---- what is known ------------------------------------------------------------------------------------------

    def predict(self, state: QuadraticState, z: Array) -> Array:
        return state.model.values(z)

    def size(self, state: QuadraticState) -> float:
        return state.model.size

    def minimizer(self, state: QuadraticState, radius: float) -> Minimum:
        model = state.model
        z, at_edge = model.least_in_ball(radius)
        return Minimum(z, float(model.values(z[None])[0]), at_edge)

    def curvature(self, state: QuadraticState) -> Axes | None:
        """L = clip(0.4 (-log(e) / 2 - mean), -1, 1) along the axes of the Hessian H = V diag(e) V^T.

        While there are few values, the e are mixed with their mean; their floor has the size of the error.
        """
        model, p = state.model, self.support.features
        axes, count = model.axes(), int(state.seen)
        share = min(1.0, 0.5 * (p / max(1, min(count, 2 * p))) ** 2)
        floor = _FLOOR * math.sqrt(self.judgment(state)[2]) * model.size / math.sqrt(self.dim)
        logs = root_logs(axes.values, share, floor)
        return None if logs is None else axes._replace(values=logs)

    def moved(self, state: QuadraticState, shift: Array, turn: Array) -> QuadraticState:
        state = QuadraticState(*(part.copy() for part in state))._replace(judged=forgotten(state.judged))
        for number in self._fitted(state.seen.item()):
            with np.errstate(over="ignore", invalid="ignore"):
                self._keep(state, number, changed_frame(self.support, state.models.one(number), shift, turn))
        return state


def root_logs(eigenvalues: Array, share: float, floor: float) -> Array | None:
    """L: the logarithms of the step of A along the axes of the Hessian; None if there is no positive eigenvalue.

    e <- (1 - share) e+ + share mean(e+) + floor, L = clip(0.4 (-log(e) / 2 - mean), -1, 1).
    """
    positive = np.maximum(eigenvalues, 0.0)
    mean = float(positive.mean())
    e = (1.0 - share) * positive + share * mean + floor
    if not (e > 0.0).all():
        e = np.maximum(e, 1e-12 * e.max())
    if not (e > 0.0).all():
        return None
    logs = -0.5 * np.log(e / e.max())  # the units of the function do not matter, to the last digit
    return np.clip(_RATE * (logs - logs.mean()), -1.0, 1.0)
