"""Every page of the built site in a browser: wide and narrow, light and dark. `scripts/docs` builds it."""

import pytest

from tests.compare.browser import Browser, installed
from tests.docs.site import SITE, fault, pages

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(installed() is None, reason="there is no chromium, chromium-browser or google-chrome"),
    pytest.mark.skipif(not pages(), reason="the site was not built: scripts/docs"),
]

DESKTOP, PHONE = 1280, 390
LINKS = """
[...document.querySelectorAll("a[href]")].map((a) => a.href)
"""
LOADED = """
[...document.querySelectorAll("img, script[src], link[rel=stylesheet], link[rel~=icon], iframe, video, source, object")]
  .map((e) => e.src || e.href || e.data).filter(Boolean)
"""
# a name of a file is what docutils writes where there is no text; pictures of a gallery have their title beside them
WITHOUT_TEXT = """
[...document.querySelectorAll("img")]
  .filter((e) => !e.closest(".sphx-glr-thumbcontainer"))
  .filter((e) => e.alt.trim().length < 4 || /\\.(png|svg|jpe?g|gif|webp)$/i.test(e.alt.trim()))
  .map((e) => e.getAttribute("src"))
"""
# what sticks out on the right, unless something in the article scrolls or cuts it off; around it the theme does both
STICKS_OUT = """
(() => {
  const held = (e) => e && !e.matches("article, body")
    && (getComputedStyle(e).overflowX !== "visible" || held(e.parentElement));
  const shown = (e) => e.checkVisibility({visibilityProperty: true, opacityProperty: true});
  const wide = [...document.querySelectorAll("article *")]
    .filter((e) => e.getBoundingClientRect().right > WIDTH + 1 && shown(e) && !held(e.parentElement))
    .map((e) => `${e.tagName}.${e.className}: ${e.textContent.trim().slice(0, 60)}`);
  for (let e = document.querySelector("article"); e; e = e.parentElement) {
    if (e.scrollWidth > WIDTH || (getComputedStyle(e).overflowX !== "visible" && e.scrollWidth > e.clientWidth + 1)) {
      wide.push(`${e.tagName}.${e.className} is ${e.scrollWidth} wide inside`);
    }
  }
  return wide;
})()
"""
# code that has to be scrolled to be read; what tutorials print may be wider
SCROLLS = """
[...document.querySelectorAll("article pre")]
  .filter((e) => e.scrollWidth > e.clientWidth && !e.closest(".sphx-glr-script-out"))
  .map((e) => e.textContent.split("\\n").sort((a, b) => b.length - a.length)[0])
"""
# texts whose contrast with what is behind them is too low (WCAG 2.2, level AA)
PALE = """
(() => {
  const context = new OffscreenCanvas(1, 1).getContext("2d", {willReadFrequently: true});
  const cache = new Map();
  const rgba = (color) => {                       // of any notation of CSS
    if (!cache.has(color)) {
      context.clearRect(0, 0, 1, 1);
      context.fillStyle = color;
      context.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = context.getImageData(0, 0, 1, 1).data;
      cache.set(color, [r, g, b, a / 255]);
    }
    return cache.get(color);
  };
  const over = ([r, g, b, a], [R, G, B]) => [r * a + R * (1 - a), g * a + G * (1 - a), b * a + B * (1 - a), 1];
  const behind = (e) => {
    if (!e) return [255, 255, 255, 1];
    const color = rgba(getComputedStyle(e).backgroundColor);
    return color[3] === 1 ? color : over(color, behind(e.parentElement));
  };
  const linear = (c) => c <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => .2126 * linear(r / 255) + .7152 * linear(g / 255) + .0722 * linear(b / 255);
  const hasText = (e) => [...e.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
  const visible = (e) => e.checkVisibility({visibilityProperty: true, opacityProperty: true})
    && e.getBoundingClientRect().width > 1;
  return [...document.querySelectorAll("body *")]
    .filter((e) => !e.closest("svg, script, style, noscript, template") && hasText(e) && visible(e))
    .map((e) => {
      const style = getComputedStyle(e), ground = behind(e), ink = over(rgba(style.color), ground);
      const [more, less] = [light(ink), light(ground)].sort((a, b) => b - a);
      const size = parseFloat(style.fontSize), large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
      return {ratio: (more + .05) / (less + .05), least: large ? 3 : 4.5, e};
    })
    .filter(({ratio, least}) => ratio < least)
    .map(({ratio, e}) => `${ratio.toFixed(2)} ${e.tagName}.${e.className}: ${e.textContent.trim().slice(0, 40)}`);
})()
"""
FOUND = """
new Promise((done) => {
  const look = () => {
    const found = [...document.querySelectorAll("#search-results li a")].map((a) => a.textContent);
    const ended = /found/i.test(document.querySelector("#search-results .search-summary")?.textContent ?? "");
    ended && found.length ? done(found) : setTimeout(look, 20);
  };
  setTimeout(() => done(["nothing within 20 s"]), 20000);
  look();
})
"""


@pytest.fixture(scope="module")
def browser():
    with Browser() as started:
        yield started


@pytest.mark.parametrize("page", pages())
def test_a_page_fits_can_be_read_and_leads_somewhere(browser, page):
    tab = browser.open(SITE / page)
    faults = [f"complaint: {one}" for one in tab.complaints()]
    faults += [f"asks for {one}" for one in tab.requests() if not one.startswith(("file:", "data:"))]
    addresses = tab.evaluate(LINKS)
    loaded = tab.evaluate(LOADED)
    faults += [f"dead link: {why}" for one in sorted({*addresses, *loaded}) if (why := fault(one))]
    faults += [f"from elsewhere: {one}" for one in loaded if one.startswith("http")]
    faults += [f"no alternative text: {one}" for one in tab.evaluate(WITHOUT_TEXT)]
    for width in (DESKTOP, PHONE):
        mobile = width == PHONE
        tab.call("Emulation.setDeviceMetricsOverride", width=width, height=844, deviceScaleFactor=1, mobile=mobile)
        faults += [f"{width} wide: {one}" for one in tab.evaluate(STICKS_OUT.replace("WIDTH", str(width)))]
        if not mobile:
            faults += [f"wider than the page: {one}" for one in tab.evaluate(SCROLLS)]
        for dark in (False, True):
            tab.media("screen", dark=dark)
            theme = "dark" if dark else "light"
            faults += [f"{width} wide, {theme}: contrast {one}" for one in tab.evaluate(PALE)]
    tab.call("Page.close")
    assert faults == []


def test_the_search_works_from_disk(browser):
    tab = browser.open(SITE / "search.html")
    before = len(tab.happened("Page.loadEventFired"))
    tab.call("Page.navigate", url=(SITE / "search.html").as_uri() + "?q=Searcher")
    while len(tab.happened("Page.loadEventFired")) == before:
        browser.events.append(browser.receive())
    found = tab.evaluate(FOUND)
    assert any("Searcher" in title for title in found)
    assert all(one.startswith(("file:", "data:")) for one in tab.requests())


def test_dark_pages_are_dark_and_light_ones_light(browser):
    """The other tests of colors would pass on one theme alone."""
    tab = browser.open(SITE / "start.html", dark=True)
    ground = "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)"
    assert max(tab.evaluate(ground)) < 60
    tab.media("screen", dark=False)
    assert min(tab.evaluate(ground)) > 230


def test_pages_can_be_read_without_scripts(browser):
    tab = browser.open(SITE / "start.html", scripts=False)
    assert tab.evaluate("document.querySelector('article').innerText.length > 1000")
    assert tab.evaluate("document.querySelector('article h1').checkVisibility()")
