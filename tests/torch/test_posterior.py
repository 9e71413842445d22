"""Samples, predictions and calibration; single layers as distributions of the package."""

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs torch (extra 'torch')")

from torch import Tensor, nn  # noqa: E402

from esgroup import MatrixGaussian  # noqa: E402
from esgroup.distributions import State  # noqa: E402
from esgroup.torch import StructuredNGD, calibration  # noqa: E402
from tests.torch import networks  # noqa: E402
from tests.torch.networks import STRUCTURES, filled, gradients, same, seeded, snapshot, train, values  # noqa: E402

on_all_structures = pytest.mark.parametrize("structure", STRUCTURES.values(), ids=STRUCTURES)
cross_entropy = nn.functional.cross_entropy
DATA_SIZE = 40


def trained(structure, shape=(3, 5), steps: int = 12, dtype=torch.float64) -> tuple[nn.Linear, StructuredNGD]:
    """A layer whose factors have moved far from the identity, with a different size in every direction."""
    rows, columns = shape
    model = filled(nn.Linear(columns, rows), 2).to(dtype)
    optimizer = StructuredNGD(
        model.parameters(), batch_size=8, refresh=1, curvature_lr=0.5, data_size=DATA_SIZE, **structure
    )
    mixing = torch.randn(columns, columns, generator=seeded(5), dtype=torch.float64).to(dtype)
    for number in range(steps):
        gradients(model, number)
        with torch.no_grad():
            model.weight.grad @= mixing
            model.weight.grad[0] *= 3
            model.bias.grad[0] *= 4
        optimizer.step()
    return model, optimizer


def root_matrix(group, packed: Tensor, dim: int) -> Tensor:
    """K as a dense matrix: the columns are what it makes of unit vectors."""
    return group.apply(packed[None], torch.eye(dim, dtype=packed.dtype)[None])[0].T


def precision(optimizer: StructuredNGD, p: Tensor) -> Tensor:
    """N S of a parameter read row by row, from its state."""
    state = optimizer.state[p]
    if p.ndim < 2:
        return DATA_SIZE * torch.diag(1 / state["root"].square())
    layers, _ = optimizer._roots(p)
    rows = root_matrix(layers.rows, state["rows"], p.shape[0])
    cols = root_matrix(layers.cols, state["cols"], p.shape[1:].numel())
    return DATA_SIZE * torch.linalg.inv(torch.kron(rows.T @ rows, cols.T @ cols))


# ---- samples --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["frame", "full"])
@pytest.mark.parametrize("kind", ["weight", "bias"])
def test_draws_have_the_covariance_of_the_state(kind, name) -> None:
    """Mean and covariance of many draws, within 5 standard errors."""
    model, optimizer = trained(STRUCTURES[name], shape=(2, 4))
    p, n, source = getattr(model, kind), 1500, seeded(11)
    draws = torch.stack([optimizer.draw(p, 0.5, source).flatten() for _ in range(n)]) - p.detach().flatten()
    covariance = torch.linalg.inv(precision(optimizer, p)) * 0.5
    variances = covariance.diagonal()
    assert float(variances.max() / variances.min()) > 1.5  # not the identity with which the state began
    assert float((draws.mean(0) / (variances / n).sqrt()).abs().max()) < 5
    error = (torch.outer(variances, variances) + covariance.square()).div(n).sqrt()
    assert float(((draws.T @ draws / n - covariance) / error).abs().max()) < 5


def test_draws_of_a_convolution_have_the_covariance_of_its_matrix() -> None:
    layer = filled(nn.Conv2d(2, 2, (1, 2), bias=False), 1).double()
    optimizer = StructuredNGD(
        layer.parameters(), batch_size=8, refresh=1, data_size=DATA_SIZE, rows="full", cols="full"
    )
    for number in range(10):
        gradients(layer, number)
        layer.weight.grad[0, 1] *= 4
        optimizer.step()
    p, n, source = layer.weight, 1500, seeded(3)
    draws = torch.stack([optimizer.draw(p, generator=source).flatten() for _ in range(n)]) - p.detach().flatten()
    covariance = torch.linalg.inv(precision(optimizer, p))
    variances = covariance.diagonal()
    error = (torch.outer(variances, variances) + covariance.square()).div(n).sqrt()
    assert float(((draws.T @ draws / n - covariance) / error).abs().max()) < 5


