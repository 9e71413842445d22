"""Where E[g g^T] comes from: against loops over examples, and against factors written out by hand."""

import copy
import pickle

import pytest

torch = pytest.importorskip("torch", reason="needs torch (extra 'torch')")

from torch import Tensor, nn  # noqa: E402

from esgroup.torch import KroneckerFactors, PerExampleGradients, SquaredGradient, StructuredNGD  # noqa: E402
from esgroup.torch.layers import Factors, Gradients  # noqa: E402
from tests.torch import networks  # noqa: E402
from tests.torch.networks import filled, same, seeded, snapshot, values  # noqa: E402

cross_entropy = nn.functional.cross_entropy


def flat_gradients(parameters) -> Tensor:
    """The gradients of matrices of one shape, stacked."""
    return torch.stack([p.grad.reshape(p.shape[0], -1) for p in parameters])


def dense(seen: Gradients | Factors) -> Tensor:
    """E[g g^T] as a matrix of (d p, d p) for every layer, read row by row."""
    if isinstance(seen, Gradients):
        g = seen.g.flatten(-2)
        return seen.weight * g.mT @ g
    a, b = seen.a.mT @ seen.a, seen.b.mT @ seen.b
    return seen.weight * torch.stack([torch.kron(*pair) for pair in zip(b, a, strict=True)])


def example_gradients(model: nn.Module, x: Tensor, y: Tensor) -> list[list[Tensor]]:
    """The gradients of the parameters for every example alone."""
    parameters = list(model.parameters())
    return [
        list(torch.autograd.grad(cross_entropy(model(x[i : i + 1]), y[i : i + 1]), parameters)) for i in range(len(x))
    ]


def backward(model: nn.Module, x: Tensor, y: Tensor) -> None:
    model.zero_grad()
    cross_entropy(model(x), y).backward()


# ---- squares of the gradient of a mini-batch ------------------------------------------------------------------------


def test_the_squared_gradient_is_weighted_by_the_batch_size() -> None:
    model = networks.network()
    x, y = networks.images()
    backward(model, x, y)
    curvature, weight, bias = SquaredGradient(12), model[4].weight, model[4].bias
    g = weight.grad.flatten()
    torch.testing.assert_close(
        dense(curvature.of_matrices([weight], flat_gradients([weight])))[0], 12 * torch.outer(g, g)
    )
    torch.testing.assert_close(curvature.of_vectors([bias], bias.grad), 12 * bias.grad**2)
    assert repr(curvature) == "SquaredGradient(batch_size=12)"


def test_the_squared_gradient_is_right_on_average_where_the_mean_gradient_is_zero() -> None:
    """Batches of n gradients of mean zero: E[n G G^T] = E[g g^T], within 5 standard errors."""
    mixing = torch.randn(6, 6, generator=seeded(1), dtype=torch.float64)
    examples = torch.randn(4000, 5, 6, generator=seeded(2), dtype=torch.float64) @ mixing
    means = examples.mean(1)
    seen = torch.stack([dense(SquaredGradient(5).of_matrices([], g.reshape(1, 2, 3)))[0] for g in means])
    error = (seen.mean(0) - mixing.T @ mixing) / (seen.std(0) / 4000**0.5)
    assert float(error.abs().max()) < 5


# ---- gradients of single examples -----------------------------------------------------------------------------------


def test_gradients_of_single_examples_are_those_of_a_loop() -> None:
    model = networks.network()
    x, y = networks.images()
    curvature = PerExampleGradients(model, cross_entropy)
    curvature.observe(x, y)
    backward(model, x, y)
    loop = example_gradients(model, x, y)
    for i, p in enumerate(model.parameters()):
        expected = torch.stack([example[i].flatten() for example in loop])
        if p.ndim < 2:
            torch.testing.assert_close(curvature.of_vectors([p], p.grad), expected.square().mean(0))
        else:
            found = dense(curvature.of_matrices([p], flat_gradients([p])))[0]
            torch.testing.assert_close(found, expected.T @ expected / len(x))
    assert curvature.batch_size == len(x)


