"""What a package index shows, and what the README keeps to."""

import re
import tomllib
from importlib.metadata import version
from pathlib import Path

import esgroup

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
LINK = re.compile(r"\]\(([^)]+)\)")  # from the end of its words on: these may have brackets themselves


def shown() -> str:
    """The README as the index gets it."""
    text = README
    for rule in PROJECT["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]["substitutions"]:
        text = re.sub(rule["pattern"], rule["replacement"], text)
    return text


def test_links_of_the_readme_lead_somewhere() -> None:
    links = [link for link in LINK.findall(README) if not link.startswith("https://")]
    assert links
    missing = [link for link in links if not (ROOT / link.partition("#")[0]).exists()]
    assert missing == []


def test_an_index_gets_no_pictures_and_no_links_into_the_repository() -> None:
    text = shown()
    assert "![" in README and "![" not in text
    assert [link for link in LINK.findall(text) if not link.startswith("https://")] == []
    assert "draws this" not in text
    assert len(text) > 0.8 * len(LINK.sub("", README))  # nothing else is gone


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) <= 150


def test_nothing_is_left_to_be_filled_in() -> None:
    assert not re.search(r"@[A-Z0-9]+@", README)


def test_versions_are_the_same_everywhere() -> None:
    version = PROJECT["project"]["version"]
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"## [{version.removesuffix('.dev0')}]" in (ROOT / "CHANGELOG.md").read_text()
    assert esgroup.__version__ in (version, "0+unknown")  # unknown where the package is not installed


def test_the_pythons_that_the_package_names_are_those_that_were_tried() -> None:
    named = re.findall(r"Python :: (3\.\d+)\n", "\n".join(PROJECT["project"]["classifiers"]))
    tried = re.search(r"Tested on Linux.*?\. Other versions", (ROOT / "docs" / "VERSIONS.md").read_text(), re.DOTALL)
    assert tried is not None and re.findall(r"\b3\.\d\d\b", tried[0]) == named
    assert PROJECT["project"]["requires-python"] == f">={named[0]}"
    workflow = ROOT / ".github" / "workflows" / "ci.yml"  # which a source archive does not have
    if workflow.exists():
        matrix = re.search(r"python: \[(.*)\]", workflow.read_text())
        assert matrix is not None and re.findall(r"[\d.]+", matrix[1]) == named


def test_every_package_of_the_core_has_a_lower_bound_that_is_installed_here() -> None:
    for requirement in PROJECT["project"]["dependencies"]:
        found = re.fullmatch(r"(\w+)>=(\d+(?:\.\d+)*)", requirement)
        assert found, requirement
        wanted = [int(number) for number in found[2].split(".")]
        assert [int(number) for number in re.findall(r"\d+", version(found[1]))][: len(wanted)] >= wanted