@on_all_structures
def test_a_sample_ends_with_the_same_parameters_bit_for_bit(structure) -> None:
    model = networks.network()
    optimizer = StructuredNGD(model.parameters(), batch_size=12, refresh=2, data_size=DATA_SIZE, **structure)
    train(model, optimizer, 0, 3)
    before, means = snapshot(optimizer), values(model)
    with optimizer.sampled(generator=seeded(1)):
        inside = values(model)
    assert not any(torch.equal(one, other) for one, other in zip(inside, means, strict=True))
    assert same(snapshot(optimizer), before)
    with pytest.raises(ZeroDivisionError), optimizer.sampled():
        raise ZeroDivisionError
    assert same(snapshot(optimizer), before)
    train(model, optimizer, 3, 4)


def test_a_sample_is_made_of_draws_of_all_parameters() -> None:
    model, optimizer = trained(STRUCTURES["frame"])
    source = seeded(4)
    expected = [optimizer.draw(p, 0.3, source) for p in model.parameters()]
    with optimizer.sampled(0.3, seeded(4)):
        assert same(values(model), expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_samples_of_narrow_parameters_keep_their_type(dtype) -> None:
    model = networks.network(dtype)
    optimizer = StructuredNGD(model.parameters(), batch_size=12, data_size=DATA_SIZE)
    train(model, optimizer, 0, 2)
    before = values(model)
    with optimizer.sampled(generator=seeded(1)):
        assert {p.dtype for p in model.parameters()} == {dtype}
        assert not same(values(model), before)
    assert same(values(model), before)


def test_gradients_inside_a_sample_are_taken_at_the_sample() -> None:
    model, optimizer = trained(STRUCTURES["full"])
    x = torch.randn(6, 5, generator=seeded(8), dtype=torch.float64)
    optimizer.zero_grad()
    with optimizer.sampled(generator=seeded(4)):
        inside = values(model)
        model(x).square().mean().backward()
    twin = nn.Linear(5, 3).double()
    with torch.no_grad():
        for p, value in zip(twin.parameters(), inside, strict=True):
            p.copy_(value)
    twin(x).square().mean().backward()
    assert same([p.grad for p in model.parameters()], [p.grad for p in twin.parameters()])
    before = values(model)
    optimizer.step()
    assert not same(values(model), before)


@pytest.mark.parametrize("enabled", [True, False])
def test_a_sample_leaves_the_gradient_mode_as_it_is(enabled) -> None:
    _, optimizer = trained(STRUCTURES["frame"])
    with torch.set_grad_enabled(enabled):
        with optimizer.sampled():
            assert torch.is_grad_enabled() == enabled
        assert torch.is_grad_enabled() == enabled


def test_samples_before_the_first_step_have_the_first_precision() -> None:
    model = filled(nn.Linear(40, 50), 1).double()
    optimizer = StructuredNGD(model.parameters(), batch_size=3, data_size=DATA_SIZE, first_precision=0.2)
    noise = optimizer.draw(model.weight, generator=seeded(1)) - model.weight.detach()
    variance = 1 / (0.2 * DATA_SIZE)
    assert abs(float(noise.square().mean()) / variance - 1) < 5 * math.sqrt(2 / noise.numel())
    assert not optimizer.state[model.weight]


# ---- predictions ----------------------------------------------------------------------------------------------------


def test_a_prediction_is_the_mean_of_softmax_over_samples() -> None:
    model = networks.network()
    optimizer = StructuredNGD(model.parameters(), batch_size=12, data_size=DATA_SIZE)
    train(model, optimizer, 0, 4)
    x, _ = networks.images(6)
    before = values(model)
    found = optimizer.predict(model, x, 5, temperature=0.4, generator=seeded(3))
    source, total = seeded(3), torch.zeros(6, 3, dtype=torch.float64)
    for _ in range(5):
        with optimizer.sampled(0.4, source):
            total += torch.softmax(model(x).detach(), 1)
    torch.testing.assert_close(found, total / 5, rtol=1e-14, atol=0)
    assert torch.equal(found, optimizer.predict(model, x, 5, temperature=0.4, generator=seeded(3)))
    assert not torch.equal(found, optimizer.predict(model, x, 5, temperature=0.4, generator=seeded(4)))
    assert not found.requires_grad
    assert same(values(model), before)


def test_a_prediction_is_made_in_evaluation_mode_and_restores_the_mode_of_every_layer() -> None:
    model = filled(nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Dropout(0.5), nn.Linear(6, 3)), 1)
    optimizer = StructuredNGD(model.parameters(), batch_size=3, data_size=10**12)
    x = torch.randn(7, 4, generator=seeded(1))
    model.eval()
    expected = torch.softmax(model(x).detach(), 1)
    model.train()
    model[1].eval()  # a norm that is frozen
    mean = model[1].running_mean.clone()
    found = optimizer.predict(model, x, 3)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-3)
    assert [module.training for module in model.modules()] == [True, True, False, True, True]
    assert torch.equal(model[1].running_mean, mean)
    with pytest.raises(RuntimeError):
        optimizer.predict(model, x[:, :3], 2)
    assert [module.training for module in model.modules()] == [True, True, False, True, True]


