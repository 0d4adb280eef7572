"""Closed forms: what completion times would be on one link if only one thing mattered.

Sizes are in packets, times in seconds. Where a link has a round-trip time a completion time begins
with the SYN, as [rcp06] counts it: one round trip for the handshake, half of one until the last
packet is there. Priority queues ([pfabric13]) know no round trips: a flow takes its waiting and its
transmission.
"""

import math
from collections.abc import Callable, Iterable
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


def processor_sharing_deviation(link: Link, load: float, size: float) -> float:
    """Return the standard deviation of completion times under processor sharing, of flows alike.

    All have the same size, and arrivals are Poisson (M/D/1-PS). The variance of the time of a flow
    that takes x alone is 2 / (1 - load)^2 times the integral from 0 to x of (x - t) (1 - W(t)) dt,
    with W the distribution of waiting times first come, first served ([yashkov87]); before
    the first t = x that is (1 - load) exp(load t / x) (Erlang).
    """
    waits = 0.5 - (1 - load) * (math.expm1(load) - load) / load**2
    return size / link.packets_per_s * math.sqrt(2 * waits) / (1 - load)


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


@dataclass(frozen=True)
class Sizes:
    """Flow sizes of a distribution in pieces, each uniform from `low` to `high`."""

    low: Floats
    high: Floats
    share: Floats
    """The share of flows in each piece."""

    @classmethod
    def linear(cls, points: Iterable[tuple[float, float]]) -> "Sizes":
        """Take the points (size, cumulative) of a distribution that is linear between them.

        What lies at or below the first point has exactly that size.
        """
        size, cumulative = np.array(list(points), float).T
        low = np.concatenate([size[:1], size[:-1]])
        share = np.diff(cumulative, prepend=0.0) / cumulative[-1]
        return cls(low, size, share)

    @classmethod
    def sampled(cls, sizes: npt.ArrayLike) -> "Sizes":
        """Take flows as they are, all equally likely."""
        sorted_sizes = np.sort(np.asarray(sizes, float))
        return cls(sorted_sizes, sorted_sizes, np.full(len(sorted_sizes), 1 / len(sorted_sizes)))

    @property
    def mean(self) -> float:
        """The mean size."""
        return float(self.moments(1))

    def moments(self, power: int, up_to: npt.ArrayLike = math.inf) -> Floats:
        """Return the mean over all flows of size ** power, counting only flows up to `up_to`."""
        bounds = np.asarray(up_to, float)
        whole = self.share * _mean_power(self.low, self.high, power)
        sums = np.concatenate([[0.0], np.cumsum(whole)])
        # Pieces are in order: those that end below a bound count in full, the next one in part.
        full = np.searchsorted(self.high, bounds, side="right")
        next_one = np.minimum(full, len(self.low) - 1)
        low, high = self.low[next_one], self.high[next_one]
        cut = (low < bounds) & (bounds < high)
        end = np.where(cut, bounds, high)
        part = self.share[next_one] * (end - low) / np.where(cut, high - low, 1)
        rest = part * _mean_power(low, end, power)
        total: Floats = sums[full] + np.where(cut, rest, 0.0)
        return total


def _mean_power(low: Floats, high: Floats, power: int) -> Floats:
    """Return the mean of x ** power between bounds, or at the one where they are equal."""
    width = np.where(high > low, high - low, 1.0)
    if power == -1:
        between = np.log(high / low) / width
    else:
        between = (high ** (power + 1) - low ** (power + 1)) / ((power + 1) * width)
    found: Floats = np.where(high > low, between, low**power)
    return found


def priority_queues(
    load: float, sizes: Sizes, thresholds: npt.ArrayLike = (), packet: float = 0.0
) -> float:
    """Return the mean over flows of completion time over transmission time ([pfabric13]).

    Flows up to the first threshold go to the first of strict-priority queues, and so on; without
    thresholds there is one queue. Within a queue flows are served in order (M/G/1), at the mean
    rate that the queues before it leave: that is an approximation. With a `packet` what is being
    sent is finished first, a packet at a time.
    """
    bounds = np.concatenate([[0.0], np.sort(np.asarray(thresholds, float)), [math.inf]])
    return float(_queue_adds(load, sizes, bounds[:-1], bounds[1:], packet).sum())


def best_thresholds(load: float, sizes: Sizes, queues: int, points: int = 400) -> Floats:
    """Return the thresholds between so many priority queues that make `priority_queues` least."""
    grid = np.geomspace(sizes.low[0], sizes.high[-1], points)
    best = _best_of(load, sizes, queues, grid)
    # Once more, on a grid that is fine around what has been found.
    step = grid[1] / grid[0]
    finer = [np.geomspace(one / step, one * step, points // max(queues - 1, 1)) for one in best]
    return _best_of(load, sizes, queues, np.unique(np.concatenate([*finer, [sizes.high[-1]]])))


def _best_of(load: float, sizes: Sizes, queues: int, grid: Floats) -> Floats:
    """Choose from a grid by dynamic programming: what a queue adds depends on its bounds alone."""
    bounds = np.concatenate([[0.0], grid[:-1], [math.inf]])
    adds = _queue_adds(load, sizes, bounds[:, None], bounds[None, :])
    adds = np.where(bounds[:, None] < bounds[None, :], adds, math.inf)
    totals, choices = adds[0], []
    for _ in range(queues - 1):
        through = totals[:, None] + adds
        choices.append(through.argmin(axis=0))
        totals = through.min(axis=0)
    place, chosen = len(bounds) - 1, []
    for choice in reversed(choices):
        place = choice[place]
        chosen.append(bounds[place])
    return np.array(chosen[::-1])


def _queue_adds(
    load: float, sizes: Sizes, lower: Floats, upper: Floats, packet: float = 0.0
) -> Floats:
    """Return what a queue for flows between two bounds adds to the mean; bounds are broadcast."""

    def within(power: int) -> Floats:
        return sizes.moments(power, upper) - sizes.moments(power, lower)

    before, until = (load * sizes.moments(1, bound) / sizes.mean for bound in (lower, upper))
    rate = 1 - before
    work = load / sizes.mean * within(2) + (load - until) * packet
    waiting = work / (2 * rate * (1 - until))
    return within(0) / rate + waiting * within(-1)


def late_by_start_up(
    alone_s: npt.ArrayLike, start_up_s: npt.ArrayLike, mean_s: float, slack: float
) -> Floats:
    """Return which share of flows a start-up makes late on an idle network ([pfabric13]).

    Deadlines are exponential, but never shorter than `slack` times what a flow takes alone.
    """
    alone = np.asarray(alone_s, float)
    needed = alone + np.asarray(start_up_s, float)
    return np.where(needed > slack * alone, -np.expm1(-needed / mean_s), 0.0)
