"""Checks of arguments. An error names the argument and says what it must be and what it was."""

from __future__ import annotations

import inspect
import math
import operator
from functools import wraps
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
T = TypeVar("T")

_LONG = 200  # most characters of a value in a message
_FLOAT64 = np.dtype(np.float64)  # comparing two dtypes is faster than comparing one with a type


def real_array(name: str, value: Any, shape: tuple[int | None, ...], *, finite: bool = True) -> Array:
    """Return `value` as a C-contiguous float64 array of finite numbers; None in `shape` allows any length.

    An array that already fits is returned unchanged, never copied or modified. `finite=False` skips the check of all
    numbers, for callers that notice a NaN in their results anyway.
    """
    plain = type(value) is np.ndarray and value.shape == shape and value.dtype == _FLOAT64
    if plain and value.flags.c_contiguous and (not finite or math.isfinite(np.vdot(value, value))):
        return value  # the common case, without further checks
    array = as_float64(name, value)
    if not fits(array.shape, shape):
        wanted = "(" + ", ".join("n" if s is None else str(s) for s in shape) + ("," if len(shape) == 1 else "") + ")"
        raise ValueError(f"{name} must have shape {wanted}, got {array.shape}")
    if finite and not all_finite(array):
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        at = where[0] if len(where) == 1 else where
        raise ValueError(f"{name} must be finite, got {array[where]} at index {at}")
    return array


def all_finite(array: Array) -> bool:
    """Return whether every number is finite; a single dot product suffices unless it overflows."""
    return math.isfinite(np.vdot(array, array)) or bool(np.isfinite(array).all())


def fits(got: tuple[int, ...], shape: tuple[int | None, ...]) -> bool:
    """Return whether an array of shape `got` matches a shape in which None allows any length."""
    return len(got) == len(shape) and all(s is None or s == g for s, g in zip(shape, got, strict=True))


def as_float64(name: str, value: Any) -> Array:
    """Return `value` as a C-contiguous float64 array of any shape and any numbers."""
    if type(value) is np.ndarray and value.dtype == _FLOAT64 and value.flags.c_contiguous:
        return value
    if isinstance(value, np.ma.MaskedArray):
        raise ValueError(f"{name} must be a plain array, got a masked one")
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise ValueError(f"{name} must be an array of real numbers, got rows of unequal length") from error
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{name} must be an array of real numbers, got dtype {array.dtype}: {shown(value)}")
    return np.ascontiguousarray(array, dtype=np.float64).reshape(array.shape)


def points(name: str, value: Any, dim: int) -> Array:
    """Return `value` as one point of shape (dim,), or as several points in rows of shape (n, dim)."""
    array = value if type(value) is np.ndarray else as_float64(name, value)
    if array.ndim not in (1, 2):
        raise ValueError(f"{name} must have shape ({dim},) or (n, {dim}), got {array.shape}")
    return real_array(name, array, (dim,) if array.ndim == 1 else (None, dim))


def real_number(name: str, value: Any, *, positive: bool = False) -> float:
    """Return `value` as a finite float, greater than zero if `positive`."""
    number = value if type(value) is float else _only_number(value)
    if not math.isfinite(number) or (positive and number <= 0):
        raise ValueError(f"{name} must be {'a positive' if positive else 'a'} finite number, got {value!r}")
    return number


def not_negative(name: str, value: Any, *, below: float = math.inf) -> float:
    """Return `value` as a finite float that is at least 0 and below `below`."""
    number = real_number(name, value)
    if not 0 <= number < below:
        limit = "" if below == math.inf else f" and below {below}"
        raise ValueError(f"{name} must be at least 0{limit}, got {value!r}")
    return number


def _only_number(value: Any) -> float:
    try:
        array = as_float64("", value)
    except ValueError:
        return math.nan
    return array.item() if array.size == 1 else math.nan


def whole_number(name: str, value: Any, *, least: int = 0, most: int | None = None) -> int:
    """Return `value` as an int from `least` to `most`."""
    wanted = f"an integer >= {least}" if most is None else f"an integer from {least} to {most}"
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be {wanted}, got {value!r}")
    if number < least or (most is not None and number > most):
        raise ValueError(f"{name} must be {wanted}, got {number}")
    return number


def instance(name: str, value: Any, kind: type) -> None:
    """Raise TypeError unless `value` is an instance of `kind`."""
    if not isinstance(value, kind):
        raise TypeError(f"{name} must be a {kind.__name__}, got {value!r}")


def store_whole_number(frozen: Any, name: str, *, least: int = 0, most: int | None = None) -> None:
    """Check a field of a frozen dataclass and store it as an int: a NumPy integer would overflow in products."""
    object.__setattr__(frozen, name, whole_number(name, getattr(frozen, name), least=least, most=most))


