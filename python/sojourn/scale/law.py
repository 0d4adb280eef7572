"""Law of packets given a fluid: how much longer than in the fluid flows take, learnt from samples.

A flow's *cell* is its class, its size, the load of its receiver's link, that of the switches' links
to this receiver, and its slowdown in the fluid. A cell holds the ratios of the slowdowns by packets
and in the fluid, of the flows of folded networks. A flow of the whole network takes a random one of
the ratios of its cell. A law holds for the scenario from which it was learnt: that of another
network was wrong by up to a factor of two.

A run that ends at a time limit shows only that an unfinished flow's ratio is above a bound, which
is lower for flows that start late. The distribution of a cell's ratios is that of Kaplan and Meier
(J. Am. Stat. Assoc. 53, 1958). With infinite ratios of unfinished flows, early flows took those
of flows that start shortly before the limit, and the limit cut flows off once more: 9 % too few of
those above 1 MB finished (web search at 0.6, DCTCP, 192 hosts, 20 ms).

The loads separate queues of switches from those of hosts: a fair host sends a small flow past its
large ones and a switch does not, while the fluid slows the flow down in both. And folds have a
larger share of hot racks than the whole network, whose flows must count for hot racks only.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from sojourn.scale.errors import Floats, errors_by_size

Indices = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

SIZES = np.array([300.0, *(base * 10.0**power for power in range(3, 10) for base in (1, 3))])
"""Bounds of the sizes of cells in bytes."""

LOADS = np.array([0.05, 0.1, 0.2, 0.4])
"""Bounds of the loads of receivers' links."""

SWITCH_LOADS = np.array([0.1, 0.25, 0.45, 0.6])
"""Bounds of the loads of switches' links."""

SLOWDOWNS = np.array([1.0005, 1.02, 1.05, 1.1, 1.2, 1.35, 1.5, 1.75, 2, 2.5, 3, 4, 6, 10, 20, 40])
"""Bounds of the fluid slowdowns of cells.

The ratio of slowdowns changes up to the largest ones: beside incasts that of flows of 10 to 100 KB
is 0.25 at a fluid slowdown of 7, and 0.95 at 30 (HPCC, 312 hosts, incasts of 30).
"""

LEAST_RATIOS = 2
"""Ratios below which a cell also takes those of its neighbours.

The ratios of neighbours may be ten times as large. With 20, few samples mixed them: p99s of flows
of 1 to 10 KB were 25 to 31 % too high under pFabric and Homa, and 79 % too low beside incasts.
"""

LEAST_FLOWS = 20
"""Flows of a size below which loads take the ratios of all loads, and all cells are sparse."""

BLOCK = 1 << 20
"""Flows that are predicted together."""

SPARSE = 0.01
"""Share of the flows of a class in cells without enough ratios that causes a warning."""


@dataclass(frozen=True)
class FluidFlows:
    """Flows in the fluid, one entry per flow in each array."""

    classes: Indices
    sizes: Floats
    loads: Floats
    """Mean load of the link to the receiver of each flow, as a share of its rate."""
    switch_loads: Floats
    """Mean load of the links to the rack of each receiver, or of those to its pod if that is more,
    as a share of their rates; 0 for flows that do not cross them."""
    slowdowns: Floats
    limits: Floats
    """Slowdowns with which flows end at the time limit."""

    def __len__(self) -> int:
        """Return the number of flows."""
        return len(self.sizes)

    def blocks(self) -> Iterator["FluidFlows"]:
        """Return the flows in blocks, one at least, whose temporary arrays take little memory."""
        for first in range(0, max(1, len(self)), BLOCK):
            yield self.take(slice(first, first + BLOCK))

    def take(self, rows: slice | Flags) -> "FluidFlows":
        """Return some of the flows."""
        return FluidFlows(
            *(self.classes[rows], self.sizes[rows], self.loads[rows]),
            *(self.switch_loads[rows], self.slowdowns[rows], self.limits[rows]),
        )

    def within_limits(self, slowdowns: Floats) -> Floats:
        """Return slowdowns of these flows, infinite for those that end after the time limit."""
        return np.where(slowdowns <= self.limits, slowdowns, np.inf)

    def rows(self) -> Indices:
        """Return the number of each flow's class and size."""
        return self.classes * (len(SIZES) + 1) + np.searchsorted(SIZES, self.sizes)

    def columns(self) -> Indices:
        """Return the number of each flow's loads and slowdown: those of equal loads in sequence."""
        loads = np.searchsorted(LOADS, self.loads) * (len(SWITCH_LOADS) + 1)
        loads += np.searchsorted(SWITCH_LOADS, self.switch_loads)
        return loads * COLUMNS + np.searchsorted(SLOWDOWNS, self.slowdowns)


