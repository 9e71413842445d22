"""What a caller may choose, checked once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from esgroup import checks
from esgroup.distributions.gaussian import Form
from esgroup.groups import Group, as_group
from esgroup.newton.iteration import group_precision
from esgroup.newton.line_search import LINE_SEARCHES, LineSearch
from esgroup.newton.moving import Moving, moving_precision, parse_moving
from esgroup.newton.precision import Precision
from esgroup.newton.schedules import Schedule, as_schedule

RATE = 0.9  # beta of the groups: 0.5 takes twice the iterations on Rosenbrock and Dixon-Price, 1 as many as 0.9
CLIP = 1.0  # of the largest entry of M: h(M) then lies between a half and 5/2 in one dimension
DAMPING = 10.0  # of the moving block: with 1, four of five runs from (-1.2, 1, ...) end in the local minimum near -1
DECAY = 0.9  # the factor of an iteration


@dataclass(frozen=True, kw_only=True)
class Damping:
    """mu_t = start scale min(decay^t, |g_t| / |g_0|), a multiple of the identity that is added to the Hessian.

    `scale` is the largest |H_ii| at the start. A large start makes the first steps gradient-like (Levenberg), which
    chooses a better basin; below 1e-12 scale it is zero.
    """

    start: float
    decay: float = DECAY

    def at(self, t: int, scale: float, slope_ratio: float) -> float:
        """mu in iteration t = 0, 1, ..."""
        damping = self.start * scale * min(self.decay**t, slope_ratio)
        return damping if damping >= 1e-12 * scale else 0.0


@dataclass(frozen=True, kw_only=True)
class Options:
    """Choices of the method, with what was left out filled in."""

    structure: Group | Moving
    form: Form
    rate: float
    mean_rate: float
    schedule: Schedule
    momentum: float
    line_search: LineSearch
    clip: float | None
    absolute: bool
    damping: Damping
    precision0: float | None
    gtol: float

    def precision(self, dim: int, scale: float) -> Precision:
        """Where the estimate of the Hessian begins: a multiple of I, `precision0` or the given scale."""
        if isinstance(self.structure, Moving):
            return moving_precision(self.structure, dim)
        return group_precision(self.structure, self.form, self.precision0 or scale, self.clip, self.absolute)


def options(
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
) -> Options:
    """Check all choices and fill in those that depend on others."""
    chosen = structure_of(structure, dim)
    moving = isinstance(chosen, Moving)
    if form not in ("precision", "covariance"):
        raise ValueError(f"form must be 'precision' or 'covariance', got {form!r}")
    if moving:
        unused = {"rate": rate, "precision0": precision0, "clip": None if clip == CLIP else clip or "None"}
        _refuse_for_moving(form, unused | {"absolute": None if absolute is True else absolute})
    searched = _line_search(line_search)
    beta = RATE if rate is None else checks.real_number("rate", rate, positive=True)
    whole = moving or searched is not LINE_SEARCHES["none"]
    start = (DAMPING if moving else 0.0) if damping is None else _at_least_zero("damping", damping)
    return Options(
        structure=chosen,
        form=form,
        rate=beta,
        mean_rate=_or(1.0 if whole else beta, "mean_rate", mean_rate),
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
    """A group of that dimension or a moving block, from an object or its spelling."""
    if isinstance(structure, Moving):
        return structure
    if isinstance(structure, str) and structure == "auto":
        return Moving()
    moving = parse_moving(structure) if isinstance(structure, str) else None
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
            text = f"{name} must be left out for the moving block, which does without it, got {given!r}"
            raise ValueError(f"{text}: a group has it, such as structure='heisenberg'")


def _line_search(line_search: Any) -> LineSearch:
    if isinstance(line_search, LineSearch):
        return line_search
    if not isinstance(line_search, str) or line_search not in LINE_SEARCHES:
        raise ValueError(f"line_search must be {' or '.join(map(repr, LINE_SEARCHES))}, got {line_search!r}")
    return LINE_SEARCHES[line_search]


def _or(default: float, name: str, value: Any) -> float:
    return default if value is None else checks.real_number(name, value, positive=True)


def _fraction(name: str, value: Any) -> float:
    if not 0 <= (number := checks.real_number(name, value)) < 1:
        raise ValueError(f"{name} must be at least 0 and below 1, got {value!r}")
    return number


def _at_least_zero(name: str, value: Any) -> float:
    if (number := checks.real_number(name, value)) < 0:
        raise ValueError(f"{name} must be at least 0, got {value!r}")
    return number
