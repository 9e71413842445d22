"""Every pair of options in docs/how-to/combinations.md does what the table says: it works, or is refused by name.

`python -m tests.driver.test_combinations` prints the table that today's behavior gives, for a comparison by eye.
"""

import inspect
import itertools
import math
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.optimize
from scipy.optimize import NonlinearConstraint

import esgroup
from esgroup import Choice, Real, Space
from esgroup.checks import Array
from esgroup.distributions.families import Normal, Product
from esgroup.search.searcher import Searcher

DOCUMENT = Path(__file__).parents[2] / "docs" / "how-to" / "combinations.md"
X0 = np.array([1.0, -1.0, 2.0])
MAX_EVALS = 25
SAME = "-"  # two values of one argument


def squares(x: Any) -> float:
    if isinstance(x, dict):
        return squares(x["a"]) + (x["k"] != "u")
    return float((np.asarray(x) ** 2).sum())


def squares_of_rows(X: Array) -> Array:
    assert isinstance(X, list) or np.ndim(X) > 1
    return np.array([squares(x) for x in X])


def flat(x: Any) -> float:
    """Runs on it end soon, so that others begin."""
    return 1.0


def flat_rows(X: Array) -> Array:
    return np.ones(len(X))


def fails_sometimes(x: Any) -> float:
    """At every fifth point or so."""
    if int(1e6 * squares(x)) % 5 == 0:
        raise ArithmeticError("at this point")
    return squares(x)


def rows_fail_sometimes(X: Array) -> Array:
    fails_sometimes(X[0])
    return squares_of_rows(X)


def rule_that_never_holds(search: Any) -> bool:
    return bool(search.nfev < 0)


def twice(x: Array) -> Array:
    return 2 * x


# The ways to give each option, by its name in the table. "fun" and "x0" take the place of squares and X0; where both
# options of a pair have an x0, that of the later one is used. A text is the name of something that `Pair` makes.
GIVEN: dict[str, dict[str, Any]] = {
    "sigma0": {"sigma0": 0.5},
    'structure="diagonal"': {"structure": "diagonal"},
    'structure="frame"': {"structure": "frame"},
    "popsize": {"popsize": 8},
    "bounds": {"bounds": (-3.0, 3.0)},
    "fixed": {"fixed": [0]},
    "integer": {"integer": [1]},
    "cov0": {"cov0": np.diag([1.0, 2.0, 3.0])},
    "mirrored": {"mirrored": True},
    'step_size="tpa"': {"step_size": "tpa"},
    'noise="adapt"': {"noise": "adapt"},
    'model="quadratic"': {"model": "quadratic"},
    'model="auto"': {"model": "auto"},
    "decoding": {"decoding": True},
    'algorithm="paper"': {"algorithm": "paper"},
    "constraints": {"constraints": NonlinearConstraint(squares, -np.inf, 50.0), "constraint_tol": 1e-5},
    "basins": {"basins": 3},
    'space="spd"': {"space": "spd", "x0": np.diag([1.0, 2.0, 3.0])},
    'space="matrix"': {"space": "matrix", "x0": np.ones((2, 3))},
    "x0=Gaussian": {"x0": esgroup.Gaussian(mean=X0, sigma0=0.5)},
    "x0=Wishart": {"x0": esgroup.Wishart(mean=np.eye(2))},
    "x0=Normal": {"x0": Normal(mean=2.0, std=1.0)},
    "x0=Space": {"x0": Space({"a": Real(-3, 3, start=1, shape=2), "k": Choice("u", "v")})},
    "restarts": {"restarts": "ipop"},
    "vectorized": {"vectorized": True},
    "workers=n": {"workers": 2},
    "workers=map": {"workers": map},
    "executor": {"executor": "pool"},
    "asynchronous": {"asynchronous": True},
    "max_pending": {"max_pending": 2},
    "on_error": {"on_error": "nan"},
    "max_failures": {"max_failures": 20},
    "eval_timeout": {"eval_timeout": 60.0},
    "max_evals": {"max_evals": MAX_EVALS},
    "max_iters": {"max_iters": 2},
    "max_time": {"max_time": 60.0},
    "target": {"target": 1e6},
    "stop": {"stop": [esgroup.stopping.TolX(1e-9), rule_that_never_holds]},
    "callback": {"callback": "callback"},
    "history": {"history": "history"},
    "checkpoint, resume": {"checkpoint": "checkpoint"},
    'method="newton"': {"method": "newton", "jac": twice},
    "scipy_method": {},
}
EVERYWHERE = {"fun", "x0", "args", "rng", "progress"}  # they combine with everything; x0 is a point, a matrix or above
NEWTON_ONLY = {"jac", "hessp", "hess", "hess_diag", "newton"}  # method="newton" has them, all others refuse them
NEEDS_CREW = ("asynchronous", "max_pending", "eval_timeout")
GIVES_WAY = ("workers=n", "workers=map", "executor", 'method="newton"')


