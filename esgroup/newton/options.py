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
from esgroup.newton.steps import DAMPING, DECAY, LINE_SEARCHES, RateSchedule, as_schedule

RATE = 0.9  # beta of the groups: 0.5 takes twice the iterations on Rosenbrock and Dixon-Price, 1 as many as 0.9
ScheduleName = Literal["constant", "linear", "inverse", "exponential"]
LineSearchName = Literal["armijo", "none"]
CLIP = 1.0  # of the largest entry of M: h(M) then lies between a half and 5/2 in one dimension


@checks.explained
@dataclass(frozen=True, kw_only=True)
class NewtonSettings:
    """Options of structured Newton in addition to the arguments of `esgroup.minimize`.

    The fields are arguments of `minimize_newton` and documented there.

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
    form: Form = "precision"
    rate: float | None = None
    mean_rate: float | None = None
    schedule: RateSchedule | ScheduleName | Callable[[int], float] = "constant"
    momentum: float = 0.0
    line_search: LineSearchName = "armijo"
    clip: float | None = CLIP
    absolute: bool = True
    damping: float | None = None
    damping_decay: float = DECAY
    precision0: float | None = None
    gtol: float = 1e-5


@dataclass(frozen=True, kw_only=True)
class NewtonOptions(NewtonSettings):
    """The settings of a run, with all defaults filled in."""

    structure: Group | Moving
    rate: float
    mean_rate: float
    schedule: RateSchedule
    damping: float

    def initial_precision(self, dim: int, scale: float) -> Precision:
        """Return the initial estimate of the Hessian: `precision0` I if given, otherwise `scale` I."""
        if isinstance(self.structure, Moving):
            return moving_precision(self.structure, dim)
        return group_precision(self.structure, self.form, self.precision0 or scale, self.clip, self.absolute)


def parse_options(settings: NewtonSettings, structure: Any, dim: int, max_iters: int | None) -> NewtonOptions:
    """Check all options and fill in those that depend on others."""
    given, chosen = settings, structure_of(structure, dim)
    moving = isinstance(chosen, Moving)
    checks.one_of("form", given.form, "precision", "covariance")
    if moving:
        _check_for_moving(given)
    checks.one_of("line_search", given.line_search, *LINE_SEARCHES)
    rate = _positive("rate", given.rate) or RATE
    plain = given.line_search == "none" and not moving
    damping = (DAMPING if moving else 0.0) if given.damping is None else checks.not_negative("damping", given.damping)
    checked = {
        "rate": rate,
        "mean_rate": _positive("mean_rate", given.mean_rate) or (rate if plain else 1.0),
        "schedule": as_schedule(given.schedule, max_iters),
        "momentum": checks.not_negative("momentum", given.momentum, below=1),
        "clip": _positive("clip", given.clip),
        "absolute": checks.flag("absolute", given.absolute),
        "damping": damping,
        "damping_decay": checks.not_negative("damping_decay", given.damping_decay, below=1),
        "precision0": _positive("precision0", given.precision0),
        "gtol": checks.not_negative("gtol", given.gtol),
    }
    return NewtonOptions(**vars(given) | checked, structure=chosen)


def _positive(name: str, value: Any) -> float | None:
    return None if value is None else checks.real_number(name, value, positive=True)


def structure_of(structure: Any, dim: int) -> Group | Moving:
    """Return a group of dimension `dim` or a moving block, from an object or its spelling; "auto" is `Moving()`."""
    moving = parse_moving(structure) if isinstance(structure, str) else structure
    if isinstance(moving, Moving):
        return moving
    try:
        return as_group(structure, dim)
    except ValueError as error:
        if "unknown structure" in str(error):
            raise ValueError(f"{error}, and moving") from None
        raise


def _check_for_moving(given: NewtonSettings) -> None:
    """Reject options that the moving block does not use."""
    if given.form != "precision":
        raise ValueError(f"form must be 'precision' for the moving block, got {given.form!r}")
    for name, default in {"rate": None, "precision0": None, "clip": CLIP, "absolute": True}.items():
        value = getattr(given, name)
        if value != default:
            text = f"{name} must be left out for the moving block, which does not use it, got {value!r}"
            raise ValueError(f"{text}: choose a group to use it, such as structure='heisenberg'")
