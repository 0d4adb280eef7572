"""What the repository shows to its users: every example runs, every figure can be made."""

import json
from pathlib import Path

import pytest

import sojourn
from sojourn import experiments

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.toml"))
FIGURES = experiments.discover(ROOT / "experiments") if (ROOT / "experiments").is_dir() else {}


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: str(file.stem))
def test_every_example_runs(file: Path) -> None:
    result = sojourn.run(sojourn.read(file))
    assert result.flows.height > 0
    slowdowns = result.flows["slowdown"].drop_nulls()
    # A picosecond of rounding is no broken invariant.
    assert (slowdowns > 1 - 1e-6).all()


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_is_made_and_its_robust_claims_hold(name: str, tmp_path: Path) -> None:
    FIGURES[name].make("smoke", tmp_path)
    told = json.loads((tmp_path / f"{name}.json").read_text(encoding="utf-8"))
    broken = [claim for claim in told["claims"] if claim["verdict"] == "not held"]
    assert not broken
