"""Objectives in other processes: whether they can be sent there, how errors come back, and a pool of our own."""

from __future__ import annotations

import os
import pickle
import signal
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Future
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from esgroup.checks import Array

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor

Call = Callable[[Array], Any]
Submit = Callable[[Array], "Future[Any]"]


def sendable(where: Any, call: Call) -> Call:
    """Return `call` after checking that it can be sent to the processes of a standard pool (or of its map)."""
    if is_process_pool(getattr(where, "__self__", where)):
        _pickled(call)
    return call


def is_process_pool(pool: Any) -> bool:
    """Return whether this is a process pool of the standard library; looks only at loaded modules, which are slow."""
    kinds = (("concurrent.futures.process", "ProcessPoolExecutor"), ("multiprocessing.pool", "Pool"))
    loaded = [getattr(sys.modules[module], name) for module, name in kinds if module in sys.modules]
    return isinstance(pool, tuple(loaded)) and type(pool).__name__ != "ThreadPool"


def _pickled(call: Call) -> bytes:
    try:
        return pickle.dumps(call)
    except Exception as error:
        advice = (
            "define the function at the top level of a module, or evaluate in threads with "
            "executor=concurrent.futures.ThreadPoolExecutor()"
        )
        raise TypeError(f"fun and args cannot be sent to other processes ({error}): {advice}") from error


@contextmanager
def own_processes(call: Call, workers: int) -> Iterator[Submit]:
    """Yield a function that submits points to new processes; they end with the context, after an interrupt at once."""
    pool = _Processes(_pickled(call), workers)
    try:
        yield pool.submit
    except Exception:
        pool.close()
        raise
    except BaseException:
        pool.kill()
        raise
    pool.close()


class _Processes:
    """A process pool that is replaced after a worker has died; each worker receives the objective once."""

    def __init__(self, payload: bytes, workers: int) -> None:
        self._workers, self._payload = workers, payload
        self._pool = self._make()

    def _make(self) -> ProcessPoolExecutor:
        from concurrent.futures import ProcessPoolExecutor

        return ProcessPoolExecutor(self._workers, initializer=_begin_worker, initargs=(self._payload,))

    def submit(self, x: Array) -> Future[Any]:
        try:
            return self._pool.submit(_work, x)
        except BrokenExecutor:
            self._pool.shutdown(wait=False)
            self._pool = self._make()
            return self._pool.submit(_work, x)

    def close(self) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)

    def kill(self) -> None:
        """Terminate the workers without waiting."""
        processes = list((self._pool._processes or {}).values())  # Python 3.14 has terminate_workers() for this
        self._pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.terminate()


_payload = b""  # in a worker: the pickled objective
_call: Call | None = None  # in a worker: the objective itself


def _begin_worker(payload: bytes) -> None:
    global _payload
    _payload = payload
    # Ctrl-C reaches the workers too: the main process reports it, they just exit
    signal.signal(signal.SIGINT, lambda *_: os._exit(130))


def _work(x: Array) -> Any:
    """Evaluate; the objective is unpickled with the first point, so that an error is reported and kills no worker."""
    global _call
    if _call is None:
        try:
            _call = pickle.loads(_payload)
        except Exception as error:
            advice = "define it in a module that they can import"
            raise TypeError(f"the worker processes cannot load fun ({error}): {advice}") from error
    return task(_call, x, "")


def task(call: Call, x: Array, name: str) -> Any:
    """Return call(x); an exception that cannot be pickled is replaced by one that can."""
    try:
        return call(x)
    except Exception as error:
        if _survives_pickle(error):
            raise
        stand_in = _stand_in(error)
    raise stand_in  # outside of `except`, so that it has no link to the exception that cannot be pickled


def _stand_in(error: Exception) -> RuntimeError:
    import traceback

    text = f"{type(error).__qualname__} in the objective: {error} (it cannot be sent between processes)"
    stand_in = RuntimeError(text)
    stand_in.add_note("".join(traceback.format_exception(error)))
    return stand_in


def _survives_pickle(error: Exception) -> bool:
    try:
        return type(pickle.loads(pickle.dumps(error))) is type(error)
    except Exception:
        return False
