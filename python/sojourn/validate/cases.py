"""Folders of cases: runs of another simulator, the reference, with their results.

A folder contains the results of the reference and `cases.toml`, which describes its runs:

* `simulator` is the name of the reference. `scenario` is common to all runs. `cases` are tables by
  name, each with a `scenario` that changes the common one and with `runs` by name, each with a
  `scenario` that changes both. `repeats` are tables with further changes; results are means over
  repeats. If the reference contains every flow, a difference within the noise of repeats is held.
* A run has a `label`. `within` is the allowed relative difference of the mean completion time in
  every bin, or by statistic and group, as in `within.p99 = { small = 0.05 }`. `factor.timeouts =
  2`, `factor.retransmits` and `factor.pauses` bound the ratios of counts. `like` names a run
  (`run`, or `case.run`) whose table the run changes.
* `flows` names a Parquet file with one row per flow: `start_us`; `packets` or `bytes`; optionally
  `source` and `target`, and `after` and `after_count` as in traces; and the reference's completion
  times in microseconds in columns named after runs.
* `measured_s` is the period of the arrivals of measured flows, and `end_s` the end of the run.
  `quick` may give other values of both for a short run, which is compared flow by flow and not
  repeated.
* Completion times end at the receiver, or with `until = "acked"` at the sender. They are in
  seconds, or with `over = "alone"` multiples of the ideal FCT, the column `alone_us` of the Parquet
  file.
* `bins.csv` contains the reference's completion times by size, and `totals.csv` its other numbers.
  Bins may overlap. `groups` names the bins of `by = "group"`, as in `small = [1, 68]`.
* `ablations` are tables by name of a removed mechanism: the `runs` of `cases` are repeated with the
  changes of its `scenario`.
* `queues.csv` compares the queues of groups of ports over time; `ports` lists the links of each, as
  in `to_hosts = ["switch->host0"]`. `queue_within` is the allowed relative difference of means.
* `shares.csv` compares long-lived flows: the bytes of each `flow` that arrived from `from_s` to
  `to_s`. `share_within = 0.15` is the allowed difference of shares in each period.

All files of a folder are checked before the first run.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from sojourn._core import ScenarioError
from sojourn.base import paths
from sojourn.base.errors import FileError
from sojourn.base.messages import did_you_mean, some_of
from sojourn.scenario.encoding import check, trace
from sojourn.scenario.overrides import override
from sojourn.scenario.reading import Scenario, parse
from sojourn.scenario.typed import Column, read_csv, read_parquet, typed
from sojourn.validate import queues, shares
from sojourn.validate.schema import (
    BINS,
    BINS_COLUMNS,
    FLOWS_COLUMNS,
    TOTALS,
    TOTALS_COLUMNS,
    CasesFile,
    CaseTable,
    Settings,
)


@dataclass(frozen=True)
class Replay:
    """A run of the reference, and the scenarios that replay it."""

    case: str
    name: str
    settings: Settings
    """Settings of the file, changed by those of the case and of the run."""
    flows: pl.DataFrame | None
    """Flows with the reference's completion times; `None` if the scenario contains a workload."""
    bins: pl.DataFrame
    totals: Mapping[str, float | None]
    shares: pl.DataFrame
    """Bytes of flows that arrived in periods."""
    queues: pl.DataFrame
    """Distributions of the backlogs of groups of ports."""
    quick: bool

    @property
    def full_name(self) -> str:
        """Name for `like` and `--only`."""
        return f"{self.case}.{self.name}"

    @property
    def is_slowdown(self) -> bool:
        """True if completion times are multiples of the ideal FCT, false if seconds."""
        return self.settings.over == "alone"

    @property
    def is_ideal(self) -> bool:
        """True if the model is an ideal, false for the packet model."""
        return bool(self.settings.scenario.get("model", "packet") != "packet")

    @property
    def has_link(self) -> bool:
        """True if a link's queue and utilisation are compared."""
        return self.settings.link is not None and not self.is_ideal

    @property
    def has_reference_flows(self) -> bool:
        """True if the reference contains the completion time of every flow."""
        return self.flows is not None and self.name in self.flows.columns

    @cached_property
    def scenarios(self) -> list[Scenario]:
        """Scenarios that replay the run, one for each repeat; of a short run the first one."""
        most = 1 if self.quick and self.has_reference_flows else None
        return [override(self._scenario, repeat) for repeat in self.settings.repeats[:most]]

    @property
    def _scenario(self) -> Scenario:
        payload, wire = self.settings.payload_bytes, self.settings.wire_bytes
        scenario = override(
            self.settings.scenario,
            {
                "environment": "paper",
                "name": f"{self.case}: {self.settings.label}",
                "time_limit": f"{self.settings.end_s} s",
                "packet": {
                    "payload": f"{payload} B",
                    "header": f"{wire - payload} B",
                    "ack": f"{self.settings.ack_bytes} B",
                },
            },
        )
        if self.flows is not None:
            file = {"name": f"{self.case}.csv", "text": _trace(self.flows)}
            scenario["workload"] = {"kind": "trace", "file": file}
        if not self.is_ideal:
            link = [] if self.settings.link is None else [self.settings.link]
            interval = self.settings.sample_interval
            groups = (self.settings.ports[group] for group in self.queues["ports"])
            ports = list(dict.fromkeys(itertools.chain(link, *groups)))
            scenario["samples"] = {"interval": interval, "links": link, "queues": ports}
            if not self.shares.is_empty():
                scenario["samples"]["flows"] = self.shares["flow"].unique().sort().to_list()
        return scenario

    @property
    def warm_ups(self) -> list[Scenario]:
        """The scenarios up to the first measured arrival; their counters are subtracted."""
        time_limit = {"time_limit": f"{self.settings.measured_s[0]} s"}
        return [override(scenario, time_limit) for scenario in self.scenarios]

    def changed(self, scenario: Mapping[str, Any]) -> "Replay":
        """Return the replay with these changes to its scenario."""
        result = override(self.settings.scenario, scenario)
        return replace(self, settings=self.settings.model_copy(update={"scenario": result}))

    def bin_name(self, low: int, high: int) -> str:
        """Return the name of a bin, such as `8 to 11 packets`."""
        if self.settings.by == "flow":
            return f"flow {low}"
        for name, bounds in self.settings.groups.items():
            if bounds == (low, high):
                return name
        return f"{low} to {high} packets"


