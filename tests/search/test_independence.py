"""A search is independent: its own random numbers, no output, no files, nothing shared."""

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from esgroup import Searcher
from tests.search.support import OPTIONS, STRUCTURES, everything, generation, run, same, searcher, valley


def legacy_state() -> tuple[Any, ...]:
    name, keys, *rest = np.random.get_state()
    return name, keys.tobytes(), *rest


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_the_global_random_numbers_of_numpy_are_untouched(options: dict[str, Any]) -> None:
    before = legacy_state()
    search = run(searcher(6, **options), valley, 15)
    search.result, repr(search)
    Searcher([1.0, 2.0]).ask()  # without a seed
    assert legacy_state() == before


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_others_may_use_the_global_random_numbers(options: dict[str, Any]) -> None:
    search, reference = searcher(6, **options), searcher(6, **options)
    for _ in range(15):
        np.random.seed(3)
        np.random.standard_normal(5)
        generation(search, valley)
        generation(reference, valley)
    assert same(search, reference)


@pytest.mark.parametrize("structure", STRUCTURES.values(), ids=STRUCTURES)
def test_the_same_seed_makes_the_same_search(structure: Any) -> None:
    first, second = searcher(6, structure=structure), searcher(6, structure=structure)
    run(first, valley, 30), run(second, valley, 30)
    assert same(first, second)


def test_other_seeds_make_other_searches() -> None:
    seeds: list[Any] = [0, 1, 2, [1, 2], np.random.SeedSequence(5), np.random.default_rng(9), None, None]
    first = [searcher(rng=seed).ask().tobytes() for seed in seeds]
    assert len(set(first)) == len(seeds)


def test_zero_is_a_seed_like_any_other() -> None:
    assert same(searcher(rng=0), searcher(rng=0))


def test_a_generator_is_used_as_it_is() -> None:
    rng = np.random.default_rng(1)
    search = searcher(rng=rng)
    assert search.rng is rng
    assert np.array_equal(search.ask(), searcher(rng=1).ask())


def test_two_searches_in_turn_do_not_disturb_each_other() -> None:
    alone = [run(searcher(6, rng=seed), valley, 25) for seed in (1, 2)]
    pair = [searcher(6, rng=seed) for seed in (1, 2)]
    for _ in range(25):
        for search in pair:
            generation(search, valley)
    assert all(map(same, alone, pair))


@pytest.mark.parametrize("structure", ["full", "heisenberg", "triangular", "circulant"])
def test_two_searches_in_two_threads_do_not_disturb_each_other(structure: str) -> None:
    alone = [run(searcher(6, rng=seed, structure=structure), valley, 120) for seed in (1, 2)]
    pair = [searcher(6, rng=seed, structure=structure) for seed in (1, 2)]
    barrier, faults = threading.Barrier(2), []

    def work(search: Searcher) -> None:
        try:
            barrier.wait()
            run(search, valley, 120)
        except BaseException as fault:
            faults.append(fault)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    threads = [threading.Thread(target=work, args=(search,)) for search in pair]
    try:
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
    finally:
        sys.setswitchinterval(interval)
    assert not faults and all(map(same, alone, pair))


THREADS = """
import threading
import numpy as np
from esgroup import Searcher
barrier, seen = threading.Barrier(2), {}
def work(key):
    barrier.wait()
    search = Searcher(np.ones(4), 0.5, rng=1, structure="heisenberg:k1=1,k2=1")
    for _ in range(20):
        search.tell([float(x @ x) for x in search.ask()])
    seen[key] = search.mean.tobytes()
threads = [threading.Thread(target=work, args=(key,)) for key in range(2)]
[t.start() for t in threads]
[t.join() for t in threads]
assert len(seen) == 2 and seen[0] == seen[1]
"""


def test_the_first_two_searches_of_a_process_may_begin_in_two_threads() -> None:
    """Kernels are loaded at their first use, here by two threads at once."""
    subprocess.run([sys.executable, "-c", THREADS], check=True, timeout=120, cwd=Path(__file__).parents[2])


def test_nothing_is_printed_and_no_file_is_written(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(searcher(6), valley, 3)  # the first use of a kernel ever says that it is compiled
    capfd.readouterr()
    monkeypatch.chdir(tmp_path)
    before = dict(os.environ)
    search = run(searcher(6), valley)
    search.result, repr(search)
    run(searcher(6), lambda x: float("nan"))
    captured = capfd.readouterr()
    assert (captured.out, captured.err) == ("", "")
    assert list(tmp_path.iterdir()) == [] and dict(os.environ) == before


def test_the_error_state_of_numpy_is_untouched() -> None:
    before = np.geterr()
    search = searcher(bounds=(0, 5))
    search.tell([[5, 0, 0]] * 7, [1e308] * 7)
    run(search, lambda x: -x[0])
    assert np.geterr() == before


def test_a_search_does_not_depend_on_the_memory_that_it_is_in() -> None:
    """No array is read before it is written: the contents of fresh memory do not matter."""
    reference = everything(run(searcher(6, rng=4), valley, 40))
    for value in (np.nan, 1e300):
        litter = [np.full((20 + i, 6), value) for i in range(20)]
        del litter
        assert everything(run(searcher(6, rng=4), valley, 40)) == reference
