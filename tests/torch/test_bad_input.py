"""What the optimizer refuses, by name, with nothing changed; and gradients that are not finite."""

import pytest

torch = pytest.importorskip("torch", reason="needs torch (extra 'torch')")

from torch import nn  # noqa: E402

from esgroup.groups import Circulant, Diagonal, Full, Kronecker  # noqa: E402
from esgroup.torch import KroneckerFactors, PerExampleGradients, SquaredGradient, StructuredNGD  # noqa: E402
from esgroup.torch.plan import Plan  # noqa: E402
from tests.torch import networks  # noqa: E402
from tests.torch.networks import STRUCTURES, filled, gradients, same, snapshot, train, values  # noqa: E402

cross_entropy = nn.functional.cross_entropy


def layer() -> nn.Linear:
    return filled(nn.Linear(4, 3), 2).double()


# ---- options --------------------------------------------------------------------------------------------------------

WRONG = [
    ({"lr": -0.1}, ValueError, "lr must be .*-0.1"),
    ({"lr": float("nan")}, ValueError, "lr must be .*nan"),
    ({"lr": "fast"}, ValueError, "lr must be .*'fast'"),
    ({"lr": torch.tensor([0.1, 0.2])}, ValueError, r"lr must be .*tensor\(\[0.1000, 0.2000\]\)"),
    ({"lr": torch.tensor(-0.1)}, ValueError, r"lr must be .*tensor\(-0.1000\)"),
    ({"damping": -1e-3}, ValueError, "damping must be .*-0.001"),
    ({"l2": -1.0}, ValueError, "l2 must be .*-1.0"),
    ({"l2": float("inf")}, ValueError, "l2 must be .*inf"),
    ({"momentum": 1.0}, ValueError, "momentum must be .*1.0"),
    ({"momentum": -0.1}, ValueError, "momentum must be .*-0.1"),
    ({"warm_up": 1}, ValueError, "warm_up must be .*1"),
    ({"curvature_lr": 0}, ValueError, "curvature_lr must be .*0"),
    ({"first_precision": 0.0}, ValueError, "first_precision must be .*0.0"),
    ({"entropy": -1.0}, ValueError, "entropy must be .*-1.0"),
    ({"refresh": 0}, ValueError, "refresh must be .*0"),
    ({"refresh": 2.5}, TypeError, "refresh must be .*2.5"),
    ({"rows": "nonsense"}, ValueError, "rows.*'nonsense'"),
    ({"cols": "nonsense:k=2"}, ValueError, "cols.*'nonsense:k=2'"),
    ({"cols": "block_triangular:q=2"}, ValueError, "cols.*block_triangular.*q"),
    ({"cols": "frame:k=0"}, ValueError, "cols must .*'frame:k=0'"),
    ({"cols": "frame:q=2"}, ValueError, "cols must .*'frame:q=2'"),
    ({"cols": "frame:k=²"}, ValueError, "cols must .*'frame:k=²'"),
    ({"cols": "frames:k=2"}, ValueError, "cols.*'frames:k=2'"),
    ({"rows": 3}, TypeError, "rows must be .*3"),
    ({"rows": Full(4)}, ValueError, "rows must have dimension 3.*Full.*4"),
    ({"cols": Diagonal(3)}, ValueError, "cols must have dimension 4.*Diagonal.*3"),
    ({"cols": Circulant(4)}, ValueError, "cols must be one of.*Diagonal.*irculant"),
    ({"cols": Kronecker(Full(2), Full(2))}, ValueError, "cols must be one of.*Diagonal.*ronecker"),
]


@pytest.mark.parametrize(("options", "error", "message"), WRONG, ids=[str(case[0]) for case in WRONG])
def test_wrong_options_are_named(options, error, message) -> None:
    model = layer()
    before = values(model)
    with pytest.raises(error, match=message):
        StructuredNGD(model.parameters(), batch_size=8, **options)
    assert same(values(model), before)