def find_cases(name: str, start: Path | None = None, others: Sequence[str] = ()) -> Path:
    """Return the folder of cases: a path, or a name in the user's or the shipped `validation`.

    Raises `ScenarioError` for an unknown name, which lists `others`, too.
    """
    if (Path(name) / "cases.toml").is_file():
        return Path(name)
    folders = {
        file.parent.name: file.parent
        for root in paths.folders(paths.VALIDATION, start)
        for file in sorted(root.glob("*/cases.toml"))
    }
    if name in folders:
        return folders[name]
    names = sorted([*folders, *others])
    hint, known = did_you_mean(name, names), some_of(names)
    raise ScenarioError(f"{name}: unknown folder of cases{hint} (there are: {known})")


def read_cases(folder: Path, *, quick: bool = False, only: Iterable[str] = ()) -> list[Replay]:
    """Return the replays of a folder, or `only` those of these names (`case`, or `case.run`).

    `quick` returns the short runs: those of cases with a table `quick`, for which the reference
    contains the completion time of every flow. Raises `FileError` for an error in the folder, and
    `ScenarioError` for an unknown name or if there is nothing to run.
    """
    file = folder / "cases.toml"
    content = _Folder.read(folder)
    full = [content.replay(case, run, quick=False) for case, run in content.runs()]
    content.check_rows()
    # Short runs are always read, so that all errors of a folder are found at once.
    short = [
        content.replay(case, run, quick=True)
        for case, run in content.runs()
        if content.file.cases[case].quick is not None
    ]
    short = [replay for replay in short if replay.has_reference_flows]
    names = {name for replay in full for name in (replay.case, replay.full_name)}
    selection = set(only)
    for name in sorted(selection - names):
        hint = did_you_mean(name, sorted(names))
        known = (
            some_of(replay.case for replay in full) if "." not in name else some_of(sorted(names))
        )
        raise ScenarioError(f"--only {name}: unknown run{hint} (there are: {known})")
    selected = [
        replay
        for replay in (short if quick else full)
        if not selection or selection & {replay.case, replay.full_name}
    ]
    if not selected:
        raise ScenarioError(
            f"{folder}: no short runs; they need a case with `quick`, and a column of `flows` with"
            " the name of the run"
        )
    for replay in selected:
        check_scenario(str(file), replay)
    return selected


