"""The page in a browser: sorting, filters, keys, small screens, both themes, paper, and no scripts."""

import pytest

from esgroup.compare import records
from esgroup.compare.report import drawing, figures
from esgroup.compare.report.page import Picture
from esgroup.compare.report.summary import Ratio, overall, summarize
from tests.compare.browser import Browser, installed
from tests.compare.stand_ins import ABOUT, EXPECTED, SVG, row, sample, total
from tests.compare.test_summary import a_run

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
  const numbers = (color) => color.match(/[\\d.]+/g).map(Number);
  const linear = (c) => c <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4;
  const light = (color) => {
    const [r, g, b] = numbers(color).map((c) => linear(c / 255));
    return .2126 * r + .7152 * g + .0722 * b;
  };
  const behind = (element) => {
    const color = getComputedStyle(element).backgroundColor, opacity = numbers(color)[3] ?? 1;
    return opacity > 0 || !element.parentElement ? color : behind(element.parentElement);
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


HINTS = "[...document.querySelectorAll('.hint')].map(e => e.offsetHeight > 0 && e.innerText)"


@pytest.mark.parametrize("scripts", [True, False])
def test_what_scrolls_on_a_phone_says_so(browser, html, scripts):
    hint = "Scroll sideways to see the rest →"
    assert browser.open(html, width=390, scripts=scripts).evaluate(HINTS) == [hint] * 4
    assert browser.open(html, scripts=scripts).evaluate(HINTS) == [False] * 4


def test_a_table_that_fits_a_phone_has_no_hint(browser, tmp_path):
    path = tmp_path / "index.html"
    path.write_text(sample(overall=[], pictures=[], rows=[]), encoding="utf-8")
    assert browser.open(path, width=390).evaluate(HINTS) == []
    small = Picture("small", "small", SVG.replace("792pt", "200pt"), width=266.7)
    path.write_text(sample(pictures=[small]), encoding="utf-8")
    assert browser.open(path, width=390).evaluate(HINTS)[1] is False


# ---- reading numbers off the lines -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """A page with figures of runs: ours goes from 50 to 0.1 in 100 evaluations, theirs in 400."""
    hits = {"ours": 100, "theirs": 400}
    runs = [a_run(method, seed=seed, hit=hit) for method, hit in hits.items() for seed in range(5)]
    found = [*figures.convergence(runs), figures.profile(runs)]
    pictures = [Picture("a figure", "a figure", drawing.to_svg(figure), drawing.panels(figure)) for figure in found]
    path = tmp_path_factory.mktemp("drawn") / "index.html"
    rows, totals = summarize(runs, "theirs"), overall(runs, "theirs")
    path.write_text(sample(rows=rows, overall=totals, pictures=pictures, reference="theirs"), encoding="utf-8")
    return path


ATTACK = "window.owned = 1"
HOSTILE = f"""x"'><script>{ATTACK}</script><img src=x onerror="{ATTACK}">"""


def test_no_script_of_a_file_of_runs_runs_neither_by_names_nor_as_markup(browser, tmp_path):
    """Names reach the page through tables, figures and the data of figures; markup comes in if one were forgotten."""
    for seed in range(5):
        for method in (HOSTILE, "theirs"):
            records.append(tmp_path / "runs.csv", a_run(method, seed=seed, problem=HOSTILE, message=HOSTILE))
    runs = records.read(tmp_path / "runs.csv")
    found = [*figures.convergence(runs), figures.profile(runs)]
    pictures = [Picture(HOSTILE, HOSTILE, drawing.to_svg(one), drawing.panels(one)) for one in found]
    rows, totals = summarize(runs, "theirs"), overall(runs, "theirs")
    text = sample(title=HOSTILE, rows=rows, overall=totals, pictures=pictures, reference="theirs")
    for name, page in (("names", text), ("markup", text.replace("<main", HOSTILE.partition(">")[2] + "<main", 1))):
        (tmp_path / f"{name}.html").write_text(page, encoding="utf-8")
        tab = browser.open(tmp_path / f"{name}.html")
        assert tab.evaluate("[window.owned === undefined, document.querySelector('h1').textContent]") == [True, HOSTILE]
        assert tab.evaluate("document.querySelectorAll('th button').length") > 0  # made by our own script
        assert bool(tab.complaints()) is (name == "markup")


def point_at(tab, figure, x):
    """Move the mouse to a number on the horizontal axis, in the middle of the panel; return what is read off."""
    place = tab.evaluate(
        f"""(() => {{
          const image = document.querySelectorAll('[data-panels]')[{figure}], svg = image.querySelector('svg');
          svg.scrollIntoView({{block: 'center'}});
          const [p] = JSON.parse(image.dataset.panels), share = Math.log({x} / p.x[0]) / Math.log(p.x[1] / p.x[0]);
          const at = new DOMPoint(p.left + share * (p.right - p.left), (p.top + p.bottom) / 2);
          const there = at.matrixTransform(svg.getScreenCTM());
          return [there.x, there.y];
        }})()"""
    )
    tab.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")  # it has scrolled
    tab.call("Input.dispatchMouseEvent", type="mouseMoved", x=place[0], y=place[1])
    return tab.evaluate(
        "[...document.querySelector('.reading-off').children].map(e => e.innerText.replace('\\n', ' '))"
    )


def test_the_lines_under_the_pointer_are_read_off(browser, drawn):
    tab = browser.open(drawn)
    assert point_at(tab, 0, 20) == ["20 evaluations", "median gap to the minimum", "ours 50", "theirs 50"]
    assert point_at(tab, 0, 150)[2:] == ["ours ≤ 0.1, ended", "theirs 50"]
    assert point_at(tab, 1, 30) == [
        "30 evaluations / dimension",
        "targets reached",
        "ours 100 %, ended",
        "theirs none yet",
    ]
    assert point_at(tab, 1, 70)[2:] == ["ours 100 %, ended", "theirs 50 %"]
    assert tab.complaints() == []


def test_nothing_is_read_off_beside_the_panels(browser, drawn):
    tab = browser.open(drawn)
    point_at(tab, 0, 20)
    assert tab.evaluate("document.querySelector('.reading-off').offsetHeight") > 0
    tab.call("Input.dispatchMouseEvent", type="mouseMoved", x=2, y=2)
    assert tab.evaluate("document.querySelector('.reading-off').offsetHeight") == 0


def test_without_scripts_lines_have_titles_and_with_them_only_one_box(browser, drawn):
    titles = "[...document.querySelectorAll('svg title')].map(e => e.textContent)"
    without = browser.open(drawn, scripts=False).evaluate(titles)
    assert len(without) == 4 and without[0] == "ours: median gap to the minimum 0.10 at 100 evaluations"
    assert browser.open(drawn).evaluate(titles) == []


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
