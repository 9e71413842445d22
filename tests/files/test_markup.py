"""Text from elsewhere in a page and on a terminal: it stays text."""

import base64
import hashlib
import json
from html.parser import HTMLParser

import pytest

from esgroup.files.markup import content_policy, data_block, html, joined, printable

HOSTILE = "\"'><script>alert(1)</script><!--</title>&lt;"


class Read(HTMLParser):
    """What a browser would see: elements with their attributes, and text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[object] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_comment(self, data: str) -> None:
        self.tags.append(data)


def test_a_value_stays_text_in_attributes_and_between_elements() -> None:
    page = Read(html('<p class="{}">{}</p>', HOSTILE, HOSTILE))
    assert page.tags == [("p", {"class": HOSTILE})] and page.text == HOSTILE


def test_markup_made_here_is_not_escaped_again_and_numbers_are_formatted() -> None:
    items = joined((html("<li>{:,.1f}</li>", 1234.56), html("<li>{}</li>", "<b>")), "\n")
    assert html("<ol>{}</ol>", items) == "<ol><li>1,234.6</li>\n<li>&lt;b&gt;</li></ol>"


def test_a_value_with_braces_is_not_a_template() -> None:
    assert html("<p>{}</p>", "{0.__class__} {} $x") == "<p>{0.__class__} {} $x</p>"


def test_a_part_of_markup_or_its_sum_with_text_is_text() -> None:
    assert html("{}", html("<b>") + "<i>") == "&lt;b&gt;&lt;i&gt;"
    assert html("{}", html("<b>")[:2]) == "&lt;b"


@pytest.mark.parametrize("value", ["</script>", "<!--", "]]>", "\u2028", "&lt;", "\ud800"])
def test_nothing_in_data_ends_its_element(value: str) -> None:
    block = data_block({value: [value]})
    inside = block.removeprefix('<script type="application/json">').removesuffix("</script>")
    assert inside.isascii() and not set("<>&") & set(inside)
    assert json.loads(inside) == {value: [value]}


def test_the_policy_has_the_digest_of_the_only_script() -> None:
    digest = base64.b64encode(hashlib.sha256(b"\nrun();\n").digest()).decode()
    policy = content_policy('<p></p><script>\nrun();\n</script><script type="application/json">{}</script>')
    directives = dict(part.split(" ", 1) for part in policy.split("; "))
    assert directives["default-src"] == directives["base-uri"] == directives["form-action"] == "'none'"
    assert directives["script-src"] == f"'sha256-{digest}'"
    with pytest.raises(ValueError, match="too many"):
        content_policy("<script>a</script><script>b</script>")


def test_what_can_be_printed_stays() -> None:
    assert printable("größer als €\u00a0\u200d 中 <b>") == "größer als €\u00a0\u200d 中 <b>"
    assert printable("a\tb\nc\x07\x1b\x7f\x85\ud800") == "a b c��� �"
