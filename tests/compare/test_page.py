"""The page as it is written: its structure, what is in it, and what must not be."""

import base64
import hashlib
import itertools
import math
import re
from html.parser import HTMLParser
from importlib.resources import files

import pytest

from esgroup.compare.report.page import Picture
from esgroup.compare.report.summary import Ratio
from tests.compare.stand_ins import ABOUT, NASTY, NEVER, PICTURES, SVG, around, row, sample, total


class Element:
    """An element with its attributes, its children and its text."""

    def __init__(self, name, attributes):
        self.name, self.attributes, self.children = name, dict(attributes), []

    @property
    def text(self):
        return "".join(child if isinstance(child, str) else child.text for child in self.children)

    def all(self, *names):
        for child in self.children:
            if isinstance(child, Element):
                if not names or child.name in names:
                    yield child
                yield from child.all(*names)


class Reader(HTMLParser):
    """Elements as a tree; every element must be closed by its own tag."""

    EMPTY = ("meta", "link", "wbr")

    def __init__(self, text):
        super().__init__()
        self.open = [Element("", [])]
        self.feed(text)
        self.close()
        assert [element.name for element in self.open] == [""], "elements that are not closed"

    def handle_starttag(self, tag, attrs):
        assert len(attrs) == len(dict(attrs)), f"an attribute twice: {tag} {attrs}"
        self.handle_startendtag(tag, attrs)
        if tag not in self.EMPTY:
            self.open.append(self.open[-1].children[-1])

    def handle_startendtag(self, tag, attrs):
        self.open[-1].children.append(Element(tag, attrs))

    def handle_endtag(self, tag):
        assert self.open.pop().name == tag

    def handle_data(self, data):
        self.open[-1].children.append(data)


def read(text):
    return Reader(text).open[0]


def table_cells(tree, table):
    """The texts of a table, line by line, spaces made plain."""
    lines = list(list(tree.all("table"))[table].all("tr"))
    return [[" ".join(cell.text.split()) for cell in line.all("th", "td")] for line in lines]


def test_every_element_is_closed_and_headings_are_in_order():
    tree = read(sample())
    levels = [int(element.name[1]) for element in tree.all("h1", "h2", "h3", "h4")]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    assert next(tree.all("html")).attributes["lang"] == "en"
    assert (
        "width=device-width"
        in next(m for m in tree.all("meta") if m.attributes.get("name") == "viewport").attributes["content"]
    )


def test_every_figure_has_alternative_text_and_a_caption():
    figures = list(read(sample()).all("figure"))
    images = [[e for e in figure.all("div") if e.attributes.get("role") == "img"] for figure in figures]
    assert [image.attributes["aria-label"] for (image,) in images] == [picture.alt for picture in PICTURES]
    assert all(picture.title in next(f.all("figcaption")).text for f, picture in zip(figures, PICTURES, strict=True))
    assert all(len(list(image.all("svg"))) == 1 for (image,) in images)


def test_every_table_has_a_caption_and_heads_with_a_scope():
    for table in read(sample()).all("table"):
        assert next(table.all("caption")).text.strip()
        assert all(head.attributes["scope"] in ("col", "row") for head in table.all("th"))
        lines = [list(line.all("th", "td")) for line in table.all("tr")]
        assert {len(line) for line in lines} == {len(lines[0])}
        assert all([cell.name for cell in line].count("th") == 1 for line in lines[1:])


def test_nothing_is_fetched_from_anywhere():
    text = sample()
    for element in read(text).all():
        for name in ("src", "href", "srcset", "action", "data", "xlink:href"):
            assert element.attributes.get(name, "#").startswith(("#", "data:,")), (element.name, element.attributes)
        assert element.name not in ("iframe", "object", "embed", "base", "img")
    assert "@import" not in text
    assert re.findall(r"url\((?!#)", text) == []


