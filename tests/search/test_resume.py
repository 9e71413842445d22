"""A search that was saved, copied or pickled continues bit for bit as if it had not been."""

import copy
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from esgroup import CheckpointError, Searcher
from esgroup.files import npz
from esgroup.search import snapshot
from tests.search.support import (
    OPTIONS,
    STRUCTURES,
    anatomy,
    everything,
    generation,
    run,
    same,
    searcher,
    unchanged,
    valley,
)

Way = Callable[[Searcher, Path], Searcher]


def by_file(search: Searcher, directory: Path) -> Searcher:
    search.save(directory / "run.npz")
    return Searcher.load(directory / "run.npz")


def by_deepcopy(search: Searcher, directory: Path) -> Searcher:
    return copy.deepcopy(search)


def by_pickle(search: Searcher, directory: Path) -> Searcher:
    return pickle.loads(pickle.dumps(search))


WAYS = [by_file, by_deepcopy, by_pickle]
ways = pytest.mark.parametrize("way", WAYS)

# ---- situations: what is out, told in part, or waiting ------------------------------------------------------------


def before_anything(search: Searcher) -> None:
    pass


def between_generations(search: Searcher) -> None:
    for _ in range(13):
        generation(search, valley)


def between_ask_and_tell(search: Searcher) -> None:
    between_generations(search)
    search.ask()


def before_the_first_tell(search: Searcher) -> None:
    search.ask()


def several_asks_out(search: Searcher) -> None:
    between_generations(search)
    search.ask(3), search.ask(), search.ask(20)


def partly_told(search: Searcher) -> None:
    between_generations(search)
    X = search.ask()
    search.tell(X[1:3], [valley(x) for x in X[1:3]])
    search.ask(2)
    search.tell([5.0, np.nan])


def late_points_out(search: Searcher) -> None:
    search.ask(4)
    late = search.ask()
    X = search.ask()
    search.tell(X, [valley(x) for x in X])
    search.tell(late[:2], [1.0, 2.0])


def a_reserve_and_late_points_in_parts(search: Searcher) -> None:
    """As with many workers: single points are out over generations, some were told, and values come late usually."""
    out: list[np.ndarray] = []
    for i in range(70):
        out += [search.ask(1)[0] for _ in range(30 - len(out))]
        x = out.pop((7 * i) % len(out))
        search.tell([(x, valley(x))])
    ledger = search.ledger
    assert ledger.reserve is not None and ledger.pool and ledger.lag > 1
    assert {asked.nit for asked in ledger.asked if asked.out} > {ledger.nit}


def an_ask_overtaken(search: Searcher) -> None:
    X = search.ask()
    search.ask()
    search.tell(X, [valley(x) for x in X])


def points_injected(search: Searcher) -> None:
    between_generations(search)
    P = search.ask(2 * search.popsize + 3)
    search.inject(P)
    generation(search, valley)


def all_failed(search: Searcher) -> None:
    for _ in range(3):
        generation(search, lambda x: np.nan)


def infinite_best(search: Searcher) -> None:
    X = search.ask()
    search.tell([np.inf, -np.inf, np.nan] + [1.0] * (len(X) - 3))


def stopped(search: Searcher) -> None:
    for _ in range(30):
        generation(search, lambda x: 1.0)


SITUATIONS = [
    before_anything,
    between_generations,
    between_ask_and_tell,
    before_the_first_tell,
    several_asks_out,
    partly_told,
    late_points_out,
    a_reserve_and_late_points_in_parts,
    an_ask_overtaken,
    points_injected,
    all_failed,
    infinite_best,
    stopped,
]


def go_on(search: Searcher, generations: int = 6) -> list[Any]:
    """Everything that can be done next, and all that can be observed on the way."""
    seen: list[Any] = [search.stop(), repr(search), search.best_f, search.best_x]
    if search.ledger.last is not None:
        n = len(search.ledger.last.drawn.points)
        late = [asked.drawn.points for asked in search.ledger.asked[:-1]]
        search.tell([valley(x) for x in search.ledger.last.drawn.points])
        for X in late:
            search.tell(X[::-1], [valley(x) for x in X[::-1]])
        seen.append(n)
    for i in range(generations):
        seen.append(search.ask())
        search.tell([valley(x) for x in seen[-1]])
        seen += [search.stop(), search.mean, search.stds, search.nfev, search.ask(1 + i % 3)]
        search.tell(seen[-1], [valley(x) for x in seen[-1]])
    result = search.result
    return [*seen, result.x, result.fun, result.message, search.rng.random(), search.rng.spawn(1)[0].random()]


