"""The options of structured Newton, checked once before a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from esgroup import checks
from esgroup.distributions.gaussian import Form
from esgroup.gradients.function import PROBES
from esgroup.groups import Group, as_group
from esgroup.newton.moving import Moving, moving_precision, parse_moving
from esgroup.newton.precision import Precision, group_precision
from esgroup.newton.steps import (
    DAMPING,
    DECAY,
    LINE_SEARCHES,
    Damping,
    LineSearch,
    RateSchedule,
    as_line_search,
    as_schedule,
)

RATE = 0.9  # beta of the groups: 0.5 takes twice the iterations on Rosenbrock and Dixon-Price, 1 as many as 0.9
ScheduleName = Literal["constant", "linear", "inverse", "exponential"]
CLIP = 1.0  # of the largest entry of M: h(M) then lies between a half and 5/2 in one dimension


@checks.explained
@dataclass(frozen=True, kw_only=True)
class NewtonSettings:
    """What structured Newton can be told beyond the arguments of `esgroup.minimize`.

    The fields are arguments of `minimize_newton`, whose documentation explains them.

    Examples
    --------
    >>> import esgroup
    >>> from scipy.optimize import rosen, rosen_der
    >>> from esgroup.newton import NewtonSettings
    >>> more = {"jac": rosen_der, "newton": NewtonSettings(gtol=1e-8)}
    >>> result = esgroup.minimize(rosen, [0.5, 1.5], method="newton", **more)
    >>> result.success
    True
    """

    hessp_vectorized: bool = False
    probes: int = PROBES
    form: Literal["precision", "covariance"] = "precision"
    rate: float | None = None
    mean_rate: float | None = None
    schedule: RateSchedule | ScheduleName | Callable[[int], float] = "constant"
    momentum: float = 0.0
    line_search: Literal["armijo", "none"] = "armijo"
    clip: float | None = CLIP
    absolute: bool = True
    damping: float | None = None
    damping_decay: float = DECAY
    precision0: float | None = None
    gtol: float = 1e-5


@dataclass(frozen=True, kw_only=True)
class NewtonOptions:
    """The options of a run, with all defaults filled in."""

    structure: Group | Moving
    form: Form
    rate: float
    mean_rate: float
    schedule: RateSchedule
    momentum: float
    line_search: LineSearch
    clip: float | None
    absolute: bool
    damping: Damping
    precision0: float | None
    gtol: float

    def initial_precision(self, dim: int, scale: float) -> Precision:
        """Return the initial estimate of the Hessian: `precision0` I if that was given, otherwise `scale` I."""
        if isinstance(self.structure, Moving):
            return moving_precision(self.structure, dim)
        return group_precision(self.structure, self.form, self.precision0 or scale, self.clip, self.absolute)


def parse_options(
    dim: int,
    *,
    structure: Any,
    form: Any,
    rate: Any,
    mean_rate: Any,
    schedule: Any,
    momentum: Any,
    line_search: Any,
    clip: Any,
    absolute: Any,
    damping: Any,
    damping_decay: Any,
    precision0: Any,
    gtol: Any,
    max_iters: int | None,
) -> NewtonOptions:
    """Check all options and fill in those that depend on others."""
    chosen = structure_of(structure, dim)
    moving = isinstance(chosen, Moving)
    if form not in ("precision", "covariance"):
        raise ValueError(f"form must be 'precision' or 'covariance', got {form!r}")
    if moving:
        unused = {"rate": rate, "precision0": precision0, "clip": None if clip == CLIP else clip or "None"}
        _refuse_for_moving(form, unused | {"absolute": None if absolute is True else absolute})
    searched = as_line_search(line_search)
    beta = RATE if rate is None else checks.real_number("rate", rate, positive=True)
    if mean_rate is not None:
        mean_rate = checks.real_number("mean_rate", mean_rate, positive=True)
    else:
        mean_rate = 1.0 if moving or searched is not LINE_SEARCHES["none"] else beta
    start = (DAMPING if moving else 0.0) if damping is None else _at_least_zero("damping", damping)
    return NewtonOptions(
        structure=chosen,
        form=form,
        rate=beta,
        mean_rate=mean_rate,
        schedule=as_schedule(schedule, max_iters),
        momentum=_fraction("momentum", momentum),
        line_search=searched,
        clip=None if clip is None else checks.real_number("clip", clip, positive=True),
        absolute=checks.flag("absolute", absolute),
        damping=Damping(start=start, decay=_fraction("damping_decay", damping_decay)),
        precision0=None if precision0 is None else checks.real_number("precision0", precision0, positive=True),
        gtol=_at_least_zero("gtol", gtol),
    )


def structure_of(structure: Any, dim: int) -> Group | Moving:
    """Return a group of dimension `dim` or a moving block, from an object or its spelling; "auto" is `Moving()`."""
    if isinstance(structure, Moving):
        return structure
    if isinstance(structure, str):
        if structure == "auto":
            return Moving()
        moving = parse_moving(structure)
        if moving is not None:
            return moving
    try:
        return as_group(structure, dim)
    except ValueError as error:
        if "unknown structure" in str(error):
            raise ValueError(f"{error}, and moving") from None
        raise


def _refuse_for_moving(form: str, unused: dict[str, Any]) -> None:
    if form != "precision":
        raise ValueError(f"form must be 'precision' for the moving block, got {form!r}")
    for name, given in unused.items():
        if given is not None:
            text = f"{name} must be left out for the moving block, which does not use it, got {given!r}"
            raise ValueError(f"{text}: choose a group to use it, such as structure='heisenberg'")


def _fraction(name: str, value: Any) -> float:
    if not 0 <= (number := checks.real_number(name, value)) < 1:
        raise ValueError(f"{name} must be at least 0 and below 1, got {value!r}")
    return number


def _at_least_zero(name: str, value: Any) -> float:
    if (number := checks.real_number(name, value)) < 0:
        raise ValueError(f"{name} must be at least 0, got {value!r}")
    return number
