"""Incasts of a trace: flows from several senders to one host that start together.

Starts that are equal in a model differ in a measured trace, by the jitter of hosts. Flows start
together if the start of each follows that of another to the same host within a few base RTTs,
before senders have reacted to the first ones and the link of the host has drained them. Independent
flows do so, too, so that only groups count that random starts rarely give: with Poisson arrivals at
the mean rate of each host, groups as unlikely as those found would have at most the share `CHANCE`
of their flows (the false discovery rate of Benjamini and Hochberg, 1995). Shorter gaps are rarer,
so that they need fewer senders, and equal starts need two.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from sojourn.base.units import parse_rate, parse_size, parse_time
from sojourn.scale.network import LEAF_SPINE, Hosts

CHANCE = 0.05
"""Largest expected share of the flows of groups that only chance put there."""

GAPS = (4.0, 1.0, 1 / 4, 1 / 16, 0.0)
"""Longest gaps between consecutive starts of a group, in base RTTs.

With one base RTT (10 us) instead of four, means were 12 instead of 7 % too low where the starts of
32 senders differ by up to 200 us.
"""

MOST_BUSY = 0.5
"""Flows that a host receives in a gap, on average, above which runs are long in any busy time."""

SHORT = 100
"""Time in base RTTs below which a trace may be a single burst."""

ALONE = -1
"""Group of a flow that starts together with no other."""

Floats = npt.NDArray[np.float64]


def base_rtt_s(complete: Mapping[str, Any]) -> float:
    """Return the longest base RTT in seconds of a network that folds.

    `complete` is a scenario with all defaults. The delays of all links of a path in both
    directions, and the time of a full packet on each; an ACK takes no time.
    """
    topology, packet = complete["topology"], complete["packet"]
    tiers = ("host", "fabric") if topology["kind"] == LEAF_SPINE else ("host", "fabric", "core")
    bits = 8 * (parse_size(packet["payload"]) + parse_size(packet["header"]))
    seconds = 0.0
    for tier in tiers:
        delay, rate = (
            topology[f"{tier}_{name}"] if f"{tier}_{name}" in topology else topology[name]
            for name in ("delay", "rate")
        )
        seconds += 4 * parse_time(delay) + 2 * bits / parse_rate(rate)
    return seconds


def incasts(flows: Mapping[str, Any], rtt_s: float, access_bps: float) -> Hosts:
    """Return the number of the group with which each flow starts together, or `ALONE`.

    `flows` has columns as those of flow records, `rtt_s` is the base RTT in seconds, and
    `access_bps` the rate of a host's link in bits per second.
    """
    starts = flows["start_s"]
    sources, targets = (flows[name].astype(np.int64) for name in ("source", "target"))
    groups = np.full(len(starts), ALONE)
    if not len(starts):
        return groups
    # A trace may be one burst, of which a host receives no more than its link carries.
    drained = 8 * np.bincount(targets, flows["size_bytes"]) / access_bps
    seconds = np.maximum(np.ptp(starts), np.minimum(drained, SHORT * rtt_s))
    rates = np.bincount(targets) / np.maximum(seconds, 1e-12)
    order = np.lexsort((starts, targets))
    is_first = np.diff(targets[order], prepend=-1) != 0
    gaps = np.diff(starts[order], prepend=0.0)
    number = 0
    for gap in GAPS:
        runs = np.empty_like(groups)
        runs[order] = np.cumsum(is_first | (gaps > gap * rtt_s))
        senders = _senders(runs, sources)
        is_group = _is_rare(senders[runs], (rates * gap * rtt_s)[targets])
        # A run of short gaps is part of a run of longer ones, which may be a group already.
        found = is_group & (groups == ALONE)
        groups[found] = runs[found] + number
        number += len(senders)
    return groups


def fan_in(groups: Hosts, sources: Hosts) -> int:
    """Return the senders of the largest group, or 0 without groups."""
    is_group = groups != ALONE
    return int(_senders(groups[is_group], sources[is_group]).max(initial=0))


def _senders(groups: Hosts, sources: Hosts) -> Hosts:
    """Return the number of distinct senders by group."""
    # Most flows are alone, and need no search for equal senders.
    flows = np.bincount(groups)
    has_others = flows[groups] > 1
    table = pl.DataFrame({"group": groups[has_others], "source": sources[has_others]})
    several = np.bincount(table.unique()["group"].to_numpy(), minlength=len(flows))
    return np.where(flows > 1, several, flows)


def _is_rare(senders: Hosts, expected: Floats) -> npt.NDArray[np.bool_]:
    """Return true for flows of runs that random starts rarely give.

    Runs have this number of senders, and hosts `expected` arrivals in a gap.
    """
    # An arrival follows within the gap with probability p, so that lengths of runs are geometric,
    # and a flow is in a run of k or more with probability p^(k - 1) (k - (k - 1) p).
    p = -np.expm1(-expected)
    others = senders - 1
    chances = np.where(expected > MOST_BUSY, 1.0, p**others * (senders - others * p))
    ranked = np.sort(chances)
    is_few = ranked <= CHANCE * np.arange(1, len(ranked) + 1) / len(ranked)
    are_rare: npt.NDArray[np.bool_] = chances <= ranked[is_few].max(initial=-1.0)
    return are_rare
