"""What a check of derivatives found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from esgroup.gradients.taylor import Remainders


class Law(NamedTuple):
    """An equation between derivatives: its relative error, and how large that may be."""

    name: str
    error: float
    tolerance: float

    @property
    def ok(self) -> bool:
        return self.error <= self.tolerance


@dataclass(frozen=True, eq=False)
class DerivativeReport:
    """What was found: `ok`, `problems` as texts, and the data. `str(report)` is a short table."""

    dim: int
    remainders: tuple[Remainders, ...]
    laws: tuple[Law, ...]
    problems: tuple[str, ...]
    unclear: tuple[str, ...] = ()  # remainders that rounding hides before they fall as they should
    notes: tuple[str, ...] = ()  # what the point cannot tell

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        rows = [(r.name, r.fall, f"h^{r.order}", self._word(r.name, r.ok)) for r in self.remainders]
        rows += [(a.name, f"error {a.error:.1e}", f"{a.tolerance:.0e}", self._word(a.name, a.ok)) for a in self.laws]
        width = max((len(row[0]) for row in rows), default=0)
        title = f"derivatives in {self.dim} coordinates: " + ("right" if self.ok else "wrong")
        lines = [f"  {name:<{width}}  {found:<15}  {wanted:<5}  {word}" for name, found, wanted, word in rows]
        return "\n".join([title, *lines, *(f"  {text}" for text in (*self.problems, *self.notes))])

    def _word(self, name: str, ok: bool) -> str:
        return "ok" if ok else "unclear" if name in self.unclear else "WRONG"
