"""Repository: every example runs, every figure is made, and modules import in order."""

import ast
import json
import subprocess
from pathlib import Path

import pytest

import sojourn
from conftest import by_figure
from sojourn import _core, cli
from sojourn.base import paths
from sojourn.figures import discovery
from sojourn.figures.documents import component_names

EXAMPLES = sorted(paths.EXAMPLES.glob("*.toml"))
FIGURES = discovery.discover(paths.EXPERIMENTS)


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: str(file.stem))
def test_every_example_has_a_description_and_runs(file: Path) -> None:
    assert file.read_text(encoding="utf-8").startswith("# ")
    assert cli.invoke(["check", str(file)]) == 0
    scenario = sojourn.read(file)
    if ("transport", "quic") in component_names(scenario) and not _core.HAS_QUIC:
        with pytest.raises(sojourn.ScenarioError, match=r"^transport: `quic` is not in this"):
            sojourn.run(scenario)
        return
    result = sojourn.run(scenario)
    assert result.flows.height > 0
    slowdowns = result.flows["slowdown"].drop_nulls()
    # The tolerance covers rounding to picoseconds.
    assert (slowdowns > 1 - 1e-6).all()


def test_every_component_is_used_in_an_example() -> None:
    used = {part for file in EXAMPLES for part in component_names(sojourn.read(file))}
    families = sojourn.parts()
    # Fluid models are not components of scenarios.
    del families["scenario"], families["fluid"]
    components = {(family, part["name"]) for family, parts in families.items() for part in parts}
    routings = {
        ("routing", name) for name in ("flow_hash", "ecmp", "spray_round_robin", "spray_random")
    }
    assert not sorted((components | routings) - used)


def test_no_file_that_git_ignores_is_committed() -> None:
    command = ["git", "ls-files", "--cached", "--ignored", "--exclude-standard"]
    found = subprocess.run(
        command, cwd=paths.checkout(), capture_output=True, check=True, text=True
    )
    assert found.stdout == ""


def test_figures_do_not_choose_their_number_of_seeds() -> None:
    chosen = {
        figure.id
        for figure in FIGURES.values()
        if any("seeds" in scale for scale in figure.scales.values())
    }
    assert chosen == set()


@pytest.mark.parametrize("name", by_figure(FIGURES))
def test_every_figure_is_made_and_its_robust_claims_hold(
    name: str, tmp_path: Path, figure_cache: Path
) -> None:
    FIGURES[name].make("smoke", tmp_path, cache=figure_cache)
    summary = json.loads((tmp_path / f"{name}.json").read_text(encoding="utf-8"))
    failed = [claim for claim in summary["claims"] if claim["verdict"] == "not held"]
    assert not failed
    # The report draws every artist of the picture.
    drawn = json.loads((tmp_path / f"{name}.drawn.json").read_text(encoding="utf-8"))
    assert drawn["unknown"] == []
    assert any(panel["marks"] for panel in drawn["panels"])


CLI = {
    file.stem: file
    for file in (paths.PACKAGE / "cli").glob("*.py")
    if not file.stem.startswith("__")
}
COMMANDS = set(CLI) - {"app", "completion", "reference", "shared"}


def imported_from_cli(file: Path) -> set[str]:
    """Return the modules of `sojourn.cli` that a file imports, anywhere in it."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "sojourn.cli":
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sojourn.cli."):
            names.add(str(node.module).removeprefix("sojourn.cli."))
    return names


@pytest.mark.parametrize("name", CLI)
def test_a_command_imports_no_other_command(name: str) -> None:
    # The page of commands reads them from the app, which states at an interrupt what is stored.
    others = {"reference": {"app"}, "app": {"shared"}}.get(name, set())
    allowed = {"completion", "shared"} if name in COMMANDS else others
    assert imported_from_cli(CLI[name]) <= allowed


def test_every_command_is_listed() -> None:
    assert {command.__module__ for command in cli.COMMANDS} == {
        f"sojourn.cli.{name}" for name in COMMANDS
    }


def test_experiments_do_not_use_the_core() -> None:
    for file in paths.EXPERIMENTS.glob("*/*.py"):
        assert "_core" not in file.read_text(encoding="utf-8"), file
