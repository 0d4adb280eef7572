"""Links: counters as a table and as the entry `links` of a summary, and bits by rate traces."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, overload

import numpy as np
import numpy.typing as npt
import polars as pl

from sojourn._core import ScenarioError
from sojourn.base.units import parse_size
from sojourn.scenario.encoding import Prepared

Floats = npt.NDArray[np.float64]

LEAST_PACKETS = 10
"""Fewest full packets of a full link in a span in which its throughput is measured."""

Row = dict[str, Any]
"""Counters of a link by name; those of the measured interval are in the table `measured`."""


class LinkRows(Sequence[Row]):
    """Links as dictionaries, each made when it is read.

    A large network has hundreds of thousands of links, and a dictionary takes 2 KB.
    """

    def __init__(self, table: pl.DataFrame | Callable[[], pl.DataFrame]) -> None:
        """Show the rows of a table, or of the table that a function returns."""
        self._table = table

    @property
    def table(self) -> pl.DataFrame:
        """The links as a table."""
        return self._table if isinstance(self._table, pl.DataFrame) else self._table()

    def __len__(self) -> int:
        return self.table.height

    def __iter__(self) -> Iterator[Row]:
        return map(_present, self.table.iter_rows(named=True))

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> list[Row]: ...
    def __getitem__(self, index: int | slice) -> Row | list[Row]:
        if isinstance(index, slice):
            return list(LinkRows(self.table[index]))
        return _present(self.table.row(index, named=True))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # as of a list

    def __repr__(self) -> str:
        return f"<{len(self)} links>"


def _present(row: Row) -> Row:
    """Return a row without absent values: not every queue has a census."""
    return {name: value for name, value in row.items() if value is not None}


def ends(name: str) -> tuple[str, str]:
    """Return the nodes that a link joins: `a` and `b` of `a->b` and of `a->b (cable 2)`."""
    source, _, target = re.sub(r" \(cable \d+\)$", "", name).partition("->")
    return source, target


def of_sample(number: int) -> str:
    """Return the suffix of the names of a sample's links; those of the first have none."""
    return f" (sample {number})" if number else ""


def is_of_later_sample(name: str) -> bool:
    """Return true for a name with the suffix of a sample after the first."""
    return re.search(r" \(sample \d+\)$", name) is not None


def least_span_s(scenario: Mapping[str, Any], links: Iterable[Row]) -> float:
    """Return the time of `LEAST_PACKETS` full packets on the slowest link that sent anything.

    In a shorter span, which has few packets, the throughput of a full link may be far from its
    rate. The result is 0 without such a link, and in scenarios without packets.
    """
    rates = [link["rate_bps"] for link in links if link["bytes"] and link["rate_bps"]]
    packet = scenario.get("packet")
    if not rates or not packet:
        return 0.0
    return float(LEAST_PACKETS * 8 * parse_size(packet["payload"]) / min(rates))


def link_table(columns: Mapping[str, Any]) -> pl.DataFrame:
    """Return the table of links from the core's columns."""
    counters = dict(columns)
    classes, census, measured = map(counters.pop, ("classes", "census", "measured"))
    table = pl.DataFrame(counters)
    if classes:
        of_class = [
            pl.DataFrame(pauses).select(pl.lit(number).alias("class"), pl.all()).to_struct()
            for number, pauses in classes
        ]
        table = table.with_columns(pl.concat_list(of_class).alias("classes"))
    if census:
        counts = [of and {"arrived": of[0], "dropped": of[1]} for of in census]
        table = table.with_columns(pl.Series("census", counts))
    if measured:
        table = table.with_columns(pl.DataFrame(measured).to_struct("measured"))
    return table


def carried_bits(scenario: Mapping[str, Any], times_s: Floats) -> dict[str, Floats]:
    """Return the bits that links with rate traces can carry until each time, by name.

    The result is empty for a scenario of another version that the core cannot read.
    """
    # Without rate traces, no network is built: it may be large.
    topology = scenario.get("topology")
    own = topology.get("rate_trace") if isinstance(topology, Mapping) else None
    if not (own or scenario.get("rate_traces")):
        return {}
    try:
        return Prepared(scenario).core.carried(times_s)
    except ScenarioError:
        return {}