def equal(first: Any, second: Any) -> bool:
    if isinstance(first, list):
        return len(first) == len(second) and all(map(equal, first, second))
    if isinstance(first, np.ndarray):
        return first.dtype == second.dtype and first.tobytes() == second.tobytes()
    return type(first) is type(second) and (first == second or first != first)


def assert_goes_on(search: Searcher, way: Way, directory: Path) -> None:
    with unchanged(search):
        other = way(search, directory)
    assert same(search, other)
    first = go_on(search)
    assert equal(first, go_on(other)) and same(search, other)


@ways
@pytest.mark.parametrize("situation", SITUATIONS)
@pytest.mark.parametrize("options", [{}, OPTIONS["mixed"]], ids=["plain", "mixed"])
def test_a_search_goes_on_from_every_situation(
    situation: Callable[[Searcher], None], options: dict[str, Any], way: Way, tmp_path: Path
) -> None:
    search = searcher(6, **options)
    situation(search)
    assert_goes_on(search, way, tmp_path)


@ways
@pytest.mark.parametrize("structure", STRUCTURES.values(), ids=STRUCTURES)
def test_a_search_of_every_structure_goes_on(structure: Any, way: Way, tmp_path: Path) -> None:
    search = searcher(6, structure=structure)
    partly_told(search)
    assert_goes_on(search, way, tmp_path)


@ways
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_a_search_with_every_option_goes_on(options: dict[str, Any], way: Way, tmp_path: Path) -> None:
    search = searcher(6, **options)
    points_injected(search)
    assert_goes_on(search, way, tmp_path)


@pytest.mark.parametrize("noise", [None, "adapt"])
@pytest.mark.parametrize("structure", [s for s in STRUCTURES if s not in ("auto", "full")])
def test_structures_continue_with_decoding_and_adaptation(structure: str, noise: Any, tmp_path: Path) -> None:
    search = searcher(6, structure=STRUCTURES[structure], decoding=True, noise=noise)
    between_ask_and_tell(search)
    assert_goes_on(search, by_file, tmp_path)


@ways
def test_a_search_goes_on_over_the_generations_at_which_things_are_renewed(way: Way, tmp_path: Path) -> None:
    whole, parts = searcher(6), searcher(6)
    for _ in range(24):
        for _ in range(5):
            generation(whole, valley)
            generation(parts, valley)
        parts = way(parts, tmp_path)
        assert same(whole, parts)


@ways
@pytest.mark.parametrize("options", [{}, {"noise": "adapt"}, {"algorithm": "paper"}, {"model": "quadratic"}], ids=str)
def test_a_frame_goes_on_while_its_axes_come_and_go_and_the_full_matrix_takes_its_place(
    options: dict[str, Any], way: Way, tmp_path: Path
) -> None:
    turn = np.linalg.qr(np.random.default_rng(1).standard_normal((24, 24)))[0]
    scales = 10.0 ** np.linspace(0, 6, 24)
    whole, parts = (Searcher(np.ones(24), 1.0, structure="frame", rng=1, **options) for _ in range(2))
    sizes = set()
    for _ in range(60):
        for _ in range(15):
            generation(whole, lambda x: float((turn @ x) ** 2 @ scales))
            generation(parts, lambda x: float((turn @ x) ** 2 @ scales))
        sizes.add((type(whole.structure).__name__, len(getattr(whole.state, "plain", whole.state).root)))
        parts = way(parts, tmp_path)
        assert everything(whole) == everything(parts) and (same(whole, parts) or "model" in options)
    hands_over = "algorithm" not in options  # the published update has a group of its own
    assert len(sizes) >= 2 + hands_over and (("Full", 24 * 24) in sizes) is hands_over
    assert ("replaced by 'full'" in parts.result.message) is hands_over


