"""Words that the project does not use: it writes American English, and says plainly what happens."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
PLACES = ("esgroup", "problems", "docs", "examples", "README.md", "CONTRIBUTING.md", "CHANGELOG.md")
QUOTED = "docs/paper"  # the paper's own words
WORDS = {
    "American spelling": r"colour\w*|cent(re|red|res|ring)|neighbour\w*|behaviour\w*|favourite|learnt|modelled|"
    r"judgement\w*|(min|max|opt)imis(e|es|ed|er|ers|ing|ation)|(recogn|normal|summar|penal|orthogonal)is(e|es|ed|ing)",
    "an integer": r"whole numbers?",
    "continue": r"goes on|went on",
    "bit for bit": r"bit by bit",
    "kernels": r"compiled loops?",
    "worker pool": r"crews?",
    "writer": r"keepers?",
}


def found_in(text: str) -> list[str]:
    """The words of a text that are not used, with what to write instead."""
    return [
        f"{match[0]!r} ({better})"
        for better, words in WORDS.items()
        for match in re.finditer(rf"(?<![\w.])(?:{words})(?!\w)", text, re.IGNORECASE)
    ]


def test_the_check_finds_each_of_them_and_nothing_else() -> None:
    bad = "A crew minimises a colour in the centre; it goes on bit by bit over whole numbers. A keeper, compiled loops."
    assert len(found_in(bad)) == 9
    assert found_in("An optimistic color minimizes the center: whole generations go on, a number of loops.") == []


def test_no_page_and_no_file_of_the_package_uses_them() -> None:
    listed = subprocess.run(["git", "ls-files", *PLACES], cwd=ROOT, capture_output=True, text=True).stdout.split()
    texts = [path for path in listed or _files() if Path(path).suffix in (".py", ".md", ".rst", ".html")]
    wrong = {
        path: words
        for path in texts
        if not path.startswith(QUOTED) and (words := found_in((ROOT / path).read_text(encoding="utf-8")))
    }
    assert len(texts) > 200 and wrong == {}


def _files() -> list[str]:
    """The same without git, as in a source archive."""
    found = (path for place in PLACES for path in [ROOT / place, *(ROOT / place).rglob("*")])
    return [str(path.relative_to(ROOT)) for path in found if path.is_file() and "_build" not in path.parts]
