"""Which searches have a quadratic model: by the option "auto", and what results say of models."""

import pickle
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import esgroup
from esgroup import Angle, Choice, Integer, Real, Searcher, Space, minimize
from esgroup.files.states import flattened
from esgroup.search import ledger
from esgroup.search.models import FEW, LEFT_OUT, MOST_COORDINATES, USED
from esgroup.strategies.model import ModelSearch
from esgroup.strategies.model_state import Numbers

Array = np.ndarray


def valley(x: Array) -> float:
    return float((100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum())


def has_model(search: Searcher) -> bool:
    return isinstance(search.strategy, ModelSearch)


# ---- auto ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("dim", "options", "expected"), [
    (4, {"max_evals": 2000}, True),
    (4, {"max_evals": 2001}, False),
    (4, {}, False),
    (4, {"max_time": 1.0, "max_iters": 3, "target": 0.0}, False),
    (40, {"max_evals": 100}, True),
    (41, {"max_evals": 100}, False),
    (45, {"max_evals": 100, "fixed": range(5)}, True),
    (4, {"max_evals": 1000, "fixed": [0, 1]}, True),
    (4, {"max_evals": 1001, "fixed": [0, 1]}, False),
    (4, {"max_evals": 100, "structure": "full"}, True),
    (4, {"max_evals": 100, "structure": "diagonal"}, False),
    (4, {"max_evals": 100, "structure": "block_triangular:k=4"}, False),
    (4, {"max_evals": 100, "structure": "triangular"}, False),
    (4, {"max_evals": 100, "bounds": (-2, 3), "popsize": 20, "cov0": np.eye(4), "decoding": False}, True),
    (4, {"max_evals": 100, "noise": "adapt"}, False),
    (4, {"max_evals": 100, "mirrored": True}, True),
    (4, {"max_evals": 100, "step_size": "tpa"}, False),
    (4, {"max_evals": 100, "algorithm": "paper"}, True),
    (4, {"max_evals": 100, "integer": [1]}, False),
    (4, {"max_evals": 100, "integer": [1], "fixed": [1]}, True),
    (4, {"max_evals": 100, "constraints": 1}, False),
    (4, {"max_evals": 100, "constraints": 0}, True),
])  # fmt: skip
def test_auto_is_a_model_exactly_where_the_arguments_say_that_evaluations_are_few(
    dim: int, options: dict[str, Any], expected: bool
) -> None:
    assert (FEW, MOST_COORDINATES) == (500, 40)
    search = Searcher(np.ones(dim), 0.5, model="auto", rng=1, **options)
    assert has_model(search) is expected
    assert (USED in search.result.message) is expected


def test_auto_is_the_search_with_a_model_or_without_bit_for_bit() -> None:
    given: dict[str, Any] = {"max_evals": 300, "rng": 1}
    for model, more in (("quadratic", {}), (None, {"structure": "diagonal"})):
        chosen = minimize(valley, np.zeros(5), 0.5, model="auto", **given, **more)
        wanted = minimize(valley, np.zeros(5), 0.5, model=model, **given, **more)  # type: ignore[arg-type]
        assert np.array_equal(chosen.x, wanted.x) and (chosen.nfev, chosen.nit) == (wanted.nfev, wanted.nit)
        assert (USED in chosen.message) is (model is not None) and USED not in wanted.message


