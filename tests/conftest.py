"""Shared elements of tests: small scenarios, a cache per test, and constructed results."""

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from _pytest.mark import ParameterSet
from hypothesis import settings

from sojourn import Run, over_seeds, override, sweep
from sojourn.runs.results import Result

# Tables have the width of a pipe, whatever the terminal in which tests run.
os.environ.pop("COLUMNS", None)

# The time of an example depends on the load of the machine.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print each reason of skipped tests once, with their number."""
    reports = terminalreporter.stats.get("skipped", [])
    reasons = Counter(str(report.longrepr[2]).removeprefix("Skipped: ") for report in reports)
    for reason, number in sorted(reasons.items()):
        terminalreporter.write_line(f"{number} skipped: {reason}")


FOLDABLE: dict[str, Any] = {
    "seed": 3,
    "topology": {"kind": "leaf_spine", "leaves": 12},
    "workload": {
        **{"kind": "poisson", "load": 0.4, "flows": 3000},
        "sizes": {"kind": "fixed", "size": "20 KB"},
    },
    "transport": "dctcp",
}
"""Scenario of 192 hosts, which folds to 64."""

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

SMALL = override(SCENARIO, {"workload.flows": 60, "topology.senders": 4})
"""Scenario of searches, which run it many times."""

COMPARED: dict[str, Any] = {
    "topology": {"kind": "dumbbell", "senders": 2, "receivers": 2, "rate": "10 Gbps"},
    "transport": "dctcp",
    "workload": {
        "kind": "poisson",
        "load": 0.3,
        "flows": 40,
        "sizes": {"kind": "fixed", "size": "20 KB"},
    },
}
"""Short scenario whose comparisons are read."""

BREAKDOWN: dict[str, Any] = {
    "environment": "paper",
    "topology": {
        "kind": "dumbbell",
        "senders": 3,
        "receivers": 3,
        "rate": "1 Gbps",
        "delay": "5 us",
    },
    "transport": "dctcp",
    "workload": {
        "kind": "poisson",
        "load": 0.7,
        "sizes": {"kind": "uniform", "min": "1 B", "max": "200 KB"},
        "flows": 200,
    },
    "account": True,
}
"""Scenario with the FCT breakdown."""

IN_WINDOWS: dict[str, Any] = {
    "topology": {"kind": "fat_tree", "k": 8},
    "workload": {"kind": "permutation", "size": "100 KB"},
    "transport": "dctcp",
    "engine": "windows",
}
"""Scenario that can run on several threads."""

EXPERIMENTS = Path(__file__).parent / "experiments"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    directory = tmp_path / "cache"
    monkeypatch.setenv("SOJOURN_CACHE", str(directory))
    return directory


@pytest.fixture(scope="session")
def figure_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the cache of the figures' smoke runs, shared by the tests of a figure."""
    base = tmp_path_factory.getbasetemp()
    # Each worker of pytest-xdist has its own subfolder of the session's folder.
    return (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "figures"


def by_figure(names: Iterable[str]) -> list[ParameterSet]:
    """Return parameters for tests of figures; one worker runs all tests of a figure."""
    return [pytest.param(name, marks=pytest.mark.xdist_group(name)) for name in names]


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty folder, the working directory of the test."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def files(directory: Path) -> set[str]:
    """Return the paths of all files in a folder."""
    return {str(file.relative_to(directory)) for file in directory.rglob("*") if file.is_file()}


@pytest.fixture(scope="session")
def breakdowns() -> list[Run]:
    """Return runs of DCTCP and TIMELY with the same flows, four seeds."""
    kinds = ("dctcp", "timely")
    labelled = [({"transport": kind}, BREAKDOWN | {"transport": kind}) for kind in kinds]
    return sweep(over_seeds(labelled, 4))


@pytest.fixture
def scenario_file(tmp_path: Path) -> Path:
    file = tmp_path / "scenario.toml"
    file.write_text(SCENARIO_FILE, encoding="utf-8")
    return file


def make_result(  # noqa: PLR0913
    fcts: Sequence[float | None],
    *,
    simulated_s: float = 1.0,
    warm_up: str = "0 s",
    deadlines: Sequence[float | None] | None = None,
    terminated: Sequence[int] = (),
    classes: Sequence[str] = (),
) -> Result:
    """Return a result with these FCTs: a flow of 1 KB every millisecond, with ideal FCTs of 1 us.

    `terminated` contains the numbers of terminated flows.
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
