import gc
import os
import signal

from hypothesis import settings

# deadline off: the first call of a kernel may compile it; derandomised: a run today equals a run tomorrow
settings.register_profile("fast", max_examples=8, deadline=None, derandomize=True, print_blob=False)
settings.register_profile("thorough", max_examples=200, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fast"))

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # as in a background job of a shell: tests of Ctrl-C would wait for ever
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """Eleven thousand tests are never garbage: to look for it among them took 4 % of the time of short ones."""
    gc.collect()
    gc.freeze()
