"""A package of somebody else's: a distribution over words, and a strategy that searches with it."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from esgroup.domains import Domain
from esgroup.strategies import Proposed, Ranked, Strategy, Traits


@dataclass(frozen=True)
class Words:
    """Words of `length` letters, each letter drawn by itself."""

    letters: str
    length: int


class WordsState(NamedTuple):
    logits: np.ndarray  # (length, number of letters)


@dataclass(frozen=True, eq=False)
class AsWords(Domain):
    """Points as users see them: words. A point holds the places of letters."""

    shape: tuple[int, ...]
    words: Words

    @property
    def size(self) -> int:
        return self.shape[0]

    def decode(self, y: np.ndarray) -> np.ndarray:
        return y.copy()

    def encode(self, points: np.ndarray, near: np.ndarray | None = None) -> np.ndarray:
        return points

    def to_user(self, points: np.ndarray) -> list[str]:
        return ["".join(self.words.letters[int(i)] for i in point) for point in points]

    def from_user(self, name: str, points: Any) -> np.ndarray:
        words = [points] if isinstance(points, str) else list(points)
        if not all(isinstance(word, str) and len(word) == self.words.length for word in words):
            raise ValueError(f"{name} must be words of {self.words.length} letters, got {points!r}")
        return np.array([[self.words.letters.index(letter) for letter in word] for word in words], dtype=float)

    def are_pairs(self, told: Any) -> bool:
        return isinstance(told, list) and bool(told) and isinstance(told[0], tuple)


@dataclass(frozen=True)
class WordSearch(Strategy):
    """Cross-entropy steps on independent letters; users see words, and a point holds the places of letters."""

    words: Words
    wanted: int | None = None

    distribution_class: ClassVar[type] = Words

    @cached_property
    def traits(self) -> Traits:
        return Traits(
            size=self.words.length * (len(self.words.letters) - 1),
            popsize=self.wanted or 20,
            about=f"words of {self.words.length} letters",
            domain=AsWords((self.words.length,), self.words),
        )

    def start(self, rng: Any = None) -> WordsState:
        return WordsState(np.zeros((self.words.length, len(self.words.letters))))

    def _probabilities(self, state: WordsState) -> np.ndarray:
        weights = np.exp(state.logits - state.logits.max(axis=1, keepdims=True))
        return 0.98 * weights / weights.sum(axis=1, keepdims=True) + 0.02 / len(self.words.letters)

    def sample(self, state: WordsState, n: int, rng: np.random.Generator, out: Proposed | None = None) -> Proposed:
        columns = [rng.choice(len(p), n, p=p) for p in self._probabilities(state)]
        points = np.array(columns, dtype=float).T.copy()
        return Proposed(points, points.copy())

    def local(self, state: WordsState, points: np.ndarray) -> np.ndarray:
        return points.copy()

    def update(self, state: WordsState, told: Ranked, out: Any = None) -> WordsState:
        best = told.local[told.order[: max(1, len(told.order) // 4)]].astype(int)
        share = np.array([np.bincount(column, minlength=len(self.words.letters)) for column in best.T]) / len(best)
        return WordsState(state.logits + share - self._probabilities(state))

    def mean(self, state: WordsState) -> np.ndarray:
        return state.logits.argmax(axis=1).astype(float)

    def stds(self, state: WordsState) -> np.ndarray:
        return np.sqrt(1 - self._probabilities(state).max(axis=1)) + 1e-3
