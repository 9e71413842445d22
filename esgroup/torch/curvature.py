"""Where the curvature of a layer comes from: E[g g^T] of the gradients g of single examples (Gauss-Newton, Fisher)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from esgroup import checks
from esgroup.torch.layers import Factors, Gradients


class Curvature:
    """What the optimizer needs when it refreshes its factors. Derived classes define where it comes from.

    Attributes
    ----------
    wanted : bool
        Whether the next step needs it: the optimizer sets it, so that nothing is computed in vain.
    batch_size : int
        The number of examples in a mini-batch; the loss is their mean.
    """

    wanted: bool = True
    batch_size: int = 1

    def check(self, parameters: Sequence[Tensor]) -> None:
        """Raise an error if a step lacks what it needs for these parameters."""

    def forget(self) -> None:
        """Drop what was observed: a step has used it."""

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
    """batch_size G G^T of the gradient G of a mini-batch, which is available anyway.

    If the mean gradient is small compared with its noise, E[G G^T] = E[g g^T] / batch_size. No example is used alone.

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
        self._found: dict[Tensor, Tensor] = {}

    def observe(self, x: Tensor, y: Tensor) -> None:
        """Differentiate the loss of every example, if the next step will refresh its factors."""
        self.batch_size = len(x)
        if not self.wanted:
            return
        own = dict(self.model.named_parameters())
        parameters = {name: p.detach() for name, p in own.items() if p.requires_grad}
        rest = {name: p.detach() for name, p in own.items() if not p.requires_grad}
        rest |= dict(self.model.named_buffers())

        def loss(values: dict[str, Tensor], one: Tensor, target: Tensor) -> Tensor:
            outputs = torch.func.functional_call(self.model, {**values, **rest}, (one.unsqueeze(0),))
            return self.loss(outputs, target.unsqueeze(0))

        of_one = torch.func.grad(loss)
        found = torch.func.vmap(of_one, in_dims=(None, 0, 0), randomness="different")(parameters, x, y)
        self._found = {own[name]: gradients for name, gradients in found.items()}

    def check(self, parameters: Sequence[Tensor]) -> None:
        if not all(p in self._found for p in parameters):
            raise RuntimeError("PerExampleGradients.observe(x, y) must be called before a step that refreshes factors")

    def forget(self) -> None:
        self._found = {}

    def of_matrices(self, parameters: Sequence[Tensor], gradients: Tensor) -> Gradients | Factors:
        shape = gradients.shape[-2:]
        g = torch.stack([self._found[p].reshape(-1, *shape) for p in parameters]).to(gradients.dtype)
        return Gradients(g, 1 / self.batch_size)

    def of_vectors(self, parameters: Sequence[Tensor], gradients: Tensor) -> Tensor:
        return torch.cat([self._found[p].square().mean(0).flatten() for p in parameters]).to(gradients.dtype)


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
        self._layers: dict[Tensor, nn.Module] = {}
        self._seen: dict[nn.Module, tuple[Tensor, Tensor]] = {}
        for layer in model.modules():
            if isinstance(layer, nn.Linear | nn.Conv2d) and getattr(layer, "groups", 1) == 1:
                for parameter in (layer.weight, layer.bias):
                    if parameter is not None:
                        self._layers[parameter] = layer
                layer.register_forward_hook(self._see)

    def __repr__(self) -> str:
        return f"KroneckerFactors({len(set(self._layers.values()))} layers)"

    def _see(self, layer: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        """Keep the inputs of a layer, and the derivatives once they are known."""
        if not output.requires_grad:
            return
        a = inputs[0].detach()
        alone = a.ndim == (1 if isinstance(layer, nn.Linear) else 3)  # an example without a batch dimension
        self.batch_size = 1 if alone else len(a)
        if self.wanted:

            def see(b: Tensor) -> None:
                self._seen[layer] = (a.unsqueeze(0), b.detach().unsqueeze(0)) if alone else (a, b.detach())

            output.register_hook(see)

    def forget(self) -> None:
        self._seen = {}

    def of_matrices(self, parameters: Sequence[Tensor], gradients: Tensor) -> Gradients | Factors:
        layers = [self._layers.get(p) for p in parameters]
        seen = [self._factors(layer) for layer in layers if layer in self._seen]
        if len(seen) < len(parameters):
            return super().of_matrices(parameters, gradients)
        # n examples with t places each: E[a a^T] = sum a a^T / n and E[b b^T] = sum (n b) (n b)^T / (n t), since the
        # loss is a mean; their product has the weight 1 / t = n / (n t)
        dtype, n = gradients.dtype, self.batch_size
        a = nn.utils.rnn.pad_sequence([rows.to(dtype) for rows, _ in seen], batch_first=True)
        b = nn.utils.rnn.pad_sequence([rows.to(dtype) * (n / len(rows)) ** 0.5 for _, rows in seen], batch_first=True)
        return Factors(a, b, 1.0)

    def _factors(self, layer: Any) -> tuple[Tensor, Tensor]:
        """Inputs as rows (n t, p) and derivatives as rows (n t, d)."""
        a, b = self._seen[layer]
        if isinstance(layer, nn.Linear):
            return a.reshape(-1, a.shape[-1]), b.reshape(-1, b.shape[-1])
        if isinstance(layer.padding, str) or layer.padding_mode != "zeros":
            mode = "constant" if layer.padding_mode == "zeros" else layer.padding_mode
            a = nn.functional.pad(a, layer._reversed_padding_repeated_twice, mode=mode)
            padding: Any = 0
        else:
            padding = layer.padding
        patches = nn.functional.unfold(a, layer.kernel_size, layer.dilation, padding, layer.stride)
        return patches.mT.flatten(0, 1), b.flatten(2).mT.flatten(0, 1)

    def of_vectors(self, parameters: Sequence[Tensor], gradients: Tensor) -> Tensor:
        squares = []
        for p, own in zip(parameters, gradients.split([p.numel() for p in parameters]), strict=True):
            layer = self._layers.get(p)
            if layer is None or layer not in self._seen:
                squares.append(own.square() * self.batch_size)
                continue
            b = self._seen[layer][1]
            places = b.flatten(2).sum(2) if isinstance(layer, nn.Conv2d) else b.reshape(len(b), -1, b.shape[-1]).sum(1)
            squares.append((places.square().sum(0) * self.batch_size).to(own.dtype))
        return torch.cat(squares)
