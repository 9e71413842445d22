"""The network, and one training run of it by one method, on one thread. Only this file needs torch when it is imported.

A seed determines the images, the first weights and the order of the images, the same for all methods. Seconds are CPU
time of the training steps (gradient, and the step of the method), without looking at the validation images.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from reproduction.cnn_data import Split
from reproduction.cnn_methods import Method, Running, Setting
from reproduction.experiment import Array

BINS = 15  # of confidence, for the calibration error
_CHUNK = 500  # images that are looked at together


def network(
    channels: int, side: int, classes: int, widths: Sequence[int], dense: Sequence[int], init: str = "kaiming"
) -> nn.Sequential:
    """3 x 3 convolutions, the means of 2 x 2 pixels after each pair while the image has 4 or more; dense layers; GELU.

    Weights are those of Kaiming with the gain of ReLU and biases zero, or torch's own first values ("torch").
    """
    if init not in ("kaiming", "torch"):
        raise ValueError(f"init must be 'kaiming' or 'torch', got {init!r}")
    layers: list[nn.Module] = []
    for i, width in enumerate(widths):
        layers += [nn.Conv2d(channels, width, 3, padding=1), nn.GELU()]
        channels = width
        if i % 2 and side >= 4:
            layers.append(nn.AvgPool2d(2))
            side //= 2
    layers.append(nn.Flatten())
    size = channels * side**2
    for width in dense:
        layers += [nn.Linear(size, width), nn.GELU()]
        size = width
    made = nn.Sequential(*layers, nn.Linear(size, classes))
    if init == "kaiming":
        for layer in made:
            if isinstance(layer, nn.Conv2d | nn.Linear):
                nn.init.kaiming_normal_(layer.weight)
                nn.init.zeros_(layer.bias)
    return made


def weights(made: nn.Module) -> int:
    return sum(w.numel() for w in made.parameters())


# ---- what a network is worth ----------------------------------------------------------------------------------------


def probabilities(made: nn.Module, x: Tensor) -> Array:
    """Of the classes, at the weights as they are."""
    with torch.no_grad():
        return torch.cat([torch.softmax(made(part).double(), dim=1) for part in x.split(_CHUNK)]).numpy()


def sampled_probabilities(running: Running, x: Tensor) -> Array:
    """The means over samples of the weights."""
    return torch.cat([running.predict(part).double() for part in x.split(_CHUNK)]).numpy()


def judged(p: Array, y: Array) -> dict[str, float]:
    """Accuracy, mean negative log likelihood, and expected calibration error: sum of |accuracy - confidence| n / N.

    Predictions that are not numbers are worth nothing: no accuracy, an infinite NLL.
    """
    if not np.isfinite(p).all():
        return {"accuracy": 0.0, "NLL": math.inf, "ECE": 1.0}
    confidence, right = p.max(axis=1), p.argmax(axis=1) == y
    of = np.minimum((confidence * BINS).astype(int), BINS - 1)
    gaps = np.bincount(of, right - confidence, BINS)
    nll = -np.log(np.maximum(p[np.arange(len(y)), y], np.finfo(float).tiny)).mean()
    return {"accuracy": float(right.mean()), "NLL": float(nll), "ECE": float(np.abs(gaps).sum() / len(y))}


# ---- one run --------------------------------------------------------------------------------------------------------


@dataclass
class _Clock:
    """CPU seconds of training, and those of them in the method's own step."""

    training: float = 0.0
    stepping: float = 0.0
    steps: int = 0


def train(split: Split, made: nn.Module, method: Method, setting: Setting, seed: int, epochs: int, batch: int) -> dict:
    """Train, look at the validation images after every epoch and at the test images at the end.

    A run whose loss or weights are not numbers ends, and counts as infinitely bad from that epoch on.
    """
    x, valid, test = (torch.from_numpy(part) for part in (split.x, split.valid_x, split.test_x))
    y = torch.from_numpy(split.y)
    running, clock = method.make(made, setting, len(x), batch), _Clock()
    found: dict[str, Any] = {"validation loss": [], "validation accuracy": [], "seconds": []}
    order, total, failed = np.random.default_rng([seed, 2]), epochs * (len(x) // batch), ""
    torch.manual_seed(seed)  # of the samples of weights
    for _ in range(epochs):
        if not failed:
            failed = _epoch(running, x, y, order, batch, total, setting["lr"], clock)
        now = judged(probabilities(made, valid) if not failed else np.array([[math.nan]]), split.valid_y)
        failed = failed or ("the weights are not numbers" if now["NLL"] == math.inf else "")
        found["validation loss"].append(now["NLL"])
        found["validation accuracy"].append(now["accuracy"])
        found["seconds"].append(clock.training)
    found["failed"] = failed
    found["optimizer ms"], found["step ms"] = (
        1000 * seconds / max(clock.steps, 1) for seconds in (clock.stepping, clock.training)
    )
    nothing = np.array([[math.nan]])
    found["mean"] = judged(nothing if failed else probabilities(made, test), split.test_y)
    if method.posterior:
        found["samples"] = judged(nothing if failed else sampled_probabilities(running, test), split.test_y)
        chosen = judged(nothing if failed else sampled_probabilities(running, valid), split.valid_y)
        found["sampled validation loss"] = chosen["NLL"]
    return found


def _epoch(
    running: Running, x: Tensor, y: Tensor, order: np.random.Generator, batch: int, total: int, lr: float, clock: _Clock
) -> str:
    """One epoch under the cosine schedule; why it failed, or nothing."""
    shuffled = torch.from_numpy(order.permutation(len(x)))
    for chosen in shuffled[: len(x) // batch * batch].split(batch):
        images, labels = x[chosen], y[chosen]
        begin = time.process_time()
        for group in running.optimizer.param_groups:
            group["lr"] = lr * (1 + math.cos(math.pi * clock.steps / total)) / 2
        running.optimizer.zero_grad()
        with running.gradient():
            loss = cross_entropy(running.network(images), labels)
            loss.backward()
        ready = time.process_time()
        try:
            running.step()
        except torch.linalg.LinAlgError as error:
            return f"step {clock.steps}: {error}"
        end = time.process_time()
        clock.training += end - begin
        clock.stepping += end - ready
        clock.steps += 1
        if not math.isfinite(loss.item()):
            return f"the loss is not a number in step {clock.steps}"
    return ""


def warm_up(made: nn.Module, method: Method, split: Split, batch: int) -> None:
    """Two steps on a network that is thrown away: modules are loaded before anything is timed."""
    running = method.make(made, method.grid[0], len(split.x), batch)
    x, y = torch.from_numpy(split.x[: 2 * batch]), torch.from_numpy(split.y[: 2 * batch])
    _epoch(running, x, y, np.random.default_rng(0), batch, 2, method.grid[0]["lr"], _Clock())


# ---- the cost of a step ---------------------------------------------------------------------------------------------


def step_seconds(made: nn.Module, method: Method, data: int, batch: int, steps: int) -> float:
    """CPU seconds of one step of the method alone, after steps that are not counted, with random gradients."""
    running = method.make(made, method.grid[0], data, batch)
    for w in made.parameters():
        w.grad = 0.01 * torch.randn_like(w)
    for i in range(2 * steps):
        if i == steps:
            begin = time.process_time()
        running.step()
    return (time.process_time() - begin) / steps
