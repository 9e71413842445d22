"""What newcomers do wrong, and what they are told: the argument, what it must be, what it was and what to write."""

import inspect
import pickle
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import scipy.optimize
from scipy.optimize import Bounds, NonlinearConstraint

import esgroup
from esgroup import Angle, Choice, Integer, Real, Searcher, Space, fit_posterior, minimize
from esgroup.newton import NewtonSettings, minimize_newton
from tests.driver.support import ellipsoid
from tests.search.support import everything

X0 = [1.0, 2.0]
SPACE = Space({"a": Real(0, 1), "kind": Choice("x", "y")})


def one(x: Any) -> float:
    return 1.0


# ---- unknown arguments ------------------------------------------------------------------------------------------

CALLS: dict[str, Callable[..., Any]] = {
    "minimize": lambda **given: minimize(ellipsoid, X0, **given),
    "Searcher": lambda **given: Searcher(X0, **given),
    "from_data": lambda **given: Searcher.from_data(np.eye(3), [1.0, 2.0, 3.0], **given),
    "minimize_newton": lambda **given: minimize_newton(ellipsoid, X0, jac=ellipsoid, **given),
    "scipy_method": lambda **given: scipy.optimize.minimize(ellipsoid, X0, method=esgroup.scipy_method, options=given),
    "fit_posterior": lambda **given: fit_posterior(ellipsoid, X0, **given),
    "NewtonSettings": NewtonSettings,
    "Real": lambda **given: Real(0, 1, **given),
    "Integer": Integer,
    "Angle": Angle,
    "Choice": lambda **given: Choice("a", "b", **given),
    "Space": Space,
}
HINTS: dict[str, dict[str, str]] = {
    "minimize": {
        **dict.fromkeys(("seed", "random_state", "SEED"), "rng"),
        **dict.fromkeys(("maxfevals", "maxfev", "max_eval", "budget", "n_trials", "maxfun", "max_evls"), "max_evals"),
        **dict.fromkeys(("maxiter", "max_iter", "n_generations"), "max_iters"),
        **dict.fromkeys(("sigma", "sigma_0", "Sigma0"), "sigma0"),
        **dict.fromkeys(("pop_size", "population_size", "lambda_", "popsze"), "popsize"),
        **dict.fromkeys(("disp", "verbose", "progres"), "progress"),
        **dict.fromkeys(("n_jobs", "n_workers", "processes"), "workers"),
        **dict.fromkeys(("ftarget", "traget"), "target"),
        **dict.fromkeys(("lb", "lower", "boundz"), "bounds"),
        "timeout": "max_time",
        "start": "x0",
        "func": "fun",
        "gradient": "jac",
        "strcture": "structure",
        "integrality": "integer",
        "options": r"pass them as arguments by name, such as max_evals=1000$",
        "tol": "pass tolerances as stop=",
        "n_restarts": r"restarts='ipop'.*IPOP\(doublings=n\)",
        "foo": r"help\(minimize\)",
    },
    "Searcher": {
        "seed": "rng",
        "x0": "start",
        "maxiter": "max_iters",
        "strcture": "structure",
        "options": "by name",
        **{name: f"esgroup.minimize takes {name}=" for name in ("callback", "workers", "method", "args")},
        "n_jobs": "esgroup.minimize takes workers=",
        "verbose": "esgroup.minimize takes progress=",
        "func": "esgroup.minimize takes fun=",
    },
    "from_data": {"seed": "rng", "popsiz": "popsize", "cov0": "sigma0="},
    "minimize_newton": {"seed": "rng", "maxiter": "max_iters", "tol": "gtol", "workers": "esgroup.minimize takes"},
    "scipy_method": {"seed": "rng", "sigma": "sigma0"},
    "fit_posterior": {"seed": "rng", "maxiter": "max_iters", "fun": "logp", "max_evals": "max_iters"},
    "NewtonSettings": {"tol": "gtol", "line_serch": "line_search"},
    "Real": {"low": "lower", "max": "upper", "default": "start", "initial": "start", "sigma": "width", "prior": "log"},
    "Integer": {"min": "lower", "high": "upper"},
    "Angle": {"x0": "start"},
    "Choice": {"default": "start", "choices": r"Choice\('a', 'b'\)"},
    "Space": {"rate": r"Space\({'rate': Real\(0, 1\)}\)"},
}  # fmt: skip