@pytest.mark.parametrize(("options", "error", "message"), WRONG, ids=[str(case[0]) for case in WRONG])
def test_wrong_options_of_a_group_are_named_and_the_group_is_not_added(options, error, message) -> None:
    model, other = layer(), layer()
    optimizer = StructuredNGD(model.parameters(), batch_size=8)
    with pytest.raises(error, match=message):
        optimizer.add_param_group({"params": list(other.parameters()), **options})
    assert len(optimizer.param_groups) == 1
    gradients(model, 1)
    gradients(other, 1)
    before = values(other)
    optimizer.step()
    assert same(values(other), before)
    optimizer.add_param_group({"params": list(other.parameters())})


@pytest.mark.parametrize("name", ["batch_size", "curvature", "data_size"])
def test_what_holds_for_all_parameters_is_refused_in_a_group(name) -> None:
    with pytest.raises(ValueError, match=name):
        StructuredNGD([{"params": list(layer().parameters()), name: 3}], batch_size=8)


def test_one_of_batch_size_and_curvature_must_be_given() -> None:
    with pytest.raises(TypeError, match=r"one of batch_size.*curvature"):
        StructuredNGD(layer().parameters())
    with pytest.raises(TypeError, match=r"one of batch_size.*curvature"):
        StructuredNGD(layer().parameters(), batch_size=3, curvature=SquaredGradient(3))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda p: StructuredNGD(p, batch_size=0), ValueError, "batch_size must be .*0"),
        (lambda p: StructuredNGD(p, batch_size=2.0), TypeError, "batch_size must be .*2.0"),
        (lambda p: StructuredNGD(p, batch_size=2, data_size=0), ValueError, "data_size must be .*0"),
        (lambda p: StructuredNGD(p, curvature="squared"), TypeError, "curvature must be a Curvature.*'squared'"),
        (lambda p: StructuredNGD(p, curvature=SquaredGradient), TypeError, "curvature must be a Curvature"),
        (lambda p: PerExampleGradients(3, len), TypeError, "model must be a Module.*3"),
        (lambda p: PerExampleGradients(layer(), 3), TypeError, "loss must be callable.*3"),
        (lambda p: KroneckerFactors(3), TypeError, "model must be a Module.*3"),
        (lambda p: StructuredNGD([], batch_size=2), ValueError, "empty parameter list"),
        (lambda p: StructuredNGD([{"params": []}], batch_size=2), ValueError, "param group 0 must have.*none"),
        (lambda p: StructuredNGD([{"params": p}, {"params": []}], batch_size=2), ValueError, "group 1 must have.*none"),
    ],
)
def test_what_an_optimizer_is_made_of_is_checked(make, error, message) -> None:
    with pytest.raises(error, match=message):
        make(layer().parameters())


@pytest.mark.parametrize("dtype", [torch.complex64, torch.int64, torch.bool], ids=str)
@pytest.mark.parametrize("shape", [(3,), (3, 2)])
def test_parameters_must_be_real(shape, dtype) -> None:
    p = nn.Parameter(torch.ones(shape, dtype=dtype), requires_grad=False)
    with pytest.raises(TypeError, match=rf"parameters must be real.*\({', '.join(map(str, shape))}.*{dtype}"):
        StructuredNGD([p], batch_size=2)


# ---- gradients ------------------------------------------------------------------------------------------------------


def used_optimizer(steps: int = 3, **options) -> tuple[nn.Module, StructuredNGD]:
    model = networks.network()
    optimizer = StructuredNGD(model.parameters(), batch_size=12, refresh=2, **options)
    train(model, optimizer, 0, steps)
    return model, optimizer


@pytest.mark.parametrize("steps", [0, 3])
def test_sparse_gradients_are_refused(steps) -> None:
    model, optimizer = used_optimizer(steps)
    gradients(model, 1)
    p = model[4].weight
    before = snapshot(optimizer)
    dense, p.grad = p.grad, None
    p.grad = dense.to_sparse()
    with pytest.raises(TypeError, match=r"gradients must be dense.*\(5, 36\)"):
        optimizer.step()
    assert same(snapshot(optimizer), before)
    p.grad = dense
    optimizer.step()


def test_the_sparse_gradient_of_an_embedding_is_refused() -> None:
    model = nn.Embedding(7, 3, sparse=True)
    optimizer = StructuredNGD(model.parameters(), batch_size=2)
    model(torch.tensor([1, 4])).square().mean().backward()
    with pytest.raises(TypeError, match=r"gradients must be dense.*\(7, 3\).*sparse=True"):
        optimizer.step()


