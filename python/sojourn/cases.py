"""Cases: what another simulator ran, as it lies in a folder.

A folder holds the other's results and `cases.toml`, which says what each run was:

* `simulator`, its name; `scenario`, what all runs have in common; `cases`, by name, each with its
  own `scenario` on top of that and with `runs`, by name, each with its own on top of both.
* A run has a `label` and says `within` which share of the other's mean completion time ours should
  be in every bin, or by statistic and group, as in `within.p99 = { small = 0.05 }`. `like` names a
  run (`run`, or `case.run`) whose table it changes.
* `flows` names a Parquet file with one row a flow: `start_us`, `packets`, if wanted `source` and
  `target`, and the other's completion times in microseconds in columns named after runs.
* `measured_s` bounds the arrivals of the flows that count; at `end_s` the run ends; `quick` may
  give other values of both for a short run, which is compared flow by flow.
* Times end when the receiver has everything, or `until = "acked"` when the sender knows; they are
  seconds, or `over = "alone"` multiples of what the flow takes alone, which the Parquet file then
  has as `alone_us`.
* Beside it, `bins.csv` has the other's completion times by size and `totals.csv` its other numbers.
  Bins may overlap; `groups` gives those of `by = "group"` names, as in `small = [1, 68]`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from sojourn import places
from sojourn._core import ScenarioError
from sojourn.scenario import FileError, Scenario, did_you_mean, override, parse

NEEDED = ("title", "label", "measured_s", "end_s", "payload_bytes", "wire_bytes")
"""What must be given for every run, by itself or by what it is part of."""

DEFAULTS: Mapping[str, Any] = {
    "by": "size",
    "adds_s": 0,
    "ack_s": 0,
    "until": "received",
    "over": "second",
    "groups": {},
    "p99": "higher",
    "least_flows": 100,
    "sample_interval": "10 ms",
}
"""What need not: whether bins are of sizes, of single flows or of groups; what is added to our
completion times, and to the time that a flow is in progress; where times end, and in what they are
measured; the names of groups; how a percentile is found between two flows; and how many flows a
bin must have to be judged."""

TOTALS = (
    "flows",
    "unfinished",
    "mean",
    "median",
    "p99",
    "active_flows",
    "utilisation",
    "queue_packets",
    "drop_rate",
    "retransmit_rate",
    "timeouts",
)
"""What is compared of a run as a whole, with the names of `totals.csv`."""

BINS = ("low", "high", "flows", "unfinished", "mean", "stderr", "median", "p99")
"""What is compared of the flows whose size (or number) is from `low` to `high`."""


@dataclass(frozen=True)
class Replay:
    """One run of the other simulator, and how to do the same here."""

    case: str
    name: str
    settings: Mapping[str, Any]
    """The tables of the file, of the case and of the run, one over the other."""
    flows: pl.DataFrame | None
    """Every flow, and the other's completion times; `None` if the scenario lists its own."""
    bins: pl.DataFrame
    totals: Mapping[str, Any]
    quick: bool

    @property
    def label(self) -> str:
        """The name of what was run, for people."""
        return str(self.settings["label"])

    @property
    def title(self) -> str:
        """What the case is, for people."""
        return str(self.settings["title"])

    @property
    def end_s(self) -> float:
        """When the run ends."""
        return float(self.settings["end_s"])

    @property
    def is_slowdown(self) -> bool:
        """Whether completion times are multiples of what flows take alone, instead of seconds."""
        return str(self.settings["over"]) == "alone"

    @property
    def is_ideal(self) -> bool:
        """Whether it is a fluid model instead of packets."""
        return str(self.settings["scenario"].get("model", "packet")) != "packet"

    @property
    def scenario(self) -> Scenario:
        """The same run as a scenario."""
        packet, wire = self.settings["payload_bytes"], self.settings["wire_bytes"]
        scenario = override(
            self.settings["scenario"],
            {
                "name": f"{self.case}: {self.label}",
                "time_limit": f"{self.end_s} s",
                "packet": {"payload": f"{packet} B", "header": f"{wire - packet} B", "ack": "40 B"},
            },
        )
        if self.flows is not None:
            file = {"name": f"{self.case}.csv", "text": _trace(self.flows, packet)}
            scenario["workload"] = {"kind": "trace", "file": file}
        if not self.is_ideal:
            link = [self.settings["link"]] if "link" in self.settings else []
            interval = self.settings["sample_interval"]
            scenario["samples"] = {"interval": interval, "links": link, "queues": link}
        return scenario

    @property
    def beginning(self) -> Scenario:
        """The same run up to the first arrival that counts: its drops are to be taken off."""
        return override(self.scenario, {"time_limit": f"{self.settings['measured_s'][0]} s"})


