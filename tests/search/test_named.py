"""Named parameters: dicts in and out, inactive ones, angles, fixed values, files, and what is refused."""

import json
import math
import pickle
import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import esgroup
from esgroup import Angle, Choice, Integer, Real, Searcher, Space, minimize
from esgroup.files.states import flattened
from esgroup.strategies.base import Ranked
from esgroup.strategies.in_domain import innermost
from esgroup.strategies.model_state import Numbers
from esgroup.strategies.product import ProductSearch

SPACE = Space(
    {
        "C": Real(1e-3, 1e3, log=True),
        "depth": Integer(2, 12),
        "kernel": Choice("rbf", "poly", "linear"),
        "gamma": Real(1e-4, 10, log=True, when={"kernel": "rbf"}),
        "degree": Integer(1, 64, log=True, when={"kernel": "poly"}),
        "w": Real(-1, 1, shape=(2, 2)),
        "phi": Angle(),
        "flags": Choice(True, False, shape=3),
    }
)


def loss(p: dict[str, Any]) -> float:
    value = math.log(p["C"] / 3) ** 2 + (p["depth"] - 7) ** 2 + float(((p["w"] - 0.3) ** 2).sum())
    value += 1 - math.cos(p["phi"] - 0.01) + sum(p["flags"])
    if p["kernel"] == "rbf":
        return value + math.log(p["gamma"] / 0.1) ** 2
    return value + (1.0 + math.log(p["degree"]) ** 2 if p["kernel"] == "poly" else 2.0)


REAL = Space(
    {
        "C": Real(1e-3, 1e3, log=True),
        "kernel": Choice("rbf", start="rbf"),
        "gamma": Real(1e-4, 10, log=True, when={"kernel": "rbf"}),
        "w": Real(-1, 1, shape=(2, 2)),
        "phi": Angle(start=6.2),
        "depth": Integer(7, 7),
    }
)


def smooth(p: dict[str, Any]) -> float:
    value = math.log(p["C"] / 3) ** 2 + float(((p["w"] - 0.3) ** 2).sum()) + 1 - math.cos(p["phi"] - 0.01)
    return value + (math.log(p["gamma"] / 0.1) - p["w"][0, 0]) ** 2


class Kind(NamedTuple):
    """A search over a space: with a model, if it has one."""

    space: Space
    fun: Any
    options: dict[str, Any]

    def searcher(self, **more: Any) -> Searcher:
        return Searcher(self.space, **self.options, **more)

    def minimize(self, **more: Any) -> Any:
        return minimize(self.fun, self.space, **self.options, **more)


KINDS = {"ranks": Kind(SPACE, loss, {}), "model": Kind(REAL, smooth, {"model": "quadratic"})}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    return KINDS[request.param]


MODELS = pytest.mark.parametrize("model", [None, "quadratic"])


def told(search: Searcher, fun: Any, generations: int) -> Searcher:
    for _ in range(generations):
        search.tell([fun(p) for p in search.ask()])
    return search


def same_state(a: Searcher, b: Searcher) -> bool:
    first, second = flattened("state", a.state), flattened("state", b.state)
    return all(np.array_equal(array, second[name], equal_nan=True) for name, array in first.items())


# ---- points ---------------------------------------------------------------------------------------------------------


def test_points_are_dicts_of_the_active_parameters_with_values_in_their_domains() -> None:
    search = Searcher(SPACE, rng=1)
    for _ in range(20):
        points = search.ask()
        assert isinstance(points, list) and len(points) == search.popsize
        for p in points:
            extra = {"rbf": {"gamma"}, "poly": {"degree"}, "linear": set()}[p["kernel"]]
            assert set(p) == {"C", "depth", "kernel", "w", "phi", "flags"} | extra
            assert type(p["C"]) is float and 1e-3 <= p["C"] <= 1e3
            assert type(p["depth"]) is int and 2 <= p["depth"] <= 12
            assert p["w"].shape == (2, 2) and not p["w"].flags.writeable and np.abs(p["w"]).max() <= 1
            assert 0 <= p["phi"] < 2 * math.pi
            assert p["flags"].shape == (3,) and all(flag is True or flag is False for flag in p["flags"])
            assert p["kernel"] != "poly" or (type(p["degree"]) is int and 1 <= p["degree"] <= 64)
        search.tell([loss(p) for p in points])


def test_a_choice_gives_the_object_itself() -> None:
    options = (max, None, (1, 2), "text")
    search = Searcher(Space({"what": Choice(*options)}), rng=1)
    assert all(any(p["what"] is option for option in options) for p in search.ask(50))


def test_rows_and_dicts_determine_each_other_bit_by_bit(kind: Kind) -> None:
    search = told(kind.searcher(rng=3), kind.fun, 10)
    drawn = search.strategy.sample(search.state, 200, np.random.default_rng(1))
    points = search.strategy.domain.to_user(drawn.points)
    assert np.array_equal(search.strategy.domain.from_user("X", points), drawn.points)
    assert np.array_equal(search.strategy.domain.from_user("X", points[7]), drawn.points[7:8])


