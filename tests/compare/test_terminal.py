"""The tables on a terminal: the same numbers as in Markdown, in as many columns as there are."""

import io
import re

import pytest
from rich.console import Console

from esgroup.compare.report import table, terminal
from esgroup.compare.report.summary import overall, summarize
from tests.compare.samples import failure, run

METHODS = ("esgroup", "esgroup:heisenberg:k1=4,k2=4", "cma", "bfgs-fd", "a|b*c", "nelder-mead")


def markdown() -> str:
    runs = [
        run(method=method, problem=problem, dim=dim, seed=seed)
        for method in METHODS
        for problem in ("rosenbrock", "rotated_ellipsoid")
        for dim in (4, 10)
        for seed in range(2)
    ]
    runs.append(failure("the `rig` | is *broken*", seed=7))
    return table.markdown(summarize(runs, "cma"), "cma", overall(runs, "cma"), brief=True)


def shown(width: int, **options: object) -> str:
    file = io.StringIO()
    terminal.show(markdown(), Console(width=width, file=file, **options))  # type: ignore[arg-type]
    return file.getvalue()


def numbers(text: str) -> set[str]:
    return set(re.findall(r"(?<![\w.=])\d[\d,.]*", text))


@pytest.mark.parametrize("width", [50, 80, 120, 200])
def test_nothing_is_wider_than_the_terminal_and_nothing_is_cut(width: int) -> None:
    text = shown(width)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    assert numbers(text) == numbers(markdown().replace("\\", ""))


def test_there_is_no_markdown_left() -> None:
    text = shown(80)
    assert not re.search(r"\*\*|^\||^#|\\|``", text, flags=re.MULTILINE)
    assert "a|b*c" in text and "the `rig` | is *broken*" in text
    assert "All problems together\n" in text and "Evaluations to the target\n" in text


def test_a_table_in_parts_names_its_lines_in_each_of_them() -> None:
    heads = [line for line in shown(50).splitlines() if line.startswith("problem ")]
    assert len(heads) > 1 and all(head.split()[1] == "d" for head in heads)
    assert sum(line.count("nelder-mead") for line in heads) == 1
    assert len([line for line in shown(200).splitlines() if line.startswith("problem ")]) == 1


def test_bold_is_bold_and_in_color_on_a_terminal_that_has_colors() -> None:
    text = shown(120, force_terminal=True, color_system="standard")
    best = re.search(r"\*\*([\d,]+)\*\*", markdown())
    assert best is not None and re.search(rf"\x1b\[1;32m{best[1]}\x1b\[0m", text)


@pytest.mark.parametrize(
    ("source", "plain"),
    [
        (r"x\_y \| z\\", r"x_y | z" + "\\"),
        ("**1,234** (4/5)", "1,234 (4/5)"),
        ("a ``b `c` \\d`` e", "a b `c` \\d e"),
        ("2 * 3", "2 * 3"),
    ],
)
def test_markup_within_lines(source: str, plain: str) -> None:
    assert terminal.inline(source).plain == plain
