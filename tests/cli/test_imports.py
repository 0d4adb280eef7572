"""Start-up cost: the packages that a command imports, in a fresh interpreter."""

import subprocess
import sys
from pathlib import Path

import pytest

LIST_IMPORTS = """
import sys
from sojourn import cli
status = cli.invoke(sys.argv[1:])
print(*{name.partition(".")[0] for name in sys.modules}, file=sys.stderr)
sys.exit(status)
"""


def packages_imported_by(*arguments: str) -> set[str]:
    """Return the top-level packages that a command line imports."""
    command = [sys.executable, "-c", LIST_IMPORTS, *arguments]
    process = subprocess.run(command, capture_output=True, text=True, check=True)
    return set(process.stderr.splitlines()[-1].split())


def test_help_imports_no_heavy_package() -> None:
    heavy = {"matplotlib", "numpy", "polars", "psutil", "pydantic", "rich", "scipy"}
    assert packages_imported_by("--help") & heavy == set()


@pytest.mark.parametrize("command", ["new", "examples", "schema"])
def test_commands_without_tables_import_no_heavy_package(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    heavy = {"matplotlib", "numpy", "polars", "scipy"}
    assert packages_imported_by(command) & heavy == set()


def test_a_run_imports_no_plotting_statistics_or_cluster_package(scenario_file: Path) -> None:
    unused = {"asyncio", "distributed", "matplotlib", "optuna", "scipy"}
    assert packages_imported_by("run", str(scenario_file)) & unused == set()