@pytest.mark.parametrize(
    ("call", "name", "hint"), [(call, *pair) for call, pairs in HINTS.items() for pair in pairs.items()]
)
def test_an_unknown_argument_is_refused_with_the_one_that_may_be_meant(call: str, name: str, hint: str) -> None:
    known = re.fullmatch(r"[a-z_0]+", hint) is not None
    text = rf"no argument '{name}': " + (rf"did you mean {hint}\?$" if known else f".*{hint}")
    with pytest.raises(TypeError, match=text):
        CALLS[call](**{name: 1})


@pytest.mark.parametrize(("call", "place"), [(minimize, "fun, x0, sigma0"), (Searcher, "start, sigma0")])
def test_arguments_that_have_a_name_only_are_refused_by_position(call: Any, place: str) -> None:
    with pytest.raises(TypeError, match=f"takes {place} by position, .*by name: got 1000"):
        call(*([ellipsoid] if call is minimize else []), X0, 0.5, 1000)


def test_what_is_explained_keeps_its_signature_and_its_own_errors() -> None:
    for owner in (minimize, Searcher, minimize_newton, fit_posterior, NewtonSettings, Real, Integer, Angle, Space):
        kinds = {parameter.kind for parameter in inspect.signature(owner).parameters.values()}
        assert kinds <= {inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY} and owner.__doc__
    assert list(inspect.signature(Choice).parameters) == ["options", "start", "width", "shape", "when"]
    for parameter in (Real(0, 1), Choice("a", "b")):
        assert pickle.loads(pickle.dumps(parameter)) == parameter

    def confused(x: Any) -> float:
        return sorted(x, seed=1)[0]  # type: ignore[call-overload,no-any-return]

    with pytest.raises(TypeError) as caught:
        minimize(confused, X0)
    with pytest.raises(TypeError) as own:
        confused([])
    assert str(caught.value) == str(own.value)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'x0'"):
        minimize(ellipsoid)  # type: ignore[call-arg]


# ---- wrong arguments --------------------------------------------------------------------------------------------

