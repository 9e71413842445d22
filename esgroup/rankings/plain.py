"""Ranking by values: the smallest is the best."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from esgroup.checks import Array
from esgroup.rankings.base import Ranking, Scored, register
from esgroup.strategies.base import Indices, Strategy


@register
@dataclass(frozen=True)
class ByValue(Ranking):
    """Only values are told, and points are ranked by them."""

    by_values: ClassVar[bool] = True

    @property
    def about(self) -> str:
        return "no constraints"

    def scores(
        self, state: Any, outcomes: Array, tags: Indices | None, strategy: Strategy, distribution: Any
    ) -> Scored:
        return Scored(state, outcomes[:, 0])

    def best(self, outcomes: Array, than: Array | None = None) -> int | None:
        if not outcomes.size:
            return None
        i = int(outcomes.argmin())
        value = outcomes.item(i)
        if value != value:  # NaN comes first
            good = np.flatnonzero(~np.isnan(outcomes))
            if not good.size:
                return None
            i = int(good[outcomes[good].argmin()])
            value = outcomes.item(i)
        return i if than is None or value < than.item(0) else None
