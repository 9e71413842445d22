"""Searches of every kind for the fuzzer, each with what its points must be, told without the package's own checks."""

from __future__ import annotations

import importlib.util
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

import esgroup
from esgroup import Angle, Choice, Integer, Real, Searcher, Space
from esgroup.distributions import families
from esgroup.groups import (
    BlockDiagonal,
    BlockTriangular,
    Circulant,
    Conjugate,
    Diagonal,
    Frame,
    Full,
    Group,
    Heisenberg,
    Kronecker,
    Sparse,
    ToeplitzTriangular,
    Triangular,
)
from esgroup.strategies import register
from tests.groups.strangers import Exchangeable, Scalar
from tests.search.test_strangers import PACKAGE, First, Plain, Remembering, Varying

Rng = np.random.Generator
BIT_GENERATORS = ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")


@dataclass(frozen=True)
class Case:
    """One search: how it begins, and which points it may ask for and be told."""

    text: str  # for people
    make: Callable[[], Searcher]
    good: Callable[[Any], bool]  # whether one point is feasible
    foreign: Callable[[Rng, int], Any]  # feasible points that were not asked for
    bad: Callable[[Rng], Any]  # a point that must be refused, or of a shape that must be
    best: tuple[Any, float] | None = None  # known before the first value
    fixed: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=bool))
    rule: Rule | None = None  # with constraints


@dataclass(frozen=True)
class Rule:
    """Constraints of a search, and how far a point is from fulfilling them."""

    number: int
    equalities: tuple[int, ...]
    tolerances: tuple[float, ...]  # one for each
    unit: float  # of their values

    def options(self, rng: Rng) -> dict[str, Any]:
        """Arguments of `Searcher`, in different spellings."""
        alike = len(set(self.tolerances)) == 1
        forms = [list, tuple, np.array, lambda several: several[0]] if alike else [list, tuple, np.array]
        tolerance = forms[int(rng.integers(len(forms)))](self.tolerances)
        return {"constraints": self.number, "equalities": self.equalities, "constraint_tol": tolerance}

    def violation(self, g: list[float]) -> float:
        """The largest violation, in proportion to the largest tolerance; 0 for a feasible point."""
        positive, most = [t for t in self.tolerances if t > 0], 0.0
        for j, tolerance in enumerate(self.tolerances):
            violated = abs(g[j]) if j in self.equalities else max(g[j], 0.0)
            if violated > tolerance:
                most = max(most, violated * (max(positive) / (tolerance or min(positive)) if positive else 1.0))
        return most

    def values(self, rng: Rng, n: int) -> np.ndarray:
        """Constraints of n points: numbers of usual sizes, or strange ones."""
        g = self.unit * rng.normal(size=(n, self.number))
        strange = rng.random(g.shape) < rng.choice([0.0, 0.0, 0.3])
        g[strange] = rng.choice([0.0, -0.0, 1e308, -1e308, 5e-324, math.nan, math.inf, -math.inf, 1e-7], strange.sum())
        return np.zeros_like(g) if rng.random() < 0.1 else g


# ---- groups -----------------------------------------------------------------------------------------------------


def _blocks(cls: Any) -> Callable[[Rng], Group]:
    return lambda rng: cls((block := int(rng.integers(1, 3))) * int(rng.integers(1, 4)), block)


def _heisenberg(rng: Rng) -> Group:
    dim = int(rng.integers(1, 7))
    k1 = int(rng.integers(0, dim + 1))
    return Heisenberg(dim, k1, int(rng.integers(0, dim - k1 + 1)), bool(rng.integers(2)))


def _sparse(rng: Rng) -> Group:
    dim = int(rng.integers(1, 7))
    return Sparse.from_edges(dim, [tuple(edge) for edge in rng.integers(0, dim, (dim, 2)).tolist()], close=True)


def _conjugate(rng: Rng) -> Group:
    group = GROUPS[str(rng.choice(SIMPLE))](rng)
    if rng.random() < 0.5:
        return Conjugate(group, rng.permutation(group.dim))
    return Conjugate(group, np.linalg.qr(rng.standard_normal((group.dim, group.dim)))[0])


