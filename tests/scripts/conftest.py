"""Scripts import what lies beside them, as they do when they are run. Quick runs of the reproduction are shared."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

sys.path.append(str(Path(__file__).parents[2] / "scripts"))


@pytest.fixture(scope="session")
def quick_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with quick runs, made by the command; nothing is timed, so nothing is warmed up.

    Those that are resumable, which may need torch, have runs of their own.
    """
    import reproduce
    from reproduction import nearness, newton

    made = tmp_path_factory.mktemp("reproduction")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(newton, "_warm_up", lambda size: None)
        patch.setattr(nearness, "QUICK", replace(nearness.QUICK, iterations=20))
        for name in (experiment.name for experiment in reproduce.EXPERIMENTS if not experiment.resumable):
            result = CliRunner().invoke(reproduce.app, [name, "--quick", "--seed", "3", "--out", str(made / name)])
            assert result.exit_code == 0, result.output
    return made