class Pair:
    """A search with two options, and what they were seen to do."""

    def __init__(self, names: tuple[str, str], pool: ThreadPoolExecutor, place: Path) -> None:
        self.names, self.called = names, 0
        self.checkpoint, self.history = place / "run.npz", place / "history.jsonl"
        made = {"pool": pool, "callback": self.callback, "history": self.history, "checkpoint": self.checkpoint}
        merged = {key: value for name in names for key, value in GIVEN[name].items()}
        self.options = {
            key: made.get(value, value) if isinstance(value, str) else value for key, value in merged.items()
        }
        if "cov0" in names and {'space="matrix"', 'space="spd"'} & set(names):  # of entries, of those of a logarithm
            self.options["cov0"] = np.diag(np.arange(1.0, 7.0))
        if "x0=Normal" in names and {"fixed", "integer"} & set(names):  # of one of two numbers
            self.options["x0"] = Product((Normal(1.0, 1.0), Normal(-1.0, 1.0)))
        if "x0=Space" in names:  # whose parameters have names, not indices
            by_name = {"fixed": {"k": "v"}, "bounds": {"a": (-3.0, 1.5)}, "integer": ["a"], "cov0": np.diag([4.0, 1.0])}
            self.options |= {name: by_name[name] for name in names if name in by_name}
        if any(name in NEEDS_CREW for name in names) and not any(name in GIVES_WAY for name in names):
            self.options["executor"] = pool
        rows = "vectorized" in names
        again = "restarts" in names and not {"target", "max_iters"} & set(names)
        self.budget = 600 if again else 100 if "max_iters" in names else MAX_EVALS
        kind = "flat" if again else "fails" if "on_error" in names else "squares"
        of_points = {"flat": flat, "fails": fails_sometimes, "squares": squares}
        of_rows = {"flat": flat_rows, "fails": rows_fail_sometimes, "squares": squares_of_rows}
        self.fun: Callable[..., Any] = (of_rows if rows else of_points)[kind]
        self.fails = kind == "fails" and not rows and "target" not in names

    def callback(self, search: Any) -> None:
        self.called += 1

    def run(self) -> Any:
        """Search; with a checkpoint half of the budget, and then the other half."""
        if "checkpoint" not in self.options:
            return self.minimize(max_evals=self.budget)
        self.minimize(max_evals=self.budget // 2)
        return self.minimize(max_evals=self.budget, resume=True)

    def minimize(self, **more: Any) -> Any:
        options = {"x0": X0, "rng": 1, **self.options, **more}
        if "scipy_method" not in self.names:
            return esgroup.minimize(self.fun, **options)
        scipys = ("bounds", "callback", "constraints", "jac", "x0")
        own = {name: options.pop(name) for name in scipys if name in options}
        return scipy.optimize.minimize(self.fun, method=esgroup.scipy_method, **own, options=options)

    def check(self, result: Any) -> None:
        """Each of the two options has had its effect."""
        assert math.isfinite(result.fun)
        x = np.asarray(result.x["a"] if isinstance(result.x, dict) else result.x, dtype=float)
        for name in self.names:
            assert self.effects().get(name, lambda r, x: True)(result, x), (name, result)
        if not {"target", "max_iters", 'method="newton"'} & set(self.names):
            assert result.nfev == self.budget and result.stop.keys() == {"max_evals"}

    def effects(self) -> dict[str, Callable[[Any, Array], Any]]:
        start = self.options.get("x0", X0)
        first = start if isinstance(start, np.ndarray) else X0
        return {
            "bounds": lambda r, x: (np.abs(x) <= 3).all() and ("x0=Space" not in self.names or (x <= 1.5).all()),
            "fixed": lambda r, x: r.x["k"] == "v" if isinstance(r.x, dict) else x.flat[0] == first.flat[0],
            "integer": lambda r, x: x.flat[1] == round(x.flat[1]),
            "constraints": lambda r, x: r.constr[0] == pytest.approx([squares(r.x)]) and r.constr_violation < 1e-3,
            "basins": lambda r, x: hasattr(r, "modes"),
            'space="spd"': lambda r, x: x.shape == start.shape and (np.linalg.eigvalsh(x) > 0).all(),
            'space="matrix"': lambda r, x: x.shape == start.shape,
            "x0=Wishart": lambda r, x: x.shape == (2, 2) and (np.linalg.eigvalsh(x) > 0).all(),
            "x0=Normal": lambda r, x: x.size == 1 + isinstance(start, Product),
            "x0=Space": lambda r, x: x.size == 2 and r.x["k"] in ("u", "v") and set(r.xmean) == {"a", "k"},
            "restarts": lambda r, x: r.restarts > 0 or self.budget < 600,
            "on_error": lambda r, x: (r.nfailed > 0) >= self.fails,
            "target": lambda r, x: "target" in r.stop and r.nfev < MAX_EVALS,
            "max_iters": lambda r, x: r.stop.keys() & {"max_iters", "target"} and r.nit <= 2,
            "callback": lambda r, x: self.called > 0,
            "history": lambda r, x: len(self.history.read_text().splitlines()) > 1,
            "checkpoint, resume": lambda r, x: Searcher.load(self.checkpoint).nfev <= r.nfev and r.nfev > 0,
            'structure="diagonal"': lambda r, x: "newton" in str(self.names) or "iagonal" in str(r.structure).lower(),
            'structure="frame"': lambda r, x: "frame" in (str(r.structure) + r.message).lower(),
            'method="newton"': lambda r, x: r.success or r.nfev <= self.budget,
        }


def answer(pair: Pair) -> str:
    """What the pair does: "yes", or "no" if it is refused by the name of one of them; everything else is a fault."""
    try:
        result = pair.run()
    except (ValueError, TypeError) as error:
        named = [word for name in pair.names for word in re.findall(r"\w+", name) if len(word) > 1]
        named += ["x0"] * ("scipy_method" in pair.names)  # SciPy's own words for a start that is no vector
        assert any(re.search(rf"\b{re.escape(word)}\b", str(error)) for word in named), (pair.names, str(error))
        assert not hasattr(error, "result"), "it was refused too late"
        return "no"
    pair.check(result)
    return "yes"


def same_argument(one: str, other: str) -> bool:
    return one == other or ("=" in one and "=" in other and one.split("=")[0] == other.split("=")[0])


def refused() -> dict[str, list[str]]:
    """The table of the document: for each option those that it is refused with."""
    lines = [line for line in DOCUMENT.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    rows = [[re.findall(r"`([^`]+)`", cell) for cell in line.strip("|").split("|")] for line in lines]
    found = {names[0]: others for names, others in rows}
    assert len(found) == len(rows)
    return found


def table() -> dict[tuple[str, str], str]:
    """What the document says of each pair: "yes", "no", or `SAME`."""
    known = refused()
    return {
        (one, other): SAME if same_argument(one, other) else "no" if other in known[one] else "yes"
        for one, other in itertools.product(known, known)
    }


@pytest.fixture(scope="module")
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as threads:
        yield threads


@pytest.mark.parametrize("name", GIVEN)
def test_every_pair_does_what_the_table_says(name: str, pool: ThreadPoolExecutor, tmp_path: Path) -> None:
    known = table()
    for other in list(GIVEN)[list(GIVEN).index(name) + 1 :]:
        if not same_argument(name, other):
            place = tmp_path / str(len(list(tmp_path.iterdir())))
            place.mkdir()
            pair = Pair((name, other), pool, place)
            assert answer(pair) == known[name, other], (name, other)


def test_the_table_is_complete_and_symmetric() -> None:
    known = refused()
    assert list(known) == list(GIVEN)
    for name, others in known.items():
        assert len(set(others)) == len(others)
        for other in others:
            assert name in known[other] and not same_argument(name, other), (name, other)


def test_every_argument_of_minimize_is_in_the_table_or_combines_with_everything() -> None:
    """Whoever adds an argument adds its row."""
    listed = {key for given in GIVEN.values() for key in given} | {"resume"}
    listed |= EVERYWHERE | NEWTON_ONLY
    assert listed == set(inspect.signature(esgroup.minimize).parameters)


@pytest.mark.parametrize("name", sorted(NEWTON_ONLY))
def test_a_search_refuses_what_only_newton_has(name: str) -> None:
    with pytest.raises(ValueError, match=rf"{name}.*newton"):
        esgroup.minimize(squares, X0, **{name: twice})


def print_table() -> None:
    """Print the table that today's behavior gives; faults are marked with the exception."""
    cells: dict[tuple[str, str], str] = {}
    with ThreadPoolExecutor(2) as pool, tempfile.TemporaryDirectory() as place:
        for i, names in enumerate(itertools.combinations(GIVEN, 2)):
            folder = Path(place) / str(i)
            folder.mkdir()
            try:
                cell = SAME if same_argument(*names) else answer(Pair(names, pool, folder))
            except Exception as error:
                cell = "?"
                print(names, type(error).__name__, str(error)[:300].replace("\n", " "), file=sys.stderr)
            cells[names] = cells[names[::-1]] = cell
    print("| option | is refused with |\n|---|---|")
    for row in GIVEN:
        others = [f"`{column}`" for column in GIVEN if cells.get((row, column)) == "no"]
        print(f"| `{row}` | {', '.join(others) or 'nothing'} |")


if __name__ == "__main__":
    print_table()
