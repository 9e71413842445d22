"""The commands of README and pages work as they stand: scripts and options exist, files were made, extras are named.

Blocks marked `sh` and code in sentences that begins like a command go through bash, so that variables, loops and
continued lines mean what they mean to a reader. Functions take the places of the commands and note their words;
nothing is executed. What the words mean is asked of the commands' own parsers.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import typer

from esgroup.command.cli import app

ROOT = Path(__file__).parents[2]
SCRIPTS = ROOT / "scripts"
DOCS = ROOT / "docs"
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted(page for page in DOCS.rglob("*.md") if not {"_build", "tutorials"} & set(page.relative_to(DOCS).parts)),
]
EXTRAS: dict[str, list[str]] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]

COMMANDS = ("scripts/run", "scripts/test", "scripts/docs", "esgroup", "pip", "python", ".venv/bin/python", ".ci/run")
BEGIN = rf"(?:ESGROUP_EXTRAS=\S+ |ESGROUP_EXTRAS=\"[^\"]+\" )?(?:{'|'.join(map(re.escape, COMMANDS))})"
# a block with its language, or code in a sentence that begins like a command
CODE = re.compile(
    rf"^```(?P<language>\w*)\n(?P<block>.*?)^```|(?<!`)`(?P<inline>{BEGIN}(?:\s[^`]+)?)`", re.DOTALL | re.MULTILINE
)
PLACEHOLDER = re.compile(r"\.\.\.|[A-Z]+")
FILE = re.compile(r"[\w/.-]+\.(?:csv|jsonl|npz)")
MADE = re.compile(rf"""(?:--(?:out|history|checkpoint)[ =]|\b(?:history|checkpoint)=")({FILE.pattern})""")

# what a script imports and no extra has: pages say how to install it, or the script leaves it out
BY_HAND = {"pymoo", "jax", "numpyro", "singd", "pytorch_optimizer", "ivon", "loky", "pebble"}
# one experiment of several needs these, and its command says so
OF_A_COMMAND = {("reproduce", "cnn"): ("torch", "sim")}
# modules whose packages have other names, and parts of this package that import others
DISTRIBUTIONS = {"cocoex": "coco-experiment", "sklearn": "scikit-learn", "PIL": "matplotlib", "jinja2": "Jinja2"}
OURS = {
    "esgroup.plots": "matplotlib",
    "esgroup.compare": "matplotlib",
    "esgroup.optuna": "optuna",
    "esgroup.torch": "torch",
}


# ---- what the pages say ---------------------------------------------------------------------------------------------


class Command(NamedTuple):
    """A command of a page."""

    name: str
    words: list[str]
    extras: list[str]  # in ESGROUP_EXTRAS
    place: int  # where in the text

    def __str__(self) -> str:
        return " ".join([self.name, *self.words])


def shell(text: str) -> Iterator[tuple[int, str]]:
    """The places and texts of what is typed into a shell."""
    for match in CODE.finditer(text):
        if match["inline"]:
            yield match.start(), " ".join(match["inline"].split())
        elif match["language"] == "sh":
            yield match.start(), match["block"]
        elif match["language"] == "console":
            lines = match["block"].splitlines()
            yield match.start(), "\n".join(line[2:] for line in lines if line.startswith("$ "))


