"""Closed forms of completion times on one link under one effect at a time.

Sizes are in packets, times in seconds. If a link has an RTT, the FCT begins with the SYN, as in
[rcp06]: one RTT for the handshake, and half an RTT for the propagation of the last packet. The
model of priority queues ([pfabric13]) has no RTT: an FCT is queueing and transmission.
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
"""RTTs of every flow: one for the handshake, half of one for the last packet."""


@dataclass(frozen=True)
class Link:
    """The only link, between all sources and all sinks."""

    rate_bps: float
    rtt_s: float
    packet_bytes: float = 1000
    """Size of a full packet with headers."""

    @property
    def packets_per_s(self) -> float:
        """Capacity of the link in packets per second."""
        return self.rate_bps / (8 * self.packet_bytes)

    @property
    def bandwidth_delay(self) -> float:
        """Bandwidth-delay product in packets."""
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
        difference = size**power - self.least**power
        return float(self.shape * self.least**self.shape * difference / power)


def arrivals_per_s(link: Link, mean_size: float, load: float) -> float:
    """Return the rate of flow starts, per second, that offers `load`."""
    return load * link.packets_per_s / mean_size


def in_progress(per_s: float, mean_fct_s: float) -> float:
    """Return the mean number of flows in progress, by Little's law."""
    return per_s * mean_fct_s


def processor_sharing(link: Link, load: float, sizes: npt.ArrayLike) -> Floats:
    """Return the mean completion time of flows of given sizes under processor sharing.

    Arrivals are Poisson; only the mean of the size distribution has an effect (M/G/1-PS).
    """
    return SHAKEN * link.rtt_s + np.asarray(sizes, float) / (link.packets_per_s * (1 - load))


def processor_sharing_deviation(link: Link, load: float, size: float) -> float:
    """Return the standard deviation of FCTs under processor sharing, if all flows have one size.

    Arrivals are Poisson (M/D/1-PS). The variance of the FCT of a flow with transmission time x is
    2 / (1 - load)^2 times the integral from 0 to x of (x - t) (1 - W(t)) dt, where W is the
    distribution of FCFS waiting times ([yashkov87]); up to t = x, W is (1 - load) exp(load t / x)
    (Erlang).
    """
    waits = 0.5 - (1 - load) * (math.expm1(load) - load) / load**2
    return size / link.packets_per_s * math.sqrt(2 * waits) / (1 - load)


def slow_start(link: Link, sizes: npt.ArrayLike, initial_window: int = 1) -> Floats:
    """Return the completion time of flows that remain in slow start to their end, by [rcp06].

    For L packets and an initial window w, it is ceil(log2(L / w + 1)) + 1/2 RTTs, and L / C. This
    is an upper bound on an idle link: only the packets of the last round add their transmission
    times. Those of earlier rounds are sent while the sender waits for ACKs.
    """
    packets = np.asarray(sizes, float)
    rounds = np.ceil(np.log2(packets / initial_window + 1))
    return (rounds + 0.5) * link.rtt_s + packets / link.packets_per_s


def slow_start_mean(link: Link, sizes: Pareto, initial_window: int = 1) -> float:
    """Return the mean of `slow_start` over sizes that are rounded up to whole packets."""
    # A flow needs more than n rounds if it is larger than the sum of the first n windows.
    rounds = sum(sizes.above(initial_window * (2**n - 1)) for n in range(64))
    return (rounds + 0.5) * link.rtt_s + sizes.mean / link.packets_per_s


def srpt(link: Link, load: float, sizes: Pareto, at: npt.ArrayLike) -> Floats:
    """Return the mean completion time of flows of sizes `at` under SRPT ([schrage66]).

    SRPT serves the flow with the shortest remaining size. Arrivals are Poisson (M/G/1-SRPT).
    """
    response = _srpt_response(load, sizes)
    packets = [response(float(size)) for size in np.atleast_1d(np.asarray(at, float))]
    return SHAKEN * link.rtt_s + np.array(packets) / link.packets_per_s


def srpt_mean(link: Link, load: float, sizes: Pareto) -> float:
    """Return the mean of `srpt` over all flows.

    With a heavy tail, flows too rare for a simulation of a million flows contribute much of it.
    """
    response = _srpt_response(load, sizes)

    # Integrates over the logarithm of the size, whose density is exponential.
    def weighted(logarithm: float) -> float:
        return response(sizes.least * math.exp(logarithm)) * math.exp(-sizes.shape * logarithm)

    total = sizes.shape * _integral(weighted, 0, math.log(1e12))
    return SHAKEN * link.rtt_s + total / link.packets_per_s


def _srpt_response(load: float, sizes: Pareto) -> Callable[[float], float]:
    """Return the mean response time as a function of size, in packet transmission times."""
    arrivals = load / sizes.mean

    def load_below(size: float) -> float:
        return arrivals * sizes.work_below(size)

    def service_density(logarithm: float) -> float:
        size = math.exp(logarithm)
        return size / (1 - load_below(size))

    def response(size: float) -> float:
        second_moment = sizes.squares_below(size) + size**2 * sizes.above(size)
        waiting = arrivals * second_moment / (2 * (1 - load_below(size)) ** 2)
        uninterrupted = min(size, sizes.least)
        service = uninterrupted + _integral(
            service_density, math.log(uninterrupted), math.log(size)
        )
        return waiting + service

    return response


def _integral(function: Callable[[float], float], low: float, high: float) -> float:
    result: Any = integrate.quad(function, low, high, limit=200)
    return float(result[0])