@ways
def test_a_warm_start_and_a_start_from_data_continue(way: Way, tmp_path: Path) -> None:
    search = Searcher(run(searcher(6), valley, 10), 0.1, rng=3)
    assert_goes_on(search, way, tmp_path)
    X = np.random.default_rng(0).normal(size=(30, 6))
    assert_goes_on(Searcher.from_data(X, [valley(x) for x in X], rng=3), way, tmp_path)


@ways
def test_copies_are_independent(way: Way, tmp_path: Path) -> None:
    search = searcher()
    partly_told(search)
    other = way(search, tmp_path)
    with unchanged(search):
        go_on(other)
        other.inject([1, 2, 3])


@ways
@pytest.mark.parametrize("bits", [np.random.PCG64, np.random.MT19937, np.random.Philox, np.random.SFC64])
def test_every_generator_goes_on(bits: Any, way: Way, tmp_path: Path) -> None:
    search = searcher(rng=np.random.Generator(bits(7)))
    between_ask_and_tell(search)
    assert_goes_on(search, way, tmp_path)


@ways
def test_what_is_given_out_stays_read_only(way: Way, tmp_path: Path) -> None:
    search = searcher()
    generation(search)
    other = way(search, tmp_path)
    assert not other.ask().flags.writeable
    assert other.best_x is not None and np.array_equal(other.best_x, search.best_x)
    assert not other.best_x.flags.writeable


def test_pickles_know_nothing_of_the_clock_of_another_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    from esgroup.search import ledger as module

    now = 1e6
    monkeypatch.setattr(module.time, "monotonic", lambda: now)
    search = searcher(max_time=10)
    now += 4
    stored = pickle.dumps(search)
    now = 3.0
    assert pickle.loads(stored).seconds == 4.0


# ---- files --------------------------------------------------------------------------------------------------------


def test_a_search_is_saved_again_and_again_to_one_file(tmp_path: Path) -> None:
    search = searcher()
    for _ in range(4):
        generation(search)
        search.save(tmp_path / "run.npz")
        assert same(search, Searcher.load(tmp_path / "run.npz"))
    assert [p.name for p in tmp_path.iterdir()] == ["run.npz"]


def test_paths_may_be_strings(tmp_path: Path) -> None:
    search = searcher()
    search.save(str(tmp_path / "run.npz"))
    assert same(search, Searcher.load(str(tmp_path / "run.npz")))


def test_equal_searches_make_equal_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from esgroup.search import ledger as module

    monkeypatch.setattr(module.time, "monotonic", lambda: 0.0)
    for name in ("a.npz", "b.npz"):
        run(searcher(), valley, 10).save(tmp_path / name)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def test_a_subclass_loads_as_itself(tmp_path: Path) -> None:
    class Mine(Searcher):
        pass

    searcher().save(tmp_path / "run.npz")
    assert type(Mine.load(tmp_path / "run.npz")) is Mine


def test_a_generator_that_cannot_be_stored_is_named(tmp_path: Path) -> None:
    class Bits(np.random.PCG64):
        pass

    search = searcher(rng=np.random.Generator(Bits(1)))
    with pytest.raises(TypeError, match=r"rng .*PCG64, .* Bits"):
        search.save(tmp_path / "run.npz")
    assert list(tmp_path.iterdir()) == []


def test_a_failed_save_leaves_the_search_and_the_old_file(tmp_path: Path) -> None:
    search = searcher()
    search.save(tmp_path / "run.npz")
    generation(search)
    with unchanged(search), pytest.raises(FileNotFoundError, match=r"director"):
        search.save(tmp_path / "missing" / "run.npz")
    assert Searcher.load(tmp_path / "run.npz").nit == 0


def changed(search: Searcher, path: Path, change: Callable[[dict[str, Any], dict[str, Any]], object]) -> Searcher:
    """The search from a file that was changed, including its checksums."""
    header, arrays = snapshot.to_file(search)
    header = json.loads(json.dumps(header))
    arrays = dict(arrays)
    change(header, arrays)
    npz.write(path, "searcher", header, arrays)
    return Searcher.load(path)


