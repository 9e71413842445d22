"""How sigma adapts: a rule determines the factor by which it changes after a generation.

A rule is a frozen object, like recombination, decoding, adaptation and sampling. It can keep its own numbers in the
state (`memory`), shape some of the samples and recognize them by their tags, and returns the logarithm of the factor.
The path p_s belongs to the update of the mean, which uses its length to decide when the evolution path p_c pauses
(h_sigma), whatever the rule.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

from esgroup.checks import Array
from esgroup.groups import Group
from esgroup.strategies.base import Indices
from esgroup.strategies.recombination import Constants


class Moved(NamedTuple):
    """The input of a rule after the mean has moved."""

    constants: Constants
    path_length: float  # |p_s|
    order: Indices  # the rows from best to worst
    tags: Indices | None  # their tags, None if none is marked
    shift: Array | None  # the move of the mean, for rules that keep a memory
    memory: Array


class StepSize(ABC):
    """A rule for sigma."""

    def memory(self, dim: int) -> int:
        """The number of values that the rule keeps in the state; they start at 0."""
        return 0

    def mark(self, group: Group, root: Array, scale: Array, memory: Array, z: Array) -> Indices | None:
        """Shape some of the samples z (n, dim) in place; returns the tags of all, None if none is marked."""
        return None

    def drive(self, constants: Constants) -> float | None:
        """The factor a of the rule min(1, a (|p_s| / chi - 1)), which kernels implement; None for other rules."""
        return None

    @abstractmethod
    def log_step(self, moved: Moved) -> float:
        """log(sigma_new / sigma), at most 1; updates the memory."""


@dataclass(frozen=True)
class CumulativeStepSize(StepSize):
    """log step = (c_s / d_s) (|p_s| / chi - 1): a path that is longer than a random one asks for longer steps.

    Cumulative step-size adaptation (tutorial, eq. 44), with the exponent limited to 1.
    """

    def drive(self, constants: Constants) -> float | None:
        return constants.drive

    def log_step(self, moved: Moved) -> float:
        constants = moved.constants
        return min(1.0, constants.drive * (moved.path_length / constants.chi - 1.0))
