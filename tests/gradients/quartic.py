"""A quartic function of any dimension whose moments under a Gaussian are known in closed form."""

from typing import NamedTuple

import numpy as np

from esgroup.gradients import Hessians, Products, Values, as_function


class Quartic(NamedTuple):
    """f(x) = sum_t (a s_t^4 + b s_t^3 + c s_t^2 / 2) + l.x with s_t = u_t.x: neither separable nor symmetric."""

    rows: np.ndarray  # u_t, (terms, dim)
    a: np.ndarray
    b: np.ndarray
    c: np.ndarray
    linear: np.ndarray

    @classmethod
    def random(cls, dim: int, rng: np.random.Generator, *, quadratic: bool = False) -> "Quartic":
        rows = rng.standard_normal((dim + 1, dim)) / np.sqrt(dim)
        a, b, c = rng.uniform(-1, 1, (3, dim + 1)) * [[0.1], [0.3], [1.0]]
        return cls(rows, a * (not quadratic), b * (not quadratic), c, rng.standard_normal(dim))

    def fun(self, x: np.ndarray) -> np.ndarray:
        s = x @ self.rows.T
        return s**4 @ self.a + s**3 @ self.b + s**2 @ self.c / 2 + x @ self.linear

    def jac(self, x: np.ndarray) -> np.ndarray:
        s = x @ self.rows.T
        return (4 * self.a * s**3 + 3 * self.b * s**2 + self.c * s) @ self.rows + self.linear

    def bend(self, s: np.ndarray) -> np.ndarray:
        return 12 * self.a * s**2 + 6 * self.b * s + self.c

    def hess(self, x: np.ndarray) -> np.ndarray:
        return (self.rows.T * self.bend(self.rows @ x)) @ self.rows

    def hessp(self, x: np.ndarray, v: np.ndarray) -> np.ndarray:
        return (v @ self.rows.T * self.bend(self.rows @ x)) @ self.rows

    def hess_diag(self, x: np.ndarray) -> np.ndarray:
        return self.bend(self.rows @ x) @ self.rows**2

    # ---- as what is known of it -------------------------------------------------------------------------------------

    @property
    def dim(self) -> int:
        return self.rows.shape[1]

    def values(self) -> Values:
        return as_function(self.fun, self.dim, vectorized=True)

    def gradients(self) -> Values:
        return as_function(self.fun, self.dim, jac=self.jac, vectorized=True)

    def products(self) -> Products:
        return as_function(
            self.fun, self.dim, jac=self.jac, hessp=self.hessp, hess_diag=self.hess_diag, hessp_vectorized=True,
            vectorized=True,
        )  # fmt: skip

    def hessians(self) -> Hessians:
        return as_function(self.fun, self.dim, jac=self.jac, hess=self.hess, vectorized=True)

    # ---- moments under N(mean, sigma): s_t ~ N(m, v) ----------------------------------------------------------------

    def mean_value(self, mean: np.ndarray, sigma: np.ndarray) -> float:
        """E s^2 = m^2 + v, E s^3 = m^3 + 3 m v, E s^4 = m^4 + 6 m^2 v + 3 v^2."""
        m, v = self._law(mean, sigma)
        fourth, third = m**4 + 6 * m**2 * v + 3 * v**2, m**3 + 3 * m * v
        return float(self.a @ fourth + self.b @ third + self.c @ (m**2 + v) / 2 + self.linear @ mean)

    def mean_gradient(self, mean: np.ndarray, sigma: np.ndarray) -> np.ndarray:
        m, v = self._law(mean, sigma)
        inner = 4 * self.a * (m**3 + 3 * m * v) + 3 * self.b * (m**2 + v) + self.c * m
        return inner @ self.rows + self.linear

    def mean_hessian(self, mean: np.ndarray, sigma: np.ndarray) -> np.ndarray:
        m, v = self._law(mean, sigma)
        return (self.rows.T * (12 * self.a * (m**2 + v) + 6 * self.b * m + self.c)) @ self.rows

    def _law(self, mean: np.ndarray, sigma: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.rows @ mean, np.vecdot(self.rows @ sigma, self.rows)
