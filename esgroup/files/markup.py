"""Making external text safe to show on a terminal and in an HTML page.

A page has two lines of defense: everything put into it is escaped, unless it was made here, and its content policy
allows only the script that the page was written with.
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

# control characters, which control terminals, line ends, and lone surrogates, which UTF-8 does not have
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def printable(text: str) -> str:
    """Replace what cannot be printed or stored: white space by spaces, everything else by replacement characters."""
    return _UNPRINTABLE.sub(lambda found: " " if found[0].isspace() else "\N{REPLACEMENT CHARACTER}", text)


# ---- pages ----------------------------------------------------------------------------------------------------------


class Html(str):
    """Text that is already markup. Only functions of this module make it, from templates in the code."""

    __slots__ = ()


class _Escaping(Formatter):
    def format_field(self, value: Any, format_spec: str) -> str:
        return value if isinstance(value, Html) else escape(printable(format(value, format_spec)))


_ESCAPING = _Escaping()


def html(template: LiteralString, *values: object) -> Html:
    """Fill the braces of a template like `str.format`, escaping every value that is not Html.

    Escaped values stay text, between elements and in quoted attributes.
    """
    return Html(_ESCAPING.vformat(template, values, {}))


def joined(parts: Iterable[Html], between: LiteralString = "") -> Html:
    """Concatenate pieces of markup."""
    return Html(between.join(parts))


def data_block(data: Any) -> Html:
    """Data for the script of a page, as JSON that cannot end the element or start a comment."""
    text = json.dumps(data, separators=(",", ":"))  # in ASCII
    for letter in "<>&":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return Html(f'<script type="application/json">{text}</script>')


def content_policy(page: str, more: LiteralString = "") -> str:
    """The policy of a page with one script: nothing is loaded, and no other script runs, wherever it comes from.

    Styles are allowed, since pages put numbers in them; they cannot load anything either.
    """
    (script,) = re.findall(r"<script>(.*?)</script>", page, flags=re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    own = f"script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data:"
    return f"default-src 'none'; {own}; base-uri 'none'; form-action 'none'{more}"
