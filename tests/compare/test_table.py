"""The tables: what their cells say, and that they are Markdown."""

import math
import re

import pytest

from esgroup.compare.records import Cost
from esgroup.compare.report import words
from esgroup.compare.report.summary import Overall, Ratio, Row, overall, summarize
from esgroup.compare.report.table import markdown
from tests.compare.test_summary import a_run, failed

INF = math.inf


def cells(text: str, heading: str) -> list[list[str]]:
    """The cells of the table under a heading, its head first, without the rule."""
    part = text.split(f"## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in part.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines[:1] + lines[2:]]


def table_of(runs: list, reference: str = "ours") -> list[list[str]]:
    return cells(markdown(summarize(runs, reference), reference), "Each problem")


def a_row(**fields: object) -> Row:
    (row,) = summarize([a_run()], "ours")
    return row._replace(**fields)  # type: ignore[arg-type]


def test_a_line_has_median_successes_ratio_and_time() -> None:
    runs = [a_run("cma", seed=seed, hit=1000, cpu=0.5, cpu_fun=0.25) for seed in range(5)]
    runs += [a_run(seed=seed, hit=1234, cpu=0.0384, cpu_fun=0.01) for seed in range(5)]
    head, first, second = table_of(runs, "cma")
    assert head == ["problem", "d", "method", "evaluations to target", "reached", "ratio to cma", "CPU per evaluation"]
    assert first == ["bowl", "4", "cma", "**1,000**", "5/5", "1", "250 µs"]
    assert second == ["", "", "ours", "1,234", "5/5", "1.23 [1.23, 1.23]", "23 µs"]


def test_a_target_that_is_never_reached_shows_what_is_left() -> None:
    (_, line) = table_of([a_run(seed=seed, hit=INF) for seed in range(2)])
    assert line[3:6] == [f"- (gap {words.gap(0.5)})", "0/2", "-"]
    (_, line) = table_of([a_run(hit=INF, minimum=math.nan, trajectory=(), best=3.25)])
    assert line[3] == "- (value 3.25)"
    (_, line) = table_of([failed()])
    assert line[3] == "-"


def test_an_interval_may_be_open() -> None:
    runs = [a_run("cma", seed=seed) for seed in range(5)]
    runs += [a_run(seed=seed, hit=100 if seed == 0 else INF, used=100) for seed in range(5)]
    found = summarize(runs, "cma")[1].ratio
    assert found is not None and math.isinf(found.high)
    assert table_of(runs, "cma")[2][5] == words.ratio(found)


def test_the_smallest_median_without_gradients_is_bold() -> None:
    hits = {"a": 300, "b": 200, "newton": 10, "fd": 200, "never": INF}
    costs = {"newton": Cost.GRADIENTS, "fd": Cost.DIFFERENCES}
    runs = [a_run(name, hit=hit, cost=costs.get(name, Cost.VALUES)) for name, hit in hits.items()]
    assert [line[3] for line in table_of(runs, "a")[1:]] == [
        "300",
        "**200**",
        "10",
        "**200**",
        f"- (gap {words.gap(0.5)})",
    ]


def test_nothing_is_bold_where_there_is_nothing_to_compare() -> None:
    assert table_of([a_run()])[1][3] == "100"
    lines = table_of([a_run("a", hit=INF), a_run("b", hit=INF)], "a")[1:]
    assert not any("**" in cell for line in lines for cell in line)


def test_methods_that_count_gradients_or_differences_are_marked_and_the_marks_explained() -> None:
    runs = [a_run("a"), a_run("newton", cost=Cost.GRADIENTS), a_run("fd", cost=Cost.DIFFERENCES)]
    text = markdown(summarize(runs, "a"), "a", overall(runs, "a"))
    for heading, column in (("All problems together", 0), ("Each problem", 2)):
        assert [line[column] for line in cells(text, heading)[1:]] == ["a", "newton¹", "fd²"]
    assert "\n- ¹ uses gradients" in text and "\n- ² uses finite-difference gradients" in text
    assert "¹" not in markdown(summarize(runs[:1], "a"), "a")


def test_all_problems_together_come_first() -> None:
    counts, ours = (Cost.VALUES,), Ratio(0.714, 0.65, 0.79)
    totals = [Overall("cma", counts, Ratio(1, 1, 1), 3, 1000, 1001), Overall("ours", counts, ours, 2, 0, 1001)]
    text = markdown([a_row()], "cma", [*totals, Overall("never", counts, None, 0, 9, 1001)])
    head, *lines = cells(text, "All problems together")
    assert text.startswith("## All problems together\n")
    assert head == ["method", "ratio to cma", "over cases", "targets reached"]
    assert lines[0] == ["cma", "1", "3", "99 % (1,000/1,001)"]  # not all, hence not 100 %
    assert lines[1] == ["ours", "0.71 [0.65, 0.79]", "2", "0 % (0/1,001)"]
    assert "that both solve, 1 run each, with a 95 % bootstrap interval" in text
    assert "A method solves a case if more than half of its runs reach the last target." in text
    assert lines[2][:3] == ["never", "-", "0"]
    assert "All problems" not in markdown([a_row()], "ours")


def test_an_interval_that_includes_1_is_undecided_in_words() -> None:
    runs = [a_run("cma", seed=seed, hit=100 + 40 * seed) for seed in range(5)]
    runs += [a_run(seed=seed, hit=260 - 40 * seed) for seed in range(5)]
    text = markdown(summarize(runs, "cma"), "cma", overall(runs, "cma"))
    for heading, column in (("All problems together", 1), ("Each problem", 5)):
        assert re.fullmatch(r"1\.00 \[0\.\d\d, \d\.\d\d\] undecided", cells(text, heading)[2][column])
    assert text.count("Undecided means that the interval includes 1") == 2


def test_problems_that_are_scaled_are_named_where_numbers_are() -> None:
    rows = [a_row(problem=p, method=m, scaled=s) for p, s in (("a_b", "divided by d"), ("c", "")) for m in ("x", "y")]
    text = markdown(rows, "x")
    assert text.count("those of the function as it was run: a_b is divided by d.") == 2  # in both tables
    assert "as it was run" not in markdown(rows[2:], "x")


def test_a_target_is_named_once_or_for_each_problem() -> None:
    assert "\nTarget: gap 0.1. " in markdown([a_row()], "ours")
    rows = [a_row(), a_row(dim=5, target=3.5, known=False)]
    head, *lines = cells(markdown(rows, "ours"), "Each problem")
    assert head[-1] == "target" and [line[-1] for line in lines] == ["gap 0.1", "f ≤ 3.5"]
    assert "Target:" not in markdown(rows, "ours")


def test_problem_and_dimension_are_named_at_the_head_of_their_block() -> None:
    runs = [a_run(method, dim=dim) for dim in (4, 5) for method in ("a", "b")]
    assert [line[:3] for line in table_of(runs, "a")[1:]] == [
        ["bowl", "4", "a"],
        ["", "", "b"],
        ["bowl", "5", "a"],
        ["", "", "b"],
    ]


def test_messages_are_listed_by_method_each_once() -> None:
    runs = [failed("b", dim=dim, seed=seed) for dim in (4, 5) for seed in (0, 1)]
    runs += [failed("a", message="a | <b> `x`"), a_run("a", seed=1), a_run("c")]
    text = markdown(summarize(runs, "c"), "c").split("## Failed runs\n\n")[1]
    assert text.splitlines() == [
        "- b: `ValueError: bad (2 runs)` in bowl d = 4, bowl d = 5",
        "- a: ``a | <b> `x` (1 run)`` in bowl d = 4",
    ]
    assert "Failed runs" not in markdown(summarize([a_run()], "ours"), "ours")


def test_the_source_is_aligned() -> None:
    runs = [a_run("a", problem="a_long_name_of_a_problem"), a_run("esgroup:heisenberg:k1=4", dim=20, hit=123456)]
    text = markdown(summarize(runs, "a"), "a", overall(runs, "a"))
    for heading in ("All problems together", "Each problem"):
        lines = [line for line in text.split(f"## {heading}\n")[1].split("\n## ")[0].splitlines() if line[:1] == "|"]
        bars = {tuple(i for i, letter in enumerate(line) if letter == "|") for line in lines}
        assert len(lines) >= 4 and len(bars) == 1
    assert re.search(r"^\| -+ \| -+: \| -+ \| -+: \|", text, flags=re.MULTILINE)


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("rotated_ellipsoid", "rotated_ellipsoid"),
        ("_a_", r"\_a\_"),
        ("x|y", r"x\|y"),
        ("<b>*", r"\<b\>\*"),
        ("a\nb", "a b"),
    ],
)
def test_names_are_no_markup(name: str, written: str) -> None:
    line = cells(markdown([a_row(problem=name, method=name)], "ours"), "Each problem")[1]
    assert line[0] == line[2] == written


