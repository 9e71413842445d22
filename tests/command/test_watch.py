"""`esgroup watch`: when it writes, waits and ends, what it refuses, and what the page says."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from esgroup.command import cli, watch, watch_page
from esgroup.command.watch_page import duration, number
from esgroup.running.follow import Followed
from tests.command.histories import KINDS, LONG, without_end

VOID = {"meta", "link", "path"}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def histories(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("histories")
    for name, search in KINDS.items():
        search(folder / f"{name}.jsonl")
    return folder


@pytest.fixture
def history(histories: Path, here: Path) -> Path:
    path = here / "run.jsonl"
    path.write_bytes((histories / "vector.jsonl").read_bytes())
    return path


def command(*words: str, code: int = 0) -> Result:
    result = CliRunner().invoke(cli.app, ["watch", *words])
    assert result.exit_code == code, result.output
    return result


class Contents(HTMLParser):
    """The text of a page that can be seen, its attributes by element, and whether all elements are closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self._open: list[str] = []
        self.feed(page)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not {"script", "style"} & set(self._open) and data.strip():
            self.words.append(data.strip())


def contents(path: str | Path = "run.html") -> Contents:
    return Contents(Path(path).read_text(encoding="utf-8"))


def panels(page: Contents) -> dict[str, str]:
    """Names of the panels, and what they show in words."""
    labels = [str(attrs["aria-label"]) for _, attrs in page.elements if attrs.get("role") == "img"]
    return {label.partition(" over ")[0]: label for label in labels}


class Script:
    """What happens while `watch` sleeps: one thing after the other, then Ctrl-C; and what it says."""

    def __init__(self, *acts: Any) -> None:
        self.acts, self.said = list(acts), []

    def sleep(self, seconds: float) -> None:
        assert seconds == 5.0
        if not self.acts:
            raise KeyboardInterrupt
        self.acts.pop(0)()

    def watch(self, path: Path | str, **options: Any) -> bool:
        return watch.watch(Path(path), say=self.said.append, sleep=self.sleep, **options)


# ---- when it writes -------------------------------------------------------------------------------------------------


def test_the_page_of_a_search_that_has_ended_is_written_and_that_is_all(history: Path) -> None:
    script = Script()
    assert script.watch(history)
    assert script.said[0].startswith(f"page     {history.with_suffix('.html')}")
    assert script.said[1] == f"the search has ended: {history.with_suffix('.html')} shows 600 evaluations"
    assert "limit of 600 evaluations" in script.said[2] and len(script.said) == 3
    page = contents(history.with_suffix(".html"))
    assert "Ended" in page.words and "600" in page.words and "of 600" in page.words
    assert not any(attrs.get("http-equiv") == "refresh" for _, attrs in page.elements)


def test_the_page_follows_a_search_to_its_end(history: Path) -> None:
    whole = history.read_text()
    seen: list[tuple[bool, str]] = []

    def grow(text: str) -> Any:
        def act() -> None:
            page = contents()
            seen.append(("Searching" in page.words, page.words[page.words.index("Evaluations") + 1]))
            history.write_text(text)

        return act

    without_end(history, 10)
    first = history.read_text()
    evaluations = json.loads(first.splitlines()[-1])["nfev"]
    without_end_of_it = whole.partition(', "end"')[0] + "}\n"
    script = Script(grow(first + "{"), grow(without_end_of_it), grow(whole))
    assert script.watch(history)
    assert seen == [(True, f"{evaluations:,}")] * 2 + [(True, "600")] and "Ended" in contents().words


def test_a_file_that_does_not_exist_yet_is_waited_for(history: Path) -> None:
    content = history.read_bytes()
    history.unlink()

    def look() -> None:
        page = contents()
        assert "Waiting for the first generation" in page.words and panels(page) == {}

    script = Script(look, lambda: history.write_text(""), look, lambda: history.write_bytes(content))
    assert script.watch("run.jsonl")
    assert script.said[:2] == [
        "waiting  for run.jsonl, which does not exist yet",
        "page     run.html, updated every 5 s until the search ends; Ctrl-C quits",
    ]
    assert "600" in contents().words


def test_a_history_that_vanishes_is_mentioned_and_waited_for(history: Path) -> None:
    without_end(history)
    content = history.read_bytes()
    script = Script(history.unlink, lambda: None, lambda: history.write_bytes(content))
    assert not script.watch("run.jsonl")
    assert [line for line in script.said if "waiting" in line] == [
        "waiting  for run.jsonl, which no longer exists"
    ]
    assert "600" in contents().words


def test_ctrl_c_ends_watching_with_a_page_that_says_so(history: Path) -> None:
    without_end(history)
    script = Script(lambda: None)
    assert script.watch("run.jsonl") is False
    assert script.said[-1] == "no longer watching: run.html shows 600 evaluations; the search is not affected"
    page = contents()
    assert "No longer watched" in page.words and not any(
        attrs.get("http-equiv") == "refresh" for _, attrs in page.elements
    )