def test_points_may_be_told_in_any_order_and_form(kind: Kind) -> None:
    searches = [kind.searcher(rng=2) for _ in range(4)]
    asked = [search.ask() for search in searches]
    values = [kind.fun(p) for p in asked[0]]
    searches[0].tell(values)
    searches[1].tell(asked[1], values)
    searches[2].tell(list(zip(asked[2], values, strict=True)))
    for i in reversed(range(len(values))):
        searches[3].tell(asked[3][i], values[i])
    for other in searches[1:]:
        assert other.nit == 1
        first, second = (flattened("state", one.state) for one in (searches[0], other))
        for name, array in first.items():
            np.testing.assert_allclose(array, second[name], rtol=1e-9, atol=1e-12, err_msg=name)


def test_points_of_ones_own_are_injected_and_told() -> None:
    search = Searcher(SPACE, rng=2)
    mine = {"C": 3.0, "depth": 7, "kernel": "linear", "w": np.full((2, 2), 0.3), "phi": -0.1, "flags": [False] * 3}
    search.inject(mine)
    first = search.ask()[0]
    assert first["C"] == 3.0 and first["phi"] == pytest.approx(2 * math.pi - 0.1) and "gamma" not in first
    search.tell([first], [-1.0])
    assert search.best_f == -1.0 and search.best_x["kernel"] == "linear"
    search.tell([mine | {"kernel": "rbf", "gamma": 0.5}], [-2.0])
    assert search.best_x["gamma"] == 0.5


# ---- degenerate cases -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind_of_n", "options"), [(Integer, {}), (Real, {}), (Real, {"model": "quadratic"})])
def test_numbers_alone_are_searched_as_a_vector_step_by_step(kind_of_n: Any, options: dict[str, Any]) -> None:
    bounds = [(-5.0, 4.0)] * 3 + [(0.0, 9.0)] * 2 + [(None, None)]
    widths = [1.0] * 3 + [2.0] * 2 + [0.7]
    integer = [3, 4] if kind_of_n is Integer else None
    plain = Searcher([1.0, 2.0, 3.0, 5.0, 5.0, 1.5], widths, bounds=bounds, integer=integer, rng=4, **options)
    named = Searcher(
        Space(
            {
                "a": Real(-5, 4, shape=3, start=[1.0, 2.0, 3.0], width=1.0),
                "n": kind_of_n(0, 9, shape=2, start=5, width=2.0),
                "b": Real(start=1.5, width=0.7),
            }
        ),
        rng=4,
        **options,
    )

    def row(p: dict[str, Any]) -> np.ndarray:
        return np.concatenate([p["a"], p["n"], [p["b"]]])

    for _ in range(30):
        X, points = plain.ask(), named.ask()
        assert np.array_equal(X, [row(p) for p in points])
        values = [float((x - 0.3) @ (x - 0.3)) for x in X]
        plain.tell(values)
        named.tell(values)
    if options:
        assert same_state(plain, named) and plain.nit == named.nit
    else:
        assert np.array_equal(np.concatenate(plain.state), np.concatenate(named.state))
    assert plain.stop() == named.stop() and plain.sigma == named.sigma
    assert str(plain.structure) == str(named.structure)


@MODELS
def test_a_logarithm_is_the_plain_search_over_logarithms(model: Any) -> None:
    plain = Searcher([0.0, 0.0], 1.0, bounds=(math.log(1e-2), math.log(1e2)), rng=4, model=model)
    named = Searcher(Space({"a": Real(1e-2, 1e2, log=True, shape=2, width=1.0)}), rng=4, model=model)
    for _ in range(20):
        X, points = plain.ask(), named.ask()
        np.testing.assert_allclose(np.exp(X), [p["a"] for p in points], rtol=1e-14)
        values = [float((x - 1) @ (x - 1)) for x in X]
        plain.tell(values)
        named.tell(values)
    if model is None:
        assert np.array_equal(plain.state.mean, named.state.mean)
    else:
        np.testing.assert_allclose(named.state.plain.mean, plain.state.plain.mean, rtol=1e-9)
        assert plain.nit == named.nit


def test_choices_alone_find_the_best_options_and_end() -> None:
    best = (3, 1, 0, 2, 3, 1)
    space = Space({"c": Choice(*range(4), shape=6)})
    for seed in range(3):
        result = minimize(lambda p: sum(a != b for a, b in zip(p["c"], best, strict=True)), space, rng=seed)
        assert result.fun == 0 and tuple(result.x["c"]) == best and result.success and result.nfev < 5000


def test_choices_that_do_not_matter_end_as_a_plateau_and_stay_where_they_are() -> None:
    search = told(Searcher(Space({"c": Choice(*range(4), shape=3)}), rng=1, max_evals=10**5), lambda p: 1.0, 100)
    assert "flat" in search.stop()
    rng, space = np.random.default_rng(5), Space({"c": Choice(*range(4), shape=20)})
    noisy = told(Searcher(space, rng=1), lambda p: rng.standard_normal(), 150)
    most = [max(chances.values()) for chances in noisy.result.probabilities.values()]
    assert np.median(most) < 0.6  # most choices have given up nothing


# ---- angles ---------------------------------------------------------------------------------------------------------


