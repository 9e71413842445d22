"""Tensors that hold the state of many layers at once, so that a step is a few operations.

All gradients of a plan are one flat tensor, ordered by the shapes of the matrices, with the vectors last. The momentum
is another one, and what an optimizer stores for a single parameter is a view into these.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from itertools import groupby
from typing import Any

import torch
from torch import Tensor

from esgroup.groups.base import Group
from esgroup.groups.bordered import BlockTriangular, Heisenberg
from esgroup.groups.frame import Frame
from esgroup.groups.full import Full
from esgroup.groups.spelling import parse
from esgroup.torch.curvature import Curvature
from esgroup.torch.frames import TensorFrame
from esgroup.torch.groups import TensorGroup, tensor_group
from esgroup.torch.layers import Constants, MatrixLayers, Roots, Seen, Side, move, refreshed_vector, shorten

FRAME = 8  # directions of a frame, by default
#: The largest root mean square of K_B Z K_A^T, in units of what one mini-batch has once S has settled.
LARGEST_WHITE = 1.0
#: The same for a single entry of a vector.
LARGEST_ENTRY = 3.0
#: A matrix changes by at most this fraction of its norm in one step, or by the fraction lr if that is less.
LARGEST_CHANGE = 0.02
#: This bound grows over this many first steps, in which S does not yet match the loss.
SETTLING = 50
#: The norm assumed for a matrix of zeros, as the root mean square of its entries.
SMALLEST_ENTRY = 1e-2
Options = dict[str, Any]
State = dict[str, Any]


def named(p: Tensor) -> str:
    """A parameter in a message."""
    return f"a parameter of shape {tuple(p.shape)} and type {p.dtype}"


def matrix_shape(p: Tensor) -> tuple[int, int]:
    """(d, p) of a parameter with two or more dimensions: the first one, and all others."""
    return p.shape[0], math.prod(p.shape[1:])


def working_dtype(p: Tensor) -> torch.dtype:
    """The type of the state: that of the parameter, but at least float32."""
    return torch.promote_types(p.dtype, torch.float32)


# ---- structures -----------------------------------------------------------------------------------------------------


def layers_of(options: Options, p: Tensor) -> MatrixLayers:
    """The groups of the rows and columns of a weight matrix."""
    d, columns = matrix_shape(p)
    return MatrixLayers(side("rows", options["rows"], d), side("cols", options["cols"], columns))


def side(name: str, structure: str | Group, dim: int) -> TensorGroup:
    """The group of one side of a layer; sizes larger than the layer mean a dense matrix."""
    if isinstance(structure, Group):
        if structure.dim != dim:
            raise ValueError(f"{name} must have dimension {dim} in a layer of that size, got {structure}")
        return tensor_group(name, structure)
    if not isinstance(structure, str):
        raise TypeError(f"{name} must be a group or a spelling such as 'diagonal', got {structure!r}")
    try:
        group = _cut(structure, dim)
        if isinstance(group, Frame):
            k = FRAME if group.k is None else group.k
            return TensorFrame(dim, k) if k < dim else tensor_group(name, Full(dim))
    except ValueError as problem:
        raise ValueError(f"{name} must name a group, got {structure!r}: {problem}") from None
    return tensor_group(name, group)


def _cut(structure: str, dim: int) -> Group:
    """The group of a spelling, with blocks no larger than the layer."""
    try:
        return parse(structure, dim)
    except ValueError as problem:
        try:
            wide = parse(structure, 2**40)
        except ValueError:
            raise problem from None
        if isinstance(wide, (BlockTriangular, Frame)):
            return Full(dim)
        if isinstance(wide, Heisenberg):
            k1 = min(wide.k1, dim)
            return dataclasses.replace(wide, dim=dim, k1=k1, k2=dim - k1)
        raise


# ---- one plan -------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Stack:
    """Matrices of one shape: their places among the parameters and in the flat tensors, and their roots."""

    layers: MatrixLayers
    first: int
    count: int
    shape: tuple[int, int]
    begin: int
    roots: Roots
    momentum: Tensor  # a view, (count, d, p)

    grams: list[Any] = dataclasses.field(default_factory=list)  # of the roots, until these move

    def natural(self, momentum: Tensor) -> Tensor:
        """S^-1 Z of the momentum Z, a part of the flat one."""
        if torch.compiler.is_compiling():  # inputs of a graph must not share memory: views are made inside it
            z, (rows, cols) = self.of(momentum), self.layers.grams(self.roots)
        else:
            if not self.grams:
                self.grams.extend(self.layers.grams(self.roots))
            z, (rows, cols) = self.momentum, self.grams
        return self.layers.rows.gram_left(rows, self.layers.cols.gram_right(cols, z))

    def sides(self, seen: Seen, ridge: float) -> list[Side]:
        """Rows and columns, with the observed curvature."""
        local = self.layers.local_curvature(self.roots, seen, ridge)
        groups = (self.layers.rows, self.layers.cols)
        return [Side(*parts) for parts in zip(groups, self.roots, local, strict=True)]

    @property
    def end(self) -> int:
        """The end of the flat part."""
        return self.begin + self.count * math.prod(self.shape)

    def of(self, flat: Tensor) -> Tensor:
        """The part of a flat tensor that holds these matrices, (count, d, p)."""
        return flat[self.begin : self.end].view(self.count, *self.shape)


class Plan:
    """Parameters of one group on one device that have made the same number of steps.

    Parameters
    ----------
    options : dict
        The parameter group.
    parameters : sequence of Tensor
        Its parameters.
    states : mapping
        The state of every parameter; new ones are made, and all become views into the tensors of the plan.
    """

    def __init__(self, options: Options, parameters: Sequence[Tensor], states: Any) -> None:
        self.options = options
        self.matrices = matrices = sorted((p for p in parameters if p.ndim >= 2), key=matrix_shape)
        self.vectors = vectors = [p for p in parameters if p.ndim < 2]
        self.parameters = [*matrices, *vectors]
        self.dtype = working_dtype(self.parameters[0])
        for p in self.parameters:
            if not states[p]:
                states[p].update(first_state(options, p))
        self.step: Tensor = states[self.parameters[0]]["step"].clone()
        self.momentum = torch.cat([states[p]["momentum"].flatten() for p in self.parameters])
        self.stacks = self._stacks(states)
        self.begin = self.stacks[-1].end if self.stacks else 0  # of the vectors
        self.root = torch.cat([states[p]["root"].flatten() for p in vectors]) if vectors else None
        self._sizes = [p.numel() for p in self.parameters]
        self._momenta = self.momentum.split(self._sizes)[: len(matrices)]
        # the bounds of a step, one number per matrix
        entries = torch.tensor(self._sizes[: len(matrices)], dtype=self.dtype, device=self.momentum.device).sqrt()
        self._white_scale, self._least_norm = entries * LARGEST_WHITE, entries * SMALLEST_ENTRY
        self._share(states)

    def _stacks(self, states: Any) -> list[Stack]:
        stacks: list[Stack] = []
        first = begin = 0
        for shape, members in groupby(self.matrices, matrix_shape):  # they are sorted by their shapes
            same = list(members)
            roots = Roots(*(torch.stack([states[p][name] for p in same]) for name in Roots._fields))
            momentum = self.momentum[begin : begin + len(same) * math.prod(shape)].view(len(same), *shape)
            stacks.append(Stack(layers_of(self.options, same[0]), first, len(same), shape, begin, roots, momentum))
            first, begin = first + len(same), stacks[-1].end
        return stacks

    def _share(self, states: Any) -> None:
        """Make what is stored for a parameter a view into the tensors of the plan."""
        for stack in self.stacks:
            for i in range(stack.count):
                own = {"momentum": stack.momentum[i], "rows": stack.roots.rows[i], "cols": stack.roots.cols[i]}
                states[self.parameters[stack.first + i]].update(own, step=self.step)
        if self.root is not None:
            sizes = [p.numel() for p in self.vectors]
            parts = zip(self.momentum[self.begin :].split(sizes), self.root.split(sizes), strict=True)
            for p, (momentum, root) in zip(self.vectors, parts, strict=True):
                states[p].update(momentum=momentum, root=root, step=self.step)

    def flat_gradient(self) -> Tensor:
        """All gradients, in the order of the plan."""
        flat = torch.cat([p.grad.reshape(-1) for p in self.parameters])  # type: ignore[union-attr]
        return flat.to(self.dtype)

    def advance(self, gradient: Tensor, gate: float | Tensor, curvature: Curvature) -> None:
        """One step; with a gate of zero nothing changes."""
        o = self.options
        if isinstance(gate, Tensor):
            gradient = torch.where(gate, gradient, 0)
        self.step += gate
        warm = 1 - o["warm_up"] ** self.step if o["warm_up"] else 1.0
        if o["calls"] % o["refresh"] == 0:
            constants = Constants(o["curvature_lr"] * warm * gate, o["l2"], o["damping"], o["entropy"])
            self._refresh(gradient, constants, curvature, gate)
        if o["l2"]:
            means = torch.cat([p.detach().reshape(-1) for p in self.parameters]).to(self.dtype)
            gradient = gradient.add(means, alpha=o["l2"])
        self.momentum.lerp_(gradient, (1 - o["momentum"]) * gate)
        correction = 1 / (1 - o["momentum"] ** self.step.clamp(min=1))  # with a closed gate there may be no step yet
        noise = math.sqrt(o["entropy"] / curvature.batch_size)
        rate = o["lr"] * warm * gate
        parts = [stack.natural(self.momentum).flatten() for stack in self.stacks]
        if self.root is not None:
            largest = LARGEST_ENTRY * noise
            white = (self.root * self.momentum[self.begin :] * correction).clamp_(-largest, largest)
            parts.append(self.root * white * rate)
        steps = torch.cat(parts).split(self._sizes)
        if self.stacks:
            own = steps[: len(self.matrices)]
            torch._foreach_mul_(own, self._factors(own, correction, noise, rate))
        shaped = [step.view(p.shape) for step, p in zip(steps, self.parameters, strict=True)]
        torch._foreach_sub_(self.parameters, shaped)

    def _factors(self, steps: tuple[Tensor, ...], correction: Tensor, noise: float, rate: Any) -> tuple[Tensor, ...]:
        """What S^-1 Z of every matrix is multiplied by: the rate, or less where the step would be too long."""
        momenta = self._momenta
        if torch.compiler.is_compiling():  # as in Stack.natural
            momenta = self.momentum.split(self._sizes)[: len(self.matrices)]
        energy = torch.stack([torch.dot(z, step) for z, step in zip(momenta, steps, strict=True)])
        norms = torch.stack([*torch._foreach_norm(steps), *torch._foreach_norm(self.matrices)])
        lengths, sizes = norms.clamp_(min=1e-30).to(self.dtype).chunk(2)
        white = energy.clamp_(min=1e-37).sqrt_()  # |K_B Z K_A^T| = <Z, S^-1 Z>^(1/2)
        bounded = (self._white_scale * noise / white).minimum(correction) * rate
        share = rate.clamp(max=LARGEST_CHANGE) if isinstance(rate, Tensor) else min(rate, LARGEST_CHANGE)
        share = (self.step / SETTLING).clamp(max=1) * share
        return bounded.minimum(sizes.maximum(self._least_norm) * share / lengths).unbind()

    def _refresh(self, gradient: Tensor, constants: Constants, curvature: Curvature, gate: float | Tensor) -> None:
        sides: list[Side] = []
        for stack in self.stacks:
            own = self.parameters[stack.first : stack.first + stack.count]
            seen = _gated(curvature.of_matrices(own, stack.of(gradient)), gate)
            sides += stack.sides(seen, constants.l2 + constants.damping)
            stack.grams.clear()
        if sides:
            shorten(sides, constants.curvature_rate)
            move(sides, constants.curvature_rate * constants.entropy / 2)
        if self.root is not None:
            squares = _gated(curvature.of_vectors(self.vectors, gradient[self.begin :]), gate)
            self.root.copy_(refreshed_vector(self.root, squares, constants))


def _gated(seen: Any, gate: float | Tensor) -> Any:
    """A curvature, which may not be finite, with zeros if the gate is closed."""
    if not isinstance(gate, Tensor):
        return seen
    if isinstance(seen, Tensor):
        return torch.where(gate, seen, 0)
    return type(seen)(*(_gated(part, gate) if isinstance(part, Tensor) else part for part in seen))


def first_state(options: Options, p: Tensor) -> State:
    """The state of a parameter before its first step."""
    like = torch.empty(0, dtype=working_dtype(p), device=p.device)
    if p.ndim < 2:
        root = like.new_full((p.numel(),), options["first_precision"] ** -0.5)
        return {"step": like.new_zeros(()), "momentum": torch.zeros_like(root), "root": root}
    roots = layers_of(options, p).first_roots(options["first_precision"], like)
    return {"step": like.new_zeros(()), "momentum": like.new_zeros(matrix_shape(p)), **roots._asdict()}
