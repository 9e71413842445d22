"""The loop of `minimize`, structured Newton and `fit_posterior`: evaluate, tell, observe, until a reason to stop.

However a run ends, values that have arrived are told, then observers end, including the checkpoint writer, and an
exception receives the result so far.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Protocol, TypeVar

from esgroup.running.interrupts import Interrupts
from esgroup.running.observers import Observer, watched

Result = TypeVar("Result", covariant=True)


class Run(Protocol[Result]):
    """A kind of run: it must have `interrupts` and define the first four methods."""

    interrupts: Interrupts

    def goes_on(self) -> bool:
        """Return whether there is no reason to stop; a search may start its next run here."""

    def step(self) -> bool:
        """Evaluate and tell; return whether a generation is complete. Ctrl-C only arrives in `interrupts.allowed`."""

    def stop_for(self, name: str, text: str) -> None:
        """Note an external reason to stop."""

    def result(self) -> Result:
        """Return the result of a finished run, which may need evaluations."""

    def result_so_far(self) -> Result:
        """Return the result at any time, without evaluations."""
        return self.result()

    @property
    def view(self) -> Any:
        """What observers see."""
        return self

    def settle(self) -> None:
        """Tell the values that have arrived, however the run ended."""
        return None


def run_to_end(run: Run[Result], observers: Sequence[Observer]) -> Result:
    """Run until there is a reason to stop, and return the result."""
    view, interrupts = run.view, run.interrupts
    watching = watched(view, *observers)  # a file that cannot be written fails before the first evaluation
    with interrupts:
        try:
            with watching:
                try:
                    while run.goes_on():
                        if run.step() and observers:
                            with interrupts.allowed:
                                asked = [observer.generation(view) for observer in observers]
                            if any(asked):
                                run.stop_for("callback", "stopped by the callback")
                finally:
                    run.settle()
            found = run.result()
            interrupts.let_through()
        except BaseException as error:
            with suppress(AttributeError):  # if the exception takes no attributes
                error.result = run.result_so_far()  # type: ignore[attr-defined]
            raise
    return found
