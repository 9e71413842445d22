"""Where the curvature of a layer comes from: E[g g^T] of the gradients g of single examples (Gauss-Newton, Fisher)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from esgroup import checks
from esgroup.torch.layers import Factors, Gradients


class Curvature:
    """What the optimiser asks for when it refreshes its factors. Derived classes say where it comes from.

    Attributes
    ----------
    wanted : bool
        Whether the next step will ask: the optimiser sets it, so that nothing is computed in vain.
    batch_size : int
        The number of examples in a mini-batch; the loss is their mean.
    """

    wanted: bool = True
    batch_size: int = 1

    def of_matrices(self, parameters: Sequence[Tensor], gradients: Tensor) -> Gradients | Factors:
        """The curvature of weight matrices of one shape.

        Parameters
        ----------
        parameters : sequence of Tensor
            The weights.
        gradients : Tensor, shape (layers, d, p)
            Their gradients of the mean loss.
        """
        return Gradients(gradients.unsqueeze(-3), self.batch_size)

    def of_vectors(self, parameters: Sequence[Tensor], gradients: Tensor) -> Tensor:
        """E[g^2] of the entries of all vectors, one after another, of whose gradients these are the entries."""
        return gradients.square() * self.batch_size


class SquaredGradient(Curvature):
    """batch_size G G^T of the gradient G of a mini-batch, which is there anyway.

    Where the mean gradient is small beside its noise, E[G G^T] = E[g g^T] / batch_size. No example is seen alone.

    Parameters
    ----------
    batch_size : int
        Number of examples in a mini-batch, of whose losses the loss is the mean.
    """

    def __init__(self, batch_size: int) -> None:
        self.batch_size = checks.whole_number("batch_size", batch_size, least=1)

    def __repr__(self) -> str:
        return f"SquaredGradient(batch_size={self.batch_size})"


class PerExampleGradients(Curvature):
    """The mean of g_i g_i^T over the examples of a mini-batch, each differentiated alone by `torch.func`.

    Call `observe(x, y)` before `step`: it differentiates if the step will use it, and does nothing otherwise.

    Parameters
    ----------
    model : torch.nn.Module
        The network; layers that mix examples (batch norm in training) cannot be differentiated this way.
    loss : callable
        Takes the outputs for one example, with a batch dimension of 1, and its target, and returns one number.
    """

    def __init__(self, model: nn.Module, loss: Callable[[Tensor, Tensor], Tensor]) -> None:
        checks.instance("model", model, nn.Module)
        if not callable(loss):
            raise TypeError(f"loss must be callable, got {loss!r}")
        self.model, self.loss = model, loss
        self._found: dict[int, Tensor] = {}

    def __repr__(self) -> str:
        return "PerExampleGradients()"

    def observe(self, x: Tensor, y: Tensor) -> None:
        """Differentiate the loss of every example, if the next step will refresh its factors."""
        self.batch_size = len(x)
        if not self.wanted:
            return
        parameters = {name: p.detach() for name, p in self.model.named_parameters() if p.requires_grad}
        rest = {name: p.detach() for name, p in self.model.named_parameters() if not p.requires_grad}
        rest |= dict(self.model.named_buffers())

        def loss(values: dict[str, Tensor], one: Tensor, target: Tensor) -> Tensor:
            outputs = torch.func.functional_call(self.model, {**values, **rest}, (one.unsqueeze(0),))
            return self.loss(outputs, target.unsqueeze(0))

        found = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0))(parameters, x, y)
        own = dict(self.model.named_parameters())
        self._found = {id(own[name]): gradients for name, gradients in found.items()}

    def _of(self, parameter: Tensor) -> Tensor:
        if id(parameter) not in self._found:
            raise RuntimeError("PerExampleGradients.observe(x, y) must be called before a step that refreshes factors")
        return self._found[id(parameter)]

    def of_matrices(self, parameters: Sequence[Tensor], gradients: Tensor) -> Gradients | Factors:
        shape = gradients.shape[-2:]
        g = torch.stack([self._of(p).reshape(-1, *shape) for p in parameters]).to(gradients.dtype)
        return Gradients(g, 1 / self.batch_size)

    def of_vectors(self, parameters: Sequence[Tensor], gradients: Tensor) -> Tensor:
        return torch.cat([self._of(p).square().mean(0).flatten() for p in parameters]).to(gradients.dtype)


class KroneckerFactors(Curvature):
    """E[a a^T] (x) E[b b^T] of the inputs a of a layer and the derivatives b with respect to its outputs.

    Hooks on the Linear and Conv2d layers of a network see both in the ordinary forward and backward pass (Martens and
    Grosse, Optimizing neural networks with Kronecker-factored approximate curvature, 2015; for convolutions Grosse and
    Martens, 2016). Inputs and derivatives are taken to be independent, as are the places of an image. The loss must be
    a mean over the examples. What other layers have (norms, embeddings) is taken from the squared gradient.

    Parameters
    ----------
    model : torch.nn.Module
        The network.
    """

    def __init__(self, model: nn.Module) -> None:
        checks.instance("model", model, nn.Module)
        self._layers: dict[int, nn.Module] = {}
        self._inputs: dict[nn.Module, Tensor] = {}
        self._outputs: dict[nn.Module, Tensor] = {}
        for layer in model.modules():
            if isinstance(layer, nn.Linear | nn.Conv2d) and getattr(layer, "groups", 1) == 1:
                for parameter in (layer.weight, layer.bias):
                    if parameter is not None:
                        self._layers[id(parameter)] = layer
                layer.register_forward_hook(self._see_inputs)
                layer.register_full_backward_hook(self._see_outputs)

    def __repr__(self) -> str:
        return f"KroneckerFactors({len(set(self._layers.values()))} layers)"

    def _see_inputs(self, layer: nn.Module, inputs: tuple[Tensor, ...], output: Any) -> None:
        if self.wanted and torch.is_grad_enabled():
            self._inputs[layer] = inputs[0].detach()
            self.batch_size = len(inputs[0])

    def _see_outputs(self, layer: nn.Module, inputs: Any, outputs: tuple[Tensor, ...]) -> None:
        if self.wanted:
            self._outputs[layer] = outputs[0].detach()

    def of_matrices(self, parameters: Sequence[Tensor], gradients: Tensor) -> Gradients | Factors:
        layers = [self._layers.get(id(p)) for p in parameters]
        seen = [self._factors(layer) for layer in layers if layer in self._inputs and layer in self._outputs]
        if len(seen) < len(parameters) or len({(a.shape, b.shape) for a, b in seen}) > 1:
            return super().of_matrices(parameters, gradients)
        a, b = (torch.stack(side).to(gradients.dtype) for side in zip(*seen, strict=True))
        # n examples with t places each: E[a a^T] = sum a a^T / n and E[b b^T] = sum (n b) (n b)^T / (n t), since the
        # loss is a mean; their product has the weight 1 / t
        return Factors(a, b, self.batch_size / b.shape[-2])

    def _factors(self, layer: Any) -> tuple[Tensor, Tensor]:
        """Inputs as rows (n t, p) and derivatives as rows (n t, d)."""
        a, b = self._inputs[layer], self._outputs[layer]
        if isinstance(layer, nn.Linear):
            return a.reshape(-1, a.shape[-1]), b.reshape(-1, b.shape[-1])
        if isinstance(layer.padding, str) or layer.padding_mode != "zeros":
            a = nn.functional.pad(a, layer._reversed_padding_repeated_twice, mode=_pad_mode(layer.padding_mode))
            padding: Any = 0
        else:
            padding = layer.padding
        patches = nn.functional.unfold(a, layer.kernel_size, layer.dilation, padding, layer.stride)
        return patches.mT.flatten(0, 1), b.flatten(2).mT.flatten(0, 1)

    def of_vectors(self, parameters: Sequence[Tensor], gradients: Tensor) -> Tensor:
        squares = []
        for p, own in zip(parameters, gradients.split([p.numel() for p in parameters]), strict=True):
            layer = self._layers.get(id(p))
            if layer is None or layer not in self._outputs:
                squares.append(own.square() * self.batch_size)
                continue
            b = self._outputs[layer]
            places = b.flatten(2).sum(2) if isinstance(layer, nn.Conv2d) else b.reshape(len(b), -1, b.shape[-1]).sum(1)
            squares.append((places.square().sum(0) * self.batch_size).to(own.dtype))
        return torch.cat(squares)


def _pad_mode(mode: str) -> str:
    return "constant" if mode == "zeros" else mode
