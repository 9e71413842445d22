"""cma (Hansen and others): the reference implementation of CMA-ES in Python."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from esgroup.compare.methods.method import Method
from esgroup.compare.trial import Trial


@dataclass(frozen=True)
class Cma:
    """`cma.fmin2` with its defaults, silent and without files."""

    diagonal: bool = False
    restricted: bool = False
    bipop: bool = False

    def __call__(self, trial: Trial) -> str:
        import cma

        options: dict[str, Any] = {
            "verbose": -9,
            "seed": trial.seed + 1,  # 0 is the time
            "maxfevals": trial.budget,
            "CMA_diagonal": self.diagonal,
        }
        if trial.bounds is not None:
            options["bounds"] = trial.bounds.T.tolist()
        if self.restricted:
            from cma.restricted_gaussian_sampler import GaussVkDSampler

            options |= GaussVkDSampler.extend_cma_options({})
        more = {"restarts": 9, "bipop": True} if self.bipop else {}
        _, search = cma.fmin2(trial.fun, trial.x0, trial.sigma0, options, **more)
        return f"cma: {', '.join(search.stop()) or 'ended'}"


def _method(name: str, about: str, run: Cma) -> Method:
    return Method(name, run, about, packages=("cma",), extra="compare")


METHODS = (
    _method("cma", "CMA-ES of the package cma", Cma()),
    _method("cma-diagonal", "cma with a diagonal covariance (sep-CMA-ES)", Cma(diagonal=True)),
    _method("cma-vkd", "cma with a diagonal and k directions (VkD-CMA-ES)", Cma(restricted=True)),
    _method("cma-bipop", "cma with restarts, BIPOP", Cma(bipop=True)),
)
