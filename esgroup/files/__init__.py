"""Files that hold numbers and JSON but no code: checkpoints, checks of their contents, and objects as JSON."""
