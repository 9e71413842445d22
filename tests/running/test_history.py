"""The history file: the contents of a line, what remains after a kill, and how a resumed run continues it."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import esgroup
from esgroup.files.lines import LineFile
from esgroup.groups import Diagonal, Kronecker
from esgroup.running.history import History, HistoryFile, read
from esgroup.running.observers import watched


def sphere(x: np.ndarray) -> float:
    return float(x @ x)


def step(search: Any, value: Any = sphere) -> None:
    search.tell([value(x) for x in search.ask()])


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def written(path: Path, generations: int = 3, dim: int = 4, **options: Any) -> Any:
    search = esgroup.Searcher(np.ones(dim), 0.5, rng=1, **options)
    with watched(search, history := History(HistoryFile(path, "bowl"))):
        for _ in range(generations):
            step(search)
            history.generation(search)
    return search


def test_a_line_holds_what_the_searcher_says(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    search = written(path)
    header, *generations = lines(path)
    assert (header["problem"], header["dim"], header["coordinates"], header["structure"]) == ("bowl", 4, 4, "full")
    assert header["versions"]["numpy"] == np.__version__
    last = generations[-1]
    assert [g["nit"] for g in generations] == [1, 2, 3]
    assert (last["nfev"], last["best_f"], last["restart"]) == (search.nfev, search.best_f, 0)
    assert (last["sigma"], last["axis_ratio"]) == (search.sigma, search.axis_ratio)
    assert last["mean"] == search.mean.tolist() and last["stds"] == search.stds.tolist()
    assert 0 <= last["elapsed"] <= search.seconds


def test_the_best_of_a_generation_is_not_the_best_so_far(tmp_path: Path) -> None:
    path, values = tmp_path / "h.jsonl", iter([3.0, 1.0, 2.0, 5.0, 9.0, 4.0])
    search = esgroup.Searcher([0.0, 0.0], 1.0, popsize=3, rng=1)
    with watched(search, history := History(path)):
        for _ in range(2):
            step(search, lambda x: next(values))
            history.generation(search)
    assert [(g["gen_best"], g["best_f"]) for g in lines(path)[1:]] == [(1, 1), (4, 1)]


def test_with_constraints_a_line_holds_the_largest_violation_of_the_best_point(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    search = esgroup.Searcher([3.0, 3.0], 0.3, popsize=6, constraints=2, rng=1)
    violations, feasible = [], []
    with watched(search, history := History(path)):
        for _ in range(30):
            X = search.ask()
            search.tell((X**2).sum(axis=1), constraints=np.column_stack([X[:, 0] - 1, 1000 * (X[:, 1] - 2)]))
            history.generation(search)
            x, y = search.result.x
            violations.append(max(x - 1, 1000 * (y - 2), 0.0))  # each in its own units
            feasible.append(search.result.feasible)
    run = read(path)
    np.testing.assert_allclose(run.violation, violations)
    assert run.feasible.tolist() == feasible
    assert not feasible[0] and feasible[-1]


def test_without_constraints_a_line_says_nothing_of_them(tmp_path: Path) -> None:
    written(tmp_path / "h.jsonl")
    assert all("violation" not in line and "feasible" not in line for line in lines(tmp_path / "h.jsonl"))
    run = read(tmp_path / "h.jsonl")
    assert np.isnan(run.violation).all() and run.feasible.all()


def test_before_the_first_value_there_is_no_feasible_point(tmp_path: Path) -> None:
    search = esgroup.Searcher([3.0, 3.0], 0.3, popsize=6, constraints=1, rng=1)
    search.tell([np.nan] * len(search.ask()), constraints=np.full((6, 1), np.nan))
    with watched(search, history := History(tmp_path / "h.jsonl")):
        history.generation(search)
    last = lines(tmp_path / "h.jsonl")[-1]
    assert (last["violation"], last["feasible"]) == (None, False)


def test_nan_and_infinities_are_null(tmp_path: Path) -> None:
    path, search = tmp_path / "h.jsonl", esgroup.Searcher([0.0, 0.0], 1.0, rng=1)
    with watched(search, history := History(path)):
        for value in (np.nan, np.inf, 2.0, np.nan):
            step(search, lambda x, value=value: value)
            history.generation(search)
    generations = lines(path)[1:]
    assert [g["best_f"] for g in generations] == [None, None, 2, 2]
    assert [g["gen_best"] for g in generations] == [None, None, 2, None]
    np.testing.assert_array_equal(read(path).best_f, [np.nan, np.nan, 2, 2])


def test_of_many_coordinates_the_first_hundred_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    search = written(path, dim=130, structure="diagonal")
    header, *_, last = lines(path)
    assert (header["dim"], header["coordinates"]) == (130, 100)
    assert last["mean"] == search.mean[:100].tolist() and last["stds"] == search.stds[:100].tolist()
    assert read(path).mean.shape == (3, 100)


def test_the_axis_ratio_of_many_coordinates_is_computed_now_and_then(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    written(path, generations=10, dim=50)
    known = [g["nit"] for g in lines(path)[1:] if g["axis_ratio"] is not None]
    assert known == [1, 5, 10]


def test_a_composed_structure_has_a_name_too(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    written(path, structure=Kronecker(Diagonal(2), Diagonal(2)))
    assert lines(path)[0]["structure"].startswith("Kronecker(")


def test_every_generation_is_on_file_at_once(tmp_path: Path) -> None:
    path, search = tmp_path / "h.jsonl", esgroup.Searcher([0.0, 0.0], 1.0, rng=1)
    history = History(path)
    history.begins(search)
    for count in (1, 2):
        step(search)
        history.generation(search)
        assert len(lines(path)) == 1 + count
    history.ends(search, None)


def test_a_torn_last_line_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    written(path)
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    assert read(path).nit.tolist() == [1, 2]
    path.write_bytes(whole[:-1])  # all but the end of the line: the line may be incomplete as well
    assert read(path).nit.tolist() == [1, 2]


def test_a_continued_run_removes_a_torn_line(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    search = written(path)
    with path.open("a") as file:
        file.write('{"nit": 4, "nf')
    with watched(search, history := History(path, append=True)):
        step(search)
        history.generation(search)
    assert read(path).nit.tolist() == [1, 2, 3, 4]
    assert sum("esgroup_history" in line for line in lines(path)) == 1


@pytest.mark.parametrize("left", ["", '{"esgroup_hi'])
def test_a_run_that_was_killed_before_its_first_line_is_continued(tmp_path: Path, left: str) -> None:
    path, search = tmp_path / "h.jsonl", esgroup.Searcher([0.0, 0.0], 1.0, rng=1)
    path.write_text(left)
    step(search)
    with watched(search, history := History(path, append=True)):
        history.generation(search)
    assert read(path).nit.tolist() == [1]


def test_generations_that_were_made_again_count_once(tmp_path: Path) -> None:
    path, checkpoint = tmp_path / "h.jsonl", tmp_path / "c.npz"
    search = esgroup.Searcher(np.ones(3), 0.5, rng=1)
    with watched(search, history := History(path)):
        for nit in range(1, 6):
            step(search)
            history.generation(search)
            if nit == 3:
                search.save(checkpoint)
    again = esgroup.Searcher.load(checkpoint)
    with watched(again, history := History(path, append=True)):
        step(again)
        history.generation(again)
    assert [g["nit"] for g in lines(path)[1:]] == [1, 2, 3, 4, 5, 4]
    assert read(path).nit.tolist() == [1, 2, 3, 4]


def test_the_counts_continue_over_restarts(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    result = esgroup.minimize(
        lambda x: 1.0 + np.round(x @ x, 1), np.ones(2), 0.5, restarts="ipop", max_evals=2000, rng=1, history=path
    )
    run = read(path)
    assert result.restarts >= 1 and run.restart[-1] == result.restarts
    assert run.nfev[-1] == result.nfev and run.nit[-1] == result.nit == len(set(run.nit))
    assert len(run.nit) <= result.nit + 1  # the last line may be of a part of a generation
    assert (np.diff(run.nfev) > 0).all() and (np.diff(run.best_f) <= 0).all()


@pytest.mark.parametrize("append", [False, True])
@pytest.mark.parametrize("content", ["a,b\n1,2\n", '{"a": 1}\n', "no newline", "[1, 2]\n"])
def test_a_file_of_another_kind_is_not_overwritten(tmp_path: Path, content: str, append: bool) -> None:
    path = tmp_path / "data.csv"
    path.write_text(content)
    with pytest.raises(ValueError, match=r"data\.csv .*history"):
        History(path, append=append).begins(None)
    assert path.read_text() == content


def test_a_history_is_replaced_by_a_new_one(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    written(path, generations=5)
    written(path, generations=2)
    assert read(path).nit.tolist() == [1, 2]


@pytest.mark.parametrize(
    "content, message",
    [
        ("", r"h\.jsonl .*empty"),
        ("x\n", r"h\.jsonl .*line 1 "),
        ('{"nit": 1}\n', r"h\.jsonl .*first line .*header"),
        ('{"esgroup_history": 9, "dim": 1}\n', r"h\.jsonl .*format 9.* 1"),
        ('{"esgroup_history": 1, "dim": 1}\n', "no generation"),
        ('{"esgroup_history": 1, "dim": 1}\n{"nit"\n', r"h\.jsonl .*line 2 "),
        ('{"esgroup_history": 1, "dim": 1}\n{"nit": 1}\n', r"h\.jsonl .*line 2 .*'nfev'"),
    ],
)
def test_a_file_that_is_no_history_is_refused(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "h.jsonl"
    path.write_text(content)
    with pytest.raises(ValueError, match=message):
        read(path)


class TestHowItEnded:
    def minimized(self, path: Path, fun: Any = sphere, **options: Any) -> Any:
        return esgroup.minimize(fun, np.ones(3), 0.5, popsize=10, rng=1, history=path, **options)

    def test_the_last_line_has_the_message_of_the_result_and_the_header_the_limits(self, tmp_path: Path) -> None:
        path = tmp_path / "h.jsonl"
        result = self.minimized(path, max_evals=50, target=1e-300)
        header, *others, last = lines(path)
        assert header["limits"] == {"max_evals": 50, "max_iters": None, "max_time": None, "target": 1e-300}
        assert last["end"] == {"how": "stopped", "message": result.message} and last["nfev"] == 50
        assert not any("end" in line for line in others) and len(others) == 4

    @pytest.mark.parametrize(
        "error, end",
        [
            (KeyboardInterrupt(), {"how": "interrupted", "message": "interrupted"}),
            (ZeroDivisionError("the rig\nis broken"), {"how": "failed", "message": "ZeroDivisionError: is broken"}),
        ],
    )
    def test_an_exception_is_how_it_ended(self, tmp_path: Path, error: BaseException, end: dict[str, str]) -> None:
        path, calls = tmp_path / "h.jsonl", []

        def fails(x: np.ndarray) -> float:
            calls.append(x)
            if len(calls) > 25:
                raise error
            return sphere(x)

        with pytest.raises(type(error)):
            self.minimized(path, fails)
        assert [line.get("end") for line in lines(path)[1:]] == [None, end]

    def test_before_the_first_generation_there_is_no_file_to_say_it_in(self, tmp_path: Path) -> None:
        with pytest.raises(ZeroDivisionError):
            self.minimized(tmp_path / "h.jsonl", lambda x: 1 / 0)
        assert (tmp_path / "h.jsonl").read_text() == ""

    def test_a_loop_of_ones_own_has_closed_it(self, tmp_path: Path) -> None:
        written(tmp_path / "h.jsonl")
        assert lines(tmp_path / "h.jsonl")[-1]["end"]["how"] == "left"

    def test_a_run_that_is_resumed_and_ends_at_once_leaves_the_file_as_it_was(self, tmp_path: Path) -> None:
        path, checkpoint = tmp_path / "h.jsonl", tmp_path / "c.npz"
        self.minimized(path, max_evals=50, checkpoint=checkpoint)
        before = path.read_bytes()
        self.minimized(path, max_evals=50, checkpoint=checkpoint, resume=True)
        assert path.read_bytes() == before

    def test_a_disk_that_is_full_at_the_end_costs_nothing_but_the_end(self, tmp_path: Path, monkeypatch: Any) -> None:
        path = tmp_path / "h.jsonl"
        plain = LineFile.append

        def full(self: LineFile, text: str) -> None:
            if '"end"' in text:
                raise OSError(28, "No space left on device")
            plain(self, text)

        monkeypatch.setattr(LineFile, "append", full)
        self.minimized(path, max_evals=50)
        assert read(path).nfev.tolist() == [10, 20, 30, 40, 50] and "end" not in lines(path)[-1]