# ---- calibration ----------------------------------------------------------------------------------------------------


def test_calibration_has_the_values_worked_out_by_hand() -> None:
    """Bins of a quarter: (1/2, 3/4] has confidences 0.6 and 0.7, one right; (3/4, 1] has 0.9 and 0.8, both right."""
    p = torch.tensor([[0.6, 0.4], [0.3, 0.7], [0.1, 0.9], [0.8, 0.2]])
    found = calibration(p, torch.tensor([0, 0, 1, 0]), bins=4)
    assert found.accuracy == 0.75
    assert found.nll == pytest.approx(-(math.log(0.6) + math.log(0.3) + math.log(0.9) + math.log(0.8)) / 4, rel=1e-6)
    assert found.ece == pytest.approx((abs(1 - 1.3) + abs(2 - 1.7)) / 4, rel=1e-6)


def test_a_confidence_on_the_border_of_two_bins_belongs_to_the_lower_one() -> None:
    """As in the paper, bins are ((m - 1) / M, m / M]: 0.5 and 0.75 are in bins of their own."""
    p = torch.tensor([[0.5, 0.25, 0.25], [0.75, 0.25, 0.0]])
    found = calibration(p, torch.tensor([0, 1]), bins=4)
    assert found.ece == pytest.approx((0.5 + 0.75) / 2)


@pytest.mark.parametrize("bins", [1, 7, 15])
def test_calibration_equals_a_loop_over_bins(bins) -> None:
    p = torch.softmax(2 * torch.randn(300, 4, generator=seeded(1), dtype=torch.float64), 1)
    labels = torch.multinomial(p.sqrt(), 1, generator=seeded(2))[:, 0]
    found = calibration(p, labels, bins)
    array, truth = p.numpy(), labels.numpy()
    confidence, right = array.max(1), array.argmax(1) == truth
    gaps = 0.0
    for m in range(bins):
        inside = (confidence > m / bins) & (confidence <= (m + 1) / bins)
        if inside.any():
            gaps += inside.mean() * abs(right[inside].mean() - confidence[inside].mean())
    assert found.ece == pytest.approx(gaps, rel=1e-12)
    assert found.accuracy == pytest.approx(right.mean())
    assert found.nll == pytest.approx(-np.log(array[np.arange(300), truth]).mean(), rel=1e-12)


def test_certain_predictions_have_finite_numbers() -> None:
    p = torch.eye(3)[[0, 1, 2, 0]]
    assert calibration(p, torch.tensor([0, 1, 2, 0])) == (0.0, 1.0, 0.0)
    wrong = calibration(p, torch.tensor([1, 2, 0, 1]))
    assert math.isfinite(wrong.nll)
    assert (wrong.accuracy, wrong.ece) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("p", "labels", "bins", "message"),
    [
        (torch.randn(5, 3, generator=seeded(1)), torch.arange(5) % 3, 15, "probabilities must .*softmax"),
        (torch.full((5, 3), 0.4), torch.arange(5) % 3, 15, "probabilities must .*sum to 1"),
        (torch.full((5, 3), float("nan")), torch.arange(5) % 3, 15, "probabilities must"),
        (torch.full((5, 4), 0.25), torch.arange(4), 15, r"probabilities and labels.*\(5, 4\) and \(4,\)"),
        (torch.full((4,), 0.25), torch.arange(4), 15, r"probabilities and labels.*\(4,\) and \(4,\)"),
        (torch.ones(0, 1), torch.ones(0), 15, "labels must hold at least one"),
        (torch.full((5, 4), 0.25), torch.arange(5), 15, "labels must be .*from 0 to 3.*4"),
        (torch.full((5, 4), 0.25), torch.arange(5) - 1, 15, "labels must be .*from 0 to 3.*-1"),
        (torch.full((2, 4), 0.25), torch.tensor([0.5, 1.0]), 15, "labels must be integers.*float"),
        (torch.full((2, 4), 0.25), torch.arange(2), 0, "bins must be .*0"),
    ],
)
def test_calibration_refuses_what_it_cannot_compare(p, labels, bins, message) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        calibration(p, labels, bins)


# ---- layers as distributions of the package -------------------------------------------------------------------------

