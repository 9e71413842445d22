"""The outcome of `esgroup run`, as lines of text and as JSON."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from esgroup.plots.axes import size
from esgroup.running.history import structure_name

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.optimize import OptimizeResult

    from esgroup.problem_registry import Task
    from esgroup.search.searcher import Searcher

LABEL = 9  # columns
SHOWN = 5  # variables of the best point that are printed; matrices with up to SHOWN^2 entries are printed whole
MODES = 20  # optima that are printed
NEGLIGIBLE = 1e-12  # share of the largest multiplier: those of inactive constraints shrink, but seldom reach 0


@dataclass(frozen=True, eq=False)
class Outcome:
    """A result with its context; `result` is empty if the run was interrupted before there was one.

    Seconds exclude loading packages and compiling kernels.
    """

    task: Task
    result: OptimizeResult
    search: Searcher | None  # the last search; None before the end of its first generation
    own_seconds: float  # of the method itself
    seconds: float  # with evaluations, files and waiting
    interrupted: bool
    files: dict[str, Path]
    trouble: str | None = None  # what failed after the search
    resumed: bool = False  # whether the seconds leave out earlier sessions

    _method: ClassVar[str] = "search"
    _names: ClassVar[tuple[str, ...]] = (  # fields of a result that go into the JSON, if it has them
        *("fun", "x", "nfev", "nit", "nfailed", "restarts", "success", "status", "message", "stop"),
        *("xmean", "stds", "probabilities", "feasible", "constr_violation"),
    )

    @property
    def all_failed(self) -> bool:
        """Whether there were evaluations and all failed."""
        return bool(0 < self.result.get("nfev", 0) <= self.result.get("nfailed", 0))

    def lines(self) -> list[tuple[str, str]]:
        """Return the lines of text, as pairs of a label and a text."""
        lines = [("problem", self._problem()), ("stopped", self._stop_reason())]
        if self.result.get("nfev"):
            best = "none: all evaluations failed" if self.all_failed else self._best()
            lines += [("best", best), ("at", _point(self.result.x))]
            lines += [("feasible", self._feasibility())] if self._has_constraints and not self.all_failed else []
            lines += [(f"mode {i}", text) for i, text in enumerate(self._modes(), start=1)]
            lines += [("cost", self._cost()), ("time", self._time())]
            lines += [("model", text)] if (text := self._about_model()) else []
        if self.files:
            lines.append(("files", ", ".join(f"{kind} {path}" for kind, path in self.files.items())))
        if self.interrupted and "checkpoint" in self.files:
            lines.append(("continue", "the same command with --resume"))
        return lines

    def json(self) -> dict[str, Any]:
        """Return the result as numbers, strings and lists, with None for NaN and infinities."""
        fields = {"problem": self.task.name, "dim": len(self.task.x0), "structure": self._structure()}
        if self.result:
            fields |= plain(self._fields())
            fields |= {"message": f"Interrupted. {self.result.message}"} if self.interrupted else {}
        files = {kind: str(path) for kind, path in self.files.items()}
        known = {"known_minimum": self.task.minimum, "seconds": round(self.seconds, 4)}
        known["search_seconds"] = round(self.own_seconds, 4)
        return fields | known | {"interrupted": self.interrupted, "files": files}

    def _fields(self) -> dict[str, Any]:
        fields = {name: self.result[name] for name in self._names if name in self.result}
        if self._has_constraints:
            fields |= {"constr": self.result.constr[0], "multipliers": self.result.multipliers[0]}
            fields["active"] = self._active()
        if "modes" in self.result:
            fields["modes"] = [mode._asdict() for mode in self.result.modes]
        return fields

    def _problem(self) -> str:
        shape, structure = self.task.x0.shape, self._structure()
        text = f"{self.task.name}, {size(shape[0], shape)}{' matrices' * (len(shape) > 1)}"
        if structure is None:
            return text
        chosen = self.search is not None and self.search.structure_note and len(shape) == 1
        return f"{text}, structure {structure}" + (" (chosen for you)" if chosen else "")

    def _structure(self) -> str | None:
        return None if self.search is None else structure_name(self.search.structure)

    def _stop_reason(self) -> str:
        if self.interrupted:
            return "interrupted" if self.search is not None else "interrupted in the first generation"
        return "; ".join(f"{name}: {text}" for name, text in self.result.get("stop", {}).items())

    def _best(self) -> str:
        known = "" if self.task.minimum is None else f" (known minimum {self.task.minimum:g})"
        return f"{self.result.fun:.10g}{known}"

    @property
    def _has_constraints(self) -> bool:
        return "constr" in self.result

    def _active(self) -> NDArray[np.intp]:
        """Indices of the constraints that hold the search back: those with a multiplier."""
        sizes = np.abs(self.result.multipliers[0])
        return np.flatnonzero((sizes > 0) & (sizes >= NEGLIGIBLE * sizes.max()))

    def _feasibility(self) -> str:
        active, multipliers, violation = self._active(), self.result.multipliers[0], self.result.constr_violation
        shown = ", ".join(f"g[{j}] {multipliers[j]:.4g}" for j in active[:SHOWN])
        shown += f", … {len(active) - SHOWN} more" * (len(active) > SHOWN)
        text = f"{'yes' if self.result.feasible else 'no'}, largest violation {violation:.3g}"
        held = f"active with multipliers: {shown}" if shown else "none active"
        return f"{text}; {held} (of {len(multipliers)})"

    def _cost(self) -> str:
        nfev, nit, failed, restarts = (self.result[name] for name in ("nfev", "nit", "nfailed", "restarts"))
        parts = [f"{nfev:,} evaluations in {nit:,} generations"]
        parts += [f"{restarts} restart{'s' * (restarts != 1)}"] * (restarts > 0)
        return ", ".join(parts + [f"{failed:,} evaluations failed (NaN)"] * (failed > 0))

    def _time(self) -> str:
        more = "evaluations and files" if self.files else "evaluations"
        since = ", since resuming" if self.resumed else ""
        return f"{self.own_seconds:.3g} s for the {self._method} itself, {self.seconds:.3g} s with {more}{since}"

    def _about_model(self) -> str:
        from esgroup.search import models

        if self.search is None:
            return ""
        return models.remark(self.search, ended=bool(self.result.stop), noisy=self.result.noisy)

    def _modes(self) -> list[str]:
        modes = self.result.get("modes", [])
        lines = [f"{mode.value:.10g} at {_point(mode.point)}, {mode.weight:.0%} of descents" for mode in modes[:MODES]]
        return lines + [f"… {len(modes) - MODES} more"] * (len(modes) > MODES)


class NewtonOutcome(Outcome):
    """The outcome of structured Newton: a result with counts of derivatives, and no Searcher."""

    _method = "method"
    _names = ("fun", "x", "jac", "nfev", "njev", "nhvp", "ndiag", "nit", "success", "status", "message", "stop")

    @property
    def all_failed(self) -> bool:
        """Whether there is no value: Newton stops at once if the value of its start is not a number."""
        return math.isnan(self.result.get("fun", 0.0))

    def _structure(self) -> str | None:
        return self.result.get("structure")

    def _stop_reason(self) -> str:
        return "interrupted" if self.interrupted else super()._stop_reason()

    def _cost(self) -> str:
        values, gradients, products = self.result.nfev, self.result.njev, self.result.nhvp
        counts = f"{values:,} values, {gradients:,} gradients, {products:,} Hessian products"
        return f"{self.result.nit:,} iterations, {counts}"


def _point(x: Any) -> str:
    if isinstance(x, dict):
        return ", ".join(f"{name} = {_entry(value)}" for name, value in x.items())
    if x.ndim > 1:
        return np.array2string(x, precision=6, threshold=SHOWN**2, edgeitems=2, prefix=" " * LABEL)
    shown = ", ".join(f"{value:.6g}" for value in x[:SHOWN])
    return f"[{shown}" + (f", … {len(x) - SHOWN:,} more]" if len(x) > SHOWN else "]")


def _entry(value: Any) -> str:
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        return _point(value)
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def plain(value: Any) -> Any:
    """Convert to JSON types; NaN and infinities become None, and objects of other types their text."""
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, dict):
        return {str(name): plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
