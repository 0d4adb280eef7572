"""Result of one run: flow records, samples and summary, in memory and in files."""

import contextlib
import functools
import hashlib
import html
import importlib
import itertools
import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
from pydantic_core import from_json, to_json

from sojourn.base import files
from sojourn.base.errors import FileError
from sojourn.base.units import parse_time
from sojourn.runs.links import LinkRows, link_table
from sojourn.runs.result_tables import (
    ACCOUNT,
    CHAIN,
    FLOWS,
    GAUGES,
    HOPS,
    LINKS,
    OF_FLOWS,
    PACKETS,
    SAMPLES,
    SERIES,
    TABLES,
    chain_table,
    empty_table,
    flow_table,
    record_tables,
    sample_table,
)
from sojourn.scenario.encoding import OF_CALLS
from sojourn.scenario.reading import Labels
from sojourn.scenario.typed import read_json

SUMMARY, SUMS = "summary.json", "SHA256SUMS"
"""Files of a result; `SUMS` contains the SHA-256 sums of the others."""

REQUEST, RESPONSE = OF_CALLS
"""Suffixes of the classes of the two flows of a call."""


class Result:
    """Result of one run."""

    summary: dict[str, Any]
    """Scenario, seed, version, counts, links, load, run time and CPU time.

    `links` are the rows of the table `links` as dictionaries, made when they are read:
    `json.dumps(summary, default=list)` includes them.
    """

    def __init__(
        self,
        flows: pl.DataFrame,
        samples: pl.DataFrame,
        summary: dict[str, Any],
        others: Mapping[str, pl.DataFrame] | None = None,
    ) -> None:
        """Create a result from its tables and summary; `others` are tables by file name."""
        empty = {name: empty_table(name) for name in TABLES[2:]}
        self._tables = {FLOWS: flows, SAMPLES: samples} | empty | dict(others or {})
        links = self._tables[LINKS]
        self.summary = summary if links.is_empty() else summary | {"links": LinkRows(links)}

    def _table(self, name: str) -> pl.DataFrame:
        return self._tables[name]

    @property
    def flows(self) -> pl.DataFrame:
        """Flow records: one row per flow, with the columns `COLUMNS`."""
        return self._table(FLOWS)

    @property
    def samples(self) -> pl.DataFrame:
        """Samples of queues and rates in long form: `time_s`, `probe`, `value`."""
        return self._table(SAMPLES)

    @property
    def links(self) -> pl.DataFrame:
        """Counters of links, a row per link, with those of the measured interval in `measured`."""
        return self._table(LINKS)

    @property
    def account(self) -> pl.DataFrame:
        """FCT breakdown of every finished flow; empty unless the scenario sets `account = true`.

        One row per flow, in integers: `flow`; `fct_ps`, the FCT in picoseconds; `rounds`, the
        number of RTTs for which the flow waited for its window; and a column
        `REASON_PLACE_ps` for every reason and place. These add up to `fct_ps` exactly.

        Reasons: `handshake`; `window` (congestion or receive window); `rate` (pacing);
        `turn` (NIC wait); `recovery_gap` (loss recovery after ACKs or credits that show a gap);
        `recovery_timeout` (loss recovery after a timeout); `flight` (of the packet that completed
        the flow); `connection` (earlier flows of the same persistent connection); `credit` (of the
        receiving host).

        Places: `propagation`; `transmission`; queueing while a port transmits packets of the same
        flow (`queue_own`), of other flows (`queue_others`), or control packets (`queue_control`);
        queueing at an idle port that is paused (`paused`) or not (`queue_idle`); each of these at
        the source host's port (`_host`), further on the forward path (`_there`), or on the reverse
        path (`_back`); `receiver`; `sender` (while no packet that the flow waits for is in the
        network).

        `alone_propagation_ps`, `alone_transmission_ps` and `alone_queue_own_ps` (behind packets of
        the same flow) are those of the last packet without other flows, and add up to
        `ideal_fct_s`.
        """
        return self._table(ACCOUNT)

    @property
    def chain(self) -> pl.DataFrame:
        """Causal chains of the flows in `account_flows` and of the recorded flows.

        One row per interval, in order of time and contiguous: `flow`, `reason`, the start
        `begins_ps` relative to the flow's start, and the time at each place (`PLACE_ps`). The
        intervals of a reason add up to the columns of that reason in `account`.
        """
        return self._table(CHAIN)

    @property
    def packets(self) -> pl.DataFrame:
        """Packets of the recorded flows, sorted by flow and time; empty without `record`.

        One row per packet of a flow or ACK: `flow`, `kind`, `number` (the segment, or the first
        segment that an ACK requests), `from` and `to` (the first SACK block), `bytes`, `copy` (1
        when sent first), `because` (why it was sent), `ecn`, `marked`, `sent_ps`, and `arrived_ps`
        or `lost_ps`, `lost_at`, `lost_why`. Times are picoseconds since the start of the run.
        """
        return self._table(PACKETS)

    @property
    def gauges(self) -> pl.DataFrame:
        """Gauges of the senders of recorded flows: `flow`, `time_ps`, `gauge`, `value`."""
        return self._table(GAUGES)

    @property
    def series(self) -> pl.DataFrame:
        """Counters of all links over time, by bins of `summary["record"]["bin_ps"]`.

        One row per link and bin in which anything happened: `link`, `bin`, `bytes`,
        `queue_mean_bytes`, `queue_max_bytes`, `marks`, `drops`, `losses`, `paused_ps`.
        """
        return self._table(SERIES)

    @property
    def hops(self) -> pl.DataFrame:
        """Packets on the links that `record.hops` names, with the time and the queue of each."""
        return self._table(HOPS)

    @property
    def directory(self) -> Path | None:
        """Folder of a result on disk."""
        return None

    def scan_flows(self) -> pl.LazyFrame:
        """Return the flow records, which are read from disk when they are used."""
        return self.flows.lazy()

    @property
    def threads(self) -> int:
        """Number of threads of the run."""
        return int(self.summary.get("engine", {}).get("threads", 1))

    def __repr__(self) -> str:
        """Return the name, the number of flows, the simulated time and the mean slowdown."""
        name = self.summary.get("scenario", {}).get("name") or "unnamed"
        slowdown = self.flows["slowdown"].mean()
        parts = [
            f"{self.flows.height:,} flows",
            f"{self.summary.get('simulated_s', 0):.4g} s simulated",
            *([f"mean slowdown {slowdown:.3g}"] if isinstance(slowdown, float) else []),
        ]
        return f"<Result {name!r}: {', '.join(parts)}>"

    def _repr_html_(self) -> str:
        # By name: the layer `show` lies above this one, and importing it takes a second.
        return str(importlib.import_module("sojourn.show.notebook").result_html(self))

    def view(self) -> Any:
        """Return the page of `sojourn view`: a notebook shows it, `write(path)` stores it."""
        return importlib.import_module("sojourn.view.notebook").Page(self)

    def verify(self) -> None:
        """Raise `FileError` if tables on disk do not match their checksums."""

    def with_flows(self, flows: pl.DataFrame) -> "Result":
        """Return the result with a selection or a modification of its flow records."""
        return FlowSelection(flows, self)

    @classmethod
    def from_core(cls, columns: Mapping[str, Any], manifest: Mapping[str, Any]) -> "Result":
        """Create a result from the core's columns; `manifest` is merged into the summary."""
        summary = from_json(columns["summary"]) | dict(manifest)
        others = {CHAIN: chain_table(columns), LINKS: link_table(columns["links"])}
        if (account := columns.get("account")) is not None:
            others[ACCOUNT] = pl.DataFrame(account)
        if (record := columns.get("record")) is not None:
            others |= record_tables(record, columns["links"]["name"])
        return cls(flow_table(columns), sample_table(columns), summary, others)

    def write(self, directory: str | Path) -> Path:
        """Write `flows.parquet`, `summary.json`, the other non-empty tables, and `SHA256SUMS`.

        `sha256sum --check` reads `SHA256SUMS`. Raises `FileError` if a file cannot be written.
        """
        directory = Path(directory)
        try:
            directory.mkdir(parents=True, exist_ok=True)
            # The directory may be that of this result, and stays as it is until all is written.
            names = [*self._write_tables(directory), SUMMARY]
            # `json.dumps` takes longer to indent a summary than a short run.
            summary = {k: v for k, v in self.summary.items() if not isinstance(v, LinkRows)}
            text = to_json(summary, indent=2, inf_nan_mode="null")
            _draft(directory / SUMMARY).write_bytes(text + b"\n")
            sums = [f"{_sha256(_draft(directory / name))}  {name}\n" for name in names]
            # The sums are written last: a directory that contains them is a complete result.
            (directory / SUMS).unlink(missing_ok=True)
            for name in TABLES[1:]:
                (directory / name).unlink(missing_ok=True)
            for name in names:
                _draft(directory / name).replace(directory / name)
            (directory / SUMS).write_text("".join(sums), encoding="utf-8")
        except (OSError, pl.exceptions.PolarsError) as error:
            reason = getattr(error, "strerror", None) or error
            raise FileError(f"{directory}: cannot be written: {reason}") from None
        finally:
            with contextlib.suppress(OSError):
                for name in (*TABLES, SUMMARY):
                    _draft(directory / name).unlink(missing_ok=True)
        return directory

    def _write_tables(self, directory: Path) -> list[str]:
        """Write drafts of the flow records and the other non-empty tables; return their names."""
        tables = ((name, self._table(name)) for name in TABLES)
        tables_by_name = {n: t for n, t in tables if n == FLOWS or not t.is_empty()}
        for name, table in tables_by_name.items():
            _write_table(table, _draft(directory / name))
        return list(tables_by_name)

    @staticmethod
    def read(directory: str | Path, replace: "Replace | None" = None) -> "Result":
        """Read a result that `write` wrote; tables are read when they are used first.

        Raises `FileError` if the directory is not a complete, undamaged result. If a table turns
        out to be damaged when it is read, `replace` is called to write the directory again; without
        `replace` the damage is a `FileError`.
        """
        return _StoredResult(Path(directory).absolute(), replace)