BAD = [float("nan"), float("inf"), -float("inf")]


@pytest.mark.parametrize("bad", BAD, ids=str)
@pytest.mark.parametrize("where", ["0.weight", "1.bias", "6.weight"])
@pytest.mark.parametrize("steps", [0, 4])
def test_a_step_with_a_gradient_that_is_not_finite_changes_nothing(steps, where, bad) -> None:
    model, optimizer = used_optimizer(steps)
    gradients(model, 1)
    dict(model.named_parameters())[where].grad.view(-1)[1] = bad
    before, calls = snapshot(optimizer), optimizer.param_groups[0]["calls"]
    optimizer.step()
    after = snapshot(optimizer)
    parameters = values(model)
    assert same(after, before) or steps == 0
    assert same(parameters, values(networks.network())) or steps > 0
    assert optimizer.param_groups[0]["calls"] == calls
    assert optimizer.skipped == 1


def test_infinities_of_both_signs_do_not_cancel() -> None:
    model, optimizer = used_optimizer()
    gradients(model, 1)
    model[0].weight.grad.view(-1)[:2] = torch.tensor([float("inf"), -float("inf")])
    before = snapshot(optimizer)
    optimizer.step()
    assert same(snapshot(optimizer), before)


def test_a_step_after_a_skipped_one_is_as_if_nothing_had_been() -> None:
    (model, optimizer), (other, plain) = used_optimizer(), used_optimizer()
    gradients(model, 1)
    model[0].bias.grad[0] = float("nan")
    optimizer.step()
    train(model, optimizer, 3, 8)
    train(other, plain, 3, 8)
    assert same(snapshot(optimizer), snapshot(plain))
    assert optimizer.skipped == 1
    assert plain.skipped == 0


def test_ten_skipped_steps_in_a_row_give_one_warning() -> None:
    model, optimizer = used_optimizer()
    gradients(model, 1)
    model[0].weight.grad.fill_(float("nan"))
    for _ in range(9):
        optimizer.step()  # warnings are errors in these tests
    with pytest.warns(RuntimeWarning, match=r"10 steps were not finite") as caught:
        optimizer.step()
    assert len(caught) == 1
    assert caught[0].filename == __file__
    for _ in range(12):
        optimizer.step()
    assert optimizer.skipped == 22
    train(model, optimizer, 3, 4)
    gradients(model, 1)
    model[0].weight.grad.fill_(float("nan"))
    for _ in range(9):
        optimizer.step()
    with pytest.warns(RuntimeWarning, match=r"10 steps were not finite"):
        optimizer.step()
    assert optimizer.skipped == 32


def test_skipped_steps_that_are_not_in_a_row_give_no_warning() -> None:
    model, optimizer = used_optimizer()
    for number in range(12):
        gradients(model, 1)
        model[0].weight.grad.fill_(float("nan"))
        optimizer.step()
        train(model, optimizer, number, number + 1)
    assert optimizer.skipped == 12


@pytest.mark.parametrize("scale", [1e15, 1e25, 1e37])
@pytest.mark.parametrize("name", ["frame", "heisenberg", "full"])
def test_huge_gradients_leave_everything_finite(name, scale) -> None:
    """They are made smaller, or skipped where their squares are not finite."""
    model = networks.network(torch.float32)
    optimizer = StructuredNGD(model.parameters(), batch_size=12, refresh=1, **STRUCTURES[name])
    for number in range(3):
        gradients(model, number, scale)
        optimizer.step()
        gradients(model, number, 0.1)
        optimizer.step()
    assert all(torch.isfinite(value).all() for value in snapshot(optimizer))


