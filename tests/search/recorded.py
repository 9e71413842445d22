"""What searches with fixed seeds do: a change here is a change of the search, wanted or not.

Of every search there are the evaluations that it takes, its best value, and a digest of all points in the order in
which they were evaluated. `python -m tests.search.recorded` prints the table afresh, and says which entries change if
the start changes by one part in 10^13: such an entry depends on the machine, and is compared only where `rounding` is
the same. An intended change of the search records the table again and says so.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import NonlinearConstraint

import esgroup
from esgroup import Angle, Choice, Integer, Real, Searcher, Space
from esgroup.distributions.families import Normal

_DIGITS = 5  # after the point: rounding differs from machine to machine


class Recorded(NamedTuple):
    """What a search did."""

    evaluations: int
    best: str  # six digits, unless it is 0 for all that the search can tell
    points: str


class Watched:
    """A function of a point that keeps a digest of all points."""

    def __init__(self, function: Callable[[Any], float]) -> None:
        self._function, self._seen, self.number = function, hashlib.sha256(), 0

    def __call__(self, x: Any) -> float:
        self.number += 1
        for number in x.values() if isinstance(x, dict) else [x]:
            if isinstance(number, str):
                self._seen.update(number.encode())
            else:
                self._seen.update((np.round(np.asarray(number, dtype=np.float64), _DIGITS) + 0.0).tobytes())
        return self._function(x)

    def recorded(self, best: float) -> Recorded:
        return Recorded(self.number, f"{best:.6g}" if best > 1e-4 else "0", self._seen.hexdigest()[:12])


def rounding() -> str:
    """How this machine rounds: what a model is fitted from differs in the last digits elsewhere."""
    matrix = np.random.default_rng(1).normal(size=(12, 12))
    values = [np.linalg.inv(matrix), *np.linalg.eigh(matrix @ matrix.T), np.exp(matrix), np.cos(matrix)]
    return hashlib.sha256(b"".join(value.tobytes() for value in values)).hexdigest()[:12]


# ---- functions --------------------------------------------------------------------------------------------------


def ellipsoid(x: Any) -> float:
    x = np.ravel(x)
    y = x - 0.3 + 0.2 * np.roll(x, 1)
    return float(np.sum(10 ** np.linspace(0, 4, len(y)) * y**2))


def rosenbrock(x: Any) -> float:
    return float(np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2))


def rastrigin(x: Any) -> float:
    return float(np.sum(x**2 + 10 * (1 - np.cos(2 * np.pi * x))))


def sphere(x: Any) -> float:
    return float(np.sum((x - 0.25) ** 2))


def integers(x: Any) -> float:
    return float(np.sum((x - 3.2) ** 2 * np.arange(1, len(x) + 1)))


def nearness(w: Any) -> float:
    return float(np.sum((w @ np.diag([1.0, 2.0, 5.0]) - np.eye(3)) ** 2))


def reals(p: Any) -> float:
    turned = 1 - math.cos(p["turn"] - 0.1)
    return float((p["a"] - 1) @ (p["a"] - 1) + 4 * (math.log10(p["rate"]) + 2 - p["a"][0]) ** 2 + turned)


def mixed(p: Any) -> float:
    depth = (p["depth"] - 4.2) ** 2 if "depth" in p else 3.0
    return reals(p) + depth + (p["units"] - 24) ** 2 / 100 + {"tree": 0.0, "line": 0.5, "net": 2.0}[p["kind"]]


def real_space(nudge: float) -> Space:
    return Space({"a": Real(-3, 3, start=2 * nudge, shape=2), "rate": Real(1e-5, 1, log=True), "turn": Angle()})


def mixed_space(nudge: float) -> Space:
    return Space(
        {
            "a": Real(-3, 3, start=2 * nudge, shape=2),
            "rate": Real(1e-5, 1, log=True),
            "turn": Angle(),
            "kind": Choice("net", "line", "tree"),
            "depth": Integer(1, 9, when={"kind": "tree"}),
            "units": Integer(1, 512, log=True),
        }
    )


# ---- searches ---------------------------------------------------------------------------------------------------


def _minimize(f: Callable[[Any], float], x0: Any, sigma0: Any = 0.5, target: float = 1e-7, **options: Any) -> Any:
    options = {"max_evals": 30_000, "target": target, "rng": 11} | options

    def run(nudge: float) -> Recorded:
        watched = Watched(f)
        return watched.recorded(esgroup.minimize(watched, np.asarray(x0, float), sigma0 * nudge, **options).fun)

    return run


def _from(f: Callable[[Any], float], start: Callable[[float], Any], target: float, **options: Any) -> Any:
    options = {"max_evals": 20_000, "target": target, "rng": 11} | options

    def run(nudge: float) -> Recorded:
        watched = Watched(f)
        return watched.recorded(esgroup.minimize(watched, start(nudge), **options).fun)

    return run


def _told(f: Callable[[Any], float], loop: Callable[[Searcher, Watched], None], **options: Any) -> Any:
    """A loop of asking and telling, over six coordinates unless `start` says otherwise."""
    start = options.pop("start", lambda nudge: np.linspace(0.5, 1.5, 6) * nudge)
    options = {"target": 1e-7, "max_evals": 4000, "rng": 11} | options

    def run(nudge: float) -> Recorded:
        watched, search = Watched(f), Searcher(start(nudge), **options)
        loop(search, watched)
        return watched.recorded(search.best_f)

    return run


def late(search: Searcher, f: Watched) -> None:
    """Twenty points are out all the time; they come back in an order of their own, some never."""
    out: list[Any] = []
    order = np.random.default_rng(5)
    while not search.stop():
        while len(out) < 20:
            out.append(search.ask(1)[0])
        x = out.pop(int(order.integers(len(out))))
        if order.random() > 0.02:
            search.tell([(x, f(x))])


def foreign(search: Searcher, f: Watched) -> None:
    """Every third generation is one of points that were not asked for; every fifth has one that is injected."""
    own, generation = np.random.default_rng(6), 0
    while not search.stop():
        generation += 1
        if generation % 5 == 0:
            search.inject(search.mean)
        X = np.array(search.ask())
        if generation % 3 == 0:
            X = X + 0.01 * own.standard_normal(X.shape)
        if generation % 2:
            search.tell(X, [f(x) for x in X])
        else:  # half of the generation after the other half, and backwards
            values = [f(x) for x in X]
            search.tell(X[3:][::-1], values[3:][::-1])
            search.tell(X[:3], values[:3])


def with_constraints(search: Searcher, f: Watched) -> None:
    """Two constraints, told with the values; some runs fail."""
    number = 0
    while not search.stop():
        X = search.ask()
        rows = [_limits(x) for x in X]
        values = [f(x) for x in X]
        for i in range(len(X)):
            number += 1
            if number % 37 == 0:
                values[i], rows[i] = math.nan, [math.nan, math.nan]
        search.tell(values, constraints=rows)


def with_data(search: Searcher, f: Watched) -> None:
    while not search.stop():
        search.tell([f(x) for x in search.ask()])


def _limits(x: Any) -> list[float]:
    return [float(1.0 - x.sum()), float(x[0] ** 2 + x[1] ** 2 - 0.5)]


def _from_data(**options: Any) -> Any:
    options = {"max_evals": 3000, "target": 1e-7, "rng": 11} | options

    def run(nudge: float) -> Recorded:
        X = np.random.default_rng(3).normal(size=(40, 5)) * nudge
        watched = Watched(rosenbrock)
        search = Searcher.from_data(X, [rosenbrock(x) for x in X], **options)
        with_data(search, watched)
        return watched.recorded(search.best_f)

    return run


def _gaussian(nudge: float) -> esgroup.Gaussian:
    return esgroup.Gaussian(mean=np.linspace(0.5, 1.5, 6) * nudge, covariance=np.diag(np.arange(1.0, 7.0)))


_EIGHT = np.linspace(0.5, 1.5, 8)
_DISK = NonlinearConstraint(lambda x: [x[0] + x[1], x @ x], [1.0, -np.inf], [np.inf, 3.0])
_PLANE = NonlinearConstraint(lambda x: [x.sum(), x[0] - x[1]], [1.0, 0.0], [1.0, np.inf])
_NAMED = NonlinearConstraint(lambda p: p["a"].sum() + p["units"] / 16, -np.inf, 2.5)
_KEPT = NonlinearConstraint(lambda x: x[:2].sum(), 0.8, np.inf, keep_feasible=True)

SEARCHES: dict[str, Callable[[float], Recorded]] = {
    **{
        f"ellipsoid {structure}": _minimize(ellipsoid, _EIGHT, structure=structure)
        for structure in ("full", "triangular", "block_triangular:k=3", "heisenberg:k1=1,k2=1")
    },
    "ellipsoid diagonal": _minimize(ellipsoid, _EIGHT, structure="diagonal", target=1e-2),
    "ellipsoid full, popsize 60": _minimize(ellipsoid, _EIGHT, popsize=60),
    "ellipsoid full without decoding": _minimize(ellipsoid, _EIGHT, decoding=False),
    "ellipsoid mirrored": _minimize(ellipsoid, _EIGHT, mirrored=True),
    "ellipsoid paper": _minimize(ellipsoid, _EIGHT, algorithm="paper", popsize=30),
    "ellipsoid of 70": _minimize(ellipsoid, np.linspace(0.5, 1.5, 70), target=1e-2),
    "ellipsoid bounded": _minimize(ellipsoid, _EIGHT, bounds=(0.0, 3.0), target=25.0),
    "ellipsoid with cov0": _minimize(ellipsoid, _EIGHT, cov0=np.diag(np.arange(1.0, 9.0))),
    "ellipsoid with noise adaptation": _minimize(ellipsoid, _EIGHT, noise="adapt", target=1e-3),
    "ellipsoid with tpa": _minimize(ellipsoid, _EIGHT, step_size="tpa"),
    "ellipsoid with fixed, integer and bounds": _minimize(
        ellipsoid, np.round(_EIGHT), fixed={1: 0.7}, integer=[0, 3], bounds=[(-2.0, 2.0)] * 6 + [(None, 4.0)] * 2,
        target=-math.inf, max_evals=1500,
    ),
    "corner of a box": _minimize(lambda x: float(np.sum(x)), np.ones(6), bounds=(0.0, 3.0), target=1e-9),
    "rosenbrock": _minimize(rosenbrock, np.full(6, 0.5)),
    "integers": _minimize(integers, np.full(5, 9.0), 2.0, integer=True, target=0.6000001),
    "rastrigin with ipop": _minimize(rastrigin, np.full(3, 3.3), 1.0, restarts="ipop", bounds=(-5.0, 5.0)),
    "rastrigin with bipop": _minimize(rastrigin, np.full(3, 3.3), 1.0, restarts="bipop"),
    "frame": _minimize(ellipsoid, np.linspace(0.5, 1.5, 12), structure="frame", target=1e-4),
    "frame of 4 axes, bounded": _minimize(
        ellipsoid, np.linspace(0.5, 1.5, 12), structure="frame:k=4", bounds=(-1.0, 2.0), target=1e-1
    ),
    "frame with noise adaptation": _minimize(
        ellipsoid, np.linspace(0.5, 1.5, 12), structure="frame", noise="adapt", target=1e-2
    ),
    "frame paper": _minimize(
        ellipsoid, np.linspace(0.5, 1.5, 12), structure="frame", algorithm="paper", target=1.0
    ),
    "frame of 100": _minimize(sphere, np.linspace(0.5, 1.5, 100), max_evals=3000),
    "model": _minimize(rosenbrock, np.full(6, 0.5), model="quadratic"),
    "model, diagonal": _minimize(ellipsoid, _EIGHT, model="quadratic", structure="diagonal", max_evals=120),
    "model, frame": _minimize(
        ellipsoid, np.linspace(0.5, 1.5, 12), model="quadratic", structure="frame", max_evals=150
    ),
    "model, bounded and fixed": _minimize(
        ellipsoid, _EIGHT, model="quadratic", bounds=(0.0, 3.0), fixed=[4], max_evals=120
    ),
    "model, rastrigin": _minimize(rastrigin, np.full(4, 3.3), model="quadratic", max_evals=120),
    "model, Space": _from(reals, real_space, 1e-3, model="quadratic"),
    "model, late": _told(rosenbrock, late, model="quadratic", max_evals=150),
    "model, foreign": _told(rosenbrock, foreign, model="quadratic", max_evals=150),
    "model, data": _from_data(model="quadratic", max_evals=100),
    "constraints": _minimize(
        ellipsoid, _EIGHT, constraints=[_DISK, _PLANE], target=-math.inf, max_evals=2500, bounds=(-3.0, 3.0)
    ),
    "constraints kept": _minimize(ellipsoid, _EIGHT, constraints=_KEPT, target=-math.inf, max_evals=1500),
    "constraints, integers": _minimize(
        integers, np.full(5, 2.0), constraints=_DISK, integer=[1, 2], target=-math.inf, max_evals=1000
    ),
    "constraints, restarts": _minimize(
        rastrigin, np.full(3, 0.3), constraints=_DISK, restarts="bipop", target=-math.inf, max_evals=4000
    ),
    "constraints, told": _told(ellipsoid, with_constraints, constraints=2, target=None, max_evals=1500),
    "Space": _from(reals, real_space, 1e-7),
    "Space with choices": _from(mixed, mixed_space, -math.inf, max_evals=1500),
    "Space with choices and constraints": _from(mixed, mixed_space, -math.inf, max_evals=1500, constraints=_NAMED),
    "Space with choices and restarts": _from(mixed, mixed_space, -math.inf, max_evals=4000, restarts="ipop"),
    "late": _told(rosenbrock, late),
    "late, bounded": _told(rosenbrock, late, bounds=(-2.0, 1.6)),
    "late, tpa": _told(rosenbrock, late, step_size="tpa"),
    "foreign": _told(rosenbrock, foreign),
    "data": _from_data(bounds=(-4.0, 4.0)),
    "Gaussian": _from(ellipsoid, _gaussian, 1e-7),
    "Normal": _from(sphere, lambda nudge: Normal(mean=2.0 * nudge, std=1.0), 1e-7),
    "spd": _from(nearness, lambda nudge: np.eye(3) * nudge, 1e-7, space="spd"),
    "matrix": _from(ellipsoid, lambda nudge: np.full((3, 2), 0.7) * nudge, 1e-7, space="matrix"),
    "basins": _from(rosenbrock, lambda nudge: np.full(2, 0.7) * nudge, 1e-7, basins=3),
    "basins bounded": _from(
        rastrigin, lambda nudge: np.full(2, 0.7) * nudge, -math.inf, basins=4, bounds=(-2.3, 2.2), max_evals=3000
    ),
}  # fmt: skip


def main() -> None:
    print(f'ROUNDING = "{rounding()}"')
    for name, search in SEARCHES.items():
        found = [search(nudge) for nudge in (1.0, 1 + 1e-13, 1 - 1e-13)]
        note = "" if len(set(found)) == 1 else "  # depends on rounding"
        evaluations, best, points = found[0]
        print(f'    "{name}": Recorded({evaluations}, "{best}", "{points}"),{note}', flush=True)


if __name__ == "__main__":
    main()
