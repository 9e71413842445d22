"""Functions with what is known of them: SciPy's spelling, counts, memory, and refused arguments."""

import pickle

import numpy as np
import pytest
from scipy.optimize import rosen, rosen_der, rosen_hess, rosen_hess_prod
from scipy.sparse import csr_array

from esgroup.gradients import Gradients, Hessians, Products, Values, as_function
from tests.groups.laws import close

X = np.array([1.3, -0.7, 0.8, 1.9])
V = np.array([[1.0, 0.0, 2.0, -1.0], [0.5, 1.0, 0.0, 0.0]])


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def rosen_diag(x: np.ndarray) -> np.ndarray:
    return np.diagonal(rosen_hess(x)).copy()


def test_the_class_of_a_function_says_what_is_known() -> None:
    known = [
        as_function(rosen, 4),
        as_function(rosen, 4, jac=rosen_der),
        as_function(rosen, 4, jac=rosen_der, hessp=rosen_hess_prod),
        as_function(rosen, 4, jac=rosen_der, hess=rosen_hess),
    ]
    assert [type(function) for function in known] == [Values, Gradients, Products, Hessians]
    assert type(as_function(rosen, 4, jac=False)) is Values


def test_values_and_derivatives_equal_scipys_and_are_counted() -> None:
    for function in (
        as_function(rosen, 4, jac=rosen_der, hessp=rosen_hess_prod, hess_diag=rosen_diag),
        as_function(rosen, 4, jac=rosen_der, hess=rosen_hess),
        as_function(rosen, 4, jac=rosen_der, hess=lambda x: csr_array(rosen_hess(x))),
    ):
        assert function.value(X) == rosen(X)
        close(function.values(np.array([X, 2 * X])), [rosen(X), rosen(2 * X)])
        close(function.gradient(X), rosen_der(X))
        close(function.gradients(np.array([X, 2 * X])), [rosen_der(X), rosen_der(2 * X)])
        close(function.products(X, V), V @ rosen_hess(X))
        close(function.diagonal(X, rng()), rosen_diag(X))
        assert (function.counts.nfev, function.counts.njev) == (3, 3)
        assert function.products(X, np.zeros((0, 4))).shape == (0, 4)


def test_products_and_diagonals_are_counted_one_by_one() -> None:
    function = as_function(rosen, 4, jac=rosen_der, hessp=rosen_hess_prod, hess_diag=rosen_diag)
    function.products(X, V)
    function.diagonal(X, rng())
    assert (function.counts.nhvp, function.counts.ndiag, function.counts.nhess) == (2, 1, 0)


def test_the_hessian_at_a_point_is_computed_once_for_products_and_diagonal() -> None:
    asked = []
    function = as_function(rosen, 4, jac=rosen_der, hess=lambda x: asked.append(x.copy()) or rosen_hess(x))
    x = X.copy()
    for _ in range(2):
        function.products(x, V)
        function.diagonal(x, rng())
        close(function.hessian(x), rosen_hess(x))
    assert (len(asked), function.counts.nhess, function.counts.nhvp, function.counts.ndiag) == (1, 1, 0, 0)
    x[0] += 1.0  # in place: the memory must notice
    close(function.diagonal(x, rng()), rosen_diag(x))
    assert function.counts.nhess == 2
    close(function.hessp(x, V), V @ rosen_hess(x))
    assert not function.hessian(x).flags.writeable


def test_a_failed_hessian_is_not_remembered() -> None:
    answers = iter([np.zeros(3), rosen_hess(X)])
    function = as_function(rosen, 4, jac=rosen_der, hess=lambda x: next(answers))
    with pytest.raises(ValueError, match=r"hess\(x\) must have shape \(4, 4\), got \(3,\)"):
        function.hessian(X)
    close(function.hessian(X), rosen_hess(X))


def test_a_pair_of_value_and_gradient_is_computed_once_for_the_same_point() -> None:
    asked, room = [], np.empty(4)

    def both(x: np.ndarray) -> tuple[float, np.ndarray]:
        asked.append(x.copy())
        room[:] = rosen_der(x)  # the same array every time
        return rosen(x), room

    function, x = as_function(both, 4, jac=True), X.copy()
    first = function.gradient(x)
    assert function.value(x) == rosen(x)
    close(first, rosen_der(X))
    assert len(asked) == 1
    x *= 2
    assert function.value(x) == rosen(2 * X)
    close(function.gradient(x), rosen_der(2 * X))
    close(first, rosen_der(X))  # an array that was returned does not change
    assert len(asked) == 2
    assert (function.counts.nfev, function.counts.njev) == (2, 2)


