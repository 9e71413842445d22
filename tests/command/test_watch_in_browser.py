"""The page of `esgroup watch` in a browser: it follows, keeps its place, fits, and shows what is pointed at."""

import shutil
import time
from pathlib import Path

import pytest

from esgroup.command import watch
from tests.command.histories import KINDS, without_end
from tests.compare.browser import Browser, Tab, installed
from tests.compare.test_page_in_browser import CONTRAST
from tests.running.damaged_histories import GENERATIONS, HEADER, text

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(installed() is None, reason="there is no chromium, chromium-browser or google-chrome"),
]
FITS = """
[...document.querySelectorAll("h1, h2, p, li, dd, dt, figure, figcaption, svg, .plot span")]
  .filter((e) => e.getBoundingClientRect().right > innerWidth + 1 || e.getBoundingClientRect().left < -1)
  .map((e) => e.outerHTML.slice(0, 100))
"""
READ = "[...document.querySelectorAll('figure')].map(f => f.innerText)"
TITLE, STATE = "document.title", "document.querySelector('.state')?.textContent"


@pytest.fixture(scope="module")
def browser():
    with Browser() as started:
        yield started


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    for name, search in KINDS.items():
        search(folder / f"{name}.jsonl")
        written(folder / f"{name}.jsonl")
    return folder


def written(history: Path, every: float = 0.2) -> Path:
    watch.watch(history, every=every, once=True, say=lambda line: None)
    return history.with_suffix(".html")


def until(tab: Tab, script: str, wanted: object) -> None:
    end = time.monotonic() + 60
    while (found := tab.evaluate(script)) != wanted:
        assert time.monotonic() < end, (script, found)
        time.sleep(0.05)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("width", [320, 390, 1280])
def test_nothing_is_wider_than_the_screen(browser, pages, kind, width):
    tab = browser.open(pages / f"{kind}.html", width=width)
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    assert tab.evaluate(FITS) == []
    assert tab.complaints() == []


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize(("dark", "paper"), [(False, "rgb(252, 252, 250)"), (True, "rgb(21, 25, 28)")])
def test_both_themes_have_enough_contrast(browser, pages, width, dark, paper):
    for kind in ("restarts", "constraints", "nothing"):
        tab = browser.open(pages / f"{kind}.html", width=width, dark=dark)
        assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == paper
        contrasts = tab.evaluate(CONTRAST)
        assert len(contrasts) > 40 and min(contrasts) >= 4.5
        curve = tab.evaluate("getComputedStyle(document.querySelector('path.grid')).stroke")
        assert curve != tab.evaluate("getComputedStyle(document.body).color")


def test_the_page_follows_without_being_loaded_again_and_keeps_its_place(browser, pages, tmp_path):
    history = tmp_path / "run.jsonl"
    shutil.copy(pages / "restarts.jsonl", history)
    without_end(history, 20)
    tab = browser.open(written(history))
    first = tab.evaluate(TITLE)
    tab.evaluate("window.loaded = 'once', scrollTo(0, 500)")
    shutil.copy(pages / "restarts.jsonl", history)
    without_end(history)
    written(history)
    until(tab, f"{TITLE} !== {first!r} && {STATE}", "Searching")
    assert tab.evaluate("[window.loaded, scrollY]") == ["once", 500]
    shutil.copy(pages / "restarts.jsonl", history)
    written(history)
    until(tab, STATE, "Ended")
    assert tab.evaluate("[window.loaded, scrollY, document.querySelectorAll('iframe').length]") == ["once", 500, 0]
    assert tab.complaints() == []
    assert {address.partition("?")[0] for address in tab.requests()} <= {
        history.with_suffix(".html").as_uri(),
        "data:,",
    }


