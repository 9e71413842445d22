"""The experiments of the paper, one file each: `scripts/reproduce.py` runs them."""

from __future__ import annotations

from reproduction.cnn import CNN
from reproduction.experiment import Experiment
from reproduction.fig1 import FIG1
from reproduction.mixture import MIXTURE
from reproduction.nearness import NEARNESS
from reproduction.newton import NEWTON
from reproduction.singular import SINGULAR
from reproduction.structures import STRUCTURES

#: In the order of the page. A new experiment is a file and a line here.
EXPERIMENTS: tuple[Experiment, ...] = (
    STRUCTURES,
    SINGULAR,
    FIG1,
    NEARNESS,
    MIXTURE,
    NEWTON,
    CNN,
)
#: Those that are still to come, and what they will show: the page keeps a place for them.
PLANNED: dict[str, str] = {}