def test_gradients_of_single_examples_of_several_layers_keep_their_order() -> None:
    model = filled(nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4)), 1).double()
    x, y = torch.randn(7, 4, generator=seeded(1), dtype=torch.float64), torch.arange(7) % 4
    curvature = PerExampleGradients(model, cross_entropy)
    curvature.observe(x, y)
    backward(model, x, y)
    pair, biases = [model[2].weight, model[0].weight], [model[2].bias, model[0].bias]
    found = dense(curvature.of_matrices(pair, flat_gradients(pair)))
    loop = example_gradients(model, x, y)
    for own, place in zip(found, (2, 0), strict=True):
        expected = torch.stack([example[place].flatten() for example in loop])
        torch.testing.assert_close(own, expected.T @ expected / 7)
    squares = curvature.of_vectors(biases, torch.cat([p.grad for p in biases]))
    expected = torch.cat([torch.stack([example[place] for example in loop]).square().mean(0) for place in (3, 1)])
    torch.testing.assert_close(squares, expected)


def test_frozen_parameters_and_buffers_take_part_without_gradients() -> None:
    model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Tanh(), nn.Linear(3, 3)).double()
    filled(model, 1)
    model[1].running_mean.copy_(torch.tensor([0.3, -0.2, 1.0]))
    model[0].weight.requires_grad_(False)
    model.eval()
    x, y = torch.randn(5, 4, generator=seeded(1), dtype=torch.float64), torch.arange(5) % 3
    curvature = PerExampleGradients(model, cross_entropy)
    curvature.observe(x, y)
    p = model[3].weight
    expected = torch.stack(
        [torch.autograd.grad(cross_entropy(model(x[i : i + 1]), y[i : i + 1]), p)[0].flatten() for i in range(5)]
    )
    found = dense(curvature.of_matrices([p], torch.zeros(1, 3, 3, dtype=torch.float64)))[0]
    torch.testing.assert_close(found, expected.T @ expected / 5)


def test_dropout_differs_between_examples() -> None:
    model = nn.Sequential(nn.Dropout(0.5), filled(nn.Linear(6, 3), 1)).double()
    x, y = torch.ones(40, 6, dtype=torch.float64), torch.zeros(40, dtype=torch.int64)
    curvature = PerExampleGradients(model, cross_entropy)
    torch.manual_seed(3)
    curvature.observe(x, y)
    g = curvature.of_matrices([model[1].weight], torch.zeros(1, 3, 6, dtype=torch.float64)).g[0]
    assert len({tuple((row[0] != 0).tolist()) for row in g}) > 10


def test_a_step_without_observed_examples_is_refused_and_changes_nothing() -> None:
    model = networks.network()
    curvature = PerExampleGradients(model, cross_entropy)
    optimizer = StructuredNGD(model.parameters(), curvature=curvature, refresh=2)
    for number in range(4):
        x, y = networks.images(seed=number)
        backward(model, x, y)
        if number % 2 == 0:  # what the last refresh saw is not used again
            before = values(model)
            with pytest.raises(RuntimeError, match=r"observe\(x, y\) must be called"):
                optimizer.step()
            assert same(values(model), before)
        curvature.observe(x, y)
        optimizer.step()


def test_examples_are_differentiated_only_when_a_step_will_ask() -> None:
    model = networks.network()
    x, y = networks.images()
    asked = []
    wanted = []

    def loss(outputs: Tensor, target: Tensor) -> Tensor:
        asked.append(len(wanted) - 1)
        return cross_entropy(outputs, target)

    curvature = PerExampleGradients(model, loss)
    optimizer = StructuredNGD(model.parameters(), curvature=curvature, refresh=3)
    for _ in range(7):
        wanted.append(curvature.wanted)
        curvature.observe(x, y)
        backward(model, x, y)
        optimizer.step()
    assert wanted == [True, False, False, True, False, False, True]
    assert set(asked) == {0, 3, 6}


# ---- Kronecker factors ----------------------------------------------------------------------------------------------


