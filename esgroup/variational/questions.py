"""All that the estimators of one iteration want to know, asked in a few calls.

An estimator asks for values and derivatives at one point after another, for one Gaussian. Where it asks does not
depend on the answers. So it is run twice with the same random numbers: first to write down its questions, which are
then answered all at once, for all points of all components; then with the answers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from esgroup.checks import Array
from esgroup.gradients.function import Fun, Gradients, Hessians, Products, Values
from esgroup.variational.target import Places, Target

Kind = Literal["values", "gradients", "products", "diagonals", "hessians"]
Of = Literal["f", "q", "both"]


class Source(Protocol):
    """A function with its derivatives at points that have numbers."""

    def values(self, places: Places) -> Array: ...
    def gradients(self, places: Places) -> Array: ...
    def products(self, places: Places, v: Array) -> Array: ...
    def diagonals(self, places: Places) -> Array: ...
    def hessians(self, places: Places) -> Array: ...


class Question(NamedTuple):
    """What is asked, of f, of log q or of their sum, at which points; `vectors` are for products only."""

    kind: Kind
    of: Of
    places: Places
    vectors: Array | None = None


class Questions:
    """Questions about l = f + weight log q as they are asked; zeros are answered until there are answers."""

    def __init__(self, dim: int) -> None:
        self._dim = dim
        self._points: list[Array] = []
        self._places: dict[bytes, int] = {}
        self._asked: list[Question] = []
        self._answers: list[Array] | None = None
        self._next = 0

    @property
    def points(self) -> Array:
        """The points that were asked about, each once."""
        return np.array(self._points).reshape(-1, self._dim)

    @property
    def count(self) -> int:
        """How many points there are so far."""
        return len(self._points)

    def ask(self, kind: Kind, of: Of, points: Array, vectors: Array | None = None) -> Array:
        """The next answer: about every row of `points`, or about one point and every row of `vectors`."""
        if self._answers is not None:
            self._next += 1
            return self._answers[self._next - 1]
        places = np.array([self._place(point) for point in points], dtype=np.intp)
        if vectors is not None:
            places, vectors = np.repeat(places, len(vectors)), np.array(vectors)
        self._asked.append(Question(kind, of, places, vectors))
        return np.zeros(self._shape(kind, len(places)))

    def _place(self, point: Array) -> int:
        place = self._places.setdefault(point.tobytes(), len(self._points))
        if place == len(self._points):
            self._points.append(np.array(point))
        return place

    def _shape(self, kind: Kind, n: int) -> tuple[int, ...]:
        return {"values": (n,), "hessians": (n, self._dim, self._dim)}.get(kind, (n, self._dim))

    def answer(self, f: Source, q: Source, weight: float) -> bool:
        """Find all answers and start again with the first question; whether all answers are finite."""
        answers = [np.zeros(self._shape(question.kind, len(question.places))) for question in self._asked]
        for kind in dict.fromkeys(question.kind for question in self._asked):
            for source, name, factor in ((f, "f", 1.0), (q, "q", weight)):
                chosen = [i for i, asked in enumerate(self._asked) if asked.kind == kind and asked.of in (name, "both")]
                found = _found(source, kind, [self._asked[i] for i in chosen])
                for i, part in zip(chosen, found, strict=True):
                    answers[i] += factor * part
        for question, answer in zip(self._asked, answers, strict=True):
            if question.kind == "hessians":  # where f and log q cancel, rounding is all that is left
                answer[:] = (answer + answer.swapaxes(1, 2)) / 2
        self._answers = answers
        return all(bool(np.isfinite(answer).all()) for answer in answers)


def _found(source: Source, kind: Kind, asked: list[Question]) -> Iterable[Array]:
    """The answers of one source to questions of one kind, from one call."""
    if not asked:
        return []
    places = np.concatenate([question.places for question in asked])
    cuts = np.cumsum([len(question.places) for question in asked])[:-1]
    method = getattr(source, kind)
    if kind != "products":
        return np.split(method(places), cuts)
    vectors = [question.vectors for question in asked if question.vectors is not None]
    return np.split(method(places, np.concatenate(vectors)), cuts)


# ---- l as a function of which as much is known as of f --------------------------------------------------------------


def asking(questions: Questions, target: Target) -> Values:
    """l = f + weight log q for an estimator: what it wants to know of it becomes a question."""
    known: dict[str, Any] = {"dim": target.function.dim, "vectorized": True, "questions": questions}
    for kind in (Hessians, Products, Gradients):
        if isinstance(target.function, kind):
            made: Values = _MAKERS[kind](known, target)
            return made
    return _AskedValues(**known)


def _never(*_: Any) -> Any:
    raise RuntimeError("a question was not asked as one")


@dataclass(frozen=True, eq=False, kw_only=True)
class _AskedValues(Values):
    questions: Questions
    fun: Fun = field(default=_never)

    def values(self, points: Array) -> Array:
        return self.questions.ask("values", "both", points)


@dataclass(frozen=True, eq=False, kw_only=True)
class _AskedGradients(_AskedValues, Gradients):
    jac: Fun = field(default=_never)

    def gradients(self, points: Array) -> Array:
        return self.questions.ask("gradients", "both", points)


@dataclass(frozen=True, eq=False, kw_only=True)
class _AskedProducts(_AskedGradients, Products):
    hessp: Any = field(default=_never)
    #: estimates the diagonal of f's Hessian from products, which are questions; None if it is known
    probing: Products | None = None

    def products(self, x: Array, rows: Array) -> Array:
        return self.questions.ask("products", "both", x[None], rows)

    def diagonal(self, x: Array, rng: np.random.Generator) -> Array:
        if self.probing is None:
            known: Array = self.questions.ask("diagonals", "both", x[None])[0]
            return known
        total: Array = self.probing.diagonal(x, rng) + self.questions.ask("diagonals", "q", x[None])[0]
        return total


@dataclass(frozen=True, eq=False, kw_only=True)
class _AskedHessians(_AskedGradients, Hessians):
    hess: Fun = field(default=_never)

    def hessian(self, x: Array) -> Array:
        matrix: Array = self.questions.ask("hessians", "both", x[None])[0]
        return matrix


def _asked_products(known: dict[str, Any], target: Target) -> Values:
    if target.knows_diagonal:
        return _AskedProducts(**known)
    function, questions = target.function, known["questions"]
    probing = Products(
        dim=function.dim,
        fun=_never,
        jac=_never,
        hessp=lambda x, rows: questions.ask("products", "f", x[None], rows),
        hessp_vectorized=True,
        probes=function.probes,  # type: ignore[attr-defined]  # it is Products
    )
    return _AskedProducts(**known, probing=probing)


_MAKERS: dict[type[Values], Any] = {
    Hessians: lambda known, target: _AskedHessians(**known),
    Products: _asked_products,
    Gradients: lambda known, target: _AskedGradients(**known),
}
