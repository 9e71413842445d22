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
    assert words.ratio(Ratio(0.71, 0.0, math.inf)) == "0.71 [0, ∞]"
    assert words.ratio(0.71) == "0.71"
    assert words.ratio(None) == words.ratio(math.nan) == "none"


@pytest.mark.parametrize(
    ("ratio", "verdict"),
    [
        (Ratio(0.9, 0.85, 0.99), words.FEWER),
        (Ratio(0.9, 0.80, 1.01), words.EVEN),
        (Ratio(0.5, 0.00, math.inf), words.EVEN),
        (Ratio(1.1, 1.01, 1.20), words.MORE),
        (0.5, words.FEWER),
        (0.95, words.EVEN),
        (1.05, words.EVEN),
        (2.0, words.MORE),
        (None, ""),
        (math.inf, ""),
    ],
)
def test_a_ratio_is_even_if_its_interval_has_1_in_it_or_the_mean_is_close_to_1(ratio, verdict):
    assert words.verdict(ratio) == verdict


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
    said = words.answer(rows, [total("cma", 1.0, 3), total("esgroup", 0.71, 3), total("bfgs", 0.05, 3)], "cma")
    assert said == [
        "esgroup needs on average 0.71 times the evaluations of cma on all 3 problems.",
        "By the interval of each problem it is fewer in 3.",
        "bfgs (0.050) needs fewer evaluations than cma.",
    ]


def test_what_only_one_of_two_solves_is_said():
    rows = [*on("abcd", "esgroup", 710), *on("ab", "cma", 1000), *on("cd", "cma", NEVER)]
    answer = first(rows, [total("esgroup", 0.71, 2), total("cma", 1.0, 2)])
    assert answer == (
        "esgroup needs on average 0.71 times the evaluations of cma on the 2 of 4 problems that both solve; "
        "it solves 4 in all, cma 2."
    )


def test_problems_in_several_dimensions_are_called_cases():
    rows = [row(method, dim=dim) for dim in (5, 10) for method in ("esgroup", "cma")]
    answer = first(rows, [total("esgroup", 1.5, 2), total("cma", 1.0, 2)])
    assert answer == "esgroup needs on average 1.50 times the evaluations of cma on both cases."


def test_one_case_has_no_average():
    answer = words.answer([row("esgroup"), row("cma")], [total("esgroup", 0.5, 1), total("cma", 1.0, 1)], "cma")
    assert answer == ["esgroup needs 0.50 times the evaluations of cma on the problem."]


def test_cases_are_counted_by_their_intervals():
    ratios = {"a": around(0.5), "b": around(1.0), "c": around(2.0), "d": around(0.4), "e": None}
    rows = [row(m, problem=p, ratio=ratios[p] if m == "esgroup" else None) for p in "abcde" for m in ("esgroup", "cma")]
    said = words.answer(rows, [total("esgroup", 0.8, 4), total("cma", 1.0, 5)], "cma")
    assert said[1] == "By the interval of each problem it is fewer in 2, more in 1 and not distinguished in 1."
    assert words.tally("esgroup", rows) == {words.FEWER: 2, words.EVEN: 1, words.MORE: 1}


def test_the_others_follow_in_groups():
    ratios = {"first": 0.5, "a": 0.2, "b": 0.3, "c": 1.0, "d": 3.0, "e": None}
    rows = [row(name) for name in (*ratios, "cma")]
    overall = [total(name, ratio, 0 if ratio is None else 1) for name, ratio in ratios.items()]
    assert words.answer(rows, [*overall, total("cma", 1.0, 1)], "cma")[-1] == (
        "a (0.20) and b (0.30) need fewer evaluations than cma; c (1.00) needs about as many; d (3.00) needs more; "
        "e solves no problem that cma solves."
    )
    assert words.answer(rows, [overall[0], overall[4]], "cma")[-1] == "d (3.00) needs more evaluations than cma."


def test_nobody_solves_anything():
    overall = [total("esgroup"), total("cma", 1.0)]
    rows = [*on("ab", "esgroup", NEVER), *on("ab", "cma", NEVER)]
    assert words.answer(rows, overall, "cma") == ["No method solves any of the 2 problems."]
    assert words.answer(on("a", "esgroup", NEVER) + on("a", "cma", NEVER), overall, "cma") == [
        "No method solves the problem."
    ]


def test_the_reference_solves_nothing():
    rows = [*on("ab", "cma", NEVER), *on("a", "esgroup", 500), *on("b", "esgroup", NEVER)]
    assert first(rows, [total("esgroup"), total("cma", 1.0)]) == (
        "There are no ratios, since the reference, cma, solves none of the 2 problems; "
        "the most are solved by esgroup: 1 of 2 problems."
    )


def test_the_reference_is_missing():
    rows = [*on("ab", "bfgs", 500), *on("ab", "esgroup", 500)]
    assert first(rows, [total("bfgs"), total("esgroup")]) == (
        "There are no ratios, since the reference, cma, was not run; "
        "the most are solved by bfgs and esgroup: both problems."
    )


def test_two_methods_that_solve_nothing_in_common():
    rows = [row(m, 10 if (m == "cma") == (p == "a") else NEVER, problem=p) for p in "ab" for m in ("esgroup", "cma")]
    assert first(rows, [total("esgroup"), total("cma", 1.0, 1)]) == (
        "esgroup solves 1 of 2 problems, cma solves 1 of 2 problems; "
        "there is no problem that both solve, hence no ratio."
    )


def test_one_method_only():
    rows = [*on("ab", "cma", 10), *on("c", "cma", NEVER)]
    assert words.answer(rows, [total("cma", 1.0, 2)], "cma") == ["Only cma was run; it solves 2 of 3 problems."]
    assert first(rows[:1], [total("cma", 1.0, 1)]) == "Only cma was run; it solves the problem."
    assert first(rows[2:], [total("cma", 1.0, 0)]) == "Only cma was run; it does not solve the problem."
    assert first(rows, [total("cma", None, 0, Cost.GRADIENTS)], "other").startswith("Only cma was run")


def test_no_runs():
    assert words.answer([], [], "cma") == ["There are no runs."]
