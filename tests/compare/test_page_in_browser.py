"""The page in a browser: sorting, filters, keys, small screens, both themes, paper, and no scripts."""

import pytest

from esgroup.compare.report.summary import Ratio
from tests.compare.browser import Browser, installed
from tests.compare.stand_ins import ABOUT, EXPECTED, row, sample, total

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(installed() is None, reason="there is no chromium, chromium-browser or google-chrome"),
]


@pytest.fixture(scope="module")
def browser():
    with Browser() as started:
        yield started


@pytest.fixture(scope="module")
def html(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "index.html"
    path.write_text(sample(), encoding="utf-8")
    return path


CHOOSE = """
(select => {{
  select.value = "{1}";
  select.dispatchEvent(new Event("change", {{bubbles: true}}));
}})(document.querySelector("select[name={0}]"))
"""
# the contrast of every text with what is behind it (WCAG 2.2: relative luminance)
CONTRAST = """
(() => {
  const numbers = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const linear = (c) => c <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4;
  const light = (colour) => {
    const [r, g, b] = numbers(colour).map((c) => linear(c / 255));
    return .2126 * r + .7152 * g + .0722 * b;
  };
  const behind = (element) => {
    const colour = getComputedStyle(element).backgroundColor, opacity = numbers(colour)[3] ?? 1;
    return opacity > 0 || !element.parentElement ? colour : behind(element.parentElement);
  };
  const hasText = (element) => [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
  return [...document.querySelectorAll("main *")].filter((e) => !e.closest("svg") && hasText(e)).map((e) => {
    const [more, less] = [light(getComputedStyle(e).color), light(behind(e))].sort((a, b) => b - a);
    return (more + .05) / (less + .05);
  });
})()
"""
FITS = """
[...document.querySelectorAll("h1, p, li, dd, dt, pre, form, caption")]
  .every((e) => e.getBoundingClientRect().right <= innerWidth || e.closest(".scroll"))
"""
COPIED = """
new Promise((done) => {
  const copy = document.querySelector(".copy");
  const look = () => copy.textContent === "Copied" ? done(navigator.clipboard.readText()) : setTimeout(look, 10);
  look();
})
"""
LINES = "[...document.querySelectorAll('#rows tbody tr')].filter(r => !r.hidden)"
HEAD = "#rows th[scope=col]:nth-child({}) button"
PROBLEM, DIM, METHOD, SOLVED, MEDIAN, ERT, RATIO = range(1, 8)


def shown(tab, column):
    return tab.evaluate(f"{LINES}.map(r => r.cells[{column - 1}].dataset.value)")


def sorting(tab):
    return tab.evaluate("[...document.querySelectorAll('#rows thead th')].map(h => h.getAttribute('aria-sort'))")


def test_numbers_are_sorted_as_numbers_with_never_last_both_ways(browser, html):
    tab = browser.open(html)
    tab.click(HEAD.format(ERT))
    assert shown(tab, ERT) == [v for v in ("40.0", "90.0", "1000.0", "9000.0", "inf") for _ in range(3)]
    assert sorting(tab) == [None] * 5 + ["ascending"] + [None] * 4
    tab.click(HEAD.format(ERT))
    assert shown(tab, ERT) == [v for v in ("9000.0", "1000.0", "90.0", "40.0", "inf") for _ in range(3)]
    assert sorting(tab)[ERT - 1] == "descending"
    tab.click(HEAD.format(RATIO))
    assert shown(tab, RATIO)[::3] == ["0.04", "0.09", "1", "9.0", ""]
    assert sorting(tab) == [None] * 6 + ["ascending"] + [None] * 3
    assert not tab.complaints()


def test_rows_that_are_equal_keep_their_order(browser, html):
    tab = browser.open(html)
    tab.click(HEAD.format(DIM))
    assert shown(tab, DIM) == ["5"] * 10 + ["40"] * 5
    assert shown(tab, METHOD) == list(EXPECTED) * 3
    tab.click(HEAD.format(PROBLEM))
    assert shown(tab, PROBLEM) == ["discus"] * 5 + ["sphere"] * 10
    assert shown(tab, METHOD) == list(EXPECTED) * 3


@pytest.mark.parametrize("key", ["Enter", " "])
def test_heads_are_buttons_for_the_keyboard(browser, html, key):
    tab = browser.open(html)
    tab.evaluate(f"document.querySelector('{HEAD.format(DIM)}').focus()")
    tab.press("Tab")
    tab.press(key)
    assert sorting(tab)[METHOD - 1] == "ascending"
    assert shown(tab, METHOD) == [m for m in sorted(EXPECTED) for _ in range(3)]
    tab.press(key)
    assert shown(tab, METHOD) == [m for m in sorted(EXPECTED, reverse=True) for _ in range(3)]


def test_rows_are_filtered_and_all_come_back(browser, html):
    tab = browser.open(html)
    tab.evaluate(CHOOSE.format("problem", "sphere"))
    tab.evaluate(CHOOSE.format("method", "esgroup"))
    assert (shown(tab, METHOD), shown(tab, DIM)) == (["esgroup"] * 2, ["5", "40"])
    assert tab.evaluate("document.querySelector('output').textContent") == "2 of 15 rows"
    tab.click(HEAD.format(DIM))
    tab.click(HEAD.format(DIM))
    assert shown(tab, DIM) == ["40", "5"]
    tab.click("#filters button")
    assert shown(tab, METHOD) == list(EXPECTED) * 3
    assert shown(tab, PROBLEM) == ["sphere"] * 10 + ["discus"] * 5
    assert sorting(tab) == [None] * 10


def test_the_browser_has_nothing_to_complain_of_and_asks_for_nothing_else(browser, html):
    tab = browser.open(html)
    tab.click(".copy")
    assert tab.evaluate("getSelection().toString()") == ABOUT.command
    assert tab.complaints() == []
    assert [address for address in tab.requests() if not address.startswith("data:")] == [html.as_uri()]


def test_the_command_is_copied(browser, html):
    browser.call("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
    tab = browser.open(html)
    tab.call("Page.bringToFront")  # the clipboard is for the page that has the focus
    tab.click(".copy")
    assert tab.evaluate(COPIED) == ABOUT.command


@pytest.mark.parametrize("width", [320, 390, 1280])
def test_the_page_itself_never_scrolls_sideways(browser, tmp_path, width):
    long = "a_very_long_name" * 8
    rows = [
        row(m, 1e9, problem=long, ratio=Ratio(1234.5, 1000.0, 2000.0), failures=("x" * 300,)) for m in (long, "cma")
    ]
    about = ABOUT._replace(command="y" * 500, settings={long: long}, versions={long: long})
    path = tmp_path / "index.html"
    path.write_text(
        sample(title=long, rows=rows, overall=[total(long, 1.5, 1), total("cma", 1.0, 1)], about=about),
        encoding="utf-8",
    )
    tab = browser.open(path, width=width)
    assert tab.evaluate("innerWidth") == width
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    assert tab.evaluate(FITS)


def test_on_a_phone_tables_and_figures_scroll_by_themselves(browser, html):
    tab = browser.open(html, width=390)
    inner = "[...document.querySelectorAll('.scroll')].map(e => e.scrollWidth > e.clientWidth)"
    assert tab.evaluate(inner) == [True] * 4
    assert tab.evaluate("document.querySelector('svg').getBoundingClientRect().width") == pytest.approx(
        0.85 * 792 * 4 / 3, abs=0.1
    )
    place = "document.querySelector('#rows tbody th').getBoundingClientRect().x"
    before = tab.evaluate(place)
    assert (
        tab.evaluate("document.querySelector('.detail').scrollLeft = 150, document.querySelector('.detail').scrollLeft")
        == 150
    )
    assert tab.evaluate(place) == pytest.approx(before, abs=1)
    assert "sphere, d\xa0=\xa040" in tab.evaluate("document.querySelector('#rows tbody').innerText")


@pytest.mark.parametrize(("dark", "paper"), [(False, "rgb(252, 252, 250)"), (True, "rgb(21, 25, 28)")])
def test_both_themes_have_enough_contrast(browser, html, dark, paper):
    tab = browser.open(html, dark=dark)
    assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == paper
    contrasts = tab.evaluate(CONTRAST)
    assert len(contrasts) > 200
    assert min(contrasts) >= 4.5
    assert tab.evaluate("getComputedStyle(document.querySelector('svg path')).stroke") == tab.evaluate(
        "getComputedStyle(document.body).color"
    )


def test_without_scripts_everything_is_there_but_controls(browser, html):
    tab = browser.open(html, scripts=False)
    assert shown(tab, METHOD) == list(EXPECTED) * 3
    assert tab.evaluate("[...document.querySelectorAll('button, select')].filter(e => e.offsetParent).length") == 0
    assert tab.evaluate("document.querySelector('#rows thead').innerText.includes('Problem')")


def test_print_is_dark_on_white_and_fits_the_paper(browser, html):
    tab = browser.open(html, width=718, dark=True)  # A4 with margins of a centimetre
    tab.media("print", dark=True)
    assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert min(tab.evaluate(CONTRAST)) >= 4.5
    assert tab.evaluate(
        "[...document.querySelectorAll('table, svg')].every(e => e.getBoundingClientRect().right <= innerWidth)"
    )
    assert tab.evaluate("[...document.querySelectorAll('form, .copy')].every(e => !e.offsetParent)")
