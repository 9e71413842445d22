"""Objectives, points and exceptions as bytes for other processes."""

from __future__ import annotations

import pickle
import sys
import traceback
from contextlib import suppress
from multiprocessing import get_context
from typing import Any

from esgroup.driver.calling import Call

INSTALL = 'pip install "esgroup[workers]"'


def cloudpickle_or_none() -> Any:
    """Return the package cloudpickle, which can pickle any function; None if it is not installed."""
    try:
        import cloudpickle
    except ImportError:
        return None
    return cloudpickle


def dumps(thing: Any) -> bytes:
    """Pickle anything, with cloudpickle if pickle cannot."""
    try:
        return pickle.dumps(thing)
    except Exception:
        cloudpickle = cloudpickle_or_none()
        if cloudpickle is None:
            raise
        return bytes(cloudpickle.dumps(thing))


def pickled(call: Call) -> bytes:
    """Return the objective as bytes; raise TypeError with advice if that fails."""
    try:
        if not _can_import_main() and (cloudpickle := cloudpickle_or_none()) is not None:
            return bytes(cloudpickle.dumps(call))
        return dumps(call)
    except Exception as error:
        advice = "define the function at the top level of a module"
        if cloudpickle_or_none() is None:
            advice += f", install cloudpickle, which can send lambdas and closures ({INSTALL})"
        advice += ", or evaluate in threads with executor=concurrent.futures.ThreadPoolExecutor()"
        raise TypeError(f"fun and args cannot be sent to other processes ({error}): {advice}") from error


def _can_import_main() -> bool:
    """Return whether other processes have the definitions of the main module, unlike in a notebook or at a prompt.

    Forked ones always do; others import its file, if it has one. If they cannot, a function of the main module can be
    pickled by name but not found.
    """
    main = sys.modules["__main__"]
    return get_context().get_start_method() == "fork" or any(
        getattr(main, name, None) is not None for name in ("__file__", "__spec__")
    )


def sendable_error(error: BaseException) -> BaseException:
    """Return the exception, or one that describes it if it cannot be sent between processes."""
    with suppress(Exception):
        if type(pickle.loads(dumps(error))) is type(error):
            return error
    text = f"{type(error).__qualname__} in the objective: {error} (it cannot be sent between processes)"
    stand_in = RuntimeError(text)
    stand_in.add_note("".join(traceback.format_exception(error)))
    return stand_in