@pytest.mark.parametrize(("parameters", "options", "expected"), [
    ({"a": Real(0, 1, shape=4), "b": Angle(), "c": Real(1, 9, log=True)}, {"max_evals": 3000}, True),
    ({"a": Real(0, 1, shape=4), "b": Angle(), "c": Real(1, 9, log=True)}, {"max_evals": 3001}, False),
    ({"a": Real(0, 1, shape=4)}, {}, False),
    ({"a": Real(0, 1, shape=41)}, {"max_evals": 100}, False),
    ({"a": Real(0, 1, shape=4)}, {"max_evals": 100, "structure": "diagonal"}, False),
    ({"a": Real(0, 1, shape=4)}, {"max_evals": 100, "noise": "adapt"}, False),
    ({"a": Real(0, 1, shape=4)}, {"max_evals": 100, "constraints": 1}, False),
    ({"a": Real(0, 1, shape=4), "k": Choice(1, 2)}, {"max_evals": 100}, False),
    ({"a": Real(0, 1, shape=4), "k": Choice(1, 2)}, {"max_evals": 100, "fixed": {"k": 2}}, True),
    ({"a": Real(0, 1), "k": Choice(1, 2), "b": Real(0, 1, when={"k": 1})}, {"max_evals": 9, "fixed": {"k": 1}}, True),
    ({"a": Real(0, 1, shape=4), "n": Integer(1, 9)}, {"max_evals": 100}, False),
    ({"a": Real(0, 1, shape=4), "n": Integer(1, 9, log=True)}, {"max_evals": 100}, False),
])  # fmt: skip
def test_auto_is_a_model_over_named_real_numbers_too(
    parameters: dict[str, Any], options: dict[str, Any], expected: bool
) -> None:
    search = Searcher(Space(parameters), model="auto", rng=1, **options)
    assert has_model(search) is expected and (USED in search.result.message) is expected


def rugged(x: Array) -> float:
    return float((x * x + 1 - np.cos(6 * x)).sum())


@pytest.mark.parametrize("restarts", ["ipop", "bipop", esgroup.restarts.IPOP()], ids=str)
def test_auto_is_a_model_in_every_run_of_a_search_with_restarts(restarts: Any) -> None:
    runs: set[tuple[int, bool]] = set()
    for max_evals, model in ((900, "quadratic"), (1001, None)):
        runs.clear()
        given: dict[str, Any] = {"max_evals": max_evals, "rng": 3, "restarts": restarts}
        watch: Any = lambda run: runs.add((run.popsize, has_model(run)))  # noqa: E731
        chosen = minimize(rugged, [2.0, 3.0], 0.3, model="auto", callback=watch, **given)
        wanted = minimize(rugged, [2.0, 3.0], 0.3, model=model, **given)  # type: ignore[arg-type]
        assert np.array_equal(chosen.x, wanted.x) and (chosen.nfev, chosen.nit) == (wanted.nfev, wanted.nit)
        assert chosen.restarts > 0 and (USED in chosen.message) is (model is not None)
        assert len(runs) > 1 and {one for _, one in runs} == {model is not None}


def test_auto_is_accepted_where_no_search_has_a_model() -> None:
    space = Space({"a": Choice(1, 2)})
    for start in (esgroup.Wishart(mean=np.eye(2)), space, Searcher(np.ones(3), 0.5).strategy):
        search = Searcher(start, model="auto", max_evals=100, rng=1)
        assert type(search.strategy) is type(Searcher(start).strategy) and USED not in search.result.message


def named_valley(p: dict[str, Any]) -> float:
    return valley(p["x"])


@pytest.mark.parametrize("first", [300, 10**6])
@pytest.mark.parametrize(
    ("function", "x0"), [(valley, np.zeros(4)), (named_valley, Space({"x": Real(width=0.5, shape=4)}))]
)
def test_a_run_that_is_resumed_stays_with_a_model_or_without_whatever_its_new_limit(
    function: Any, x0: Any, first: int, tmp_path: Path
) -> None:
    sigma0 = 0.5 if isinstance(x0, np.ndarray) else None
    given: dict[str, Any] = {"x0": x0, "sigma0": sigma0, "model": "auto", "rng": 1, "checkpoint": tmp_path / "run.npz"}
    minimize(function, max_evals=first, max_iters=10, **given)
    last = 10**6 if first == 300 else 300
    found = minimize(function, max_evals=last, max_iters=20, resume=True, **given)
    whole = minimize(function, max_evals=first, max_iters=20, **(given | {"checkpoint": None}))
    assert has_model(Searcher.load(tmp_path / "run.npz")) is (first == 300)
    assert found.fun == whole.fun and (found.nfev, found.nit) == (whole.nfev, whole.nit)
    assert (USED in found.message) is (first == 300)
    with pytest.raises(ValueError, match="must be of the same search"):
        minimize(function, resume=True, **(given | {"model": None if first == 300 else "quadratic"}))