def test_the_policy_allows_the_script_of_the_page_and_no_other():
    tree = read(sample())
    (script,) = tree.all("script")
    (policy,) = (e for e in tree.all("meta") if e.attributes.get("http-equiv") == "Content-Security-Policy")
    digest = base64.b64encode(hashlib.sha256(script.text.encode()).digest()).decode()
    directives = dict(part.split(" ", 1) for part in policy.attributes["content"].split("; "))
    assert directives["script-src"] == f"'sha256-{digest}'" and directives["default-src"] == "'none'"


def test_names_within_figures_are_used_once_and_still_found():
    text = sample()
    names = [element.attributes["id"] for element in read(text).all() if "id" in element.attributes]
    assert len(names) == len(set(names))
    assert set(re.findall(r"url\(#([^)]*)\)", text)) == {"figure1-clip", "figure2-clip"} <= set(names)
    links = {e.attributes["href"][1:] for e in read(text).all("a")}
    assert links and links <= set(names)
    assert "<?xml" not in text and "svg11.dtd" not in text


def test_texts_of_others_are_escaped_everywhere():
    rows = [row(NASTY, problem=NASTY, failures=(NASTY,)), row("cma", problem=NASTY)]
    about = ABOUT._replace(command=NASTY, versions={NASTY: NASTY}, settings={NASTY: NASTY}, date=NASTY, cpu=NASTY)
    tree = read(
        sample(
            title=NASTY,
            rows=rows,
            overall=[total(NASTY, 0.5, 1), total("cma", 1.0, 1)],
            about=about,
            pictures=[Picture(NASTY, NASTY, SVG)],
        )
    )
    assert len(list(tree.all("script"))) == 1
    assert next(tree.all("h1")).text == NASTY
    assert [element.text for element in tree.all("pre")] == [NASTY, NASTY]
    assert next(e for e in tree.all("div") if e.attributes.get("role") == "img").attributes["aria-label"] == NASTY


def test_a_message_is_shown_once_with_all_that_it_came_from():
    rows = [row(m, problem=p, failures=("it broke (1 run)",)) for p in "ab" for m in ("esgroup", "cma")]
    items = [" ".join(item.text.split()) for item in read(sample(rows=rows)).all("li")]
    assert items == ["esgroup on a (5), b (5) it broke (1 run)", "cma on a (5), b (5) it broke (1 run)"]


def test_control_characters_do_not_reach_the_page():
    text = sample(rows=[row("cma", failures=("\x1b[31mred\x00 \ud800 two\nlines",))])
    assert "�[31mred� � two\nlines" in text
    assert text.encode("utf-8")


def test_the_command_is_there_to_the_letter():
    (command,) = (e for e in read(sample()).all("pre") if e.attributes.get("id") == "command")
    assert command.text == ABOUT.command


def test_the_same_arguments_give_the_same_bytes():
    assert sample() == sample()


def test_the_smallest_numbers_of_each_case_are_bold_and_called_smallest():
    (*_, table) = read(sample()).all("table")
    marked = [
        (line.attributes["data-method"], [b.text for b in line.all("b")])
        for line in table.all("tr")
        if "data-method" in line.attributes
    ]
    assert [entry for entry in marked if entry[1]] == [("esgroup", ["90", "90"])] * 3  # bfgs, with gradients, is not
    assert table.text.count(" smallest\n") == 6


def test_the_last_gap_is_marked_only_where_no_method_reaches_the_target():
    def bold(*rows):
        return [b.text for b in read(sample(rows=rows)).all("b")]

    assert bold(row("a", NEVER, best=0.5), row("b", NEVER, best=0.25)) == ["0.25"]
    assert bold(row("a", NEVER, best=0.5), row("b", 10, best=0.25)) == ["10", "10"]
    assert bold(row("a", NEVER, best=math.inf), row("b", NEVER, best=math.inf)) == []
    assert bold(row("a", 10)) == []
    assert bold(row("a", 10), row("b", 10)) == ["10", "10", "10", "10"]


def test_a_row_says_everything():
    (_, line) = table_cells(read(sample(rows=[row("esgroup", 1234.0, ratio=Ratio(0.71, 0.65, 0.79), solved=3)])), 1)
    assert line == [
        "sphere",
        "5",
        "esgroupsphere, d = 5",
        "3 of 5",
        "1,234",
        "1,234",
        "↓ 0.71 [0.65, 0.79] fewer",
        "9.0e-9",
        "23 µs",
        "1.4 ms",
    ]


