"""Section 5.4: a convolutional network trained with structured natural gradients, against Adam and other methods.

The paper has CIFAR-10 and STL-10 and gives neither widths nor steps; here it is a narrow network and 10,000 images of
Fashion-MNIST, so that all methods, each tuned on a grid of eight settings, and five seeds take three to four hours on
one core. Settings are chosen on another seed by the validation loss at the end.

A run that has ended is a line of runs.jsonl beside the other files: delete the line to repeat it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

from reproduction.cnn_data import Images, load, split
from reproduction.cnn_drawing import figure
from reproduction.cnn_methods import METHODS, at_edge, label
from reproduction.cnn_runs import Size, Task, perform_all
from reproduction.cnn_verdicts import notes, verdicts
from reproduction.experiment import Experiment, Plan, Row

TUNING = 100  # the seed of the run is added to this, and to those that are reported: 0 to 4
SMALLER = {"STL-10": {"train": 4000, "valid": 1000, "test": 8000}}  # it has 5,000 images to learn from
QUICK = Size((4, 4, 6, 6), (12, 12), 200, 100, 100, 2, batch=20, seeds=2, settings=2, scales=(1, 2))
PACKAGES = {"torch": "torch", "singd": "singd", "pytorch_optimizer": "pytorch_optimizer", "ivon": "ivon-opt"}
RUNS = "runs.jsonl"
COSTED = ("Adam", "ours, diagonal", "ours, Tri-low", "ours, k = 4", "ours, k = 16", "ours, dense")


def perform(task: Task) -> dict[str, Any]:
    """One run."""
    import torch

    from reproduction import cnn_training as training

    torch.set_num_threads(1)
    images, size, method = _images(task.data), task.size, METHODS[task.method]
    parts = split(images, size.train, size.valid, size.test, task.seed)
    shape = (images.x.shape[1], images.x.shape[2], int(images.y.max()) + 1, size.widths, size.dense)
    torch.manual_seed(0)
    training.warm_up(training.network(*shape), method, parts, size.batch)
    torch.manual_seed(task.seed)  # of the first weights
    made = training.network(*shape)
    return training.train(parts, made, method, method.grid[task.setting], task.seed, task.epochs, size.batch)


@cache
def _images(data: str | None) -> Images:
    return load(data)


def run(plan: Plan) -> Iterator[Row]:
    """Tuning, then the seeds that are reported, in an order that leaves whole seeds when it is stopped."""
    if find_spec("torch") is None:
        raise ImportError("this experiment needs torch: pip install 'esgroup[torch]'")
    data = "digits" if plan.quick and plan.data is None else plan.data
    images = _images(data)
    size = QUICK if plan.quick else Size(**SMALLER.get(images.name, {}))
    yield from _about(images, size)
    for name, method in METHODS.items():
        if not method.available:
            plan.say(f"{name} is skipped: the package {method.package} is not installed")
            yield Row("skipped", method.package, name, 0, 0.0)
    names = [name for name, method in METHODS.items() if method.available]
    path = plan.folder / RUNS if plan.folder else None

    def performed(tasks: list[Task]) -> dict[Task, dict[str, Any]]:
        return perform_all(tasks, path, perform, plan.jobs, plan.say)

    seed = plan.seed + TUNING
    tried_settings = range(0, 8, 8 // size.settings)
    trials = {name: [Task(data, size, name, i, seed, size.epochs) for i in tried_settings] for name in names}
    tried = performed([task for tasks in trials.values() for task in tasks])
    best: dict[str, int] = {}
    for name, tasks in trials.items():
        grid, losses = METHODS[name].grid, {task.setting: _loss(tried[task]) for task in tasks}
        best[name] = min(losses, key=losses.__getitem__)
        for i, loss in losses.items():
            yield Row("tuning", label(grid[i]), name, seed, loss)
        yield Row("chosen", label(grid[best[name]]), name, best[name], float(at_edge(grid, grid[best[name]])))
    seeds = range(plan.seed, plan.seed + size.seeds)
    tasks = [Task(data, size, name, best[name], seed, size.epochs) for seed in seeds for name in names]
    found = performed(tasks)
    for task in tasks:
        yield from _rows(task, found[task])
    yield from _costs(images, size, [name for name in COSTED if name in names])


def _loss(found: dict[str, Any]) -> float:
    """By which settings are chosen: of predictions with samples where there is a posterior, else at the weights."""
    return float(found.get("sampled validation loss", found["validation loss"][-1]))


def _about(images: Images, size: Size) -> Iterator[Row]:
    """What the page says of the images and the network."""
    from reproduction.cnn_training import network, weights

    channels, side, classes = images.x.shape[1], images.x.shape[2], int(images.y.max()) + 1
    for name in ("train", "valid", "test", "epochs", "batch", "seeds"):
        yield Row("size", images.name, name, 0, float(getattr(size, name)))
    shape = f"{'-'.join(map(str, size.widths))} channels, {'-'.join(map(str, size.dense))} dense"
    made = network(channels, side, classes, size.widths, size.dense)
    yield Row("network", shape, "weights", 0, float(weights(made)))
    for module, package in PACKAGES.items():
        if find_spec(module):
            yield Row("version", version(package), package, 0, 0.0)


def _rows(task: Task, found: dict[str, Any]) -> Iterator[Row]:
    """Curves have the seed as their case and the epoch as their place; ends have the seed as their place."""
    case, name = f"seed {task.seed}", task.method
    for part in ("validation loss", "validation accuracy", "seconds"):
        for epoch, value in enumerate(found[part], 1):
            yield Row(part, case, name, epoch, value)
    for part in ("optimizer ms", "step ms"):
        yield Row(part, "", name, task.seed, found[part])
    for kind in ("mean", "samples"):
        for part, value in found.get(kind, {}).items():
            yield Row(f"test {part}", kind, name, task.seed, value)
    if found["failed"]:
        yield Row("failed", found["failed"], name, task.seed, 0.0)


def _costs(images: Images, size: Size, names: list[str]) -> Iterator[Row]:
    """Milliseconds of a step of the method alone, for networks of more and more weights."""
    import torch

    from reproduction import cnn_training as training

    torch.set_num_threads(1)
    channels, side, classes = images.x.shape[1], images.x.shape[2], int(images.y.max()) + 1
    for scale in size.scales:
        widths, dense = (tuple(scale * width for width in layers) for layers in (size.widths, size.dense))
        for name in names:
            made = training.network(channels, side, classes, widths, dense)
            seconds = training.step_seconds(made, METHODS[name], size.train, size.batch, 10)
            yield Row("cost", "", name, training.weights(made), 1000 * seconds)


CNN = Experiment(
    name="cnn",
    title="A convolutional network (section 5.4)",
    about=(
        "Six 3 x 3 convolutions and three dense hidden layers, GELU and average pooling, trained from the same first "
        "weights on the same images in the same order by every method, each with a cosine schedule to zero and the "
        "best of eight settings on another seed."
    ),
    run=run,
    figure=figure,
    verdicts=verdicts,
    notes=notes,
    resumable=True,
)
