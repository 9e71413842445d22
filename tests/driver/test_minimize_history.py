"""The history and the progress line of `minimize`."""

import json
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import esgroup
from esgroup.restarts import IPOP
from tests.driver.support import X0, ellipsoid, rastrigin


class TestHistoryAndProgress:
    def lines(self, path: Path) -> list[dict[str, Any]]:
        return [json.loads(line) for line in path.read_text().splitlines()[1:]]

    def test_the_history_is_that_of_all_runs(self, tmp_path: Path) -> None:
        path = tmp_path / "history.jsonl"
        result = esgroup.minimize(rastrigin, X0, 0.5, rng=4, restarts=IPOP(2), history=path)
        lines = self.lines(path)
        assert [line["nit"] for line in lines] == list(range(1, result.nit + 1))
        assert lines[-1]["nfev"] == result.nfev
        assert all(a["nfev"] < b["nfev"] for a, b in pairwise(lines))
        assert all(a["best_f"] >= b["best_f"] for a, b in pairwise(lines))
        assert lines[-1]["best_f"] == result.fun
        assert sorted({line["restart"] for line in lines}) == [0, 1, 2]

    def test_the_history_continues_when_the_run_is_resumed(self, tmp_path: Path) -> None:
        whole, parts, file = tmp_path / "whole.jsonl", tmp_path / "parts.jsonl", tmp_path / "run.npz"
        options: dict[str, Any] = {"sigma0": 0.5, "rng": 4, "restarts": "ipop"}
        esgroup.minimize(rastrigin, X0, **options, history=whole, max_evals=4000)
        esgroup.minimize(rastrigin, X0, **options, history=parts, max_evals=3000, checkpoint=file)
        esgroup.minimize(rastrigin, X0, **options, history=parts, max_evals=4000, checkpoint=file, resume=True)
        a, b = self.lines(whole), self.lines(parts)
        # the budget cut a generation, whose first part was recorded, too
        cut = [i for i, (one, other) in enumerate(pairwise(b)) if one["nit"] == other["nit"] and other["nfev"] == 3000]
        assert len(cut) == 1
        del b[cut[0] + 1]
        assert len(a) == len(b)
        limits = [line.pop("limits") for line in b if "limits" in line]
        assert [found["max_evals"] for found in limits] == [4000]  # those of the second part; the header has the first
        for one, other in zip(a, b, strict=True):
            assert {**one, "elapsed": 0} == {**other, "elapsed": 0}

    def test_progress_is_silent_without_a_terminal(self, capfd: pytest.CaptureFixture[str]) -> None:
        esgroup.minimize(ellipsoid, X0, 0.5, rng=1, max_iters=5, progress=True)
        assert capfd.readouterr() == ("", "")

    def test_progress_shows_a_line_on_a_terminal(self) -> None:
        import pty

        code = "import esgroup, time; esgroup.minimize(lambda x: time.sleep(.01) or x @ x, [1.0, 2.0], 0.5, "
        code += "max_evals=60, progress=True)"
        primary, secondary = pty.openpty()
        subprocess.run([sys.executable, "-c", code], stderr=secondary, check=True, timeout=60)
        os.close(secondary)
        assert b"of 60 evaluations" in os.read(primary, 100_000)
        os.close(primary)

    def test_flags_are_checked(self) -> None:
        with pytest.raises(TypeError, match=r"progress.* 1"):
            esgroup.minimize(ellipsoid, X0, 0.5, progress=1)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match=r"resume.* 'yes'"):
            esgroup.minimize(ellipsoid, X0, 0.5, resume="yes")  # type: ignore[arg-type]
