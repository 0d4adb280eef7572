"""Runs of a page: results that are read, and scenarios that are run with recordings."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sojourn._core import SOURCE_HASH, ScenarioError
from sojourn.base.errors import FileError
from sojourn.runs.results import SUMMARY, Result, Run
from sojourn.runs.runner import run_many
from sojourn.scenario import overrides, reading
from sojourn.view import recordings
from sojourn.view.flow_blocks import SCHEME

MOST_RUNS = 2


def load(
    paths: Sequence[Path], vary: Sequence[str], flows: Sequence[int], options: Mapping[str, Any]
) -> list[Run]:
    """Return one run or two, with the label `scheme`.

    A folder of `sojourn run --out` is read; if it lacks the recordings of `flows`, its scenario is
    run again. A scenario file is run with FCT breakdown and recordings, or read from the cache.
    `options` are those of `run_many`.
    """
    variations = overrides.parse_variations(vary)
    if variations and (len(paths) > 1 or paths[0].is_dir()):
        raise ScenarioError("--vary: needs one scenario file")
    files = [path for path in paths if not path.is_dir()]
    scenarios = [_scenarios(path, variations) for path in files]
    named = [pair for pairs in scenarios for pair in pairs]
    count = len(named) + len(paths) - len(files)
    if count > MOST_RUNS:
        raise ScenarioError(f"the page shows one run or two, not {count}; choose two values")
    named = [(name, recorded(scenario, flows)) for name, scenario in named]
    results = iter(run_many([scenario for _, scenario in named], **options) if named else [])
    runs: list[tuple[str, Result]] = []
    pairs = iter(scenarios)
    for path in paths:
        if path.is_dir():
            runs.append((path.absolute().name, _read(path, flows, options)))
        else:
            runs += [(name, next(results)) for name, _ in next(pairs)]
    names = [name for name, _ in runs]
    if len(set(names)) < len(names):
        names = [str(path) for path in paths]
    return [Run({SCHEME: name}, result) for name, (_, result) in zip(names, runs, strict=True)]


def _scenarios(path: Path, variations: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return the scenarios of a file with their names."""
    pairs = overrides.expand(reading.read(path), variations)
    return [
        (", ".join(map(str, labels.values())) or path.stem, scenario) for labels, scenario in pairs
    ]


def recorded(scenario: Mapping[str, Any], flows: Sequence[int]) -> dict[str, Any]:
    """Return a scenario with FCT breakdown and recordings, among them those of `flows`."""
    own = scenario.get("record")
    record = dict(own) if isinstance(own, Mapping) else {}
    record["flows"] = [*record.get("flows", []), *flows]
    return {**scenario, "account": True, "record": record}


def _read(folder: Path, flows: Sequence[int], options: Mapping[str, Any]) -> Result:
    """Read a result, or run its scenario again for the recordings of `flows`."""
    if not (folder / SUMMARY).exists():
        raise FileError(
            f"{folder}: expected a folder that `sojourn run --out` wrote, or a scenario file"
        )
    result = Result.read(folder)
    missing = set(flows) - {entry["flow"] for entry in recordings.recorded(result)}
    if not missing:
        return result
    unknown = sorted(missing - set(result.flows["flow"]))
    if unknown:
        raise FileError(f"--flow {unknown[0]}: no such flow in {folder}")
    if result.summary.get("source_hash") != SOURCE_HASH:
        raise FileError(
            f"{folder}: lacks the recording of flow {min(missing)}, and was written by another "
            "version of Sojourn, whose run cannot be repeated; run the scenario again"
        )
    (again,) = run_many([recorded(result.summary["scenario"], flows)], **options)
    return again