POINT = r"x0 must be a point, such as \[0.0, 0.0\], or a Space of named parameters, got "
WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "x0 None": ({"x0": None}, POINT + "None$"),
    "x0 None, bounds": ({"x0": None, "bounds": [(0, 1), (2, 4)]}, POINT + r"None: the middle .* is \[0.5, 3.0\]"),
    "x0 None, Bounds": ({"x0": None, "bounds": Bounds([0, 2], [1, 4])}, r"middle .* is \[0.5, 3.0\]"),
    "x0 None, open": ({"x0": None, "bounds": [(0, None), (2, 4)]}, POINT + "None$"),
    "x0 None, newton": ({"x0": None, "method": "newton", "jac": ellipsoid}, POINT + "None"),
    "x0 None, constraints": ({"x0": None, "constraints": {"type": "ineq", "fun": one}}, POINT + "None"),
    "x0 None, basins": ({"x0": None, "basins": 2}, POINT + "None"),
    "x0 None, spd": ({"x0": None, "space": "spd"}, POINT + "None"),
    "x0 dict": ({"x0": {"a": (0, 1)}}, POINT + r"a dict: wrap it, esgroup.Space\({'a': Real\(0, 1\)}\)"),
    "x0 dict, basins": ({"x0": {"a": (0, 1)}, "basins": 2}, POINT + "a dict: wrap it"),
    "x0 text": ({"x0": "1,2"}, POINT + "'1,2'"),
    "x0 a function": ({"x0": one}, POINT + "<function one.*: a function is fun, the first argument"),
    "x0 the class": ({"x0": Space}, POINT + "the class Space"),
    "x0 a parameter": ({"x0": Choice("u", "v")}, r"without a name: write esgroup.Space\({'x': Choice\('u', 'v'\)}\)"),
    "x0 parameters": ({"x0": [Real(0, 1), Real(0, 1)]}, r"esgroup.Space\({'x': Real\(lower=0, upper=1\)}\)"),
    "x0 a number": ({"x0": 5.0}, r"x0 must have shape \(n,\), got \(\), the number 5.0: write \[5.0\]"),
    "x0 a matrix": ({"x0": np.eye(2)}, r"x0 must have shape \(n,\), got \(2, 2\): flatten it, or .*space='matrix'"),
    "x0 a row": ({"x0": [[1.0, 2.0]]}, r"x0 must have shape \(n,\), got \(1, 2\): flatten"),
    "x0 ragged": ({"x0": [[1.0], [2.0, 3.0]]}, "x0 must be .*real numbers, got rows of unequal length"),
    "x0 empty": ({"x0": []}, "x0 must have at least one variable, got none"),
    "x0 nan": ({"x0": [1.0, np.nan]}, "x0 must be finite, got nan at index 1"),
    "x0 None inside": ({"x0": [None, 1.0]}, r"x0 must be .*real numbers, got .*\[None, 1.0\]"),
    "x0 text inside": ({"x0": ["a", 1.0]}, r"x0 must be .*real numbers, got .*\['a', 1.0\]"),
    "x0 complex": ({"x0": [1j, 1.0]}, r"x0 must be .*real numbers, got .*complex.*\[1j, 1.0\]"),
    "x0 a set": ({"x0": {1.0, 2.0}}, r"x0 must be .*real numbers, got .*{1.0, 2.0}"),
    "fun a value": ({"fun": 5.0}, "fun must be a function of a point, got 5.0: pass the function itself"),
    "fun a text": ({"fun": "f"}, "fun must be a function of a point, got 'f'"),
    "fun and x0 swapped": ({"fun": X0, "x0": one}, r"fun must be a function .*, got \[1.0, 2.0\]: fun comes first"),
    "sigma0 too long": ({"sigma0": [1.0] * 3}, r"sigma0 .*one number.*one for each .*shape \(2,\), got \(3,\)"),
    "sigma0 0": ({"sigma0": 0}, "sigma0 must be a positive finite number, got 0"),
    "sigma0 a text": ({"sigma0": "0.5"}, "sigma0 must be a positive finite number, got '0.5'"),
    "sigma0 partly 0": ({"sigma0": [0.5, 0.0]}, "sigma0 must be positive, got 0.0 at index 1"),
    "bounds too many": ({"bounds": [(0, 9)] * 3}, r"bounds must be .*pair.*: got 3 pairs for 2 variables"),
    "bounds too few": ({"x0": [1.0] * 3, "bounds": [(0, 9)] * 2}, r"bounds must be .*: got 2 pairs for 3 variables"),
    "Bounds too many": ({"bounds": Bounds([0] * 3, [9] * 3)}, "bounds must .*: got 3 lower bounds for 2 variables"),
    "bounds reversed": ({"bounds": (5, -5)}, r"bounds must have lower <= upper, got \(5.0, -5.0\) for variable 0$"),
    "bounds without x0": ({"bounds": (3, 5)}, r"x0\[0\] must be from 3.0 to 5.0, got 1.0$"),
    "equal bounds without x0": ({"bounds": [(0, 1.5)] * 2}, r"x0\[1\] must be .*from 0.0 to 1.5, got 2.0$"),
    "bounds a number": ({"bounds": 5}, r"bounds must be .*pair \(lower, upper\).*got 5"),
    "max_evals 0": ({"max_evals": 0}, "max_evals must be an integer >= 1, got 0"),
    "max_evals 1.5": ({"max_evals": 1.5}, "max_evals must be an integer >= 1, got 1.5"),
    "max_evals a text": ({"max_evals": "100"}, "max_evals must be an integer >= 1, got '100'"),
    "max_time a text": ({"max_time": "1m"}, "max_time must be a positive finite number, got '1m'"),
    "target a text": ({"target": "x"}, "target must be a finite number, got 'x'"),
    "rng a text": ({"rng": "abc"}, r"rng must be None, a seed \(an integer >= 0\) or a generator, got 'abc'"),
    "rng negative": ({"rng": -1}, "rng must be .*, got -1"),
    "callback": ({"callback": 5}, "callback must be a function of a Searcher or an Observer, got 5"),
    "popsize": ({"popsize": 2.5}, "popsize must be an integer >= 2, got 2.5"),
    "structure": ({"structure": "ful"}, "structure 'ful' .*did you mean 'full'"),
    "method": ({"method": "CMA-ES"}, "method must be 'search' .*CMA-ES.* or 'newton', got 'CMA-ES'"),
    "restarts": ({"restarts": 3}, r"restarts must be None, 'ipop', 'bipop', .*got 3"),
    "workers": ({"workers": "2"}, "workers must be a number of processes.*got '2'"),
    "executor": ({"executor": 5}, "executor must have a method submit.*got 5"),
    "space": ({"space": SPACE}, "space must be 'vector', .*: pass a Space of named parameters as x0"),
    "basins": ({"basins": 2.5}, "basins must be an integer >= 1, got 2.5"),
    "cov0": ({"cov0": np.eye(3)}, r"cov0 must have shape \(2, 2\), got \(3, 3\)"),
    "integer": ({"x0": [1.5, 2.0], "integer": True}, r"x0\[0\] must be an integer, got 1.5: round it"),
    "fixed": ({"fixed": [5]}, "an index in fixed must be an integer from -2 to 1, got 5"),
    "history": ({"history": 5}, "history must be a path, got 5"),
    "checkpoint": ({"checkpoint": 5}, "checkpoint must be a path, got 5"),
    "progress": ({"progress": "yes"}, "progress must be True or False, got 'yes'"),
    "constraints": ({"constraints": one}, "constraints must be .*dict with 'type' and 'fun'.* got <function one"),
    "Space, sigma0": ({"x0": SPACE, "sigma0": -0.5}, "sigma0 must be a positive finite"),
    "Space, bounds": ({"x0": SPACE, "bounds": (0, 1)}, "bounds must be a mapping of names .*got .0, 1"),
    "Space, integer": ({"x0": SPACE, "integer": [0]}, "integer must have names of the space, got 0"),
    "Space, cov0": ({"x0": SPACE, "cov0": np.eye(9)}, "cov0 must have shape"),
    "Space, basins": ({"x0": SPACE, "basins": 3}, "basins are for .* vectors, got a Space: leave basins out"),
    "Space, newton": ({"x0": SPACE, "method": "newton", "jac": one}, "method='newton' is for vectors, got a Space"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_argument_is_named_with_what_it_was_and_what_to_do(name: str) -> None:
    changes, text = WRONG[name]
    calls: list[Any] = []

    def counted(x: Any) -> float:
        calls.append(x)
        return 1.0

    with pytest.raises((ValueError, TypeError), match=text):
        minimize(**{"fun": counted, "x0": X0, "max_evals": 20, **changes})
    assert not calls


@pytest.mark.parametrize("start", [None, {"a": (0, 1)}, "1,2", one, Real(0, 1), 5.0, np.eye(2)], ids=type)
def test_a_searcher_says_the_same_of_its_start(start: Any) -> None:
    with pytest.raises(ValueError) as by_searcher:
        Searcher(start)
    with pytest.raises(ValueError) as by_minimize:
        minimize(one, start)
    assert str(by_searcher.value) == str(by_minimize.value)


@pytest.mark.parametrize(
    "entries",
    [
        {"a": (0, 1), "b": [2.5, 3.5], "c": range(3), "d": 0.5, "e": True, "f": 7},
        {"kind": ["x", "y"], "mode": ("u", None, 3), "size": [16, 32, 64], "down": (3, 1)},
        {"lr": Real(1e-5, 0.1, log=True), "kind": Choice("x", None, start="x"), "n": Integer(1, 9), "phi": Angle()},
        {"w": Real(-1, 1, shape=(2, 2)), "g": Real(0, 1, when={"k": ("x", "y")}), "k": Choice("x", "y", "z")},
        {"what": {"type": "float"}, "nothing": None},
        {},
    ],
    ids=" ".join,
)
def test_the_space_in_the_message_about_a_dict_is_one_that_can_be_searched(entries: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"got a dict: wrap it, esgroup\.Space") as caught:
        Searcher(entries)
    written = str(caught.value).partition("wrap it, ")[2]
    space = eval(written, {"esgroup": esgroup, **vars(esgroup.space)})
    assert list(space) == (list(entries) or ["x"]) and len(Searcher(space, rng=1).ask()) > 3
    assert all(space[name] == given for name, given in entries.items() if isinstance(given, (Real, Choice, Integer)))


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"a": (0, 1)}, r"'a' must be a Real, .* got \(0, 1\): write Real\(0, 1\)"),
        ({"a": ["x", "y"]}, r"'a' must be .* got \['x', 'y'\]: write Choice\('x', 'y'\)"),
        ({"a": Choice(["x", "y"])}, r"options of 'a' must be hashable, got \['x', 'y'\]: write Choice\('x', 'y'\)"),
        ({"a": Choice(["x"], ["y"])}, r"options of 'a' must be hashable, got \['x'\]$"),
        ([Real(0, 1)], r"parameters must be a dict .*{'x': Real\(0, 1\)}, got \[Real"),
        (Real(0, 1), r"parameters must be a dict .*{'x': Real\(0, 1\)}, got Real"),
    ],
)
def test_a_wrong_space_is_refused_with_what_to_write(given: Any, text: str) -> None:
    with pytest.raises(TypeError, match=text):
        Space(given)