Replace = Callable[[FileError, Result], None]
"""Function that writes the directory of a damaged result again."""


def _draft(file: Path) -> Path:
    """Return the name of a file that is being written."""
    return file.with_name(f".{file.name}.draft")


def _write_table(table: pl.DataFrame, path: Path) -> None:
    # Opened here, because polars interprets `*` and `[` in names as patterns.
    with path.open("wb") as stream:
        try:
            table.write_parquet(stream)
        except pl.exceptions.PolarsError:
            # Polars hides the system error; on a full disk a write raises it again.
            stream.write(bytes(1 << 20))
            stream.flush()
            raise


class _StoredResult(Result):
    """Result on disk.

    The tables of a sweep may exceed the memory, so only the last table of each kind stays loaded.
    """

    def __init__(self, directory: Path, replace: Replace | None) -> None:
        self._directory, self._replace = directory, replace
        self._open()

    def _open(self) -> None:
        """Read the summary and the checksums, and check that the tables are complete."""
        try:
            sums = files.read_text(self._directory / SUMS, files.MAX_SETTINGS_BYTES).splitlines()
        except OSError as error:
            raise _unreadable(self._directory / SUMS, error) from None
        self._sums = {name: digest for digest, _, name in (line.partition("  ") for line in sums)}
        self._to_verify = [name for name in TABLES if name in self._sums]
        if not {FLOWS, SUMMARY} <= self._sums.keys():
            raise FileError(f"{self._directory / SUMS}: lacks {FLOWS} or {SUMMARY}")
        self._verify(SUMMARY)
        self.summary = read_json(self._directory / SUMMARY, dict[str, Any])
        _restore_infinity(self.summary.get("fidelity", {}))
        if LINKS in self._sums:
            self.summary["links"] = LinkRows(functools.partial(self._table, LINKS))
        for name in self._to_verify:
            _check_end(self._directory / name)

    @property
    def directory(self) -> Path | None:
        return self._directory

    def scan_flows(self) -> pl.LazyFrame:
        self.verify()
        # `*` and `[` in names of folders are not patterns.
        return pl.scan_parquet(self._directory / FLOWS, glob=False)

    def _verify(self, name: str) -> None:
        file = self._directory / name
        if _sha256(file) != self._sums[name]:
            raise FileError(f"{file}: does not match its SHA-256 sum")

    def verify(self) -> None:
        try:
            while self._to_verify:
                self._verify(self._to_verify[0])
                self._to_verify.pop(0)
        except FileError as error:
            if self._replace is None:
                raise
            self._replace(error, self)
            self._replace = None
            self._open()
            self.verify()

    def _table(self, name: str) -> pl.DataFrame:
        self.verify()
        if name not in self._sums:
            return empty_table(name)
        return _CACHED_READERS[name](self._directory / name, self._sums[name])