def simulator(folder: Path) -> str:
    """Return the name of the reference of a folder."""
    return read_file(folder).simulator


def read_file(folder: Path) -> CasesFile:
    """Return the content of a folder's `cases.toml`, or raise `FileError`."""
    file = folder / "cases.toml"
    return typed(CasesFile, parse(file), str(file))


@dataclass(frozen=True)
class _Folder:
    """Files of a folder, each valid by its schema."""

    path: Path
    file: CasesFile
    bins: pl.DataFrame
    totals: pl.DataFrame
    shares: pl.DataFrame
    queues: pl.DataFrame
    flows: Mapping[str, pl.DataFrame | None]
    """Flows by case."""

    @classmethod
    def read(cls, path: Path) -> "_Folder":
        file = read_file(path)
        return cls(
            path,
            file,
            _with_all_columns(read_csv(path / "bins.csv", BINS_COLUMNS)),
            read_csv(path / "totals.csv", TOTALS_COLUMNS),
            shares.read(path / "shares.csv"),
            queues.read(path / "queues.csv"),
            {name: _read_flows(path, case) for name, case in file.cases.items()},
        )

    def runs(self) -> list[tuple[str, str]]:
        """Return (case, run) of all runs in order."""
        return [(name, run) for name, case in self.file.cases.items() for run in case.runs]

    def replay(self, case: str, name: str, *, quick: bool) -> Replay:
        """Return the replay of a run, or raise `FileError` if its files contradict each other."""
        location = f"{self.path / 'cases.toml'}: {case}.{name}{' (quick)' if quick else ''}"
        settings = _settings(self.file, case, name, location, quick=quick)
        flows = self.flows[case]
        if flows is not None:
            flows = _with_sizes(flows, settings.payload_bytes)
            flows = flows.filter(pl.col("start_us") < 1e6 * settings.end_s)
        bins, totals, periods, backlogs = (
            rows.filter(pl.col("case") == case, pl.col("run") == name).drop("case", "run")
            for rows in (self.bins, self.totals, self.shares, self.queues)
        )
        if totals.height > 1:
            raise FileError(
                f"{self.path / 'totals.csv'}: duplicate rows of the run `{case}.{name}`"
            )
        if quick:
            backlogs = backlogs.filter(pl.col("until_s") <= settings.end_s)
        numbers = dict.fromkeys(TOTALS) | (totals.to_dicts() or [{}])[0]
        replay = Replay(case, name, settings, flows, bins, numbers, periods, backlogs, quick)
        _check_bins(self.path / "bins.csv", replay)
        shares_location = f"{self.path / 'shares.csv'}: `{replay.full_name}`"
        shares.check(periods, settings.end_s, shares_location)
        queues_location = f"{self.path / 'queues.csv'}: `{replay.full_name}`"
        queues.check(backlogs, settings.ports, settings.end_s, queues_location)
        _check_settings(location, replay)
        return replay

    def check_rows(self) -> None:
        """Raise `FileError` for a row of an unknown run."""
        names = [f"{case}.{run}" for case, run in self.runs()]
        tables = {
            "bins.csv": self.bins,
            "totals.csv": self.totals,
            "shares.csv": self.shares,
            "queues.csv": self.queues,
        }
        for file, table in tables.items():
            for case, run in table.select("case", "run").unique(maintain_order=True).rows():
                if (name := f"{case}.{run}") not in names:
                    hint = did_you_mean(name, names)
                    raise FileError(f"{self.path / file}: unknown run `{name}`{hint}")


