"""The decorator: kernels are compiled lazily and cached if possible, long compilations are announced, NaN is seen."""

import errno
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from esgroup.kernels import jit
from esgroup.kernels.jit import kernel

ROOT = Path(jit.__file__).parents[2]


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, "-P", "-c", textwrap.dedent(code)],  # -P: not what the current folder has
        env={name: text for name, text in (os.environ | {"PYTHONPATH": path} | environment).items() if text},
        capture_output=True,
        text=True,
        check=True,
    )


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], list[str], Path]:
    """What a process that compiles a kernel prints, what the next one prints, and their directory of machine code."""
    code = """
        import sys
        import numpy as np, esgroup, esgroup.groups, esgroup.distributions
        from esgroup.kernels import triangular
        esgroup.groups.Full(3).apply(np.eye(3).ravel(), np.ones(3))
        esgroup.groups.Heisenberg(6).identity()
        print("numba" in sys.modules)
        triangular.unpack(np.ones(3), np.zeros((2, 2)))
        print("numba" in sys.modules)
        stats = triangular.unpack.stats  # the compiled function has taken the kernel's place
        print(sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
    """
    cache = tmp_path_factory.mktemp("cache")
    first, second = (run(code, NUMBA_CACHE_DIR=str(cache)).stdout.split() for _ in range(2))
    return first, second, cache


def test_numba_is_loaded_with_the_first_kernel_and_not_before(processes: tuple[list[str], list[str], Path]) -> None:
    for printed in processes[:2]:
        assert printed[:2] == ["False", "True"]


def test_a_kernel_is_kept_on_disk_and_found_by_the_next_process(processes: tuple[list[str], list[str], Path]) -> None:
    first, second, cache = processes
    assert first[2:] == ["0", "1"]
    assert list(cache.rglob("*unpack*.nbc"))
    assert second[2:] == ["1", "0"]


@kernel("in1, out1")
def double(x, out):  # type: ignore[no-untyped-def]
    """out = 2 x, with -1 where x is NaN."""
    for i in range(x.shape[0]):
        out[i] = -1.0 if np.isnan(x[i]) else 2.0 * x[i]


@pytest.mark.parametrize("inlined", [False, True])
def test_a_kernel_that_calls_another_is_compiled_again_when_that_changes(inlined: bool, tmp_path: Path) -> None:
    """Also if it is in another file, at which Numba does not look; otherwise both are found on disk."""
    inner = f"""
        from esgroup.kernels.jit import kernel

        @kernel("in1, float, out1", inlined={inlined})
        def scale(x, factor, out):
            for i in range(x.shape[0]):
                out[i] = factor * x[i]
    """
    outer = """
        from esgroup.kernels.jit import kernel
        from inner_loops import scale

        @kernel("in1, out1")
        def twice(x, out):
            scale(x, 2.0, out)
            scale(out[:1], 3.0, out[1:])
    """
    code = """
        import numpy as np, outer_loops
        out = np.zeros(2)
        outer_loops.twice(np.ones(2), out)
        stats = outer_loops.twice.stats
        print(out.tolist(), sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
    """
    (tmp_path / "outer_loops.py").write_text(textwrap.dedent(outer))
    printed = []
    for factor in ("factor", "factor", "10 * factor"):
        text = textwrap.dedent(inner).replace("factor * x", f"{factor} * x")
        if not printed or factor != "factor":
            (tmp_path / "inner_loops.py").write_text(text)
        path = os.pathsep.join([str(ROOT), str(tmp_path)])
        printed.append(run(code, PYTHONPATH=path, NUMBA_CACHE_DIR=str(tmp_path / "cache")).stdout.strip())
    assert printed == ["[2.0, 6.0] 0 1", "[2.0, 6.0] 1 0", "[20.0, 600.0] 0 1"]


def test_inputs_may_be_read_only_and_nan_is_seen() -> None:
    x, out = np.array([1.0, np.nan, np.inf]), np.empty(3)
    x.flags.writeable = False
    double(x, out)
    assert out.tolist() == [2.0, -1.0, np.inf]


def test_a_result_cannot_be_written_into_a_read_only_array() -> None:
    out = np.empty(3)
    out.flags.writeable = False
    with pytest.raises(TypeError):
        double(np.ones(3), out)


def test_long_compilations_are_announced_once_and_short_ones_are_not(monkeypatch, capfd) -> None:
    import time

    compilations = jit._Compilations()

    def compile_for(seconds: float) -> None:
        compilations.begin("a kernel")
        compilations.begin("a function that it calls")
        compilations.end()
        time.sleep(seconds)
        compilations.end()

    monkeypatch.setattr(jit, "_PATIENCE", 10.0)
    compile_for(0.1)
    assert capfd.readouterr().err == ""
    monkeypatch.setattr(jit, "_PATIENCE", 0.12)  # the time that all kernels took together counts
    for _ in range(2):
        compile_for(0.1)
    text = capfd.readouterr()
    assert text.out == ""
    assert text.err.count("esgroup: compiling kernels (now a kernel)") == 1


def test_loading_from_the_disk_is_not_announced_however_slow(processes: tuple[list[str], list[str], Path]) -> None:
    code = """
        import numpy as np
        from esgroup.kernels import jit, triangular
        jit._PATIENCE = 0.0
        triangular.unpack(np.ones(3), np.zeros((2, 2)))
        print(jit.prepared > 0, jit._compilations.spent > 0)
    """
    loaded = run(code, NUMBA_CACHE_DIR=str(processes[2]))
    assert (loaded.stdout, loaded.stderr) == ("True False\n", "")


