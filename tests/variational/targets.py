"""Log densities to fit, with all derivatives, of one point and of rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tests.groups.elements import covariance


@dataclass(frozen=True, eq=False)
class NormalTarget:
    """logp(x) = -(x - m)^T H (x - m) / 2 without its constant, -log Z."""

    mean: np.ndarray
    precision: np.ndarray

    @classmethod
    def some(cls, dim: int, seed: int) -> NormalTarget:
        rng = np.random.default_rng(seed)
        return cls(2 * rng.standard_normal(dim), np.linalg.inv(covariance(dim, rng)))

    @property
    def log_z(self) -> float:
        return 0.5 * len(self.mean) * np.log(2 * np.pi) - 0.5 * float(np.linalg.slogdet(self.precision)[1])

    def logp(self, x: np.ndarray) -> float:
        return -0.5 * float((x - self.mean) @ self.precision @ (x - self.mean))

    def jac(self, x: np.ndarray) -> np.ndarray:
        return -self.precision @ (x - self.mean)

    def hessp(self, x: np.ndarray, v: np.ndarray) -> np.ndarray:
        return -self.precision @ v

    def hess(self, x: np.ndarray) -> np.ndarray:
        return -self.precision

    def hess_diag(self, x: np.ndarray) -> np.ndarray:
        return -np.diagonal(self.precision)

    def all_known(self) -> dict:
        return {"jac": self.jac, "hessp": self.hessp, "hess_diag": self.hess_diag}


class Logistic:
    """The breast cancer regression as a log density of rows; `hessp` takes pairs of rows."""

    def __init__(self, signed: np.ndarray) -> None:
        self.signed = signed

    def logp(self, x: np.ndarray) -> np.ndarray:
        return -np.logaddexp(0.0, -(x @ self.signed.T)).sum(axis=1) - 0.5 * (x**2).sum(axis=1)

    def jac(self, x: np.ndarray) -> np.ndarray:
        return self._wrong(x) @ self.signed - x

    def hessp(self, x: np.ndarray, v: np.ndarray) -> np.ndarray:
        return -v - (self._bends(x) * (v @ self.signed.T)) @ self.signed

    def hess_diag(self, x: np.ndarray) -> np.ndarray:
        return -1 - self._bends(x) @ self.signed**2

    def all_known(self) -> dict:
        return {"jac": self.jac, "hessp": self.hessp, "hess_diag": self.hess_diag, "vectorized": True}

    def _wrong(self, x: np.ndarray) -> np.ndarray:
        return 0.5 - 0.5 * np.tanh(0.5 * (x @ self.signed.T))

    def _bends(self, x: np.ndarray) -> np.ndarray:
        wrong = self._wrong(x)
        return wrong * (1 - wrong)