def _settings(file: CasesFile, case: str, run: str, location: str, *, quick: bool) -> Settings:
    """Return the settings of the file, changed by those of the case and of the run."""
    case_table = file.cases[case]
    run_table = _inherited(file, case, run, location, ())
    scenario = override(file.scenario, case_table.scenario, run_table.pop("scenario"))
    short = case_table.quick.model_dump(exclude_none=True) if quick and case_table.quick else {}
    shared = {**(file.model_extra or {}), **(case_table.model_extra or {}), **short}
    return typed(Settings, {**shared, **run_table, "scenario": scenario}, location)


def _inherited(
    file: CasesFile, case: str, name: str, location: str, users: tuple[str, ...]
) -> dict[str, Any]:
    """Return the table of a run with the keys that it inherits by `like`.

    `users` are the runs that inherit from this run.
    """
    runs = file.cases[case].runs if case in file.cases else {}
    if name not in runs:
        names = [f"{key}.{run}" for key, table in file.cases.items() for run in table.runs]
        hint = did_you_mean(f"{case}.{name}", names)
        raise FileError(f"{location}: like: unknown run `{case}.{name}`{hint}")
    path = (*users, f"{case}.{name}")
    if path[-1] in users:
        raise FileError(f"{location}: like: cycle {' like '.join(path)}")
    run = runs[name]
    if run.like is None:
        return {**(run.model_extra or {}), "scenario": run.scenario}
    base_case, _, base_run = run.like.rpartition(".")
    base = _inherited(file, base_case or case, base_run, location, path)
    scenario = override(base["scenario"], run.scenario)
    return {**base, **(run.model_extra or {}), "scenario": scenario}


def _with_all_columns(bins: pl.DataFrame) -> pl.DataFrame:
    """Return bins with null in columns that the file does not contain."""
    missing = [pl.lit(None, pl.Float64).alias(name) for name in BINS if name not in bins.columns]
    return bins.with_columns(missing)


def _read_flows(folder: Path, case: CaseTable) -> pl.DataFrame | None:
    if case.flows is None:
        return None
    file = folder / case.flows
    for name in case.runs:
        if name in FLOWS_COLUMNS:
            raise FileError(f"{folder / 'cases.toml'}: invalid name of a run: `{name}`")
    run_columns = dict.fromkeys(case.runs, Column(1e-6, can_be_empty=True, is_required=False))
    flows = read_parquet(file, FLOWS_COLUMNS | run_columns)
    if ("packets" in flows.columns) == ("bytes" in flows.columns):
        raise FileError(f"{file}: must have either the column `packets` or the column `bytes`")
    by_themselves = pl.col("after").is_null() if "after" in flows.columns else pl.lit(True)
    if not flows.filter(by_themselves)["start_us"].is_sorted():
        raise FileError(f"{file}: start_us: rows must be in ascending order")
    return flows


def _check_bins(file: Path, replay: Replay) -> None:
    """Raise `FileError` for missing, duplicate or empty bins."""
    bins = replay.bins.select("low", "high")
    if bins.is_empty() and replay.shares.is_empty():
        raise FileError(f"{file}: missing rows of the run `{replay.full_name}`")
    invalid = bins.filter((pl.col("low") > pl.col("high")) | bins.is_duplicated())
    for low, high in invalid.rows():
        problem = "is duplicate" if low <= high else "ends before it starts"
        raise FileError(f"{file}: the bin {low} to {high} of `{replay.full_name}` {problem}")


