"""The optimizer in the place of Adam: groups, schedulers, stored states, all kinds of parameters."""

import copy
import io
import pickle

import pytest

torch = pytest.importorskip("torch", reason="needs torch (extra 'torch')")

from torch import nn  # noqa: E402

from esgroup.groups import Full, Triangular  # noqa: E402
from esgroup.torch import StructuredNGD  # noqa: E402
from tests.torch import networks  # noqa: E402
from tests.torch.networks import STRUCTURES, filled, gradients, same, seeded, snapshot, train, values  # noqa: E402

on_all_structures = pytest.mark.parametrize("structure", STRUCTURES.values(), ids=STRUCTURES)
on_three_structures = pytest.mark.parametrize("name", ["frame", "block_triangular", "full"])
cross_entropy = nn.functional.cross_entropy


# ---- in the place of Adam -------------------------------------------------------------------------------------------


@on_three_structures
def test_a_regression_is_fitted(name) -> None:
    x = torch.randn(64, 6, generator=seeded(1), dtype=torch.float64)
    y = torch.stack([(x[:, 0] + 0.5 * x[:, 3]).sin(), x[:, 1] * 0.3 - x[:, 5]], 1)
    model = filled(nn.Sequential(nn.Linear(6, 10), nn.Tanh(), nn.Linear(10, 2)), 0).double()
    optimizer = StructuredNGD(model.parameters(), lr=0.03, batch_size=64, refresh=2, **STRUCTURES[name])
    losses = []
    for _ in range(170):
        optimizer.zero_grad()
        loss = (model(x) - y).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 10
    assert optimizer.skipped == 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_a_classification_is_learned(dtype) -> None:
    x, y = networks.images(48, dtype)
    model = networks.network(dtype)
    optimizer = StructuredNGD(model.parameters(), lr=0.02, batch_size=48, refresh=2)
    assert networks.learned(model, optimizer, x, y, steps=110) < 0.4
    assert all(p.dtype is dtype for p in model.parameters())


def test_a_closure_is_evaluated_once_with_gradients_and_its_loss_is_returned() -> None:
    model, other = networks.network(), networks.network()
    optimizer, plain = (StructuredNGD(m.parameters(), batch_size=12) for m in (model, other))
    x, y = networks.images(seed=100)
    calls = []

    def closure():
        calls.append(torch.is_grad_enabled())
        optimizer.zero_grad()
        loss = cross_entropy(model(x), y)
        loss.backward()
        return loss

    expected = cross_entropy(model(x), y)
    assert torch.equal(optimizer.step(closure), expected)
    assert calls == [True]
    train(other, plain, 0, 1)
    assert same(values(model), values(other))


def test_a_step_without_a_closure_returns_none_and_leaves_gradients_alone() -> None:
    model = networks.network()
    optimizer = StructuredNGD(model.parameters(), batch_size=12)
    gradients(model, 3)
    before = [p.grad.clone() for p in model.parameters()]
    assert optimizer.step() is None
    assert same([p.grad for p in model.parameters()], before)
    assert all(p.requires_grad and p.is_leaf for p in model.parameters())


def test_zero_grad_makes_the_next_step_do_nothing() -> None:
    model = networks.network()
    optimizer = StructuredNGD(model.parameters(), batch_size=12)
    train(model, optimizer, 0, 2)
    before = snapshot(optimizer)
    optimizer.zero_grad()
    optimizer.step()
    assert same(snapshot(optimizer), before)


# ---- groups of parameters -------------------------------------------------------------------------------------------


def test_groups_of_parameters_have_options_of_their_own() -> None:
    """Two groups in one optimizer move as in two optimizers with these options."""
    options = (
        {"lr": 0.03, "rows": "triangular", "cols": "block_triangular:k=2", "refresh": 2, "momentum": 0.5},
        {"lr": 0.01, "rows": "diagonal", "cols": "frame:k=2", "refresh": 3, "l2": 0.1, "warm_up": 0.9},
    )
    model, other = networks.network(), networks.network()
    parts = [list(m[:4].parameters()) for m in (model, other)], [list(m[4:].parameters()) for m in (model, other)]
    together = StructuredNGD(
        [{"params": part[0], **own} for part, own in zip(parts, options, strict=True)], batch_size=9
    )
    alone = [StructuredNGD(part[1], batch_size=9, **own) for part, own in zip(parts, options, strict=True)]
    for number in range(7):
        gradients(model, number)
        gradients(other, number)
        together.step()
        for optimizer in alone:
            optimizer.step()
    assert same(values(model), values(other))


