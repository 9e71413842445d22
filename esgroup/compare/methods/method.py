"""A method of the comparison: a name, what it needs, and a function that runs it on a trial."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Literal

from esgroup.compare.records import Cost
from esgroup.compare.trial import Trial
from esgroup.groups import parse
from esgroup.problem_registry import Task

GradientUse = Literal["none", "given", "needed", "differences"]

# tolerances of methods are so small that the targets of the trial decide when a run ends
ENDLESS = 10**9  # iterations
GTOL = 1e-11  # of gradients

_KINDS = {"vector": "vectors", "spd": "positive-definite matrices", "matrix": "matrices", "scalar": "single numbers"}


@dataclass(frozen=True)
class Method:
    """A method of the comparison.

    Other packages add methods through the entry-point group "esgroup.methods".

    Parameters
    ----------
    name
        Name of the method in `--methods`.
    run
        Takes a Trial, searches by calling its functions, and returns why it stopped, if it ever stops by itself: the
        trial ends the run when the last target is reached or the budget is used.
    about
        One line for `esgroup list`.
    packages
        Distributions that the method needs, which are also the names of their modules.
    extra
        The extra of esgroup that installs them.
    bounded
        Whether the method supports bounds.
    traces
        Whether a run changes the next one in the same process; each run then has a process of its own.
    gradients
        "none"; "given": uses gradients where the problem has them, and otherwise differences of values; "needed": runs
        on problems with gradients only; "differences": always takes differences of values.
    of_structure
        Makes `run` for the spelling of a structure, for methods that have structures.
    spaces
        Spaces that the method searches itself, with points in their own shape; it then runs on no other problem. The
        others search coordinates of any problem.
    check_structure
        Raises an error if a spelling is not a structure in that dimension; by default, if it is not a group.

    Examples
    --------
    >>> import numpy as np
    >>> from esgroup.compare.methods import Method
    >>> def random_search(trial):
    ...     rng = np.random.default_rng(trial.seed)
    ...     while True:
    ...         trial.fun(trial.x0 + trial.sigma0 * rng.standard_normal(len(trial.x0)))
    >>> method = Method("random", random_search, "Gaussian samples around the start")
    """

    name: str
    run: Callable[[Trial], str]
    about: str
    packages: tuple[str, ...] = ()
    extra: str = ""
    bounded: bool = True
    traces: bool = False
    gradients: GradientUse = "none"
    of_structure: Callable[[str], Callable[[Trial], str]] | None = None
    spaces: tuple[str, ...] = ()
    check_structure: Callable[[str, int], object] = parse

    def __post_init__(self) -> None:
        if not set(self.spaces) <= set(_KINDS):
            raise ValueError(f"spaces must be some of {', '.join(_KINDS)}, got {self.spaces!r}")

    @property
    def points(self) -> str:
        """What the method searches itself, in words."""
        return " and ".join(_KINDS[space] for space in self.spaces)

    def check_fits(self, task: Task) -> None:
        """Raise ValueError for a problem on a space that the method does not search, or without a gradient it needs."""
        if self.spaces and task.space not in self.spaces:
            raise ValueError(f"the method {self.name} searches {self.points}; {task.name} has {_KINDS[task.space]}")
        if self.gradients == "needed" and task.gradient is None:
            raise ValueError(f"{self.name} needs the gradient; {task.name} has none")

    def missing(self) -> str | None:
        """What must be installed for the method, in words; None if nothing is missing."""
        absent = [package for package in self.packages if find_spec(package) is None]
        if not absent:
            return None
        how = f"'esgroup[{self.extra}]'" if self.extra else " ".join(absent)
        return f"the method {self.name} needs {' and '.join(absent)}: pip install {how}"

    def counts(self, has_gradient: bool) -> Cost:
        """What counts as an evaluation on a problem with or without a gradient."""
        if self.gradients == "none":
            return Cost.VALUES
        return Cost.GRADIENTS if self.gradients != "differences" and has_gradient else Cost.DIFFERENCES