def test_the_time_of_a_kernel_that_another_one_calls_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every compilation takes a second on this clock; the outer one begins, compiles the inner one, and ends."""
    clock = 0.0
    inner, outer = jit.Kernel(_times(2.0), "in1, out1"), jit.Kernel(_times(3.0), "in1, out1")

    def compile_for_a_second(python: object, signature: str):  # type: ignore[no-untyped-def]
        nonlocal clock
        if python is outer.python:
            inner.compile()
        clock += 1.0
        return lambda x, out: None

    monkeypatch.setattr(jit, "_compile", compile_for_a_second)
    monkeypatch.setattr(jit.time, "perf_counter", lambda: clock)
    before = jit.prepared
    outer.compile()
    assert jit.prepared - before == pytest.approx(2.0)


def test_what_others_compile_meanwhile_is_not_announced_as_ours(processes: tuple[list[str], list[str], Path]) -> None:
    """Another thread compiles a function of its own for as long as a kernel of ours is loaded from the disk."""
    code = """
        import threading
        import numba
        import numpy as np
        from numba.core import event
        from esgroup.kernels import jit, triangular

        jit._PATIENCE = 0.0
        others = []

        class Other(event.Listener):
            def on_start(self, event):
                others.append(threading.get_ident())
            def on_end(self, event):
                pass

        def compile_their_function():
            numba.njit("float64(float64)")(lambda x: 2.0 * x)

        load = numba.njit

        def njit(*arguments, **options):
            thread = threading.Thread(target=compile_their_function)
            numba.njit = load
            thread.start()
            thread.join()
            return load(*arguments, **options)

        numba.njit = njit  # called while we listen
        with event.install_listener("numba:compile", Other()):
            triangular.unpack(np.ones(3), np.zeros((2, 2)))
        print(len(others), threading.get_ident() in others, jit._compilations.spent > 0)
    """
    loaded = run(code, NUMBA_CACHE_DIR=str(processes[2]))
    assert (loaded.stdout, loaded.stderr) == ("1 False False\n", "")


def test_a_search_whose_loops_are_on_disk_claims_no_compilation(tmp_path: Path) -> None:
    """With patience zero the first process says that it compiles; the second one, which only loads, is silent."""
    code = """
        import esgroup
        from esgroup.kernels import jit

        jit._PATIENCE = 0.0
        esgroup.minimize(lambda x: float(x @ x), [1.0, 2.0], 0.5, structure="diagonal", max_evals=30, rng=1)
        print(jit.prepared > 0, jit._compilations.spent > 0)
    """
    first, second = (run(code, NUMBA_CACHE_DIR=str(tmp_path)) for _ in range(2))
    assert first.stdout == "True True\n"
    assert first.stderr.startswith("esgroup: compiling kernels (now ") and first.stderr.count("\n") == 1
    assert "they are cached on disk for later runs" in first.stderr
    assert (second.stdout, second.stderr) == ("True False\n", "")


@pytest.fixture
def no_place(tmp_path: Path) -> dict[str, str]:
    """A copy of the package beside which nothing can be written, and a home that does not exist.

    Root may write everywhere, so that files are in the place of the folders.
    """
    shutil.copytree(ROOT / "esgroup", tmp_path / "esgroup", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "esgroup" / "kernels" / "__pycache__").touch()
    (tmp_path / "home").touch()
    away = {"NUMBA_CACHE_DIR": "", "XDG_CACHE_HOME": ""}
    return away | {"PYTHONPATH": str(tmp_path), "HOME": str(tmp_path / "home")}


def test_without_a_place_for_machine_code_loops_are_compiled_and_a_warning_names_the_cure(
    no_place: dict[str, str],
) -> None:
    code = """
        import numpy as np
        from esgroup.kernels import triangular
        out = np.zeros((2, 2))
        for _ in range(2):
            triangular.unpack(np.ones(3), out)
        triangular.pack(out, 0, np.zeros(3))
        print(out.tolist(), triangular.__file__)
    """
    done = run(code, **no_place)
    assert done.stdout == f"[[1.0, 0.0], [1.0, 1.0]] {no_place['PYTHONPATH']}/esgroup/kernels/triangular.py\n"
    assert done.stderr.count("RuntimeWarning") == 1 and "NUMBA_CACHE_DIR" in done.stderr


def test_a_place_for_machine_code_that_is_full_costs_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    from numba.core import caching

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(caching.Cache, "save_overload", full)
    monkeypatch.setattr(jit, "_warned", False)
    with pytest.warns(RuntimeWarning, match=r"NUMBA_CACHE_DIR.*No space left") as caught:
        for factor in (2.0, 3.0):
            times = jit.Kernel(_times(factor), "in1, out1")
            out = np.empty(2)
            times(np.ones(2), out)
            assert out.tolist() == [factor, factor]
    assert len(caught) == 1


def _times(factor: float):  # type: ignore[no-untyped-def]
    def times(x, out):  # type: ignore[no-untyped-def]
        for i in range(x.shape[0]):
            out[i] = factor * x[i]

    return times


def test_a_fault_in_a_kernel_is_not_taken_for_a_lack_of_space() -> None:
    def wrong(x, out):  # type: ignore[no-untyped-def]
        out[0] = x.no_such_attribute

    with pytest.raises(Exception, match="no_such_attribute"):
        jit.Kernel(wrong, "in1, out1").compile()
