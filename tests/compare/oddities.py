"""Functions and methods that go wrong in one way each."""

import contextlib
import os
import signal
import threading
import time

import numpy as np

from esgroup.compare.methods import Method
from esgroup.compare.trial import Trial


def sphere(x: np.ndarray) -> float:
    return float(x @ x)


def raises(x: np.ndarray) -> float:
    raise ValueError("the simulator says no")


def array_of_one(x: np.ndarray) -> np.ndarray:
    return np.array([x @ x])


def none(x: np.ndarray) -> None:
    return None


def nan(x: np.ndarray) -> float:
    return float("nan")


def text(x: np.ndarray) -> str:
    return "three"


def _raises(trial: Trial) -> str:
    trial.fun(trial.x0)
    raise ZeroDivisionError("by the method")


def _swallows(trial: Trial) -> str:
    for _ in range(10):
        with contextlib.suppress(BaseException):
            trial.fun(trial.x0)
    return "went on regardless"


def _hangs(trial: Trial) -> str:
    trial.fun(trial.x0)
    time.sleep(3600)
    return "never"


def _dies(trial: Trial) -> str:
    if trial.budget > 60:  # not while it is being loaded
        os.kill(os.getpid(), signal.SIGKILL)
    return "unreachable"


def _prints(trial: Trial) -> str:
    print("a method that talks")
    trial.fun(trial.x0)
    return "said it"


def _gives_up(trial: Trial) -> str:
    trial.batch(np.stack([trial.x0, trial.x0 / 2]))
    return "tired"


def _endless(trial: Trial) -> str:
    while True:
        trial.fun(trial.x0)


def _idle(trial: Trial) -> str:
    return "bored"


def _sneaky(trial: Trial) -> None:
    trial.fun(trial.x0)
    if trial.gradient is not None:
        trial.gradient(trial.x0)


def _descends(trial: Trial) -> str:
    assert trial.gradient is not None
    x = trial.x0
    while True:
        trial.fun(x)
        x = x - 1e-4 * trial.gradient(x)


def _leaves_a_bomb(trial: Trial) -> str:
    trial.fun(trial.x0)
    threading.Timer(0.05, os._exit, (9,)).start()
    return "innocent"


raising = Method("raising", _raises, "raises an exception")
swallowing = Method("swallowing", _swallows, "catches everything")
hanging = Method("hanging", _hangs, "never comes back")
dying = Method("dying", _dies, "takes its process with it")
printing = Method("printing", _prints, "prints")
giving_up = Method("giving-up", _gives_up, "stops at once")
endless = Method("endless", _endless, "evaluates for ever")
leaving_a_bomb = Method("leaving-a-bomb", _leaves_a_bomb, "ends its process a little later")
idle = Method("idle", _idle, "does nothing")
sneaky = Method("sneaky", _sneaky, "takes a gradient without saying so, and says nothing at all")  # type: ignore[arg-type]
descending = Method("descending", _descends, "goes downhill, in matrices", spaces=("spd", "matrix"))
endless_itself = Method("endless-itself", _endless, "evaluates matrices for ever", spaces=("spd",))
absent = Method("absent", _gives_up, "is not installed", packages=("no_such_package_at_all",), extra="bench")
not_a_method = 7


def slow_sphere(x: np.ndarray) -> float:
    time.sleep(0.002)
    return float(x @ x)
