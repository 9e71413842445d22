"""What a step of `esgroup.torch.StructuredNGD` costs beside Adam's, what it stores, and where it is stable.

    python scripts/bench_networks.py cost        milliseconds and numbers stored, on the network of `reproduce.py cnn`
    python scripts/bench_networks.py growth      milliseconds over the width of the network
    python scripts/bench_networks.py stable      short trainings over rates, dampings, first scales, batch sizes and
                                                 initializations: how many diverge

One thread, batches of 50 images, factors refreshed every 5 steps. Methods take turns in short runs, and the fastest run
of each counts: what else the machine does then disturbs all alike. "stable" needs Fashion-MNIST, as `cnn` does.
"""
# extras: torch sim

# isort: skip_file
from __future__ import annotations

import spaces_threads  # noqa: F401  # before torch is imported

import itertools
import math
import time
from collections.abc import Callable
from typing import Annotated, Any

import numpy as np
import torch
import typer
from esgroup.torch import StructuredNGD
from reproduction.cnn_data import load, split
from reproduction.cnn_training import network, weights
from torch.nn.functional import cross_entropy

torch.set_num_threads(1)
app = typer.Typer(help=__doc__, add_completion=False, no_args_is_help=True, rich_markup_mode=None)

WIDTHS, DENSE = (8, 8, 16, 16, 32, 32), (64, 64, 64)
BATCH, REFRESH, TURNS = 50, 5, 60
STRUCTURES = {
    "diagonal": ("diagonal", "diagonal"),
    "block triangular, k = 4": ("block_triangular:k=4", "block_triangular:k=4"),
    "frame, k = 4": ("diagonal", "frame:k=4"),
    "block triangular, k = 16": ("block_triangular:k=16", "block_triangular:k=16"),
    "frame, k = 16": ("block_triangular:k=4", "frame:k=16"),
    "dense": ("full", "full"),
}
Made = tuple[torch.nn.Module, torch.optim.Optimizer]


def made(scale: int, sides: tuple[str, str] | None) -> Made:
    """The network with a gradient of one batch, and its optimizer: Adam if there are no structures."""
    torch.manual_seed(0)
    model = network(1, 28, 10, [scale * w for w in WIDTHS], [scale * w for w in DENSE])
    if sides is None:
        return model, torch.optim.Adam(model.parameters(), lr=1e-6, foreach=True)
    rows, cols = sides
    options = {"rows": rows, "cols": cols, "refresh": REFRESH}
    return model, StructuredNGD(model.parameters(), lr=1e-6, batch_size=BATCH, **options)


def backward(model: torch.nn.Module) -> None:
    generator = torch.Generator().manual_seed(1)
    x, y = torch.randn(BATCH, 1, 28, 28, generator=generator), torch.arange(BATCH) % 10
    model.zero_grad()
    cross_entropy(model(x), y).backward()


def fastest(jobs: dict[str, Callable[[], Any]], steps: int, turns: int) -> dict[str, float]:
    """Milliseconds of one call of each job, the best of several turns of a number of calls."""
    best = dict.fromkeys(jobs, math.inf)
    for turn in range(turns + 2):
        for name, job in jobs.items():
            begin = time.perf_counter()
            for _ in range(steps):
                job()
            if turn > 1:
                best[name] = min(best[name], 1000 * (time.perf_counter() - begin) / steps)
    return best


def stored(optimizer: torch.optim.Optimizer) -> int:
    """All numbers in the state, and those that are kept beside it; counters of steps are not."""
    found = {id(v): v for state in optimizer.state.values() for v in state.values() if v.ndim}
    total = sum(v.numel() for v in found.values())
    known = {v.untyped_storage().data_ptr() for v in found.values()}
    for plans in getattr(optimizer, "_plans", {}).values():
        kept = [t for plan in plans.plans for stack in plan.stacks for gram in stack.grams for t in tensors(gram)]
        for tensor in kept:
            if tensor.untyped_storage().data_ptr() not in known:
                known.add(tensor.untyped_storage().data_ptr())
                total += tensor.numel()
    return total


def tensors(found: Any) -> list[torch.Tensor]:
    if isinstance(found, torch.Tensor):
        return [found]
    return [] if found is None else [tensor for part in found for tensor in tensors(part)]