def test_a_message_keeps_its_backticks() -> None:
    text = markdown([a_row(failures=("`x` ``y``",))], "ours")
    assert "``` `x` ``y`` ```" in text


def test_at_a_glance_problems_go_down_and_methods_across() -> None:
    runs = [a_run("cma", seed=seed, hit=1000) for seed in range(3)]
    runs += [a_run(seed=seed, hit=1234 if seed else INF) for seed in range(3)]
    runs += [a_run("cma", problem="other", hit=7), a_run(problem="other", hit=INF)]
    runs += [a_run("newton", problem="other", hit=2, cost=Cost.GRADIENTS)]
    head, *lines = cells(markdown(summarize(runs, "cma"), "cma"), "Evaluations to the target")
    assert head == ["problem", "d", "cma", "ours", "newton¹"]
    assert lines == [["bowl", "4", "**1,000**", "1,234 (2/3)", "-"], ["other", "4", "**7**", "- (0/1)", "2"]]


def test_a_method_that_counts_differently_is_marked_in_its_cells() -> None:
    runs = [a_run("cma"), a_run(hit=7, cost=Cost.GRADIENTS), a_run("cma", problem="other")]
    runs += [a_run(problem="other", hit=9, cost=Cost.DIFFERENCES)]
    text = markdown(summarize(runs, "cma"), "cma", overall(runs, "cma"))
    head, *lines = cells(text, "Evaluations to the target")
    assert head[3] == "ours" and [line[3] for line in lines] == ["7¹", "**9**²"]
    assert cells(text, "All problems together")[2][0] == "ours¹²"


def test_one_problem_or_one_method_needs_no_glance() -> None:
    for runs in ([a_run("cma"), a_run()], [a_run(), a_run(problem="other")]):
        assert "Evaluations to the target\n" not in markdown(summarize(runs, "ours"), "ours")


def test_in_brief_there_is_one_table_of_the_problems() -> None:
    several = summarize([a_run("cma"), a_run(), a_run("cma", problem="other"), a_run(problem="other")], "cma")
    text = markdown(several, "cma", brief=True)
    assert "## Evaluations to the target" in text and "## Each problem" not in text
    one = summarize([a_run("cma"), failed()], "cma")
    text = markdown(one, "cma", brief=True)
    assert "## Each problem" in text and "## Failed runs" in text