def _check_settings(location: str, replay: Replay) -> None:
    """Raise `FileError` for settings that contradict the other files."""
    settings, flows = replay.settings, replay.flows
    names = [replay.bin_name(*bounds) for bounds in replay.bins.select("low", "high").rows()]
    if isinstance(settings.within, dict):
        for statistic, limits in settings.within.items():
            for name in limits:
                if name not in names:
                    hint = did_you_mean(name, names)
                    raise FileError(f"{location}: within.{statistic}: unknown bin `{name}`{hint}")
    if replay.shares.is_empty() != (settings.share_within is None):
        problem = "has no rows" if replay.shares.is_empty() else "is required for the rows"
        raise FileError(
            f"{location}: share_within: {problem} of `{replay.full_name}` in shares.csv"
        )
    if not replay.shares.is_empty() and replay.is_ideal:
        raise FileError(
            f"{location}: share_within: needs the packet model, whose samples give the shares"
        )
    if not replay.queues.is_empty() and replay.is_ideal:
        raise FileError(f"{location}: ports: needs the packet model, whose ports have queues")
    needs_alone = replay.is_slowdown or (settings.until == "acked" and replay.is_ideal)
    if needs_alone and (flows is None or "alone_us" not in flows.columns):
        setting = 'over = "alone"' if replay.is_slowdown else 'until = "acked" of an ideal'
        raise FileError(f"{location}: {setting} needs a column `alone_us` in the file of `flows`")
    since, until = settings.measured_s
    if flows is not None and not _any_between(flows["start_us"] / 1e6, since, until):
        raise FileError(f"{location}: measured_s: no flow arrives from {since:g} s to {until:g} s")


def check_scenario(location: str, replay: Replay) -> None:
    """Raise `FileError` with the run's name if a scenario is invalid or has no measured flow."""
    try:
        for scenario in replay.scenarios:
            check(scenario)
        for scenario in replay.warm_ups if replay.has_link else []:
            check(scenario)
        if replay.flows is None:
            starts = pl.Series(trace(replay.scenarios[0])["flows"]["start_s"])
            since, until = replay.settings.measured_s
            if not _any_between(starts, since, until):
                raise ScenarioError(f"measured_s: no flow arrives from {since:g} s to {until:g} s")
        flows = len(starts) if replay.flows is None else replay.flows.height
        for flow in replay.shares["flow"].filter(replay.shares["flow"] >= flows):
            raise ScenarioError(f"shares.csv: unknown flow {flow} (flows: 0 to {flows - 1})")
    except ScenarioError as error:
        raise FileError(f"{location}: {replay.full_name}: {error}") from None


def _any_between(times: pl.Series, since: float, until: float) -> bool:
    return bool(times.is_between(since, until, closed="left").any())


def _with_sizes(flows: pl.DataFrame, payload_bytes: int) -> pl.DataFrame:
    """Return the flows with sizes in packets and in bytes."""
    if "packets" in flows.columns:
        return flows.with_columns(bytes=pl.col("packets") * payload_bytes)
    return flows.with_columns(packets=(pl.col("bytes") + payload_bytes - 1) // payload_bytes)


def _trace(flows: pl.DataFrame) -> str:
    """Return the flows in the format of a workload of kind `trace`."""
    ends = [
        pl.col(name) if name in flows.columns else pl.lit(number).alias(name)
        for number, name in enumerate(("source", "target"))
    ]
    start = pl.col("start_us").cast(pl.Float64) / 1e6
    size = pl.col("bytes").alias("size_bytes")
    after = [name for name in ("after", "after_count") if name in flows.columns]
    table = flows.select(start.alias("start_s"), *ends, size, *after)
    return table.write_csv(float_precision=9)