class FlowSelection(Result):
    """Result with a selection or a modification of its flow records."""

    def __init__(self, flows: pl.DataFrame, complete: Result) -> None:
        """Create the result from the records and the complete result."""
        self._flows, self._complete = flows, complete
        self.summary = complete.summary

    @property
    def flows(self) -> pl.DataFrame:
        """Selected flow records."""
        return self._flows

    def _table(self, name: str) -> pl.DataFrame:
        if name == FLOWS:
            return self._flows
        table = self._complete._table(name)
        if name not in OF_FLOWS:
            return table
        return table.join(self._flows, on="flow", how="semi", maintain_order="left")


@dataclass(frozen=True)
class Run:
    """Result of a sweep, with labels that distinguish it from the other results."""

    labels: Labels
    result: Result

    def _repr_html_(self) -> str:
        labels = ", ".join(f"{name} = {value}" for name, value in self.labels.items())
        return f"<b>{html.escape(labels)}</b>{self.result._repr_html_()}"


def no_such_flow(flow: int, result: Result) -> str:
    """Return the error for a number that no flow of a run has."""
    numbers = result.flows["flow"]
    if numbers.is_empty():
        return f"--flow {flow}: the run has no flows"
    first, last = numbers.sort().gather([0, -1])
    return f"--flow {flow}: the run has flows {first} to {last}"


