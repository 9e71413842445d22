from reproduction.experiment import Experiment
NEARNESS = Experiment("nearness", "", "", lambda p: [], lambda t, p: None, lambda t: [])