@MODELS
def test_an_angle_goes_over_the_seam(model: Any) -> None:
    space, given = Space({"phi": Angle(start=6.2, width=0.05)}), {"rng": 1, "max_evals": 400, "model": model}
    for target in (0.02, 0.3):
        result = minimize(lambda p, target=target: 1 - math.cos(p["phi"] - target), space, **given)
        assert result.fun < 1e-10 and result.x["phi"] == pytest.approx(target, abs=1e-4)


@MODELS
def test_local_coordinates_of_an_angle_are_those_of_the_nearest_image(model: Any) -> None:
    search = Searcher(Space({"phi": Angle(start=6.2, width=0.5)}), rng=1, model=model)
    rows = np.array([[0.01], [6.0], [4.0]])
    z = search.strategy.local(search.state, rows)[:, 0]
    expected = (np.array([2 * math.pi + 0.01, 6.0, 4.0]) - 6.2) / 0.5
    np.testing.assert_allclose(z, expected, rtol=1e-12)


@MODELS
def test_angles_turn_with_the_circle(model: Any) -> None:
    """A search for an optimum at t from t + 1 is that for t + 2.5 from t + 3.5, turned, whatever the seam."""
    found = []
    for t in (0.0, 2.5):
        space = Space({"phi": Angle(start=t + 1, width=0.4, shape=2)})
        search = Searcher(space, rng=3, model=model)
        told(search, lambda p, t=t: float((1 - np.cos(p["phi"] - t)).sum()), 12 if model is None else 5)
        found.append(search.stds)
    np.testing.assert_allclose(found[0], found[1], rtol=1e-6)


@MODELS
def test_an_angle_that_does_not_matter_gets_no_wider_than_uniform(model: Any) -> None:
    rng = np.random.default_rng(1)
    for fun in (lambda p: rng.standard_normal(), lambda p: 1.0):
        search = told(Searcher(Space({"phi": Angle(shape=2)}), rng=1, model=model), fun, 200)
        assert search.stds.max() <= 2 * math.pi / 3 + 1e-9 and np.isfinite(search.mean).all()


# ---- inactive parameters --------------------------------------------------------------------------------------------


def test_inactive_parameters_have_one_value_in_a_row_and_keep_their_samples_in_local_coordinates() -> None:
    inner = {"y": Real(-2, 2, when={"a": 1}), "b": Choice(0, 1, when={"a": 1})}
    gated = Space({"a": Choice(0, 1), "x": Real(-2, 2), **inner})
    search = Searcher(gated, rng=2)
    state, strategy = search.state, search.strategy
    drawn = strategy.sample(state, 10, np.random.default_rng(1))
    off = drawn.points[:, 0] == 0
    assert off.any() and not off.all()
    assert (drawn.points[off, 2] == gated.start[2]).all() and (drawn.points[off, 3] == gated.start[3]).all()
    assert len(np.unique(drawn.local[off, 1])) == off.sum()  # z as it was drawn
    foreign = strategy.local(state, drawn.points)
    assert np.abs(foreign[off, 1]).max() < 1e-12  # at the mean
    on = np.ones(10, dtype=bool)
    assert np.array_equal(drawn.local[:, 4:], np.column_stack([on, ~off, on, ~off]))  # whether x, y, a and b are active
    assert (foreign[off, 3] == -1).all()
    np.testing.assert_allclose(foreign[~off], drawn.local[~off], atol=1e-9)


def test_an_inactive_choice_has_no_part_in_the_update() -> None:
    """Whatever category was drawn for it."""
    space = Space({"a": Choice(0, 1), "x": Real(-2, 2), "b": Choice(0, 1, 2, when={"a": 1})})
    search = Searcher(space, rng=2)
    state, strategy = search.state, search.strategy
    local = strategy.sample(state, 10, np.random.default_rng(1)).local
    other = local.copy()
    other[local[:, 5] == 0, 2] = 2.0
    assert not np.array_equal(local, other)
    found = [strategy.update(state, Ranked(each, np.arange(10))).choices.probabilities for each in (local, other)]
    assert np.array_equal(*found)


def test_numbers_that_are_inactive_move_by_the_share_of_points_in_which_they_are_active() -> None:
    space = Space({"a": Choice(0, 1), "x": Real(-2, 2), "y": Real(-2, 2, when={"a": 1}), "z": Real(-1, 1)})
    search = told(Searcher(space, rng=2), lambda p: p["x"] ** 2 + p.get("y", 0.5) ** 2 + p["a"] + p["z"] ** 2, 3)
    strategy, state = search.strategy, search.state
    product = innermost(strategy)
    assert isinstance(product, ProductSearch)
    numbers, before = product.numbers, state.numbers
    mean, std = before.mean[1].copy(), numbers.view(before).spread()[1]
    drawn = strategy.sample(state, 10, np.random.default_rng(1))
    local = drawn.local.copy()
    order = np.argsort(drawn.points[:, 1] ** 2)
    for active in (0, 3, 10):
        local[:, 5] = np.arange(10) < active  # after x, y, z and a: whether x, y, z and a are active
        plain = numbers.update(before, Ranked(local[:, :3].copy(), order))
        found = strategy.update(state, Ranked(local, order)).numbers
        share = active / 10
        moved = numbers.view(plain).spread()[1]
        assert found.mean[1] == pytest.approx(mean + share * (plain.mean[1] - mean))
        assert numbers.view(found).spread()[1] == pytest.approx(std * (moved / std) ** share)
        np.testing.assert_array_equal(found.mean[[0, 2]], plain.mean[[0, 2]])


