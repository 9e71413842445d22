"""python -m esgroup: the command."""

from esgroup.cli import app

app()