# ---- what functions return ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Returns:
    """A function that returns the same whatever it is asked, and spoils its point; it can be sent to processes."""

    value: Any

    def __call__(self, x: Any) -> Any:
        if isinstance(x, np.ndarray):
            x[...] = 77.0
        return self.value


RETURNED: list[tuple[Any, str]] = [
    (np.ones(2), "an array of shape (2,)"),
    (np.ones((2, 2)), "an array of shape (2, 2)"),
    (np.array(["a", "b"]), "an array of shape (2,) and dtype <U1"),
    ([1.0, 2.0], "[1.0, 2.0]"),
    ((1.0, [2.0, 3.0]), "(1.0, [2.0, 3.0])"),
    ([0.5] * 1000, "a list of 1000 entries"),
    ({"loss": 1.0}, "{'loss': 1.0}"),
    ("1.0", "'1.0'"),
    (1j, "1j"),
    (None, "None"),
    (abs, "<built-in function abs>"),
]


@pytest.mark.parametrize(("value", "shown"), RETURNED, ids=[shown for _, shown in RETURNED])
@pytest.mark.parametrize("x0", [X0, SPACE], ids=["vector", "space"])
@pytest.mark.parametrize("constrained", [False, True], ids=["free", "constrained"])
def test_what_a_function_returned_is_shown_with_the_point(value: Any, shown: str, x0: Any, constrained: bool) -> None:
    more: dict[str, Any] = {"constraints": NonlinearConstraint(one, 0, 2)} if constrained else {}
    text = rf"the function returned {re.escape(shown)} at x = [\[{{].*, but it must return one real number"
    with pytest.raises(ValueError, match=text) as caught:
        minimize(Returns(value), x0, rng=1, max_evals=20, **more)
    assert "77" not in str(caught.value) and ("is a return missing?" in str(caught.value)) is (value is None)
    first = Searcher(x0, rng=1).ask()[0]
    assert f"at x = {first}, but" in str(caught.value)
    assert caught.value.result.nfev == 0  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("way", "asynchronous"),
    [("map", False), ("workers", False), ("workers", True), ("threads", False), ("threads", True)],
)
def test_so_it_is_wherever_functions_are_evaluated(way: str, asynchronous: bool) -> None:
    with ThreadPoolExecutor(2) as pool:
        where: dict[str, Any] = {"map": {"workers": map}, "workers": {"workers": 2}, "threads": {"executor": pool}}[way]
        with pytest.raises(ValueError, match=r"function returned an array of shape \(2,\) at x = \[") as caught:
            minimize(Returns(np.ones(2)), X0, 0.5, rng=1, on_error="nan", asynchronous=asynchronous, **where)
    assert "77" not in str(caught.value)


