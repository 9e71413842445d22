"""Break the core on purpose, one fault at a time, and see whether the fast tests notice.

Each fault replaces one piece of text in a copy of the package; the tests then run against the copy. A fault that no
test notices is a hole in the tests: the script names it and ends with status 1. A copy without any fault is the
control: there the tests must pass.

    python scripts/mutation_check.py               all faults, a few minutes
    python scripts/mutation_check.py --sample 3    three of them, chosen anew every day (or by --seed)
    python scripts/mutation_check.py --only kl     those whose name contains "kl"
"""
# extras: test

from __future__ import annotations

import argparse
import datetime
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
TESTS = [
    "tests/groups",
    "tests/distributions",
    "tests/kernels/test_kernels.py",
    "tests/kernels/test_search_kernels.py",
    "tests/strategies",
    "tests/surrogates",
    "tests/rankings",
    "tests/domains",
    "tests/search/test_runs.py",
    *(f"tests/search/test_{name}.py" for name in ("named", "noise", "models", "options", "recorded", "strangers", "width")),
    "tests/stopping",
    "tests/running/test_interrupts.py",
    "tests/running/test_observers.py",
    "tests/driver/test_asynchronous.py",
    "tests/driver/test_constraints.py",
    "tests/driver/test_minimize_restarts.py",
    "tests/gradients",
    "tests/newton",
    *(f"tests/variational/test_{name}.py" for name in ("batches", "compiled", "iteration", "log_density", "schedule")),
    *(f"tests/compare/test_{name}.py" for name in ("trial", "charts", "statistics", "summary", "records", "execution")),
    "tests/problems",
    "tests/torch",
]

HANGS = 400.0  # seconds after which a fault has been noticed: without one, no stage of the tests takes half as long

# names of tests that are not those of the files they are about; those that end soonest first
TESTED_AS = {
    "bend": ("box", "bounds"),
    "curvature": ("gaussian",),
    "frame": ("frame", "frames"),
    "late": ("strangers",),
    "layers": ("step", "posterior"),
    "ledger": ("strangers", "single_asks", "constrained"),
    "loop": ("observers", "asynchronous"),
    "parameters": ("named",),
    "plan": ("step",),
    "runs": ("runs", "minimize_restarts", "constraints"),
    "looking": ("runs", "stop"),
    "unfinished": ("minimize_checkpoints", "minimize_failures"),
    "in_domain": ("box", "within", "corners", "bounds", "named"),
    "base": ("laws", "within", "strangers"),
    "product": ("named", "constrained"),
    "quadratic": ("laws", "model"),
    "surrogate_step": ("model", "strangers"),
    "step_size": ("evolution",),
    "vector": ("late_points", "corners", "bounds", "rounding", "constrained", "integers"),
}


class Fault(NamedTuple):
    """A piece of text in a file of the package or of the problems, and what it is replaced with."""

    name: str
    file: str
    old: str
    new: str

    def path(self, root: Path) -> Path:
        return root / self.file if self.file.startswith("problems/") else root / "esgroup" / self.file


