"""The result of a run, in SciPy's form."""

from __future__ import annotations

from scipy.optimize import OptimizeResult


class Result(OptimizeResult):  # type: ignore[misc]  # SciPy has no types
    """SciPy's, which cannot print an empty dict: that of the reasons while a search runs."""

    def __repr__(self) -> str:
        return repr(OptimizeResult((k, "none yet" if isinstance(v, dict) and not v else v) for k, v in self.items()))
