"""A sampler for Optuna: `optuna.create_study(sampler=esgroup.optuna.EsgroupSampler())`.

The trials of a study are all that the sampler goes by. It holds a `Searcher` over the study's parameters and tells it
every trial that has finished, whoever has chosen its parameters: this sampler, that of another process which works on
the same study, another kind of sampler, or the user (`enqueue_trial`, `add_trial`). Workers share nothing but the
trials, and a sampler that joins a study, or comes back after a crash, tells its Searcher all that there are.

What a trial says:

- completed: its value, with the sign of the direction; infinite values have their rank;
- pruned: worse than every completed trial of its generation. An intermediate value is no value: trials that were pruned
  at different steps cannot be ranked by them;
- failed: nothing but that it was tried, as NaN does for every search.

Constraints, of `constraints_func` or of `trial.set_constraint`, are told beside values: the search has a multiplier for
each of them, and its samples lie on both sides of those that are active at the minimum.

A trial has a system attribute "esgroup:asked" with the sample from which its parameters were made (`Sample`), so that
every worker can take it as one of its own: told the same trials in the same order, all of them have the same search.
When a search has come to its end (`Searcher.stop`) the next one starts elsewhere with twice the population; the
attribute also says to which of the searches a trial belongs, so that workers change together.
"""

from esgroup.optuna.sampler import EsgroupSampler as EsgroupSampler

__all__ = ["EsgroupSampler"]
