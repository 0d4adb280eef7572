"""Runs of a page: results that are read, and scenarios that are run with recordings."""

import itertools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sojourn._core import SOURCE_HASH, ScenarioError
from sojourn.base.errors import FileError
from sojourn.runs.result_tables import flow_table
from sojourn.runs.results import SUMMARY, Result, Run, no_such_flow
from sojourn.runs.runner import run_many
from sojourn.scenario import encoding, environments, overrides, reading
from sojourn.scenario.fidelity import FIELD, refuse_flows
from sojourn.view import recorded_blocks
from sojourn.view.flow_blocks import SCHEME

MOST_RUNS = 2

MOST_LISTED, MOST_LONG_LIVED = 10_000, 8
"""Flows of a workload that is searched for long-lived ones, and how many of these are recorded."""


def load(
    paths: Sequence[Path],
    vary: Sequence[str],
    flows: Sequence[int],
    options: Mapping[str, Any],
    schemes: Sequence[str] = (),
) -> list[Run]:
    """Return one run or two, with the label `scheme`.

    A folder of `sojourn run --out` is read; if it lacks the recordings of `flows`, its scenario is
    run again. A scenario file is run as `with_recordings` returns it, or read from the cache.
    `schemes` are those of a scenario file that are run, by default all. `options` are those of
    `run_many`.
    """
    variations = overrides.parse_variations(vary)
    if variations and (len(paths) > 1 or paths[0].is_dir()):
        raise ScenarioError("--vary: needs one scenario file")
    files = [path for path in paths if not path.is_dir()]
    if schemes and not files:
        raise ScenarioError("--scheme: needs a scenario file")
    scenarios = _scenarios(files, variations, schemes)
    named = [pair for pairs in scenarios for pair in pairs]
    count = len(named) + len(paths) - len(files)
    if count > MOST_RUNS:
        raise ScenarioError(f"the page shows one run or two, not {count}; {_remedy(variations)}")
    named = [(name, with_recordings(scenario, flows)) for name, scenario in named]
    done = run_many([scenario for _, scenario in named], **options) if named else []
    for path, result in zip(_paths_of(files, scenarios), done, strict=True):
        _check_flows(path, flows, result)
    results = iter(done)
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


def _remedy(variations: Mapping[str, Any]) -> str:
    """Return the option that selects two of several runs."""
    return "choose two values" if variations else "choose two with --scheme NAME"


def _paths_of(files: Sequence[Path], scenarios: Sequence[Sequence[Any]]) -> list[Path]:
    """Return the file of each scenario."""
    return [path for path, pairs in zip(files, scenarios, strict=True) for _ in pairs]


def _check_flows(path: Path, flows: Sequence[int], result: Result) -> None:
    """Raise an error for a flow that a run does not have."""
    recorded = {entry["flow"] for entry in recorded_blocks.recorded(result)}
    found = recorded | set(result.flows["flow"])
    for flow in flows:
        if flow not in found:
            raise FileError(f"{path}: {no_such_flow(flow, result)}")


def _scenarios(
    files: Sequence[Path], variations: Mapping[str, Any], schemes: Sequence[str]
) -> list[list[tuple[str, dict[str, Any]]]]:
    """Return the scenarios of each file with their names, in the environment of a comparison.

    Of a table `schemes`, they are those in `schemes`.
    """
    combinations = []
    for path in files:
        scenario = reading.read(path)
        for name in schemes:
            overrides.choose_scheme(scenario, name)
        combinations.append(
            [
                (labels or {SCHEME: path.stem}, each)
                for labels, each in overrides.combinations(scenario, variations)
            ]
        )
    unified = iter(environments.unify([pair for pairs in combinations for pair in pairs]))
    return [
        [
            (", ".join(map(str, labels.values())), each)
            for labels, each in itertools.islice(unified, len(pairs))
            if not schemes or labels[SCHEME] in schemes
        ]
        for pairs in combinations
    ]


def with_recordings(scenario: Mapping[str, Any], flows: Sequence[int]) -> dict[str, Any]:
    """Return a scenario with FCT breakdown and recordings, among them those of `flows`.

    The first long-lived flows are recorded. A scenario that cannot have a breakdown is returned as
    it is, unless `flows` has some.
    """
    refuse_flows(scenario, "use `sample`, or show a folder of `sojourn run --out`")
    own = scenario.get("record")
    record = dict(own) if isinstance(own, Mapping) else {}
    record["flows"] = [*record.get("flows", []), *flows]
    full = {**scenario, "account": True, "record": record}
    try:
        count = json.loads(encoding.Prepared(full).core.estimate())["flows"]
    except ScenarioError as error:
        return dict(scenario) if _is_refusal(error) and not flows else full
    if count <= MOST_LISTED:
        named = set(record["flows"])
        record["flows"] += [flow for flow in _long_lived(scenario) if flow not in named]
    return full


def refusal(scenario: Mapping[str, Any]) -> str:
    """Return why a scenario cannot have an FCT breakdown; empty if it can."""
    try:
        refuse_flows(scenario, "a cause needs `sample`")
        encoding.Prepared({**scenario, "account": True})
    except ScenarioError as error:
        return str(error).rpartition(": ")[2] if _is_refusal(error) else ""
    return ""


def _is_refusal(error: ScenarioError) -> bool:
    return str(error).startswith(("account:", f"{FIELD}:"))


def _long_lived(scenario: Mapping[str, Any]) -> list[int]:
    """Return the numbers of the first long-lived flows; none if flows follow others."""
    try:
        table = flow_table(encoding.trace(dict(scenario)))
    except ScenarioError:
        return []
    return table.filter(outcome="long_lived")["flow"].head(MOST_LONG_LIVED).to_list()


def _read(folder: Path, flows: Sequence[int], options: Mapping[str, Any]) -> Result:
    """Read a result, or run its scenario again for the recordings of `flows`."""
    if not (folder / SUMMARY).exists():
        raise FileError(
            f"{folder}: expected a folder that `sojourn run --out` wrote, or a scenario file"
        )
    result = Result.read(folder)
    missing = set(flows) - {entry["flow"] for entry in recorded_blocks.recorded(result)}
    if not missing:
        return result
    unknown = sorted(missing - set(result.flows["flow"]))
    if unknown:
        raise FileError(f"{folder}: {no_such_flow(unknown[0], result)}")
    if result.summary.get("source_hash") != SOURCE_HASH:
        raise FileError(
            f"{folder}: lacks the recording of flow {min(missing)}, and was written by another "
            "version of Sojourn, whose run cannot be repeated; run the scenario again"
        )
    (again,) = run_many([with_recordings(result.summary["scenario"], flows)], **options)
    return again