def test_a_group_that_is_added_later_begins_its_own_count_of_steps() -> None:
    model, other = networks.network(), networks.network()
    optimizer = StructuredNGD(model[0].parameters(), batch_size=9, refresh=2)
    for number in range(4):
        gradients(model[0], number)
        optimizer.step()
    optimizer.add_param_group({"params": list(model[6].parameters()), "lr": 0.02})
    alone = StructuredNGD(other[6].parameters(), batch_size=9, refresh=2, lr=0.02)
    for number in range(4, 7):
        gradients(model, number)
        gradients(other, number)
        optimizer.step()
        alone.step()
    assert same(values(model[6]), values(other[6]))


def test_groups_of_the_package_are_taken_as_structures() -> None:
    one, other = (filled(nn.Linear(4, 3), 2).double() for _ in range(2))
    by_name = StructuredNGD(one.parameters(), batch_size=5, rows="full", cols="triangular")
    by_group = StructuredNGD(other.parameters(), batch_size=5, rows=Full(3), cols=Triangular(4))
    for number in range(6):
        gradients(one, number)
        gradients(other, number)
        by_name.step()
        by_group.step()
    assert same(values(one), values(other))


# ---- learning rates -------------------------------------------------------------------------------------------------


def first_step(lr, **options) -> list[torch.Tensor]:
    """The change of all parameters in one step with small gradients, which no bound shortens."""
    model = networks.network()
    optimizer = StructuredNGD(model.parameters(), lr=lr, batch_size=3, **options)
    before = values(model)
    gradients(model, 4, 0.01)
    optimizer.step()
    return [new - old for new, old in zip(values(model), before, strict=True)]


def test_the_learning_rate_scales_the_step() -> None:
    for short, long in zip(first_step(1e-3), first_step(3e-3), strict=True):
        torch.testing.assert_close(long, 3 * short, rtol=1e-9, atol=1e-15)
        assert float(short.norm()) > 0


def test_a_learning_rate_of_zero_moves_no_parameter() -> None:
    assert all(float(change.abs().max()) == 0 for change in first_step(0.0))


def test_a_learning_rate_may_be_a_tensor() -> None:
    for one, other in zip(first_step(1e-3), first_step(torch.tensor(1e-3, dtype=torch.float64)), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=0)


SCHEDULERS = {
    "lambda": lambda optimizer: torch.optim.lr_scheduler.LambdaLR(optimizer, lambda t: 1 / (1 + t)),
    "cosine": lambda optimizer: torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 6, eta_min=1e-3),
}


@pytest.mark.parametrize("tensor", [False, True], ids=["number", "tensor"])
@pytest.mark.parametrize("kind", SCHEDULERS)
def test_schedulers_change_the_step(kind, tensor) -> None:
    """With a scheduler the parameters are those of an optimizer whose lr is set by hand to what the formula says."""
    model, other = networks.network(), networks.network()
    lr = torch.tensor(0.02, dtype=torch.float64) if tensor else 0.02
    optimizer = StructuredNGD(model.parameters(), lr=lr, batch_size=5)
    by_hand = StructuredNGD(other.parameters(), lr=0.02, batch_size=5)
    scheduler = SCHEDULERS[kind](optimizer)
    for t in range(6):
        cosine = 1e-3 + (0.02 - 1e-3) * (1 + float(torch.cos(torch.tensor(torch.pi * t / 6)))) / 2
        by_hand.param_groups[0]["lr"] = 0.02 / (1 + t) if kind == "lambda" else cosine
        gradients(model, t)
        gradients(other, t)
        optimizer.step()
        by_hand.step()
        scheduler.step()
    for one, another in zip(values(model), values(other), strict=True):
        torch.testing.assert_close(one, another, rtol=1e-6, atol=1e-9)
    plain = networks.network()
    optimizer = StructuredNGD(plain.parameters(), lr=0.02, batch_size=5)
    for t in range(6):
        gradients(plain, t)
        optimizer.step()
    assert not torch.allclose(values(plain)[0], values(model)[0], rtol=1e-3)


# ---- stored states --------------------------------------------------------------------------------------------------


def stored_and_loaded(state):
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    return torch.load(file, weights_only=True)