def store_flag(frozen: Any, name: str) -> None:
    """Check a field of a frozen dataclass and store it as a bool."""
    object.__setattr__(frozen, name, flag(name, getattr(frozen, name)))


def flag(name: str, value: Any) -> bool:
    """Return `value` as a bool."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def one_of(name: str, value: Any, *choices: Any) -> None:
    """Check that `value` is one of the choices, and of the same type; strings may be NumPy's."""
    if not any((type(value) is type(choice) or isinstance(value, str)) and value == choice for choice in choices):
        raise ValueError(f"{name} must be {' or '.join(repr(choice) for choice in choices)}, got {value!r}")


def symmetric(name: str, value: Any, dim: int) -> Array:
    """Return `value` as a symmetric (dim, dim) matrix."""
    matrix = real_array(name, value, (dim, dim))
    check_symmetric(name, matrix)
    return symmetric_part(matrix)


def covariance(name: str, value: Any, dim: int) -> Array:
    """Return `value` as a symmetric positive-definite (dim, dim) matrix."""
    matrix = symmetric(name, value, dim)
    positive_roots(name, matrix)
    return matrix


def check_symmetric(name: str, matrices: Array) -> None:
    """Raise an error that names the first matrix that differs from its transpose by more than rounding error."""
    gaps = np.abs(matrices - matrices.swapaxes(-1, -2)).max(axis=(-2, -1), initial=0.0)
    bad = np.flatnonzero(gaps > 1e-10 * np.abs(matrices).max(axis=(-2, -1), initial=0.0))
    if len(bad):
        where = name if matrices.ndim == 2 else f"{name}[{bad[0]}]"
        gap = np.atleast_1d(gaps)[bad[0]]
        raise ValueError(f"{where} must be symmetric, but differs from its transpose by {gap:.3g}")


def positive_roots(name: str, matrices: Array) -> Array:
    """Cholesky factors of symmetric matrices, or an error that names the first that is not positive definite."""
    try:
        return np.asarray(np.linalg.cholesky(matrices), dtype=np.float64)
    except np.linalg.LinAlgError:
        smallest = np.atleast_1d(np.linalg.eigvalsh(matrices)[..., 0])
        worst = int(np.argmin(smallest))
        where = name if matrices.ndim == 2 else f"{name}[{worst}]"
        rounding = " to rounding" if smallest[worst] > 0 else ""
        wrong = f"must be positive definite{rounding}, but its smallest eigenvalue is {smallest[worst]:.3g}"
        raise ValueError(f"{where} {wrong}") from None


def symmetric_part(matrices: Array) -> Array:
    """(X + X^T) / 2."""
    return (matrices + matrices.swapaxes(-1, -2)) / 2


def writeable(name: str, array: Any, shape: tuple[int, ...]) -> Array:
    """Return the array that a caller provides for a result, after checking that it can hold the result."""
    good = isinstance(array, np.ndarray) and array.dtype == _FLOAT64 and array.shape == shape
    if not (good and array.flags.c_contiguous and array.flags.writeable):
        wanted = f"a writeable contiguous float64 array of shape {shape}"
        raise ValueError(f"{name} must be {wanted}, got {_described(array)}")
    return array


def must_not_overlap(name: str, array: Array, other_name: str, other: Array) -> None:
    """Raise ValueError if two arrays may share memory."""
    if np.may_share_memory(array, other):
        raise ValueError(f"{name} must not overlap {other_name} in memory")


def _described(value: Any) -> str:
    if not isinstance(value, np.ndarray):
        return repr(value)
    kind = "" if value.flags.writeable else "read-only "
    kind += "" if value.flags.c_contiguous else "non-contiguous "
    return f"a {kind}{value.dtype} array of shape {value.shape}"


def shown(value: Any) -> str:
    """Return a short description for a message: an array by its shape, anything else by its repr if short."""
    if isinstance(value, np.ndarray) and value.ndim:
        return f"an array of shape {value.shape}{'' if value.dtype.kind in 'fiub' else f' and dtype {value.dtype}'}"
    text = repr(value)
    if len(text) > _LONG and isinstance(value, (list, tuple, dict)):
        return f"a {type(value).__name__} of {len(value)} entries"
    return _shortened(text)


def at(x: Any) -> str:
    """Return the point as part of a message: at x = ..."""
    with np.printoptions(threshold=10, edgeitems=3):
        return f"at x = {_shortened(str(x))}"


