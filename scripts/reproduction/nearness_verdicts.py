"""What section 5.1 claims, judged from the table of the metric nearness experiment."""

from __future__ import annotations

import math

import numpy as np

from reproduction.experiment import Array, Table, Verdict, judged, slope

ARRIVED = 1e-6  # of the test loss at the start
NEAR = 1e-3  # "near the optimal solution", the same
ROUNDING = 1e-20  # losses below that are all zero, relative to the first
SAME_SPEED = 0.05  # of the iterations
ORDER = 3.0
ADAMS = ("Adam, Cholesky", "Adam, logarithm")


def verdicts(table: Table) -> list[Verdict]:
    return [_order(table), _like_rgd(table), _faster(table), _trapped(table), _near(table), _joint(table)]


def final(table: Table, series: str, part: float = 1.0) -> list[float]:
    """Test losses of the seeds over those at the start, at the end or at an earlier part of the run."""
    found = []
    for case in table.cases("test loss"):
        _, y = table.curve("test loss", case, series)
        found.append(float(y[round(part * (len(y) - 1))] / y[0]))
    return found


def arrivals(table: Table, series: str) -> list[float]:
    """Iterations after which the loss stays below a millionth of the first one, for each seed; inf if never."""
    return [arrival(*table.curve("test loss", case, series)) for case in table.cases("test loss")]


def arrival(x: Array, y: Array) -> float:
    """The first iteration from which on the loss stays below a millionth of the first one."""
    above = np.flatnonzero(~(y <= ARRIVED * y[0]))  # the first one is
    return float(x[above[-1] + 1]) if above[-1] + 1 < len(x) else math.inf


def _list(values: list[float]) -> str:
    return ", ".join(
        "never" if math.isinf(value) else f"{value:.2g}" if value < 1 else f"{value:.0f}" for value in values
    )


def _slope(table: Table, case: str, series: str) -> float:
    x, y = table.curve("order", case, series)
    good = np.isfinite(y) & (y > 0)
    return slope(x[good], y[good])


def _order(table: Table) -> Verdict:
    one = {name: _slope(table, "one iteration", name) for name in ("h, geodesic", "h, retraction")}
    many = table.where("order", "100 iterations", "h, geodesic").rows
    _, exact = table.curve("order", "one iteration", "Exp, geodesic")
    why = ", ".join(f"{name}: order {order:.2f}" for name, order in one.items())
    why += f"; with Exp and the geodesic equal to {exact.max():.1g}; paths of 100 iterations apart by "
    why += ", ".join(f"{_list([row.value])} (step {row.x:g})" for row in many)
    outcomes = {f"the pair is {name}": abs(order - ORDER) < 0.2 for name, order in one.items()}
    return judged("At the mean our update is RGD up to O(step³) in one iteration.", why, outcomes)


def _like_rgd(table: Table) -> Verdict:
    """As many iterations; and if neither arrives, as low a loss, up to a factor of 2."""
    ours, theirs, every = arrivals(table, "our-mean"), arrivals(table, "RGD"), _every(table)
    ends = zip(final(table, "our-mean"), final(table, "RGD"), strict=True)
    same = [
        _alike(a, b, every) if min(a, b) < math.inf else max(pair) <= 2 * min(pair)
        for a, b, pair in zip(ours, theirs, ends, strict=True)
    ]
    why = f"iterations until the loss stays below a millionth of the first: our-mean {_list(ours)}; RGD {_list(theirs)}"
    outcomes = {f"it is {case}": ok for case, ok in zip(table.cases("test loss"), same, strict=True)}
    return judged("our-mean performs like RGD.", why, outcomes)


def _alike(a: float, b: float, every: float) -> bool:
    return max(a, b) < math.inf and abs(a - b) <= max(SAME_SPEED * b, every)


def _every(table: Table) -> float:
    x, _ = table.curve("test loss", table.cases("test loss")[0], "RGD")
    return float(x[1] - x[0])


def _faster(table: Table) -> Verdict:
    ours, adams = arrivals(table, "our-mean"), {name: arrivals(table, name) for name in ADAMS}
    best = [min(values) for values in zip(*adams.values(), strict=True)]
    why = f"iterations until the loss stays below a millionth of the first, steps tuned: our-mean {_list(ours)}; "
    why += "; ".join(f"{name} {_list(values)}" for name, values in adams.items())
    why += "; all steps on these seeds: " + "; ".join(f"{name} {_steps(table, name)}" for name in ("our-mean", *ADAMS))
    rates = {row.series: row.value for row in table.where("chosen").rows}
    outcomes = {f"steps are tuned ({rates['our-mean']:g})": all(a < b for a, b in zip(ours, best, strict=True))}
    for rate in dict.fromkeys(row.x for row in table.where("arrival", series="our-mean").rows):
        if rate != rates["our-mean"]:
            own = [row.value for row in table.where("arrival", series="our-mean").rows if row.x == rate]
            outcomes[f"our step is {rate:g}"] = all(a < b for a, b in zip(own, best, strict=True))
    return judged("Ours and RGD converge faster than the trivialisation with Adam.", why, outcomes)


def _steps(table: Table, name: str) -> str:
    """When a method arrives on the reported seeds, by step."""
    found: dict[float, list[float]] = {}
    for row in table.where("arrival", series=name).rows:
        found.setdefault(row.x, []).append(row.value)
    return ", ".join(f"{rate:g} ({_list(values)})" for rate, values in found.items())


