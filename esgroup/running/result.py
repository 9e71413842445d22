"""The result of a run, as SciPy's `OptimizeResult`."""

from __future__ import annotations

from scipy.optimize import OptimizeResult


class Result(OptimizeResult):  # type: ignore[misc]  # SciPy has no types
    """SciPy's result, which cannot print an empty dict, such as the reasons to stop while a search runs."""

    def __repr__(self) -> str:
        return repr(OptimizeResult((k, "none yet" if isinstance(v, dict) and not v else v) for k, v in self.items()))
