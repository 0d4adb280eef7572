"""One run's result: flow records, samples and summary, as they are written to files."""

import functools
import hashlib
import html
import importlib
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from pydantic_core import from_json, to_json

from sojourn.base import files
from sojourn.base.errors import FileError
from sojourn.scenario.reading import Labels
from sojourn.scenario.typed import read_json

FLOWS, SAMPLES = "flows.parquet", "samples.parquet"
ACCOUNT, CHAIN = "account.parquet", "chain.parquet"
SUMMARY, SUMS = "summary.json", "SHA256SUMS"
"""The files of a result; the last has the hashes of the others."""

TABLES = (FLOWS, SAMPLES, ACCOUNT, CHAIN)
"""Those of tables, of which only the first must be there."""

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

    def __init__(
        self,
        flows: pl.DataFrame,
        samples: pl.DataFrame,
        summary: dict[str, Any],
        account: pl.DataFrame | None = None,
        chain: pl.DataFrame | None = None,
    ) -> None:
        """Take the tables and the summary."""
        account = _none(ACCOUNT) if account is None else account
        chain = _none(CHAIN) if chain is None else chain
        self._given = dict(zip(TABLES, (flows, samples, account, chain), strict=True))
        self.summary = summary

    def _table(self, name: str) -> pl.DataFrame:
        return self._given[name]

    @property
    def flows(self) -> pl.DataFrame:
        """One row a flow, with the columns of `COLUMNS`."""
        return self._table(FLOWS)

    @property
    def samples(self) -> pl.DataFrame:
        """Sampled queues and rates in long form: `time_s`, `probe`, `value`."""
        return self._table(SAMPLES)

    @property
    def account(self) -> pl.DataFrame:
        """Where the time of every finished flow went; empty unless `account = true`.

        One row a flow, in integers: `flow`; `fct_ps`, its completion time in picoseconds; `rounds`,
        how many round trips of the window it waited for; and for every reason and place a column
        `REASON_PLACE_ps`. These add up to `fct_ps` to the picosecond (docs/design.md, Accounts).

        Reasons: `handshake`, `window`, `rate` (its pace), `turn` (its host's port), `recovery_gap`,
        `recovery_timeout`, `flight` (of the packet that completed it). Places: `propagation`,
        `transmission`; waiting while a port sent packets of the same flow (`queue_own`), of others
        (`queue_others`), control packets (`queue_control`), or nothing, for a pause (`paused`) or
        without (`queue_idle`), at the source host's own port (`_host`), further on the way there
        (`_there`) or on the way back (`_back`); `receiver`; and `sender`, where nothing of what was
        waited for was in the network.

        Alone in the network the last packet of the flow would spend `alone_propagation_ps`,
        `alone_transmission_ps` and, behind those before it, `alone_queue_own_ps`: together its
        `ideal_fct_s`.
        """
        return self._table(ACCOUNT)

    @property
    def chain(self) -> pl.DataFrame:
        """What held back the flows in `account_flows`, piece by piece; empty without.

        One row a piece, in order of time without gaps: `flow`, `reason`, when it `begins_ps` after
        the flow's start, and how long it lasted by place (`PLACE_ps`). The pieces of a reason add
        up to what `account` has of it.
        """
        return self._table(CHAIN)

    @property
    def threads(self) -> int:
        """How many threads the run used."""
        return int(self.summary.get("engine", {}).get("threads", 1))

    def _repr_html_(self) -> str:
        # By name, because results lie below what draws them, and because that takes a second.
        return str(importlib.import_module("sojourn.show.notebook").of_result(self))

    def verify(self) -> None:
        """Raise `FileError` if the tables on disk, if any, are not what was written."""

    def with_flows(self, flows: pl.DataFrame) -> "Result":
        """Return the same run with some of its flow records, or with changed ones."""
        return OfFlows(flows, self)

    @classmethod
    def from_core(cls, columns: Mapping[str, Any], manifest: Mapping[str, Any]) -> "Result":
        """Build the tables from the core's columns; `manifest` joins the summary."""
        summary = from_json(columns["summary"]) | dict(manifest)
        account = columns.get("account")
        account = None if account is None else pl.DataFrame(account)
        pieces = dict(columns["chain"])
        pieces["reason"] = _names(pieces["reason"], columns["reasons"])
        chain = pl.DataFrame(pieces)
        return cls(flow_table(columns), sample_table(columns), summary, account, chain)

    def write(self, directory: str | Path) -> Path:
        """Write `flows.parquet`, `summary.json`, and the other tables that are not empty.

        With `SHA256SUMS` beside them, as the command `sha256sum --check` reads it. Raises
        `FileError` if there is no place.
        """
        directory = Path(directory)
        try:
            directory.mkdir(parents=True, exist_ok=True)
            # Last, so that a directory with it is a whole result.
            (directory / SUMS).unlink(missing_ok=True)
            for name in TABLES[1:]:
                (directory / name).unlink(missing_ok=True)
            names = [*self._write_tables(directory), SUMMARY]
            # That of the standard library takes longer to indent a summary than many a run.
            text = to_json(self.summary, indent=2, inf_nan_mode="constants")
            (directory / SUMMARY).write_bytes(text + b"\n")
            sums = [f"{_sum(directory / name)}  {name}\n" for name in names]
            (directory / SUMS).write_text("".join(sums), encoding="utf-8")
        except (OSError, pl.exceptions.PolarsError) as error:
            reason = getattr(error, "strerror", None) or error
            raise FileError(f"{directory}: cannot be written: {reason}") from None
        return directory

    def _write_tables(self, directory: Path) -> list[str]:
        """Write the tables, but for those that are empty beside the flows; return their names."""
        tables = ((name, self._table(name)) for name in TABLES)
        tables_by_name = {n: t for n, t in tables if n == FLOWS or not t.is_empty()}
        for name, table in tables_by_name.items():
            _write_table(table, directory / name)
        return list(tables_by_name)

    @staticmethod
    def read(directory: str | Path, again: "Again | None" = None) -> "Result":
        """Read what `write` wrote; tables stay on disk until they are looked at.

        Raises `FileError` if that is not what is there. If a table turns out so when it is looked
        at, `again` is to write the directory anew; without it that is a `FileError` too.
        """
        return _Stored(Path(directory).absolute(), again)


