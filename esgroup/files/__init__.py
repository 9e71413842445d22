"""Files that hold numbers and JSON and no code: checkpoints, what is read from them, objects as JSON."""