def test_bad_points_with_a_rare_option_have_the_middle_ranks_of_the_numbers() -> None:
    space = Space({"a": Choice(0, 1, start=0, width=0.001), "x": Real(-2, 2, shape=2)})
    search = Searcher(space, rng=2, popsize=8)
    strategy, state = search.strategy, search.state
    product = innermost(strategy)
    assert isinstance(product, ProductSearch)
    categories = np.array([0, 1, 0, 1, 0, 0, 0, 1], dtype=float)[:, None]
    told_ = Ranked(np.zeros((8, 3)), np.array([1, 0, 2, 4, 3, 5, 7, 6]))
    found = product._order_of_numbers(state, told_, categories)
    assert found.tolist() == [1, 0, 2, 3, 7, 4, 5, 6]  # the good one, 1, keeps its rank
    common = product._order_of_numbers(state, told_, np.zeros((8, 1)))
    assert common.tolist() == told_.order.tolist()


def test_an_option_whose_own_parameter_is_bad_at_first_is_found_later() -> None:
    """The better kernel is worse on average until gamma is known; the step size of the others must not fix gamma."""
    found = [minimize(loss, SPACE, rng=seed, max_evals=3000, target=1e-3).fun < 1e-3 for seed in range(4)]
    assert sum(found) >= 3


def test_conditions_are_transitive() -> None:
    space = Space(
        {
            "deepest": Real(0, 1, when={"n": (2, 3)}),
            "n": Integer(1, 4, when={"kind": ("b", "c")}),
            "kind": Choice("a", "b", "c"),
        }
    )
    seen = set()
    for p in Searcher(space, rng=1).ask(200):
        assert ("n" in p) == (p["kind"] != "a")
        assert ("deepest" in p) == (p.get("n") in (2, 3))
        seen.add(frozenset(p))
    assert len(seen) == 3


def test_parameters_that_can_never_be_active_are_not_searched() -> None:
    search = Searcher(SPACE, fixed={"kernel": "linear", "depth": 4}, rng=1)
    assert all(p["kernel"] == "linear" and p["depth"] == 4 for p in search.ask())
    product = innermost(search.strategy)
    assert isinstance(product, ProductSearch) and product.numbers.size == 1 + 4 + 1
    with pytest.raises(ValueError, match=r"X\[0\]\['depth'\] must be 4, its fixed value"):
        search.tell([{**search.ask()[0], "depth": 5}], [1.0])


# ---- whole searches -------------------------------------------------------------------------------------------------


def test_a_search_over_everything_finds_the_optimum() -> None:
    for seed in (1, 2):
        result = minimize(loss, SPACE, rng=seed, max_evals=3000)
        assert result.fun < 1e-8 and result.x["kernel"] == "rbf" and result.x["depth"] == 7
        assert result.xmean["kernel"] == "rbf" and not any(result.xmean["flags"])
        assert set(result.stds) == set(SPACE.names) and result.stds["w"].shape == (2, 2)
        assert result.probabilities["kernel"]["rbf"] > 0.5 and result.probabilities["flags[2]"][False] > 0.5


@pytest.mark.parametrize(
    "options",
    [
        {"popsize": 16},
        {"structure": "diagonal"},
        {"noise": "adapt"},
        {"mirrored": True},
        {"step_size": "tpa"},
        {"decoding": False},
        {"algorithm": "paper"},
        {"restarts": "ipop"},
        {"restarts": "bipop"},
        {"fixed": {"depth": 7}},
    ],
    ids=str,
)
def test_options_work_and_make_progress(options: dict[str, Any]) -> None:
    result = minimize(loss, SPACE, rng=1, max_evals=800, **options)
    assert result.fun < 0.3 * loss(Searcher(SPACE).result.x)


def test_functions_may_be_vectorized_and_change_what_they_get(kind: Kind) -> None:
    def destroys(p: dict[str, Any]) -> float:
        value: float = kind.fun(p)
        p["w"][:] = 0.0
        p.clear()
        return value

    def rows(points: list[dict[str, Any]]) -> list[float]:
        return [destroys(p) for p in points]

    whole, given = kind.minimize(rng=1, max_evals=200), {"rng": 1, "max_evals": 200, **kind.options}
    assert minimize(rows, kind.space, vectorized=True, **given).fun == whole.fun
    assert minimize(destroys, kind.space, **given).fun == whole.fun
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        assert minimize(destroys, kind.space, executor=pool, **given).fun == whole.fun
        late = minimize(destroys, kind.space, executor=pool, asynchronous=True, **given)
    assert late.nfev == 200 and kind.fun(late.x) == late.fun


def test_a_saved_search_goes_on_bit_by_bit(kind: Kind, tmp_path: Path) -> None:
    search = told(kind.searcher(rng=5), kind.fun, 7)
    out = search.ask(5)
    search.tell(out[:2], [kind.fun(p) for p in out[:2]])
    search.save(tmp_path / "run.npz")
    others = [Searcher.load(tmp_path / "run.npz"), pickle.loads(pickle.dumps(search))]
    for one in (search, *others):
        one.tell(out[2:], [kind.fun(p) for p in out[2:]])
        told(one, kind.fun, 5)
    for other in others:
        assert same_state(search, other) and (search.best_f, search.nit) == (other.best_f, other.nit)
        assert other.strategy.domain.space == kind.space
    following = [repr(one.ask()) for one in (search, *others)]
    assert following[0] == following[1] == following[2]


