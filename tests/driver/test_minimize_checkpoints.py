"""A run of `minimize` that is resumed from its checkpoint equals the uninterrupted run, bit for bit."""

import itertools
import math
import multiprocessing
import time
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import esgroup
from esgroup.checks import Array
from esgroup.files import autosave
from esgroup.files import npz as files
from esgroup.search.searcher import Searcher
from tests.driver.support import X0, Recorder, by_hand, ellipsoid, fail, rastrigin, same, wait_for


class TestCheckpoints:
    OPTIONS: ClassVar[dict[str, Any]] = {"sigma0": 0.5, "rng": 9}

    def interrupted(self, path: Path, fun: Any, at: list[int], **options: Any) -> list[Array]:
        """The points of a run that is broken off at given numbers of calls and resumed each time."""
        points: list[Array] = []
        options = {**self.OPTIONS, "checkpoint": path, **options}
        for session, call in enumerate(at):
            part = Recorder(fun, call - len(points), fail(RuntimeError("broken off")))
            with pytest.raises(RuntimeError, match="broken off"):
                esgroup.minimize(part, X0, **options, resume=session > 0)
            points += part.points
            assert len(points) == call
        part = Recorder(fun)
        self.result = esgroup.minimize(part, X0, **options, resume=True)
        return points + part.points

    @pytest.mark.parametrize("restarts", [None, "ipop", "bipop"])
    @pytest.mark.parametrize("at", [[0], [1, 1, 2], [7, 70, 75, 76], [700, 2100, 4200]], ids=str)
    @pytest.mark.parametrize("bounds", [None, (-2.0, 3.0)], ids=str)
    def test_a_run_that_was_broken_off_anywhere_continues_bit_for_bit(
        self, at: list[int], restarts: str | None, bounds: Any, tmp_path: Path
    ) -> None:
        whole = Recorder(rastrigin)
        options: dict[str, Any] = {"max_evals": 6000, "restarts": restarts, "bounds": bounds}
        expected = esgroup.minimize(whole, X0, **self.OPTIONS, **options)
        at = [call for call in at if call < len(whole.points)]
        parts = self.interrupted(tmp_path / "run.npz", rastrigin, at, **options) if at else whole.points
        assert same(parts, whole.points)
        if at:
            for name in ("fun", "nfev", "nit", "nfailed", "restarts", "success", "message", "stop"):
                assert self.result[name] == expected[name]
            for name in ("x", "xmean", "stds"):
                assert np.array_equal(self.result[name], expected[name])

    def test_it_continues_after_each_generation_bit_for_bit(self, tmp_path: Path) -> None:
        """A run of many sessions of one generation each; the values are so coarse that restarts come soon."""
        whole, parts = (Recorder(lambda x: round(ellipsoid(x), -2)) for _ in range(2))
        options: dict[str, Any] = {**self.OPTIONS, "restarts": "bipop", "max_evals": 500}
        expected = esgroup.minimize(whole, X0, **options)
        for session in range(1000):
            file = {"checkpoint": tmp_path / "run.npz", "resume": session > 0}
            result = esgroup.minimize(parts, X0, **options, **file, callback=lambda search: True)
            if "callback" not in result.stop or "max_evals" in result.stop:
                break
        assert session > 20
        assert same(parts.points, whole.points)
        assert result.restarts == expected.restarts > 0
        assert np.array_equal(result.x, expected.x)

    def test_limits_that_are_given_replace_the_saved_ones(self, tmp_path: Path) -> None:
        path = tmp_path / "run.npz"
        options: dict[str, Any] = {**self.OPTIONS, "restarts": "ipop", "popsize": 6}
        first = esgroup.minimize(rastrigin, X0, **options, checkpoint=path, max_evals=600, target=-1.0)
        assert 600 <= first.nfev < 600 + 48
        same_again = esgroup.minimize(rastrigin, X0, **options, checkpoint=path, resume=True)
        assert (same_again.nfev, same_again.stop.keys()) == (first.nfev, first.stop.keys())
        more = esgroup.minimize(rastrigin, X0, **options, checkpoint=path, resume=True, max_evals=6000)
        whole = esgroup.minimize(rastrigin, X0, **options, max_evals=6000)
        assert more.nfev == whole.nfev >= 6000
        assert more.restarts == whole.restarts > 1
        assert np.array_equal(more.xmean, whole.xmean)
        done = esgroup.minimize(rastrigin, X0, **options, checkpoint=path, resume=True, target=1e9)
        assert (done.nfev, done.success) == (more.nfev, True)
        assert "target" in done.stop

    def test_limits_of_a_resumed_search_hold_over_restarts(self, tmp_path: Path) -> None:
        path = tmp_path / "run.npz"
        options: dict[str, Any] = {**self.OPTIONS, "restarts": "ipop", "checkpoint": path}
        assert esgroup.minimize(rastrigin, X0, **options, max_evals=3000).restarts > 0
        left: list[int] = []
        esgroup.minimize(
            rastrigin,
            X0,
            **options,
            resume=True,
            max_evals=3500,
            callback=lambda s: left.append(s.limits.max_evals - s.nfev),
        )
        assert len(left) > 2
        assert all(0 <= after < before for before, after in itertools.pairwise(left))  # the search knows what is left
        assert left[-1] < 30
        assert "max_evals" in Searcher.load(path).stop()

    def test_a_file_of_a_searcher_can_be_resumed(self, tmp_path: Path) -> None:
        path, whole, first, second = tmp_path / "run.npz", Recorder(ellipsoid), Recorder(ellipsoid), Recorder(ellipsoid)
        esgroup.minimize(whole, X0, **self.OPTIONS, max_iters=20)
        by_hand(first, rng=9, max_iters=8).save(path)
        result = esgroup.minimize(second, X0, **self.OPTIONS, checkpoint=path, resume=True, max_iters=20)
        assert same(first.points + second.points, whole.points)
        assert result.nit == 20

    def test_time_counts_over_sessions(self, tmp_path: Path) -> None:
        options: dict[str, Any] = {**self.OPTIONS, "checkpoint": tmp_path / "run.npz", "max_time": 0.5}
        esgroup.minimize(rastrigin, X0, **options, restarts="ipop")
        begin, fun = time.monotonic(), Recorder(rastrigin)
        esgroup.minimize(fun, X0, **options, restarts="ipop", resume=True)
        assert time.monotonic() - begin < 0.4
        assert not fun.points

    def test_other_searches_are_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "run.npz"
        Searcher(np.ones(4), 0.5).save(path)
        with pytest.raises(ValueError, match=r"run\.npz.* 4 variables .* 3 variables"):
            esgroup.minimize(ellipsoid, X0, 0.5, checkpoint=path, resume=True)
        Searcher(X0, 0.5, bounds=(-9, 9)).save(path)
        with pytest.raises(ValueError, match="lower bounds"):
            esgroup.minimize(ellipsoid, X0, 0.5, checkpoint=path, resume=True)
        with pytest.raises(ValueError, match=r"structure.* Full\(dim=3\).* Diagonal\(dim=3\)"):
            esgroup.minimize(ellipsoid, X0, 0.5, bounds=(-9, 9), structure="diagonal", checkpoint=path, resume=True)
        with pytest.raises(ValueError, match=r"noise is None, not 'adapt'"):
            esgroup.minimize(ellipsoid, X0, 0.5, bounds=(-9, 9), noise="adapt", checkpoint=path, resume=True)

    def test_an_existing_file_is_not_overwritten(self, tmp_path: Path) -> None:
        path = tmp_path / "run.npz"
        esgroup.minimize(ellipsoid, X0, 0.5, checkpoint=path, max_iters=3)
        before = path.read_bytes()
        with pytest.raises(FileExistsError, match=r"resume=True.*run\.npz"):
            esgroup.minimize(ellipsoid, X0, 0.5, checkpoint=path, max_iters=3)
        assert path.read_bytes() == before

    def test_nothing_to_resume_from_is_an_error(self, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError, match=r"resume=True.*run\.npz"):
            esgroup.minimize(ellipsoid, X0, 0.5, checkpoint=tmp_path / "run.npz", resume=True)
        with pytest.raises(ValueError, match=r"checkpoint.*resume=True.*None"):
            esgroup.minimize(ellipsoid, X0, 0.5, resume=True)

    def test_a_damaged_file_is_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "run.npz"
        esgroup.minimize(ellipsoid, X0, 0.5, checkpoint=path, max_iters=3, restarts="bipop")
        header, arrays = files.read(path, "searcher")
        for name in ("restarts", "first", "schedule", "plan", "rng"):
            runs = {key: value for key, value in header["runs"].items() if key != name or name == "restarts"}
            runs |= {"restarts": {"class": "IPOP"}} if name == "restarts" else {}
            files.write(path, "searcher", {**header, "runs": runs}, arrays)
            with pytest.raises(esgroup.CheckpointError, match=r"run\.npz"):
                esgroup.minimize(ellipsoid, X0, 0.5, checkpoint=path, resume=True, restarts="bipop")
        for name in ("schedule", "plan"):
            for field in header["runs"][name]:
                part = {key: value for key, value in header["runs"][name].items() if key != field}
                part |= {field: "many"} if field == "max_evals" else {}
                files.write(path, "searcher", {**header, "runs": {**header["runs"], name: part}}, arrays)
                with pytest.raises(esgroup.CheckpointError, match=rf"run\.npz .*{field}"):
                    esgroup.minimize(ellipsoid, X0, 0.5, checkpoint=path, resume=True, restarts="bipop")
        for wrong in ({"run": -1}, {"began": {"nfev": 0}}, {"began": {**header["began"], "nit": "many"}}):
            files.write(path, "searcher", {**header, **wrong}, arrays)
            with pytest.raises(esgroup.CheckpointError, match=r"run\.npz"):
                esgroup.minimize(ellipsoid, X0, 0.5, checkpoint=path, resume=True, restarts="bipop")

    @pytest.mark.parametrize("version", [1, 4])
    def test_a_file_of_an_earlier_format_is_refused_and_nothing_else_happens(
        self, version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path, fun = tmp_path / "run.npz", Recorder(ellipsoid)
        with monkeypatch.context() as before:
            before.setattr(files, "VERSION", version)
            esgroup.minimize(ellipsoid, X0, 0.5, rng=1, checkpoint=path, max_iters=3)
        written = path.read_bytes()
        both = rf"run\.npz has format version {version} .* reads version {files.VERSION}"
        text = f"{both}: finish it with .* or start again"
        with pytest.raises(esgroup.CheckpointError, match=text):
            esgroup.minimize(fun, X0, 0.5, rng=1, checkpoint=path, max_iters=6, resume=True)
        with pytest.raises(esgroup.CheckpointError, match=text):
            Searcher.load(path)
        assert not fun.points and path.read_bytes() == written and list(tmp_path.iterdir()) == [path]

    def test_a_generation_that_was_interrupted_after_its_target_is_completed(self, tmp_path: Path) -> None:
        """The uninterrupted run would have evaluated it as a whole."""
        whole = Recorder(ellipsoid)
        result = esgroup.minimize(whole, X0, 0.5, rng=1, target=2.0)
        values = [ellipsoid(x) for x in whole.points]
        hit = next(i for i, value in enumerate(values, start=1) if value <= 2.0)
        assert hit < result.nfev
        path = tmp_path / "run.npz"
        first = Recorder(ellipsoid, hit, fail(RuntimeError("broken off")))
        with pytest.raises(RuntimeError, match="broken off"):
            esgroup.minimize(first, X0, 0.5, rng=1, target=2.0, checkpoint=path)
        resumed = esgroup.minimize(ellipsoid, X0, 0.5, rng=1, target=2.0, checkpoint=path, resume=True)
        assert (resumed.nfev, resumed.fun, resumed.nit) == (result.nfev, result.fun, result.nit)

    def test_a_damaged_partial_generation_is_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "run.npz"
        with pytest.raises(RuntimeError, match="broken off"):
            esgroup.minimize(Recorder(ellipsoid, 3, fail(RuntimeError("broken off"))), X0, 0.5, checkpoint=path)
        header, arrays = files.read(path, "searcher")
        assert [row for row, _ in header["unfinished"]["known"]] == [0, 1, 2]
        for name, value in (("known", [[7, 1.0]]), ("known", [[0, "low"]]), ("before", 3), ("before", {"nfev": 0})):
            files.write(path, "searcher", {**header, "unfinished": {**header["unfinished"], name: value}}, arrays)
            with pytest.raises(esgroup.CheckpointError, match=r"run\.npz"):
                esgroup.minimize(ellipsoid, X0, 0.5, checkpoint=path, resume=True)

    def test_a_path_that_does_not_work_is_noticed_before_the_first_evaluation(self, tmp_path: Path) -> None:
        fun = Recorder(ellipsoid)
        with pytest.raises(FileNotFoundError):
            esgroup.minimize(fun, X0, 0.5, checkpoint=tmp_path / "missing" / "run.npz")
        assert not fun.points

    @pytest.mark.parametrize(
        ("seconds", "written"), [(100.0, [1, 2, 3, 4, 5, 6]), (10.0, [2, 3, 4, 5, 6]), (5.0, [4, 6]), (1.0, [])]
    )
    def test_a_tenth_of_the_time_may_go_into_writing(
        self, seconds: float, written: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Six generations take `seconds` each, a file takes one; one file is written before them and one at the end."""
        now, generations = [0.0], []
        writes: list[int] = []

        def write(*_: Any) -> None:
            now[0] += 1.0
            writes.append(len(generations))

        def callback(search: Searcher) -> None:
            now[0] += seconds
            generations.append(1)

        monkeypatch.setattr(autosave.time, "monotonic", lambda: now[0])
        monkeypatch.setattr(files, "write", write)
        esgroup.minimize(ellipsoid, X0, 0.5, rng=1, max_iters=6, checkpoint=tmp_path / "run.npz", callback=callback)
        assert writes == [0, *written, 6]

    @pytest.mark.parametrize("kills", [5, pytest.param(100, marks=pytest.mark.slow)])
    def test_a_run_that_is_killed_again_and_again_loses_nothing_that_was_written(
        self, kills: int, tmp_path: Path
    ) -> None:
        """kill -9 at random moments, most of them while a file is being written: the file is complete after each."""
        path, random = tmp_path / "run.npz", np.random.default_rng(11)
        options: dict[str, Any] = {**self.OPTIONS, "restarts": "ipop", "max_evals": 500 * kills}
        expected = esgroup.minimize(rastrigin, X0, **options)
        fork, known = multiprocessing.get_context("fork"), 0
        for _ in range(kills):
            arguments = {**options, "checkpoint": path, "resume": path.exists()}
            child = fork.Process(target=minimize_and_write_always, args=(arguments,), daemon=True)
            child.start()
            for _ in range(3):  # it is at work
                seen = path.stat().st_mtime_ns if path.exists() else 0
                wait_for(path, lambda path, seen=seen: path.stat().st_mtime_ns != seen)
            child.join(0.02 * random.random())
            child.kill()
            child.join()
            nfev = Searcher.load(path).nfev
            assert nfev >= known + 7
            known = nfev
        result = esgroup.minimize(rastrigin, X0, **options, checkpoint=path, resume=True)
        assert (result.nfev, result.restarts, result.fun) == (expected.nfev, expected.restarts, expected.fun)
        assert np.array_equal(result.xmean, expected.xmean)
        assert [file.name for file in tmp_path.iterdir()] == ["run.npz"]


def minimize_and_write_always(arguments: dict[str, Any]) -> None:
    autosave.WRITING = math.inf  # type: ignore[misc]
    esgroup.minimize(rastrigin, X0, **arguments)
