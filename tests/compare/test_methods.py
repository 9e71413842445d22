"""Methods are found by their spelling, or the answer says which there are."""

from functools import partial

import pytest

from esgroup.compare.methods import Chosen, Method, check_installed, choose, known, split
from esgroup.compare.methods.ours import search
from esgroup.compare.records import Cost

ODD = "tests.compare.oddities"


def options(chosen: Chosen) -> dict[str, str]:
    """What one of our searches adds to the arguments that all of them have."""
    assert isinstance(chosen.method.run, partial) and chosen.method.run.func is search
    return chosen.method.run.keywords


def test_a_structure_follows_the_name() -> None:
    chosen = choose("esgroup-paper:heisenberg:k1=2,k2=1,upper")
    assert chosen.structure == "heisenberg:k1=2,k2=1,upper"
    assert options(chosen) == {"structure": "heisenberg:k1=2,k2=1,upper", "algorithm": "paper"}
    assert chosen.method.name == "esgroup-paper:heisenberg:k1=2,k2=1,upper"
    assert options(choose("esgroup")) == {}
    assert options(choose("esgroup-model:diagonal")) == {"structure": "diagonal", "model": "quadratic"}


def test_a_chart_comes_last() -> None:
    chosen = choose("esgroup:diagonal@cholesky")
    assert (chosen.structure, chosen.chart) == ("diagonal", "cholesky")
    assert (choose("cma@log").structure, choose("cma@log").chart) == (None, "log")


def test_a_search_of_matrices_takes_a_structure_and_no_chart() -> None:
    assert options(choose("wishart")) == {"space": "spd"}
    assert options(choose("wishart:diagonal")) == {"space": "spd", "structure": "diagonal"}
    assert options(choose("matrix-gaussian:triangular,upper")) == {"space": "matrix", "structure": "triangular,upper"}
    for name in ("wishart", "wishart:diagonal"):
        message = f"{name} searches positive-definite matrices .*chart, got '{name}@log'"
        with pytest.raises(ValueError, match=message):
            choose(f"{name}@log")
    with pytest.raises(ValueError, match=r"searches positive-definite matrices and matrices .* chart"):
        choose(f"{ODD}:descending@flat")


def test_the_spaces_of_a_method_are_known_ones() -> None:
    with pytest.raises(ValueError, match=r"spaces must be some of vector, spd, matrix, scalar, got \('sdp',\)"):
        Method("mine", choose("cma").method.run, "mine", spaces=("sdp",))


def test_a_method_of_ones_own_is_found_in_its_module() -> None:
    assert choose(f"{ODD}:raising").method.name == "raising"
    assert choose(f"{ODD}:raising@log").chart == "log"
    with pytest.raises(ValueError, match=r"not_a_method must be an esgroup.compare.methods.Method, got int"):
        choose(f"{ODD}:not_a_method")
    with pytest.raises(ValueError, match=r"has no function 'rasing' \(did you mean 'raising'\?\)"):
        choose(f"{ODD}:rasing")


def test_an_unknown_method_is_answered_with_the_nearest() -> None:
    with pytest.raises(ValueError, match=r"unknown method 'bgfs' \(did you mean 'bfgs'.*\): the methods are esgroup, "):
        choose("bgfs")
    with pytest.raises(ValueError, match=r"esgruop:diagonal is neither one of the methods \(did you mean 'esgroup'"):
        choose("esgruop:diagonal")


def test_only_ours_have_structures() -> None:
    with pytest.raises(ValueError, match="the method cma has no structures, got 'cma:diagonal'"):
        choose("cma:diagonal")


def test_commas_within_a_structure_do_not_divide() -> None:
    text = "bfgs, esgroup:heisenberg:k1=4,k2=4,upper@log,cma,esgroup:block_triangular:k=2"
    assert split(text) == ["bfgs", "esgroup:heisenberg:k1=4,k2=4,upper@log", "cma", "esgroup:block_triangular:k=2"]
    assert split("newton:moving:k=5,residual,newton-cg") == ["newton:moving:k=5,residual", "newton-cg"]
    assert split("newton:moving:k=5,gradient,bfgs") == ["newton:moving:k=5,gradient", "bfgs"]
    assert split("cma") == ["cma"] and split("cma,,bfgs,") == ["cma", "bfgs"]


def test_what_is_not_installed_names_the_extra() -> None:
    with pytest.raises(
        ValueError, match=r"the method absent needs no_such_package_at_all: pip install 'esgroup\[bench\]'"
    ):
        check_installed([choose(f"{ODD}:absent").method])
    check_installed([choose("esgroup").method, choose("bfgs").method])


def test_what_is_counted_depends_on_the_problem() -> None:
    method = choose("bfgs").method
    assert method.counts(has_gradient=True) is Cost.GRADIENTS
    assert method.counts(has_gradient=False) is Cost.DIFFERENCES
    assert choose("bfgs-fd").method.counts(has_gradient=True) is Cost.DIFFERENCES
    assert choose("cma").method.counts(has_gradient=True) is Cost.VALUES


def test_an_entry_point_adds_methods(monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib.metadata import EntryPoint

    from esgroup.compare import methods

    entry = EntryPoint(name="odd", value=f"{ODD}:raising", group=methods.GROUP)
    monkeypatch.setattr(methods, "entry_points", lambda group: [entry] if group == methods.GROUP else [])
    methods._found.cache_clear()
    try:
        assert isinstance(known()["raising"], Method) and choose("raising").method.about == "raises an exception"
    finally:
        methods._found.cache_clear()


def test_every_method_says_what_it_is() -> None:
    for name, method in known().items():
        assert name == method.name and method.about and len(method.about) < 90
