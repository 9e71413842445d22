"""What is loaded for what: a plain search needs neither Newton nor gradients nor figures."""

import subprocess
import sys

import pytest


def loaded(code: str) -> set[str]:
    show = "import sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", f"{code}\n{show}"], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def packages(modules: set[str]) -> set[str]:
    return {".".join(module.split(".")[:2]) for module in modules if module.startswith("esgroup.")}


@pytest.mark.parametrize(
    "code",
    [
        "import esgroup; esgroup.minimize",
        "import esgroup; esgroup.Searcher([1.0, 2.0], 0.5)",
        "import esgroup; esgroup.minimize(lambda x: x @ x, [1.0, 2.0], 0.5, max_evals=30)",
    ],
)
def test_a_plain_search_loads_no_newton_no_gradients_and_no_figures(code: str) -> None:
    found = loaded(code)
    assert not packages(found) & {"esgroup.newton", "esgroup.gradients", "esgroup.plots", "esgroup.variational"}
    assert not packages(found) & {"esgroup.compare", "esgroup.command"} and "matplotlib" not in found


def test_import_alone_loads_nothing_heavy() -> None:
    assert not {"numpy", "scipy", "numba"} & loaded("import esgroup")


def test_every_public_name_is_there() -> None:
    import esgroup

    for name in esgroup.__all__:
        assert getattr(esgroup, name) is not None
    assert set(esgroup.__all__) <= set(dir(esgroup))
    with pytest.raises(AttributeError, match="has no attribute 'minimise'"):
        esgroup.minimise  # noqa: B018