CONTROL = Fault("no fault: the control", "groups/full.py", "-= 0.5 * shift", "-= 0.5 * shift")
FAULTS = [
    Fault("frame: factor 2 among axes", "kernels/frame.py", "n_[i, j] = 0.5 * g[i, j]", "n_[i, j] = g[i, j]"),
    Fault("frame: from short to long axes", "kernels/frame.py", "elif is_long[j]:", "elif is_long[i]:"),
    Fault("frame: product of borders", "kernels/frame.py", "mixed = gram[i, j] if", "mixed = 0.0 * gram[i, j] if"),
    Fault("frame: M^2/2 of the borders", "kernels/frame.py", "t[i, j] += 0.25", "t[i, j] += 0.5"),
    Fault("frame: short axes not scaled", "kernels/frame.py", "small[i, k + j] = s[i] * r", "small[i, k + j] = r"),
    Fault("frame: the nearest axes kept", "kernels/frame.py", "np.argsort(-np.abs(logs)", "np.argsort(np.abs(logs)"),
    Fault("frame: the inverse in the step of D", "kernels/frame.py", "(s[j] + 1.0 / s[j] - 2.0)", "(2.0 * s[j] - 2.0)"),
    Fault("frame: transpose in the step of D", "kernels/frame.py", "(1.0 / s[j] - 1.0) * (s[m] - 1.0)", "(s[j] - 1.0) ** 2"),
    Fault("frame: the path learns lengths faster", "kernels/frame.py", "(c_1d, weights[i]) if", "(c_1d, faster * weights[i]) if"),
    Fault("frame: -I is missing", "kernels/frame.py", "g[j, j] -= shift", "g[j, j] -= 0.0 * shift"),
    Fault("frame: axes are stretched by s", "kernels/frame.py", "*= root[1 : k + 1] - 1.0", "*= root[1 : k + 1]"),
    Fault("frame: blocks of columns overlap", "kernels/frame.py", "more[i, c - begin]", "more[i, 0]"),
    Fault("frame: the mean's step of the generation before", "kernels/frame.py", "(1.0 - c_s) * former[c]", "(1.0 + c_s) * former[c]"),
    Fault("frame: as much of the worse half", "strategies/frames.py", "0.6 + dim / 1600", "0.9 + dim / 1600"),
    Fault("frame: probes climb", "kernels/frame.py", "* delta[c] - eta *", "* delta[c] + eta *"),
    Fault("frame: the path keeps its coordinates", "kernels/frame.py", "total *= 1.0 / root[1 + j] - 1.0", "total *= 0.0"),
    Fault("frame: rates of directions", "strategies/frames.py", "min(0.5, 5 * factor * c_1)", "min(0.5, factor * c_1)"),
    Fault("frame: one axis less", "strategies/frames.py", "in_use > k - 2", "in_use > k - 1"),
    Fault("frame: probes do not wait", "strategies/frames.py", "e[j] *= 0.5", "e[j] *= 1.0"),
    Fault("frame: shortening on the wrong side", "strategies/frames.py", "small *= np.append(ratios, 1.0)[:, None]", "small *= np.append(ratios, 1.0)"),
    Fault("frame: hand-over without its path", "strategies/frames.py", '"path_s", "path_c", "fade"', '"path_s", "fade"'),
    Fault("frame: a worse median is progress", "strategies/frames.py", "if value < state.course.item(3):", "if value > state.course.item(3):"),
    Fault("frame: the best in place of the median", "search/searcher.py", "ranked[len(ranked) // 2]", "ranked[0]"),
    Fault("frame: what shrank in noise is not widened", "strategies/frames.py", "_WIDENED if", "1.0 if"),
    Fault("frame: the memory of the step size", "strategies/frames.py", "math.sqrt(_SHORT_MEMORY / dim)", "_SHORT_MEMORY / dim"),
    Fault("frame: the tutorial's memory of the step size", "strategies/frames.py", "c_s, d_s = _step_size_rates(", "c_s, d_s = rates.step_size_rates("),
    Fault("frame: an adapted step is twice as long", "strategies/frames.py", "+ 0.25 * square", "+ 0.5 * square"),
    Fault("frame: averages are not carried along", "strategies/frames.py", "moved = inside @ rows + (", "moved = rows + 0.0 * ("),
    Fault("frame: axes fade as fast at every rate", "strategies/frames.py", "rate * own.fading", "own.fading"),
    Fault("frame: axes come as fast at every rate", "strategies/frames.py", "+= rate * own.c_c, n", "+= own.c_c, n"),
    Fault("frame: noise that is averaged gives it up", "strategies/frames.py", "return self.adaptation is None and bool(", "return bool("),
    Fault("frame: the published step grows axes with all others", "groups/frame.py", "(shift + 2.0 * m) * np.eye(k)", "shift * np.eye(k)"),
    Fault("frame: the published rate by degrees of freedom", "strategies/frames.py", "3 * dim * (k + 1)) // 2", "2 * dim * (k + 1)) // 2"),
    Fault("frame: a model's step of D is not taken from the axes", "strategies/frames.py", "image = np.exp(-e)[:, None]", "image = np.ones((len(e), 1))"),
    Fault("frame: a model's step of D is twice as long", "strategies/frames.py", "((q @ vectors) ** 2 @ logs @ basis", "((q @ vectors) ** 2 @ (2 * logs) @ basis"),
    Fault("frame: the widest window", "groups/frame.py", "np.argmin([window.var()", "np.argmax([window.var()"),
    Fault("full: -I is missing", "groups/full.py", "-= 0.5 * shift", "-= 0.0 * shift"),
    Fault("full: factor 2 in C", "groups/full.py", "right * (0.5 * weights)", "right * (1.0 * weights)"),
    Fault("full: lost transpose in apply", "groups/full.py", "return x @ self._square(a).T", "return x @ self._square(a)"),
    Fault("full: M^2/2 dropped from the fused step", "groups/full.py", "core = weighted @ z.T", "core = 0 * weighted @ z.T"),
    Fault("full: identity term of the fused step", "groups/full.py", "+ 0.125 * shift**2, y", "+ 0.25 * shift**2, y"),
    Fault("h: M^2/2 dropped", "groups/hooks.py", " + 0.5 * self._product(m, m)", ""),
    Fault("h: on the wrong side", "groups/hooks.py", "self._product(a, self._h(m))", "self._product(self._h(m), a)"),
    Fault("hooks: norm of the packed numbers", "groups/hooks.py", "float(self._squared_row_norms(a).sum())", "float(a @ a)"),
    Fault("hooks: exp without the norm of the matrix", "groups/hooks.py", "max(self.dim, frobenius)", "self.dim"),
    Fault("diagonal: factor 2", "kernels/diagonal.py", "w = 0.5 * weights[i]", "w = weights[i]"),
    Fault("bordered: C is 1/2 beside the block", "kernels/bordered.py", "factor = w * left[i, f + s]", "factor = half * left[i, f + s]"),
    Fault("bordered: sign in elimination", "kernels/bordered.py", "out[i, l + r] -= total", "out[i, l + r] += total"),
    Fault("bordered: corner of a product", "kernels/bordered.py", "out[at_x + r * k + s] += total", "out[at_x + r * k + s] += 0.5 * total"),
    Fault("bordered: fused step without M^2/2 beside the block", "kernels/bordered.py", "factor, row = 0.5 * m_f[t, s]", "factor, row = 0.0 * m_f[t, s]"),
    Fault("bordered: fused step forgets a corner", "kernels/bordered.py", "total = corner_m[r, s]", "total = 0.0 * corner_m[r, s]"),
    Fault("bordered: h without 1/2", "kernels/bordered.py", "h_f[r, s] += 0.5 * m_f[r, t]", "h_f[r, s] += m_f[r, t]"),
    Fault("bordered: determinant without the last block", "groups/bordered.py", " + linalg.log_abs_det(b.last)", ""),
    Fault("bordered: transpose forgets a block", "groups/bordered.py", "b.x.T, b.f.T)", "b.x.T, b.f)"),
    Fault("triangular: diagonal not halved", "groups/triangular.py", "= 0.5 * (block[diagonal, diagonal]", "= 1.0 * (block[diagonal, diagonal]"),
    Fault("triangular: solve is transposed", "groups/triangular.py", "trans_a=not transposed", "trans_a=transposed"),
    Fault("triangular: blocks forget what came before", "groups/triangular.py", "= carried[below] @ weighted", "= 0 * carried[below] @ weighted"),
    Fault("triangular: only the first block is projected", "groups/triangular.py", "range(0, dim, _BLOCK)", "range(0, min(dim, _BLOCK), _BLOCK)"),
    Fault("toeplitz: fit without the count", "groups/toeplitz.py", "cholesky(q * (column", "cholesky((column"),
    Fault("toeplitz: summed, not averaged", "groups/toeplitz.py", "sums / self._lengths[:, None, None]", "sums / self.count"),
    Fault("circulant: frequencies counted once", "groups/circulant.py", "np.full(len(logs), 2)", "np.full(len(logs), 1)"),
    Fault("circulant: local step not symmetric", "groups/circulant.py", "(sums + _reflected(sums)) / (2 *", "(sums + sums) / (2 *"),
    Fault("sparse: wrong mask entry", "groups/sparse.py", "1.0 - 0.5 * self._mutual", "1.0 - 0.5 * (self._rows == self.indices)"),
    Fault("kronecker: scale taken twice", "groups/kronecker.py", "n1 -= t / 4 *", "n1 -= 0 * t / 4 *"),
    Fault("kronecker: fused step without the common scale", "groups/kronecker.py", "/ self.dim - shift) / 2", "/ self.dim - shift) / 4"),
    Fault("kronecker: sizes of the factors swapped", "groups/kronecker.py", "np.repeat(weights / p2, p2), shift)", "np.repeat(weights / p1, p2), shift)"),
    Fault("conjugate: the wrong way round", "groups/conjugate.py", "x @ self.by.T", "x @ self.by"),
    Fault("conjugate: permutation inverted", "groups/conjugate.py", "x[:, self._back]) if", "x[:, self.by]) if"),
    Fault("block diagonal: hub not shifted", "groups/block_diagonal.py", "g.hub + start", "g.hub + 0 * start"),
    Fault("fit: -I is missing", "groups/fit.py", "gradient -= 0.5 *", "gradient -= 0.0 *"),
    Fault("linalg: solve is transposed", "groups/linalg.py", "trans=0 if transposed else 1", "trans=1 if transposed else 0"),
    Fault("gaussian: sign of the precision form", "distributions/gaussian.py", 'self.form == "covariance" else -1.0', 'self.form == "covariance" else 1.0'),
    Fault("gaussian: apply for solve", "distributions/gaussian.py", "return self.group._solve if", "return self.group._apply if"),
    Fault("gaussian: shift of the score", "distributions/gaussian.py", "self._sign * float(weights.sum())", "0.0 * float(weights.sum())"),
    Fault("gaussian: factor 2 of the gradient", "distributions/gaussian.py", "self._sign * (pulled + pulled.T)", "0.5 * self._sign * (pulled + pulled.T)"),
    Fault("gaussian: divergence the wrong way", "distributions/gaussian.py", "(q.root, p.root) if self.form", "(p.root, q.root) if self.form"),
    Fault("gaussian: sign of the entropy weight", "distributions/gaussian.py", "m -= 0.5 * checks", "m += 0.5 * checks"),
    Fault("gaussian: mean moves backwards", "distributions/gaussian.py", "return State(state.mean + self._outward(state.root, delta", "return State(state.mean - self._outward(state.root, delta"),
    Fault("curvature: cross term once", "distributions/curvature.py", "+ 2 * d * (products", "+ d * (products"),
    Fault("curvature: sign of the combination", "distributions/curvature.py", "q = -d * inverse_rows", "q = d * inverse_rows"),
    Fault("full: sign of the carried inverse", "groups/full.py", "down @ pulled, -1.0 / keep", "down @ pulled, 1.0 / keep"),
    Fault("full: carried inverse is transposed in the loop", "kernels/full.py", "add_product(np.ascontiguousarray(z.T), inverse, 0.0, v)", "images(z, inverse, v)"),
    Fault("full: sign of the carried inverse in the loop", "kernels/full.py", "down *= -1.0 / keep", "down *= 1.0 / keep"),
    Fault("full: the path has the weights of samples in the loop", "kernels/full.py", "numbers[1] if i == n - 1 else numbers[0]", "numbers[0]"),
    Fault("full: the last rows of a product are missing", "kernels/full.py", "left[k, r] if k > j else 0.0", "0.0"),
    Fault("full: the flow's root and its inverse are exchanged", "kernels/full.py", "add_product(back, inverses[dim:], 0.0, b)", "add_product(forth, inverses[dim:], 0.0, b)"),
    Fault("full: the flow ends too early", "kernels/full.py", "while change > 1e-9:", "while change > 1e-2:"),
    Fault("evolution: numbers of the loop in another order", "strategies/evolution.py", "drive, constants.chi, *constants.decoding", "constants.chi, drive, *constants.decoding"),
    Fault("evolution: two-point steps in the loop", "strategies/two_point.py", "    def mark(", "    def drive(self, constants):\n        return constants.drive\n\n    def mark("),
    Fault("flow: the samples do not stay in place", "groups/hooks.py", "            z = self._solve(step, z)\n", ""),
    Fault("flow: the rate is forgotten", "groups/hooks.py", "return -math.log1p(-shift) / shift if", "return 1.0 if"),
    Fault("flow: no midpoint", "groups/hooks.py", "self._h(0.5 * self._project(z, z, weights, shift)), z)", "self._h(0.0 * self._project(z, z, weights, shift)), z)"),
    Fault("flow: no square root", "groups/full.py", "(vectors * np.sqrt(values)) @ vectors.T", "(vectors * values) @ vectors.T"),
    Fault("flow: A^-1 is not carried along", "strategies/evolution.py", "self.group._product(self.group._inverse(step), state.inverse)", "self.group._product(step, state.inverse)"),
    Fault("rates: the damping does not follow the population", "strategies/rates.py", "0.55 + 0.3 * mu_eff / dim", "0.55 + 0.0 * mu_eff / dim"),
    Fault("adaptation: rates fall where values are smooth", "strategies/adaptation.py", "if noise > 0 and noisy else math.inf", "if noise > 0 else math.inf"),
    Fault("adaptation: q of independent values is not 1", "strategies/adaptation.py", "3 * abs(one - near)", "6 * abs(one - near)"),
    Fault("adaptation: the near sample is the other way", "strategies/adaptation.py", "between = z[-2] + z[-1]", "between = z[-2] - z[-1]"),
    Fault("adaptation: the near sample has another length", "strategies/adaptation.py", "np.linalg.norm(z[-2]) / np.linalg.norm(between)", "np.sqrt(z.shape[1]) / np.linalg.norm(between)"),
    Fault("adaptation: samples of two generations are compared", "strategies/adaptation.py", "if a @ b < 0.5 *", "if a @ b < -2.0 *"),
    Fault("noise: a trend of values looks noisy", "stopping/values.py", "> INDEPENDENT * total", "> 0.0 * total"),
    Fault("noise: rounding looks noisy", "stopping/values.py", "<= ROUNDING * np.abs(median / 2).max()", "< 0.0"),
    Fault("rates: the worse half at every population", "strategies/rates.py", "min(1.0, 10 * dim / (3 * mu_eff))", "1.0"),
    Fault("rates: d_s without the square root", "strategies/rates.py", "max(0.0, math.sqrt(max(0.0, mu_eff - 1) / (dim + 1)) - 1)", "max(0.0, max(0.0, mu_eff - 1) / (dim + 1) - 1)"),
    Fault("rates: sign of the mean's negative weights", "strategies/rates.py", "better + negative_mean * worse", "better - negative_mean * worse"),
    Fault("rates: mu_eff of the root in the paths", "strategies/recombination.py", "c_1, c_mu, mass, threshold * chi", "c_1, c_mu, mu_eff, threshold * chi"),
    Fault("evolution: weights of D stay clipped", "strategies/evolution.py", "factor = rate / clip", "factor = rate"),
    Fault("evolution: step size corrected the wrong way", "strategies/adaptation.py", "*= before / rates[0]", "*= rates[0] / before"),
    Fault("decoding: the trend keeps q instead of its square", "kernels/decoding.py", "* trend[dim + 1] + rate * rate", "* trend[dim + 1] + rate"),
    Fault("decoding: the gate is open without a signal", "kernels/decoding.py", "slope * (ratio - 1.0 -", "slope * (ratio + 1.0 -"),
    Fault("decoding: the gate never opens", "kernels/decoding.py", "min(1.0, max(least", "min(least, max(least"),
    Fault("decoding: samples learn D as slowly as the path", "strategies/rates.py", "min(0.2, 3 * factor * c_mu)", "min(0.2, factor * c_mu)"),
    Fault("width: no floor", "strategies/vector.py", "*= NARROWEST / relative.max()", "*= 1.0"),
    Fault("width: a floor under the narrowest coordinate", "strategies/vector.py", "0.0 < relative.max() < NARROWEST and", "0.0 < relative.min() < NARROWEST and"),
    Fault("width: A shrinks in place of sigma", "strategies/vector.py", ".max() < _DRIFTED:\n                self.evolution.refresh", ".max() < 0.0:\n                self.evolution.refresh"),
    Fault("width: smooth functions wait as well", "stopping/values.py", "* narrowness**1.5", "* narrowness**2.5"),
    Fault("width: nobody waits", "stopping/values.py", "_median(recent[:span]) < _median(recent[span:])", "False"),
    Fault("decoding: information of rows for columns", "strategies/decoding.py", "group._squared_column_norms(inverse)", "group._squared_row_norms(inverse)"),
    Fault("two-point: the rank behind is taken for the one ahead", "strategies/two_point.py", "(behind - ahead)", "(ahead - behind)"),
    Fault("two-point: the move is not whitened", "strategies/two_point.py", "group._solve(root, (memory[:-1] / scale)[None])[0]", "(memory[:-1] / scale).copy()"),
    Fault("two-point: no smoothing", "strategies/two_point.py", "memory[-1] += self.c * (", "memory[-1] += 1.0 * ("),
    Fault("step size: exponent without chi", "strategies/step_size.py", "moved.path_length / constants.chi - 1.0", "moved.path_length - 1.0"),
    Fault("ledger: the newest of equal points first", "search/ledger.py", "in self._by_point.get(key, ()) if place.row", "in reversed(self._by_point.get(key, ())) if place.row"),
    Fault("ledger: the reserve outlives its distribution", "search/ledger.py", "        self.nit += 1\n        self.reserve = None\n", "        self.nit += 1\n"),
    Fault("late: late points keep their tags", "search/late.py", "late.append(i)\n", "late.append(i)\n            tags[i] = place.tag\n"),
    Fault("late: lag is not squared", "search/late.py", "max(1.0, lag) ** 2", "max(1.0, lag)"),
    Fault("late: points that are too late move", "search/late.py", "moving.append(age <= latest)", "moving.append(True)"),
    Fault("evolution: whole gaps for rounding", "strategies/evolution.py", "gaps = 0.5 * np.spacing(", "gaps = np.spacing("),
    Fault("evolution: rounding by rows", "strategies/evolution.py", "gaps**2 * self.group._squared_column_norms(inverse)", "gaps**2 * self.group._squared_row_norms(inverse)"),
    Fault("vector: thin axes of integers count", "strategies/vector.py", "self.evolution.rounding(state, self.shrinking)", "self.evolution.rounding(state)"),
    Fault("vector: thin axes go on", "strategies/vector.py", "if rounding < TOO_THIN or", "if rounding < 10 * TOO_THIN or"),
    Fault("stopping: rules are looked at before the first generation", "stopping/looking.py", "search.rules if nit else ()", "search.rules"),
    Fault("stopping: an answer does not stand until the next look", "stopping/looking.py", "None if last is None else last.reasons", "None"),
    Fault("stopping: rules of another strategy", "stopping/looking.py", "search._looked[0] is not strategy", "search._looked[0] is None"),
    Fault("stopping: tolfun leaves out the last generation", "stopping/tolerances.py", "(reversed(best), span), worst]", "(reversed(best), span)]"),
    Fault("stopping: tolfun looks away too often", "stopping/tolerances.py", "worst - best[-1] > max(", "worst - best[-1] > min("),
    Fault("stopping: tolx at the narrowest coordinate", "stopping/tolerances.py", "view.stds.max()", "view.stds.min()"),
    Fault("stopping: both rules as one of them", "stopping/base.py", 'if first else ""', 'or first'),
    Fault("stopping: a success of one of two is one of either", "stopping/base.py", "max(self.first.status", "min(self.first.status"),
    Fault("stopping: no run after a share of a run", "search/runs.py", "or budget_reasons(search.limits, search):\n            return reasons\n        if any(", "or not self.leaves(search):\n            return reasons\n        if any("),
    Fault("stopping: every rule ends a run only", "search/runs.py", "for rule in search.rules if not rule.of_run", "for rule in search.rules if False"),
    Fault("stopping: a resumed run has no rules", "driver/resume.py", "    saved.rules = given.rules\n", ""),
    Fault("stopping: a contradiction is a success", "stopping/budgets.py", "found.discard(TOLERANCE)", "found.discard(OTHER)"),
    Fault("stopping: stagnation at any age", "stopping/values.py", "max(span, LEAST_AGE)", "span"),
    Fault("vector: points on bounds have their own ranks", "strategies/vector.py", "_ranked(told), told.tags)", "told.order, told.tags)"),
    Fault("vector: points on bounds rank above the middle", "strategies/ranks.py", "middle = (len(others) + 1) // 2", "middle = (len(others) + 1) // 4"),
    Fault("domain: samples drawn again keep old coordinates", "strategies/in_domain.py", "local[bad[:number]] = other.points[good[:number]], other.local[good[:number]]", "local[bad[:number]] = other.points[good[:number]], local[bad[:number]]"),
    Fault("domain: the nearest image is not looked for", "strategies/in_domain.py", "return self.within.encode(points, self.inner.mean(state))", "return self.within.encode(points)"),
    Fault("domain: limits are those of the former popsize", "strategies/in_domain.py", "Relocation(popsize, place, domain.limits(popsize))", "Relocation(popsize, place)"),
    Fault("domain: a place is not scaled", "domains/base.py", "return cls(other.mean - scale * one.mean, scale)", "return cls(other.mean - one.mean, scale)"),
    Fault("domain: deviations of a moved search", "domains/base.py", "return self.scale * stds", "return stds"),
    Fault("domain: diagonals of logarithms are too narrow", "domains/positive.py", "np.sqrt(2.0), 1.0", "1.0, 1.0"),
    Fault("domain: entries of a matrix are not checked", "domains/base.py", "self.entries.check(name, self.encode(points))", "pass"),
    Fault("two points: no pair among mirrored samples", "strategies/two_point.py", "int(mirror[0]) if len(mirror) else 1", "1"),
    Fault("mixture search: marks of samples are lost", "strategies/mixture_descents.py", "tags < UNASKED, UNASKED - tags", "tags < UNASKED, 0.0"),
    Fault("wishart search: a restart as wide as at first", "strategies/wishart.py", "float(state.dof) / to.sigma_factor**2", "float(state.dof)"),
    Fault("domain: what is fixed has a width", "domains/box.py", "return np.where(self.box.fixed, 0.0, stds)", "return stds"),
    Fault("product: inactive choices are told", "strategies/product.py", "np.where(told.active[:, self._width :], categories, UNKNOWN)", "categories"),
    Fault("vector: a corner is a plateau", "strategies/in_domain.py", "return bool((points == points[0]).all())", "return False"),
    Fault("box: bounds far away are tried", "domains/box.py", "< _WITHIN * stds", "< 2 * _WITHIN * stds"),
    Fault("bend: not the nearest mirror", "domains/bend.py", "np.rint((sign * to - mirror) / width)", "np.floor((sign * to - mirror) / width)"),
    Fault("bend: the mirror on the wrong side", "domains/bend.py", "mirror = low - near  # between", "mirror = low + near  # between"),
    Fault("vector: late points are as long as others", "strategies/vector.py", "None if then is None else np.linalg.norm(then, axis=1)", "None"),
    Fault("adaptation: bias of the signal", "strategies/adaptation.py", "beta / (2 - beta) *", "beta *"),
    Fault("sampling: mirror images are copies", "strategies/sampling.py", "np.negative(z[", "np.positive(z["),
    Fault("search: negative weights not scaled", "kernels/search.py", "w < 0.0 and rescaled > 0.0", "w < 0.0 and rescaled > 1.0"),
    Fault("search: h_sigma without its correction", "kernels/search.py", "clip * (c_1 * damped + pull)", "clip * (c_1 + pull)"),
    Fault("search: samples orthogonal to three of four", "kernels/search.py", "in_p / squares[p] if p > m else 0.0", "0.0"),
    Fault("search: orthogonal samples of other lengths", "kernels/search.py", "factor = np.sqrt(total / rest)", "factor = total / rest"),
    Fault("compare: a batch counts as one evaluation", "compare/trial.py", "            self.evals += 1\n", "            self.evals += value == values[0]\n"),
    Fault("compare: gradients cost nothing", "compare/records.py", "return self.evals + self.gradients\n\n\nclass RunRecord", "return self.evals\n\n\nclass RunRecord"),
    Fault("compare: a line that was cut off is half kept", "compare/records.py", 'data[: data.rfind(b"\\n") + 1]', 'data[: data.rfind(b"\\n") + 2]'),
    Fault("compare: a hit needs less than the target", "compare/trial.py", "if gap <= target and", "if gap < target and"),
    Fault("compare: one evaluation more than the budget", "compare/trial.py", "self.evals + self.gradients >= self.budget", "self.evals + self.gradients > self.budget"),
    Fault("compare: gaps without the minimum", "compare/execution.py", "minimum=0.0 if math.isnan(minimum) else minimum", "minimum=0.0"),
    Fault("compare: noise in the record", "compare/trial.py", "values if clean is None else clean", "values"),
    Fault("compare: ERT forgets what failed", "compare/report/statistics.py", "np.where(reached, array, np.asarray(used, dtype=np.float64))", "np.where(reached, array, 0.0)"),
    Fault("compare: bootstrap without the small-sample correction", "compare/report/statistics.py", "-math.sqrt(runs / (runs - 1)) * t", "-1.96"),
    Fault("compare: log chart loses sqrt 2", "compare/charts.py", "off_diagonal=np.sqrt(2.0)", "off_diagonal=2.0"),
    Fault("compare: cholesky gradient halved", "compare/charts.py", "by_factor = (gradient + gradient.T) @ factor", "by_factor = gradient @ factor"),
    Fault("compare: all methods start elsewhere", "compare/execution.py", "zlib.crc32(cell.problem.encode())", "zlib.crc32(cell.method.encode())"),
    Fault("zoo: Rosenbrock's Hessian", "problems/esgroup_problems/valleys.py", "2 + 1200 * head**2 - 400 * tail", "2 + 1200 * head**2 + 400 * tail"),
    Fault("zoo: Dixon-Price's first coordinate", "problems/esgroup_problems/valleys.py", "(x[..., 0] - 1) ** 2 + chain", "(x[..., -1] - 1) ** 2 + chain"),
    Fault("zoo: bands below the diagonal", "problems/esgroup_problems/functions.py", "product[k:] += band * v[:-k]", "product[k:] += 0 * band * v[:-k]"),
    Fault("zoo: noise on the clean function", "problems/esgroup_problems/noisy.py", "noiseless=problem.batch", "noiseless=rows"),
    Fault("wishart: sign of the score of B", "distributions/wishart.py", "np.repeat(-weights, self.dim), -float(weights.sum())", "np.repeat(weights, self.dim), float(weights.sum())"),
    Fault("wishart: -I is missing", "distributions/wishart.py", "-float(weights.sum()))\n        least", "0.0)\n        least"),
    Fault("wishart: pathwise step once, not twice", "distributions/wishart.py", "checks.symmetric_part(2 * product.mean(axis=0))", "checks.symmetric_part(product.mean(axis=0))"),
    Fault("wishart: gradient at the mean halved", "distributions/wishart.py", "_project_dense(2 * self._on_both_sides(", "_project_dense(self._on_both_sides("),
    Fault("wishart: entropy without the volume", "distributions/wishart.py", "/ 2 * gap - volume -", "/ 2 * gap -"),
    Fault("wishart search: variance of the path halved", "strategies/wishart.py", "math.sqrt(c * (2 - c) * mu_eff / 2)", "math.sqrt(c * (2 - c) * mu_eff)"),
    Fault("wishart search: n moves the wrong way", "strategies/wishart.py", "constants.drive * (1 - self._norm", "constants.drive * (self._norm(path) / constants.norm - 1) + 0 * (1 - self._norm"),
    Fault("wishart search: no floor", "strategies/wishart.py", "max(-1.0, min(1.0, exponent))), self.least_dof", "max(-1.0, min(1.0, exponent))), 0.0"),
    Fault("matrix gaussian: rows and columns swapped", "distributions/matrix_gaussian.py", "else Kronecker(rows, cols)", "else Kronecker(cols, rows)"),
    Fault("mixture: responsibilities without 1 / pi", "distributions/mixture.py", "parts - state.log_weights - np.logaddexp", "parts - np.logaddexp"),
    Fault("mixture: logits against the first component", "distributions/mixture.py", "ratios[:, :-1] - ratios[:, -1:]", "ratios[:, :-1] - ratios[:, :1]"),
    Fault("mixture: spread of the means in the covariance", "distributions/mixture.py", "(pi * gaps.T) @ gaps", "0 * (pi * gaps.T) @ gaps"),
    Fault("mixture search: a hill is a valley", "strategies/mixture_optima.py", "between.max() < max(start, end)", "between.max() > max(start, end)"),
    Fault("mixture search: scouts on the near side", "strategies/mixture_scouts.py", "(scaled[first] + steps + noise)", "(scaled[first] - steps + noise)"),
    Fault("mixture search: scouts only near known optima", "strategies/mixture_scouts.py", "gaps.min(axis=1) < rng.random", "gaps.min(axis=1) > rng.random"),
    Fault("mixture search: ball of another size", "strategies/mixture_scouts.py", "(gaps**2).sum(axis=2) / along", "(gaps**2).sum(axis=2) * along"),
    Fault("mixture search: points of an earlier probe count", "strategies/mixture.py", "[owners] == numbers", "[owners] >= numbers"),
    Fault("mixture search: late points of a probe are lost", "strategies/mixture.py", "short[probes, 1:3] = then[probes, 1:3]", "short[probes, 1:2] = then[probes, 1:2]"),
    Fault("mixture search: impatient", "strategies/mixture.py", "20 + 20 * max(self.count, known)", "20 + 5 * max(self.count, known)"),
    Fault("mixture search: values of another optimum", "strategies/mixture_optima.py", "nearer = distances < nearest[rows]", "nearer = distances > -1"),
    Fault("univariate search: the location moves backwards", "strategies/univariate.py", "change = step * np.array", "change = -step * np.array"),
    Fault("categorical: the score forgets its mean", "distributions/categorical.py", "return hot - state.probabilities", "return hot"),
    Fault("categorical: a step without the floor's share", "distributions/categorical.py", "room = 1 - self.sums(least)", "room = 1 + 0 * self.sums(least)"),
    Fault("categorical search: probabilities move away", "strategies/categorical.py", "hot - state.probabilities * total", "state.probabilities * total - hot"),
    Fault("categorical search: the path is not white", "strategies/categorical.py", "* g / np.sqrt(q)", "* g / q"),
    Fault("categorical search: rates fall where they should grow", "strategies/categorical.py", "b * (length / SIGNAL - expected)", "b * (expected - length / SIGNAL)"),
    Fault("space: inactive numbers become narrow", "strategies/vector.py", "** (1 - a)", "** (0 * a)"),
    Fault("space: bad points with rare options keep their ranks", "strategies/product.py", "rare[: (len(order) + 1) // 2] = False", "rare[:] = False"),
    Fault("space: angles do not see the seam", "space/parameters.py", "u[:, self.angle] += TURN * turns", "u[:, self.angle] += 0 * turns"),
    Fault("space: conditions are not transitive", "space/named.py", "on[:, parent] & (rows", "(rows"),
    Fault("lagrangian: twice the tolerance", "rankings/lagrangian.py", "np.where(violated > self.tolerances", "np.where(violated > 2 * self.tolerances"),
    Fault("lagrangian: violations in units of their own", "rankings/lagrangian.py", "violated * self._weights, 0.0", "violated, 0.0"),
    Fault("lagrangian: scores in units of the first generation", "rankings/lagrangian.py", "else state.units[0]\n", "else 1.0\n"),
    Fault("lagrangian: multipliers in the unit of f alone", "rankings/lagrangian.py", "state.multipliers * units[0] / units[1:]", "state.multipliers * units[0]"),
    Fault("lagrangian: Newton steps by the wrong residual", "rankings/least_squares.py", "left = wanted - steep @ y", "left = wanted + steep @ y"),
    Fault("lagrangian: multipliers of many constraints without weights", "rankings/least_squares.py", "return left / weights, y", "return left, y"),
    Fault("run: all observers must agree to end it", "running/loop.py", "if any(asked):", "if all(asked):"),
    Fault("run: open after an interrupt", "running/interrupts.py", "                self.open = False\n                raise", "                raise"),
    Fault("asynchronous: what is out at the end is lost", "driver/asynchronous.py", "return bool(self._out or self._told)", "return False"),
    Fault("asynchronous: limits wait for the next move", "driver/asynchronous.py", "if small and not budget_reasons(search.limits, search):", "if small:"),
    Fault("restarts: a cap for all variables together", "search/runs.py", "WITHOUT_BUDGET * self.first.size", "WITHOUT_BUDGET"),
    Fault("stopping: values of one generation only", "stopping/values.py", "low, high = min(first, ranked[0]), max(first, self.worst)", "low, high = ranked[0], self.worst"),
    Fault("lagrangian: psi without its half", "rankings/lagrangian.py", "(multipliers + penalties * g / 2) * g", "(multipliers + penalties * g) * g"),
    Fault("lagrangian: a jump at the kink", "rankings/lagrangian.py", "-(multipliers**2) / (2 * penalties)", "-(multipliers**2) / penalties"),
    Fault("lagrangian: half the curvature in models", "rankings/least_squares.py", "2 * slopes[-1] / norm", "slopes[-1] / norm"),
    Fault("lagrangian: another ridge with few points", "rankings/least_squares.py", "left @ left.T + ridge", "left @ left.T + 2 * ridge"),
    Fault("lagrangian: equalities never pull the other way", "rankings/least_squares.py", "found[both_signs] -= both[m:]", "found[both_signs] -= 0 * both[m:]"),
    Fault("lagrangian: the slope of f with the wrong sign", "rankings/lagrangian.py", "(offsets - slopes @ gradient / curvature)", "(offsets + slopes @ gradient / curvature)"),
    Fault("lagrangian: curved constraints without effect", "rankings/lagrangian.py", "fitted_curvature = models.curvatures[0] + float(multipliers @ models.curvatures[1:])", "fitted_curvature = models.curvatures[0]"),
    Fault("lagrangian: concave Lagrangians are not held", "rankings/lagrangian.py", "-_CONCAVE * bent", "_CONCAVE * bent"),
    Fault("lagrangian: inner points outside", "rankings/lagrangian.py", "np.where(equal, 0.0, state.margin.item())", "np.where(equal, 0.0, -state.margin.item())"),
    Fault("constrained: values of other points", "rankings/lagrangian.py", "strategy.coordinates(distribution).of(state.points)", "strategy.model_coordinates(distribution, state.points[::-1])"),
    Fault("vector: integers at rest move the wrong way", "strategies/vector_coordinates.py", "others = y[:, resting] - np.rint(mean[resting])", "others = y[:, resting] + np.rint(mean[resting])"),
    Fault("vector: rows of integers are columns", "strategies/vector_coordinates.py", "rows = self.strategy.group._apply_transposed(self.state.root", "rows = self.strategy.group._apply(self.state.root"),
    Fault("rest: the same optimum again counts once", "strategies/integers.py", "fruitless + 1.0 + again", "fruitless + 1.0"),
    Fault("rest: widened about the mean", "strategies/vector.py", "mean = state.mean if told.record is None else told.record", "mean = state.mean"),
    Fault("rest: names forget the best point", "strategies/product.py", "record=None if told.record is None else told.record[: self._width]", "record=None"),
    Fault("rest: penalties stay", "rankings/lagrangian.py", "0.25) < _NARROW**2", "0.25) < 0.0"),
    Fault("rest: infeasible points count", "rankings/lagrangian.py", "outcomes[:, 1:]) == 0.0)", "outcomes[:, 1:]) >= 0.0)"),
    Fault("lagrangian: infeasible points may be the best", "rankings/lagrangian.py", "np.lexsort((compared[:, 0], self.violation(compared[:, 1:])))", "np.lexsort((self.violation(compared[:, 1:]), compared[:, 0]))"),
    Fault("restarts: multipliers are those of the last run", "search/runs.py", "self.best is not None and np.array_equal(", "False and np.array_equal("),
    Fault("restarts: late values of an earlier run move the present one", "search/searcher.py", "place is not None and place.asked.run < ledger.run for place in found]", "False for place in found]"),
    Fault("restarts: looks go on from the run before", "stopping/looking.py", "ledger.nit - ledger.began.nit, ledger.record.looks", "ledger.nit, ledger.record.looks"),
    Fault("restarts: the record goes on", "search/ledger.py", "self.ranking.start(self.injected.shape[1:]), Record()", "self.ranking.start(self.injected.shape[1:]), self.record"),
    Fault("restarts: plans take numbers before a run begins", "search/runs.py", "copy.deepcopy(self.rng), search.accepts", "self.rng, search.accepts"),
    Fault("unfinished: known values count twice", "driver/unfinished.py", "search.ledger.rewind(self.before)", "pass"),
    Fault("ranking: ties are for the newest", "rankings/plain.py", "value < than.item(0)", "value <= than.item(0)"),
    Fault("ranking: what is not feasible is remembered as it is", "search/searcher.py", "np.where(counts, values, math.inf)", "values"),
    Fault("ranking: tried points have a sample's coordinates", "rankings/lagrangian.py", "if not strategy.traits.knows_inner:", "if False:"),
    Fault("ranking: steps of the variance", "strategies/coordinates.py", "point[varies] += stds[varies] * z", "point[varies] += stds[varies] ** 2 * z"),
    Fault("ranking: all categories but the first", "strategies/categorical.py", "np.delete(np.arange(size), first) for", "np.delete(np.arange(size), 0) for"),
    Fault("constraints: lower bounds the other way round", "driver/constraints.py", "np.repeat([1.0, 1.0, -1.0]", "np.repeat([1.0, 1.0, 1.0]"),
    Fault("constraints: multipliers of lower bounds are lost", "driver/constraints.py", "np.add.at(total, j, multipliers)", "np.add.at(total, j, (sign + 1) / 2 * multipliers)"),
    Fault("constraints: what changes its length has failed", "driver/constraints.py", "class BadConstraint(NotEvaluated, ValueError)", "class BadConstraint(ValueError)"),
    Fault("univariate search: widths by width^-1", "strategies/univariate.py", "factors[self._sharp] = width**-2", "factors[self._sharp] = width**-1"),
    Fault("stein: mean of the gradients", "gradients/estimators.py", 'function.gradients(points)).mean(axis=0)', 'function.gradients(points)).sum(axis=0)'),
    Fault("stein: Hessian not halved", "gradients/estimators.py", "gradient, hessian / 2)", "gradient, hessian)"),
    Fault("pathwise: baseline of all samples", "gradients/estimators.py", "* (n / (n - 1))", "* 1.0"),
    Fault("reinforce: baseline of all values", "gradients/estimators.py", "(f - f.mean()) / (n - 1))", "(f - f.mean()) / n)"),
    Fault("function: diagonal from probes without signs", "gradients/function.py", "(signs * self.products(x, signs))", "(self.products(x, signs))"),
    Fault("newton: entropy without 1/2", "newton/precision.py", "m - 0.5 * group._local_identity()", "m - group._local_identity()"),
    Fault("newton: the old B", "newton/run.py", "self.precision = self.precision.advance(data)\n        self._move()", "old = self.precision\n        self.precision = old.advance(data)\n        self.precision, new = old, self.precision\n        self._move()\n        self.precision = new"),
    Fault("newton: no shorter step where the last one has overshot", "newton/precision.py", "1.0 / curvature if data.rate * curvature > OVERSHOT else data.rate", "data.rate"),
    Fault("newton: clip of each entry", "newton/precision.py", "m *= self.clip / largest", "m = np.clip(m, -self.clip, self.clip)"),
    Fault("newton: moving block without its coupling", "newton/moving.py", "inverse.T @ (local - coupling @ solution)", "inverse.T @ local"),
    Fault("newton: damping on the diagonal only", "newton/moving.py", "np.maximum(np.abs(e), least) + damping)", "np.maximum(np.abs(e), least))"),
    Fault("posterior: Hessian of log q without its slope", "variational/log_density.py", "total: Array = -np.vecdot(slopes, v)[:, None] * slopes", "total: Array = 0 * slopes"),
    Fault("posterior: logits the other way round", "variational/iteration.py", "(means[:-1] - means[-1])", "(means[-1] - means[:-1])"),
    Fault("batches: the sum over a batch is not scaled", "variational/batches.py", "return len(self) / self.size", "return 1.0"),
    Fault("batches: steps without the prior", "variational/batches.py", "return [(self.prior, 1.0)", "return [(self.prior, 0.0)"),
    Fault("batches: steps without the weight", "variational/batches.py", "(self.data.batch(number, seed)), self.data.weight)]", "(self.data.batch(number, seed)), 1.0)]"),
    Fault("batches: all epochs are alike", "variational/batches.py", "default_rng([seed, epoch])", "default_rng([seed, 0])"),
    Fault("batches: the ELBO leaves the last rows out", "variational/batches.py", "starts = range(0, len(self), self.size)", "starts = range(0, len(self) - self.size + 1, self.size)"),
    Fault("compiled: sign of the gradient", "gradients/rows.py", "tuple(-part for part in found)", "(-found[0], found[1])"),
    Fault("compiled: gamma is forgotten", "variational/iteration.py", "self.gamma if by_hessians else 0.0", "1.0 if by_hessians else 0.0"),
    Fault("compiled: the slope of log q is forgotten", "variational/iteration.py", 'slopes = not getattr(self.estimator, "antithetic", False)', "slopes = False"),
    Fault("schedule: noise of epochs is that of a step", "variational/schedule.py", "spread = block * float(", "spread = float("),
    Fault("posterior: gamma is forgotten", "variational/iteration.py", "sources.append((q, \"q\", self.gamma))", "sources.append((q, \"q\", 1.0))"),
    Fault("networks: the weight of the batch is forgotten", "torch/layers.py", "self.rows.project(columns, seen.weight / p), self.cols.project(rows, seen.weight / d), d, p", "self.rows.project(columns, 1 / p), self.cols.project(rows, 1 / d), d, p"),
    Fault("networks: factors are divided by the wrong side", "torch/layers.py", "self.rows.project(columns, seen.weight / p), self.cols.project(rows, seen.weight / d), d, p", "self.rows.project(columns, seen.weight / d), self.cols.project(rows, seen.weight / p), d, p"),
    Fault("networks: Kronecker factors are divided by the wrong side", "torch/layers.py", "self.rows.project(b, seen.weight / p), self.cols.project(a, seen.weight / d)", "self.rows.project(b, seen.weight / d), self.cols.project(a, seen.weight / p)"),
    Fault("networks: the traces of the sides are exchanged", "torch/layers.py", "self.rows.add_gram(of_rows, roots.rows, trace_cols.", "self.rows.add_gram(of_rows, roots.rows, trace_rows."),
    Fault("networks: the entropy counts twice", "torch/plan.py", "constants.curvature_rate * constants.entropy / 2)", "constants.curvature_rate * constants.entropy)"),
    Fault("networks: damping without the L2 term", "torch/plan.py", "stack.sides(seen, constants.l2 + constants.damping)", "stack.sides(seen, constants.damping)"),
    Fault("networks: vectors forget the entropy", "torch/layers.py", "(squares + ridge) - constants.entropy) *", "(squares + ridge)) *"),
    Fault("networks: samples with the transposed root", "torch/layers.py", "return self.rows.apply_transposed(roots.rows, self.cols.apply_transposed(roots.cols, white).mT).mT", "return self.rows.apply(roots.rows, self.cols.apply(roots.cols, white).mT).mT"),
    Fault("networks: momentum is not corrected", "torch/plan.py", 'correction = 1 / (1 - o["momentum"] ** self.step.clamp(min=1))', 'correction = 1 / (1 - 0.0 ** self.step.clamp(min=1))'),
    Fault("networks: the L2 term leaves the gradient", "torch/plan.py", 'gradient = gradient.add(means, alpha=o["l2"])', 'gradient = gradient.add(means, alpha=0.0)'),
    Fault("networks: the bound on a change is that of the rate alone", "torch/plan.py", "min(rate, LARGEST_CHANGE)", "rate"),
    Fault("networks: the bound on a move of the factors forgets the rate", "torch/layers.py", ".to(local[0].dtype) * rate\n", ".to(local[0].dtype)\n"),
    Fault("networks: a bad gradient is used", "torch/optimizer.py", "        if gate is None:\n", "        if False:\n"),
    Fault("networks: the number of examples is forgotten by samples", "torch/optimizer.py", "positive=True) / self.data_size)", "positive=True))"),
    Fault("tensors: h without its square", "torch/groups.py", "        twice = bmm(n, n)\n        twice.diagonal(dim1=-2, dim2=-1).add_(1)\n        return", "        twice = n + n\n        return"),
    Fault("tensors: the wrong order of division", "torch/groups.py", "p_t = torch.baddbmm(own.p_t, f.mT, p2,", "p_t = torch.baddbmm(own.p_t, f, p2,"),
    Fault("tensors: Toeplitz diagonals are summed", "torch/groups.py", "self.matrix(summed / members", "self.matrix(summed / members.sign()"),
    Fault("frames: the frame turns the other way", "torch/frames.py", "bmm(f.mT, c_t) / d for", "bmm(-f.mT, c_t) / d for"),
    Fault("frames: the tangent is not orthonormal", "torch/frames.py", "(1 + values.clamp_(min=0)).rsqrt()", "(1 + 0 * values.clamp_(min=0)).rsqrt()"),
    Fault("frames: numbers are not carried along", "torch/frames.py", "new_f = bmm(new_f, turn)", "new_f = new_f + 0"),
    Fault("calibration: bins are not weighted", "torch/posterior.py", "gaps.abs().sum() / len(labels)", "gaps.abs().mean() / len(labels)"),
    Fault("model: a change of frame without the curvature of its slope", "surrogates/quadratic_model.py", "slope = slope + _ROOT2 * image", "slope = slope + 0.0 * image"),
    Fault("model: a change of frame turns the slope the wrong way", "surrogates/quadratic_model.py", "slope @ turn, turn.T @ curvature @ turn", "slope @ turn.T, turn.T @ curvature @ turn"),
    Fault("model: the mean of a moved model is its value at the origin", "surrogates/quadratic_model.py", "constant=origin + moved.trace / _ROOT2", "constant=origin"),
    Fault("model: the prior does not know the common curvature", "kernels/quadratic.py", "total *= (wide - 1.0) / n", "total *= 0.0"),
    Fault("model: entries off the diagonal without sqrt(2)", "kernels/quadratic.py", "entry = u[place] * np.sqrt(0.5)", "entry = u[place]"),
    Fault("model: a step of the fit is too long", "kernels/quadratic.py", "float(t_0 * t_0 + t_1 * t_1 + t_2", "float(t_0 * t_0 + t_2"),
    Fault("model: the short memory is the long one", "kernels/quadratic.py", "begin = (padded - min(windows[model], number)) // 4 * 4", "begin = 0"),
    Fault("model: weights are those of rows", "surrogates/quadratic_model.py", "(1.5 * z.shape[1])) ** 2", "(1.5 * z.shape[1]))"),
    Fault("model: no multiplier where the Hessian is indefinite", "surrogates/quadratic_model.py", "least = max(0.0, -lowest)", "least = 0.0"),
    Fault("model: the hard case is left out", "surrogates/quadratic_model.py", "if norm < radius * (1.0 - 1e-6):", "if False:"),
    Fault("model: the root follows the Hessian, not its inverse", "surrogates/quadratic.py", "logs = -0.5 * np.log(e ", "logs = 0.5 * np.log(e "),
    Fault("model: no floor under the Hessian", "surrogates/quadratic.py", "share * mean + floor", "share * mean"),
    Fault("model: the projection of the step has half its size", "strategies/vector_coordinates.py", "basis, basis, 2.0 * logs, 0.0", "basis, basis, logs, 0.0"),
    Fault("model: the frame forgets sigma and D", "strategies/vector_coordinates.py", "/ old_scale, new_scale / old_scale", "/ old_scale, np.ones_like(old_scale)"),
    Fault("model: the frame turns by the transposed inverse", "strategies/vector_coordinates.py", "inverse @ (ratio[:, None]", "inverse.T @ (ratio[:, None]"),
    Fault("model: judged in sample", "strategies/surrogate_step.py", "judge(self.model, known_z, known, new)", "judge(self.surrogate.fit(self.model, known_z, known), known_z, known, new)"),
    Fault("model: values are compared with themselves", "kernels/quadratic.py", "for j in range(i):", "for j in range(i + 1):"),
    Fault("model: failed values are in the archive", "strategies/surrogate_step.py", "~far & (np.abs(values) < _LARGEST)", "~far & ~np.isnan(values)"),
    Fault("model: numbers beyond all bounds stay", "surrogates/quadratic.py", "if not size < _LARGEST * self.dim**2:", "if False:"),
    Fault("model: parts are generations", "strategies/model.py", "least_batch=self.part", "least_batch=self.popsize"),
    Fault("model: generations are parts", "strategies/model.py", "generations=generations, ", ""),
    Fault("model: earlier evaluations count as a generation", "strategies/surrogate_step.py", "self.generation, self.skipped = 0, 1.0", "self.generation, self.skipped = 0, 0.0"),
    Fault("model: auto where evaluations are many", "search/models.py", "max_evals <= FEW * plain.size", "max_evals >= FEW * plain.size"),
    Fault("model: recommended where values come quickly", "search/models.py", "interval <= SLOW", "interval >= SLOW"),
    Fault("model: whole numbers have one", "domains/named.py", "not (len(self.choices) or self.columns.whole.any())", "not len(self.choices)"),
    Fault("model: angles as wide as they like", "domains/named.py", "np.where(angle, _WIDEST, np.inf)", "np.full(number, np.inf)"),
    Fault("model: points of the generation are foreign", "strategies/model.py", "return np.where(known, rows, -1)", "return np.full_like(rows, -1)"),
    Fault("model: a failed trial makes the ball larger", "strategies/surrogate_step.py", "max(least, 0.6 * min(", "max(least, 1.6 * min("),
    Fault("model: points are handed out again", "strategies/model.py", "stages[rows[stages[rows] == NEW]] = ASKED", "stages[rows[stages[rows] == NEW]] = NEW"),
    Fault("model: a failed trial always ends the generation", "strategies/surrogate_step.py", "return better or tau > math.sqrt", "return True or tau > math.sqrt"),
    Fault("model: the first generation moves the mean", "strategies/surrogate_step.py", "                self._fit_if_due(ended=True)\n                self.begin()", "                self._fit_if_due(ended=True)\n                self._step_by_ranks(rows)"),
    Fault("model: judgments are never forgotten", "surrogates/base.py", "judged * (FORGET, FORGET, 1.0)", "judged * (1.0, 1.0, 1.0)"),
    Fault("model: other surrogates are judged in other units", "surrogates/base.py", "/ (size * far[i])", "/ size"),
    Fault("model: of points with other integers", "strategies/vector_coordinates.py", "z[(np.rint(points[:, ~real]) != np.rint(state.mean[~real])).any(axis=1)] = np.nan", "z[:0] = np.nan"),
    Fault("model: of points with other choices", "strategies/product.py", "z[(categories != self.strategy.choices.mean(self.state.choices)).any(axis=1)] = np.nan", "z[:0] = np.nan"),
    Fault("model: no steps by it", "strategies/model.py", "self.inner.coordinates(self.inner.start()).takes_steps and", "False and"),
    Fault("model: the default frame grows", "strategies/coordinates.py", "new_stds / stds", "stds / stds"),
]  # fmt: skip


