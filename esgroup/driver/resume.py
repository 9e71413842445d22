"""The checkpoint of a campaign: that of its search, with the rest in the header."""

from __future__ import annotations

import os

import numpy as np

from esgroup.driver.restarted import Campaign
from esgroup.files import npz as files
from esgroup.files.autosave import Contents, FileKeeper, must_exist
from esgroup.search import snapshot_space
from esgroup.search.searcher import Searcher


class Keeper(FileKeeper[Campaign]):
    """Writes a campaign: the file of its search, with the rest in the header."""

    def contents(self, kept: Campaign) -> Contents:
        """The parts of the search and of the campaign."""
        header, arrays = kept.search._parts()
        return "searcher", {**header, "campaign": kept.to_json()}, arrays


def resume_from(path: files.Path | None, campaign: Campaign) -> None:
    """Put a campaign that has not begun where its file says it was."""
    path = must_exist(path, "search")
    with files.reading(path, "searcher") as (header, arrays):
        search = Searcher._from_parts(header, arrays)
        differences = _differences(search, campaign.search)
        if not differences:
            campaign.restore(search, header.get("campaign"))
    if differences:
        raise ValueError(f"the checkpoint {os.fspath(path)!r} must be of the same search, but {differences[0]}")


def _space(search: Searcher) -> str:
    return " x ".join(map(str, search.shape)) + (" coordinates" if len(search.shape) == 1 else " entries")


def _differences(saved: Searcher, given: Searcher) -> list[str]:
    """What makes another search of it; where it starts and when it ends do not."""
    if type(saved) is not type(given):
        return [f"it is over {_space(saved)}, {saved.structure}, and not over {_space(given)}, {given.structure}"]
    if saved.shape != given.shape:
        return [f"it has {_space(saved)} and x0 has {_space(given)}"]
    if hasattr(saved, "strategy"):
        if snapshot_space.describe(saved)[0] == snapshot_space.describe(given)[0]:
            return []
        if saved.structure != given.structure:
            return [f"its distribution is {saved.structure} and not {given.structure}"]
        return [f"its {saved.structure} has other parameters, or its popsize is not {given.popsize}"]
    names = ("lower", "upper", "fixed", "integer")
    spaces = [name for name in names if not np.array_equal(getattr(saved._space, name), getattr(given._space, name))]
    found = [f"its {name} {'coordinates' if name in ('fixed', 'integer') else 'bounds'} are others" for name in spaces]
    if saved.structure != given.structure:
        found.append(f"its structure is {saved.structure} and not {given.structure}")
    if saved._options != given._options:
        found.append(f"its options are {saved._options} and not {given._options}")
    return found
