"""Closed forms: what completion times would be on one link if only one thing mattered.

Sizes are whole packets, times are seconds. A completion time begins with the SYN, as [rcp06]
counts it: one round trip for the handshake, half of one until the last packet is there.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import integrate

Floats = npt.NDArray[np.float64]

SHAKEN = 1.5
"""Round trips of any flow: the handshake, and the way of its last packet."""


@dataclass(frozen=True)
class Link:
    """A link between all sources and all sinks, and nothing else."""

    rate_bps: float
    rtt_s: float
    packet_bytes: float = 1000
    """A full packet on the wire, headers and all."""

    @property
    def packets_per_s(self) -> float:
        """The most packets a second that the link carries."""
        return self.rate_bps / (8 * self.packet_bytes)

    @property
    def bandwidth_delay(self) -> float:
        """Packets that fill the link for a round-trip time."""
        return self.packets_per_s * self.rtt_s


@dataclass(frozen=True)
class Pareto:
    """Flow sizes of a Pareto distribution, in packets: heavy-tailed for a shape below two."""

    mean: float
    shape: float

    @property
    def least(self) -> float:
        """The smallest size."""
        return self.mean * (self.shape - 1) / self.shape

    def above(self, size: float) -> float:
        """Return the share of flows that are larger than `size`."""
        if size <= self.least:
            return 1.0
        return float((self.least / size) ** self.shape)

    def work_below(self, size: float) -> float:
        """Return the mean over all flows of the size, counting only flows up to `size`."""
        if size <= self.least:
            return 0.0
        return float(self.mean * (1 - (self.least / size) ** (self.shape - 1)))

    def squares_below(self, size: float) -> float:
        """Return the mean over all flows of the squared size, counting only flows up to `size`."""
        if size <= self.least:
            return 0.0
        if math.isclose(self.shape, 2):
            return 2 * self.least**2 * math.log(size / self.least)
        power = 2 - self.shape
        grown = size**power - self.least**power
        return float(self.shape * self.least**self.shape * grown / power)


def arrivals_per_s(link: Link, mean_size: float, load: float) -> float:
    """Return how many flows must start in a second to offer `load`."""
    return load * link.packets_per_s / mean_size


def in_progress(per_s: float, mean_fct_s: float) -> float:
    """Return the mean number of flows in progress, by Little's law."""
    return per_s * mean_fct_s


def processor_sharing(link: Link, load: float, sizes: npt.ArrayLike) -> Floats:
    """Return the mean completion time of flows of these sizes under processor sharing.

    Arrivals are Poisson; the distribution of sizes matters by its mean alone (M/G/1-PS).
    """
    return SHAKEN * link.rtt_s + np.asarray(sizes, float) / (link.packets_per_s * (1 - load))


def slow_start(link: Link, sizes: npt.ArrayLike, initial_window: int = 1) -> Floats:
    """Return the completion time of flows that double their window until they are done ([rcp06]).

    No packet waits for another flow's: ceil(log2(L / w + 1)) + 1/2 round trips, and L / C.
    """
    packets = np.asarray(sizes, float)
    rounds = np.ceil(np.log2(packets / initial_window + 1))
    return (rounds + 0.5) * link.rtt_s + packets / link.packets_per_s


def slow_start_mean(link: Link, sizes: Pareto, initial_window: int = 1) -> float:
    """Return the mean of `slow_start` over sizes that are rounded up to whole packets."""
    # A flow needs more than n rounds if it is larger than what n rounds send.
    rounds = sum(sizes.above(initial_window * (2**n - 1)) for n in range(64))
    return (rounds + 0.5) * link.rtt_s + sizes.mean / link.packets_per_s


def srpt(link: Link, load: float, sizes: Pareto, at: npt.ArrayLike) -> Floats:
    """Return the mean completion time of flows of sizes `at` under SRPT ([schrage66]).

    SRPT always sends from the flow that has least left. Arrivals are Poisson (M/G/1-SRPT).
    """
    response = _srpt_response(load, sizes)
    packets = [response(float(size)) for size in np.atleast_1d(np.asarray(at, float))]
    return SHAKEN * link.rtt_s + np.array(packets) / link.packets_per_s


def srpt_mean(link: Link, load: float, sizes: Pareto) -> float:
    """Return the mean of `srpt` over all flows.

    With a heavy tail much of it is that of rare flows, which a simulation of a million lacks.
    """
    response = _srpt_response(load, sizes)

    # Over the logarithm of the size, of which the density is exponential.
    def weighted(logarithm: float) -> float:
        return response(sizes.least * math.exp(logarithm)) * math.exp(-sizes.shape * logarithm)

    total = sizes.shape * _integral(weighted, 0, math.log(1e12))
    return SHAKEN * link.rtt_s + total / link.packets_per_s


def _srpt_response(load: float, sizes: Pareto) -> Callable[[float], float]:
    """Return the mean time from arrival to end of a flow by its size, in times of one packet."""
    arrivals = load / sizes.mean

    def used(size: float) -> float:
        return arrivals * sizes.work_below(size)

    def slowed(logarithm: float) -> float:
        size = math.exp(logarithm)
        return size / (1 - used(size))

    def response(size: float) -> float:
        others = sizes.squares_below(size) + size**2 * sizes.above(size)
        waiting = arrivals * others / (2 * (1 - used(size)) ** 2)
        alone = min(size, sizes.least)
        sending = alone + _integral(slowed, math.log(alone), math.log(size))
        return waiting + sending

    return response


def _integral(function: Callable[[float], float], low: float, high: float) -> float:
    found: Any = integrate.quad(function, low, high, limit=200)
    return float(found[0])
