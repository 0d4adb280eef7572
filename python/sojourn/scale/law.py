"""Law of packets given a fluid: how much longer than in the fluid flows take, learnt from samples.

A flow's *cell* is its class, its size, the load of its receiver's link, that of the switches' links
to this receiver, and its slowdown in the fluid. A cell holds the ratios of the slowdowns by packets
and in the fluid, of the flows of folded networks. A flow of the whole network takes a random one of
the ratios of its cell. A law holds for the scenario from which it was learnt: that of another
network was wrong by up to a factor of two.

The loads separate queues of switches from those of hosts: a fair host sends a small flow past its
large ones and a switch does not, while the fluid slows the flow down in both. And folds have a
larger share of hot racks than the whole network, whose flows must count for hot racks only.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
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

    def __len__(self) -> int:
        """Return the number of flows."""
        return len(self.sizes)

    def blocks(self) -> Iterator["FluidFlows"]:
        """Return the flows in blocks, one at least, whose temporary arrays take little memory."""
        for first in range(0, max(1, len(self)), BLOCK):
            rows = slice(first, first + BLOCK)
            yield FluidFlows(
                *(self.classes[rows], self.sizes[rows]),
                *(self.loads[rows], self.switch_loads[rows], self.slowdowns[rows]),
            )

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
    """Ratios of slowdowns by packets and in the fluid, by cell."""

    def __init__(self, samples: Iterable[tuple[FluidFlows, Floats]]) -> None:
        """Learn from the flows of samples and their slowdowns by packets.

        The slowdown of a flow that did not finish is infinite.
        """
        flows = list(samples)
        rows = np.concatenate([fluid.rows() for fluid, _ in flows])
        columns = np.concatenate([fluid.columns() for fluid, _ in flows])
        ratios = np.concatenate([packets / fluid.slowdowns for fluid, packets in flows])
        self._ratios: dict[int, Floats] = {}
        self._sparse: set[int] = set()
        for row in map(int, np.unique(rows)):
            of_row = rows == row
            self._learn(row * CELLS, columns[of_row], ratios[of_row])

    def _learn(self, first: int, columns: Indices, ratios: Floats) -> None:
        """Learn the cells of one class and size, which are numbered from `first` on."""
        of_all = _filled(_divided(columns % COLUMNS, ratios, COLUMNS))
        by_cell = _divided(columns, ratios, CELLS)
        for start in range(0, CELLS, COLUMNS):
            of_loads = by_cell[start : start + COLUMNS]
            # Loads without enough flows of this size have the ratios of all loads.
            is_enough = sum(map(len, of_loads)) >= LEAST_FLOWS
            for column, of_cell in enumerate(_filled(of_loads) if is_enough else of_all):
                self._ratios[first + start + column] = of_cell
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
            ratios = self._ratios.get(cell)
            are_sparse[members] = ratios is None or cell in self._sparse
            if ratios is not None:
                drawn = ratios[(quantiles[members] * len(ratios)).astype(np.int64)]
                slowdowns[members] *= drawn
        np.maximum(slowdowns, 1.0, out=slowdowns)
        return slowdowns, are_sparse


def _divided(numbers: Indices, ratios: Floats, cells: int) -> list[Floats]:
    """Return the ratios of each cell; `numbers` are those of the cells, from 0 on."""
    order = np.argsort(numbers, kind="stable")
    return np.split(ratios[order], np.searchsorted(numbers[order], np.arange(1, cells)))


def _filled(by_column: Sequence[Floats]) -> list[Floats]:
    """Return the sorted ratios of each column, with those of its neighbours where it has few."""
    return [np.sort(_near(by_column, column)) for column in range(COLUMNS)]


def _near(by_column: Sequence[Floats], column: int) -> Floats:
    """Return the ratios of a column, and of its neighbours until there are enough."""
    enough = min(LEAST_RATIOS, sum(map(len, by_column)))
    for reach in range(COLUMNS):
        near = by_column[max(0, column - reach) : column + reach + 1]
        if sum(map(len, near)) >= enough:
            return np.concatenate(near)
    return np.concatenate(by_column)


def self_check(
    samples: Sequence[tuple[FluidFlows, Floats]], classes: Sequence[str], seed: int
) -> list[dict[str, Any]]:
    """Return the errors of the law of other samples on each sample, by class and size.

    The rows are those of `errors_by_size`, with the `class` if there are several.
    """
    checked = []
    for number, (fluid, packets) in enumerate(samples):
        others = [sample for place, sample in enumerate(samples) if place != number]
        checked.append((fluid, packets, Law(others).predict(fluid, seed)[0]))
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
