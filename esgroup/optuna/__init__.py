"""A sampler for Optuna: `optuna.create_study(sampler=esgroup.optuna.EsgroupSampler())`.

The sampler depends only on the trials of a study. It has a `Searcher` over the study's parameters and passes it every
finished trial, whoever chose its parameters: this sampler, a sampler in another process that works on the same study,
another kind of sampler, or the user (`enqueue_trial`, `add_trial`). Workers share only the trials, and a sampler that
joins a study, or returns after a crash, passes all trials to its Searcher.

What a trial means to the search:

- completed: its value, with the sign of the direction; infinite values have their rank;
- pruned: worse than every completed trial of its generation. Intermediate values are not used: trials pruned at
  different steps cannot be ranked by them;
- failed: only that it was tried, like NaN in every search.

Constraints, from `constraints_func` or `trial.set_constraint`, come with the values: the search has a multiplier for
each of them, and its samples lie on both sides of those that are active at the minimum.

A trial has a system attribute "esgroup:asked" with the sample from which its parameters were made (`Sample`), so that
every worker can treat it as its own: with the same trials in the same order, all workers have the same search. When a
search has stopped (`Searcher.stop`) the next one starts elsewhere with twice the population; the attribute also says to
which search a trial belongs, so that workers switch together.
"""

from esgroup.optuna.sampler import EsgroupSampler as EsgroupSampler

__all__ = ["EsgroupSampler"]
