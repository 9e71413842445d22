"""Histories that mean harm: no word of theirs becomes markup, and `plot` and `watch` refuse them in one line."""

import base64
import copy
import hashlib
import itertools
import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from esgroup.command import cli, watch
from esgroup.command.watch_page import Moment, page
from esgroup.running.follow import Followed
from tests.running.damaged_histories import GENERATIONS, HEADER, damaged, text

HOSTILE = (
    """x"' onload=owned() ><script>owned()</script><img src=x onerror="owned()"><!--</title></style>&lt;$page{0}"""
)


class Markup(HTMLParser):
    """The elements of a page with the names of their attributes, its comments and its scripts: not its words."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.parts: list[object] = []
        self.classes: set[str | None] = set()
        self.policy = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.parts.append((tag, [name for name, _ in attrs]))
        self.classes.add(dict(attrs).get("class"))
        if dict(attrs).get("http-equiv") == "Content-Security-Policy":
            self.policy = str(dict(attrs)["content"])

    def handle_endtag(self, tag: str) -> None:
        self.parts.append(tag)

    def handle_comment(self, data: str) -> None:
        self.parts.append(("comment", data))


def written(path: Path, *lines: dict[str, Any]) -> str:
    path.write_bytes(text(*lines))
    watch.watch(path, Path("page.html"), once=True, say=lambda line: None)
    return Path("page.html").read_text(encoding="utf-8")


def places(entry: Any) -> Iterator[tuple[Any, ...]]:
    """The ways to all values in dicts and lists, themselves included."""
    yield ()
    if isinstance(entry, (dict, list)):
        for key, part in entry.items() if isinstance(entry, dict) else enumerate(entry):
            for rest in places(part):
                yield (key, *rest)


PLACES = [place for place in places([HEADER, *GENERATIONS]) if len(place) > 1]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("line", range(len(GENERATIONS) + 1))
def test_no_word_of_a_history_becomes_markup_whatever_entry_it_stands_in(line: int) -> None:
    plain = Markup(written(Path("run.jsonl"), HEADER, *GENERATIONS))
    shown = 0
    for _, *way, key in (place for place in PLACES if place[0] == line):
        lines: list[Any] = copy.deepcopy([HEADER, *GENERATIONS])
        entry = lines[line]
        for step in way:
            entry = entry[step]
        entry[key] = HOSTILE
        try:
            found = Markup(written(Path("run.jsonl"), *lines))
        except ValueError as error:
            assert re.search(rf"run\.jsonl .*(line {line + 1} |history format)", str(error)), (way, key)
            continue
        assert (found.parts, found.classes, found.policy) == (plain.parts, plain.classes, plain.policy), (way, key)
        shown += 1
    assert shown == {0: 8, 4: 2}.get(line, 0)  # problem, names, structure and versions; how and message


@pytest.mark.parametrize("state", ["waiting", "running", "quiet", "ended", "left"])
def test_no_word_of_a_history_becomes_markup_in_any_state_of_the_page(state: Any) -> None:
    def made(word: str) -> Markup:
        header = HEADER | {"problem": word, "structure": word, "names": [word, word]}
        Path("run.jsonl").write_bytes(text(header, GENERATIONS[0] | {"end": {"how": word, "message": word}}))
        run = Followed("run.jsonl")
        run.read_on()
        return Markup(page(run, Moment(state, 1e9, 1e9, 5.0, f"{word}.jsonl")))

    hostile, plain = made(HOSTILE), made("word")
    assert (hostile.parts, hostile.classes, hostile.policy) == (plain.parts, plain.classes, plain.policy)


@pytest.mark.skipif(sys.platform == "win32", reason="file names there have fewer letters")
@pytest.mark.parametrize("name", ["<img src=x onerror=owned()>.jsonl", "\udcff\x1b.jsonl"])
def test_the_name_of_a_history_does_not_become_markup_either(name: str) -> None:
    lines = HEADER | {"problem": None}, *GENERATIONS
    assert Markup(written(Path(name), *lines)).parts == Markup(written(Path("run.jsonl"), *lines)).parts


def test_the_policy_allows_the_script_of_the_page_and_no_other() -> None:
    made = written(Path("run.jsonl"), HEADER, *GENERATIONS)
    (script,) = re.findall(r"<script>(.*?)</script>", made, flags=re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    directives = dict(part.split(" ", 1) for part in Markup(made).policy.split("; "))
    assert directives["script-src"] == f"'sha256-{digest}'"
    assert directives["default-src"] == "'none'" and directives["frame-src"] == "'self' file:"


def test_every_history_that_can_be_read_has_its_page() -> None:
    made = 0
    for content in itertools.islice(damaged(seed=2), 300):
        Path("run.jsonl").write_bytes(content)
        run = Followed("run.jsonl")
        try:
            run.read_on()
        except ValueError:
            continue
        for state in ("running", "ended"):
            page(run, Moment(state, 1e9, None, 5.0, "run.jsonl")).encode("utf-8")
        made += 1
    assert made > 50


@pytest.mark.parametrize("low, high", [(1e-300, 1e300), (-1.7e308, 1.7e308), (5e-324, 5e-324), (-1.7e308, -1.7e308)])
def test_the_largest_and_the_smallest_values_have_their_page(low: float, high: float) -> None:
    extreme = {"best_f": low, "gen_best": high, "sigma": abs(low), "axis_ratio": abs(high), "mean": [low, high]}
    extreme |= {"stds": [abs(low), abs(high)], "violation": abs(high), "elapsed": abs(high)}
    first, second = (GENERATIONS[0] | {"nit": 0} | extreme), GENERATIONS[1] | {"best_f": high, "mean": [high, low]}
    for lines in ((first,), (first, second), (GENERATIONS[0], second)):
        made = written(Path("run.jsonl"), HEADER, *lines)
        assert not re.search(r'd="[^"]*(nan|inf)', made)


# ---- the command ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [["plot"], ["plot", "good.jsonl"], ["watch", "--once"]])
@pytest.mark.parametrize(
    "content, fault",
    [
        (text(HEADER, GENERATIONS[0] | {"nfev": "many"}), r"line 2 has nfev 'many', which must be .*"),
        (text(HEADER, GENERATIONS[0] | {"mean": [[]]}), r"line 2 has mean .*"),
        (text(HEADER | {"dim": None}), r"line 1 has dim None.*"),
        (b"\xff\xfe\x00\n", r"line 1 is not a JSON object.*"),
        (b"[" * 100_000 + b"\n", r"line 1 is nested too deeply.*"),
    ],
)
def test_a_damaged_history_is_one_line_and_no_file(words: list[str], content: bytes, fault: str) -> None:
    Path("run.jsonl").write_bytes(content)
    Path("good.jsonl").write_bytes(text(HEADER, *GENERATIONS))
    result = CliRunner().invoke(cli.app, [*words, "run.jsonl"])
    assert result.exit_code == 2 and result.stdout == ""
    assert re.fullmatch(rf"error: run\.jsonl is not an esgroup history: {fault}\n", result.stderr)
    assert sorted(path.name for path in Path().iterdir()) == ["good.jsonl", "run.jsonl"]


def test_what_a_history_says_at_its_end_does_not_steer_the_terminal() -> None:
    last = GENERATIONS[0] | {"end": {"how": "stopped", "message": "\x1b[2Jdone\r\n"}}
    Path("run.jsonl").write_bytes(text(HEADER, last))
    assert CliRunner().invoke(cli.app, ["watch", "run.jsonl"]).stdout.endswith(" �[2Jdone  \n")
