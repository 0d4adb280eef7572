"""The wheel, installed into a fresh environment in another folder: everything works there."""

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
    """Build the wheel as `make wheel` does: what `make build` compiled is taken, not made again."""
    out = tmp_path_factory.mktemp("dist")
    maturin = Path(sys.executable).with_name("maturin")
    command = [str(maturin), "build", "--release", "--quiet", "--out", str(out)]
    subprocess.run(command, cwd=CHECKOUT, check=True)
    (made,) = out.glob("*.whl")
    return made


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a fresh environment with the wheel in it; its dependencies are those at hand."""
    root = tmp_path_factory.mktemp("fresh")
    venv.create(root, with_pip=False, symlinks=True)
    pip = [sys.executable, "-m", "pip", "--python", str(root / "bin" / "python"), "install"]
    options = ["--quiet", "--no-index", "--no-deps", "--disable-pip-version-check"]
    subprocess.run([*pip, *options, str(wheel)], check=True)
    (packages,) = root.glob("lib/python*/site-packages")
    # A path file is read for the folders it names, not for the path files in those: the checkout,
    # which is installed there by one, stays out of sight.
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return root


@pytest.fixture
def sojourn(
    installed: Path, tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> Sojourn:
    """Return what runs the installed command in another folder, and returns what it prints."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    monkeypatch.delenv("PYTHONPATH", raising=False)

    def run(*arguments: str) -> str:
        command = [str(installed / "bin" / "sojourn"), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    assert "-abi3-" in wheel.name
    with zipfile.ZipFile(wheel) as opened:
        names = {name for name in opened.namelist() if name.startswith("sojourn/")}
        others = {name.partition("/")[0] for name in opened.namelist()} - {"sojourn"}
    source = paths.PACKAGE.parent
    wanted = {
        str(file.relative_to(source))
        for file in paths.PACKAGE.rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    assert names == wanted
    (info,) = others
    assert info.endswith(".dist-info")


def test_the_main_job_is_done_from_an_installed_wheel(sojourn: Sojourn, installed: Path) -> None:
    example = sojourn("examples", "dctcp_dumbbell")
    assert example == "written: dctcp_dumbbell.toml\n"
    assert "flow completion time" in sojourn("run", "dctcp_dumbbell.toml", "--out", "first")
    assert Path("first/flows.parquet").is_file()
    vary = ["--vary", "stop=5 ms,10 ms", "--out", "compared"]
    assert "written to compared" in sojourn("compare", "dctcp_dumbbell.toml", *vary)
    assert "✓ held" in sojourn("figure", "a1", "--scale", "smoke")
    sojourn("report", "--scale", "smoke")
    assert "<svg" in Path("results/figures/smoke/report.html").read_text(encoding="utf-8")
    assert "ours / ns-2" in sojourn("validate", "ns2", "--quick", "--only", "c.sack")
    assert "pfabric_fabric" in sojourn("examples")
    assert '"packet_hops"' in sojourn("bench", "W1", "--json", "--repeats", "1")
    program = "import sojourn.base.paths as p; print(p.PACKAGE, p.checkout())"
    command = [str(installed / "bin" / "python"), "-c", program]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert printed.startswith(str(installed))
    assert printed.endswith(" None\n")


OWN_PAPER = """
from sojourn import Paper
from sojourn.experiments.rcp_ccr06 import paper as published

paper = Paper(key="mine", citation=f"After {published.paper.citation}")
"""
OWN_FIGURE = """
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


def test_own_figures_stand_beside_the_published_ones_and_can_use_them(sojourn: Sojourn) -> None:
    own = Path("experiments") / "mine"
    own.mkdir(parents=True)
    (own / "paper.py").write_text(OWN_PAPER, encoding="utf-8")
    (own / "m1_one_flow.py").write_text(OWN_FIGURE, encoding="utf-8")
    gentle = paths.EXAMPLES / "controllers" / "gentle.py"
    (own / "gentle.py").write_text(gentle.read_text(encoding="utf-8"), encoding="utf-8")
    assert "m1.svg  One flow" in sojourn("figure", "m1", "--scale", "smoke", "--out", "made")
    table = Path("made/m1.csv").read_text(encoding="utf-8")
    assert "TCP," in table
    assert "mine," in table


@pytest.mark.parametrize("command", [["figure", "a1"], ["validate", "ns2"]])
def test_nothing_is_recorded_in_an_installed_package(
    command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(paths, "checkout", lambda: None)
    assert cli.invoke([*command, "--record"]) == 2
    told = "sojourn: --record: keeps what ships with Sojourn, and so wants its checkout\n"
    assert capsys.readouterr().err == told


def test_only_what_ships_with_the_package_is_recorded(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(EXPERIMENTS.parent)
    assert cli.invoke(["figure", "t1", "--record"]) == 2
    assert re.fullmatch(
        r"sojourn: --record: .*t1\.py does not ship with Sojourn\n", capsys.readouterr().err
    )


def test_a_controller_of_ones_own_works_there(sojourn: Sojourn) -> None:
    sojourn("examples", "own_controller")
    scenario = Path("own_controller.toml")
    scenario.write_text(scenario.read_text().replace("flows = 1000", "flows = 20"))
    # In processes of their own, which have to find the package too.
    shown = sojourn("compare", str(scenario), "--vary", "gain=0.1,0.2", "--threads", "2")
    assert "gain" in shown
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


def test_parameters_are_searched_for_and_flows_learn_there(
    sojourn: Sojourn, installed: Path
) -> None:
    pytest.importorskip("optuna", reason="the extra `tune` is not installed")
    pytest.importorskip("gymnasium", reason="the extra `rl` is not installed")
    sojourn("examples", "dctcp_dumbbell")
    goal = ["--minimise", "mean fct", "--parameter", "transport.gain=0.01:1:log"]
    told = sojourn("tune", "dctcp_dumbbell.toml", *goal, "--trials", "2", "--seeds", "1")
    assert "best.toml" in told
    command = [str(installed / "bin" / "python"), "-c", LEARNING]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert 0.0 < float(printed) < 0.1