def mutate(fault: Fault, tree: Path) -> None:
    """A copy of the package and its tests with the fault in it."""
    for name in ("esgroup", "problems", "scripts", "tests"):
        shutil.copytree(ROOT / name, tree / name)  # with times, so that compiled kernels and bytecode are found
    shutil.copy2(ROOT / "pyproject.toml", tree)
    path = fault.path(tree)
    path.write_text(path.read_text().replace(fault.old, fault.new))


def near(fault: Fault) -> list[str]:
    """The files of tests that bear the name of the fault's file or of its subject, or a name in TESTED_AS."""
    path = Path(fault.file)
    subject = re.sub(r"\W+", "_", fault.name.partition(":")[0].lower())
    names = path.stem, subject, *TESTED_AS.get(path.stem, ()), path.stem.partition("_")[0]

    def distance(file: Path) -> list[bool]:
        other = [file.stem != f"test_{name}" for name in names]
        return [all(other[:2]), *other[2:-1], path.parts[0] not in file.parts, *other]

    own = sorted((file for file in _files() if any(_alike(name, file) for name in names)), key=distance)
    return [str(file.relative_to(ROOT)) for file in own]


def _files() -> list[Path]:
    """The files with tests in the order of TESTS; in a folder, those with laws first: they notice the most."""
    found = []
    for test in TESTS:
        path = ROOT / test
        found += sorted(path.glob("test_*.py"), key=lambda file: "laws" not in file.name) if path.is_dir() else [path]
    return found


