"""The command `esgroup`."""
