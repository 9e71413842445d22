"""What structured Newton came to on the command line."""

from __future__ import annotations

from typing import Any

from esgroup.command.outcome import Outcome, plain


class NewtonOutcome(Outcome):
    """A result with counts of derivatives, and no search behind it."""

    def _problem(self) -> str:
        return f"{super()._problem()}, structure {self._structure()}" if self.result is not None else super()._problem()

    def _structure(self) -> str | None:
        return None if self.result is None else self.result.structure

    def _why(self) -> str:
        return "interrupted" if self.interrupted else super()._why()

    def _best(self) -> str:
        return self._value()

    def _cost(self) -> str:
        assert self.result is not None
        values, gradients, products = self.result.nfev, self.result.njev, self.result.nhvp
        counts = f"{values:,} values, {gradients:,} gradients, {products:,} Hessian products"
        return f"{self.result.nit:,} iterations, {counts}, {self.seconds:.3g} s"

    def _fields(self) -> dict[str, Any]:
        assert self.result is not None
        names = ("fun", "x", "jac", "nfev", "njev", "nhvp", "ndiag", "nit", "success", "status", "message", "stop")
        return {name: plain(self.result[name]) for name in names}
