"""python -m esgroup: the command."""

from esgroup.command.cli import app

app()