SHAPES = [(3, 5), (1, 4), (4, 1), (1, 1), (5, 2)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@on_all_structures
def test_a_layer_as_a_distribution_has_the_density_of_its_state(structure, shape) -> None:
    model, optimizer = trained(structure, shape)
    p = model.weight
    family, state = optimizer.matrix_gaussian(p)
    oracle = torch.distributions.MultivariateNormal(p.detach().flatten(), precision_matrix=precision(optimizer, p))
    x = p.detach() + 0.2 * torch.randn(4, *shape, generator=seeded(3), dtype=torch.float64)
    expected = oracle.log_prob(x.flatten(1)).numpy()
    np.testing.assert_allclose(family.log_density(state, x.numpy()), expected, rtol=1e-9)
    assert family.shape == shape
    assert family.form == "precision"


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@on_all_structures
def test_a_layer_comes_back_from_its_distribution(structure, shape) -> None:
    model, optimizer = trained(structure, shape)
    p = model.weight
    family, state = optimizer.matrix_gaussian(p)
    before, wanted = snapshot(optimizer), precision(optimizer, p)
    optimizer.set_matrix_gaussian(p, family, state)
    for new, old in zip(snapshot(optimizer), before, strict=True):
        if 1 in shape:  # the scale of both factors is not determined: only the product is
            continue
        torch.testing.assert_close(new, old, rtol=1e-12, atol=1e-13)
    torch.testing.assert_close(precision(optimizer, p), wanted, rtol=1e-10, atol=1e-10 * float(wanted.abs().max()))
    assert same(values(model), [before[0], before[len(before) - 4]])
    gradients(model, 1)
    optimizer.step()


@on_all_structures
def test_another_distribution_of_the_same_groups_is_taken_over(structure) -> None:
    """The mean and the roots of a layer that was trained further, in an optimizer that has made no step."""
    model, optimizer = trained(structure, steps=0)
    further, other = trained(structure, steps=0)
    family, state = other.matrix_gaussian(further.weight)
    root = state.root * (1 + 0.2 * np.random.default_rng(0).random(len(state.root)))
    moved = State(state.mean + 1.5, root)
    optimizer.set_matrix_gaussian(model.weight, family, moved)
    found, again = optimizer.matrix_gaussian(model.weight)
    x = np.random.default_rng(1).normal(size=(4, 3, 5))
    np.testing.assert_allclose(found.log_density(again, x), family.log_density(moved, x), rtol=1e-9)
    gradients(model, 1)
    optimizer.step()


def test_a_convolution_is_a_distribution_of_matrices() -> None:
    model = networks.network()
    optimizer = StructuredNGD(model.parameters(), batch_size=12, data_size=DATA_SIZE)
    train(model, optimizer, 0, 3)
    p = model[0].weight
    family, state = optimizer.matrix_gaussian(p)
    assert family.shape == (4, 18)
    np.testing.assert_array_equal(state.mean, p.detach().numpy().reshape(4, 18))
    optimizer.set_matrix_gaussian(p, family, State(state.mean + 1, state.root))
    np.testing.assert_allclose(p.detach().numpy().reshape(4, 18), state.mean + 1)


def test_distributions_of_other_groups_are_refused_and_nothing_changes() -> None:
    model, optimizer = trained(STRUCTURES["block_triangular"])
    p, before = model.weight, snapshot(optimizer)
    family, state = optimizer.matrix_gaussian(p)
    rows, cols = family.sides
    covariance, as_covariance = family.converted(state)
    others = [
        (MatrixGaussian(state.mean, rows="full", cols=cols, form="precision"), None),
        (MatrixGaussian(state.mean, rows=rows, cols="full", form="precision"), None),
        (MatrixGaussian(np.zeros((3, 4)), rows=rows, cols="diagonal", form="precision"), None),
        (covariance, as_covariance),
    ]
    for other, its_state in others:
        with pytest.raises(ValueError, match=r"family must have form='precision'.*got"):
            optimizer.set_matrix_gaussian(p, other, its_state or other.state())
    with pytest.raises(TypeError, match=r"family must be a MatrixGaussian"):
        optimizer.set_matrix_gaussian(p, "full", state)
    for wrong in (
        State(state.mean, state.root[:-1]),
        State(state.mean[:2], state.root),
        State(state.mean * np.nan, state.root),
    ):
        with pytest.raises(ValueError, match=r"state\.(root|mean) must"):
            optimizer.set_matrix_gaussian(p, family, wrong)
    assert same(snapshot(optimizer), before)


def test_a_frame_that_has_turned_is_another_group() -> None:
    model, optimizer = trained(STRUCTURES["frame"])
    family, state = optimizer.matrix_gaussian(model.weight)
    gradients(model, 5)
    optimizer.step()
    before = snapshot(optimizer)
    with pytest.raises(ValueError, match="family must have"):
        optimizer.set_matrix_gaussian(model.weight, family, state)
    assert same(snapshot(optimizer), before)
