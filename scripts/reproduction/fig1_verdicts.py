"""What figure 1 (III) shows, judged from its table."""

from __future__ import annotations

import math

import numpy as np
from reproduction.experiment import FAILS, Table, Verdict, judged, slope

TARGET = 1e-6  # of ELBO* - ELBO: what counts as having arrived
SAME = 1e-9  # distance of iterates that is rounding
APART = 1e-2  # and one that can be seen, in the Fisher metric
SAME_SPEED = 0.05  # of the iterations, and at least one iteration
EQUIVALENT = ("ours, precision, Exp", "NGD in log σ", "NGD in log σ²", "NGD in log 1/σ²")
OTHERS = ("NGD in σ", "NGD in σ²", "NGD in 1/σ²")
SMALL_STEPS = 0.1  # up to there orders are measured


def verdicts(table: Table) -> list[Verdict]:
    return [_invariant(table), _any_scale(table), _maps(table), _not_invariant(table), _faster(table)]


def _by_step(table: Table, part: str, series: str) -> dict[float, list[float]]:
    """Values by step, one for each start."""
    found: dict[float, list[float]] = {}
    for row in table.where(part, series=series).rows:
        found.setdefault(row.x, []).append(row.value)
    return found


def _largest(table: Table, names: tuple[str, ...]) -> float:
    return max(row.value for name in names for row in table.where("distance", series=name).rows)


def _invariant(table: Table) -> Verdict:
    worst = {name: _largest(table, (name,)) for name in EQUIVALENT}
    why = f"largest distance of the iterates, all starts and steps: {max(worst.values()):.1g}"
    outcomes = {f"the other is {name}": gap < SAME for name, gap in worst.items()}
    claim = "With Exp our NGD is the same in covariance and precision form, and as standard NGD in log σ or log σ²."
    return judged(claim, why, outcomes)


def _orders(table: Table, names: tuple[str, ...]) -> list[float]:
    """The order in the step of each method's largest distance from the reference, over steps that are small."""
    orders = []
    for name in names:
        found = {x: max(values) for x, values in _by_step(table, "distance", name).items() if x <= SMALL_STEPS}
        usable = {x: y for x, y in found.items() if math.isfinite(y) and y > SAME}
        if len(usable) > 1:
            orders.append(slope(list(usable), list(usable.values())))
    return orders


def _any_scale(table: Table) -> Verdict:
    """NGD in parameters that are no logarithms."""
    worst = {name: _largest(table, (name,)) for name in OTHERS}
    far = {f"{x:g}": max(max(_by_step(table, "distance", name)[x]) for name in OTHERS) for x in _steps(table)}
    orders = _orders(table, OTHERS)
    outcomes = {"the parameter is a logarithm of the scale": _largest(table, EQUIVALENT) < SAME}
    outcomes |= {f"it is {name.removeprefix('NGD in ')}": gap < SAME for name, gap in worst.items()}
    why = "distance of NGD in σ, σ² or 1/σ² from ours, by step: "
    why += ", ".join(f"{x}: {_number(gap)}" for x, gap in far.items())
    if orders:
        why += f"; order {min(orders):.2f} to {max(orders):.2f} in small steps"
    return judged("NGD is invariant to the parameterisation, whichever it is.", why, outcomes)


def _steps(table: Table) -> list[float]:
    return sorted({row.x for row in table.where("iterations").rows})


def _number(value: float) -> str:
    return f"{value:.2g}" if math.isfinite(value) else "leaves its domain"


def _maps(table: Table) -> Verdict:
    """h against Exp: the numbers of iterations, step by step."""
    outcomes, worst = {}, {}
    for x in _steps(table):
        ratios = [
            _speed_gap(table, row.case, form) for row in table.where("iterations").rows if row.x == x for form in _FORMS
        ]
        outcomes[x], worst[x] = all(same for same, _ in ratios), max(gap for _, gap in ratios)
    good = [x for x, ok in outcomes.items() if ok]
    why = "largest difference in iterations to 1e-6, by step: "
    why += ", ".join(f"{x:g}: {_percent(gap)}" for x, gap in worst.items())
    orders = _orders(table, tuple(f"ours, {form}, h" for form in _FORMS))
    if orders:
        why += f"; iterates differ by order {min(orders):.2f} to {max(orders):.2f} of small steps"
    claim = "In practice there is no difference between the maps h and Exp."
    if 0 < len(good) < len(outcomes) and good == list(outcomes)[: len(good)]:
        return judged(claim, why, {f"the step is at most {good[-1]:g}": True, "it is larger": False})
    return judged(claim, why, {f"the step is {x:g}": ok for x, ok in outcomes.items()})


