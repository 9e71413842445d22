"""Numbers as they are written, and the answer in words: it must be true whatever happened."""

import math

import pytest

from esgroup.compare.records import Cost
from esgroup.compare.report import words
from esgroup.compare.report.summary import Ratio
from tests.compare.stand_ins import NEVER, around, row, total

# ---- numbers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "text"),
    [(1, "1"), (1234, "1,234"), (1234.4, "1,234"), (12345678, "12,345,678"), (math.inf, "never")],
)
def test_costs_are_whole_numbers_or_never(value, text):
    assert words.cost(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.71, "0.71"),
        (0.714, "0.71"),
        (0.0472, "0.047"),
        (0.05, "0.050"),
        (4.386, "4.39"),
        (12.34, "12.3"),
        (123.45, "123"),
        (1234.5, "1,234"),
        (0.000012, "1.2e-5"),
        (0.0, "0"),
        (math.inf, "∞"),
    ],
)
def test_factors_have_two_digits_or_more(value, text):
    assert words.factor(value) == text


def test_a_ratio_is_written_with_its_interval():
    assert words.ratio(Ratio(0.71, 0.65, 0.79)) == "0.71 [0.65, 0.79]"
    assert words.ratio(Ratio(0.71, 0.0, 0.79)) == "0.71 [0, 0.79]"
    assert words.ratio(Ratio(0.71, 0.65, math.inf)) == "0.71 [0.65, ∞]"
    assert words.ratio(Ratio(0.71, 0.0, math.inf)) == "0.71 [no interval]"
    assert words.ratio(None) == words.ratio(around(math.nan)) == "none"


@pytest.mark.parametrize(
    ("ratio", "verdict"),
    [
        (Ratio(0.9, 0.85, 0.99), words.FEWER),
        (Ratio(0.9, 0.80, 1.01), words.UNDECIDED),
        (Ratio(0.5, 0.00, math.inf), words.UNDECIDED),
        (Ratio(1.1, 1.01, 1.20), words.MORE),
        (Ratio(1.0, 1.00, 1.00), words.UNDECIDED),
        (None, ""),
        (Ratio(math.inf, 1.0, math.inf), ""),
    ],
)
def test_a_ratio_is_undecided_if_its_interval_includes_1_or_there_is_none(ratio, verdict):
    assert words.verdict(ratio) == verdict


def test_a_ratio_that_is_undecided_says_so():
    assert words.judged(Ratio(0.95, 0.8, 1.12)) == "0.95 [0.80, 1.12] undecided"
    assert words.judged(Ratio(0.71, 0.65, 0.79)) == "0.71 [0.65, 0.79]"
    assert words.judged(Ratio(0.71, 0.0, math.inf)) == "0.71 [no interval]"
    assert words.judged(None) == "none"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (2.3e-5, "23 µs"),
        (1.44e-3, "1.4 ms"),
        (999.7e-6, "1.0 ms"),
        (0.25, "250 ms"),
        (3.0, "3.0 s"),
        (4200.0, "4,200 s"),
        (5e-10, "0.5 ns"),
        (-3.8e-6, "-3.8 µs"),
        (0.0, "0 s"),
        (math.nan, "not known"),
    ],
)
def test_seconds_have_two_digits_and_a_unit(value, text):
    assert words.seconds(value) == text


def test_gaps_values_and_targets_are_short():
    gaps = {1.23e-8: "1.2e-8", 0.0: "0", 0.5: "0.50", 5.0: "5.0", 1234.0: "1.2e+3", math.inf: "no value"}
    assert [words.gap(value) for value in gaps] == list(gaps.values())
    assert [words.level(value) for value in (-3.141592, 1e-9, math.inf)] == ["-3.1416", "1e-9", "no value"]
    assert words.target(1e-8, True) == "gap 1e-8"
    assert words.target(-2.5, False) == "f ≤ -2.5"


# ---- the answer -----------------------------------------------------------------------------------------------------


def first(rows, overall, reference="cma"):
    return words.answer(rows, overall, reference)[0]


def on(problems, method, expected, ratio=None):
    return [row(method, expected, problem=problem, ratio=ratio) for problem in problems]


