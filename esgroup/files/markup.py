"""Text from elsewhere made safe to show, on a terminal and in a page of HTML: each in one place.

A page has two lines of defense. All that is put into it is escaped, unless it was made here; and its content policy
lets no script run but the one that the page was written with.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable
from html import escape
from string import Formatter
from typing import Any, LiteralString

# control characters, which steer terminals, the ends of lines, and halves of letters, which UTF-8 does not have
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def printable(text: str) -> str:
    """Replace what can be neither printed nor stored: spaces for white space, and signs for all else."""
    return _UNPRINTABLE.sub(lambda found: " " if found[0].isspace() else "\N{REPLACEMENT CHARACTER}", text)


# ---- pages ----------------------------------------------------------------------------------------------------------


class Html(str):
    """Text that is markup already. Only functions of this module make it, from templates written in the code."""

    __slots__ = ()


class _Escaping(Formatter):
    def format_field(self, value: Any, format_spec: str) -> str:
        return value if isinstance(value, Html) else escape(printable(format(value, format_spec)))


_ESCAPING = _Escaping()


def html(template: LiteralString, *values: object) -> Html:
    """Fill the braces of a template like `str.format`, escaping every value that is not Html.

    What is escaped stays text, between elements and in attributes whose values are in quotes.
    """
    return Html(_ESCAPING.vformat(template, values, {}))


def joined(parts: Iterable[Html], between: LiteralString = "") -> Html:
    """Put pieces of markup one after the other."""
    return Html(between.join(parts))


def data_block(data: Any) -> Html:
    """Data for the script of a page, as JSON in which nothing can end the element or begin a comment."""
    text = json.dumps(data, separators=(",", ":"))  # in ASCII
    for letter in "<>&":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return Html(f'<script type="application/json">{text}</script>')


def content_policy(page: str, more: LiteralString = "") -> str:
    """The policy of a page with one script: nothing is loaded, and no other script runs, wherever it comes from.

    Styles are allowed, since pages have numbers in them; they cannot load anything either.
    """
    (script,) = re.findall(r"<script>(.*?)</script>", page, flags=re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    own = f"script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data:"
    return f"default-src 'none'; {own}; base-uri 'none'; form-action 'none'{more}"