_FORMS = ("covariance", "precision")


def _percent(gap: float) -> str:
    return f"{gap:.0%}" if math.isfinite(gap) else "one does not arrive"


def _speed_gap(table: Table, case: str, form: str) -> tuple[bool, float]:
    """Whether h takes as many iterations as Exp, and the relative difference."""
    exp, h = (table.value("iterations", case, f"ours, {form}, {name}") for name in ("Exp", "h"))
    if exp == h:
        return True, 0.0
    if not (math.isfinite(exp) and math.isfinite(h)):
        return False, math.inf
    return abs(exp - h) <= max(1.0, SAME_SPEED * exp), abs(exp - h) / exp


def _not_invariant(table: Table) -> Verdict:
    """Paths of GD in log σ and log σ², the paper's pair, and over all parameters."""
    pairs, spreads = {}, []
    for case in table.cases("iterations"):
        counts = {name: table.value("iterations", case, name) for name in _descents(table)}
        pairs[case] = abs(
            table.value("distance", case, "GD in log σ") - table.value("distance", case, "GD in log σ²")
        )
        arrived = [count for count in counts.values() if math.isfinite(count)]
        spreads += [max(arrived) / max(min(arrived), 1)] if len(arrived) > 1 else []
    seen = {case: not gap <= APART for case, gap in pairs.items()}  # inf - inf is NaN: both have left, in their ways
    finite = [gap for gap in pairs.values() if math.isfinite(gap)]
    why = f"log σ against log σ²: paths are at least {min(finite):.2g} apart" if finite else "no path of GD ends well"
    if spreads:
        why += f"; iterations to 1e-6 differ by a factor of up to {max(spreads):.1f} between parameters"
    return judged("GD is not invariant: its performance depends on the parameterisation.", why, _grouped(seen))


def _grouped(seen: dict[str, bool]) -> dict[str, bool]:
    return {f"start and step are {case}": ok for case, ok in seen.items()}


def _descents(table: Table) -> list[str]:
    return [name for name in table.series("iterations") if name.startswith("GD")]


def _faster(table: Table) -> Verdict:
    """Ours against the best GD: at the same step, and each with the best of the steps."""
    same, own = {}, {}
    for case in table.cases("iterations"):
        start = case.split(",")[0]
        ours = table.value("iterations", case, "ours, covariance, Exp")
        theirs = min(table.value("iterations", case, name) for name in _descents(table))
        same[case] = ours < theirs
        best = own.setdefault(start, [math.inf, math.inf])
        own[start] = [min(best[0], ours), min(best[1], theirs)]
    wins = sum(same.values())
    why = f"same step for both: ours first in {wins} of {len(same)} cases; best step for each, iterations to 1e-6 "
    why += "(ours, best GD): " + ", ".join(f"{start} {a:.0f}, {b:.0f}" for start, (a, b) in own.items())
    outcomes = {"both have the same step": wins == len(same)}
    outcomes |= {f"each has its best step, {start} start": a < b for start, (a, b) in own.items()}
    if all(a < b for a, b in own.values()):
        outcomes = {"each method has its best step": True, "both have the same step": wins == len(same)}
    return judged("NGD converges much faster than GD, which ignores the geometry.", why, outcomes)


def notes(table: Table) -> list[str]:
    error = table.value("quadrature", "", "error")
    gradient = table.value("optimum", "", "gradient")
    lost = [row for row in table.where("iterations").rows if row.series.startswith(("GD", "NGD")) and np.isinf(row.value)]
    total = len([row for row in table.where("iterations").rows if row.series.startswith(("GD", "NGD"))])
    return [
        f"Quadrature: twice the nodes change L by at most {error:.1g}; the gradient at the optimum is {gradient:.1g}.",
        f"{len(lost)} of {total} runs of GD and standard NGD did not arrive: too few iterations, or the step too large.",
        "Data, starts and steps are ours; the paper gives none of them.",
    ]


__all__ = ["FAILS", "TARGET", "notes", "verdicts"]