def test_ratios_are_told_apart_without_color():
    ratios = {"a": around(0.5), "b": around(1.0), "c": around(2.0), "d": None, "cma": None}
    lines = table_cells(read(sample(rows=[row(method, ratio=ratio) for method, ratio in ratios.items()])), 1)
    assert [line[6] for line in lines[1:]] == [
        "↓ 0.50 [0.45, 0.55] fewer",
        "? 1.00 [0.91, 1.10] undecided",
        "↑ 2.00 [1.82, 2.20] more",
        "none",
        "reference",
    ]


def test_all_problems_together_are_a_table():
    lines = table_cells(read(sample()), 0)
    assert lines[1] == ["cma", "reference", "", "", "", "3 of 3", "20 of 25"]
    tally = "↓ {} fewer? 0 undecided↑ 0 more"
    ratio, both = "↓ 0.090 [0.082, 0.099] fewer", "3 of 3 5 runs each"
    assert lines[2] == ["esgroup", ratio, "", tally.format(3), both, "3 of 3", "20 of 25"]
    assert lines[4] == ["lost", "none", "", tally.format(0), "0 of 3", "0 of 3", "20 of 25"]


def test_the_interval_is_drawn_and_cut_off_at_the_ends_of_the_axis():
    totals = [total("cma", 1.0, 3), total("esgroup", Ratio(0.5, 0.25, math.inf), 3)]
    (bar,) = read(sample(rows=[row("esgroup"), row("cma")], overall=totals)).all("s")
    assert bar.attributes["style"] == "left:0.0%;right:0.0%"  # 0.25 is beyond the axis, which ends at 1/2 and 2


def test_what_solves_means_and_what_is_scaled_is_said_before_the_numbers():
    rows = [row(m, problem="valley", scaled="divided by d") for m in ("esgroup", "cma")]
    tree = read(sample(rows=rows))
    header = " ".join(next(tree.all("header")).text.split())
    assert "A method solves a problem if more than half of its runs reach the last target (gap 1e-8)" in header
    assert "valley is divided by d, and so are its gaps." in header
    assert "5 runs each, 1,050 runs in all" in header
    assert table_cells(tree, 1)[1][:3] == ["valley divided by d", "5", "esgroupvalley, d = 5, divided by d"]
    assert "valley is divided by d." in " ".join(list(tree.all("caption"))[1].text.split())
    assert "is divided" not in read(sample()).text


def test_targets_have_a_column_where_they_differ():
    def heads(*rows):
        return table_cells(read(sample(rows=rows)), 1)[0]

    value = row("cma", problem="rod", known=False, target=-2.5, best=-2.25)
    assert "Target" not in heads(row("cma")) and "Last gap" in heads(row("cma"))
    assert "Target" not in heads(value) and "Last value" in heads(value)
    assert "Target" in heads(row("cma"), value) and "Last gap or value" in heads(row("cma"), value)
    assert table_cells(read(sample(rows=[row("cma"), value])), 1)[2][3:8:4] == ["f ≤ -2.5", "reference"]
    assert "The target is f ≤ -2.5." in read(sample(rows=[value])).text


@pytest.mark.parametrize(
    "changes",
    [
        {
            "rows": [],
            "overall": [],
            "pictures": [],
            "about": ABOUT._replace(runs=0, failures=0, versions={}, settings={}),
        },
        {"rows": [row("cma", NEVER, cpu=math.nan, best=math.inf, runs=0)], "overall": [total("cma", 1.0)]},
        {"reference": "nobody"},
        {"pictures": [Picture("small", "no size", "<svg></svg>")]},
    ],
)
def test_there_is_a_page_of_anything(changes):
    tree = read(sample(**changes))
    assert next(tree.all("h1")).text == "A comparison"
    assert not re.search(r"\b(nan|inf|None|Undefined)\b", next(tree.all("main")).text)


def test_the_template_is_part_of_the_package():
    assert files("esgroup.compare.report").joinpath("page.html.j2").is_file()