@pytest.mark.parametrize("steps", [0, 2])
@pytest.mark.parametrize("structure", STRUCTURES.values(), ids=STRUCTURES)
def test_a_closed_gate_changes_nothing(structure, steps) -> None:
    """On accelerators a step is not left out but multiplied by zero: the same arithmetic here."""
    model, optimizer = used_optimizer(steps, warm_up=0.9, **structure)
    parameters, curvature = list(model.parameters()), optimizer.curvature
    plan = Plan(optimizer.param_groups[0], parameters, optimizer.state)
    before = snapshot(optimizer)
    gradients(model, 3)
    model[0].weight.grad.fill_(float("nan"))
    with torch.no_grad():
        plan.advance(plan.flat_gradient(), torch.tensor(False), curvature)
    for new, old in zip(snapshot(optimizer), before, strict=True):
        torch.testing.assert_close(new, old, rtol=1e-12, atol=1e-12)
    gradients(model, 3)
    with torch.no_grad():
        plan.advance(plan.flat_gradient(), torch.tensor(True), curvature)
    other, plain = used_optimizer(steps, warm_up=0.9, **structure)
    gradients(other, 3)
    plain.step()
    for p, twin in zip(model.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(p, twin, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("kind", [KroneckerFactors, lambda model: PerExampleGradients(model, cross_entropy)])
def test_a_closed_gate_keeps_a_curvature_out_that_is_not_finite(kind) -> None:
    model = networks.network()
    curvature = kind(model)
    optimizer = StructuredNGD(model.parameters(), curvature=curvature)
    x, y = networks.images()
    x[0, 0, 0, 0] = float("nan")
    if isinstance(curvature, PerExampleGradients):
        curvature.observe(x, y)
    cross_entropy(model(x), y).backward()
    plan = Plan(optimizer.param_groups[0], list(model.parameters()), optimizer.state)
    before = snapshot(optimizer)
    with torch.no_grad():
        plan.advance(plan.flat_gradient(), torch.tensor(False), curvature)
    for new, old in zip(snapshot(optimizer), before, strict=True):
        torch.testing.assert_close(new, old, rtol=1e-12, atol=1e-12)


# ---- parameters that change -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(5, 8), (3, 4), (6, 2), (12,), (2, 3, 2, 2)], ids=str)
def test_a_parameter_that_changes_its_shape_is_refused(shape) -> None:
    model = filled(nn.Sequential(nn.Linear(6, 2), nn.Linear(2, 3)), 1).double()
    optimizer = StructuredNGD(model.parameters(), batch_size=12)
    gradients(model, 1)
    optimizer.step()
    p, state = model[0].weight, dict(optimizer.state)
    p.grad = None
    p.data = torch.ones(shape, dtype=torch.float64)
    p.grad = torch.ones(shape, dtype=torch.float64)
    before = snapshot(optimizer)
    with pytest.raises(ValueError, match=r"parameters must keep their shape.*\(2, 6\)"):
        optimizer.step()
    assert same(snapshot(optimizer), before)
    assert dict(optimizer.state) == state


def test_a_parameter_with_new_data_of_the_same_shape_goes_on() -> None:
    model, optimizer = used_optimizer()
    p = model[4].weight
    p.data = torch.ones_like(p)
    train(model, optimizer, 3, 4)
    assert 0 < float((p.detach() - 1).abs().max()) < 0.1


# ---- stored states --------------------------------------------------------------------------------------------------


def of_another_model(model: nn.Module, **options) -> dict:
    optimizer = StructuredNGD(model.parameters(), batch_size=12, **options)
    gradients(model, 1)
    optimizer.step()
    return optimizer.state_dict()


def missing(name: str) -> dict:
    state = of_another_model(networks.network())
    state["state"] = {number: dict(own) for number, own in state["state"].items()}
    del state["state"][1][name]
    return state


def in_two_groups() -> dict:
    model = networks.network()
    groups = [{"params": list(model[:4].parameters())}, {"params": list(model[4:].parameters())}]
    optimizer = StructuredNGD(groups, batch_size=12)
    gradients(model, 1)
    optimizer.step()
    return optimizer.state_dict()


STATES = {
    "cols": (lambda: of_another_model(networks.network(), cols="triangular"), "cols='frame:k=8'.*'triangular'"),
    "rows": (lambda: of_another_model(networks.network(), rows="full"), "rows='diagonal'.*'full'"),
    "shapes": (lambda: of_another_model(nn.Sequential(*(nn.Linear(4, 5) for _ in range(4))).double()), "shape"),
    "number": (lambda: of_another_model(layer()), "8 parameters.*2"),
    "groups": (in_two_groups, "1 parameter group.*2"),
    "step": (lambda: missing("step"), r"\(4,\).*step"),
    "momentum": (lambda: missing("momentum"), r"\(4,\).*momentum"),
    "adam": (lambda: torch.optim.Adam(networks.network().parameters()).state_dict(), "rows='diagonal'.*None"),
    "nothing": (dict, "state_dict must have.*param_groups"),
}


@pytest.mark.parametrize("kind", STATES)
def test_a_state_of_something_else_is_refused_and_nothing_changes(kind) -> None:
    (model, optimizer), (other, plain) = used_optimizer(), used_optimizer()
    make, message = STATES[kind]
    state, before, options = make(), snapshot(optimizer), dict(optimizer.param_groups[0])
    with pytest.raises(ValueError, match=message):
        optimizer.load_state_dict(state)
    assert same(snapshot(optimizer), before)
    assert optimizer.param_groups[0] == options
    train(model, optimizer, 3, 6)
    train(other, plain, 3, 6)
    assert same(snapshot(optimizer), snapshot(plain))


# ---- samples --------------------------------------------------------------------------------------------------------


def test_samples_need_the_size_of_the_data() -> None:
    model, optimizer = used_optimizer()
    before = snapshot(optimizer)
    x, _ = networks.images()
    with pytest.raises(ValueError, match="data_size"), optimizer.sampled():
        pass
    for ask in (
        lambda: optimizer.draw(model[0].weight),
        lambda: optimizer.predict(model, x),
        lambda: optimizer.matrix_gaussian(model[0].weight),
        lambda: optimizer.data_size,
    ):
        with pytest.raises(ValueError, match="data_size"):
            ask()
    assert same(snapshot(optimizer), before)


def test_a_step_inside_a_sample_is_refused_before_the_closure_is_called() -> None:
    model, optimizer = used_optimizer(data_size=50)
    before = snapshot(optimizer)
    with optimizer.sampled(), pytest.raises(RuntimeError, match=r"step must be called outside `with sampled"):
        optimizer.step(lambda: pytest.fail("called"))
    assert same(snapshot(optimizer), before)
    train(model, optimizer, 3, 4)


def test_samples_are_not_nested() -> None:
    _, optimizer = used_optimizer(data_size=50)
    before = snapshot(optimizer)
    with optimizer.sampled(), pytest.raises(RuntimeError, match="nested"), optimizer.sampled():
        pass
    assert same(snapshot(optimizer), before)


@pytest.mark.parametrize("temperature", [0.0, -1.0, float("nan"), float("inf"), "hot"], ids=str)
def test_temperatures_are_positive(temperature) -> None:
    model, optimizer = used_optimizer(data_size=50)
    before = snapshot(optimizer)
    message = f"temperature must be a positive finite number, got {temperature!r}"
    with pytest.raises(ValueError, match=message), optimizer.sampled(temperature):
        pass
    with pytest.raises(ValueError, match=message):
        optimizer.draw(model[0].weight, temperature)
    with pytest.raises(ValueError, match=message):
        optimizer.predict(model, networks.images()[0], temperature=temperature)
    assert same(snapshot(optimizer), before)


@pytest.mark.parametrize(("samples", "error"), [(0, ValueError), (-2, ValueError), (1.5, TypeError), (True, TypeError)])
def test_the_number_of_samples_is_a_whole_number(samples, error) -> None:
    model, optimizer = used_optimizer(data_size=50)
    with pytest.raises(error, match=f"samples must be an integer >= 1, got {samples}"):
        optimizer.predict(model, networks.images()[0], samples)


def test_parameters_of_another_optimizer_are_refused() -> None:
    model, optimizer = used_optimizer(data_size=50)
    for ask in (optimizer.draw, optimizer.matrix_gaussian):
        with pytest.raises(ValueError, match=r"parameter must belong to this optimizer.*\(3, 4\)"):
            ask(layer().weight)
    with pytest.raises(ValueError, match=r"parameter must have at least two dimensions.*\(4,\)"):
        optimizer.matrix_gaussian(model[0].bias)