def _alike(name: str, file: Path) -> bool:
    """Whether a file of tests bears a name: `stopping` is tested in test_stop.py, `model` in test_model_extremes.py."""
    word = file.stem.removeprefix("test_")
    return f"_{name}_" in f"_{word}_" or (len(word) > 3 and name.startswith(word))


def stages(fault: Fault) -> list[list[str]]:
    """All tests: the nearest, then those of the package of the fault, then the others. Most faults end at the first."""
    package = Path(fault.file).parts[0]
    everything = [str(file.relative_to(ROOT)) for file in _files()]
    first = near(fault)
    of_package = [file for file in everything if package in Path(file).parts and file not in first]
    return [part for part in (first, of_package, [file for file in everything if file not in first + of_package]) if part]


def test_that_notices(fault: Fault) -> tuple[str, float]:
    """The first test that fails on the fault, empty if none does; and the seconds it took."""
    start, name = time.perf_counter(), ""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        mutate(fault, tree)
        environment = os.environ | {"PYTHONPATH": f"{tree}{os.pathsep}{tree / 'problems'}", "OPENBLAS_NUM_THREADS": "1"}
        for tests in stages(fault):
            command = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "-p", "no:cacheprovider", *tests]
            try:
                run = subprocess.run(
                    command, cwd=tree, env=environment, capture_output=True, text=True, timeout=HANGS
                )
            except subprocess.TimeoutExpired:
                name = "a test that hangs"
                break
            if run.returncode not in (0, 1, 5):  # neither passed, failed nor all slow: the tests did not run
                raise SystemExit(f"{fault.name}: the tests did not run\n{run.stdout}\n{run.stderr}")
            if run.returncode == 1:
                found = re.search(r"^FAILED (\S+)", run.stdout, re.MULTILINE)
                name = found[1] if found else "a test"
                break
    return name, time.perf_counter() - start


