"""The order of the tutorials: what most readers need first."""

from __future__ import annotations

ORDER = (
    "failing_simulator.py",
    "few_evaluations.py",
    "named_parameters.py",
    "constraints.py",
    "cluster.py",
    "resuming.py",
    "comparing_methods.py",
    "ten_thousand_coordinates.py",
    "positive_definite.py",
    "several_optima.py",
    "posterior.py",
    "newton.py",
    "torch_network.py",
)


class Place:
    """The place of an example in the gallery; one that is not listed comes last. Sphinx-gallery makes and calls it."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, name: str) -> tuple[int, str]:
        return (ORDER.index(name) if name in ORDER else len(ORDER), name)
