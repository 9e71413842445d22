"""Problems of installed packages, and functions of the user's own modules."""

import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import pytest

from esgroup import problem_registry
from esgroup.problem_registry import find, known

MODULE = """
from types import SimpleNamespace
import numpy as np

def f(x):
    return float(x @ x)

class Rig:
    @staticmethod
    def measure(x):
        return float(x.sum())

number = 3

def bridge(dim=4):
    "A bridge.\\n\\nMore."
    return SimpleNamespace(fun=f, x0=np.full(dim, 0.5), bounds=(-1, 1))

def wrong(dim=4):
    return SimpleNamespace(fun=f, x0=np.ones(3))

TABLE = {"bridge": bridge, "wrong": wrong}
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    (tmp_path / "own_module.py").write_text(MODULE)
    monkeypatch.delitem(sys.modules, "own_module", raising=False)
    return tmp_path


def install(monkeypatch: pytest.MonkeyPatch, **entries: str) -> None:
    made = [EntryPoint(name, value, problem_registry.GROUP) for name, value in entries.items()]
    monkeypatch.setattr(problem_registry, "_entries", lambda: made)
    known.cache_clear()


@pytest.fixture(autouse=True)
def forget() -> None:
    known.cache_clear()


def test_the_zoo_is_found() -> None:
    task = find("rosenbrock", 5)
    assert (task.name, len(task.x0), task.sigma0, task.minimum) == ("rosenbrock", 5, 0.5, 0.0)
    assert task.batch is not None and task.fun(np.ones(5)) == 0


def test_a_package_may_offer_a_table_or_one_problem(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, table="own_module:TABLE", viaduct="own_module:bridge")
    assert set(known().makers) == {"bridge", "wrong", "viaduct"}
    task = find("viaduct", 2)
    assert task.x0.tolist() == [0.5, 0.5] and task.bounds == (-1, 1)
    assert (task.sigma0, task.batch, task.minimum) == (None, None, None)
    assert len(find("bridge").x0) == 4
    assert problem_registry.summary(known().makers["bridge"]) == "A bridge."
    known.cache_clear()


def test_a_package_that_fails_does_not_hide_the_others(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, good="own_module:bridge", bad="own_module:nothing", worse="no_module_at_all:f")
    assert set(known().makers) == {"good"}
    assert set(known().failures) == {"bad = own_module:nothing", "worse = no_module_at_all:f"}
    with pytest.raises(ValueError, match=r"'bad'.* good.*no_module_at_all:f"):
        find("bad")
    known.cache_clear()


def test_a_problem_of_the_wrong_dimension_is_refused(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, table="own_module:TABLE")
    with pytest.raises(ValueError, match=r"x0 .*\(5,\).*\(3,\)"):
        find("wrong", 5)
    known.cache_clear()


def test_a_function_of_a_module_begins_at_zero(own: Path) -> None:
    task = find("own_module:f", 3)
    assert task.x0.tolist() == [0, 0, 0] and task.fun(np.array([1.0, 2.0, 0.0])) == 5
    assert (task.sigma0, task.bounds, task.batch) == (None, None, None)
    assert find("own_module:Rig.measure", 2).fun(np.array([1.0, 2.0])) == 3


def test_a_start_replaces_the_problems_own_and_tells_the_dimension(own: Path) -> None:
    assert find("own_module:f", x0=[1.0, 2.0]).x0.tolist() == [1, 2]
    assert find("sphere", x0=[1.0, 2.0]).x0.tolist() == [1, 2]
    with pytest.raises(ValueError, match=r"x0 .*\(3,\).*\(2,\)"):
        find("sphere", 3, x0=[1.0, 2.0])


def test_the_current_folder_is_searched(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [p for p in sys.path if p != str(own)])
    assert find("own_module:f", 1).fun(np.array([2.0])) == 4
    assert sys.path[0] == str(own)


@pytest.mark.parametrize(
    "name, message",
    [
        ("own_module:f", r"own_module:f .*--dim.*--x0"),
        ("own_module:g", r"'own_module' .*'g'$"),
        ("own_module:brigde", r"'own_module' .*'brigde' .*'bridge'"),
        ("own_module:number", r"own_module:number .*function.* 3"),
        ("own_module:", "MODULE:FUNCTION, got 'own_module:'"),
        (":f", "MODULE:FUNCTION, got ':f'"),
        ("nowhere:f", r"module 'nowhere'"),
        ("own_module.py:f", r"module 'own_module\.py' .*'own_module'"),
        ("own_package.part:f", r"module 'own_package\.part'"),
        ("lacks:f", r"'lacks' .*ModuleNotFoundError: .* 'absent' .*line 2"),
        ("breaks:f", r"'breaks' .*ZeroDivisionError: .*breaks\.py, line 1"),
        ("typo:f", r"'typo' .*SyntaxError: .*typo\.py, line 1"),
    ],
)
def test_what_cannot_be_found_is_explained(own: Path, name: str, message: str) -> None:
    (own / "lacks.py").write_text("\nimport absent\n")
    (own / "breaks.py").write_text("1 / 0\n")
    (own / "typo.py").write_text("def f(x) return 1\n")
    (own / "own_package").mkdir()
    (own / "own_package" / "__init__.py").write_text("")
    with pytest.raises(ValueError, match=message):
        find(name, None if name == "own_module:f" else 2)