def _small(rng: Rng) -> Group:
    group = GROUPS[str(rng.choice(SIMPLE))](rng)
    return group if group.dim <= 3 else Full(2)


def _dim(rng: Rng) -> int:
    return int(rng.integers(1, 7))


GROUPS: dict[str, Callable[[Rng], Group]] = {
    "diagonal": lambda rng: Diagonal(_dim(rng)),
    "full": lambda rng: Full(_dim(rng)),
    "triangular": lambda rng: Triangular(_dim(rng), bool(rng.integers(2))),
    "block_triangular": lambda rng: BlockTriangular(
        dim := _dim(rng), int(rng.integers(0, dim + 1)), bool(rng.integers(2))
    ),
    "heisenberg": _heisenberg,
    "toeplitz_triangular": _blocks(ToeplitzTriangular),
    "circulant": _blocks(Circulant),
    "sparse": _sparse,
    "strangers": lambda rng: (Scalar, Exchangeable)[int(rng.integers(2))](_dim(rng)),
    "kronecker": lambda rng: Kronecker(_small(rng), _small(rng)),
    "block_diagonal": lambda rng: BlockDiagonal([_small(rng) for _ in range(int(rng.integers(1, 3)))]),
    "conjugate": _conjugate,
    "nested": lambda rng: BlockDiagonal([_conjugate(rng), Kronecker(_small(rng), _conjugate(rng))]),
}
SIMPLE = list(GROUPS)[:9]
GROUPS["frame"] = lambda rng: Frame(_dim(rng))  # not a part of other groups


# ---- vectors ----------------------------------------------------------------------------------------------------


