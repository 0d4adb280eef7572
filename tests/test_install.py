"""Installed wheel: commands, controllers, figures and learning work outside of the checkout."""

import re
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import EXPERIMENTS
from sojourn import cli
from sojourn.base import paths

Sojourn = Callable[..., str]

CHECKOUT = paths.checkout()
pytestmark = pytest.mark.skipif(CHECKOUT is None, reason="needs the checkout to build from")


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel as `make wheel` does; Cargo reuses the output of `make build`."""
    out = tmp_path_factory.mktemp("dist")
    maturin = Path(sys.executable).with_name("maturin")
    command = [str(maturin), "build", "--release", "--quiet", "--out", str(out)]
    subprocess.run(command, cwd=CHECKOUT, check=True)
    (file,) = out.glob("*.whl")
    return file


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a new environment with the wheel, and with the dependencies of this environment."""
    root = tmp_path_factory.mktemp("fresh")
    venv.create(root, with_pip=False, symlinks=True)
    pip = [sys.executable, "-m", "pip", "--python", str(root / "bin" / "python"), "install"]
    options = ["--quiet", "--no-index", "--no-deps", "--disable-pip-version-check"]
    subprocess.run([*pip, *options, str(wheel)], check=True)
    (packages,) = root.glob("lib/python*/site-packages")
    # Path files in the added folder are not read, so the checkout, which a path file installs
    # there, cannot be imported.
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return root


@pytest.fixture
def sojourn(
    installed: Path, tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> Sojourn:
    """Return a function that runs the installed command in another folder."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.delenv("PYTHONPATH", raising=False)

    def run(*arguments: str) -> str:
        command = [str(installed / "bin" / "sojourn"), *arguments]
        process = subprocess.run(command, capture_output=True, text=True, check=False)
        assert process.returncode == 0, process.stderr
        return process.stdout

    return run


def test_the_wheel_contains_exactly_the_package(wheel: Path) -> None:
    assert "-abi3-" in wheel.name
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if name.startswith("sojourn/")}
        others = {name.partition("/")[0] for name in archive.namelist()} - {"sojourn"}
    source = paths.PACKAGE.parent
    expected = {
        str(file.relative_to(source))
        for file in paths.PACKAGE.rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    assert names == expected
    (info,) = others
    assert info.endswith(".dist-info")


def test_all_main_commands_work_from_an_installed_wheel(sojourn: Sojourn, installed: Path) -> None:
    example = sojourn("examples", "dctcp_dumbbell")
    assert example == "written: dctcp_dumbbell.toml\n"
    assert "flow completion time" in sojourn("run", "dctcp_dumbbell.toml", "--out", "first")
    assert Path("first/flows.parquet").is_file()
    vary = ["--vary", "stop=5 ms,10 ms", "--out", "compared"]
    assert "written to compared" in sojourn("compare", "dctcp_dumbbell.toml", *vary)
    assert "✓ held" in sojourn("figure", "a1", "--scale", "smoke")
    sojourn("report", "--scale", "smoke")
    assert 'id="block-a1.drawn"' in Path("results/figures/smoke/report.html").read_text(
        encoding="utf-8"
    )
    assert "Sojourn / ns-2" in sojourn("validate", "ns2", "--quick", "--only", "c.sack")
    assert "pfabric_fabric" in sojourn("examples")
    assert '"packet_hops"' in sojourn("bench", "W1", "--json", "--repeats", "1")
    program = "import sojourn.base.paths as p; print(p.PACKAGE, p.checkout())"
    command = [str(installed / "bin" / "python"), "-c", program]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert printed.startswith(str(installed))
    assert printed.endswith(" None\n")


USER_PAPER = """
from sojourn import Paper
from sojourn.experiments.rcp_ccr06 import paper as published

paper = Paper(key="mine", citation=f"After {published.paper.citation}")
"""
USER_FIGURE = """
from sojourn import Figure, metrics
from .paper import paper

figure = Figure(paper, id="m1", title="One flow", scales={"smoke": {}})

@figure.runs
def runs(scale):
    for name, transport in (("TCP", "tcp"), ("mine", "gentle.py:Gentle")):
        yield {"scheme": name}, {
            "topology": {"kind": "link"},
            "transport": transport,
            "workload": {
                "kind": "flows", "flows": [{"source": 0, "target": 1, "size": "10 KB"}]
            },
        }

@figure.table
def table(runs):
    return metrics.across_seeds(metrics.measure(runs, mean=metrics.fct("mean")))

@figure.draw
def draw(axes, table, published):
    pass
"""


def test_figures_of_a_user_are_found_and_can_import_published_ones(sojourn: Sojourn) -> None:
    folder = Path("experiments") / "mine"
    folder.mkdir(parents=True)
    (folder / "paper.py").write_text(USER_PAPER, encoding="utf-8")
    (folder / "m1_one_flow.py").write_text(USER_FIGURE, encoding="utf-8")
    gentle = paths.EXAMPLES / "controllers" / "gentle.py"
    (folder / "gentle.py").write_text(gentle.read_text(encoding="utf-8"), encoding="utf-8")
    assert "m1   One flow" in sojourn("figure", "m1", "--scale", "smoke", "--out", "made")
    table = Path("made/m1.csv").read_text(encoding="utf-8")
    assert "TCP," in table
    assert "mine," in table


@pytest.mark.parametrize("command", [["figure", "a1"], ["validate", "ns2"]])
def test_nothing_is_recorded_in_an_installed_package(
    command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(paths, "checkout", lambda: None)
    assert cli.invoke([*command, "--record"]) == 2
    error = capsys.readouterr().err
    assert re.fullmatch(r"sojourn: --record: .*needs? a checkout of Sojourn\n", error)


def test_only_figures_of_the_package_are_recorded(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(EXPERIMENTS.parent)
    assert cli.invoke(["figure", "t1", "--record"]) == 2
    assert re.fullmatch(
        r"sojourn: --record: .*t1\.py does not ship with Sojourn\n", capsys.readouterr().err
    )


def test_a_python_controller_works_from_an_installed_wheel(sojourn: Sojourn) -> None:
    sojourn("examples", "own_controller")
    scenario = Path("own_controller.toml")
    scenario.write_text(scenario.read_text().replace("flows = 1000", "flows = 20"))
    # The runs are in worker processes, which must find the package too.
    output = sojourn("compare", str(scenario), "--vary", "gain=0.1,0.2", "--threads", "2")
    assert "gain" in output
    assert "above" in sojourn("parts", "controllers/gentle.py:Gentle")


LEARNING = """
from sojourn import learn

scenario = {
    "topology": {"kind": "dumbbell"},
    "workload": {"kind": "flows", "flows": [{"source": 0, "target": 10, "size": "100 KB"}]},
    "transport": "dctcp",
}
environment = learn.Environment(scenario)
environment.reset(seed=1)
is_over = False
while not is_over:
    *_, is_over, _, info = environment.step([0.5])
print(info["completion_s"])
"""


def test_tuning_and_learning_work_from_an_installed_wheel(
    sojourn: Sojourn, installed: Path
) -> None:
    pytest.importorskip("optuna", reason="the extra `tune` is not installed")
    pytest.importorskip("gymnasium", reason="the extra `rl` is not installed")
    sojourn("examples", "dctcp_dumbbell")
    objective = ["--minimise", "mean fct", "--parameter", "transport.gain=0.01:1:log"]
    output = sojourn("tune", "dctcp_dumbbell.toml", *objective, "--trials", "2", "--seeds", "1")
    assert "best.toml" in output
    command = [str(installed / "bin" / "python"), "-c", LEARNING]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert 0.0 < float(printed) < 0.1