@dataclass(frozen=True)
class Sizes:
    """Piecewise uniform distribution of flow sizes, with pieces from `low` to `high`."""

    low: Floats
    high: Floats
    share: Floats
    """The share of flows in each piece."""

    @classmethod
    def linear(cls, points: Iterable[tuple[float, float]]) -> "Sizes":
        """Create a distribution from points (size, cumulative), linear between them.

        The share at the first point has exactly that size.
        """
        size, cumulative = np.array(list(points), float).T
        low = np.concatenate([size[:1], size[:-1]])
        share = np.diff(cumulative, prepend=0.0) / cumulative[-1]
        return cls(low, size, share)

    @classmethod
    def sampled(cls, sizes: npt.ArrayLike) -> "Sizes":
        """Create the empirical distribution of sizes."""
        sorted_sizes = np.sort(np.asarray(sizes, float))
        return cls(sorted_sizes, sorted_sizes, np.full(len(sorted_sizes), 1 / len(sorted_sizes)))

    @property
    def mean(self) -> float:
        """The mean size."""
        return float(self.moments(1))

    def moments(self, power: int, up_to: npt.ArrayLike = math.inf) -> Floats:
        """Return the mean over all flows of size ** power, counting only flows up to `up_to`."""
        bounds = np.asarray(up_to, float)
        terms = self.share * _mean_power(self.low, self.high, power)
        sums = np.concatenate([[0.0], np.cumsum(terms)])
        # Pieces are in order: those that end below a bound count in full, the next one in part.
        full = np.searchsorted(self.high, bounds, side="right")
        partial = np.minimum(full, len(self.low) - 1)
        low, high = self.low[partial], self.high[partial]
        is_cut = (low < bounds) & (bounds < high)
        end = np.where(is_cut, bounds, high)
        share = self.share[partial] * (end - low) / np.where(is_cut, high - low, 1)
        rest = share * _mean_power(low, end, power)
        total: Floats = sums[full] + np.where(is_cut, rest, 0.0)
        return total


def _mean_power(low: Floats, high: Floats, power: int) -> Floats:
    """Return the mean of x ** power between bounds; if they are equal, its value there."""
    width = np.where(high > low, high - low, 1.0)
    if power == -1:
        mean = np.log(high / low) / width
    else:
        mean = (high ** (power + 1) - low ** (power + 1)) / ((power + 1) * width)
    result: Floats = np.where(high > low, mean, low**power)
    return result


def priority_queues(
    load: float, sizes: Sizes, thresholds: npt.ArrayLike = (), packet: float = 0.0
) -> float:
    """Return the mean over flows of completion time over transmission time ([pfabric13]).

    Flows up to the first threshold enter the first strict-priority queue, and so on; without
    thresholds there is one queue. Each queue is FCFS (M/G/1), served at the mean rate that queues
    of higher priority leave, which is an approximation. With `packet` (the size of a packet), a
    packet in transmission is not preempted.
    """
    bounds = np.concatenate([[0.0], np.sort(np.asarray(thresholds, float)), [math.inf]])
    return float(_queue_terms(load, sizes, bounds[:-1], bounds[1:], packet).sum())


def best_thresholds(load: float, sizes: Sizes, queues: int, points: int = 400) -> Floats:
    """Return the thresholds of `queues` priority queues that minimise `priority_queues`."""
    grid = np.geomspace(sizes.low[0], sizes.high[-1], points)
    best = _best_of(load, sizes, queues, grid)
    # The second search uses a grid that is finer around the thresholds of the first.
    step = grid[1] / grid[0]
    count = points // max(queues - 1, 1)
    finer = [np.geomspace(threshold / step, threshold * step, count) for threshold in best]
    return _best_of(load, sizes, queues, np.unique(np.concatenate([*finer, [sizes.high[-1]]])))


def _best_of(load: float, sizes: Sizes, queues: int, grid: Floats) -> Floats:
    """Choose thresholds from a grid by dynamic programming: terms depend on a queue's bounds."""
    bounds = np.concatenate([[0.0], grid[:-1], [math.inf]])
    terms = _queue_terms(load, sizes, bounds[:, None], bounds[None, :])
    terms = np.where(bounds[:, None] < bounds[None, :], terms, math.inf)
    totals, choices = terms[0], []
    for _ in range(queues - 1):
        sums = totals[:, None] + terms
        choices.append(sums.argmin(axis=0))
        totals = sums.min(axis=0)
    index, thresholds = len(bounds) - 1, []
    for choice in reversed(choices):
        index = choice[index]
        thresholds.append(bounds[index])
    return np.array(thresholds[::-1])


def _queue_terms(
    load: float, sizes: Sizes, lower: Floats, upper: Floats, packet: float = 0.0
) -> Floats:
    """Return the terms of the mean by queues with size bounds `lower` and `upper` (broadcast)."""

    def within(power: int) -> Floats:
        return sizes.moments(power, upper) - sizes.moments(power, lower)

    load_below, load_through = (
        load * sizes.moments(1, bound) / sizes.mean for bound in (lower, upper)
    )
    rate = 1 - load_below
    work = load / sizes.mean * within(2) + (load - load_through) * packet
    waiting = work / (2 * rate * (1 - load_through))
    return within(0) / rate + waiting * within(-1)


def late_by_start_up(
    alone_s: npt.ArrayLike, start_up_s: npt.ArrayLike, mean_s: float, slack: float
) -> Floats:
    """Return the share of flows that miss deadlines by their start-up on an idle network.

    Deadlines are exponential with mean `mean_s`, and at least `slack` times the ideal FCT,
    `alone_s` ([pfabric13]). `start_up_s` is added to the ideal FCT.
    """
    ideal_fct = np.asarray(alone_s, float)
    fct = ideal_fct + np.asarray(start_up_s, float)
    return np.where(fct > slack * ideal_fct, -np.expm1(-fct / mean_s), 0.0)