COLUMNS = len(SLOWDOWNS) + 1
"""Slowdowns of one pair of loads."""

CELLS = COLUMNS * (len(LOADS) + 1) * (len(SWITCH_LOADS) + 1)
"""Cells of one class and size."""


class Law:
    """Distributions of the ratios of slowdowns by packets and in the fluid, by cell."""

    def __init__(self, samples: Iterable[tuple[FluidFlows, Floats]]) -> None:
        """Learn from the flows of samples and their slowdowns by packets.

        The slowdown of a flow that did not finish is infinite. A flow whose slowdown in the fluid
        is infinite has no ratio.
        """
        flows = list(samples)
        rows = np.concatenate([fluid.rows() for fluid, _ in flows])
        columns = np.concatenate([fluid.columns() for fluid, _ in flows])
        slowdowns = np.concatenate([fluid.slowdowns for fluid, _ in flows])
        limits = np.concatenate([fluid.limits for fluid, _ in flows])
        packets = np.concatenate([of_sample for _, of_sample in flows])
        is_finished = np.isfinite(packets)
        ratios = np.where(is_finished, packets, limits) / slowdowns
        self._cells: dict[int, _Distribution] = {}
        self._sparse: set[int] = set()
        for row in map(int, np.unique(rows)):
            chosen = (rows == row) & np.isfinite(slowdowns)
            if chosen.any():
                self._learn(row * CELLS, columns[chosen], ratios[chosen], is_finished[chosen])

    def _learn(self, first: int, columns: Indices, ratios: Floats, is_finished: Flags) -> None:
        """Learn the cells of one class and size, which are numbered from `first` on."""

        def distributions(by_column: Sequence[Indices]) -> list[_Distribution]:
            near = (_near(by_column, column) for column in range(COLUMNS))
            return [_Distribution.of(ratios[flows], is_finished[flows]) for flows in near]

        of_all = distributions(_divided(columns % COLUMNS, COLUMNS))
        by_cell = _divided(columns, CELLS)
        for start in range(0, CELLS, COLUMNS):
            of_loads = by_cell[start : start + COLUMNS]
            # Loads without enough flows of this size have the ratios of all loads.
            is_enough = sum(map(len, of_loads)) >= LEAST_FLOWS
            cells = range(first + start, first + start + COLUMNS)
            learnt = distributions(of_loads) if is_enough else of_all
            self._cells.update(zip(cells, learnt, strict=True))
        if len(ratios) < LEAST_FLOWS:
            self._sparse |= set(range(first, first + CELLS))

    def predict(self, fluid: FluidFlows, seed: int) -> tuple[Floats, Flags]:
        """Return slowdowns by packets, and true for flows in sparse or unknown cells.

        A flow takes the quantile of its cell that its number and the seed give, the same for all
        schemes. A flow of a size that no sample had keeps its slowdown in the fluid.
        """
        slowdowns, are_sparse = [], []
        for number, block in enumerate(fluid.blocks()):
            predicted, sparse = self._predict(block, uniform(seed, len(block), number * BLOCK))
            slowdowns.append(predicted)
            are_sparse.append(sparse)
        return np.concatenate(slowdowns), np.concatenate(are_sparse)

    def _predict(self, fluid: FluidFlows, quantiles: Floats) -> tuple[Floats, Flags]:
        """Return slowdowns by packets, and true for flows in sparse or unknown cells."""
        cells = fluid.rows() * CELLS + fluid.columns()
        order = np.argsort(cells, kind="stable")
        slowdowns, are_sparse = fluid.slowdowns.copy(), np.zeros(len(fluid), dtype=np.bool_)
        starts = np.flatnonzero(np.diff(cells[order], prepend=-1))
        for members in np.split(order, starts[1:]) if len(order) else []:
            cell = int(cells[members[0]])
            distribution = self._cells.get(cell)
            are_sparse[members] = distribution is None or cell in self._sparse
            if distribution is not None:
                slowdowns[members] *= distribution.quantiles(quantiles[members])
        np.maximum(slowdowns, 1.0, out=slowdowns)
        return slowdowns, are_sparse