@pytest.mark.parametrize("constrained", [False, True], ids=["free", "constrained"])
@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (1.0, "1.0"),
        (None, "None"),
        (np.array(1.0), "array(1.)"),
        (np.ones(3), "an array of shape (3,)"),
        (np.ones((6, 2)), "an array of shape (6, 2)"),
        (np.ones((1, 6)), "an array of shape (1, 6)"),
        ("abcdef", "'abcdef'"),
        ({i: 1.0 for i in range(6)}, "{0: 1.0"),
    ],
)
def test_a_vectorized_function_is_told_the_shape(value: Any, shown: str, constrained: bool) -> None:
    more: dict[str, Any] = {"constraints": {"type": "ineq", "fun": one}} if constrained else {}
    text = rf"the function returned {re.escape(shown)}.* vectorized=True it must return 6 numbers.* shape \(6,\)"
    with pytest.raises(ValueError, match=text):
        minimize(Returns(value), X0, 0.5, rng=1, vectorized=True, **more)


def test_a_row_of_a_vectorized_function_that_is_no_number_is_shown_with_its_point() -> None:
    with pytest.raises(ValueError, match=r"returned None at x = \[") as caught:
        minimize(Returns([1.0] * 5 + [None]), X0, 0.5, rng=1, vectorized=True)
    assert f"at x = {Searcher(X0, 0.5, rng=1).ask()[5]}, but" in str(caught.value)


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_numbers_in_arrays_of_one_element_are_still_numbers(shape: tuple[int, ...]) -> None:
    assert minimize(Returns(np.full(shape, 3.5)), X0, 0.5, max_evals=6).fun == 3.5
    assert minimize(Returns(np.full((6, 1), 3.5)), X0, 0.5, max_evals=6, vectorized=True).fun == 3.5


