"""Cases: what another simulator ran, as it lies in a folder.

A folder holds the other's results and `cases.toml`, which says what each run was:

* `simulator`, its name; `scenario`, what all runs have in common; `cases`, by name, each with its
  own `scenario` on top of that and with `runs`, by name, each with its own on top of both.
  `repeats` are tables that each change it once more: ours is then the mean over them.
* A run has a `label` and says `within` which share of the other's mean completion time ours should
  be in every bin, or by statistic and group, as in `within.p99 = { small = 0.05 }`; and if wanted
  within which factor of the other's `timeouts` or `retransmits`, as in `factor.timeouts = 2`.
  `like` names a run (`run`, or `case.run`) whose table it changes.
* `flows` names a Parquet file with one row a flow: `start_us`, `packets` or `bytes`, if wanted
  `source` and `target`, and the other's completion times in microseconds in columns named after
  runs.
* `measured_s` bounds the arrivals of the flows that count; at `end_s` the run ends; `quick` may
  give other values of both for a short run, which is compared flow by flow.
* Times end when the receiver has everything, or `until = "acked"` when the sender knows; they are
  seconds, or `over = "alone"` multiples of what the flow takes alone, which the Parquet file then
  has as `alone_us`.
* Beside it, `bins.csv` has the other's completion times by size and `totals.csv` its other numbers.
  Bins may overlap; `groups` gives those of `by = "group"` names, as in `small = [1, 68]`.
* `ablations`, by name, say what to take out to see what it does: the `runs` of `cases` are run
  again with its `scenario` on top.
* `shares.csv`, where flows are compared that do not end, has the bytes of each `flow` that arrived
  `from_s` `to_s`; `share_within = 0.15` says how far apart shares may be in each period.

A folder is read whole: what is wrong anywhere in it is told before anything runs.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from sojourn._core import ScenarioError
from sojourn.base import paths
from sojourn.base.errors import FileError
from sojourn.base.messages import did_you_mean
from sojourn.scenario.encoding import check, trace
from sojourn.scenario.overrides import override
from sojourn.scenario.reading import Scenario, parse
from sojourn.scenario.typed import Column, read_csv, read_parquet, typed
from sojourn.validate import shares
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
    """One run of the other simulator, and how to do the same here."""

    case: str
    name: str
    settings: Settings
    """Those of the file, of the case and of the run, one over the other."""
    flows: pl.DataFrame | None
    """Every flow, and the other's completion times; `None` if the scenario lists its own."""
    bins: pl.DataFrame
    totals: Mapping[str, float | None]
    shares: pl.DataFrame
    """What arrived of flows in periods."""
    quick: bool

    @property
    def full_name(self) -> str:
        """The name by which `like` and `--only` know it."""
        return f"{self.case}.{self.name}"

    @property
    def is_slowdown(self) -> bool:
        """Whether completion times are multiples of what flows take alone, instead of seconds."""
        return self.settings.over == "alone"

    @property
    def is_ideal(self) -> bool:
        """Whether it is a fluid model instead of packets."""
        return bool(self.settings.scenario.get("model", "packet") != "packet")

    @property
    def has_link(self) -> bool:
        """Whether a link's queue and utilisation are compared."""
        return self.settings.link is not None and not self.is_ideal

    @property
    def is_known_by_flow(self) -> bool:
        """Whether the other's completion time of every flow is known."""
        return self.flows is not None and self.name in self.flows.columns

    @cached_property
    def scenarios(self) -> list[Scenario]:
        """The same run as scenarios, one for each of its repeats."""
        return [override(self._scenario, repeat) for repeat in self.settings.repeats]

    @property
    def _scenario(self) -> Scenario:
        packet, wire = self.settings.payload_bytes, self.settings.wire_bytes
        scenario = override(
            self.settings.scenario,
            {
                "name": f"{self.case}: {self.settings.label}",
                "time_limit": f"{self.settings.end_s} s",
                "packet": {
                    "payload": f"{packet} B",
                    "header": f"{wire - packet} B",
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
            scenario["samples"] = {"interval": interval, "links": link, "queues": link}
            if not self.shares.is_empty():
                scenario["samples"]["flows"] = self.shares["flow"].unique().sort().to_list()
        return scenario

    @property
    def beginnings(self) -> list[Scenario]:
        """The same up to the first arrival that counts: its drops are to be taken off."""
        until = {"time_limit": f"{self.settings.measured_s[0]} s"}
        return [override(scenario, until) for scenario in self.scenarios]

    def changed(self, scenario: Mapping[str, Any]) -> "Replay":
        """Return the same run with this on top of its scenario."""
        whole = override(self.settings.scenario, scenario)
        return replace(self, settings=self.settings.model_copy(update={"scenario": whole}))

    def bin_name(self, low: int, high: int) -> str:
        """Return the name of a bin, such as `8 to 11 packets`."""
        if self.settings.by == "flow":
            return f"flow {low}"
        for name, bounds in self.settings.groups.items():
            if bounds == (low, high):
                return name
        return f"{low} to {high} packets"


def find_cases(name: str, start: Path | None = None) -> Path:
    """Return the folder that `name` means: a path, or one of `validation`, own or shipped."""
    if (Path(name) / "cases.toml").is_file():
        return Path(name)
    known = {
        file.parent.name: file.parent
        for root in paths.folders(paths.VALIDATION, start)
        for file in sorted(root.glob("*/cases.toml"))
    }
    if name in known:
        return known[name]
    raise ScenarioError(f"{name}: there is no such folder of cases{did_you_mean(name, known)}")


def read_cases(folder: Path, *, quick: bool = False, only: Iterable[str] = ()) -> list[Replay]:
    """Return the runs of a folder, or `only` those of these names (`case`, or `case.run`).

    A quick run is one that `quick` shortens and for which the other's flows are known. Raises
    `FileError` for anything that is wrong in the folder, and `ScenarioError` for an unknown name or
    if there is nothing to run.
    """
    file = folder / "cases.toml"
    read = _Folder.read(folder)
    full = [read.replay(case, run, quick=False) for case, run in read.runs()]
    read.check_rows()
    # Short runs are read with the long ones: what is wrong with them is not to be found out later.
    short = [
        read.replay(case, run, quick=True)
        for case, run in read.runs()
        if read.file.cases[case].quick is not None
    ]
    short = [replay for replay in short if replay.is_known_by_flow]
    names = {name for replay in full for name in (replay.case, replay.full_name)}
    wanted = set(only)
    for name in sorted(wanted - names):
        raise ScenarioError(f"--only {name}: no such run{did_you_mean(name, sorted(names))}")
    chosen = [
        replay
        for replay in (short if quick else full)
        if not wanted or wanted & {replay.case, replay.full_name}
    ]
    if not chosen:
        raise ScenarioError(
            f"{folder}: nothing can be run short: that takes a case with `quick`, and a column of"
            " `flows` with the name of the run"
        )
    for replay in chosen:
        check_scenario(str(file), replay)
    return chosen


def simulator(folder: Path) -> str:
    """Return the name of the simulator that a folder's results are from."""
    return read_file(folder).simulator


def read_file(folder: Path) -> CasesFile:
    """Return the `cases.toml` of a folder."""
    file = folder / "cases.toml"
    return typed(CasesFile, parse(file), str(file))


@dataclass(frozen=True)
class _Folder:
    """The files of a folder, each of the declared form."""

    path: Path
    file: CasesFile
    bins: pl.DataFrame
    totals: pl.DataFrame
    shares: pl.DataFrame
    flows: Mapping[str, pl.DataFrame | None]
    """By case."""

    @classmethod
    def read(cls, path: Path) -> "_Folder":
        file = read_file(path)
        return cls(
            path,
            file,
            _complete(read_csv(path / "bins.csv", BINS_COLUMNS)),
            read_csv(path / "totals.csv", TOTALS_COLUMNS),
            shares.read(path / "shares.csv"),
            {name: _read_flows(path, case) for name, case in file.cases.items()},
        )

    def runs(self) -> list[tuple[str, str]]:
        """Return the names of all cases and runs, in order."""
        return [(name, run) for name, case in self.file.cases.items() for run in case.runs]

    def replay(self, case: str, name: str, *, quick: bool) -> Replay:
        """Return one run, or raise `FileError` if its parts do not agree."""
        place = f"{self.path / 'cases.toml'}: {case}.{name}{' (quick)' if quick else ''}"
        settings = _settings(self.file, case, name, place, quick=quick)
        flows = self.flows[case]
        if flows is not None:
            flows = _sized(flows, settings.payload_bytes)
            flows = flows.filter(pl.col("start_us") < 1e6 * settings.end_s)
        bins, totals, periods = (
            rows.filter(pl.col("case") == case, pl.col("run") == name).drop("case", "run")
            for rows in (self.bins, self.totals, self.shares)
        )
        if totals.height > 1:
            raise FileError(f"{self.path / 'totals.csv'}: has two rows of the run `{case}.{name}`")
        numbers = dict.fromkeys(TOTALS) | (totals.to_dicts() or [{}])[0]
        replay = Replay(case, name, settings, flows, bins, numbers, periods, quick)
        _check_bins(self.path / "bins.csv", replay)
        where = f"{self.path / 'shares.csv'}: `{replay.full_name}`"
        shares.check(periods, settings.end_s, where)
        _check_settings(place, replay)
        return replay

    def check_rows(self) -> None:
        """Refuse rows of runs that there are not."""
        known = [f"{case}.{run}" for case, run in self.runs()]
        tables = {"bins.csv": self.bins, "totals.csv": self.totals, "shares.csv": self.shares}
        for file, table in tables.items():
            for case, run in table.select("case", "run").unique(maintain_order=True).rows():
                if (name := f"{case}.{run}") not in known:
                    hint = did_you_mean(name, known)
                    raise FileError(f"{self.path / file}: there is no run `{name}`{hint}")


def _settings(read: CasesFile, case: str, run: str, place: str, *, quick: bool) -> Settings:
    """Return the settings of a run: its own over those of its case over those of the file."""
    of_case = read.cases[case]
    own = _inherited(read, case, run, place, ())
    scenario = override(read.scenario, of_case.scenario, own.pop("scenario"))
    short = of_case.quick.model_dump(exclude_none=True) if quick and of_case.quick else {}
    shared = {**(read.model_extra or {}), **(of_case.model_extra or {}), **short}
    return typed(Settings, {**shared, **own, "scenario": scenario}, place)


def _inherited(
    read: CasesFile, case: str, name: str, place: str, by: tuple[str, ...]
) -> dict[str, Any]:
    """Return the table of a run over that of the run which it is `like`, and so on."""
    runs = read.cases[case].runs if case in read.cases else {}
    if name not in runs:
        known = [f"{case}.{run}" for case, of_case in read.cases.items() for run in of_case.runs]
        hint = did_you_mean(f"{case}.{name}", known)
        raise FileError(f"{place}: like: there is no run `{case}.{name}`{hint}")
    path = (*by, f"{case}.{name}")
    if path[-1] in by:
        raise FileError(f"{place}: like: goes round in a circle: {' like '.join(path)}")
    run = runs[name]
    if run.like is None:
        return {**(run.model_extra or {}), "scenario": run.scenario}
    other, _, its_name = run.like.rpartition(".")
    like = _inherited(read, other or case, its_name, place, path)
    scenario = override(like["scenario"], run.scenario)
    return {**like, **(run.model_extra or {}), "scenario": scenario}


def _complete(bins: pl.DataFrame) -> pl.DataFrame:
    """Return bins with every column, of which the file may lack some."""
    lacking = [pl.lit(None, pl.Float64).alias(name) for name in BINS if name not in bins.columns]
    return bins.with_columns(lacking)


def _read_flows(folder: Path, case: CaseTable) -> pl.DataFrame | None:
    if case.flows is None:
        return None
    file = folder / case.flows
    for name in case.runs:
        if name in FLOWS_COLUMNS:
            raise FileError(f"{folder / 'cases.toml'}: no run can be called `{name}`")
    of_runs = dict.fromkeys(case.runs, Column(1e-6, can_be_empty=True, is_required=False))
    flows = read_parquet(file, FLOWS_COLUMNS | of_runs)
    if ("packets" in flows.columns) == ("bytes" in flows.columns):
        raise FileError(f"{file}: must have one of the columns `packets` and `bytes`")
    if not flows["start_us"].is_sorted():
        raise FileError(f"{file}: start_us: must ascend from row to row")
    return flows


def _check_bins(file: Path, replay: Replay) -> None:
    """Refuse bins that cannot be compared."""
    bins = replay.bins.select("low", "high")
    if bins.is_empty() and replay.shares.is_empty():
        raise FileError(f"{file}: has no rows of the run `{replay.full_name}`")
    wrong = bins.filter((pl.col("low") > pl.col("high")) | bins.is_duplicated())
    for low, high in wrong.rows():
        problem = "is there twice" if low <= high else "ends before it begins"
        raise FileError(f"{file}: the bin {low} to {high} of `{replay.full_name}` {problem}")


def _check_settings(place: str, replay: Replay) -> None:
    """Refuse settings that name what the other files do not have."""
    settings, flows = replay.settings, replay.flows
    names = [replay.bin_name(*bounds) for bounds in replay.bins.select("low", "high").rows()]
    if isinstance(settings.within, dict):
        for statistic, limits in settings.within.items():
            for name in limits:
                if name not in names:
                    hint = did_you_mean(name, names)
                    raise FileError(f"{place}: within.{statistic}: there is no bin `{name}`{hint}")
    if replay.shares.is_empty() != (settings.share_within is None):
        problem = "is there without rows" if replay.shares.is_empty() else "is wanted for the rows"
        raise FileError(f"{place}: share_within: {problem} of `{replay.full_name}` in shares.csv")
    if not replay.shares.is_empty() and replay.is_ideal:
        raise FileError(f"{place}: share_within: shares are sampled, which wants the packet model")
    needs_alone = replay.is_slowdown or (settings.until == "acked" and replay.is_ideal)
    if needs_alone and (flows is None or "alone_us" not in flows.columns):
        what = 'over = "alone"' if replay.is_slowdown else 'until = "acked" of an ideal'
        raise FileError(f"{place}: {what} needs a column `alone_us` in the file of `flows`")
    if replay.is_known_by_flow and len(settings.repeats) > 1:
        raise FileError(
            f"{place}: repeats: must be one, for the other's flows are known one by one"
        )
    since, until = settings.measured_s
    if flows is not None and not _any_between(flows["start_us"] / 1e6, since, until):
        raise FileError(f"{place}: measured_s: no flow arrives from {since:g} s to {until:g} s")


def check_scenario(place: str, replay: Replay) -> None:
    """Refuse a run that the core refuses, with its name, and one in which nothing arrives."""
    try:
        for scenario in replay.scenarios:
            check(scenario)
        for scenario in replay.beginnings if replay.has_link else []:
            check(scenario)
        if replay.flows is None:
            starts = pl.Series(trace(replay.scenarios[0])["flows"]["start_s"])
            since, until = replay.settings.measured_s
            if not _any_between(starts, since, until):
                raise ScenarioError(f"measured_s: no flow arrives from {since:g} s to {until:g} s")
        flows = len(starts) if replay.flows is None else replay.flows.height
        for flow in replay.shares["flow"].filter(replay.shares["flow"] >= flows):
            raise ScenarioError(f"shares.csv: there is no flow {flow}, but 0 to {flows - 1}")
    except ScenarioError as error:
        raise FileError(f"{place}: {replay.full_name}: {error}") from None


def _any_between(times: pl.Series, since: float, until: float) -> bool:
    return bool(times.is_between(since, until, closed="left").any())


def _sized(flows: pl.DataFrame, payload_bytes: int) -> pl.DataFrame:
    """Return the flows with their sizes both in packets and in bytes."""
    if "packets" in flows.columns:
        return flows.with_columns(bytes=pl.col("packets") * payload_bytes)
    return flows.with_columns(packets=(pl.col("bytes") + payload_bytes - 1) // payload_bytes)


def _trace(flows: pl.DataFrame) -> str:
    """Return the flows as the text that a workload of kind `trace` reads."""
    ends = [
        pl.col(name) if name in flows.columns else pl.lit(number).alias(name)
        for number, name in enumerate(("source", "target"))
    ]
    start = pl.col("start_us").cast(pl.Float64) / 1e6
    size = pl.col("bytes").alias("size_bytes")
    table = flows.select(start.alias("start_s"), *ends, size)
    return table.write_csv(float_precision=9)