def test_an_unchanged_file_gives_the_same_search(tmp_path: Path) -> None:
    search = searcher()
    partly_told(search)
    assert same(changed(search, tmp_path / "run.npz", lambda header, arrays: None), search)


def options(header: dict[str, Any]) -> dict[str, Any]:
    stored: dict[str, Any] = header["strategy"]["fields"]["options"]["fields"]
    return stored


FAULTS: list[tuple[Callable[[dict[str, Any], dict[str, Any]], object], str]] = [
    (lambda h, a: h.pop("nfev"), "the header lacks 'nfev'"),
    (lambda h, a: h.update(nfev="7"), "'nfev' in the header must be of type int, got '7'"),
    (lambda h, a: h.update(nfev=-1), "nfev must be an integer >= 0, got -1"),
    (lambda h, a: h["strategy"]["fields"].update(popsize=0), "popsize must be an integer >= 2, got 0"),
    (lambda h, a: h.update(ranking=h["strategy"]), "the header's ranking must be a Ranking, got VectorSearch"),
    (lambda h, a: a.update(best=np.ones(2)), r"'best' must be float64 of shape \(1,\)"),
    (lambda h, a: h.update(rng={}), "the stored generator is not valid"),
    (lambda h, a: h.pop("asked"), "the header lacks 'asked'"),
    (lambda h, a: h.update(asked=-1), "'asked' in the header must be of type list, got -1"),
    (lambda h, a: h.update(asked=[[13, 0], [14, 0], [13, 0]]), "asked must be an integer from 0 to 13, got 14"),
    (lambda h, a: h.update(asked=[[13, 0], [-1, 0], [13, 0]]), "asked must be an integer from 0 to 13, got -1"),
    (lambda h, a: h.update(asked=[[13, 0], ["all", 0], [13, 0]]), "asked must be an integer from 0 to 13, got 'all'"),
    (lambda h, a: h.update(asked=[[13, 1]]), "asked must be an integer from 0 to 0, got 1"),
    (lambda h, a: h.update(asked=[13]), "asked must be pairs of a generation and a run, got 13"),
    (lambda h, a: h.update(run=-1), "run must be an integer >= 0, got -1"),
    (lambda h, a: h.update(began={}), "the header lacks 'nfev'"),
    (lambda h, a: h.update(asked=[[13, 0]] * 5), "the array 'asked/4/points' is missing"),
    (lambda h, a: h.pop("last"), "the header lacks 'last'"),
    (lambda h, a: h.update(last=4), "last must be an integer from 0 to 3, got 4"),
    (lambda h, a: h.update(last=-1), "last must be an integer from 0 to 3, got -1"),
    (lambda h, a: h.update(last=1.0), "'last' in the header must be of type int, got 1.0"),
    (lambda h, a: h.pop("lag"), "the header lacks 'lag'"),
    (lambda h, a: h.update(lag=-0.5), "lag must not be negative, got -0.5"),
    (lambda h, a: h.update(lag=float("nan")), "lag must be a finite number, got nan"),
    (lambda h, a: h.update(lag=None), "'lag' in the header must be of type float, got None"),
    (lambda h, a: h.update(seconds=-1.0), "seconds must not be negative, got -1.0"),
    (lambda h, a: h.update(pool=5), "the array 'pool/2/local' is missing"),
    (lambda h, a: options(h).update(noisy=None), "a stored SearchOptions must have the fields .*'noise'"),
    (lambda h, a: options(h).update(algorithm="cma"), "algorithm must be 'default' or 'paper', got 'cma'"),
    (lambda h, a: options(h).update(noise="much"), "noise must be None or 'adapt', got 'much'"),
    (lambda h, a: options(h).update(decoding=1), "decoding must be 'auto' or True or False, got 1"),
    (lambda h, a: h["limits"].update(more=1), "the header's limits must be max_evals, max_iters, max_time, target"),
    (lambda h, a: h["limits"].update(max_evals=-1), "max_evals must be an integer >= 1, got -1"),
    (lambda h, a: h["strategy"]["fields"].update(group={"class": "Evil", "fields": {}}), "Evil"),
    (
        lambda h, a: h["strategy"]["fields"].update(group={"class": "Full", "fields": {"dim": 5}}),
        "mean0 must have 5 numbers",
    ),
    (lambda h, a: h.update(strategy={"class": "Full", "fields": {"dim": 6}}), "strategy must be a Strategy, got Full"),
    (lambda h, a: a.pop("state/mean"), "the array 'state/mean' is missing"),
    (
        lambda h, a: a.update({"state/mean": np.zeros(7)}),
        r"'state/mean' must be of shape \(6,\), got \(7,\)",
    ),
    (lambda h, a: a.update({"state/root": np.zeros(36, dtype=int)}), "'state/root' must be float64"),
    (lambda h, a: a.update({"state/sigma": np.zeros((2, 2))}), r"'state/sigma' must be float64 of shape \(n,\)"),
    (lambda h, a: a.update({"strategy/steps0": np.ones(5)}), "steps0 must have 6 numbers"),
    (lambda h, a: a.update({"strategy/steps0": np.zeros(6)}), "steps0 positive"),
    (lambda h, a: a.update({"strategy/mean0": np.full(6, np.nan)}), "mean0 must be finite"),
    (lambda h, a: a.update({"asked/0/ids": np.zeros(9)}), r"'asked/0/ids' must be int64 of shape \(9,\)"),
    (lambda h, a: a.update({"first_spread": np.ones(2)}), r"'first_spread' must be float64 of shape \(6,\)"),
    (lambda h, a: a.update({"record/median": np.ones(2)}), "'record/median' must be float64 of shape"),
    (lambda h, a: a.update({"best_x": np.ones(5)}), r"'best_x' must be float64 of shape \(6,\)"),
    (lambda h, a: a.update({"asked/0/points": np.ones((2, 5))}), r"'asked/0/points' must be float64 of shape \(n, 6\)"),
    (lambda h, a: a.update({"asked/0/local": np.ones((2, 6))}), r"'asked/0/local' must be float64 of shape \(9, 6\)"),
    (lambda h, a: a.update({"asked/0/local": np.full((9, 6), np.nan)}), "asked/0/local.* nan"),
    (lambda h, a: a.update({"asked/0/tags": np.zeros(9)}), r"'asked/0/tags' must be int64 of shape \(9,\)"),
    (lambda h, a: a.pop("asked/0/out"), "the array 'asked/0/out' is missing"),
    (lambda h, a: a.update({"asked/0/out": np.array([0, 9])}), r"asked/0/out must be rows of 9 points, got \[0, 9\]"),
    (lambda h, a: a.update({"asked/0/out": np.array([-1])}), r"asked/0/out must be rows of 9 points, got \[-1\]"),
    (lambda h, a: a.update({"asked/0/out": np.ones(9, dtype=bool)}), r"'asked/0/out' must be int64 of shape \(n,\)"),
    (lambda h, a: a.update({"reserve/points": np.ones((2, 5))}), r"'reserve/points' must be float64 of shape \(n, 6\)"),
    (lambda h, a: a.pop("reserve/local"), "the array 'reserve/local' is missing"),
    (lambda h, a: a.update({"reserve/local": np.ones((2, 6))}), r"'reserve/local' must be float64 of shape \(5, 6\)"),
    (lambda h, a: a.update({"reserve/tags": np.zeros(2, int)}), r"'reserve/tags' must be int64 of shape \(5,\)"),
    (lambda h, a: a.update({"pool/0/outcomes": np.ones(9)}), r"'pool/0/outcomes' must be float64 of shape"),
    (lambda h, a: h.update(varied="yes"), "'varied' in the header must be of type bool, got 'yes'"),
    (lambda h, a: a.update({"injected": np.ones(6)}), r"'injected' must be float64 of shape \(n, 6\)"),
]