@dataclass(frozen=True)
class _Distribution:
    """Distribution of the ratios of a cell."""

    ratios: Floats
    """Ratios in ascending order, the last infinite."""
    shares: Floats
    """Share of flows with at most this ratio, for each."""

    @classmethod
    def of(cls, ratios: Floats, is_finished: Flags) -> "_Distribution":
        """Return the distribution of ratios; those of unfinished flows are lower bounds."""
        order = np.lexsort((~is_finished, ratios))
        ratios, is_finished = ratios[order], is_finished[order]
        above = np.cumprod(1 - is_finished / np.arange(len(ratios), 0, -1))
        return cls(np.append(ratios[is_finished], np.inf), np.append(1 - above[is_finished], 1.0))

    def quantiles(self, shares: Floats) -> Floats:
        """Return the ratios of these shares, which are below 1."""
        return self.ratios[np.searchsorted(self.shares, shares, side="right")]


def _divided(numbers: Indices, cells: int) -> list[Indices]:
    """Return the flows of each cell; `numbers` are those of the flows' cells, from 0 on."""
    order = np.argsort(numbers, kind="stable")
    return np.split(order, np.searchsorted(numbers[order], np.arange(1, cells)))


def _near(by_column: Sequence[Indices], column: int) -> Indices:
    """Return the flows of a column, and of its neighbours until there are enough."""
    enough = min(LEAST_RATIOS, sum(map(len, by_column)))
    for reach in range(COLUMNS):
        near = by_column[max(0, column - reach) : column + reach + 1]
        if sum(map(len, near)) >= enough:
            return np.concatenate(near)
    return np.concatenate(by_column)


def law_hash(
    samples: Iterable[tuple[FluidFlows, Floats]], classes: Sequence[str], digits: int = 16
) -> str:
    """Return a hash of what a law is learnt from, in hexadecimal digits."""
    digest = hashlib.sha256("\n".join(classes).encode())
    for fluid, packets in samples:
        for values in (*(getattr(fluid, field.name) for field in fields(fluid)), packets):
            digest.update(np.ascontiguousarray(values).tobytes())
    return digest.hexdigest()[:digits]


def self_check(
    samples: Sequence[tuple[FluidFlows, Floats]], classes: Sequence[str], seed: int
) -> list[dict[str, Any]]:
    """Return the errors of the law of other samples on each sample, by class and size.

    The rows are those of `errors_by_size`, with the `class` if there are several.
    """
    checked = []
    for number, (fluid, packets) in enumerate(samples):
        others = [sample for place, sample in enumerate(samples) if place != number]
        predicted = fluid.within_limits(Law(others).predict(fluid, seed)[0])
        checked.append((fluid, packets, predicted))
    rows: list[dict[str, Any]] = []
    for number, name in enumerate(classes):
        pairs = [
            ((fluid.sizes[chosen], packets[chosen]), (fluid.sizes[chosen], predicted[chosen]))
            for fluid, packets, predicted in checked
            for chosen in [fluid.classes == number]
        ]
        of_class = {"class": name} if len(classes) > 1 else {}
        rows += [of_class | row for row in errors_by_size(pairs)]
    return rows


def uniform(seed: int, number: int, first: int = 0) -> Floats:
    """Return numbers in [0, 1) that depend on the seed and on their place only (SplitMix64)."""
    with np.errstate(over="ignore"):
        words = np.arange(first + 1, first + number + 1, dtype=np.uint64)
        words += np.uint64(seed) << np.uint64(32)
        words *= np.uint64(0x9E3779B97F4A7C15)
        words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        words ^= words >> np.uint64(31)
    numbers: Floats = (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return numbers
