"""The uncertainty of a trained state: calibration, and single layers as distributions of the package."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from esgroup import checks
from esgroup.distributions.base import State
from esgroup.distributions.matrix_gaussian import MatrixGaussian
from esgroup.torch.layers import MatrixLayers, Roots
from esgroup.torch.plan import matrix_shape


class Calibration(NamedTuple):
    """How good probabilities of classes are.

    Attributes
    ----------
    nll : float
        Mean of -log p of the true class.
    accuracy : float
        Share of examples whose most probable class is the true one.
    ece : float
        Expected calibration error: the mean distance of accuracy and confidence over bins of equal width of the
        confidence, weighted by the examples in them (Guo et al., On calibration of modern neural networks, 2017).
    """

    nll: float
    accuracy: float
    ece: float


def calibration(probabilities: Tensor, labels: Tensor, bins: int = 15) -> Calibration:
    """Compare probabilities of classes with the true classes.

    Parameters
    ----------
    probabilities : Tensor, shape (n, classes)
        Rows that sum to 1, such as those of `StructuredNGD.predict`.
    labels : Tensor, shape (n,)
        True classes as integers.
    bins : int
        Number of bins of the confidence.

    Returns
    -------
    Calibration

    Examples
    --------
    >>> import torch
    >>> from esgroup.torch import calibration
    >>> found = calibration(torch.tensor([[0.8, 0.2], [0.4, 0.6]]), torch.tensor([0, 0]))
    >>> round(found.accuracy, 3), round(found.ece, 3)
    (0.5, 0.4)
    """
    bins = checks.whole_number("bins", bins, least=1)
    if probabilities.ndim != 2 or labels.shape != probabilities.shape[:1]:
        shapes = f"{tuple(probabilities.shape)} and {tuple(labels.shape)}"
        raise ValueError(f"probabilities and labels must have the shapes (n, classes) and (n,), got {shapes}")
    if not len(labels):
        raise ValueError("labels must hold at least one example, got none")
    if labels.is_floating_point() or labels.is_complex():
        raise TypeError(f"labels must be integers, got {labels.dtype}")
    low, high = (int(end) for end in labels.aminmax())
    if low < 0 or high >= probabilities.shape[1]:
        raise ValueError(f"labels must be from 0 to {probabilities.shape[1] - 1}, got {low if low < 0 else high}")
    p = probabilities.detach().double()
    if bool((p < 0).any()) or not torch.allclose(p.sum(1), torch.ones_like(p[:, 0]), atol=1e-4):
        raise ValueError("probabilities must be at least 0 and sum to 1 in every row: apply softmax to logits first")
    confidence, predicted = p.max(1)
    right = (predicted == labels).double()
    of_true = p.gather(1, labels.long().unsqueeze(1)).clamp(min=torch.finfo(torch.float32).tiny)
    which = (confidence * bins).ceil().long().clamp(1, bins) - 1
    gaps = torch.zeros(bins, dtype=p.dtype, device=p.device).index_add(0, which, right - confidence)
    return Calibration(float(-of_true.log().mean()), float(right.mean()), float(gaps.abs().sum() / len(labels)))


# ---- one layer as a distribution of the package ---------------------------------------------------------------------


def as_matrix_gaussian(p: Tensor, layers: MatrixLayers, roots: Roots, scale: float) -> tuple[MatrixGaussian, State]:
    """The Gaussian of a weight matrix with the precision scale S, and its state, in precision form."""
    sides = [group.group_of(root) for group, root in zip((layers.rows, layers.cols), roots, strict=True)]
    inverses = [group.numbers(root) for group, root in zip((layers.rows, layers.cols), roots, strict=True)]
    packed = [group.inverse(_array(numbers).ravel()) for group, numbers in zip(sides, inverses, strict=True)]  # B and A
    mean = _array(p).reshape(matrix_shape(p))
    family = MatrixGaussian(mean, rows=sides[0], cols=sides[1], form="precision")
    packed[0] = packed[0] * np.sqrt(scale)
    root = packed[0] * packed[1] if 1 in family.shape else np.concatenate(packed)  # a side of size 1 is one number
    return family, State(family.mean, root)


def from_matrix_gaussian(
    p: Tensor, layers: MatrixLayers, roots: Roots, scale: float, family: MatrixGaussian, state: State
) -> tuple[Tensor, Roots]:
    """The mean and the roots of a layer whose Gaussian has the precision scale S; its groups must be the same."""
    checks.instance("family", family, MatrixGaussian)
    current, _ = as_matrix_gaussian(p, layers, roots, scale)
    if family.form != "precision" or family.sides != current.sides or family.shape != current.shape:
        wanted = f"form='precision', rows={current.sides[0]}, cols={current.sides[1]}"
        raise ValueError(f"family must have {wanted}, got {family.form!r}, {family.sides[0]}, {family.sides[1]}")
    (rows, cols), (of_rows, of_cols) = family.sides, family.side_roots(state)
    inverses = [rows.inverse(of_rows / np.sqrt(scale)), cols.inverse(of_cols)]
    new = []
    for group, old, numbers in zip((layers.rows, layers.cols), roots, inverses, strict=True):
        tensor = torch.as_tensor(numbers, dtype=old.dtype, device=old.device)
        new.append(torch.cat([tensor, old[group.numbers(old).shape[-1] :]]))
    mean = torch.tensor(state.mean, dtype=p.dtype, device=p.device).reshape(p.shape)
    return mean, Roots(*new)


def _array(tensor: Tensor) -> np.ndarray:
    return tensor.detach().cpu().double().numpy()