@on_three_structures
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
def test_a_stored_state_continues_bit_for_bit(dtype, name) -> None:
    options = {"batch_size": 12, "refresh": 4, "l2": 0.01, "warm_up": 0.9, **STRUCTURES[name]}
    model = networks.network(dtype)
    optimizer = StructuredNGD(model.parameters(), **options)
    train(model, optimizer, 0, 7)
    weights, state = stored_and_loaded((model.state_dict(), optimizer.state_dict()))
    train(model, optimizer, 7, 15)

    other = networks.network(dtype, seed=5)
    other.load_state_dict(weights)
    resumed = StructuredNGD(other.parameters(), **options)
    resumed.load_state_dict(state)
    train(other, resumed, 7, 15)
    assert same(values(other), values(model))
    assert same(snapshot(resumed), snapshot(optimizer))
    wide = torch.float64 if dtype is torch.float64 else torch.float32
    assert {resumed.state[p]["momentum"].dtype for p in other.parameters()} == {wide}


def test_a_loaded_state_is_a_copy() -> None:
    model, other = networks.network(), networks.network()
    optimizer, loaded = (StructuredNGD(m.parameters(), batch_size=12) for m in (model, other))
    train(model, optimizer, 0, 3)
    state = optimizer.state_dict()
    loaded.load_state_dict(state)
    before = snapshot(optimizer)
    train(other, loaded, 3, 6)
    assert same(snapshot(optimizer), before)


def test_a_state_of_another_precision_is_converted() -> None:
    model, narrow = networks.network(), networks.network(torch.float32)
    optimizer, loaded = (StructuredNGD(m.parameters(), batch_size=12) for m in (model, narrow))
    train(model, optimizer, 0, 3)
    loaded.load_state_dict(optimizer.state_dict())
    train(narrow, loaded, 3, 6)
    train(model, optimizer, 3, 6)
    assert {value.dtype for p in narrow.parameters() for value in loaded.state[p].values()} == {torch.float32}


def test_an_optimizer_that_was_used_before_takes_a_stored_state() -> None:
    model, other = networks.network(), networks.network()
    optimizer, used = (StructuredNGD(m.parameters(), batch_size=12, refresh=3) for m in (model, other))
    train(model, optimizer, 0, 4)
    train(other, used, 5, 11)
    other.load_state_dict(model.state_dict())
    used.load_state_dict(optimizer.state_dict())
    train(model, optimizer, 4, 9)
    train(other, used, 4, 9)
    assert same(values(other), values(model))


@on_three_structures
@pytest.mark.parametrize(
    "way", [copy.deepcopy, lambda pair: pickle.loads(pickle.dumps(pair))], ids=["deepcopy", "pickle"]
)
def test_a_copy_of_a_model_and_its_optimizer_continues_the_same_way(way, name) -> None:
    model = networks.network()
    optimizer = StructuredNGD(model.parameters(), batch_size=12, refresh=3, data_size=70, **STRUCTURES[name])
    train(model, optimizer, 0, 4)
    other, copied = way((model, optimizer))
    train(model, optimizer, 4, 9)
    assert not same(values(other), values(model))
    train(other, copied, 4, 9)
    assert same(values(other), values(model))
    assert copied.data_size == 70
    assert copied.curvature.batch_size == 12
    assert repr(copied) == repr(optimizer)


def test_a_copy_of_an_optimizer_alone_is_independent() -> None:
    model = networks.network()
    optimizer = StructuredNGD(model.parameters(), batch_size=12)
    train(model, optimizer, 0, 3)
    copied = copy.deepcopy(optimizer)
    before = snapshot(copied)
    train(model, optimizer, 3, 5)
    assert same(snapshot(copied), before)


# ---- many layers at once --------------------------------------------------------------------------------------------


@on_all_structures
def test_layers_of_one_shape_move_as_if_alone(structure) -> None:
    """Layers of one shape are one batch in the optimizer: the same as an optimizer for every layer."""
    model, other = (
        filled(nn.Sequential(nn.Linear(5, 5), nn.Linear(5, 5), nn.Linear(4, 5), nn.Linear(5, 5)), 3).double()
        for _ in range(2)
    )
    options = {"batch_size": 8, "refresh": 2, "lr": 0.05, "l2": 0.02, **structure}
    together = StructuredNGD(model.parameters(), **options)
    alone = [StructuredNGD(layer.parameters(), **options) for layer in other]
    for number in range(9):
        for i, (layer, twin) in enumerate(zip(model, other, strict=True)):
            gradients(layer, 10 * number + i, 0.1 * 3**i)  # of different size, so that bounds act on some of them only
            gradients(twin, 10 * number + i, 0.1 * 3**i)
        together.step()
        for optimizer in alone:
            optimizer.step()
    for one, another in zip(values(model), values(other), strict=True):
        torch.testing.assert_close(one, another, rtol=1e-12, atol=1e-12)