@app.command()
def cost() -> None:
    """Milliseconds of the optimizer's step and of a whole training step, and the numbers stored, over Adam's."""
    everyone: dict[str, tuple[str, str] | None] = {"Adam": None, **STRUCTURES}
    models = {name: made(1, sides) for name, sides in everyone.items()}
    for model, _ in models.values():
        backward(model)
    own = fastest({name: pair[1].step for name, pair in models.items()}, 2 * REFRESH, TURNS)

    def whole(model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> Callable[[], None]:
        def step() -> None:
            backward(model)
            optimizer.step()

        return step

    both = fastest({name: whole(*pair) for name, pair in models.items()}, REFRESH, TURNS)
    count = weights(models["Adam"][0])
    print(f"{count:,} weights, batch {BATCH}, factors every {REFRESH} steps, torch {torch.__version__}\n")
    print("| method | step, ms | over Adam's | whole step, ms | over Adam's | state over Adam's |\n" + "|---" * 6 + "|")
    for name, (_, optimizer) in models.items():
        ratios = own[name] / own["Adam"], both[name] / both["Adam"], stored(optimizer) / 2 / count
        words = f"{own[name]:.2f} | {ratios[0]:.2f} | {both[name]:.1f} | {ratios[1]:.2f} | {ratios[2]:.2f}"
        print(f"| {name} | {words} |")


@app.command()
def growth(scales: Annotated[str, typer.Option(help="factors of all widths")] = "2,4,8") -> None:
    """The order of the time of a step in the number of weights, from networks of growing width."""
    factors = [int(word) for word in scales.split(",")]
    everyone: dict[str, tuple[str, str] | None] = {"Adam": None, **STRUCTURES}
    found: dict[str, list[float]] = {name: [] for name in everyone}
    sizes = []
    for scale in factors:
        models = {name: made(scale, sides) for name, sides in everyone.items()}
        sizes.append(weights(models["Adam"][0]))
        for model, _ in models.values():
            for p in model.parameters():
                p.grad = 0.01 * torch.randn_like(p)
        times = fastest({name: pair[1].step for name, pair in models.items()}, REFRESH, 4)
        for name, milliseconds in times.items():
            found[name].append(milliseconds)
    heads = " | ".join(f"{size:,} weights, ms" for size in sizes)
    print(f"| method | {heads} | order |\n{'|---' * (len(sizes) + 2)}|")
    for name, times_of in found.items():
        order = np.polyfit(np.log(sizes), np.log(times_of), 1)[0]
        print(f"| {name} | {' | '.join(f'{t:.1f}' for t in times_of)} | {order:.2f} |")


@app.command()
def stable(
    steps: Annotated[int, typer.Option(help="steps of every training")] = 150,
    rows: str = "diagonal",
    cols: str = "frame:k=8",
    data: Annotated[str | None, typer.Option(help="folder of the images")] = None,
) -> None:
    """Short trainings; one diverges if its loss is not finite, or ends above that of guessing, or is ever too large."""
    parts = split(load(data), 10_000, 10, 10, 200)
    x, y = torch.from_numpy(parts.x), torch.from_numpy(parts.y)
    grid = itertools.product(("kaiming", "torch"), (20, 50, 128), (0.003, 0.01, 0.03), (1e-3, 1e-2), (0.01, 0.1))
    diverged = 0
    for init, batch, lr, damping, first in grid:
        torch.manual_seed(0)
        model = network(1, 28, 10, WIDTHS, DENSE, init)
        options = {"rows": rows, "cols": cols, "damping": damping, "first_precision": first}
        optimizer = StructuredNGD(model.parameters(), lr=lr, batch_size=batch, **options)
        losses = []
        for _ in range(steps):
            chosen = torch.randint(0, len(x), (batch,))
            optimizer.zero_grad()
            loss = cross_entropy(model(x[chosen]), y[chosen])
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            if not math.isfinite(losses[-1]):
                break
        end = float(np.mean(losses[-20:]))
        bad = not math.isfinite(end) or end > math.log(10) + 0.05 or max(losses) > max(10.0, 3 * losses[0])
        diverged += bad
        setting = f"{init}, batch {batch}, lr {lr:g}, damping {damping:g}, first precision {first:g}"
        course = f"{losses[0]:.2f}, at most {max(losses):.2f}, end {end:.3f}"
        print(f"{'DIVERGED' if bad else 'fine'}: {setting}: {course}", flush=True)
    print(f"{diverged} of 72 diverged (rows {rows}, cols {cols}, {steps} steps)")


if __name__ == "__main__":
    app()
