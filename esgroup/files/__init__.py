"""Files of numbers and JSON without code: checkpoints, checks of their contents, and objects as JSON."""