# ---- what has no model ----------------------------------------------------------------------------------------------

MIXED: dict[str, Any] = {
    "integers": {"start": np.ones(4), "sigma0": 0.5, "integer": [1]},
    "whole": {"start": Space({"a": Real(0, 1, shape=3), "n": Integer(1, 9)})},
    "logarithms": {"start": Space({"a": Real(0, 1, shape=3), "n": Integer(1, 9, log=True)})},
    "choices": {"start": Space({"a": Real(0, 1, shape=3), "k": Choice("u", "v")})},
    "only choices": {"start": Space({"k": Choice("u", "v", shape=3)})},
    "conditions": {"start": Space({"k": Choice("u", "v"), "a": Real(0, 1, when={"k": "u"})})},
}


def of_anything(x: Any) -> float:
    if isinstance(x, dict):
        return sum(of_anything(value) for value in x.values())
    entries = np.asarray(x).ravel().tolist()
    return sum(float(entry == "v") if isinstance(entry, str) else (entry - 0.3) ** 2 for entry in entries)


REAL_BESIDE = {"integers", "whole", "logarithms", "choices", "conditions"}


@pytest.mark.parametrize("kind", MIXED)
def test_a_model_is_of_the_real_variables_and_it_is_said_where_there_are_none(kind: str) -> None:
    found = []
    for model in (None, "quadratic", "auto"):
        search = Searcher(**MIXED[kind], model=model, rng=1, max_evals=80)  # type: ignore[arg-type]
        assert has_model(search) is (model == "quadratic" and kind in REAL_BESIDE)
        assert (LEFT_OUT in search.result.message) is (model == "quadratic" and kind not in REAL_BESIDE)
        if has_model(search):
            continue
        while not search.stop():
            search.tell([of_anything(x) for x in search.ask()])
        found.append([part.tobytes() for part in flattened("state", search.state).values()])
    assert all(one == found[0] for one in found)


def smooth(x: Any) -> float:
    """Real variables whose scales differ, beside integers and choices."""
    if isinstance(x, dict):
        beside = {"u": 0.0, "v": 1.0, "w": 0.3}[x["k"]] + abs(x["n"] - 4)
        return float(10.0 ** np.arange(4) @ (x["a"] - 0.5) ** 2 + beside)
    turned = x[3:] - 0.3 + 0.2 * np.roll(x[3:], 1)
    return float(10.0 ** np.arange(3) @ turned**2 + 10 * ((x[:3] - 3.0) ** 2).sum())


BESIDE = Space({"k": Choice("u", "v", "w"), "a": Real(-3, 3, shape=4), "n": Integer(0, 9)})


@pytest.mark.parametrize("options", [
    {"start": np.array([0.0, 0.0, 0.0, 0.6, 0.6, 0.6]), "sigma0": 2.0, "integer": [0, 1, 2]},
    {"start": BESIDE},
    {"start": BESIDE, "structure": "diagonal"},
], ids=["integers", "space", "diagonal"])  # fmt: skip
def test_a_model_of_the_real_variables_saves_evaluations_beside_integers_and_choices(options: dict[str, Any]) -> None:
    needed: dict[str | None, list[int]] = {None: [], "quadratic": []}
    for model, counts in needed.items():
        for seed in range(5):
            search = Searcher(**options, model=model, rng=seed, target=1e-6, max_evals=2000)  # type: ignore[arg-type]
            while not search.stop():
                search.tell([smooth(x) for x in search.ask()])
            counts.append(search.nfev)
    assert np.median(needed["quadratic"]) < 0.75 * np.median(needed[None])