def test_ctrl_c_in_a_terminal(history: Path) -> None:
    without_end(history)
    words = [sys.executable, "-c", "from esgroup.command.cli import app; app()", "watch", "run.jsonl", "--every", "0.1"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline().startswith("page     run.html")
    before = Path("run.html").stat().st_ino
    end = time.monotonic() + 60
    while Path("run.html").stat().st_ino == before and time.monotonic() < end:  # replaced, not rewritten
        time.sleep(0.05)
    assert Path("run.html").stat().st_ino != before
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (out, err) == ("no longer watching: run.html shows 600 evaluations; the search is not affected\n", "")
    assert process.returncode == 130
    assert sorted(os.listdir()) == ["run.html", "run.jsonl"]


def test_once_writes_the_page_of_a_running_search_and_ends(history: Path) -> None:
    without_end(history)
    assert command("run.jsonl", "--once").stdout == "page     run.html\n"
    assert "Searching" in contents().words
    assert command("run.jsonl", "--once", "--out", "other.htm").stdout == "page     other.htm\n"
    assert "a <problem>" in contents("other.htm").words


def test_a_search_without_news_is_said_to_be_quiet(history: Path) -> None:
    without_end(history)
    os.utime(history, (time.time() - 600, time.time() - 600))
    command("run.jsonl", "--once")
    assert "No updates" in contents().words


def test_a_page_that_cannot_be_written_for_a_while_is_tried_again(
    history: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_end(history)
    plain, failures = os.replace, [False, True, True, False, True]

    def fails(old: Any, new: Any) -> None:
        if failures and failures.pop(0):
            raise OSError(28, "No space left on device")
        plain(old, new)

    monkeypatch.setattr(os, "replace", fails)
    script = Script(*[lambda: None] * 4)
    script.watch("run.jsonl")
    warnings = [line for line in script.said if "warning" in line]
    assert warnings == ["warning: run.html could not be written (No space left on device); retrying"] * 2
    assert sorted(os.listdir()) == ["run.html", "run.jsonl"]


def test_the_first_page_must_succeed(history: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(old: Any, new: Any) -> None:
        raise OSError(28, "No space left on device", os.fspath(new))

    monkeypatch.setattr(os, "replace", full)
    assert re.match(r"error: No space left on device: .*run\.html", command("run.jsonl", code=2).stderr)


# ---- what it refuses ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("once", [["--once"], []])
def test_a_file_that_is_no_history_is_an_error_that_says_what_to_do(here: Path, once: list[str]) -> None:
    Path("data.csv").write_text("a,b\n1,2\n")
    error = command("data.csv", *once, code=2).stderr
    assert re.fullmatch(r"error: data\.csv is not an esgroup history: .*; name a file .*--history FILE.*\n", error)
    assert not Path("data.html").exists()


DIFFERENT = "the page and the history must be different files"


@pytest.mark.parametrize(
    "words, message",
    [
        ("none.jsonl --once", "none.jsonl does not exist; leave out --once to wait for it"),
        (". --once", "the history must be a file, got the folder ."),
        ("run.jsonl --out no/run.html", "the page must be in an existing folder, got no/run.html"),
        ("run.jsonl --out run.jsonl", f"{DIFFERENT}, got 'run.jsonl' for both: choose another name for one"),
        ("new.html", f"{DIFFERENT}, got 'new.html' for both: choose another name for one"),
        (
            "run.jsonl --out mine.html",
            "mine.html exists and was not written by esgroup watch: choose another name with --out",
        ),
        ("run.jsonl --every 0", "--every must be between 0.1 and 86400 seconds, got 0"),
        ("run.jsonl --every nan", "--every must be between 0.1 and 86400 seconds, got nan"),
    ],
)
def test_wrong_input_is_one_line_and_changes_nothing(history: Path, words: str, message: str) -> None:
    Path("mine.html").write_text("<p>my own page</p>")
    before = {name: Path(name).read_bytes() for name in os.listdir()}
    assert command(*words.split(), code=2).stderr == f"error: {message}\n"
    assert {name: Path(name).read_bytes() for name in os.listdir()} == before


# ---- what the page says ---------------------------------------------------------------------------------------------

COMMON = {"Step size", "Axis ratio", "Mean", "Standard deviations", "Evaluations per second"}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_history_has_its_page(histories: Path, kind: str) -> None:
    command(str(histories / f"{kind}.jsonl"), "--once", "--out", "run.html")
    page = contents()
    shown = set(panels(page))
    best, others = {name for name in shown if name.startswith("Best value")}, {n.partition(",")[0] for n in shown}
    assert len(best) == 1
    missing = {"one": {"Evaluations per second"}}.get(kind, set())
    assert others - best - {"Best value"} == COMMON - missing | (
        {"Largest violation at the best point"} if kind == "constraints" else set()
    )
    run = Followed(histories / f"{kind}.jsonl")
    run.read_on()
    assert f"{run.generations[-1].nfev:,.0f}" in page.words
    assert run.end["message"] in " ".join(page.words)
    numbers = Path("run.html").read_text(encoding="utf-8").partition('<script type="application/json">')[2]
    pointed = json.loads(numbers.partition("</script>")[0])
    assert {len(pointed["x"]), len(pointed["label"])} | {len(v) for v in pointed["shows"].values()} == {
        len(pointed["x"])
    }
    assert all(not re.search(r"nan|inf|e[+-]", str(attrs.get("d", ""))) for _, attrs in page.elements)


def test_the_page_says_what_is_special_of_a_history(histories: Path) -> None:
    pages = {}
    for kind in ("restarts", "constraints", "spd", "space", "large", "nothing", "negative"):
        command(str(histories / f"{kind}.jsonl"), "--once", "--out", "run.html")
        pages[kind] = contents()
    assert "restart 1" in pages["restarts"].words and "restarts" in pages["restarts"].words
    assert {"feasible", "the first feasible point", "so far, not feasible"} <= set(pages["constraints"].words)
    assert {"2 × 2 matrices · Wishart, full · spd.jsonl", "[1, 2]"} <= set(pages["spd"].words)
    assert {"rate", "layers", LONG.strip()} <= set(pages["space"].words)  # as text, not as an element
    assert {"Mean, first 100 of 300", "of 30"} <= set(pages["large"].words)
    assert "no finite value so far" in pages["nothing"].words
    assert any(word.startswith("Best value, above the lowest so far (−") for word in pages["negative"].words)


@pytest.mark.parametrize("target, drawn", [(1e-3, True), (1e-300, False), (-1.0, False)])
def test_a_target_is_drawn_unless_it_is_far_away(history: Path, target: float, drawn: bool) -> None:
    without_end(history, 10)
    header, *rest = history.read_text().splitlines(keepends=True)
    history.write_text(json.dumps(json.loads(header) | {"limits": {"target": target}}) + "\n" + "".join(rest))
    command("run.jsonl", "--once")
    page = contents()
    assert any(attrs.get("class") == "target" for tag, attrs in page.elements if tag == "path") is drawn
    assert f"target {number(target)}" in page.words


def test_time_left_is_that_of_the_budget_that_ends_first(history: Path) -> None:
    lines = [json.loads(line) for line in history.read_text().splitlines()[:4]]
    for i, line in enumerate(lines[1:], start=1):
        line |= {"nfev": 100 * i, "nit": i, "elapsed": 50.0 * i}

    def left(**limits: Any) -> list[str]:
        lines[0]["limits"] = limits
        history.write_text("".join(json.dumps(line) + "\n" for line in lines))
        command("run.jsonl", "--once")
        return [word for word in contents().words if word.endswith(" left")]

    assert left() == []
    assert left(max_evals=1300) == ["at most about 8 min 20 s left"]
    assert left(max_evals=1300, max_time=210) == ["at most about 1 min left"]
    assert left(max_iters=5, target=1e-9) == ["at most about 1 min 40 s left"]
    assert left(max_evals=200) == ["at most about 0.00 s left"]


def test_the_page_needs_nothing_else(history: Path) -> None:
    command("run.jsonl", "--once")
    text = Path("run.html").read_text(encoding="utf-8")
    assert "http" not in text.replace("http-equiv", "")
    for tag, attrs in contents().elements:
        assert tag != "link" or attrs["href"] == "data:,"
        assert "src" not in attrs


def test_a_history_of_an_older_version_has_no_limits_and_no_end(history: Path) -> None:
    without_end(history)
    header, *rest = history.read_text().splitlines(keepends=True)
    old = {name: value for name, value in json.loads(header).items() if name not in ("limits", "shape")}
    history.write_text(json.dumps(old) + "\n" + "".join(rest))
    command("run.jsonl", "--once")
    page = contents()
    assert "Searching" in page.words and "5 variables · full · run.jsonl" in page.words


# ---- small parts ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value, text",
    [
        (0.0, "0"),
        (1234.0, "1,234"),
        (-0.05, "−0.05"),
        (3.21e-6, "3.21×10⁻⁶"),
        (-1e-10, "−10⁻¹⁰"),
        (1e6, "10⁶"),
        (999999.0, "10⁶"),
        (12345678.0, "1.235×10⁷"),
        (float("nan"), "–"),
        (float("inf"), "–"),
    ],
)
def test_numbers_can_be_read(value: float, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize(
    "seconds, text",
    [
        (0.04, "0.04 s"),
        (0.4, "0.4 s"),
        (12.3, "12 s"),
        (59.9, "1 min"),
        (200, "3 min 20 s"),
        (7500, "2 h 5 min"),
        (273_600, "3 d 4 h"),
    ],
)
def test_times_can_be_read(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize("low, high", [(-9.3, 2.1), (0.2, 1.4), (0.31, 0.42), (2.0, 2.001), (-300.0, 300.0)])
def test_an_axis_has_two_to_nine_labels_between_its_ends(low: float, high: float) -> None:
    ticks = watch_page._log_ticks(low, high)
    assert 2 <= len(ticks) <= 9 and 10**low <= min(ticks) and max(ticks) <= 10**high * (1 + 1e-12)
