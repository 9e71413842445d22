"""What section 5.4 claims, and what we want besides, judged from the table.

Differences are paired over the seeds. Each has its interval of 95 % by Student's t: a claim holds if the whole interval
agrees with it, does not hold if none of it does, and is undecided otherwise.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.stats import t as student

from reproduction.experiment import FAILS, HOLDS, UNDECIDED, WHEN, Array, Table, Verdict, slope

FRAMES = ("k = 4", "k = 16")  # directions of the inputs that follow the gradients
PAPERS = ("Tri-low", *FRAMES)  # the paper's structure, and ours of the same cost
STRUCTURES = (*PAPERS, "dense")
SAMPLED = ("k = 16",)
GAINS = {"k = 4": 0.5, "k = 16": 0.5, "dense": 1.0}  # points over Adam that we want
COST = 1.5  # of Adam's whole iteration: what is below that we call a cost like Adam's
LINEAR = 1.1  # the order in the number of weights up to which a cost is linear
EPOCHS, SECONDS = 0.67, 0.8  # of Adam's, that we want
SOAP, NEAR = 0.3, 0.01  # points; validation loss
ECE = 0.02


class Interval(NamedTuple):
    """A mean over the seeds with its interval of 95 %."""

    mean: float
    low: float
    high: float
    n: int

    def words(self, digits: int, unit: str = "", sign: str = "+") -> str:
        if not math.isfinite(self.mean):
            return "a run failed"
        return f"{self.mean:{sign}.{digits}f}{unit} [{self.low:{sign}.{digits}f}, {self.high:{sign}.{digits}f}]"


def interval(values: Array) -> Interval:
    """mean -+ t s / sqrt(n); of one value, or if one is infinite, everything is possible."""
    n, mean = len(values), float(np.mean(values)) if len(values) else math.nan
    if n < 2 or not np.isfinite(values).all():
        return Interval(mean, -math.inf, math.inf, n)
    half = float(student.ppf(0.975, n - 1) * np.std(values, ddof=1) / math.sqrt(n))
    return Interval(mean, mean - half, mean + half, n)


def by_seed(table: Table, part: str, name: str, kind: str = "mean") -> dict[float, float]:
    """A number at the end of the runs of a method."""
    return {row.x: row.value for row in table.where(part, kind, name).rows}


def last(table: Table, part: str, name: str) -> dict[float, float]:
    """The last value of a curve by seed."""
    return {_seed(case): float(y[-1]) for case in table.cases(part) if len(y := table.curve(part, case, name)[1])}


def _seed(case: str) -> float:
    return float(case.removeprefix("seed "))


def paired(first: dict[float, float], second: dict[float, float]) -> Interval:
    """The difference, first minus second, over the seeds that both have."""
    with np.errstate(invalid="ignore"):
        return interval(np.array([first[seed] - second[seed] for seed in first if seed in second]))


def above(found: Interval, limit: float) -> bool | None:
    """Whether the mean is above a limit: yes, no, or nothing that can be told."""
    return True if found.low > limit else False if found.high < limit else None


def below(found: Interval, limit: float) -> bool | None:
    return None if (answer := above(found, limit)) is None else not answer


def told(claim: str, why: dict[str, str], outcomes: dict[str, bool | None], absent: list[str]) -> Verdict:
    """A verdict from outcomes by circumstance, of which some cannot be told."""
    text = "; ".join([*why.values(), *(f"{name}: not run" for name in absent)])
    good = [name.replace("dense", "the factors are dense") for name, outcome in outcomes.items() if outcome]
    if outcomes and len(good) == len(outcomes):
        return Verdict(claim, HOLDS, text)
    if good:
        return Verdict(claim, WHEN + " or ".join(good), text)
    return Verdict(claim, FAILS if outcomes and None not in outcomes.values() else UNDECIDED, text)


def verdicts(table: Table) -> list[Verdict]:
    return [
        _accuracy(table, "Our updates have a higher test accuracy than Adam.", dict.fromkeys(PAPERS, 0.0)),
        _accuracy(table, "Our goal: by 0.5 points for k = 4 and 16, by 1 for dense factors.", GAINS),
        _like_adam(table),
        _linear(table),
        *_sooner(table),
        _near_soap(table),
        _near_dense(table),
        _posterior_likelihood(table, "the weights at the mean", None),
        _posterior_likelihood(table, "Adam", "Adam"),
        _calibrated(table),
    ]


def _ran(table: Table, structures: tuple[str, ...], *others: str, suffix: str = "") -> tuple[list[str], list[str]]:
    """The structures that were run, and what else was needed and was not."""
    have = set(table.series("test accuracy"))
    names = {structure: f"ours, {structure}{suffix}" for structure in structures}
    absent = [name for name in (*names.values(), *others) if name not in have]
    return [s for s in structures if names[s] in have and have.issuperset(others)], absent


def _close(found: Interval, limit: float = 0.0) -> str:
    """What to add to a difference that may be none, or that may be on either side of a limit."""
    inside = [found.low <= value <= found.high for value in (0.0, limit)]
    words = ["cannot be told apart"] * inside[0] + [f"{limit:g} is in the interval"] * (inside[1] and limit != 0)
    return f" ({', '.join(words)})" if words and math.isfinite(found.mean) else ""


# ---- accuracy and cost ----------------------------------------------------------------------------------------------


def gain(table: Table, name: str, other: str) -> Interval:
    """Points of test accuracy over another method."""
    first, second = (by_seed(table, "test accuracy", one) for one in (name, other))
    return paired({seed: 100 * value for seed, value in first.items()}, {s: 100 * v for s, v in second.items()})


def _accuracy(table: Table, claim: str, wanted: dict[str, float]) -> Verdict:
    have, absent = _ran(table, tuple(wanted), "Adam")
    why, outcomes = {}, {}
    for structure in have:
        found = gain(table, f"ours, {structure}", "Adam")
        outcomes[structure] = above(found, wanted[structure])
        why[structure] = f"{structure}: {found.words(2, ' points')}{_close(found, wanted[structure])}"
    return told(claim, why, outcomes, absent)


def _ratio(table: Table, part: str, name: str, other: str) -> Interval:
    """Geometric mean over the seeds, with its interval."""
    first, second = (by_seed(table, part, one, "") for one in (name, other))
    logs = interval(np.array([math.log(first[seed] / second[seed]) for seed in first if seed in second]))
    with np.errstate(over="ignore"):
        return Interval(*(float(np.exp(value)) for value in logs[:3]), logs.n)


def _like_adam(table: Table) -> Verdict:
    have, absent = _ran(table, PAPERS, "Adam")
    why, outcomes = {}, {}
    for structure in have:
        whole, own = (_ratio(table, part, f"ours, {structure}", "Adam") for part in ("step ms", "optimizer ms"))
        outcomes[structure] = below(whole, COST)
        words = f"whole iteration {whole.words(2, '', '')} times Adam's, its own part {own.mean:.1f}"
        why[structure] = f"{structure}: {words}"
    return told(f"An iteration costs what Adam's does: at most {COST:g} times as much.", why, outcomes, absent)


def _linear(table: Table) -> Verdict:
    """Over networks of growing width; a dense factor costs more for each weight the wider the layer."""
    have = [s for s in PAPERS if f"ours, {s}" in table.series("cost")]
    why, outcomes = {}, {}
    for name in [name for name in ("Adam", *(f"ours, {s}" for s in STRUCTURES)) if name in table.series("cost")]:
        x, y = table.curve("cost", "", name)
        order = slope(x[-3:], y[-3:])
        why[name] = f"{name}: order {order:.2f}, {y[0]:.1f} ms to {y[-1]:.1f} ms"
        if name.removeprefix("ours, ") in have:
            outcomes[name.removeprefix("ours, ")] = order <= LINEAR
    absent = [f"ours, {s}" for s in PAPERS if s not in have]
    return told("The cost of a step is linear in the number of weights.", why, outcomes, absent)


# ---- how soon -------------------------------------------------------------------------------------------------------


def shares(table: Table, name: str, other: str) -> dict[float, tuple[float, float]]:
    """By seed: epochs and seconds to the other's last validation loss, as parts of all of the other's; inf is never."""
    found = {}
    for seed, goal in last(table, "validation loss", other).items():
        case = f"seed {seed:g}"
        epochs, losses = table.curve("validation loss", case, name)
        if not len(losses):
            continue
        reached = np.flatnonzero(losses <= goal)
        of_other = table.curve("seconds", case, other)[1]
        if not reached.size or not math.isfinite(goal):
            found[seed] = (math.inf, math.inf)
            continue
        at = reached[0]
        seconds = table.curve("seconds", case, name)[1][at] / of_other[-1]
        found[seed] = (float(epochs[at] / len(of_other)), float(seconds))
    return found


def _sooner(table: Table) -> list[Verdict]:
    have, absent = _ran(table, ("dense",), "Adam")
    parts = shares(table, "ours, dense", "Adam") if have else {}
    made = []
    for index, (unit, limit) in enumerate((("epochs", EPOCHS), ("seconds", SECONDS))):
        claim = f"Our goal: dense factors reach Adam's last validation loss in {limit:g} of its {unit}."
        values = np.array([pair[index] for pair in parts.values()])
        never = int((~np.isfinite(values)).sum())
        found = interval(values)
        outcome = False if never else below(found, limit)
        words = f"not reached on {never} of {len(values)} seeds" if never else f"{found.words(2, '', '')} of its {unit}"
        made.append(told(claim, {"dense": words} if have else {}, {"dense": outcome} if have else {}, absent))
    return made


# ---- near others ----------------------------------------------------------------------------------------------------


def _near_soap(table: Table) -> Verdict:
    have, absent = _ran(table, STRUCTURES, "SOAP")
    why, outcomes = {}, {}
    for structure in have:
        found = gain(table, f"ours, {structure}", "SOAP")
        outcomes[structure] = above(found, -SOAP)
        why[structure] = f"{structure}: {found.words(2, ' points')}{_close(found, -SOAP)}"
    return told(f"Our goal: a test accuracy at most {SOAP:g} points below SOAP's.", why, outcomes, absent)


def _near_dense(table: Table) -> Verdict:
    have, absent = _ran(table, FRAMES, "ours, dense")
    why, outcomes = {}, {}
    for structure in have:
        names = (f"ours, {structure}", "ours, dense")
        found = paired(*(last(table, "validation loss", name) for name in names))
        outcomes[structure] = below(found, NEAR)
        why[structure] = f"{structure}: {found.words(4)}{_close(found, NEAR)}"
    claim = f"Our goal: k = 4 and 16 end at most {NEAR:g} above the validation loss of dense factors."
    return told(claim, why, outcomes, absent)


# ---- the posterior --------------------------------------------------------------------------------------------------


def _posterior_likelihood(table: Table, what: str, other: str | None) -> Verdict:
    have, absent = _ran(table, SAMPLED, *([other] if other else []), suffix=", sampled")
    why, outcomes = {}, {}
    for structure in have:
        name = f"ours, {structure}, sampled"
        found = paired(by_seed(table, "test NLL", name, "samples"), by_seed(table, "test NLL", other or name))
        outcomes[structure] = below(found, 0.0)
        why[structure] = f"{structure}: difference {found.words(4)}{_close(found)}"
    claim = f"Our goal: predictions with 16 samples of the weights have a test NLL no higher than {what}."
    return told(claim, why, outcomes, absent)


def _calibrated(table: Table) -> Verdict:
    have, absent = _ran(table, SAMPLED, suffix=", sampled")
    why, outcomes = {}, {}
    for structure in have:
        values = by_seed(table, "test ECE", f"ours, {structure}, sampled", "samples").values()
        found = interval(np.array(list(values)))
        outcomes[structure] = below(found, ECE)
        why[structure] = f"{structure}: {found.words(4, '', '')}"
    return told(f"Our goal: their expected calibration error is at most {ECE:g}.", why, outcomes, absent)


# ---- notes ----------------------------------------------------------------------------------------------------------


def notes(table: Table) -> list[str]:
    size = {row.series: round(row.value) for row in table.where("size").rows}
    (network,) = table.where("network").rows
    tried = len({row.case for row in table.where("tuning", series="Adam").rows})
    return [
        f"{table.cases('size')[0]}: {size['train']:,} images for training and {size['valid']:,} for validation, others "
        f"for every seed, {size['test']:,} for the test; {size['epochs']} epochs in batches of {size['batch']}, "
        f"{size['seeds']} seeds. Network: {network.case}, {network.value:,.0f} weights; Kaiming's first weights. The "
        "paper has CIFAR-10 and STL-10, batches of 20 and a network whose widths it does not give.",
        "All minimize the mean cross-entropy plus l2 / 2 times the squared weights; AdamW has decoupled decay instead. "
        "The paper's weight is 0.01, without the loss it belongs to; with the mean it is too strong for this network.",
        "Square brackets are intervals of 95 % (Student's t, paired over the seeds). Cannot be told apart: the "
        "interval has zero in it. Seconds are CPU time on one thread, without validation; ms are of the whole "
        "iteration and of the method's own step.\n\n" + _ends(table),
        f"Settings: {tried} for every method, on one seed that is not reported; chosen is the lowest validation loss "
        "at the end (of predictions with samples where the method has a posterior).\n\n" + _settings(table),
        *(f"{row.series} was skipped: {row.case} is not installed." for row in table.where("skipped").rows),
        *(f"{row.series}, seed {row.x:.0f}: {row.case}." for row in table.where("failed").rows),
    ]


def _ends(table: Table) -> str:
    """A line for every method, and one more for predictions with samples."""
    lines = ["| method | test accuracy, % | over Adam, points | test NLL | ECE | s per epoch | ms, own ms |"]
    lines.append("|" + "---|" * 7)
    for name in table.series("test accuracy"):
        epochs = len(table.curve("seconds", table.cases("seconds")[0], name)[1]) or 1
        per_epoch = np.mean(list(last(table, "seconds", name).values())) / epochs
        ms = [np.mean(list(by_seed(table, part, name, "").values())) for part in ("step ms", "optimizer ms")]
        for kind in ("mean", "samples"):
            if not (found := by_seed(table, "test accuracy", name, kind)):
                continue
            rest = [np.mean(list(by_seed(table, part, name, kind).values())) for part in ("test NLL", "test ECE")]
            over = gain(table, name, "Adam").words(2) if kind == "mean" and name != "Adam" else ""
            times = f"{per_epoch:.1f} | {ms[0]:.1f}, {ms[1]:.1f}" if kind == "mean" else " | "
            title = name if kind == "mean" else f"{name}: 16 samples"
            accuracy = 100 * np.mean(list(found.values()))
            lines.append(f"| {title} | {accuracy:.2f} | {over} | {rest[0]:.4f} | {rest[1]:.4f} | {times} |")
    return "\n".join(lines)


def _settings(table: Table) -> str:
    lines = ["| method | chosen | all, with their validation losses |", "|---|---|---|"]
    for row in table.where("chosen").rows:
        tried = [f"{one.case}: {one.value:.3f}" for one in table.where("tuning", series=row.series).rows]
        edge = " (edge of the rates)" if row.value else ""
        lines.append(f"| {row.series} | {row.case}{edge} | {'; '.join(tried)} |")
    return "\n".join(lines)