@pytest.mark.parametrize("kind", sorted(REAL_BESIDE))
def test_a_search_with_a_model_beside_integers_and_choices_continues_from_a_file(kind: str, tmp_path: Path) -> None:
    search = Searcher(**MIXED[kind], model="quadratic", rng=1)
    for _ in range(8):
        search.tell([of_anything(x) for x in search.ask()])
    search.save(tmp_path / "run.npz")
    loaded = Searcher.load(tmp_path / "run.npz")
    for one in (search, loaded):
        for _ in range(12):
            one.tell([of_anything(x) for x in one.ask()])
    others = flattened("state", loaded.state)
    for name, part in flattened("state", search.state).items():
        assert np.array_equal(part, others[name], equal_nan=True), name
    assert search.best_f == loaded.best_f and search.best_f is not None and search.best_f < 2.0


def test_the_trial_has_the_integers_and_choices_of_the_mean_and_the_model_only_points_that_share_them() -> None:
    search = Searcher(BESIDE, model="quadratic", rng=2)
    strategy, seen = search.strategy, 0
    assert isinstance(strategy, ModelSearch) and strategy.surrogate.dim == 4
    while search.nfev < 150:
        state, points = search.state, search.ask()
        row = int(Numbers(*state.numbers.tolist()).trial)
        if row >= 0:
            seen += 1
            mean = strategy.mean(state)
            assert np.array_equal(state.points[row][[0, 5]], mean[[0, 5]])
            assert points[0]["k"] == BESIDE.dicts(mean[None])[0]["k"]
            z = strategy.plain.coordinates(state.plain).of_reals(state.archive)
            shares = (state.archive[:, [0, 5]] == mean[[0, 5]]).all(axis=1)
            assert np.array_equal(np.isfinite(z).all(axis=1), shares) and np.isnan(z[~shares]).all()
        search.tell([smooth(p) for p in points])
    assert seen > 3


