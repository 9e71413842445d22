"""An optimizer whose state is a distribution: natural gradients of a matrix Gaussian for every layer."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, overload

import torch
from torch import Tensor
from torch.optim import Optimizer

from esgroup import checks
from esgroup.distributions.base import State
from esgroup.distributions.matrix_gaussian import MatrixGaussian
from esgroup.groups.base import Group
from esgroup.torch.curvature import Curvature, SquaredGradient
from esgroup.torch.layers import MatrixLayers, Roots
from esgroup.torch.plan import Plan, first_state, layers_of, named, working_dtype
from esgroup.torch.posterior import as_matrix_gaussian, from_matrix_gaussian

MOST_SKIPPED = 10  # skipped steps in a row after which there is a warning
ROOM = 1e6  # gradients are too large if this times their square overflows
STRUCTURE = ("rows", "cols")
RATES = ("lr", "momentum", "curvature_lr", "refresh", "warm_up")
OPTIONS = (*STRUCTURE, *RATES, "damping", "first_precision", "l2", "entropy")  # a group can have its own
OF_ALL = ("batch_size", "curvature", "data_size")  # the same for all groups of parameters
COPIED = ("curvature", "_data_size", "_unfinite", "_in_a_row", "_skipped")  # what a copy has besides torch's own


class StructuredNGD(Optimizer):
    """Natural-gradient descent with a matrix Gaussian for every layer, as a replacement for Adam.

    Every weight matrix of shape (d, p) has a Gaussian with the mean E, which is the parameter, and the precision N S,
    S = (A A^T) (x) (B B^T), whose square roots A (p columns) and B (d rows) lie in matrix groups; convolutions are
    c_out x (c_in k k) matrices, and vectors (biases, norms) have a diagonal Gaussian. It minimizes

        E_q[loss + l2/2 |W|^2] - (entropy / N) H(q),

    where the loss is the mean over examples of a set of N. One step costs O(k d p) for groups with k dense directions,
    as Adam's costs O(d p) (Lin et al. 2021, appendix "Matrix Gaussian for Matrix Weights in Deep Learning").

    Parameters
    ----------
    params : iterable
        Parameters, or groups of parameters as dicts; a group can have any of the options below except `batch_size`,
        `curvature` and `data_size`.
    lr : float or Tensor
        Step of the means. Schedulers change it.
    batch_size : int, optional
        Number of examples in a mini-batch. It sets the scale of S, so that the other numbers mean the same for all
        batch sizes. Short for curvature=SquaredGradient(batch_size).
    curvature : Curvature, optional
        Where E[g g^T] comes from: `SquaredGradient`, `PerExampleGradients` or `KroneckerFactors`.
    rows, cols : str or Group
        The groups of B and A: "diagonal", "block_triangular:k=8", "heisenberg:k1=4,k2=4", "triangular", "full",
        "toeplitz_triangular", or "frame:k=8", dense in k directions that follow the gradients. Sizes that are larger
        than a layer mean a dense matrix there.
    momentum : float
        c1, as in Adam.
    curvature_lr : float
        Step of A and B: S forgets at about this rate with every refresh.
    damping : float
        Added to the curvature, not to the gradient: S is at least about this.
    first_precision : float
        The first S is this times the identity.
    l2 : float
        alpha, the weight of |W|^2 / 2 in the loss.
    entropy : float
        gamma, the weight of the entropy. S settles at (E[g g^T] + l2 + damping) / entropy.
    refresh : int
        A and B move once every this many steps.
    warm_up : float
        c2 of the paper's step sizes: all rates are multiplied by 1 - warm_up^t, with 0.999 in the paper; 0 for none.
    data_size : int, optional
        N, the number of examples in the data. Only samples need it.

    Notes
    -----
    A step with a gradient that is not finite, or whose square is not, is skipped and counted (`skipped`); after ten
    in a row there is a warning. On accelerators nothing is copied to the host in a step, and the warning comes when
    `skipped` is read.

    Every step is bounded: a matrix changes by at most the fraction lr of its norm and never by more than 0.02, in the
    first 50 steps by less; the whitened momentum is at most as large as one mini-batch's gradient; and each factor
    of S grows at most by 6.25 in a refresh.

    Examples
    --------
    >>> import torch
    >>> from esgroup.torch import StructuredNGD
    >>> model = torch.nn.Linear(4, 2)
    >>> optimizer = StructuredNGD(model.parameters(), lr=0.01, batch_size=20)
    >>> loss = model(torch.ones(20, 4)).square().mean()
    >>> loss.backward()
    >>> optimizer.step()
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 0.01,
        *,
        batch_size: int | None = None,
        curvature: Curvature | None = None,
        rows: str | Group = "diagonal",
        cols: str | Group = "frame:k=8",
        momentum: float = 0.9,
        curvature_lr: float = 0.1,
        damping: float = 1e-3,
        first_precision: float = 0.1,
        l2: float = 0.0,
        entropy: float = 1.0,
        refresh: int = 5,
        warm_up: float = 0.0,
        data_size: int | None = None,
    ) -> None:
        given = locals()
        if (batch_size is None) == (curvature is None):
            raise TypeError("exactly one of batch_size (examples in a mini-batch) and curvature must be given")
        self.curvature = SquaredGradient(batch_size) if curvature is None else curvature  # type: ignore[arg-type]
        checks.instance("curvature", self.curvature, Curvature)
        self._data_size = None if data_size is None else checks.whole_number("data_size", data_size, least=1)
        self._plans: dict[int, PlanSet] = {}
        self._unfinite: Tensor | None = None  # counts on accelerators: in a row, in all
        self._in_a_row = self._skipped = 0
        self._is_sampled = False
        defaults = {name: given[name] for name in OPTIONS} | {"calls": 0}
        _check_options(defaults)
        super().__init__(params, defaults)

    # ---- parameters -------------------------------------------------------------------------------------------------

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters with options of their own; see `torch.optim.Optimizer.add_param_group`."""
        super().add_param_group(param_group)
        group = self.param_groups[-1]
        try:
            if not group["params"]:
                raise ValueError(f"param group {len(self.param_groups) - 1} must have at least one parameter, got none")
            for name in OF_ALL:
                if name in group:
                    raise ValueError(f"{name} must be given for all parameters, got {group[name]!r} in a group")
            _check_options(group)
            for p in group["params"]:
                if p.is_complex() or not p.is_floating_point():
                    raise TypeError(f"parameters must be real floating-point tensors, got {named(p)}")
                if p.ndim >= 2:
                    layers_of(group, p)  # raises if the structure does not fit
        except BaseException:
            self.param_groups.pop()
            raise
        group["calls"] = max(other["calls"] for other in self.param_groups)

    # ---- one step ---------------------------------------------------------------------------------------------------

    @overload
    def step(self, closure: None = None) -> None: ...
    @overload
    def step(self, closure: Callable[[], float]) -> float: ...
    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:
        """Make one step with the gradients that the parameters have.

        Parameters
        ----------
        closure : callable, optional
            Evaluates the model again and returns the loss, which is returned.
        """
        if self._is_sampled:
            raise RuntimeError("step must be called outside `with sampled()`: inside, the parameters are a sample")
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        plans = [plan for number in range(len(self.param_groups)) for plan in self._current_plans(number)]
        for plan in plans:
            if plan.options["calls"] % plan.options["refresh"] == 0:
                self.curvature.check(plan.parameters)
        gradients = [plan.flat_gradient() for plan in plans]
        gate = self._gate(gradients)
        if gate is None:
            self.curvature.forget()
            return loss
        for plan, gradient in zip(plans, gradients, strict=True):
            plan.advance(gradient, gate.to(gradient.device) if isinstance(gate, Tensor) else gate, self.curvature)
        for group in self.param_groups:
            group["calls"] += 1
        self.curvature.forget()
        self._say_wanted()
        return loss

    def _say_wanted(self) -> None:
        self.curvature.wanted = any(group["calls"] % group["refresh"] == 0 for group in self.param_groups)

    def _gate(self, gradients: list[Tensor]) -> float | Tensor | None:
        """1 if the squares of all gradients are finite, with room for the factors by which they are multiplied.

        Otherwise it is None on the CPU. On accelerators it is always a tensor, with 0 or 1.
        """
        if not gradients:
            return 1.0
        total = gradients[0].dot(gradients[0])
        for other in gradients[1:]:
            total = total + other.dot(other).to(total.device)
        finite = torch.isfinite(total * ROOM)
        if finite.device.type == "cpu":
            if bool(finite):
                self._in_a_row = 0
                return 1.0
            self._in_a_row += 1
            self._skipped += 1
            self._say_skipped(self._in_a_row, depth=6)
            return None
        bad = (~finite).to(torch.int64)
        if self._unfinite is None:
            self._unfinite = torch.zeros(2, dtype=torch.int64, device=bad.device)
        self._unfinite[0] = (self._unfinite[0] + 1) * bad
        self._unfinite[1] += bad
        return finite

    def _say_skipped(self, in_a_row: int, depth: int) -> None:
        """Warn of ten skipped steps; the optimizer's caller is `depth` calls away (torch wraps `step` twice)."""
        if in_a_row == MOST_SKIPPED:
            text = f"the gradients of the last {in_a_row} steps were not finite: parameters have not changed since then"
            warnings.warn(text, RuntimeWarning, stacklevel=depth)

    @property
    def skipped(self) -> int:
        """The number of steps skipped because a gradient was not finite."""
        if self._unfinite is None:
            return self._skipped
        in_a_row, skipped = (int(number) for number in self._unfinite.tolist())
        if in_a_row >= MOST_SKIPPED:
            self._say_skipped(MOST_SKIPPED, depth=3)
        return self._skipped + skipped

    def _current_plans(self, number: int) -> list[Plan]:
        """The plans of a group for the parameters that have gradients; new plans if these have changed."""
        group = self.param_groups[number]
        ready = [p for p in group["params"] if p.grad is not None]
        known = self._plans.get(number)
        if known is not None and known.fits(ready):
            return known.plans
        return self._new_plans(number, ready)

    @torch._disable_dynamo  # type: ignore[attr-defined]  # compiling what runs once costs more than it saves
    def _new_plans(self, number: int, ready: list[Tensor]) -> list[Plan]:
        group = self.param_groups[number]
        kinds: dict[Any, list[Tensor]] = {}
        for p in ready:
            if not _has_dense_gradient(p):
                hint = "is sparse=True in its layer?"
                raise TypeError(f"gradients must be dense, got a sparse one of {named(p)}: {hint}")
            known = self.state[p]
            if known and known["momentum"].shape != first_state(group, p)["momentum"].shape:
                before = tuple(known["momentum"].shape)
                raise ValueError(f"parameters must keep their shape, got {named(p)} whose state is of shape {before}")
            step = float(known["step"]) if known else 0.0
            kinds.setdefault((p.device, working_dtype(p), step), []).append(p)
        plans = [Plan(group, members, self.state) for members in kinds.values()]
        self._plans[number] = PlanSet(ready, [p.shape for p in ready], plans)
        return plans

    # ---- the distribution -----------------------------------------------------------------------------------------

    def matrix_gaussian(self, p: Tensor) -> tuple[MatrixGaussian, State]:
        """The distribution of a weight matrix as an `esgroup.MatrixGaussian` in precision form, and its state.

        Convolutions are c_out x (c_in k k) matrices.
        """
        return as_matrix_gaussian(p, *self._roots(p), self.data_size)

    @torch.no_grad()
    def set_matrix_gaussian(self, p: Tensor, family: MatrixGaussian, state: State) -> None:
        """Give a weight matrix the mean and precision of a Gaussian of the same groups; undoes `matrix_gaussian`."""
        mean, new = from_matrix_gaussian(p, *self._roots(p), self.data_size, family, state)
        if not self.state[p]:
            self.state[p].update(first_state(self._group_of(p), p))
        p.copy_(mean)
        for name, root in new._asdict().items():
            self.state[p][name].copy_(root)
        self._plans.clear()  # they hold values derived from the roots

    def _roots(self, p: Tensor) -> tuple[MatrixLayers, Roots]:
        group = self._group_of(p)
        if p.ndim < 2:
            raise ValueError(f"the parameter must have at least two dimensions, got {named(p)}")
        state = self.state[p] or first_state(group, p)
        return layers_of(group, p), Roots(state["rows"], state["cols"])

    def _group_of(self, p: Tensor) -> dict[str, Any]:
        for group in self.param_groups:
            if any(p is own for own in group["params"]):
                return group
        raise ValueError(f"the parameter must belong to this optimizer, got {named(p)}")

    def draw(self, p: Tensor, temperature: float = 1.0, generator: torch.Generator | None = None) -> Tensor:
        """A sample from the distribution of a parameter, at a temperature that multiplies the covariance."""
        group, dtype = self._group_of(p), working_dtype(p)
        scale = math.sqrt(checks.real_number("temperature", temperature, positive=True) / self.data_size)
        state = self.state[p] or first_state(group, p)
        z = torch.randn(state["momentum"].shape, generator=generator, dtype=dtype, device=p.device)
        if p.ndim < 2:
            noise = state["root"] * z
        else:
            roots = Roots(state["rows"][None], state["cols"][None])
            noise = layers_of(group, p).colored(roots, z[None])
        return p.detach() + (noise * scale).reshape(p.shape).to(p.dtype)

    @property
    def data_size(self) -> int:
        """N, the number of examples in the data."""
        if self._data_size is None:
            raise ValueError("samples need data_size, the number of examples in the data: StructuredNGD(data_size=...)")
        return self._data_size

    @contextmanager
    def sampled(self, temperature: float = 1.0, generator: torch.Generator | None = None) -> Iterator[None]:
        """Within this context the parameters are a sample from their distribution, afterwards its mean again.

        A gradient computed inside is taken at the sample: with `step` outside, one sample estimates the expectation
        over the distribution in the formulas.

        Parameters
        ----------
        temperature : float
            Multiplies the covariance, (N S)^-1.
        generator : torch.Generator, optional
            Source of random numbers; torch's own by default.
        """
        temperature = checks.real_number("temperature", temperature, positive=True)
        if self._is_sampled:
            raise RuntimeError("`with sampled()` must not be nested")
        parameters = [p for group in self.param_groups for p in group["params"]]
        with torch.no_grad():
            samples = [self.draw(p, temperature, generator) for p in parameters]
            means = [p.clone() for p in parameters]
            torch._foreach_copy_(parameters, samples)
        self._is_sampled = True
        try:
            yield
        finally:
            with torch.no_grad():
                torch._foreach_copy_(parameters, means)
            self._is_sampled = False

    def predict(
        self,
        model: torch.nn.Module,
        x: Any,
        samples: int = 16,
        *,
        temperature: float = 1.0,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """Probabilities of classes: the mean of softmax(model(x)) over samples of the weights.

        Parameters
        ----------
        model : torch.nn.Module
            The network whose parameters these are; its outputs are logits in the last dimension.
        x : Tensor
            Inputs.
        samples : int
            Number of samples.
        temperature : float
            Multiplies the covariance.
        generator : torch.Generator, optional
            Source of random numbers.

        Returns
        -------
        Tensor
            Of the shape of the model's outputs.
        """
        samples = checks.whole_number("samples", samples, least=1)
        training = [(module, module.training) for module in model.modules()]
        model.eval()
        try:
            total = torch.zeros(())
            for _ in range(samples):
                with self.sampled(temperature, generator), torch.no_grad():
                    total = total + torch.softmax(model(x), -1)
        finally:
            for module, mode in training:
                module.training = mode
        return total / samples

    # ---- storing ----------------------------------------------------------------------------------------------------

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue from a stored state; nothing changes if it belongs to other parameters or another structure."""
        if not {"param_groups", "state"} <= state_dict.keys():
            raise ValueError(f"state_dict must have param_groups and state, got {', '.join(state_dict) or 'nothing'}")
        groups = state_dict["param_groups"]
        if len(groups) != len(self.param_groups):
            raise ValueError(f"state_dict must have {len(self.param_groups)} parameter groups, got {len(groups)}")
        stored: list[tuple[Tensor, dict[str, Any]]] = []
        for own, other in zip(self.param_groups, groups, strict=True):
            for name in STRUCTURE:
                if other.get(name) != own[name]:
                    wanted, found = own[name], other.get(name)
                    raise ValueError(f"state_dict must have been stored with {name}={wanted!r}, got {found!r}")
            if len(own["params"]) != len(other["params"]):
                wanted, found = len(own["params"]), len(other["params"])
                raise ValueError(f"state_dict must have {wanted} parameters in this group, got {found}")
            for p, index in zip(own["params"], other["params"], strict=True):
                state = state_dict["state"].get(index)
                if state:
                    _check_state(own, p, state)
                    stored.append((p, state))
        super().load_state_dict(state_dict)
        self._plans.clear()
        for p, state in stored:  # in full precision, which torch would reduce to that of the parameter
            dtype = working_dtype(p)
            self.state[p] = {name: value.to(p.device, dtype, copy=True) for name, value in state.items()}
        self._say_wanted()

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), **{name: getattr(self, name) for name in COPIED}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._plans = {}
        self._is_sampled = False


class PlanSet(NamedTuple):
    """The plans of a group, with the parameters and shapes they were made for."""

    ready: list[Tensor]
    shapes: list[torch.Size]
    plans: list[Plan]

    def fits(self, ready: list[Tensor]) -> bool:
        """Whether these are the parameters, with their shapes and with dense gradients."""
        if len(ready) != len(self.ready):
            return False
        known = zip(ready, self.ready, self.shapes, strict=True)
        return all(p is q and p.shape == s and _has_dense_gradient(p) for p, q, s in known)


def _has_dense_gradient(p: Tensor) -> bool:
    return p.grad is None or p.grad.layout is torch.strided


def _check_state(group: dict[str, Any], p: Tensor, state: dict[str, Any]) -> None:
    both = (first_state(group, p), state)
    wanted, found = ({name: tuple(getattr(value, "shape", ())) for name, value in one.items()} for one in both)
    if wanted != found:
        raise ValueError(f"state_dict must fit {named(p)}: its state has the shapes {wanted}, got {found}")


def _check_options(options: dict[str, Any]) -> None:
    lr = options["lr"]
    if isinstance(lr, Tensor) and lr.device.type != "cpu":  # its number is not copied to the host
        good = lr.numel() == 1
    else:
        good = checks.real_number("lr", lr.detach() if isinstance(lr, Tensor) else lr) >= 0
    if not good:
        raise ValueError(f"lr must be one number that is at least 0, got {lr!r}")
    for name in ("curvature_lr", "first_precision", "entropy"):
        checks.real_number(name, options[name], positive=True)
    for name in ("damping", "l2"):
        checks.not_negative(name, options[name])
    for name in ("momentum", "warm_up"):
        checks.not_negative(name, options[name], below=1)
    checks.whole_number("refresh", options["refresh"], least=1)