@cache
def commands(page: Path) -> list[Command]:
    """The commands of a page, as bash understands them."""
    note = 'printf "%s\\0" "$place" "${ESGROUP_EXTRAS-}" "$(($# + 1))" "${FUNCNAME[0]}" "$@"'
    program = ["set -eu", "PATH=", *(f"{name}() {{ {note}; }}" for name in COMMANDS)]
    program += [line for place, text in shell(page.read_text(encoding="utf-8")) for line in (f"place={place}", text)]
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("there is no bash")
    done = subprocess.run([bash], input="\n".join(program), capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, f"{page.name}: {done.stderr}"
    words = iter(done.stdout.split("\0")[:-1])
    found = []
    for place in words:
        extras, count = next(words), int(next(words))
        name, *rest = (next(words) for _ in range(count))
        found.append(Command(name, rest, extras.split(), int(place)))
    return found


def is_complete(command: Command) -> bool:
    """Whether a command can be run as it stands; others name one, or have "..." or NAME in them."""
    return len(command.words) > 1 and not any(PLACEHOLDER.fullmatch(word) for word in command.words)


# ---- what the commands take -----------------------------------------------------------------------------------------


def read_by_typer(given: Any, words: list[str]) -> None:
    """Parse the words of a command of typer, also of one with commands of its own, and execute nothing."""
    command: Any = typer.main.get_command(given)
    context = command.make_context("", list(words))
    while hasattr(command, "resolve_command"):
        name, command, words = command.resolve_command(context, [*context._protected_args, *context.args])
        context = command.make_context(name, list(words), parent=context)


class Parsed(Exception):
    """The words were understood."""


def read_by_script(name: str, words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Parse the words of a script, with typer or argparse, and execute nothing."""
    monkeypatch.syspath_prepend(SCRIPTS)
    module = importlib.import_module(name)
    if hasattr(module, "app"):
        read_by_typer(module.app, words)
    elif hasattr(module, "typer"):
        one = typer.Typer()
        one.command()(module.main)
        read_by_typer(one, words)
    elif hasattr(module, "argparse"):
        parse = argparse.ArgumentParser.parse_args

        def parse_only(self: argparse.ArgumentParser, given: Any = None, namespace: Any = None) -> Any:
            parse(self, given, namespace)
            raise Parsed

        monkeypatch.setattr(argparse.ArgumentParser, "parse_args", parse_only)
        monkeypatch.setattr(sys, "argv", [name, *words])
        with pytest.raises(Parsed):
            module.main()
    elif words:
        sys.exit(f"{name} takes no options")


def fault(command: Command, extras: set[str], monkeypatch: pytest.MonkeyPatch) -> str | None:
    """Why a command does not work as it stands, on a page that has made an environment with these extras."""
    words = command.words
    if command.name in ("python", ".venv/bin/python"):
        if words[:2] == ["-m", "pip"] or (words[:1] == ["-m"] and (ROOT / f"{words[1].replace('.', '/')}.py").exists()):
            return None
        return "scripts/run runs it with the packages that it needs"
    if command.name == "scripts/test":
        absent = [word for word in words if word.startswith("tests/") and not (ROOT / word).exists()]
        return f"there is no {absent[0]}" if absent else None
    is_script = command.name == "scripts/run" and bool(words) and words[0].endswith(".py")
    if is_script and not (ROOT / words[0]).is_file():
        return "there is no such script"
    if is_script and (missing := set(OF_A_COMMAND.get((Path(words[0]).stem, *words[1:2]), ())) - extras):
        return f"it needs ESGROUP_EXTRAS with {' '.join(sorted(missing))}"
    if command.name not in ("esgroup", "scripts/run") or any(PLACEHOLDER.fullmatch(word) for word in words):
        return None
    try:
        if is_script:
            read_by_script(Path(words[0]).stem, words[1:], monkeypatch)
        elif len(words) > 1:
            read_by_typer(app, words)
    except (SystemExit, typer.Exit) as end:  # argparse's refusal has a code, --help has none
        return f"its options are not understood: {end}" if getattr(end, "code", 0) else None
    except ModuleNotFoundError as error:
        if (SCRIPTS / f"{error.name}.py").exists():
            raise
        return None  # a package that is not installed here: the script's extras are checked below
    except Exception as error:
        if not type(error).__module__.startswith(("click.", "typer.")):
            raise
        return f"its options are not understood: {getattr(error, 'message', error)}"
    return None


def faults(page: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The commands of a page that do not work as they stand, each with the reason."""
    extras = {extra for command in commands(page) for extra in command.extras}
    return [f"{command}: {why}" for command in commands(page) if (why := fault(command, extras, monkeypatch))]


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("scripts/run run rosenbrock --dims 5", "not understood"),
        ("esgroup run rosenbrock --dim many", "not understood"),
        ("esgroup solve rosenbrock", "not understood"),
        ("scripts/run scripts/figure_nothing.py", "no such script"),
        ("scripts/run scripts/figure_search.py --outt search.png", "not understood"),
        ("scripts/run scripts/bench_bbob.py run esgroup --instances 1-5", "not understood"),  # without --out
        ("scripts/run scripts/bench_large.py suite --dimensions 80 --out large", "not understood"),
        ("scripts/run scripts/bench_groups.py --quickly", "not understood"),
        ("scripts/run scripts/compile_kernels.py --all", "takes no options"),
        ("scripts/run scripts/reproduce.py cnn", "torch"),
        (".venv/bin/python scripts/figure_search.py", "scripts/run runs it"),
        ("python -m tests.search.nothing", "scripts/run runs it"),
        ("scripts/test tests/nothing", "no tests/nothing"),
    ],
)
def test_a_command_that_does_not_work_is_noticed(
    command: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a block, in a sentence, and in a loop."""
    pages = (
        f"```sh\n{command}\n```\n",
        f"With `{command}` all is well.\n",
        f"```sh\nfor i in 1; do {command}; done\n```\n",
    )
    for i, text in enumerate(pages):
        (tmp_path / f"{i}.md").write_text(text)
        (found,) = faults(tmp_path / f"{i}.md", monkeypatch)
        assert found.startswith(command) and why in found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_commands_of_a_page_are_understood(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert faults(page, monkeypatch) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_files_that_a_command_reads_were_made_further_up(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    made: set[str] = set()
    wrong = []
    for command in commands(page):
        made |= set(MADE.findall(text[: command.place])) | set(MADE.findall(str(command)))
        read = [word for word in command.words if FILE.fullmatch(word)]
        wrong += [f"{command}: nobody made {word}" for word in read if word not in made]
    assert wrong == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_says_which_extras_its_commands_need(page: Path) -> None:
    """`scripts/run` brings them itself; `esgroup` is what somebody has installed."""
    text = page.read_text(encoding="utf-8")
    said = set(re.findall(r"extras? `(\w+)`", text))
    wrong = []
    for command in commands(page):
        if command.name == "esgroup" and is_complete(command):
            needed = {"plot", "compare"} & {command.words[0]} | ({"plot"} if "--plot" in command.words else set())
            wrong += [f"{command}: needs the extra {extra}" for extra in sorted(needed - said)]
        asked = re.findall(r"\[([\w,]+)\]", str(command)) if "install" in command.words else command.extras
        named = [one for extra in asked for one in extra.split(",")]
        wrong += [f"{command}: there is no extra {one}" for one in named if one not in EXTRAS]
    assert wrong == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_shell_commands_are_marked_as_such(page: Path) -> None:
    """Only what is marked is looked at above."""
    blocks = [match["block"] for match in CODE.finditer(page.read_text(encoding="utf-8")) if match["language"] == ""]
    assert [block for block in blocks if block and re.match(rf"(\$ )?{BEGIN}\b|for \w+ in ", block)] == []


def test_the_pages_have_commands() -> None:
    found = [command for page in PAGES for command in commands(page)]
    assert len([command for command in found if is_complete(command)]) > 100
    assert {command.name for command in found} >= {"scripts/run", "scripts/test", "scripts/docs", "esgroup", "pip"}


# ---- what the scripts need ------------------------------------------------------------------------------------------


def imports(path: Path) -> set[str]:
    """The modules that a file imports anywhere."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def needs(path: Path, seen: set[Path]) -> set[str]:
    """The packages that a script imports, also through modules beside it, as pyproject.toml calls them."""
    seen.add(path)
    found = set()
    for name in imports(path):
        beside = [SCRIPTS / (name.replace(".", "/") + ending) for ending in (".py", "/__init__.py")]
        for module in beside:
            if module.exists() and module not in seen:
                found |= needs(module, seen)
        top = name.partition(".")[0]
        if top == "esgroup":
            found |= {package for part, package in OURS.items() if name.startswith(part)}
        elif not (SCRIPTS / f"{top}.py").exists() and not (SCRIPTS / top).is_dir():
            found.add(DISTRIBUTIONS.get(top, top))
    return found


def packages(extra: str) -> set[str]:
    return {re.split(r"[^\w-]", requirement)[0] for requirement in EXTRAS[extra]}


CORE = {"numpy", "scipy", "numba", "typer", "rich", "esgroup_problems"}


@pytest.mark.parametrize("path", sorted(SCRIPTS.glob("*.py")), ids=lambda path: path.stem)
def test_a_script_names_the_extras_that_it_needs(path: Path) -> None:
    """`scripts/run` reads the line and installs them."""
    text = path.read_text(encoding="utf-8")
    lines = re.findall(r"^# extras: ([\w ]+)$", text, re.MULTILINE)
    if 'if __name__ == "__main__":' not in text:
        assert lines == [], "only scripts that are run have extras"
        return
    assert len(lines) <= 1
    extras = [extra for line in lines for extra in line.split()]
    besides = [extra for (name, _), more in OF_A_COMMAND.items() if name == path.stem for extra in more]
    brought = {package for extra in (*extras, *besides) for package in packages(extra)}
    assert sorted(needs(path, set()) - brought - CORE - BY_HAND - set(sys.stdlib_module_names)) == []