Again = Callable[[FileError, Result], None]
"""Writes the directory of a result anew, of which the error says what is wrong."""


def _write_table(table: pl.DataFrame, path: Path) -> None:
    # Opened here, for polars takes names with `*` or `[` for patterns.
    with path.open("wb") as stream:
        try:
            table.write_parquet(stream)
        except pl.exceptions.PolarsError:
            # It hides what the system said, which says so again if the disk is full.
            stream.write(bytes(1 << 20))
            stream.flush()
            raise


class _Stored(Result):
    """A result on disk. A sweep can have more tables than fit in memory: one of a kind stays."""

    def __init__(self, directory: Path, again: Again | None) -> None:
        self._directory, self._again = directory, again
        self._open()

    def _open(self) -> None:
        """Read all but the tables, of which only the ends are looked at."""
        try:
            sums = files.read_text(self._directory / SUMS, files.MOST_SETTINGS).splitlines()
        except OSError as error:
            raise _unreadable(self._directory / SUMS, error) from None
        self._sums = {name: digest for digest, _, name in (line.partition("  ") for line in sums)}
        self._to_verify = [name for name in TABLES if name in self._sums]
        if not {FLOWS, SUMMARY} <= self._sums.keys():
            raise FileError(f"{self._directory / SUMS}: does not name all files")
        self._verify(SUMMARY)
        self.summary = read_json(self._directory / SUMMARY, dict[str, Any])
        for name in self._to_verify:
            _check_end(self._directory / name)

    def _verify(self, name: str) -> None:
        file = self._directory / name
        if _sum(file) != self._sums[name]:
            raise FileError(f"{file}: is not what was written")

    def verify(self) -> None:
        try:
            while self._to_verify:
                self._verify(self._to_verify[0])
                self._to_verify.pop(0)
        except FileError as error:
            if self._again is None:
                raise
            self._again(error, self)
            self._again = None
            self._open()
            self.verify()

    def _table(self, name: str) -> pl.DataFrame:
        self.verify()
        return _READ[name](self._directory / name) if name in self._sums else _none(name)


class OfFlows(Result):
    """A run with some of its flow records, or with changed ones."""

    def __init__(self, flows: pl.DataFrame, whole: Result) -> None:
        """Take the records, and the run; its other tables are read when they are looked at."""
        self._flows, self._whole = flows, whole
        self.summary = whole.summary

    @property
    def flows(self) -> pl.DataFrame:
        """The records."""
        return self._flows

    @property
    def samples(self) -> pl.DataFrame:
        """The samples of the run."""
        return self._whole.samples

    @property
    def account(self) -> pl.DataFrame:
        """The accounts of those flows."""
        return self._whole.account.join(self._flows, on="flow", how="semi", maintain_order="left")

    @property
    def chain(self) -> pl.DataFrame:
        """The chains of those flows."""
        return self._whole.chain.join(self._flows, on="flow", how="semi", maintain_order="left")


@dataclass(frozen=True)
class Run:
    """A result of a sweep, with the labels that tell it from the others."""

    labels: Labels
    result: Result

    def _repr_html_(self) -> str:
        labels = ", ".join(f"{name} = {value}" for name, value in self.labels.items())
        return f"<b>{html.escape(labels)}</b>{self.result._repr_html_()}"


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


def _read_table(file: Path) -> pl.DataFrame:
    with file.open("rb") as stream:
        return pl.read_parquet(stream)


_READ = {name: functools.lru_cache(maxsize=1)(_read_table) for name in TABLES}
"""Reads a table of each name, and keeps the last."""


def _unreadable(file: Path, error: OSError) -> FileError:
    return FileError(f"{file}: cannot be read: {error.strerror}")


def _sum(file: Path) -> str:
    """Return the SHA-256 of a file."""
    try:
        with files.checked(file, sys.maxsize).open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise _unreadable(file, error) from None


def _check_end(file: Path) -> None:
    """Refuse what cannot be a whole Parquet file: one ends with a mark."""
    try:
        with files.checked(file, sys.maxsize).open("rb") as stream:
            stream.seek(max(0, file.stat().st_size - 4))
            if stream.read(4) != b"PAR1":
                raise FileError(f"{file}: is no whole Parquet file")
    except OSError as error:
        raise _unreadable(file, error) from None


def _names(indices: Any, names: Any) -> pl.Series:
    """Replace indices by the names that they stand for."""
    if len(indices) == 0:
        return pl.Series([], dtype=pl.String)
    return pl.Series(names, dtype=pl.String).gather(np.asarray(indices, dtype=np.uint32))


def _none(name: str) -> pl.DataFrame:
    """Return an empty table in place of one that is not there."""
    return pl.DataFrame(schema=EMPTY[name])


EMPTY: dict[str, Any] = {
    SAMPLES: {"time_s": pl.Float64, "probe": pl.String, "value": pl.Float64},
    ACCOUNT: dict.fromkeys(("flow", "fct_ps", "rounds"), pl.UInt64),
    CHAIN: {"flow": pl.UInt64, "reason": pl.String, "begins_ps": pl.UInt64},
}
