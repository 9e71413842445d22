"""What figure 1 (III) shows, judged from its table."""

from __future__ import annotations

import itertools
import math

from reproduction.experiment import Table, Verdict, judged, slope

TARGET = 1e-6  # of ELBO* - ELBO: what counts as having arrived
SAME = 1e-6  # distance of iterates that is rounding: long steps enlarge it, to 5e-9 at most
APART = 1e-2  # and one that can be seen, in the Fisher metric
SAME_SPEED = 0.05  # of the iterations, and at least one iteration
EQUIVALENT = ("ours, precision, Exp", "NGD in log σ", "NGD in log σ²", "NGD in log 1/σ²")
PAIR = ("GD in log σ", "GD in log σ²")  # the paper's
OTHERS = ("NGD in σ", "NGD in σ²", "NGD in 1/σ²")


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
    """The orders in the step of the distances from the reference, for each start, over the two smallest steps."""
    orders = []
    small = _steps(table)[:2]
    for name in names:
        found = _by_step(table, "distance", name)
        for values in zip(*(found[x] for x in small), strict=True):
            if all(SAME < value < math.inf for value in values):
                orders.append(slope(small, values))
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
    """h against Exp: the numbers of iterations, for each start up to which step they are the same."""
    outcomes, words = {}, []
    for start in _starts(table):
        gaps = {x: [_speed_gap(table, f"{start}, {x:g}", form) for form in _FORMS] for x in _steps(table)}
        same = {x: all(ok for ok, _ in pairs) for x, pairs in gaps.items()}
        largest = max(itertools.takewhile(same.__getitem__, same), default=0.0)
        outcomes[start] = largest
        words.append(f"{start} " + ", ".join(f"{_percent(max(gap for _, gap in gaps[x]))}" for x in gaps))
    steps = _steps(table)
    why = f"difference in iterations to 1e-6 at the steps {', '.join(f'{x:g}' for x in steps)}: " + "; ".join(words)
    orders = _orders(table, tuple(f"ours, {form}, h" for form in _FORMS))
    if orders:
        why += f". Paths differ by order {min(orders):.2f} to {max(orders):.2f} of small steps"
    judged_by = {f"the step is at most {x:g} ({start} start)": x > 0 for start, x in outcomes.items()}
    if any(x < steps[-1] for x in outcomes.values()):
        judged_by["the step is larger"] = False
    return judged("In practice there is no difference between the maps h and Exp.", why, judged_by)


def _starts(table: Table) -> list[str]:
    return list(dict.fromkeys(case.split(",")[0] for case in table.cases("iterations")))


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
    """Paths of GD in log σ and log σ², the paper's pair, where both stay in bounds; and iterations over all scales."""
    pairs = {row.case: row.value for row in table.where("between").rows if math.isfinite(row.value)}
    factors = []
    for case in table.cases("iterations"):
        counts = [table.value("iterations", case, name) for name in _descents(table)]
        arrived = [count for count in counts if math.isfinite(count)]
        factors += [max(arrived) / max(min(arrived), 1)] if len(arrived) > 1 else []
    why = f"log σ against log σ²: paths are {min(pairs.values()):.2g} to {max(pairs.values()):.2g} apart"
    if factors:
        why += f"; iterations to 1e-6 of those scales that arrive differ by factors up to {max(factors):.1f}"
    outcomes = {f"start and step are {case}": gap > APART for case, gap in pairs.items()}
    return judged("GD is not invariant: its performance depends on the parameterisation.", why, outcomes)


def _descents(table: Table) -> list[str]:
    return [name for name in table.series("iterations") if name.startswith("GD")]


def _faster(table: Table) -> Verdict:
    """Ours against GD in log σ and log σ²: at the same step, and each with the best of the steps."""
    counts = {
        name: {case: table.value("iterations", case, name) for case in table.cases("iterations")}
        for name in ("ours, covariance, Exp", *_descents(table))
    }
    ours = counts.pop("ours, covariance, Exp")
    theirs = {case: min(counts[name][case] for name in PAIR) for case in ours}
    decided = {case: ours[case] < theirs[case] for case in ours if min(ours[case], theirs[case]) < math.inf}
    best = {s: [_best(found, s) for found in (ours, theirs)] for s in _starts(table)}
    any_scale = {s: min(_best(found, s) for found in counts.values()) for s in best}
    why = (
        f"same step: ours first in {sum(decided.values())} of {len(decided)} cases; best step for each, iterations to "
    )
    why += "1e-6 (ours; GD in log σ or log σ²; GD in any scale): "
    why += ", ".join(f"{s} {a:.0f}; {b:.0f}; {any_scale[s]:.0f}" for s, (a, b) in best.items())
    outcomes = {"both have the same step": all(decided.values())}
    outcomes |= {f"each has its best step ({s} start)": a < b for s, (a, b) in best.items()}
    return judged("NGD converges much faster than GD, which ignores the geometry.", why, outcomes)


def _best(found: dict[str, float], start: str) -> float:
    return min(value for case, value in found.items() if case.startswith(f"{start},"))


def notes(table: Table) -> list[str]:
    errors = ", ".join(f"{row.value:.1g} ({row.case})" for row in table.where("quadrature").rows)
    runs = [row for row in table.where("iterations").rows if row.series.startswith(("GD", "NGD"))]
    lost = sum(math.isinf(row.value) for row in runs)
    return [
        f"Twice the nodes change L by {errors}. Gradient at the optimum: {table.value('optimum', '', 'gradient'):.1g}.",
        f"{lost} of {len(runs)} runs of GD and standard NGD did not arrive: too few iterations, or the step too large.",
        "Data, starts and steps are ours; the paper gives none of them. Near the optimum NGD contracts by 1 - step "
        "whatever the problem, and GD by 1 - step times the curvature, which is larger than 1 here.",
    ]
