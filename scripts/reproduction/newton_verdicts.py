"""What section 5.3 claims, judged from the table."""

from __future__ import annotations

import math

import numpy as np

from reproduction.experiment import Table, Verdict, judged

FUNCTIONS = {"rosenbrock": "Rosenbrock", "dixon_price": "Dixon-Price"}
UNITS = {"iterations": "iterations", "gradient-equivalents": "evaluations", "seconds": "CPU ms"}

CLEAR = 0.9  # of the other's number: what is above that is level


def verdicts(table: Table) -> list[Verdict]:
    return [
        _faster(table, "BFGS", "iterations", "Hs-low converges faster than BFGS: fewer iterations."),
        _faster(table, "BFGS", "seconds", "The same in CPU time."),
        _faster(table, "BFGS", "gradient-equivalents", "The same in evaluations of f, g, products and diagonals."),
        _faster(table, "Adam", "iterations", "Hs-low converges faster than Adam: fewer iterations."),
        _faster(table, "Adam", "seconds", "Against Adam the same in CPU time."),
        _against(table, "Hs-low", "Hs-up", "A lower structure is better than an upper one: Hs-low, Hs-up."),
        _against(table, "Tri-low", "Tri-up", "The same of Tri-low and Tri-up."),
        _against(table, "Hs-low", "diagonal", "The Heisenberg structure helps: fewer iterations than the diagonal."),
    ]


def typical(table: Table, part: str, case: str, method: str) -> float:
    """The median over the seeds, those that were not solved being infinite."""
    return float(np.median(table.curve(part, case, method)[1]))


def short(name: str) -> str:
    """How a case is called in a sentence: the function's name once, then its start."""
    function, kind = name.split(", ", 1)
    return f"{FUNCTIONS[function]} from {kind}"


def grouped(outcomes: dict[str, bool]) -> dict[str, bool]:
    """One circumstance for each function and outcome, with all its starts."""
    found: dict[tuple[str, bool], list[str]] = {}
    for case, good in outcomes.items():
        function, kind = case.split(", ", 1)
        found.setdefault((function, good), []).append(kind)
    return {f"{FUNCTIONS[function]} from {'; '.join(kinds)}": good for (function, good), kinds in found.items()}


def _number(value: float, part: str) -> str:
    if not math.isfinite(value):
        return "-"
    return f"{1000 * value:.0f}" if part == "seconds" else f"{value:.0f}"


def _figures(table: Table, part: str, first: str, second: str) -> str:
    """Both medians for every case."""
    words: dict[str, list[str]] = {}
    for case in table.cases(part):
        a, b = (_number(typical(table, part, case, name), part) for name in (first, second))
        function, kind = case.split(", ", 1)
        words.setdefault(FUNCTIONS[function], []).append(f"{kind} {a} : {b}")
    lists = [f"{function} from {', '.join(pairs)}" for function, pairs in words.items()]
    return f"median {UNITS[part]}, {first} : {second} (- is not solved): " + "; ".join(lists)


def _beats(table: Table, part: str, first: str, second: str) -> dict[str, bool]:
    """By case: whether the first is solved and clearly below the second, which may be infinite."""
    return {c: typical(table, part, c, first) < CLEAR * typical(table, part, c, second) for c in table.cases(part)}


def _faster(table: Table, other: str, part: str, claim: str) -> Verdict:
    outcomes = _beats(table, part, "Hs-low", other)
    return judged(claim, _figures(table, part, "Hs-low", other), grouped(outcomes))


def _against(table: Table, first: str, second: str, claim: str) -> Verdict:
    """In iterations."""
    return judged(
        claim, _figures(table, "iterations", first, second), grouped(_beats(table, "iterations", first, second))
    )


# ---- notes ----------------------------------------------------------------------------------------------------------


def notes(table: Table) -> list[str]:
    rates = sorted({row.x for row in table.where("tuning").rows})
    chosen = [f"{short(row.case)} {row.value:g}" for row in table.where("chosen").rows]
    return [
        _moving(table),
        f"Rates of Adam: {', '.join(f'{rate:g}' for rate in rates)}, chosen on other seeds: {', '.join(chosen)}.",
        f"Faster, better and fewer mean a median below {CLEAR:g} times the other's. "
        "An evaluation is a value, a gradient, a product with the Hessian or its analytic diagonal, one each; without "
        "an analytic diagonal ours would need up to p more products per iteration. Adam's values are not counted.",
        "Medians: solved runs, iterations / evaluations / CPU ms, or the median of f at the end.\n\n" + _all(table),
    ]


def _moving(table: Table) -> str:
    """The moving block, which is not in the paper."""
    cases = table.cases("iterations")
    runs = np.concatenate([table.curve("iterations", case, "moving block")[1] for case in cases])
    less = zip(UNITS, ("fewer iterations", "fewer evaluations", "less CPU time"), strict=True)
    words = [f"{word} in {sum(_beats(table, part, 'moving block', 'BFGS').values())}" for part, word in less]
    solved = f"{np.isfinite(runs).sum()} of {len(runs)} runs solved"
    return (
        f"The moving block of `minimize_newton` (its default, not in the paper): {solved}; against BFGS, of "
        f"{len(cases)} cases, {', '.join(words)}."
    )


def _all(table: Table) -> str:
    names = table.series("iterations")
    lines = ["| | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    for case in table.cases("iterations"):
        lines.append(f"| {short(case)} | " + " | ".join(_entry(table, case, name) for name in names) + " |")
    return "\n".join(lines)


def _entry(table: Table, case: str, name: str) -> str:
    values = {part: table.curve(part, case, name)[1] for part in UNITS}
    solved = np.isfinite(values["iterations"])
    count = f"{solved.sum()} of {len(solved)}"
    if not solved.any():
        return f"{count}, f = {np.median(table.curve('end', case, name)[1]):.2g}"
    medians = (_number(float(np.median(value[solved])), part) for part, value in values.items())
    return f"{count}, {' / '.join(medians)}"