def test_minimize_resumes_and_refuses_another_space(kind: Kind, tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    whole = kind.minimize(rng=3, max_evals=600)
    kind.minimize(rng=3, max_evals=301, checkpoint=path)
    resumed = kind.minimize(rng=3, max_evals=600, checkpoint=path, resume=True)
    assert resumed.fun == whole.fun and repr(resumed.x) == repr(whole.x) and resumed.nit == whole.nit
    other = kind._replace(space=Space({**dict(kind.space.parameters), "C": Real(1e-3, 1e4, log=True)}))
    with pytest.raises(ValueError, match=r"its parameter 'C' is Real\(.*upper=1000.0.*, not Real\(.*upper=10000.0"):
        other.minimize(rng=3, max_evals=900, checkpoint=path, resume=True)
    with pytest.raises(ValueError, match="fixed parameters differ, in 'phi'"):
        kind.minimize(rng=3, max_evals=900, fixed={"phi": 7}, checkpoint=path, resume=True)
    with pytest.raises(ValueError, match="structure"):
        kind.minimize(rng=3, max_evals=900, structure="diagonal", checkpoint=path, resume=True)


@MODELS
def test_a_restarted_search_resumes(model: Any, tmp_path: Path) -> None:
    def flat(p: dict[str, Any]) -> float:
        return 1.0

    space = Space({"x": Real(0, 1), "c": Choice(1, 2) if model is None else Angle()})
    given: dict[str, Any] = {"rng": 3, "restarts": "ipop", "model": model}
    whole, path = minimize(flat, space, max_evals=1500, **given), tmp_path / "run.npz"
    minimize(flat, space, max_evals=900, checkpoint=path, **given)
    resumed = minimize(flat, space, max_evals=1500, checkpoint=path, resume=True, **given)
    assert whole.restarts > 1 and resumed.restarts == whole.restarts and repr(resumed.xmean) == repr(whole.xmean)


def test_options_that_no_file_can_hold_are_refused_when_it_is_written(tmp_path: Path) -> None:
    search = Searcher(Space({"f": Choice(min, max)}), rng=1)
    with pytest.raises(TypeError, match=r"cannot be stored.*built-in function min"):
        search.save(tmp_path / "run.npz")


def test_a_model_takes_fewer_evaluations_and_follows_names() -> None:
    found = {model: minimize(smooth, REAL, rng=1, target=1e-9, model=model) for model in (None, "quadratic")}
    assert all(result.success for result in found.values()) and 2 * found["quadratic"].nfev < found[None].nfev
    fixed = minimize(smooth, REAL, rng=1, max_evals=150, model="quadratic", fixed={"C": 5.0, "phi": 0.01})
    assert fixed.x["C"] == 5.0 and fixed.fun == pytest.approx(math.log(5 / 3) ** 2) and set(fixed.x) == set(REAL.names)
    assert fixed.stds["C"] == 0.0 and "with a quadratic model" in Searcher(REAL, model="quadratic").strategy.about


def test_failed_and_foreign_points_are_no_obstacle_to_a_model_over_names() -> None:
    search, rng = Searcher(REAL, model="quadratic", rng=1, target=1e-8, max_evals=800), np.random.default_rng(1)
    foreign = Searcher(REAL, rng=2).ask()
    search.tell(foreign, [smooth(p) for p in foreign])
    while not search.stop():
        points = search.ask()
        search.tell(points, [math.nan if rng.random() < 0.2 else smooth(p) for p in points])
    assert search.result.success and search.nfailed > 10


def test_evaluated_points_of_a_space_are_in_the_archive_of_its_model() -> None:
    points = [p for seed in range(6) for p in Searcher(REAL, rng=seed).ask()]
    values = [smooth(p) for p in points]
    search = Searcher.from_data(points, values, space=REAL, model="quadratic", rng=1)
    assert search.nfev == search.nit == 0 and search.best_f == min(values)
    assert Numbers(*search.state.numbers.tolist()).archived == len(points)
    angles, mean = search.state.archive[-len(points) :, -1], search.result.xmean["phi"]
    assert np.abs(angles - mean).max() <= math.pi  # the nearest image
    np.testing.assert_allclose(np.sort(angles % (2 * math.pi)), sorted(p["phi"] for p in points), rtol=1e-12)
    assert smooth(search.ask()[0]) < np.quantile(values, 0.1)
    other = Searcher.from_data(points, values, space=REAL, model="quadratic", fixed={"phi": 1.0}, rng=1)
    assert Numbers(*other.state.numbers.tolist()).archived == 0  # the points have other values there


def test_constraints_and_a_model_over_names_are_refused() -> None:
    with pytest.raises(ValueError, match="constraints cannot be combined with model='quadratic'"):
        Searcher(REAL, model="quadratic", constraints=1)


def test_histories_have_the_names(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    minimize(loss, SPACE, rng=1, max_evals=100, history=path)
    header = json.loads(path.read_text().splitlines()[0])
    assert header["names"][:3] == ["C", "depth", "kernel"] and header["names"][-1] == "flags[2]"
    assert len(header["names"]) == header["dim"] and "w[1, 0]" in header["names"]


def test_a_search_begins_at_evaluated_points() -> None:
    points = [p for _ in range(6) for p in Searcher(SPACE, rng=_).ask()]
    values = [loss(p) for p in points]
    search = Searcher.from_data(points, values, space=SPACE, rng=1)
    best = points[int(np.argmin(values))]
    assert search.nfev == 0 and search.best_f == min(values) and search.best_x["C"] == best["C"]
    good = sorted(zip(values, range(len(points)), strict=True))[: math.ceil(0.25 * len(points))]
    mean = np.mean([math.log(points[i]["C"]) for _, i in good])
    assert math.log(search.result.xmean["C"]) == pytest.approx(mean)
    share = np.mean([points[i]["kernel"] == "rbf" for _, i in good])
    n = len(good)
    assert search.result.probabilities["kernel"]["rbf"] == pytest.approx((share * n + 1 / 3) / (n + 1))
    assert Searcher.from_data(points, values, space=SPACE, fixed={"depth": 40 - 33}).result.x["depth"] == 7


# ---- what is refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("parameters", "message"), [
    ({}, "at least one parameter"),
    ({3: Real(0, 1)}, "names that are strings, got 3"),
    ({"a": 3.0}, "'a' must be a Real, Integer, Choice or Angle, got 3.0"),
    ({"a": Choice()}, "'a' must have options"),
    ({"a": Choice("x", "y", "x")}, "options of 'a' .*'x' twice"),
    ({"a": Choice(1, True)}, "options of 'a' .*True twice"),
    ({"a": Choice([1], 2)}, r"options of 'a' must be hashable, got \[1\]"),
    ({"a": Choice(math.nan, 2)}, "options of 'a' .*nan"),
    ({"a": Choice(1, 2, start=3)}, "start of 'a' .*options, got 3"),
    ({"a": Choice(1, 2, start=1, width=1.0)}, "width of 'a' .*between 0 and 1, got 1.0"),
    ({"a": Real(0, 1, when={"b": 1})}, "when of 'a' .*'b'"),
    ({"a": Real(0, 1, when={"b": 1}), "b": Choice(2, 3)}, "when of 'a' .*'b': one of 2, 3, got 1"),
    ({"a": Real(0, 1, when={"b": 1}), "b": Real(0, 3)}, "when of 'a' .*'b' is a real number"),
    ({"a": Real(0, 1, when={"b": 9}), "b": Integer(0, 3)}, "when of 'a' .*'b': an integer from 0 to 3, got 9"),
    ({"a": Real(0, 1, when={"b": 1}), "b": Choice(1, 2, shape=2)}, "when of 'a' .*'b' is a choice with a shape"),
    ({"a": Real(0, 1, when={"b": ()}), "b": Choice(1, 2)}, "when of 'a' .*got none"),
    ({"a": Real(0, 1, when="b"), "b": Choice(1, 2)}, "when of 'a' must be a mapping"),
    ({"a": Real(0, 1, when={"a": 1})}, "when of 'a' must not depend on itself"),
    ({"a": Choice(1, 2, when={"b": 1}), "b": Choice(1, 2, when={"a": 1})}, "circular, but those of 'a', 'b' are"),
    ({"a": Real(2, 1)}, "'a' must have lower <= upper, got 2 and 1"),
    ({"a": Real("x", 1)}, "lower of 'a' .*'x'"),
    ({"a": Real(0, 1, log=True)}, "bounds of 'a' must be positive with log=True, got 0 and 1"),
    ({"a": Integer(0, 9, log=True)}, "bounds of 'a' must be positive with log=True"),
    ({"a": Integer(0.5, 3)}, "lower of 'a' must be an integer"),
    ({"a": Integer(0, 9, start=1.5)}, "start of 'a' must be an integer, got 1.5"),
    ({"a": Real(0, 1, start=2)}, "start of 'a' must be from 0 to 1, got 2"),
    ({"a": Real(0, 1, shape=2, start=[1, 2, 3])}, r"start of 'a' .*shape \(2,\)"),
    ({"a": Real(3, None)}, "start of 'a' must be given"),
    ({"a": Real(log=True)}, "start of 'a' must be given"),
    ({"a": Real(0, 1, width=0)}, "width of 'a' must be positive, got 0"),
    ({"a": Angle(width=-1)}, "width of 'a' must be positive, got -1"),
    ({"a": Angle(start="x")}, "start of 'a' .*'x'"),
    ({"a": Real(0, 1, shape=0)}, "shape of 'a' .*got 0"),
    ({"a": Real(0, 1, shape=(2, 1.5))}, "shape of 'a'"),
    ({"a": Real(0, 1, log="yes")}, "log of 'a'"),
])  # fmt: skip
def test_a_space_that_is_not_one_is_refused_by_name(parameters: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        Space(parameters)


GOOD = {"C": 1.0, "depth": 3, "kernel": "linear", "w": np.zeros((2, 2)), "phi": 1.0, "flags": [True, False, True]}


@pytest.mark.parametrize(("change", "message"), [
    ({"C": None}, r"X\[0\]\['C'\] must be a real number from 0.001 to 1000, got None"),
    ({"C": 1e4}, r"\['C'\] must be a real number from 0.001 to 1000, got 10000.0"),
    ({"C": math.nan}, r"\['C'\] .*got nan"),
    ({"depth": 3.5}, r"\['depth'\] must be an integer from 2 to 12, got 3.5"),
    ({"depth": True}, r"\['depth'\] .*True"),
    ({"kernel": "cubic"}, r"\['kernel'\] must be one of 'rbf', 'poly', 'linear', got 'cubic'"),
    ({"kernel": ["rbf"]}, r"\['kernel'\] must be one of"),
    ({"kernel": "rbf"}, "'gamma' is missing"),
    ({"gamma": 1.0}, "must not have 'gamma', which is active only where 'kernel' is 'rbf'"),
    ({"size": 1.0}, "names of the space, got 'size'"),
    ({"w": np.zeros(4)}, r"\['w'\] must be an array of shape \(2, 2\)"),
    ({"w": 0.0}, r"\['w'\] must be an array of shape \(2, 2\)"),
    ({"w": np.full((2, 2), 2.0)}, r"\['w'\]\[0\] must be a real number from -1 to 1, got 2.0"),
    ({"flags": [1, 2, 3]}, r"\['flags'\]\[1\] must be one of True, False, got 2"),
    ({"phi": math.inf}, r"\['phi'\] must be an angle.* inf"),
])  # fmt: skip
def test_a_told_point_outside_of_the_space_is_refused_and_nothing_is_lost(change: Any, message: str) -> None:
    search = Searcher(SPACE, rng=1)
    points = search.ask()
    with pytest.raises((ValueError, TypeError), match=message):
        search.tell([{**GOOD, **change}], [1.0])
    with pytest.raises((ValueError, TypeError), match=message.replace(r"X\[0\]", "X")):
        search.inject({**GOOD, **change})
    assert search.nfev == 0
    search.tell([loss(p) for p in points])
    assert search.nit == 1


def test_a_told_point_without_a_parameter_is_refused() -> None:
    search = Searcher(SPACE, rng=1)
    with pytest.raises(ValueError, match="'C' is missing"):
        search.tell([{name: value for name, value in GOOD.items() if name != "C"}], [1.0])
    with pytest.raises(TypeError, match="dict"):
        search.tell(np.zeros((1, 12)), [1.0])
    with pytest.raises(TypeError, match="dict"):
        search.tell(["abc"], [1.0])


@pytest.mark.parametrize(("options", "message"), [
    ({"sigma0": -1.0}, "sigma0 .*positive"),
    ({"bounds": (0, 1)}, "bounds .*mapping .*Space"),
    ({"integer": [True]}, "integer .*names of the space"),
    ({"cov0": np.eye(2)}, "cov0 .*shape"),
    ({"fixed": [0]}, "fixed must be a mapping of names"),
    ({"fixed": {"nothing": 1}}, "fixed must have names of the space, got 'nothing'"),
    ({"fixed": {"kernel": "cubic"}}, r"fixed\['kernel'\] must be one of"),
    ({"popsize": 1}, "popsize"),
])  # fmt: skip
def test_arguments_that_make_no_sense_with_a_space_are_refused(options: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        Searcher(SPACE, **options)


def test_devices_of_numbers_are_refused_where_there_are_only_choices() -> None:
    with pytest.raises(ValueError, match=r"mirrored .*only choices"):
        Searcher(Space({"c": Choice(1, 2)}), mirrored=True)
    with pytest.raises(ValueError, match="leave a parameter"):
        Searcher(Space({"c": Choice(1, 2)}), fixed={"c": 1})


def test_spaces_are_values() -> None:
    again = Space(dict(SPACE.parameters))
    assert again == SPACE and hash(again) == hash(SPACE) and pickle.loads(pickle.dumps(SPACE)) == SPACE
    assert Real(0, 1, start=np.float64(0.5)) == Real(0, 1, start=0.5)
    with pytest.raises(AttributeError):
        SPACE.parameters = ()  # type: ignore[misc]
    assert esgroup.Space is Space and SPACE["depth"] == Integer(2, 12) and next(iter(SPACE)) == "C" and len(SPACE) == 8


# ---- the command ---------------------------------------------------------------------------------------------------

MODULE = """
from esgroup import Choice, Integer, Real, Space
space = Space({"x": Real(-1, 1), "n": Integer(1, 9), "kind": Choice("a", "b"), "y": Real(0, 1, when={"kind": "a"})})
def f(p):
    return p["x"] ** 2 + (p["n"] - 3) ** 2 + p.get("y", 2.0)
"""


def test_the_command_searches_a_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from esgroup.command.run import Job, run

    (tmp_path / "module_with_a_space.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    name, options = "module_with_a_space:", {"max_evals": 300, "rng": 1}
    outcome = run(Job(name + "f", space=name + "space", history=tmp_path / "h.jsonl", options=options))
    found = json.loads(json.dumps(outcome.json(), allow_nan=False))
    assert found["x"]["n"] == 3 and found["x"]["kind"] == "a" and set(found["stds"]) == {"x", "n", "kind", "y"}
    assert found["probabilities"]["kind"]["a"] > 0.5 and "kind = a" in dict(outcome.lines())["at"]
    fixed = run(Job(name + "f", space=name + "space", options=options | {"fixed": "n=5,kind=b"}))
    assert fixed.json()["x"]["n"] == 5 and "y" not in fixed.json()["x"]
    for job, message in (
        (Job(name + "f", space=name + "f"), "--space must name a Space"),
        (Job("sphere", space=name + "space"), "--space needs a function of a dict"),
        (Job(name + "f", space=name + "space", dim=3), "--dim cannot be combined with --space"),
        (Job(name + "f", space=name + "space", options={"fixed": "m=1"}), "--fixed .*'m'"),
        (Job(name + "f", space=name + "space", options={"fixed": "kind=c"}), "--fixed .*'c'"),
    ):
        with pytest.raises(ValueError, match=message):
            run(job)


def test_figures_have_the_names(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from esgroup.plots.run import plot

    minimize(loss, SPACE, rng=1, max_evals=100, history=tmp_path / "run.jsonl")
    figure = plot(tmp_path / "run.jsonl", tmp_path / "run.svg").read_text()
    assert "<!-- flags[2] -->" in figure and "x₁" not in figure


# ---- options that name parameters ---------------------------------------------------------------------------------


SEVERAL = Space({
    "a": Real(-3.5, 3, shape=2, start=1),
    "b": Real(1e-4, 1, log=True),
    "k": Choice("u", "v"),
    "p": Angle(),
})  # fmt: skip


def test_sigma0_is_a_factor_of_all_widths_or_has_widths_by_name() -> None:
    plain, narrow = Searcher(SEVERAL), Searcher(SEVERAL, 0.1)
    of_plain, of_narrow = (one.strategy.view(one.state).spread() for one in (plain, narrow))
    np.testing.assert_allclose(of_narrow, 0.1 * of_plain)
    named = Searcher(SEVERAL, {"a": [0.5, 0.25], "p": 0.2})
    np.testing.assert_allclose(named.stds[[0, 1, 4]], [0.5, 0.25, 0.2])
    assert named.stds[2] == plain.stds[2]


def test_bounds_by_name_hold_beside_those_of_the_parameter() -> None:
    search = Searcher(SEVERAL, bounds={"a": (-9, 2), "b": (0.2, None)}, rng=1)
    for _ in range(20):
        points = search.ask()
        a, b = np.array([point["a"] for point in points]), np.array([point["b"] for point in points])
        assert (a >= -3.5).all() and (a <= 2).all() and (b >= 0.2).all() and (b <= 1).all()
        search.tell([float(-point["a"].sum() + point["b"]) for point in points])
    assert search.best_x["a"].tolist() == [2.0, 2.0] and search.best_x["b"] == 0.2
    with pytest.raises(ValueError, match=r"'a'.* 2.*, got 2.5"):
        search.tell([{"a": [0, 2.5], "b": 0.5, "k": "u", "p": 0.0}], [1.0])


def test_reals_that_are_named_are_searched_as_integers() -> None:
    for integer, bounds in ((["a"], None), (True, {"b": (0.5, 1), "a": (-1.5, None)})):
        for point in Searcher(SEVERAL, integer=integer, bounds=bounds, rng=1).ask():
            assert point["a"].dtype.kind == "i" and (point["a"] >= (-3 if bounds is None else -1)).all()
            assert type(point["b"]) is (float if bounds is None else int)


def test_cov0_is_that_of_all_numbers_in_the_coordinates_that_are_searched() -> None:
    root = 0.1 * np.random.default_rng(1).standard_normal((4, 4))
    cov0 = root @ root.T + 1e-3 * np.eye(4)
    open_sided = Space({"a": Real(shape=2), "b": Real(start=1.0, log=True), "p": Angle()} | {"k": Choice(1, 2)})
    for factor, fixed, among in ((None, None, [0, 1, 2, 3]), (0.5, {"b": 2.0}, [0, 1, 3])):
        search = Searcher(open_sided, factor, cov0=cov0, fixed=fixed)
        numbers = innermost(search.strategy).numbers  # type: ignore[attr-defined]
        state = search.state.numbers
        dense = state.sigma * state.scale[:, None] * innermost(numbers).group.dense(state.root)
        np.testing.assert_allclose(dense @ dense.T, (factor or 1.0) ** 2 * cov0[np.ix_(among, among)], rtol=1e-9)


@pytest.mark.parametrize(("options", "message"), [
    ({"sigma0": {"k": 0.1}}, "sigma0 must name numbers of the space, got 'k', a choice"),
    ({"sigma0": [1.0, 2.0]}, "sigma0"),
    ({"bounds": {"z": (0, 1)}}, "bounds must have names of the space, got 'z'"),
    ({"bounds": {"p": (0, 1)}}, "bounds must name numbers of the space, got 'p', an angle"),
    ({"bounds": {"a": (2, 3)}}, "start of 'a' must be from 2 to 3, got 1"),
    ({"integer": "a"}, "integer must be True or a list of names with a Space, got 'a'"),
    ({"integer": ["p"]}, "integer must name numbers of the space, got 'p', an angle"),
])  # fmt: skip
def test_options_that_name_no_number_are_refused(options: dict, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=re.escape(message)):
        Searcher(SEVERAL, **options)