def test_the_order_of_parameters_does_not_matter() -> None:
    model, other = networks.network(), networks.network()
    optimizer = StructuredNGD(model.parameters(), batch_size=12)
    reversed_ = StructuredNGD(list(other.parameters())[::-1], batch_size=12)
    train(model, optimizer, 0, 6)
    train(other, reversed_, 0, 6)
    for one, another in zip(values(model), values(other), strict=True):
        torch.testing.assert_close(one, another, rtol=1e-12, atol=1e-12)


# ---- parameters without gradients -----------------------------------------------------------------------------------


def test_parameters_without_gradients_are_left_alone() -> None:
    model = networks.network()
    optimizer = StructuredNGD(model.parameters(), batch_size=12, l2=0.1)
    gradients(model, 1)
    model[4].weight.grad = None
    model[0].bias.grad = None
    before = values(model)
    optimizer.step()
    for (name, p), old in zip(model.named_parameters(), before, strict=True):
        assert torch.equal(p, old) == (name in ("4.weight", "0.bias"))


def test_which_parameters_have_gradients_may_change() -> None:
    """Every parameter moves as in an optimizer of its own, which makes a step only when there is a gradient."""
    model, other = (filled(nn.Sequential(*(nn.Linear(4, 4) for _ in range(3))), 3).double() for _ in range(2))
    together = StructuredNGD(model.parameters(), batch_size=8, refresh=1)
    alone = {p: StructuredNGD([p], batch_size=8, refresh=1) for p in other.parameters()}
    pairs = list(zip(model.parameters(), other.parameters(), strict=True))
    active = [(0, 1, 2, 3, 4, 5), (0, 1, 4), (2, 3), (0, 1, 2, 3, 4, 5), (5,), (), (1, 2, 5), (0, 1, 2, 3, 4, 5)]
    for number, places in enumerate(active):
        gradients(model, number)
        gradients(other, number)
        for i, (p, twin) in enumerate(pairs):
            if i not in places:
                p.grad = twin.grad = None
        resting = {i: {k: v.clone() for k, v in together.state[pairs[i][0]].items()} for i in {*range(6)} - {*places}}
        together.step()
        for _, twin in pairs:
            alone[twin].step()
        for i, old in resting.items():
            assert all(torch.equal(together.state[pairs[i][0]][k], v) for k, v in old.items())
    for p, twin in pairs:
        torch.testing.assert_close(p, twin, rtol=1e-12, atol=1e-12)
        for name, value in together.state[p].items():
            torch.testing.assert_close(value, alone[twin].state[twin][name], rtol=1e-12, atol=1e-12)


# ---- kinds of parameters --------------------------------------------------------------------------------------------


@on_all_structures
def test_a_convolution_is_a_matrix_of_output_channels_and_patches(structure) -> None:
    convolution = filled(nn.Conv2d(2, 4, (2, 3)), 3).double()
    linear = nn.Linear(12, 4).double()
    with torch.no_grad():
        linear.weight.copy_(convolution.weight.reshape(4, 12))
        linear.bias.copy_(convolution.bias)
    optimizers = [
        StructuredNGD(layer.parameters(), batch_size=8, refresh=2, **structure) for layer in (convolution, linear)
    ]
    for number in range(6):
        gradients(convolution, number)
        linear.weight.grad = convolution.weight.grad.reshape(4, 12)
        linear.bias.grad = convolution.bias.grad
        for optimizer in optimizers:
            optimizer.step()
    assert torch.equal(convolution.weight.reshape(4, 12), linear.weight)
    assert torch.equal(convolution.bias, linear.bias)


def test_the_memory_format_of_a_convolution_does_not_matter() -> None:
    model, other = networks.network(), networks.network()
    other = other.to(memory_format=torch.channels_last)
    optimizers = [StructuredNGD(m.parameters(), batch_size=8, refresh=2) for m in (model, other)]
    for number in range(6):
        gradients(model, number)
        for p, twin in zip(model.parameters(), other.parameters(), strict=True):
            twin.grad = p.grad.contiguous(memory_format=torch.channels_last) if p.ndim == 4 else p.grad
        for optimizer in optimizers:
            optimizer.step()
    for one, twin in zip(values(model), values(other), strict=True):  # norms are summed in another order
        torch.testing.assert_close(twin, one, rtol=0, atol=1e-13)
    assert other[0].weight.is_contiguous(memory_format=torch.channels_last)
    assert not other[0].weight.is_contiguous()