def _trapped(table: Table) -> Verdict:
    """By step, on the tuning seeds: the better chart is far from the optimum, and the second half brought nothing."""
    outcomes, words = {}, []
    start = table.curve("test loss", table.cases("test loss")[0], ADAMS[0])[1][0]
    for rate in dict.fromkeys(row.x for row in table.where("tuning end", series=ADAMS[0]).rows):
        pairs = [_better_chart(table, case, rate) for case in table.cases("tuning end")]
        outcomes[f"its step is {rate:g}"] = all(end > ARRIVED * start and end > half / 2 for half, end in pairs)
        words.append(f"step {rate:g}: " + " and ".join(f"{half:.1g}, {end:.1g}" for half, end in pairs))
    tuned = min(ADAMS, key=lambda name: max(final(table, name)))
    end, half = (max(final(table, tuned, part)) for part in (1.0, 0.5))
    outcomes["its step is tuned"] = end > ARRIVED and end > half / 2
    why = "better chart, test loss at half time and at the end: " + "; ".join(words)
    why += f"; tuned, worst seed, over the first loss: {end:.1g}. f is convex and the charts are diffeomorphisms: "
    why += "there is no other stationary point, a stall is noise at that step"
    return judged("The trivialisation is trapped in a local mode.", why, outcomes)


def _better_chart(table: Table, case: str, rate: float) -> tuple[float, float]:
    """Losses at half time and at the end of the chart that ends better."""
    halves, ends = ([_at(table, part, case, name, rate) for name in ADAMS] for part in ("tuning half", "tuning end"))
    return halves[int(np.argmin(ends))], min(ends)


def _at(table: Table, part: str, case: str, series: str, x: float) -> float:
    places, values = table.curve(part, case, series)
    return float(values[places == x][0])


def _near(table: Table) -> Verdict:
    ends = final(table, "our-rep")
    why = f"test loss over the first one at the end, by seed: {_list(ends)}"
    outcomes = {f"it is {case}": end <= NEAR for case, end in zip(table.cases("test loss"), ends, strict=True)}
    return judged("our-rep (reparameterised gradients, B and b) finds a solution near the optimum.", why, outcomes)


def _joint(table: Table) -> Verdict:
    """Against each n that is kept, at a quarter of the run and at its end; our-mean is the limit of large n."""
    fixed = [name for name in table.series("test loss") if name.startswith("our-fixed-rep")]
    wins, words = {}, []
    for name in [*fixed, "our-mean"]:
        n = name.split("= ")[1] if "=" in name else "infinity (our-mean)"
        for part, when in ((0.25, "a quarter of the run"), (1.0, "the end")):
            pairs = list(zip(final(table, "our-rep", part), final(table, name, part), strict=True))
            wins[n, when] = all(max(ours, ROUNDING) < theirs for ours, theirs in pairs)
            words.append(f"n = {n} at {when} {max(b for _, b in pairs):.1g} (joint {max(a for a, _ in pairs):.1g})")
    why = "worst seed, over the first loss: " + "; ".join(words)
    return judged("Updating B and b together is better than updating B only.", why, _summed(wins))


def _summed(wins: dict[tuple[str, str], bool]) -> dict[str, bool]:
    """n alone where it is the same at both times."""
    outcomes: dict[str, bool] = {}
    for n in dict.fromkeys(n for n, _ in wins):
        own = {when: ok for (m, when), ok in wins.items() if m == n}
        if len(set(own.values())) == 1:
            outcomes[f"n is kept at {n}"] = all(own.values())
        else:
            outcomes |= {f"n is kept at {n} and one looks at {when}": ok for when, ok in own.items()}
    return outcomes


def notes(table: Table) -> list[str]:
    chosen = ", ".join(f"{row.series}: {row.value:g}" for row in table.where("chosen").rows)
    tuning = " and ".join(table.cases("tuning end"))
    grid = "; ".join(f"{name}: {_tried(table, name)}" for name in table.series("tuning end"))
    dofs = [table.curve("degrees of freedom", case, "our-rep")[1] for case in table.cases("test loss")]
    last = ", ".join(f"{values[-1]:.1g}" for values in dofs)
    limit = ", where a sample is the mean to the last bits" if min(values[-1] for values in dofs) > 1e30 else ""
    return [
        f"Steps chosen on {tuning}, reported on {', '.join(table.cases('test loss'))}. {chosen}.",
        f"Grid, with the test loss at the end on {tuning}. {grid}.",
        f"our-rep begins with n = {dofs[0][0]:.0f}, may change it by 5 % an iteration, and ends with {last}{limit}.",
        "beta = step n / 2 for ours, as in section 3.4, also for b. Steps are constant; the paper gives none.",
        "The first three seeds were seen while the experiment was set up, with one seed for tuning. They stay: at the "
        "step that is chosen some of them behave worse than the seeds that were added later.",
    ]


def _tried(table: Table, name: str) -> str:
    """The losses at the end by step, those of all tuning seeds."""
    found: dict[float, list[str]] = {}
    for row in table.where("tuning end", series=name).rows:
        found.setdefault(row.x, []).append(f"{row.value:.0e}")
    return ", ".join(f"step {rate:g} {' and '.join(values)}" for rate, values in found.items())
