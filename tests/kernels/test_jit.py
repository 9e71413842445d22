"""The decorator: kernels are compiled lazily and cached, only long compilations are announced, and NaN is seen."""

import os
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
        [sys.executable, "-c", textwrap.dedent(code)],
        env=os.environ | {"PYTHONPATH": path} | environment,
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

    monkeypatch.setattr(jit, "_announced", False)
    monkeypatch.setattr(jit, "_seconds_spent", 0.0)

    def slow(python, signature):
        time.sleep(0.1)
        return python

    monkeypatch.setattr(jit, "_compile", slow)
    monkeypatch.setattr(jit, "_PATIENCE", 10.0)
    jit.Kernel(lambda: None, "")()
    assert capfd.readouterr().err == ""
    monkeypatch.setattr(jit, "_PATIENCE", 0.12)  # the time that all kernels took together counts
    for _ in range(2):
        jit.Kernel(lambda: None, "")()
    text = capfd.readouterr()
    assert text.out == ""
    assert text.err.count("esgroup: compiling its loops") == 1
