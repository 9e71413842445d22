"""The experiments of the paper, one file each: `scripts/reproduce.py` runs them."""

from __future__ import annotations

from reproduction.experiment import Experiment
from reproduction.fig1 import FIG1
from reproduction.nearness import NEARNESS
from reproduction.singular import SINGULAR
from reproduction.structures import STRUCTURES

#: In the order of the page. A new experiment is a file and a line here.
EXPERIMENTS: tuple[Experiment, ...] = (
    STRUCTURES,
    SINGULAR,
    FIG1,
    NEARNESS,
)
#: Those that are still to come, and what they will show: the page keeps a place for them.
PLANNED: dict[str, str] = {
    "mixture": "Section 5.2: Gaussian mixtures with structured precisions fitted to mixtures of Student's t.",
    "newton": "Section 5.3: structured Newton's method against BFGS and Adam, Rosenbrock and Dixon-Price, p = 200.",
}