def vectors(rng: Rng, limits: dict[str, Any]) -> Case:
    """A search over vectors: any group, bounds, integers, fixed coordinates and devices."""
    group, equal = GROUPS[str(rng.choice(list(GROUPS)))](rng), rng.random() < 0.25
    group = Diagonal(2) if equal else group  # with integers within narrow bounds: equal points
    fixed = np.zeros(group.dim, dtype=bool)
    if rng.random() < 0.25:
        fixed = rng.permutation(np.append(fixed, [True] * int(rng.integers(1, 3))))
    dim = len(fixed)
    whole = rng.random(dim) < (1.0 if equal else rng.choice([0.0, 0.0, 0.4, 1.0]))
    kind = str(rng.choice(["none", "two-sided", "one-sided", "mixed", "narrow"]))
    if whole.all() and rng.random() < 0.7:
        kind = "narrow"  # so that points are equal
    center = np.where(whole, np.rint(rng.normal(0, 3, dim)), rng.normal(0, 3, dim))
    lower, upper = center - rng.uniform(1, 4, dim), center + rng.uniform(1, 4, dim)
    if kind == "narrow":
        lower, upper = center - 1.0, center + np.where(whole, 1.0, 0.001)
    open_below = {"none": 1.0, "one-sided": 0.5, "mixed": 0.5}.get(kind, 0.0)
    below = rng.random(dim) < open_below
    above = ~below if kind == "one-sided" else rng.random(dim) < open_below
    lower, upper = np.where(below, -np.inf, lower), np.where(above, np.inf, upper)
    options: dict[str, Any] = {"structure": group, "integer": whole.tolist() if whole.any() else None}
    if np.isfinite([*lower, *upper]).any():
        options["bounds"] = list(zip(lower.tolist(), upper.tolist(), strict=True))
    if fixed.any():
        by_index = {j: float(center[j]) for j in np.flatnonzero(fixed).tolist()}
        options["fixed"] = fixed.tolist() if rng.random() < 0.5 else by_index
    if rng.random() < 0.3:
        options["popsize"] = int(rng.integers(2, 15))
    options |= _devices(rng)
    if options.get("step_size") == "tpa" and options.get("popsize") == 2:
        options["popsize"] = 3
    if rng.random() < 0.2:
        root = rng.normal(size=(dim, dim))
        options["cov0"] = root @ root.T + np.eye(dim)
    if "constraints" not in limits and rng.random() < 0.5 and _takes(center, options | {"model": "quadratic"}):
        options["model"] = "quadratic"
    sigma0 = [None, 0.5, 10.0, rng.uniform(0.1, 2.0, dim)][int(rng.integers(4))]
    lower, upper = np.where(whole, np.ceil(lower), lower), np.where(whole, np.floor(upper), upper)

    def good(x: np.ndarray) -> bool:
        inside = ((x >= lower) & (x <= upper)).all() and (x[whole] == np.rint(x[whole])).all()
        return bool(np.isfinite(x).all() and inside and (x[fixed] == center[fixed]).all())

    def foreign(rng: Rng, n: int) -> np.ndarray:
        far = rng.choice([1.0, 1.0, 1e6, 1e100, 1e200])
        x = center + np.clip(rng.normal(0, 2, (n, dim)) * far, np.maximum(lower, -1e300) - center, upper - center)
        x = np.clip(np.where(whole, np.rint(x), x), lower, upper)
        return np.where(fixed, center, x)

    def bad(rng: Rng) -> Any:
        j = int(rng.integers(dim))
        wrong = [_broken(rng, center), _with(center, j, lower[j] - 1e-9 * max(1.0, abs(lower[j])))]
        wrong += [_with(center, j, upper[j] + 1.0)]
        if whole.any():
            j = int(rng.choice(np.flatnonzero(whole)))
            wrong += [_with(center, j, center[j] + 0.5)]
        if fixed.any():
            j = int(rng.choice(np.flatnonzero(fixed)))
            wrong += [_with(center, j, center[j] + (1.0 if whole[j] else 1e-6))]
        return wrong[int(rng.integers(len(wrong)))]

    seeds = limits.pop("rng")
    data = None
    if not fixed.any() and "cov0" not in options and rng.random() < 0.15:
        X = foreign(np.random.default_rng(5), 12) if kind != "none" else rng.normal(0, 3, (12, dim))
        data = (np.where(whole, np.rint(X), X), rng.normal(size=12))
        if (np.ptp(data[0], axis=0) < 1e-3).any() or np.abs(data[0]).max() > 1e5:
            data = None  # nothing to learn a spread from

    def make() -> Searcher:
        if data is not None:
            return Searcher.from_data(*data, rng=seeds(), **options, **limits)
        return Searcher(center, sigma0, rng=seeds(), **options, **limits)

    best = None
    if data is not None and "constraints" not in limits:  # of which the data do not tell
        best = (data[0][int(data[1].argmin())], float(data[1].min()))
    text = f"Searcher({'from data' if data else center.tolist()}, {sigma0!r}, {options}, {limits})"
    return Case(text, make, good, foreign, bad, best, fixed)


def _takes(start: Any, options: dict[str, Any]) -> bool:
    """Whether a search with these options is accepted."""
    try:
        Searcher(start, **options)
    except ValueError:
        return False
    return True


def _devices(rng: Rng) -> dict[str, Any]:
    """Options that go together."""
    if rng.random() < 0.15:
        return {"algorithm": "paper", "mirrored": bool(rng.integers(2))}
    devices: dict[str, Any] = {"decoding": ["auto", True, False][int(rng.integers(3))]}
    devices |= [{}, {"mirrored": True}, {"step_size": "tpa"}][int(rng.integers(3))]
    return devices | ({"noise": "adapt"} if rng.random() < 0.25 else {})


def _with(x: np.ndarray, j: int, value: float) -> np.ndarray:
    changed = x.astype(float)
    changed.reshape(-1)[j] = value
    return changed


def _broken(rng: Rng, x: np.ndarray) -> Any:
    """What no space takes as a point like x: not finite, of another shape, not numbers."""
    wrong = [_with(x, int(rng.integers(x.size)), value) for value in (np.nan, np.inf, -np.inf)]
    wrong += [np.append(x.ravel(), 1.0), np.zeros((2, 2, 2, 2)), np.full(x.shape, "a"), x + 1j]
    return wrong[int(rng.integers(len(wrong)))]