@pytest.mark.parametrize(("options", "message"), [
    ({"noise": "adapt"}, "noise cannot be combined with model='quadratic'.*'adapt'"),
    ({"step_size": "tpa"}, "step_size cannot be combined with model='quadratic'"),
    ({"constraints": 1}, "constraints cannot be combined with model='quadratic'"),
    ({"structure": "triangular"}, "structure must be 'full'.*model='quadratic'"),
])  # fmt: skip
@pytest.mark.parametrize("kind", ["integers", "whole", "choices"])
def test_what_does_not_go_with_a_model_is_an_error_beside_integers_and_choices_as_well(
    kind: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        Searcher(**MIXED[kind], model="quadratic", **options)


def test_that_a_model_was_left_out_is_said_after_restarts_and_a_checkpoint(tmp_path: Path) -> None:
    given: dict[str, Any] = {"integer": True, "model": "quadratic", "restarts": "ipop", "rng": 1}
    given |= {"checkpoint": tmp_path / "run.npz"}
    first = minimize(lambda x: 1.0, np.ones(2), 0.5, max_evals=900, **given)
    found = minimize(lambda x: 1.0, np.ones(2), 0.5, max_evals=1200, resume=True, **given)
    assert first.restarts > 0 and LEFT_OUT in first.message and LEFT_OUT in found.message


# ---- what is said -------------------------------------------------------------------------------------------------


def test_what_was_decided_is_said_after_loading_and_copying_as_well(tmp_path: Path) -> None:
    search = Searcher(np.ones(3), 0.5, model="auto", max_evals=50, rng=1)
    search.save(tmp_path / "s.npz")
    for one in (Searcher.load(tmp_path / "s.npz"), pickle.loads(pickle.dumps(search))):
        assert one.model_note == USED and USED in one.result.message


class Slow:
    """A clock of its own, which stands still but while a function is evaluated."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, seconds: float, first: float = 0.0) -> None:
        self.now, self.seconds, self.first = 0.0, seconds, first
        monkeypatch.setattr(ledger, "time", SimpleNamespace(monotonic=lambda: self.now))

    def __call__(self, x: Any) -> float:
        self.now += self.seconds + self.first
        self.first = 0.0
        return 1.0 if isinstance(x, dict) else valley(x)


@pytest.mark.parametrize(("seconds", "text"), [(0.009, None), (0.012, "every 12 ms"), (1.25, "every 1.2 s")])
def test_a_model_is_recommended_where_values_come_slowly_and_changes_nothing_else(
    seconds: float, text: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, Any] = {"model": None, "max_evals": 100, "rng": 1}
    quick = minimize(valley, np.zeros(4), 0.5, **given)
    slow = minimize(Slow(monkeypatch, seconds), np.zeros(4), 0.5, **given)
    assert np.array_equal(quick.x, slow.x) and "model" not in quick.message
    if text is None:
        assert slow.message == quick.message
    else:
        assert text in slow.message and 'model="quadratic"' in slow.message


@pytest.mark.parametrize(
    "options",
    [
        {"model": "quadratic"},
        {"model": "auto"},
        {"x0": np.zeros(41)},
        {"integer": [0]},
        {"noise": "adapt"},
        {"structure": "triangular"},
        {"constraints": [{"type": "ineq", "fun": lambda x: x[0] + 9}]},
        {"x0": Space({"a": Real(shape=4)}), "sigma0": None, "model": "quadratic"},
        {"x0": Space({"a": Real(shape=3), "n": Integer(0, 9)}), "sigma0": None},
        {"max_evals": 8},  # one generation: who knows what came first
    ],
    ids=lambda given: "-".join(given),
)
def test_no_model_is_recommended_that_would_be_refused_or_is_there(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, Any] = {"x0": np.zeros(4), "sigma0": 0.5, "model": None, "max_evals": 60, "rng": 1} | options
    assert 'model="quadratic"' not in minimize(Slow(monkeypatch, 1.0), **given).message


def test_what_comes_before_the_first_values_and_after_the_last_ones_is_not_their_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    function = Slow(monkeypatch, 0.001, first=100.0)
    search = Searcher(np.zeros(3), 0.5, model=None, max_evals=50, rng=1)
    while not search.stop():
        assert "model" not in search.result.message
        search.tell([function(x) for x in search.ask()])
        function.now += 50.0  # which are the caller's own
    function.now += 1000.0
    assert "model" not in search.result.message
    assert search.ledger.clock.interval == pytest.approx(0.001)


def test_a_model_over_named_real_numbers_is_recommended_too(monkeypatch: pytest.MonkeyPatch) -> None:
    space = Space({"a": Real(start=1.0), "b": Angle()})
    result = minimize(Slow(monkeypatch, 1.0), space, model=None, max_evals=60, rng=1)
    assert 'model="quadratic"' in result.message


def test_values_that_are_told_one_by_one_take_the_time_between_them(monkeypatch: pytest.MonkeyPatch) -> None:
    function = Slow(monkeypatch, 0.5)
    search = Searcher(np.zeros(3), 0.5, model=None, max_evals=50, rng=1)
    while not search.stop():
        for x in search.ask():
            search.tell(x, function(x))
    assert search.ledger.clock.interval == pytest.approx(0.5)
    assert "every 500 ms" in search.result.message
    again = pickle.loads(pickle.dumps(search))
    assert again.ledger.clock.interval is None and "every" not in again.result.message


def test_a_tell_that_is_refused_loses_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    function = Slow(monkeypatch, 0.5)
    search = Searcher(np.zeros(3), 0.5, model=None, rng=1)
    for _ in range(3):
        values = [function(x) for x in search.ask()]
        with pytest.raises(ValueError, match="fitness"):
            search.tell(values[:-1])
        search.tell(values)
    assert search.ledger.clock.interval == pytest.approx(0.5)


def test_noisy_values_are_no_reason_for_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    function, rng = Slow(monkeypatch, 1.0), np.random.default_rng(1)
    given: dict[str, Any] = {"model": None, "max_evals": 3000, "rng": 1}
    result = minimize(lambda x: 0.0 * function(x) + rng.standard_normal(), np.zeros(3), 0.5, **given)
    assert result.noisy and 'model="quadratic"' not in result.message