@pytest.mark.parametrize(("change", "text"), FAULTS)
def test_a_file_that_makes_no_search_is_refused_by_name(
    change: Callable[..., object], text: str, tmp_path: Path
) -> None:
    search = searcher(6)
    partly_told(search)
    search.ask(2), search.ask()
    with pytest.raises(CheckpointError, match=rf"run\.npz .*({text})"):
        changed(search, tmp_path / "run.npz", change)


BOX_FAULTS = [
    ("lower", np.full(6, 9.0), r"x0\[0\] must be from 9.0 to inf, got 1.0"),
    ("fixed", np.ones(6, dtype=bool), "but all are fixed"),
    ("steps0", np.ones(5), "steps0 must be a vector of 6 numbers"),
    ("lower", np.zeros((1, 1)), "lower must be a vector"),
]


@pytest.mark.parametrize(("name", "array", "text"), BOX_FAULTS)
def test_a_file_with_a_box_that_is_none_is_refused_by_name(name: str, array: Any, text: str, tmp_path: Path) -> None:
    search = Searcher(np.ones(6), 0.5, bounds=(0, None), rng=1)
    with pytest.raises(CheckpointError, match=rf"run\.npz .*({text})"):
        changed(search, tmp_path / "run.npz", lambda h, a: a.update({f"strategy/within/{name}": array}))


