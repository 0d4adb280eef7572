"""One run's result: flow records, samples and summary, as they are written to files."""

import functools
import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from sojourn.scenario import Labels

OUTCOMES = ("finished", "unfinished", "long_lived", "terminated")
"""What became of a flow; a terminated one was given up for it would have missed its deadline."""

REQUEST, RESPONSE = " request", " response"
"""What the names of calls' classes end with."""

# The order of the columns is a promise to readers of `flows.parquet`.
COLUMNS = (
    "flow",
    "source",
    "target",
    "size_bytes",
    "start_s",
    "fct_s",
    "ideal_fct_s",
    "slowdown",
    "retransmits",
    "timeouts",
    "class",
    "deadline_s",
    "delivered_bytes",
    "outcome",
    "acked_s",
    "latency_s",
)


class Result:
    """What one run produced."""

    summary: dict[str, Any]
    """Scenario, seed, version, counts, links, load, and what the run took."""

    def __init__(self, flows: pl.DataFrame, samples: pl.DataFrame, summary: dict[str, Any]) -> None:
        """Take the tables and the summary."""
        self._tables = flows, samples
        self.summary = summary

    @property
    def flows(self) -> pl.DataFrame:
        """One row a flow, with the columns of `COLUMNS`."""
        return self._tables[0]

    @property
    def samples(self) -> pl.DataFrame:
        """Sampled queues and rates in long form: `time_s`, `probe`, `value`."""
        return self._tables[1]

    @property
    def threads(self) -> int:
        """How many threads the run used."""
        return int(self.summary.get("engine", {}).get("threads", 1))

    @classmethod
    def from_core(cls, columns: Mapping[str, Any], manifest: Mapping[str, Any]) -> "Result":
        """Build the tables from the core's columns; `manifest` joins the summary."""
        summary = json.loads(columns["summary"]) | dict(manifest)
        return cls(flow_table(columns), sample_table(columns), summary)

    def write(self, directory: str | Path) -> Path:
        """Write `flows.parquet`, `summary.json` and, if there are samples, `samples.parquet`."""
        directory = Path(directory)
        directory.mkdir(parents=True, exist_ok=True)
        self.flows.write_parquet(directory / "flows.parquet")
        samples = directory / "samples.parquet"
        if self.samples.is_empty():
            samples.unlink(missing_ok=True)
        else:
            self.samples.write_parquet(samples)
        # Last, so that a directory with a summary is a whole result.
        text = json.dumps(self.summary, indent=2)
        (directory / "summary.json").write_text(text + "\n", encoding="utf-8")
        return directory

    def write_whole(self, directory: Path) -> None:
        """Write the directory in one step: it is there as a whole or not at all."""
        directory.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(dir=directory.parent, prefix=".draft-"))
        try:
            self.write(draft)
            if not directory.exists():
                os.replace(draft, directory)
        finally:
            shutil.rmtree(draft, ignore_errors=True)

    @staticmethod
    def read(directory: str | Path) -> "Result":
        """Read what `write` wrote; tables stay on disk until they are looked at."""
        return _Stored(Path(directory).absolute())


class _Stored(Result):
    """A result on disk. A sweep can have more tables than fit in memory: only the last stays."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.summary = json.loads((directory / "summary.json").read_text(encoding="utf-8"))

    @property
    def flows(self) -> pl.DataFrame:
        return _read_tables(self._directory)[0]

    @property
    def samples(self) -> pl.DataFrame:
        return _read_tables(self._directory)[1]


@dataclass(frozen=True)
class Run:
    """A result of a sweep, with the labels that tell it from the others."""

    labels: Labels
    result: Result


def sample_table(columns: Mapping[str, Any]) -> pl.DataFrame:
    """Build the samples from the core's columns; numbers of probes become names."""
    samples = columns["samples"]
    return pl.DataFrame(
        {
            "time_s": samples["time_s"],
            "probe": _names(samples["probe"], columns["probes"]),
            "value": samples["value"],
        }
    )


def flow_table(columns: Mapping[str, Any]) -> pl.DataFrame:
    """Build the flow records from the core's columns; NaN becomes null, numbers become names."""
    flows = dict(columns["flows"])
    flows["class"] = _names(flows["class"], columns["classes"])
    if "outcome" in flows:
        flows["outcome"] = _names(flows["outcome"], OUTCOMES)
    table = pl.DataFrame({name: flows[name] for name in COLUMNS if name in flows})
    may_be_absent = [
        name
        for name in ("fct_s", "ideal_fct_s", "slowdown", "deadline_s", "acked_s", "latency_s")
        if name in flows
    ]
    return table.with_columns(pl.col(may_be_absent).fill_nan(None))


@functools.lru_cache(maxsize=1)
def _read_tables(directory: Path) -> tuple[pl.DataFrame, pl.DataFrame]:
    samples = directory / "samples.parquet"
    return (
        pl.read_parquet(directory / "flows.parquet"),
        pl.read_parquet(samples) if samples.exists() else _no_samples(),
    )


def _names(indices: Any, names: Any) -> pl.Series:
    """Replace indices by the names that they stand for."""
    if len(indices) == 0:
        return pl.Series([], dtype=pl.String)
    return pl.Series(names, dtype=pl.String).gather(np.asarray(indices, dtype=np.uint32))


def _no_samples() -> pl.DataFrame:
    return pl.DataFrame(schema={"time_s": pl.Float64, "probe": pl.String, "value": pl.Float64})