def find_cases(name: str, start: Path | None = None) -> Path:
    """Return the folder that `name` means: a path, or one of `validation`, own or shipped."""
    if (Path(name) / "cases.toml").is_file():
        return Path(name)
    known = {
        file.parent.name: file.parent
        for root in places.folders(places.VALIDATION, start)
        for file in sorted(root.glob("*/cases.toml"))
    }
    if name in known:
        return known[name]
    raise ScenarioError(f"{name}: there is no such folder of cases{did_you_mean(name, known)}")


def read_cases(folder: Path, *, quick: bool = False, only: Iterable[str] = ()) -> list[Replay]:
    """Return the runs of a folder, or `only` those of these names (`case`, or `case.run`).

    A quick run is one that `quick` shortens and for which the other's flows are known.
    """
    file = folder / "cases.toml"
    table = parse(file)
    try:
        bins, totals = (pl.read_csv(folder / f"{name}.csv") for name in ("bins", "totals"))
        replays = [
            replay
            for case in table["cases"]
            for replay in _read_case(folder, table, case, (bins, totals), quick=quick)
        ]
    except KeyError as error:
        raise FileError(f"{file}: there is no {error}") from None
    names = {name for replay in replays for name in (replay.case, f"{replay.case}.{replay.name}")}
    for name in only:
        if name not in names:
            raise ScenarioError(f"--only {name}: no such run{did_you_mean(name, sorted(names))}")
    wanted = set(only)
    return [
        replay
        for replay in replays
        if not wanted or wanted & {replay.case, f"{replay.case}.{replay.name}"}
    ]


def simulator(folder: Path) -> str:
    """Return the name of the simulator that a folder's results are from."""
    return str(parse(folder / "cases.toml").get("simulator", folder.name))


def _read_case(
    folder: Path,
    table: Mapping[str, Any],
    case: str,
    known: tuple[pl.DataFrame, pl.DataFrame],
    *,
    quick: bool,
) -> list[Replay]:
    own = table["cases"][case]
    shared = {**DEFAULTS, **_settings(table), **_settings(own)}
    flows = pl.read_parquet(folder / own["flows"]) if "flows" in own else None
    if quick:
        shared |= own.get("quick", {})
        flows = None if flows is None else flows.filter(pl.col("start_us") < 1e6 * shared["end_s"])
    replays = []
    for name in own["runs"]:
        given = _inherited(table, case, name)
        base = override(table.get("scenario", {}), own.get("scenario", {}))
        scenario = override(base, given.pop("scenario", {}))
        bins, totals = (
            rows.filter(pl.col("case") == case, pl.col("run") == name).drop("case", "run")
            for rows in known
        )
        if bins.is_empty():
            raise FileError(f"{folder / 'bins.csv'}: has no rows of the run `{case}.{name}`")
        others = totals.row(0, named=True) if totals.height else dict.fromkeys(TOTALS)
        settings = shared | given | {"scenario": scenario}
        for key in NEEDED:
            if key not in settings:
                raise FileError(f"{folder / 'cases.toml'}: the run `{case}.{name}` has no `{key}`")
        # Only flow by flow can a run be compared that ends before the other's.
        if not quick or (flows is not None and name in flows.columns and "quick" in own):
            replays.append(Replay(case, name, settings, flows, bins, others, quick))
    return replays


def _settings(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a table says itself, without what it is made of."""
    return {key: table[key] for key in table if key not in ("cases", "runs", "scenario")}


def _inherited(table: Mapping[str, Any], case: str, name: str) -> dict[str, Any]:
    """Return the table of a run over that of the run which it is `like`."""
    own = dict(table["cases"][case]["runs"][name])
    if "like" not in own:
        return own
    other = str(own.pop("like")).rpartition(".")
    like = _inherited(table, other[0] or case, other[2])
    scenario = override(like.get("scenario", {}), own.get("scenario", {}))
    return like | own | {"scenario": scenario}


def _trace(flows: pl.DataFrame, payload_bytes: int) -> str:
    """Return the flows as the text that a workload of kind `trace` reads."""
    ends = [
        pl.col(name) if name in flows.columns else pl.lit(number).alias(name)
        for number, name in enumerate(("source", "target"))
    ]
    start = pl.col("start_us").cast(pl.Float64) / 1e6
    size = pl.col("packets") * payload_bytes
    table = flows.select(start.alias("start_s"), *ends, size.alias("size_bytes"))
    return table.write_csv(float_precision=9)