# ---- other spaces -------------------------------------------------------------------------------------------------


def _of(start: Any, good: Callable[[Any], bool], bad: Callable[[Rng], Any], limits: Any, **options: Any) -> Case:
    """A search that begins with a distribution or a strategy; a second one of its kind finds foreign points."""
    seeds = limits.pop("rng")

    def foreign(rng: Rng, n: int) -> Any:
        points = Searcher(start, **options, rng=rng.integers(10**6)).ask(n)
        return points if isinstance(points, list) else points.copy()

    text = f"Searcher({start!r}, {options}, {limits})"
    return Case(text, lambda: Searcher(start, rng=seeds(), **options, **limits), good, foreign, bad)


def wisharts(rng: Rng, limits: dict[str, Any]) -> Case:
    p = int(rng.integers(1, 5))
    root = rng.normal(size=(p, p))
    structure = str(rng.choice(["full", "diagonal", "triangular"]))

    def good(w: np.ndarray) -> bool:
        return bool(np.isfinite(w).all() and (w == w.T).all() and np.linalg.eigvalsh(w).min() > 0)

    def bad(rng: Rng) -> Any:
        wrong = [_broken(rng, np.eye(p)), -np.eye(p), _with(np.eye(p), p * p - 1, 0.0)]
        wrong += [_with(np.eye(p), 1, 0.25)] if p > 1 else []
        return wrong[int(rng.integers(len(wrong)))]

    start = esgroup.Wishart(mean=root @ root.T + np.eye(p), structure=structure)
    return _of(start, good, bad, limits, **_popsize(rng, 2))


def matrices(rng: Rng, limits: dict[str, Any]) -> Case:
    m, k = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    rows, cols = (str(rng.choice(["full", "diagonal", "triangular"])) for _ in "ab")
    form = str(rng.choice(["covariance", "precision"]))
    mean = rng.normal(size=(m, k))
    start = esgroup.MatrixGaussian(mean, 0.5, rows, cols, form, bool(rng.integers(2)))  # type: ignore[arg-type]
    options = _popsize(rng, 2) | ({"algorithm": "paper"} if rng.random() < 0.3 else {})
    return _of(start, _finite, lambda rng: _broken(rng, mean), limits, **options)


def mixtures(rng: Rng, limits: dict[str, Any]) -> Case:
    dim, count = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    box = np.array([[-6.0, 6.0]] * dim)
    structure = str(rng.choice(["full", "diagonal"]))
    start = esgroup.Mixture.spread(count, bounds=box, structure=structure, rng=int(rng.integers(100)))
    if rng.random() < 0.5:
        return _of(start, _finite, lambda rng: _broken(rng, box[:, 0]), limits, **_popsize(rng, 4))

    def bad(rng: Rng) -> Any:
        return _broken(rng, box[:, 0]) if rng.random() < 0.5 else _with(np.zeros(dim), 0, 6.5)

    return _of(start, lambda x: _finite(x) and bool((abs(x) <= 6).all()), bad, limits, bounds=box, **_popsize(rng, 4))


def _finite(x: np.ndarray) -> bool:
    return bool(np.isfinite(x).all())


def _popsize(rng: Rng, least: int) -> dict[str, Any]:
    return {"popsize": int(rng.integers(least, 12))} if rng.random() < 0.5 else {}