def check_texts() -> None:
    """Every fault must fit the package as it is now."""
    for fault in FAULTS:
        count = fault.path(ROOT).read_text().count(fault.old)
        if count != 1:
            sys.exit(f"{fault.name}: {fault.old!r} stands {count} times in {fault.file}, not once")


def chosen(arguments: argparse.Namespace) -> list[Fault]:
    faults = [fault for fault in FAULTS if arguments.only in fault.name]
    if arguments.sample is None:
        return faults
    seed = datetime.date.today().toordinal() if arguments.seed is None else arguments.seed
    print(f"{arguments.sample} of {len(faults)} faults, --seed {seed}")
    return random.Random(seed).sample(faults, min(arguments.sample, len(faults)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, help="how many faults to try, chosen at random")
    parser.add_argument("--seed", type=int, help="seed of the choice; by default today's date")
    parser.add_argument("--only", default="", help="try the faults whose name contains this text")
    parser.add_argument("--jobs", type=int, default=2, help="how many at a time")
    parser.add_argument("--no-control", action="store_true", help="leave out the control, if all tests have just passed")
    arguments = parser.parse_args()
    check_texts()
    faults = chosen(arguments)
    missed, runs = [], [*([] if arguments.no_control else [CONTROL]), *faults]
    with ThreadPoolExecutor(arguments.jobs) as pool:
        for fault, (test, seconds) in zip(runs, pool.map(test_that_notices, runs), strict=True):
            if fault is CONTROL and test:
                sys.exit(f"the tests fail without any fault: {test}")
            verdict = "passed" if fault is CONTROL else "caught" if test else "MISSED"
            print(f"{verdict:7} {fault.name:48} {seconds:5.0f} s  {test}", flush=True)
            if not test and fault is not CONTROL:
                missed.append(fault.name)
    print(f"{len(faults) - len(missed)} of {len(faults)} faults caught" + "".join(f"\n  missed: {m}" for m in missed))
    sys.exit(1 if missed or not faults else 0)


if __name__ == "__main__":
    main()