def by_hand(model: nn.Sequential, place: int, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """The inputs of a layer, and the derivatives of the mean loss with respect to its outputs."""
    a = model[:place](x).detach()
    out = model[place](a).detach().requires_grad_()
    loss = cross_entropy(model[place + 1 :](out), y)
    return a, torch.autograd.grad(loss, out)[0]


def test_the_factors_of_a_linear_layer_are_those_of_inputs_and_derivatives() -> None:
    model = networks.network()
    curvature = KroneckerFactors(model)
    x, y = networks.images()
    backward(model, x, y)
    n, p = len(x), model[4].weight
    a, b = by_hand(model, 4, x, y)
    expected = torch.kron(n * b.T @ b, a.T @ a / n)  # E[(n b) (n b)^T] and E[a a^T]
    torch.testing.assert_close(dense(curvature.of_matrices([p], flat_gradients([p])))[0], expected)
    torch.testing.assert_close(curvature.of_vectors([model[4].bias], model[4].bias.grad), n * b.square().sum(0))
    assert curvature.batch_size == n


CONVOLUTIONS = {
    "plain": {"kernel_size": 2},
    "padded": {"kernel_size": 3, "padding": 1},
    "strides": {"kernel_size": (2, 3), "stride": (2, 1), "padding": (1, 0)},
    "dilated": {"kernel_size": 2, "dilation": 2},
    "same": {"kernel_size": (1, 3), "padding": "same", "dilation": 2},
    "circular": {"kernel_size": 3, "padding": 1, "padding_mode": "circular"},
    "reflected": {"kernel_size": (3, 2), "padding": (1, 0), "padding_mode": "reflect"},
}


@pytest.mark.parametrize("kind", CONVOLUTIONS)
def test_the_factors_of_a_convolution_are_those_of_its_patches(kind) -> None:
    """A convolution is a linear layer on patches: their sum of b a^T is the gradient, and E is over all places."""
    layer = nn.Conv2d(2, 3, **CONVOLUTIONS[kind])
    model = filled(nn.Sequential(nn.Identity(), layer, nn.Tanh(), nn.Flatten()), 1).double()
    curvature = KroneckerFactors(model)
    x, y = torch.randn(5, 2, 4, 5, generator=seeded(1), dtype=torch.float64), torch.arange(5) % 3
    backward(model, x, y)
    n, (_, b) = len(x), by_hand(model, 1, x, y)
    # patches by the definition: what the convolution with every unit kernel gives
    units = torch.eye(layer.weight[0].numel(), dtype=torch.float64).reshape(-1, *layer.weight.shape[1:])
    padded = nn.functional.pad(
        x, layer._reversed_padding_repeated_twice, mode=layer.padding_mode.replace("zeros", "constant")
    )
    a = nn.functional.conv2d(padded, units, stride=layer.stride, dilation=layer.dilation)
    a, b = (side.flatten(2).mT.flatten(0, 1) for side in (a, b))
    torch.testing.assert_close(b.T @ a, layer.weight.grad.flatten(1))
    places = len(a) // n
    expected = torch.kron((n * b).T @ (n * b) / (n * places), a.T @ a / n)
    found = dense(curvature.of_matrices([layer.weight], flat_gradients([layer.weight])))[0]
    torch.testing.assert_close(found, expected)
    per_example = (n * b).reshape(n, places, -1).sum(1)
    squares = curvature.of_vectors([layer.bias], layer.bias.grad)
    torch.testing.assert_close(squares, per_example.square().mean(0))


@pytest.mark.parametrize("batched", [True, False])
def test_the_factors_of_one_example_in_a_linear_layer_are_exact(batched) -> None:
    model = filled(nn.Sequential(nn.Linear(6, 4), nn.Tanh(), nn.Linear(4, 3)), 1).double()
    x, y = torch.randn(1, 6, generator=seeded(1), dtype=torch.float64), torch.tensor([2])
    curvature, exact = KroneckerFactors(model), PerExampleGradients(model, cross_entropy)
    exact.observe(x, y)
    backward(model, *((x, y) if batched else (x[0], y[0])))
    assert curvature.batch_size == 1
    for layer in (model[0], model[2]):
        args = [layer.weight], flat_gradients([layer.weight])
        torch.testing.assert_close(dense(curvature.of_matrices(*args)), dense(exact.of_matrices(*args)))
        bias = [layer.bias], layer.bias.grad
        torch.testing.assert_close(curvature.of_vectors(*bias), exact.of_vectors(*bias))


def test_an_image_without_a_batch_dimension_is_one_example() -> None:
    layer = filled(nn.Conv2d(2, 3, 2), 1).double()
    model = nn.Sequential(layer, nn.Tanh())
    curvature = KroneckerFactors(model)
    x = torch.randn(1, 2, 3, 4, generator=seeded(1), dtype=torch.float64)
    found = []
    for images in (x, x[0]):
        model.zero_grad()
        curvature.forget()
        model(images).square().mean().backward()
        found.append(dense(curvature.of_matrices([layer.weight], flat_gradients([layer.weight]))))
        assert curvature.batch_size == 1
    torch.testing.assert_close(found[0], found[1])


def test_the_factors_of_a_sequence_take_its_places_as_those_of_an_image() -> None:
    """Linear on (n, t, p) is a convolution with kernels of 1 x 1."""
    linear = filled(nn.Linear(4, 3), 1).double()
    convolution = nn.Conv2d(4, 3, 1).double()
    with torch.no_grad():
        convolution.weight.copy_(linear.weight[:, :, None, None])
        convolution.bias.copy_(linear.bias)
    x = torch.randn(5, 6, 4, generator=seeded(1), dtype=torch.float64)
    found = []
    for layer, inputs in ((linear, x), (convolution, x.mT.unsqueeze(-1))):
        curvature = KroneckerFactors(layer)
        layer(inputs).sin().sum(tuple(range(1, inputs.ndim))).square().mean().backward()
        weight = dense(curvature.of_matrices([layer.weight], flat_gradients([layer.weight])))
        found.append((weight, curvature.of_vectors([layer.bias], layer.bias.grad)))
    torch.testing.assert_close(found[0], found[1])


def test_layers_of_one_shape_may_see_different_numbers_of_places() -> None:
    """Two convolutions of one shape on images of different sizes have the factors that each has alone."""
    model = filled(
        nn.Sequential(nn.Conv2d(2, 2, 2), nn.Tanh(), nn.Conv2d(2, 2, 2), nn.Flatten(), nn.Linear(12, 3)), 1
    ).double()
    curvature = KroneckerFactors(model)
    x, y = torch.randn(5, 2, 4, 5, generator=seeded(1), dtype=torch.float64), torch.arange(5) % 3
    backward(model, x, y)
    pair = [model[0].weight, model[2].weight]
    found = dense(curvature.of_matrices(pair, flat_gradients(pair)))
    for own, p in zip(found, pair, strict=True):
        alone = curvature.of_matrices([p], flat_gradients([p]))
        assert isinstance(alone, Factors)
        torch.testing.assert_close(own, dense(alone)[0])


def test_layers_without_factors_have_the_squared_gradient() -> None:
    model = filled(
        nn.Sequential(nn.Embedding(9, 4), nn.Conv1d(3, 2, 2), nn.Flatten(), nn.LayerNorm(6), nn.Linear(6, 3)), 1
    ).double()
    x, y = torch.randint(9, (5, 3), generator=seeded(1)), torch.arange(5) % 3
    curvature, squared = KroneckerFactors(model), SquaredGradient(5)
    backward(model, x, y)
    for p in (model[0].weight, model[1].weight):
        args = [p], flat_gradients([p])
        torch.testing.assert_close(dense(curvature.of_matrices(*args)), dense(squared.of_matrices(*args)))
    vectors = [model[3].weight, model[4].bias, model[1].bias]
    flat = torch.cat([p.grad for p in vectors])
    found, fallback = curvature.of_vectors(vectors, flat), squared.of_vectors(vectors, flat)
    torch.testing.assert_close(found[:6], fallback[:6])
    torch.testing.assert_close(found[9:], fallback[9:])
    assert not torch.allclose(found[6:9], fallback[6:9])
    assert isinstance(curvature.of_matrices([model[4].weight], flat_gradients([model[4].weight])), Factors)


def test_a_convolution_in_groups_has_the_squared_gradient() -> None:
    layer = filled(nn.Conv2d(4, 4, 2, groups=2), 1).double()
    curvature = KroneckerFactors(layer)
    assert repr(curvature) == "KroneckerFactors(0 layers)"
    layer(torch.randn(3, 4, 3, 3, generator=seeded(1), dtype=torch.float64)).square().mean().backward()
    assert isinstance(curvature.of_matrices([layer.weight], flat_gradients([layer.weight])), Gradients)


def test_activations_in_place_are_allowed() -> None:
    found = []
    for inplace in (False, True):
        model = filled(nn.Sequential(nn.Linear(6, 4), nn.ReLU(inplace), nn.Linear(4, 3)), 1).double()
        curvature = KroneckerFactors(model)
        x, y = torch.randn(5, 6, generator=seeded(1), dtype=torch.float64), torch.arange(5) % 3
        backward(model, x, y)
        pair = [model[0].weight]
        found.append(dense(curvature.of_matrices(pair, flat_gradients(pair))))
    torch.testing.assert_close(found[0], found[1])


def test_nothing_is_kept_when_it_is_not_wanted_or_has_been_used() -> None:
    model = networks.network()
    curvature = KroneckerFactors(model)
    optimizer = StructuredNGD(model.parameters(), curvature=curvature, refresh=3)
    for number in range(7):
        x, y = networks.images(n=10 + number, seed=number)
        with torch.no_grad():
            model(x[:2])  # an evaluation between the steps is not seen
        model.eval()
        backward(model, x, y)
        assert curvature.wanted == (number % 3 == 0)
        assert len(curvature._seen) == (3 if number % 3 == 0 else 0)
        assert curvature.batch_size == 10 + number
        optimizer.step()
        assert not curvature._seen


def test_a_group_with_another_distance_of_refreshes_is_asked_for_too() -> None:
    model = networks.network()
    curvature = SquaredGradient(12)
    groups = [
        {"params": list(model[:4].parameters()), "refresh": 2},
        {"params": list(model[4:].parameters()), "refresh": 3},
    ]
    optimizer = StructuredNGD(groups, curvature=curvature)
    wanted = []
    for number in range(7):
        wanted.append(curvature.wanted)
        networks.gradients(model, number)
        optimizer.step()
    assert wanted == [number % 2 == 0 or number % 3 == 0 for number in range(7)]


def test_a_loaded_state_says_whether_curvature_is_wanted() -> None:
    def trained(steps: int) -> tuple[StructuredNGD, KroneckerFactors]:
        model = networks.network()
        curvature = KroneckerFactors(model)
        optimizer = StructuredNGD(model.parameters(), curvature=curvature, refresh=3)
        for number in range(steps):
            backward(model, *networks.images(seed=number))
            optimizer.step()
        return optimizer, curvature

    (early, _), (late, _) = trained(3), trained(4)
    optimizer, curvature = trained(1)
    assert not curvature.wanted
    optimizer.load_state_dict(early.state_dict())
    assert curvature.wanted
    optimizer.load_state_dict(late.state_dict())
    assert not curvature.wanted


def steps_with(model: nn.Module, optimizer: StructuredNGD, numbers: range) -> None:
    for number in numbers:
        x, y = networks.images(seed=number)
        if isinstance(optimizer.curvature, PerExampleGradients):
            optimizer.curvature.observe(x, y)
        backward(model, x, y)
        optimizer.step()


KINDS = {"kronecker": KroneckerFactors, "examples": lambda model: PerExampleGradients(model, cross_entropy)}


@pytest.mark.parametrize(
    "way", [copy.deepcopy, lambda pair: pickle.loads(pickle.dumps(pair))], ids=["deepcopy", "pickle"]
)
@pytest.mark.parametrize("kind", KINDS)
def test_a_copy_of_a_model_and_its_optimizer_sees_its_own_curvature(kind, way) -> None:
    model = networks.network()
    optimizer = StructuredNGD(model.parameters(), curvature=KINDS[kind](model), refresh=2)
    steps_with(model, optimizer, range(3))
    other, copied = way((model, optimizer))
    steps_with(model, optimizer, range(3, 7))
    steps_with(other, copied, range(3, 7))
    assert same(snapshot(copied), snapshot(optimizer))


@pytest.mark.parametrize("kind", KINDS)
def test_a_network_learns_with_every_curvature(kind) -> None:
    model = networks.network()
    optimizer = StructuredNGD(model.parameters(), lr=0.02, curvature=KINDS[kind](model), refresh=2)
    x, y = networks.images(40)
    assert networks.learned(model, optimizer, x, y, steps=100) < 0.5
