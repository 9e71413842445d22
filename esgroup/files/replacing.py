"""Replacing files as a whole: readers never see a partial file, and an interrupted write leaves the old one."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

from esgroup.files.outage import naming


def replace_text(path: Path, text: str) -> None:
    """Replace the text of a file at once; links and permissions stay."""
    target = path.resolve()
    new = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with naming(path):
            with new.open("w", encoding="utf-8", newline="") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            with contextlib.suppress(FileNotFoundError):
                shutil.copymode(target, new)
            os.replace(new, target)
    except BaseException:
        new.unlink(missing_ok=True)
        raise