def test_gradients_that_are_not_contiguous_are_read_in_order() -> None:
    one, other = (filled(nn.Linear(4, 3), 2).double() for _ in range(2))
    optimizers = [StructuredNGD(m.parameters(), batch_size=8) for m in (one, other)]
    gradients(one, 1)
    other.weight.grad = one.weight.grad.T.contiguous().T
    other.bias.grad = one.bias.grad.expand(2, 3).T[:, 0]
    assert not other.weight.grad.is_contiguous()
    for optimizer in optimizers:
        optimizer.step()
    assert same(values(other), values(one))


def test_an_embedding_is_learned() -> None:
    model = filled(nn.Sequential(nn.Embedding(11, 4), nn.Flatten(), nn.Linear(8, 3)), 1).double()
    x = torch.randint(11, (40, 2), generator=seeded(1))
    y = (x[:, 0] + x[:, 1]) % 3
    optimizer = StructuredNGD(model.parameters(), lr=0.03, batch_size=40, refresh=2)
    assert networks.learned(model, optimizer, x, y, steps=130) < 0.6


def test_numbers_and_layers_of_one_row_or_column_move() -> None:
    shapes = [(), (1,), (1, 5), (5, 1), (1, 1), (2, 3, 2, 1, 2)]
    parameters = [
        nn.Parameter(torch.randn(shape, generator=seeded(i), dtype=torch.float64)) for i, shape in enumerate(shapes)
    ]
    before = [p.detach().clone() for p in parameters]
    optimizer = StructuredNGD(parameters, batch_size=4, refresh=1, rows="frame:k=2")
    for _ in range(3):
        for p in parameters:
            p.grad = p.detach() * 0.5 + 0.1
        optimizer.step()
    for p, old in zip(parameters, before, strict=True):
        assert p.shape == old.shape
        assert torch.isfinite(p).all()
        assert not torch.equal(p, old)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@on_all_structures
def test_narrow_parameters_have_a_state_of_single_precision(structure, dtype) -> None:
    model, wide = networks.network(dtype), networks.network(dtype).float()
    optimizer, other = (StructuredNGD(m.parameters(), batch_size=8, refresh=2, **structure) for m in (model, wide))
    for number in range(5):
        gradients(model, number)
        for p, twin in zip(model.parameters(), wide.parameters(), strict=True):
            twin.grad = p.grad.float()
        optimizer.step()
        other.step()
    for p, twin in zip(model.parameters(), wide.parameters(), strict=True):
        assert p.dtype is dtype
        assert {value.dtype for value in optimizer.state[p].values()} == {torch.float32}
        torch.testing.assert_close(p.float(), twin, rtol=0.03, atol=0.01)


# ---- compiled -------------------------------------------------------------------------------------------------------


def compiled_equals_eager(make, backend: str, tolerance: float) -> None:
    """Twenty compiled steps are those without, and after two refreshes nothing is compiled again."""
    counts = torch._dynamo.utils.counters["stats"]
    torch._dynamo.reset()
    model, other = (filled(make(), 2) for _ in range(2))
    plain, optimizer = (
        StructuredNGD(m.parameters(), batch_size=8, refresh=3, cols="frame:k=2") for m in (model, other)
    )
    step = torch.compile(optimizer.step, backend=backend)
    compiled = []
    for number in range(20):
        gradients(model, number)
        gradients(other, number)
        plain.step()
        step()
        compiled.append(counts["unique_graphs"])
    torch._dynamo.reset()
    for one, another in zip(values(model), values(other), strict=True):
        torch.testing.assert_close(one, another, rtol=tolerance, atol=tolerance)
    assert 0 < compiled[6] == compiled[-1]


def test_a_compiled_step_is_the_same() -> None:
    compiled_equals_eager(lambda: nn.LayerNorm(5).double(), "eager", 1e-12)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::FutureWarning")  # of torch, about its own functions
@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_a_compiled_step_of_a_layer_is_the_same(backend) -> None:
    compiled_equals_eager(lambda: nn.Linear(5, 3), backend, 1e-6)


# ---- on devices without numbers -------------------------------------------------------------------------------------


@on_all_structures
def test_a_step_reads_no_number_on_the_host(structure) -> None:
    """Tensors on the meta device have no numbers, so whoever asks for one fails."""
    model = networks.network(torch.float32).to("meta")
    optimizer = StructuredNGD(model.parameters(), batch_size=8, refresh=2, l2=0.1, warm_up=0.9, **structure)
    for _ in range(3):
        for p in model.parameters():
            p.grad = torch.empty_like(p)
        optimizer.step()
    for p in model.parameters():
        assert {value.device.type for value in optimizer.state[p].values()} == {"meta"}
