"""What is loaded for what: a plain search needs neither Newton nor gradients nor figures, and the command
shows its first line before anything that takes long."""

import subprocess
import sys
from pathlib import Path

import pytest


def loaded(code: str) -> set[str]:
    show = "import sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", f"{code}\n{show}"], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def packages(modules: set[str]) -> set[str]:
    return {".".join(module.split(".")[:2]) for module in modules if module.startswith("esgroup.")}


@pytest.mark.parametrize(
    "code",
    [
        "import esgroup; esgroup.minimize",
        "import esgroup; esgroup.Searcher([1.0, 2.0], 0.5)",
        "import esgroup; esgroup.minimize(lambda x: x @ x, [1.0, 2.0], 0.5, max_evals=30)",
    ],
)
def test_a_plain_search_loads_no_newton_no_gradients_and_no_figures(code: str) -> None:
    found = loaded(code)
    assert not packages(found) & {"esgroup.newton", "esgroup.gradients", "esgroup.plots", "esgroup.variational"}
    assert not packages(found) & {"esgroup.compare", "esgroup.command"} and "matplotlib" not in found


COMMAND = """
import contextlib
import sys
from esgroup.command.cli import app
sys.argv = ["esgroup", *{words!r}.split()]
with open({out!r}, "w") as sys.stdout, contextlib.suppress(SystemExit):
    app()
sys.stdout = sys.__stdout__
"""
SEARCH = "run rosenbrock --dim 4 --seed 1 --max-evals 2000"


def loaded_by(words: str, out: Path) -> set[str]:
    """Modules after a command that has printed its output to a file, which is not empty."""
    found = loaded(COMMAND.format(words=words, out=str(out)))
    assert out.read_text() and not out.read_text().startswith("error")
    return found


def test_the_command_draws_without_pyplot_newton_and_comparisons(tmp_path: Path) -> None:
    found = loaded_by(f"{SEARCH} --plot {tmp_path / 'figure.png'}", tmp_path / "out.txt")
    assert "matplotlib.figure" in found and "matplotlib.pyplot" not in found
    assert not packages(found) & {"esgroup.newton", "esgroup.gradients", "esgroup.variational", "esgroup.compare"}


def test_the_list_of_problems_loads_no_search(tmp_path: Path) -> None:
    found = loaded_by("list", tmp_path / "out.txt")
    assert not {"numba", "scipy", "matplotlib", "esgroup.driver.minimize"} & found


def test_the_first_line_is_on_the_screen_before_numba_and_scipy_are_loaded(tmp_path: Path) -> None:
    watched = """
import sys
from esgroup.running import progress
plain = progress.Progress.begins
def begins(self, run):
    print("slow:", {"numba", "scipy", "matplotlib"} & set(sys.modules), file=sys.stderr)
    plain(self, run)
progress.Progress.begins = begins
"""
    code = watched + COMMAND.format(words=SEARCH, out=str(tmp_path / "out.txt"))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.splitlines()[0] == "slow: set()"


def test_import_alone_loads_nothing_heavy() -> None:
    assert not {"numpy", "scipy", "numba"} & loaded("import esgroup")


def test_every_public_name_is_there() -> None:
    import esgroup

    for name in esgroup.__all__:
        assert getattr(esgroup, name) is not None
    assert set(esgroup.__all__) <= set(dir(esgroup))
    with pytest.raises(AttributeError, match="has no attribute 'minimise'"):
        esgroup.minimise  # noqa: B018
