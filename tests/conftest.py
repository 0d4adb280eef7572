"""What the tests share: a small scenario, a cache of their own, and results made by hand."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from _pytest.mark import ParameterSet
from hypothesis import settings

from sojourn.runs.results import Result

# How long an example takes says more about what else the machine does.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

SCENARIO: dict[str, Any] = {
    "topology": {"kind": "dumbbell"},
    "workload": {
        "kind": "poisson",
        "load": 0.5,
        "flows": 200,
        "sizes": {"kind": "fixed", "size": "20 KB"},
    },
    "transport": "dctcp",
}

SCENARIO_FILE = """
transport = "dctcp"
[topology]
kind = "dumbbell"
[workload]
kind = "poisson"
load = 0.5
flows = 200
sizes = { kind = "fixed", size = "20 KB" }
"""

IN_WINDOWS: dict[str, Any] = {
    "topology": {"kind": "fat_tree", "k": 8},
    "workload": {"kind": "permutation", "size": "100 KB"},
    "transport": "dctcp",
    "engine": "windows",
}
"""A scenario that can be run on several threads."""

EXPERIMENTS = Path(__file__).parent / "experiments"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    directory = tmp_path / "cache"
    monkeypatch.setenv("SOJOURN_CACHE", str(directory))
    return directory


@pytest.fixture(scope="session")
def figure_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Cache of the figures' smoke runs, which several tests of a figure share."""
    base = tmp_path_factory.getbasetemp()
    # Each worker of pytest-xdist has a folder of its own in one of the session.
    return (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "figures"


def by_figure(names: Iterable[str]) -> list[ParameterSet]:
    """Return parameters for tests of figures; one worker runs all tests of a figure."""
    return [pytest.param(name, marks=pytest.mark.xdist_group(name)) for name in names]


@pytest.fixture
def scenario_file(tmp_path: Path) -> Path:
    file = tmp_path / "scenario.toml"
    file.write_text(SCENARIO_FILE, encoding="utf-8")
    return file


def made_result(  # noqa: PLR0913
    fcts: Sequence[float | None],
    *,
    simulated_s: float = 1.0,
    warm_up: str = "0 s",
    deadlines: Sequence[float | None] | None = None,
    terminated: Sequence[int] = (),
    classes: Sequence[str] = (),
) -> Result:
    """Make a result by hand: one flow of 1 KB every millisecond, alone 1 us, with these FCTs.

    `terminated` are the numbers of flows that were given up.
    """
    outcomes = [
        "terminated" if number in terminated else "unfinished" if fct is None else "finished"
        for number, fct in enumerate(fcts)
    ]
    flows = pl.DataFrame(
        {
            "flow": range(len(fcts)),
            "size_bytes": [1000] * len(fcts),
            "start_s": [i * 1e-3 for i in range(len(fcts))],
            "fct_s": pl.Series(fcts, dtype=pl.Float64),
            "ideal_fct_s": [1e-6] * len(fcts),
            "slowdown": pl.Series(
                [None if fct is None else fct / 1e-6 for fct in fcts], dtype=pl.Float64
            ),
            "deadline_s": pl.Series(deadlines or [None] * len(fcts), dtype=pl.Float64),
            "class": classes or ["poisson"] * len(fcts),
            "outcome": outcomes,
        }
    )
    summary = {"simulated_s": simulated_s, "scenario": {"warm_up": warm_up}, "links": []}
    return Result(flows, pl.DataFrame(), summary)
