"""Reasons to stop as a stranger writes them."""

from dataclasses import dataclass

import esgroup


@dataclass(frozen=True)
class Quiet(esgroup.stopping.Rule):
    """Holds where the best value of some generations is nearly that of as many before."""

    generations: int
    name = "quiet"
    status = 0

    def look(self, view):
        best = view.record.best
        if len(best) <= self.generations or best[-1 - self.generations] - best[-1] > 1e-3:
            return None
        return f"{self.generations} generations brought less than 0.001"


def enough(search):
    """A plain function, which keeps nothing either."""
    return search.nit >= 7