def test_pointing_at_a_panel_shows_that_generation_in_all_of_them(browser, pages):
    tab = browser.open(pages / "vector.html")
    before = tab.evaluate(READ)
    tab.evaluate("document.querySelectorAll('.plot')[1].scrollIntoView({block: 'center'})")
    box = tab.evaluate("document.querySelectorAll('.plot')[1].getBoundingClientRect().toJSON()")
    middle = box["y"] + box["height"] / 2
    tab.call("Input.dispatchMouseEvent", type="mouseMoved", x=box["x"] + box["width"] / 2, y=middle)
    after = tab.evaluate(READ)
    assert sum("at 304 evaluations" in text or "at 296 evaluations" in text for text in after) == len(after)
    assert all(one != other for one, other in zip(before, after, strict=True))
    cursors = tab.evaluate("[...document.querySelectorAll('.cursor')].map(e => e.style.left)")
    assert len(set(cursors)) == 1 and 45 < float(cursors[0].rstrip("%")) < 55
    tab.call("Input.dispatchMouseEvent", type="mouseMoved", x=5, y=5)
    assert tab.evaluate(READ) == before


def test_a_page_that_is_no_longer_written_says_so(browser, pages, tmp_path, monkeypatch):
    history = tmp_path / "run.jsonl"
    shutil.copy(pages / "vector.jsonl", history)
    without_end(history)
    stale = "document.querySelector('.stale').checkVisibility()"
    assert browser.open(written(history, every=60)).evaluate(stale) is False
    monkeypatch.setattr(watch.time, "time", lambda: 1e9)
    assert browser.open(written(history, every=60)).evaluate(stale) is True


ATTACK = "window.owned = (window.owned || 0) + 1"
HOSTILE = f"""x"' onmouseover="{ATTACK}"><script>{ATTACK}</script><img src=x onerror="{ATTACK}"><!--</title>"""
OWN_SCRIPT_RAN = "document.querySelector('time').textContent.endsWith(' ago')"


def test_no_script_of_a_hostile_history_runs_and_its_words_are_shown_as_they_are(browser, tmp_path):
    header = HEADER | {"problem": HOSTILE, "structure": HOSTILE, "names": [HOSTILE, "</script><script>" + ATTACK]}
    running, ended = GENERATIONS[0], GENERATIONS[0] | {"end": {"how": HOSTILE, "message": HOSTILE}}
    history = tmp_path / "run.jsonl"
    history.write_bytes(text(header, running))
    tab = browser.open(written(history))
    history.write_bytes(text(header, ended))
    written(history)
    until(tab, STATE, "Ended")  # handed over by the frame, as markup
    for one in (tab, browser.open(history.with_suffix(".html"))):
        assert one.evaluate("window.owned === undefined") is True
        assert one.evaluate("[document.images.length, document.scripts.length]") == [0, 2]
        assert one.evaluate("document.querySelector('h1').textContent") == HOSTILE
        assert one.evaluate("document.querySelector('.message').textContent") == HOSTILE
        assert one.evaluate(OWN_SCRIPT_RAN) is True
        assert one.complaints() == []


def test_even_where_markup_comes_in_the_policy_lets_no_script_run_but_our_own(browser, tmp_path):
    history = tmp_path / "run.jsonl"
    history.write_bytes(text(HEADER, *GENERATIONS))
    page = written(history)
    attacks = f"""<script>{ATTACK}</script><img src="data:," onerror="{ATTACK}"><a href="javascript:{ATTACK}">x</a>
        <script src="data:text/javascript,{ATTACK}"></script><iframe srcdoc="<script>parent.{ATTACK}</script>"></iframe>
        <base href="https://example.org/">"""
    page.write_text(page.read_text(encoding="utf-8").replace("<header>", attacks + "<header>", 1), encoding="utf-8")
    tab = browser.open(page)
    tab.click("a")
    assert tab.evaluate("document.scripts.length") == 4 and tab.evaluate(OWN_SCRIPT_RAN) is True
    assert tab.evaluate("window.owned === undefined") is True
    refused = [entry["entry"]["text"] for entry in tab.happened("Log.entryAdded")]
    assert sum("script-src" in text for text in refused) >= 4 and any("base-uri" in text for text in refused)


def test_without_scripts_everything_is_there_and_the_page_is_loaded_again(browser, pages, tmp_path):
    history = tmp_path / "run.jsonl"
    shutil.copy(pages / "vector.jsonl", history)
    without_end(history)
    tab = browser.open(written(history, every=1.0), scripts=False)
    assert tab.evaluate("document.querySelectorAll('.plot path.curve').length") >= 3
    shutil.copy(pages / "vector.jsonl", history)
    written(history)
    until(tab, STATE, "Ended")