def test_further_arguments_reach_the_function_and_all_derivatives() -> None:
    function = as_function(
        lambda x, a, b: a * rosen(x) + b,
        4,
        args=(3.0, 5.0),
        jac=lambda x, a, b: a * rosen_der(x),
        hessp=lambda x, v, a, b: a * rosen_hess_prod(x, v),
        hess_diag=lambda x, a, b: a * rosen_diag(x),
    )
    assert function.value(X) == 3 * rosen(X) + 5
    close(function.gradient(X), 3 * rosen_der(X))
    close(function.products(X, V), 3 * V @ rosen_hess(X))
    close(function.diagonal(X, rng()), 3 * rosen_diag(X))
    matrix = as_function(
        lambda x, a: a * x.sum(), 4, args=2.0, jac=lambda x, a: a + 0 * x, hess=lambda x, a: a * np.eye(4)
    )
    close(matrix.hessian(X), 2 * np.eye(4))
    assert matrix.value(X) == 2 * X.sum()


def test_many_points_go_in_one_call_where_the_function_takes_them() -> None:
    calls = []

    def both(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        calls.append(x.shape)
        return (x**2).sum(axis=1), 2 * x

    function = as_function(both, 4, jac=True, vectorized=True)
    close(function.values(V), (V**2).sum(axis=1))
    close(function.gradients(V), 2 * V)
    assert function.value(X) == pytest.approx(X @ X)
    close(function.gradient(X), 2 * X)
    assert calls == [(2, 4), (1, 4)]
    assert (function.counts.nfev, function.counts.njev) == (3, 3)


def test_many_vectors_go_in_one_call_where_the_product_takes_them() -> None:
    shapes = []
    function = as_function(
        rosen, 4, jac=rosen_der, hessp=lambda x, v: shapes.append(v.shape) or v @ rosen_hess(x), hessp_vectorized=True
    )
    close(function.products(X, V), V @ rosen_hess(X))
    assert shapes == [(2, 4)]
    assert function.counts.nhvp == 2


def test_a_diagonal_is_exact_from_as_many_probes_as_coordinates() -> None:
    function = as_function(rosen, 4, jac=rosen_der, hessp=rosen_hess_prod, probes=4)
    close(function.diagonal(X, rng()), rosen_diag(X))
    assert function.counts.nhvp == 4


def test_a_diagonal_from_few_probes_is_unbiased() -> None:
    function = as_function(rosen, 4, jac=rosen_der, hessp=rosen_hess_prod, probes=2)
    generator, n = rng(), 2000
    found = np.array([function.diagonal(X, generator) for _ in range(n)])
    error = found.std(axis=0, ddof=1) / np.sqrt(n)
    assert np.abs((found.mean(axis=0) - rosen_diag(X)) / error).max() < 5
    assert function.counts.nhvp == 2 * n


def test_the_callers_functions_cannot_change_a_point() -> None:
    def careless(x: np.ndarray, *rest: np.ndarray) -> float:
        x += 1.0
        return 0.0

    function = as_function(careless, 4, jac=careless, hessp=careless, hess_diag=careless)
    for call in (
        lambda x: function.value(x),
        lambda x: function.gradient(x),
        lambda x: function.products(x, V),
        lambda x: function.diagonal(x, rng()),
    ):
        x = X.copy()
        with pytest.raises(ValueError, match="read-only"):
            call(x)
        close(x, X)
        x[0] = 0.0  # the caller's own array is still writeable


def test_functions_survive_a_pickle() -> None:
    for known in ({"hess": rosen_hess}, {"hessp": rosen_hess_prod}):
        function = pickle.loads(pickle.dumps(as_function(rosen, 4, jac=rosen_der, **known)))
        close(function.products(X, V), V @ rosen_hess(X))
    with_args = pickle.loads(pickle.dumps(as_function(np.dot, 4, args=(np.ones(4),))))
    assert with_args.value(X) == X.sum()


def test_a_nearly_symmetric_hessian_is_made_symmetric() -> None:
    skew = 1e-9 * np.arange(16.0).reshape(4, 4)
    hessian = as_function(rosen, 4, jac=rosen_der, hess=lambda x: rosen_hess(x) + skew).hessian(X)
    assert np.array_equal(hessian, hessian.T)
    close(hessian, rosen_hess(X) + (skew + skew.T) / 2)


BAD = [
    ({"hessp": rosen_hess_prod}, ValueError, "hessp needs the gradient.*jac="),
    ({"hess": rosen_hess}, ValueError, "hess needs the gradient.*jac="),
    ({"jac": rosen_der, "hess_diag": rosen_diag}, ValueError, "hess_diag needs .*hessp="),
    ({"jac": rosen_der, "hess": rosen_hess, "hessp": rosen_hess_prod}, ValueError, "hess or hessp .*not both"),
    ({"jac": rosen_der, "hess": rosen_hess, "hess_diag": rosen_diag}, ValueError, "hess or hess_diag .*not both"),
    ({"jac": "2-point"}, ValueError, "jac must be a function or True, got '2-point'"),
    ({"jac": 3}, TypeError, "jac must be a function, got 3"),
    ({"jac": rosen_der, "hess": 3}, TypeError, "hess must be a function, got 3"),
    ({"jac": rosen_der, "hessp": 3}, TypeError, "hessp must be a function, got 3"),
    ({"jac": rosen_der, "hessp": rosen_hess_prod, "hess_diag": 3}, TypeError, "hess_diag must be a function, got 3"),
    ({"jac": rosen_der, "hessp": rosen_hess_prod, "probes": 0}, ValueError, "probes must be an integer >= 1, got 0"),
    ({"hessp_vectorized": True}, ValueError, "hessp_vectorized .*hessp="),
    ({"vectorized": 1}, TypeError, "vectorized must be True or False, got 1"),
]  # fmt: skip


@pytest.mark.parametrize(("known", "error", "message"), BAD, ids=[b[2] for b in BAD])
def test_a_wrong_combination_is_refused(known: dict, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        as_function(rosen, 4, **known)


def test_a_wrong_function_or_dimension_is_refused() -> None:
    with pytest.raises(TypeError, match="fun must be a function, got 3"):
        as_function(3, 4)
    with pytest.raises(ValueError, match="dim must be an integer >= 1, got 0"):
        as_function(rosen, 0)
    with pytest.raises(TypeError, match=r"dim must be an integer >= 1, got 1\.5"):
        as_function(rosen, 1.5)


RETURNS = [
    (lambda: as_function(lambda x: x, 4).value(X), r"fun\(x\) must be a real number"),
    (lambda: as_function(lambda x: "a", 4).value(X), r"fun\(x\) must be a real number, got 'a'"),
    (lambda: as_function(lambda x: 1j, 4).value(X), r"fun\(x\) must be a real number, got 1j"),
    (lambda: as_function(lambda x: x[:1], 4, vectorized=True).value(X), r"fun\(rows\) must have shape \(1,\)"),
    (lambda: as_function(rosen, 4, jac=True).value(X), r"jac=True.*\(value, gradient\)"),
    (lambda: as_function(rosen, 4, jac=lambda x: x[1:]).gradient(X), r"jac\(x\) must have shape \(4,\), got \(3,\)"),
    (
        lambda: as_function(rosen, 4, jac=rosen_der, hessp=lambda x, v: v[1:]).products(X, V),
        r"hessp\(x, v\) must have shape \(4,\), got \(3,\)",
    ),
    (
        lambda: as_function(rosen, 4, jac=rosen_der, hessp=lambda x, v: v[0], hessp_vectorized=True).products(X, V),
        r"hessp\(x, rows\) must have shape \(2, 4\), got \(4,\)",
    ),
    (
        lambda: as_function(rosen, 4, jac=rosen_der, hess=lambda x: np.tri(4)).hessian(X),
        r"hess\(x\) must be symmetric, but differs from its transpose by 1",
    ),
    (lambda: as_function(rosen, 4).value(X[1:]), r"x must have shape \(4,\), got \(3,\)"),
    (lambda: as_function(rosen, 4).values(X), r"rows must have shape \(n, 4\), got \(4,\)"),
]


@pytest.mark.parametrize(("call", "message"), RETURNS, ids=[r[1] for r in RETURNS])
def test_a_bad_shape_is_named(call, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_numbers_that_are_not_finite_are_passed_on() -> None:
    function = as_function(
        lambda x: np.nan, 4, jac=lambda x: np.full(4, np.inf), hess=lambda x: np.full((4, 4), np.nan)
    )  # fmt: skip
    assert np.isnan(function.value(X))
    assert np.isinf(function.gradient(X)).all()
    assert np.isnan(function.hessian(X)).all()
