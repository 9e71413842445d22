"""Our own extensions of Sphinx: what they make of formulas, docstrings, links and the command."""

import re
import sys
from pathlib import Path

import pytest

pytest.importorskip("sphinx", reason="sphinx is not installed: pip install 'esgroup[docs]'")
sys.path.insert(0, str(Path(__file__).parents[2] / "docs" / "_extensions"))

import command_help
import docstrings
import mathml
import repository_links
import tutorial_order
from docutils import nodes


@pytest.mark.parametrize("formula", [r"x = m + \sigma A z", r"\Big( \frac{a}{b} \Big)", r"a &= b \\ c &= d"])
def test_formulas_become_mathml(formula: str) -> None:
    text = mathml.converted(None, nodes.math_block(formula, formula), block=True)
    assert re.fullmatch(r"<math.*</math>", text.strip(), re.DOTALL)


@pytest.mark.parametrize(("name", "sign"), [("odot", "⊙"), ("oplus", "⊕"), ("otimes", "⊗")])
def test_a_sign_between_two_letters_is_not_as_large_as_a_sum(name: str, sign: str) -> None:
    formula = rf"C \{name} \kappa = \sum_i x_i"
    text = mathml.converted(None, nodes.math_block(formula, formula), block=True)
    assert f'<mo largeop="false">{sign}</mo>' in text and text.count("largeop") == 1


def test_an_unknown_formula_is_shown_as_it_is_and_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    class Writer:
        encode = staticmethod(lambda text: text)

    text = mathml.converted(Writer(), nodes.math(r"\nosuchcommand", r"\nosuchcommand"), block=False)
    assert text == r"<code>\nosuchcommand</code>"


def markup(text: str) -> list[str]:
    lines = text.splitlines()
    docstrings.as_markup(None, "class", "name", None, None, lines)
    return lines


def test_docstrings_are_plain_text_but_for_backticks() -> None:
    assert markup("fun(x, *args) is |x|, see `a|b` and w_.") == [r"fun(x, \*args) is \|x\|, see `a|b` and w\_."]


def test_names_of_arguments_and_examples_are_left_alone() -> None:
    text = "Do it.\n\nParameters\n----------\n**options\n    More, as *args.\n\nExamples\n--------\n>>> 2 ** 3\n8"
    assert markup(text)[4:6] == ["**options", r"    More, as \*args."]
    assert markup(text)[-2:] == [">>> 2 ** 3", "8"]


def test_drawings_of_matrices_are_code() -> None:
    text = "Matrices.\n\n    [[a, 0],\n     [b, *]]\n\nText."
    assert markup(text) == ["Matrices.", "", ".. code-block:: text", "", "    [[a, 0],", "     [b, *]]", "", "Text."]


@pytest.mark.parametrize(
    ("folder", "link", "leads_to"),
    [
        ("docs", "../README.md", "index.md"),
        ("docs", "../CONTRIBUTING.md#add-a-group", "contributing.md#add-a-group"),
        ("docs/reference", "../../README.md", "../index.md"),
        ("docs", "../scripts/bench_model.py", "path:../scripts/bench_model.py"),
        ("docs", "LARGE.md#measured", "LARGE.md#measured"),
    ],
)
def test_links_lead_to_pages_or_to_files_for_download(folder: str, link: str, leads_to: str) -> None:
    text = f"see [this]({link})."
    result = repository_links.LINK.sub(lambda match: repository_links.in_site(match, folder), text)
    assert result == f"see [this]({leads_to})."


def test_addresses_elsewhere_are_left_alone() -> None:
    assert repository_links.LINK.search("[a](https://example.org/b) and [c](#d)") is None


def test_the_help_of_every_command_is_there_without_colors() -> None:
    assert {"run", "compare", "plot", "list"} <= set(command_help.commands())
    text = command_help.printed("run")
    assert "Usage: esgroup run" in text and "--max-evals" in text and "\x1b" not in text
    assert max(map(len, text.splitlines())) <= command_help.WIDTH


def test_every_example_has_its_place() -> None:
    examples = Path(__file__).parents[2] / "examples"
    assert sorted(tutorial_order.ORDER) == sorted(path.name for path in examples.glob("*.py"))