# a first distribution, whether a number is in the domain, and a number that is not (NaN: all are)
FAMILIES: dict[str, tuple[Any, Callable[[float], bool], float]] = {
    "Normal": (families.Normal(1.0, 2.0), math.isfinite, math.nan),
    "Laplace": (families.Laplace(1.0, 0.5), math.isfinite, math.nan),
    "Gamma": (families.Gamma(2.0, 1.0), lambda w: 0 < w < math.inf, 0.0),
    "Beta": (families.Beta(2.0, 3.0), lambda w: 0 < w < 1, 1.0),
    "Wald": (families.Wald(1.0, 2.0), lambda w: 0 < w < math.inf, -1.0),
    "Exponential": (families.Exponential(2.0), lambda w: 0 <= w < math.inf, -1e-9),
    "Pareto": (families.Pareto(2.0, 1.5), lambda w: 1.5 <= w < math.inf, 1.0),
    "Weibull": (families.Weibull(2.0, 1.5), lambda w: 0 < w < math.inf, 0.0),
    "Bernoulli": (families.Bernoulli(0.3), lambda w: w in (0, 1), 2.0),
    "Poisson": (families.Poisson(3.0), lambda w: w >= 0 and w == int(w), 0.5),
    "PoissonPower": (families.PoissonPower(3.0, 1.5), lambda w: w >= 0 and w == int(w), -1.0),
}


def univariate(rng: Rng, limits: dict[str, Any]) -> Case:
    """One family, or a product of several."""
    names = [str(name) for name in rng.choice(list(FAMILIES), int(rng.integers(1, 4)))]
    firsts, domains, outside = zip(*(FAMILIES[name] for name in names), strict=True)
    start = firsts[0] if len(names) == 1 and rng.random() < 0.5 else families.Product(firsts)

    def good(x: np.ndarray) -> bool:
        return all(inside(number) for inside, number in zip(domains, x.tolist(), strict=True))

    def bad(rng: Rng) -> Any:
        middle, j = np.array([1.5 if name == "Pareto" else 1.0 for name in names]), int(rng.integers(len(names)))
        return _broken(rng, middle) if rng.random() < 0.5 else _with(middle, j, outside[j])

    return _of(start, good, bad, limits, **_popsize(rng, 2))


def spaces(rng: Rng, limits: dict[str, Any]) -> Case:
    """Named parameters of every kind, some of which depend on others."""
    parameters: dict[str, Any] = {
        "real": Real(-2, 3),
        "log": Real(1e-3, 1e3, log=True),
        "open": Real(start=1.0),
        "int": Integer(-2, 3),
        "logint": Integer(1, 40, log=True),
        "angle": Angle(),
        "choice": Choice("a", "b", "c"),
        "other": Choice(None, 2.5, True, (1, "x")),
    }
    names = [str(name) for name in rng.permutation(list(parameters))[: int(rng.integers(1, len(parameters) + 1))]]
    chosen = {name: parameters[name] for name in names}
    if "choice" in chosen and rng.random() < 0.7:
        for name in names:
            if name != "choice" and rng.random() < 0.5:
                chosen[name] = _conditional(chosen[name])
    space = Space(chosen)

    def good(p: dict[str, Any]) -> bool:
        on = p.get("choice") == "b"
        inside = set(p) == {name for name in names if chosen[name].when is None or on}
        return inside and all(_in_domain(name, value) for name, value in p.items())

    def bad(rng: Rng) -> Any:
        point = Searcher(space, rng=1).ask()[0]
        name = str(rng.choice(list(point)))
        without = {key: value for key, value in point.items() if key != name}
        wrong: list[Any] = [without, point | {"nobody": 1.0}, point | {name: math.nan}, point | {name: "zzz"}, 5, "abc"]
        return wrong[int(rng.integers(len(wrong)))]

    options = _popsize(rng, 2)
    if "constraints" not in limits and rng.random() < 0.7 and _takes(space, {"model": "quadratic"}):
        options["model"] = "quadratic"
    return _of(space, good, bad, limits, **options)


def _conditional(parameter: Any) -> Any:
    if isinstance(parameter, Choice):
        return Choice(*parameter.options, when={"choice": "b"})
    return replace(parameter, when={"choice": "b"})


def _in_domain(name: str, value: Any) -> bool:
    domains: dict[str, Callable[[Any], bool]] = {
        "real": lambda v: type(v) is float and -2 <= v <= 3,
        "log": lambda v: type(v) is float and 1e-3 <= v <= 1e3,
        "open": lambda v: type(v) is float and math.isfinite(v),
        "int": lambda v: type(v) is int and -2 <= v <= 3,
        "logint": lambda v: type(v) is int and 1 <= v <= 40,
        "angle": lambda v: type(v) is float and 0 <= v < 2 * math.pi,
        "choice": lambda v: v in ("a", "b", "c"),
        "other": lambda v: v in (None, 2.5, True, (1, "x")),
    }
    return domains[name](value)


