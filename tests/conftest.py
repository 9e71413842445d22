import os

from hypothesis import settings

# deadline off: the first call of a kernel may compile it; derandomised: a run today equals a run tomorrow
settings.register_profile("fast", max_examples=8, deadline=None, derandomize=True, print_blob=False)
settings.register_profile("thorough", max_examples=200, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fast"))