def _shortened(text: str) -> str:
    return text if len(text) <= _LONG else f"{text[:_LONG]}..."


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Mark a shared array as read-only, and return it."""
    array.setflags(write=False)
    return array


# ---- names of arguments -----------------------------------------------------------------------------------------

# Other names of arguments. If a function lacks the argument, its name is looked up again.
_ALSO_CALLED = {
    "bounds": "domain limits ranges lb ub lower upper lower_bounds upper_bounds",
    "callback": "callbacks hook on_generation",
    "constraints": "cons constraint",
    "executor": "pool client",
    "fun": "f fn func function objective obj loss target_function",
    "gtol": "tol ftol xtol atol rtol tolx tolfun xatol fatol",
    "integer": "integers integrality int_vars discrete",
    "jac": "grad gradient derivative",
    "log": "log_scale logscale prior",
    "logp": "log_prob log_density logpdf fun",
    "lower": "low lo min minimum",
    "max_evals": "maxfevals maxfev maxfun max_eval max_nfev max_fevals max_evaluations budget n_trials n_calls",
    "max_iters": "maxiter max_iter niter n_iter iterations max_iterations generations max_generations n_generations",
    "max_time": "timeout time_limit maxtime max_seconds",
    "popsize": "pop_size population_size population pop lambda_ lam n_pop",
    "progress": "disp verbose verbosity verb_disp show_progress progress_bar",
    "rng": "seed random_state random_seed generator",
    "sigma0": "sigma sigma_0 std stddev initial_step stepsize scale",
    "start": "x0 default value",
    "target": "ftarget f_target fmin stop_value goal",
    "upper": "high hi max maximum",
    "vectorized": "vectorize batch batched",
    "width": "sigma0",
    "workers": "n_jobs n_workers num_workers nproc n_processes processes cores parallel",
    "x0": "start initial initial_point initial_guess init guess x mean",
}
_MEANT = {other: name for name, others in _ALSO_CALLED.items() for other in others.split()} | {
    **dict.fromkeys(("options", "opts", "inopts"), "pass them as arguments by name, such as max_evals=1000"),
    **dict.fromkeys(("choices", "categories", "values"), "list the options: Choice('a', 'b')"),
    **dict.fromkeys(
        ("momentum", "line_search", "clip", "damping", "precision0", "mean_rate", "schedule", "probes"),
        "for Newton's settings, pass newton=esgroup.newton.NewtonSettings(...) with method='newton'",
    ),
    "gtol": "pass tolerances as stop=esgroup.stopping.TolX(1e-6); for method='newton', newton=NewtonSettings(gtol=1)",
    "n_restarts": "restarts='ipop' or 'bipop' restarts the search, restarts=esgroup.restarts.IPOP(doublings=n) n times",
}
_OF_MINIMIZE = (
    *("fun", "args", "method", "jac", "restarts", "basins", "vectorized", "workers", "executor", "asynchronous"),
    *("on_error", "eval_timeout", "callback", "progress", "history", "checkpoint", "resume"),
)


def explained(owner: T) -> T:
    """Make a function or class suggest the right name for an unknown argument.

    Its signature and its own errors stay unchanged.
    """
    plain: Any = owner.__init__ if isinstance(owner, type) else owner  # type: ignore[misc]
    function, parameters = owner.__name__, inspect.signature(plain).parameters  # type: ignore[attr-defined]
    first = [name for name, one in parameters.items() if one.kind is one.POSITIONAL_OR_KEYWORD]
    kinds = {one.kind for one in parameters.values()}
    most = len(first) if kinds == {inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY} else None

    @wraps(plain)
    def call(*args: Any, **kwargs: Any) -> Any:
        for given in kwargs:
            if given not in parameters:
                raise TypeError(f"{function}() has no argument {given!r}: {_meant(function, given, list(parameters))}")
        if most is not None and len(args) > most:
            wanted = ", ".join(name for name in first if name != "self") or "nothing"
            raise TypeError(f"{function}() takes {wanted} by position, pass the others by name: got {args[most]!r}")
        return plain(*args, **kwargs)

    if not isinstance(owner, type):
        return call  # type: ignore[return-value]
    owner.__init__ = call  # type: ignore[misc]
    return owner


def _meant(function: str, given: str, known: list[str]) -> str:
    """What to do instead of giving an unknown argument."""
    from difflib import get_close_matches

    names = [given.lower()]
    while (meant := _MEANT.get(names[-1])) is not None and meant not in names:
        names.append(meant)
    if own := [name for name in names if name in known]:
        return f"did you mean {own[0]}?"
    for name in names:
        if name in _OF_MINIMIZE or " " in name:
            return name if " " in name else f"esgroup.minimize takes {name}="
    if close := get_close_matches(names[0], known, 1):
        return f"did you mean {close[0]}?"
    if function == "Space":
        return f"name parameters in a dict, Space({{{given!r}: Real(0, 1)}})"
    return f"help({function}) lists its arguments"
