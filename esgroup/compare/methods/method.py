"""What a method is: a name, what it needs, and a function that runs it on a trial."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Literal

from esgroup.compare.records import Cost
from esgroup.compare.trial import Trial
from esgroup.groups import parse

Gradients = Literal["none", "given", "needed", "differences"]

_KINDS = {"vector": "vectors", "spd": "positive-definite matrices", "matrix": "matrices", "scalar": "single numbers"}


@dataclass(frozen=True)
class Method:
    """A method of the comparison: a plug-in.

    `run` takes a Trial, searches by calling its functions, and returns why it has stopped, if it ever does: the trial
    ends it when the last target is reached or the budget is spent. `packages` are the distributions it needs, which are
    also the names of their modules, and `extra` is the extra of esgroup that brings them. `gradients`: whether it asks
    for gradients where the problem has them (and else takes differences of values), runs on no problem without them, or
    takes differences always. A method with structures has `of_structure`, which makes its `run` for one of them;
    `check_structure` refuses a spelling that is none in so many dimensions: by default, none of a group. One with
    `spaces` searches these themselves, with points in their own shape, and runs on no other problem; the rest search
    coordinates of any.
    """

    name: str
    run: Callable[[Trial], str]
    about: str
    packages: tuple[str, ...] = ()
    extra: str = ""
    bounded: bool = True  # whether it keeps to bounds
    traces: bool = False  # whether a run changes the next one in the same process: then each has one of its own
    gradients: Gradients = "none"
    of_structure: Callable[[str], Callable[[Trial], str]] | None = None
    spaces: tuple[str, ...] = ()
    check_structure: Callable[[str, int], object] = parse

    def __post_init__(self) -> None:
        if not set(self.spaces) <= set(_KINDS):
            raise ValueError(f"spaces must be some of {', '.join(_KINDS)}, got {self.spaces!r}")

    @property
    def points(self) -> str:
        """What it searches itself, in words."""
        return " and ".join(_KINDS[space] for space in self.spaces)

    def check_space(self, problem: str, space: str) -> None:
        """Refuse a problem of another space than its own."""
        if self.spaces and space not in self.spaces:
            raise ValueError(f"the method {self.name} searches {self.points}; {problem} has {_KINDS[space]}")

    def check_gradient(self, problem: str, has_gradient: bool) -> None:
        """Refuse a problem without gradient if it cannot do without."""
        if self.gradients == "needed" and not has_gradient:
            raise ValueError(f"{self.name} needs the gradient; {problem} has none")

    def missing(self) -> str | None:
        """What must be installed for it, in words."""
        absent = [package for package in self.packages if find_spec(package) is None]
        if not absent:
            return None
        how = f"'esgroup[{self.extra}]'" if self.extra else " ".join(absent)
        return f"the method {self.name} needs {' and '.join(absent)}: pip install {how}"

    def counts(self, has_gradient: bool) -> Cost:
        """What its evaluations count, on a problem with or without gradient."""
        if self.gradients == "none":
            return Cost.VALUES
        return Cost.GRADIENTS if self.gradients != "differences" and has_gradient else Cost.DIFFERENCES