def test_the_answer_is_about_the_first_method_that_is_not_the_reference():
    rows = [*on("abc", "cma", 1000), *on("abc", "esgroup", 710, around(0.71)), *on("abc", "bfgs", 50, around(0.05))]
    bfgs = total("bfgs", 0.05, 3, (Cost.GRADIENTS,))
    assert words.answer(rows, [total("cma", 1.0, 3), total("esgroup", 0.71, 3), bfgs], "cma") == [
        "esgroup needs fewer evaluations than cma: 0.71 [0.65, 0.78] times as many, by the geometric mean over all 3 "
        "problems, 5 runs each.",
        "Problem by problem, by their intervals: fewer in 3.",
        "bfgs (0.050 [0.045, 0.055], 3 problems, with gradients) needs fewer evaluations than cma.",
    ]


def test_an_interval_that_includes_1_is_no_proof_of_equality():
    rows = [*on("ab", "cma", 1000), *on("ab", "esgroup", 950, around(0.95))]
    assert words.answer(rows, [total("cma", 1.0, 2), total("esgroup", 0.95, 2)], "cma") == [
        "These runs do not tell esgroup and cma apart: esgroup needs 0.95 [0.86, 1.04] times as many evaluations, by "
        "the geometric mean over both problems, 5 runs each.",
        "The interval includes 1: either may need fewer. This does not show that they are equal.",
        "Problem by problem, by their intervals: undecided in 2.",
    ]


def test_too_few_runs_for_an_interval_are_named():
    rows = [row(m, runs=runs, solved=runs) for m, runs in (("cma", 4), ("esgroup", 3))]
    lead = total("esgroup", Ratio(0.1, 0.0, math.inf), 1)
    assert words.answer(rows, [total("cma", 1.0, 1), lead], "cma") == [
        "In these runs esgroup needs 0.10 [no interval] times as many evaluations as cma, on the problem, 3 to 4 runs "
        "each.",
        "An interval needs 5 runs: the difference may be due to chance.",
    ]
    rows = [one._replace(runs=5, solved=5) for one in rows]
    said = words.answer(rows, [total("cma", 1.0, 1), lead, lead._replace(method="b")], "cma")
    assert said[1] == "These runs do not bound the ratio: the difference may be due to chance."
    assert said[2] == "For b (0.10 [no interval], 1 problem) these runs do not show whether it needs fewer than cma."


def test_what_only_one_of_two_solves_is_said():
    rows = [*on("abcd", "esgroup", 710), *on("ab", "cma", 1000), *on("cd", "cma", NEVER)]
    first, last = words.answer(rows, [total("esgroup", 0.71, 2), total("cma", 1.0, 2)], "cma")
    assert first == (
        "esgroup needs fewer evaluations than cma: 0.71 [0.65, 0.78] times as many, by the geometric mean over the 2 "
        "of 4 problems that both solve, 5 runs each."
    )
    assert last == "esgroup solves all 4 problems, cma solves 2 of 4 problems."


def test_problems_in_several_dimensions_are_called_cases():
    rows = [row(method, dim=dim) for dim in (5, 10) for method in ("esgroup", "cma")]
    answer = first(rows, [total("esgroup", 1.5, 2), total("cma", 1.0, 2)])
    assert answer == (
        "esgroup needs more evaluations than cma: 1.50 [1.36, 1.65] times as many, by the geometric mean over both "
        "cases, 5 runs each."
    )


def test_one_case_has_no_average():
    answer = words.answer([row("esgroup"), row("cma")], [total("esgroup", 0.5, 1), total("cma", 1.0, 1)], "cma")
    assert answer == [
        "esgroup needs fewer evaluations than cma: 0.50 [0.45, 0.55] times as many, on the problem, 5 runs each."
    ]


def test_to_solve_is_to_have_a_median_and_the_page_says_so():
    half = row("cma", median=NEVER, expected=2000.0, runs=4, solved=2)  # a ratio exists, a median does not
    assert words.solved([half, row("esgroup")]) == {"cma": 0, "esgroup": 1}
    assert words.solved([row("cma", runs=5, solved=3)]) == {"cma": 1}
    assert words.meaning_of_solves([half]) == (
        "A method solves a problem if more than half of its runs reach the last target (gap 1e-8), so that their "
        "median exists."
    )
    two = [half, row("cma", dim=6, target=1e-3)]
    assert words.meaning_of_solves(two).startswith(
        "A method solves a case if more than half of its runs reach its last"
    )