# ---- strangers ----------------------------------------------------------------------------------------------------


def strangers(rng: Rng, limits: dict[str, Any]) -> Case:
    """A strategy of somebody else's that fills one of the hooks, or one over words."""
    kinds = (Plain, Varying, Remembering, First)
    for kind in kinds:
        register(kind)
    if rng.random() < 0.4:
        return _words(rng, limits)
    strategy = kinds[int(rng.integers(len(kinds)))](int(rng.integers(1, 4)), int(rng.integers(2, 8)))
    return _of(strategy, _finite, lambda rng: _broken(rng, np.zeros(strategy.dim)), limits)


def _words(rng: Rng, limits: dict[str, Any]) -> Case:
    theirs = _their_search()
    register(theirs.WordSearch)
    letters, length = "abc", int(rng.integers(1, 4))

    def good(word: str) -> bool:
        return len(word) == length and set(word) <= set(letters)

    def bad(rng: Rng) -> Any:
        return ["a" * (length + 1), "z" * length, "", 5, 1.5, np.zeros(length)][int(rng.integers(6))]

    return _of(theirs.Words(letters, length), good, bad, limits, popsize=int(rng.integers(2, 9)))


def _their_search() -> Any:
    """The module of the package beside this file, under the name by which its objects can be pickled."""
    if "their_search" not in sys.modules:
        spec = importlib.util.spec_from_file_location("their_search", Path(PACKAGE) / "their_search.py")
        assert spec is not None and spec.loader is not None
        sys.modules["their_search"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules["their_search"])
    return sys.modules["their_search"]


# ---- any of them --------------------------------------------------------------------------------------------------

KINDS = {
    "vectors": (vectors, 0.45),
    "spaces": (spaces, 0.10),
    "wisharts": (wisharts, 0.07),
    "matrices": (matrices, 0.08),
    "mixtures": (mixtures, 0.08),
    "univariate": (univariate, 0.12),
    "strangers": (strangers, 0.10),
}


def _generator(bits: Any, seed: int) -> Rng:
    """A generator that has already been asked for others."""
    rng = np.random.Generator(bits(seed))
    rng.spawn(seed % 3)
    return rng


def random_case(rng: Rng) -> Case:
    """A search of any kind, with limits and any generator."""
    limits: dict[str, Any] = {}
    if rng.random() < 0.4:
        limits["max_evals"] = int(rng.integers(1, 80))
    if rng.random() < 0.2:
        limits["max_iters"] = int(rng.integers(1, 7))
    if rng.random() < 0.2:
        limits["target"] = float(rng.normal(0, 3))
    bits, seed = getattr(np.random, str(rng.choice(BIT_GENERATORS))), int(rng.integers(10**6))
    limits["rng"] = lambda: _generator(bits, seed)
    makers, shares = zip(*KINDS.values(), strict=True)
    maker: Any = makers[int(rng.choice(len(makers), p=shares))]
    rule = _rule(rng) if maker in (vectors, spaces) and rng.random() < 0.35 else None
    made: Case = maker(rng, limits if rule is None else limits | rule.options(rng))
    return replace(made, rule=rule)


def _rule(rng: Rng) -> Rule:
    number = int(rng.choice([1, 1, 2, 3, 120]))
    equalities = tuple(np.flatnonzero(rng.random(number) < rng.choice([0.0, 0.3])).tolist())
    unit = float(rng.choice([1.0, 1e-200, 1e3, 1e200]))
    several = number if rng.random() < 0.5 else 1
    tolerances = np.broadcast_to(rng.choice([0.0, 1e-6, 0.5], several), (number,))
    return Rule(number, equalities, tuple((unit * tolerances).tolist()), unit)
