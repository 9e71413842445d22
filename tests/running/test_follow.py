"""A history that is read while it grows: what is new, what was replaced, what is kept of a long one."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import esgroup
from esgroup.running import follow
from esgroup.running.follow import Followed
from esgroup.running.history import History, read
from esgroup.running.observers import watched


def generation(nit: int, **more: Any) -> dict[str, Any]:
    known = {"nit": nit, "nfev": 10 * nit, "best_f": 1 / nit, "gen_best": 1.0, "sigma": 0.5, "axis_ratio": 2.0}
    return known | {"restart": 0, "elapsed": 0.1 * nit, "mean": [1.0, None], "stds": [0.5, 0.25]} | more


def text(*entries: dict[str, Any]) -> str:
    return "".join(json.dumps(entry) + "\n" for entry in entries)


HEADER = {"esgroup_history": 1, "problem": "bowl", "dim": 2, "coordinates": 2, "structure": "full"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.jsonl"


def add(path: Path, more: str) -> None:
    with path.open("a") as file:
        file.write(more)


def counts(run: Followed) -> list[float]:
    return [g.nit for g in run.generations]


def test_each_time_only_what_is_new_is_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[int] = []
    plain = follow.parse_scalars
    monkeypatch.setattr(follow, "parse_scalars", lambda line, at, n: parsed.append(n) or plain(line, at, n))
    path.write_text(text(HEADER, generation(1), generation(2)))
    run = Followed(path)
    assert run.read_on() and counts(run) == [1, 2] and parsed == [2, 3]
    assert not run.read_on() and parsed == [2, 3]
    add(path, text(generation(3)))
    assert run.read_on() and counts(run) == [1, 2, 3] and parsed == [2, 3, 4]
    last = run.generations[-1]
    assert (last.nfev, last.sigma, last.elapsed, last.feasible) == (30, 0.5, pytest.approx(0.3), True)
    np.testing.assert_array_equal(last.mean, [1.0, np.nan])
    assert np.isnan(last.violation)


def test_a_line_that_is_cut_off_is_left_for_the_next_time(path: Path) -> None:
    whole = text(HEADER, generation(1), generation(2))
    run = Followed(path)
    for length in range(0, len(whole), 7):
        path.write_text(whole[:length])
        run.read_on()
    path.write_text(whole)
    assert run.read_on() and counts(run) == [1, 2]


def test_what_is_read_in_parts_is_what_is_read_at_once(path: Path) -> None:
    parts = Followed(path)
    search = esgroup.Searcher(np.ones(30), 0.5, rng=1)
    with watched(search, history := History(path)):
        for _ in range(12):
            search.tell([float(x @ x) for x in search.ask()])
            history.generation(search)
            parts.read_on()
    parts.read_on()
    whole = Followed(path)
    whole.read_on()
    recorded = read(path)
    for run in (parts, whole):
        np.testing.assert_array_equal([g.best_f for g in run.generations], recorded.best_f)
        np.testing.assert_array_equal([g.mean for g in run.generations], recorded.mean)
        assert run.header == recorded.header and run.end["how"] == "left"
    ratios = recorded.axis_ratio  # which is computed now and then only, and stays until it is computed again
    assert [g.axis_ratio for g in whole.generations[2:4]] == [ratios[2], ratios[2]]
    assert np.isnan(ratios[3])


def test_a_file_of_another_run_is_read_from_its_beginning(path: Path) -> None:
    run = Followed(path)
    path.write_text(text(HEADER, *(generation(i) for i in range(1, 9))))
    run.read_on()
    path.write_text(text(HEADER, generation(1, sigma=9.0)))
    assert run.read_on() and [g.sigma for g in run.generations] == [9.0]
    path.write_text(text(HEADER, *(generation(i, sigma=7.0) for i in range(1, 12))))  # longer than the one before
    assert run.read_on() and {g.sigma for g in run.generations} == {7.0} and len(run.generations) == 11
    path.write_text("")
    assert run.read_on() and run.generations == [] and run.header == {}


def test_the_end_is_noticed_in_a_line_that_was_read_before(path: Path) -> None:
    run = Followed(path)
    result: list[bool] = []

    def look(search: Any) -> None:
        run.read_on()
        result.append(bool(run.end))

    found = esgroup.minimize(lambda x: x @ x, np.ones(3), 0.5, max_evals=60, rng=1, history=path, callback=look)
    assert not any(result) and run.limits["max_evals"] == 60
    assert run.read_on() and run.end == {"how": "stopped", "message": found.message}
    assert run.generations[-1].nfev == 60
    assert not run.read_on()


def test_a_line_to_which_the_end_is_being_added_is_waited_for(path: Path) -> None:
    end = {"how": "stopped", "message": "target: ] is reached"}
    before, after = text(HEADER, generation(1), generation(2)), text(HEADER, generation(1), generation(2, end=end))
    run = Followed(path)
    path.write_text(before)
    run.read_on()
    for length in range(len(before) - 2, len(after)):
        path.write_text(after[:length])
        assert not run.read_on() and counts(run) == [1, 2]
    path.write_text(after)
    assert run.read_on() and run.end == end and counts(run) == [1, 2]
    fresh = Followed(path)
    assert fresh.read_on() and fresh.end == end


def test_a_continued_run_replaces_generations_and_brings_its_limits(path: Path) -> None:
    limits = {"max_evals": 100, "max_iters": None, "max_time": None, "target": None}
    end = {"how": "interrupted", "message": "interrupted"}
    path.write_text(text(HEADER | {"limits": limits}, *(generation(i) for i in range(1, 5)), generation(5, end=end)))
    run = Followed(path)
    run.read_on()
    assert run.end == end and run.limits == limits
    add(path, text(generation(4, limits=limits | {"max_evals": 200}), generation(5, restart=1)))
    run.read_on()
    assert run.end == {} and run.limits["max_evals"] == 200 and counts(run) == [1, 2, 3, 4, 5]
    assert [(event.nfev, event.text) for event in run.events] == [
        (40, "continued from a checkpoint"),
        (40, "restart 1"),
    ]


def test_the_first_feasible_point_is_an_event(path: Path) -> None:
    path.write_text(text(HEADER, *(generation(i, feasible=i > 2, violation=max(0, 3 - i)) for i in range(1, 5))))
    run = Followed(path)
    run.read_on()
    assert [(event.nfev, event.text) for event in run.events] == [(30, "the first feasible point")]
    assert [g.violation for g in run.generations] == [2, 1, 0, 0]


def test_of_many_generations_an_even_selection_is_kept(path: Path) -> None:
    number = 5 * follow.MOST_KEPT
    path.write_text(text(HEADER, *(generation(i, restart=int(i > 77)) for i in range(1, number + 1))))
    run = Followed(path)
    run.read_on()
    kept = counts(run)
    assert follow.MOST_KEPT <= len(kept) <= 2 * follow.MOST_KEPT + 1
    assert kept[0] == 1 and kept[-1] == number and set(np.diff(kept[:-1])) == {4}
    assert [event.nfev for event in run.events] == [770]  # exactly, also if the generation is not kept


@pytest.mark.parametrize(
    "content, message",
    [
        ("a,b\n1,2\n", r"run\.jsonl .*line 1 "),
        ("PK\x03\x04", r"run\.jsonl .*first line .*header"),
        ('{"nit": 1}\n', r"run\.jsonl .*first line .*header"),
        (text(HEADER) + '{"nit": 1}\n', r"run\.jsonl .*line 2 .*'nfev'"),
        (text(HEADER, generation(1)) + "[]\n", r"run\.jsonl .*line 3 "),
    ],
)
def test_a_file_that_is_no_history_is_refused(path: Path, content: str, message: str) -> None:
    path.write_text(content)
    with pytest.raises(ValueError, match=message):
        Followed(path).read_on()


def test_a_file_that_does_not_exist_is_an_error_of_its_own(path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Followed(path).read_on()