def test_a_file_without_one_of_its_entries_or_arrays_is_refused_by_name(tmp_path: Path) -> None:
    search = searcher(6)
    partly_told(search)
    search.ask(2), search.ask()
    header, arrays = snapshot.to_file(search)
    for name in header:
        with pytest.raises(CheckpointError, match=rf"run\.npz .*'{name}'"):
            changed(search, tmp_path / "run.npz", lambda h, a, name=name: h.pop(name))
    for name in arrays.keys() - {"reserve/points"}:  # without them there is no reserve
        with pytest.raises(CheckpointError, match=rf"run\.npz .*'{name}'"):
            changed(search, tmp_path / "run.npz", lambda h, a, name=name: a.pop(name))


@ways
def test_points_can_be_put_in_place_of_those_in_reserve(way: Way, tmp_path: Path) -> None:
    search = searcher(6)
    a_reserve_and_late_points_in_parts(search)
    other = way(search, tmp_path)
    for one in (search, other):
        one.inject(np.arange(6.0))
        assert np.array_equal(one.ask(1), [np.arange(6.0)])
    assert same(search, other) and equal(go_on(search), go_on(other))


def test_an_option_that_is_newer_than_the_file_has_its_default(tmp_path: Path) -> None:
    search = searcher(6, mirrored=True)
    partly_told(search)
    loaded = changed(search, tmp_path / "run.npz", lambda header, arrays: options(header).pop("step_size"))
    assert loaded.strategy.options == search.strategy.options and same(loaded, search)


def test_a_damaged_file_is_refused_and_a_missing_one_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    path.write_bytes(b"PK\x03\x04" + bytes(100))
    with pytest.raises(CheckpointError, match=r"run\.npz .*damaged"):
        Searcher.load(path)
    with pytest.raises(FileNotFoundError):
        Searcher.load(tmp_path / "none.npz")


def test_everything_is_seen_by_the_comparison() -> None:
    """The helper notices a change of any array and count: it could not fail otherwise."""
    search = searcher(6)
    partly_told(search)
    search.inject(np.ones(6))
    before = everything(search)
    for name, array in snapshot.to_file(search)[1].items():
        copied = name.startswith(("record", "strategy/group")) or name.endswith(("/tags", "/ids", "/out"))
        if array.size and array.flags.writeable and not copied:
            old = array.flat[0]
            array.flat[0] = not old if array.dtype == bool else (old + 1 if np.isfinite(old) else 0.0)
            assert everything(search) != before, name
            array.flat[0] = old
    search.ledger.nfailed += 1
    assert everything(search) != before
    search.ledger.nfailed -= 1
    search.ledger.lag += 1e-9
    assert everything(search) != before
    search.ledger.lag -= search.ledger.lag
    search.ledger.asked[0].out.remove(0)
    assert everything(search) != before
    search.ledger.asked[0].out.add(0)
    assert everything(search) == before
    deep = anatomy(search)
    assert {"strategy", "state", "ledger", "limits", "rng", "first_spread"} < deep.keys()
    assert {"record", "pool", "injected", "asked", "last", "reserve", "lag", "best_x", "nfev"} < deep["ledger"].keys()
    assert {"best", "median", "worst", "failed_in_a_row", "varied"} == deep["ledger"]["record"].keys()
    assert "steps0" in deep["strategy"]
    search.rng.random()
    assert everything(search) != before