@pytest.mark.parametrize("value", [None, "much", 1j, np.ones((2, 2)), [[1.0], [2.0, 3.0]], {}, []], ids=str)
def test_what_the_function_of_a_constraint_returned_is_shown(value: Any) -> None:
    shown = "an array of shape (2, 2)" if isinstance(value, np.ndarray) else repr(value)
    text = r"function of constraints\[1\] must return a number or a vector .*, but it returned " + re.escape(shown)
    limits = [{"type": "ineq", "fun": one}, {"type": "ineq", "fun": Returns(value)}]
    with pytest.raises(ValueError, match=text + r" at x = \[1.0, 2.0\]"):
        minimize(one, X0, constraints=limits)


# ---- nothing is lost ---------------------------------------------------------------------------------------------

SEARCHES: dict[str, Callable[[], Searcher]] = {
    "vector": lambda: Searcher(X0, 0.5, rng=1),
    "model": lambda: Searcher(X0, 0.5, model="quadratic", rng=1),
    "space": lambda: Searcher(SPACE, rng=1),
    "constraints": lambda: Searcher(X0, 0.5, constraints=2, rng=1),
    "space with constraints": lambda: Searcher(SPACE, constraints=2, rng=1),
    "matrices": lambda: Searcher(esgroup.Wishart(mean=np.eye(2)), rng=1),
}


@pytest.mark.parametrize("name", SEARCHES)
def test_a_search_is_as_it_was_after_every_refused_tell(name: str) -> None:
    search, reference = SEARCHES[name](), SEARCHES[name]()
    beside = {} if search.constraints is None else {"constraints": 2}

    def tell(search: Searcher, X: Any, values: Any, g: Any = None) -> None:
        search.tell(X, values, **({"constraints": np.full((len(X), 2), -1.0) if g is None else g} if beside else {}))

    for _ in range(3):
        X = search.ask()
        n, before = len(X), everything(search)
        wrong: list[Any] = [None, 1.0 if n > 1 else "a", [1.0] * (n + 1), [], np.ones((n, 2)), np.ones((1, n + 1))]
        wrong += ["a" * n, [None] * n, [1j] * n, {"a": 1.0}, [[1.0, 2.0]] * n, [1.0] * (n - 1) + ["x"], object()]
        for values in wrong:
            with pytest.raises((ValueError, TypeError)):
                tell(search, X, values)
        for points in (None, "ab", [[1.0] * 7] * n, [{"nobody": 1.0}] * n, 5.0):
            with pytest.raises((ValueError, TypeError)):
                search.tell(points, [1.0] * n, **({"constraints": np.zeros((n, 2))} if beside else {}))
        for g in ("a", np.zeros((n, 3)), np.zeros(n + 5), [[1j, 2.0]] * n, [[None, 1.0]] * n) if beside else ():
            with pytest.raises((ValueError, TypeError), match="constraints"):
                tell(search, X, [1.0] * n, g)
        assert everything(search) == before
        values = list(np.arange(float(n)))
        tell(search, X, values)
        tell(reference, reference.ask(), values)
        assert everything(search) == everything(reference)