def warm_up_of(summary: Mapping[str, Any]) -> float:
    """Return the end of the warm-up in seconds."""
    return parse_time(summary["scenario"].get("warm_up", "0 s"))


def measured_starts(summary: Mapping[str, Any]) -> list[pl.Expr]:
    """Return the conditions on flow records for a start in the measured time.

    That begins with the end of the warm-up. For the calls of a closed loop it ends when the first
    caller has made its part of them: the other callers have other latencies, and would count more
    than their rates.
    """
    start, of_class = pl.col("start_s"), pl.col("class")
    ends = summary.get("measured_until_s", {}).items()
    is_late = [(of_class == name) & (start >= until_s) for name, until_s in ends]
    return [start >= warm_up_of(summary), *(~late for late in is_late)]


def is_judged(summary: Mapping[str, Any]) -> list[pl.Expr]:
    """Return the conditions on records of flows of finite size that started in measured time."""
    return [pl.col("outcome") != "long_lived", *measured_starts(summary)]


def is_timed(summary: Mapping[str, Any]) -> list[pl.Expr]:
    """Return the conditions on flow records of FCT statistics: no terminated flows either."""
    return [*is_judged(summary), pl.col("outcome") != "terminated"]


def bounded(column: str, summary: Mapping[str, Any]) -> dict[str, pl.Expr]:
    """Return the columns `value`, see `with_lower_bounds`, and `is_finished` of flow records."""
    value = with_lower_bounds(column, summary["simulated_s"])
    return {"value": value, "is_finished": pl.col(column).is_not_null()}


def with_lower_bounds(column: str, simulated_s: float) -> pl.Expr:
    """Return `fct_s` or `slowdown` of flow records, with lower bounds of unfinished flows.

    Such a flow has waited until the end of the run, and takes its ideal FCT at least.
    """
    waiting = pl.max_horizontal(simulated_s - pl.col("start_s"), "ideal_fct_s")
    bound = waiting if column == "fct_s" else waiting / pl.col("ideal_fct_s")
    return pl.coalesce(column, bound)


def _read_table(file: Path, digest: str) -> pl.DataFrame:
    """Return a table; the digest is that of its content, which another run may replace."""
    with file.open("rb") as stream:
        return pl.read_parquet(stream)


_CACHED_READERS = {name: functools.lru_cache(maxsize=1)(_read_table) for name in TABLES}
"""Readers of tables by file name; each keeps the last table."""


def _unreadable(file: Path, error: OSError) -> FileError:
    return FileError(f"{file}: cannot be read: {error.strerror}")


def _sha256(file: Path) -> str:
    """Return the SHA-256 of a file."""
    try:
        with files.regular_file(file, sys.maxsize).open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise _unreadable(file, error) from None


def _check_end(file: Path) -> None:
    """Raise `FileError` unless the file ends with the magic number of Parquet."""
    try:
        with files.regular_file(file, sys.maxsize).open("rb") as stream:
            stream.seek(max(0, file.stat().st_size - 4))
            if stream.read(4) != b"PAR1":
                raise FileError(f"{file}: is not a complete Parquet file")
    except OSError as error:
        raise _unreadable(file, error) from None


def _restore_infinity(fidelity: dict[str, Any]) -> None:
    """Replace the null of infinite sizes and errors, which JSON lacks, in the entry `fidelity`."""
    errors = [*fidelity.get("self_check", ()), *fidelity.get("half", {}).get("errors", ())]
    p99s = itertools.chain.from_iterable(fidelity.get("p99", {}).values())
    names_of = ((errors, ("up_to", "mean", "p99")), (p99s, ("up_to",)))
    for rows, names in (*names_of, ([fidelity.get("precision", {})], ("up_to", "reached"))):
        for row in rows:
            row |= {name: math.inf for name in names if name in row and row[name] is None}