def test_cases_are_counted_by_their_intervals():
    ratios = {"a": around(0.5), "b": around(1.0), "c": around(2.0), "d": around(0.4), "e": None}
    rows = [row(m, problem=p, ratio=ratios[p] if m == "esgroup" else None) for p in "abcde" for m in ("esgroup", "cma")]
    said = words.answer(rows, [total("esgroup", 0.8, 4), total("cma", 1.0, 5)], "cma")
    assert said[1] == "Problem by problem, by their intervals: fewer in 2, more in 1 and undecided in 1."
    assert words.tally("esgroup", "cma", rows) == {words.FEWER: 2, words.UNDECIDED: 1, words.MORE: 1}


def test_only_what_both_solve_is_counted():
    rows = [row("esgroup", problem=p, ratio=around(0.5)) for p in "abc"]
    rows += [row("cma", problem="a"), row("cma", problem="b", median=NEVER, solved=2)]
    assert words.tally("esgroup", "cma", rows) == {words.FEWER: 1, words.UNDECIDED: 0, words.MORE: 0}


def test_the_others_follow_in_groups():
    ratios = {"first": 0.5, "a": 0.2, "b": 0.3, "c": 1.0, "d": 3.0, "e": None}
    rows = [row(name) for name in (*ratios, "cma")]
    overall = [total(name, ratio, 0 if ratio is None else 1) for name, ratio in ratios.items()]
    assert words.answer(rows, [*overall, total("cma", 1.0, 1)], "cma")[-1] == (
        "a (0.20 [0.18, 0.22], 1 problem) and b (0.30 [0.27, 0.33], 1 problem) need fewer evaluations than cma; "
        "d (3.00 [2.73, 3.30], 1 problem) needs more; c (1.00 [0.91, 1.10], 1 problem) cannot be told apart from cma "
        "by these runs; e solves no problem that cma solves."
    )
    assert words.answer(rows, [overall[0], overall[4]], "cma")[-1] == (
        "d (3.00 [2.73, 3.30], 1 problem) needs more evaluations than cma."
    )


def test_nobody_solves_anything():
    overall = [total("esgroup"), total("cma", 1.0)]
    rows = [*on("ab", "esgroup", NEVER), *on("ab", "cma", NEVER)]
    assert words.answer(rows, overall, "cma") == ["No method solves any of the 2 problems (5 runs each)."]
    assert words.answer(on("a", "esgroup", NEVER) + on("a", "cma", NEVER), overall, "cma") == [
        "No method solves the problem (5 runs each)."
    ]


def test_the_reference_solves_nothing():
    rows = [*on("ab", "cma", NEVER), *on("a", "esgroup", 500), *on("b", "esgroup", NEVER)]
    assert first(rows, [total("esgroup"), total("cma", 1.0)]) == (
        "There are no ratios, since the reference, cma, solves none of the 2 problems; "
        "the most are solved by esgroup: 1 of 2 problems (5 runs each)."
    )


def test_the_reference_is_missing():
    rows = [*on("ab", "bfgs", 500), *on("ab", "esgroup", 500)]
    assert first(rows, [total("bfgs"), total("esgroup")]) == (
        "There are no ratios, since the reference, cma, was not run; "
        "the most are solved by bfgs and esgroup: both problems (5 runs each)."
    )


def test_two_methods_that_solve_nothing_in_common():
    rows = [row(m, 10 if (m == "cma") == (p == "a") else NEVER, problem=p) for p in "ab" for m in ("esgroup", "cma")]
    assert first(rows, [total("esgroup"), total("cma", 1.0, 1)]) == (
        "esgroup solves 1 of 2 problems, cma solves 1 of 2 problems (5 runs each); "
        "there is no problem that both solve, hence no ratio."
    )


def test_one_method_only():
    rows = [*on("ab", "cma", 10), *on("c", "cma", NEVER)]
    assert words.answer(rows, [total("cma", 1.0, 2)], "cma") == [
        "Only cma was run; it solves 2 of 3 problems (5 runs each)."
    ]
    assert first(rows[:1], [total("cma", 1.0, 1)]) == "Only cma was run; it solves the problem (5 runs each)."
    assert first(rows[2:], [total("cma", 1.0, 0)]) == "Only cma was run; it does not solve the problem (5 runs each)."
    assert first(rows, [total("cma", None, 0, (Cost.GRADIENTS,))], "other").startswith("Only cma was run")


def test_no_runs():
    assert words.answer([], [], "cma") == ["There are no runs."]
