"""Folded traces: the flows to some racks, with new senders at the distance of the old ones.

Racks may differ in load, so those kept are chosen such that their traffic is distributed as that of
all racks; they form new pods. A flow whose target is kept stays, with start and size: the links to
a kept host carry what they carried, where most queues are. Beyond its rack it takes the sender of a
flow of about its size that a kept host sends to the same distance, each as equally often as
possible. (Draws by the bytes that hosts send would take all flows from the hosts that happen to
send a few large ones.) Flows that start together for one target (`incasts`) have new senders, as
many as before.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from sojourn._core import ScenarioError
from sojourn.base.errors import FewHostsError
from sojourn.scale.incasts import ALONE, fan_in, incasts
from sojourn.scale.network import Hosts, Network
from sojourn.scenario.encoding import trace
from sojourn.scenario.reading import Scenario

DRAWS = 400
"""Most draws of racks, of which the one most like the whole is taken."""

DIVERSITY = 20
"""Combinations of racks for each draw: of few, the best would be the same in all samples."""

FEW_COMBINATIONS = 20
"""Combinations of racks below which samples are nearly the same."""

UNEVEN = 0.05
"""Largest difference of the bytes that kept racks receive from the mean, as a share of it."""

OUTSTANDING = 1.25
"""Traffic of the most loaded rack, as a multiple of the mean, from which it is always kept."""

SWAPS, REACH = 20, 50
"""Rounds of swaps of senders, and the largest distance of two flows that swap, by rank of size."""

DEADLINE = "deadline_s"
"""Column of a trace with the deadlines of flows."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class FoldedTrace:
    """A trace of a part of a network, and the traffic of whole and part."""

    text: str
    loads: tuple[dict[str, float], dict[str, float]]
    """Mean utilisation of each tier of links, whole and folded."""
    partners: tuple[float, float]
    """Share of a rack's bytes to others that its largest partner at each distance receives, and
    with targets drawn anew: means over racks of the whole, weighted by bytes."""
    combinations: int
    """Number of combinations of racks from which those kept are drawn."""
    fan_in: int
    """Most senders that start together for one host of the whole; 0 if none do."""


def columns_of_trace(text: str) -> list[str]:
    """Return the names of the columns of a trace, in its first line without `#`."""
    header = next((line for line in text.splitlines() if not line.startswith("#")), "")
    return [name.strip() for name in header.split(",")]


def fold_trace(
    scenario: Scenario, whole: Network, part: Network, seed: int, rtt_s: float
) -> FoldedTrace:
    """Return the trace of a scenario for a part of its network; `seed` chooses racks and senders.

    `rtt_s` is the base RTT of the network in seconds. Raises `ScenarioError` for an invalid trace,
    for flows that start after others, and if no flow is kept.
    """
    text = scenario["workload"]["file"]["text"]
    if "after" in columns_of_trace(text):
        raise ScenarioError("workload.file: flows `after` others do not fold")
    columns = trace(scenario)
    flows = columns["flows"]
    if not len(flows["start_s"]):
        raise ScenarioError("workload.file: has no flow that starts before `time_limit`")
    groups = incasts(flows, rtt_s, whole.rates["access"])
    folding = _TraceFolding(whole, part, flows, groups, np.random.default_rng(seed))
    kept = folding.folded()
    if not kept.height:
        raise FewHostsError(
            "hosts: the fold would have no flows of the trace, since its racks do not receive any"
        )
    rows = kept["row"].to_numpy()
    sizes, starts = flows["size_bytes"], flows["start_s"]
    classes = np.array(columns["classes"], dtype=object)
    table = pl.DataFrame(
        {
            "start_s": starts[rows],
            "source": kept["source"],
            "target": kept["target"],
            "size_bytes": sizes[rows],
            "class": classes[flows["class"][rows]].tolist(),
            DEADLINE: flows[DEADLINE][rows],
        }
    )
    # A trace without this column has no deadlines.
    table = table.with_columns(pl.col(DEADLINE).fill_nan(None))
    table = table if table[DEADLINE].count() else table.drop(DEADLINE)
    seconds = float(np.ptp(starts)) or 1.0
    loads = (
        _loads(whole, folding.sources, folding.targets, sizes, seconds),
        _loads(part, kept["source"].to_numpy(), kept["target"].to_numpy(), sizes[rows], seconds),
    )
    # Twelve decimals are picoseconds, the resolution of the core's clock.
    text = table.write_csv(float_precision=12)
    partners = _partners(whole, folding.sources, folding.targets, sizes)
    most = fan_in(groups, folding.sources)
    return FoldedTrace(text, loads, partners, folding.combinations, most)


def _loads(
    network: Network, sources: Hosts, targets: Hosts, sizes: Floats, seconds: float
) -> dict[str, float]:
    bits, total = 8 * sizes, 8 * float(sizes.sum())
    distances = network.distances(sources, targets)
    by_distance = [float(bits[distances == place].sum()) / total for place in range(3)]
    shares = [
        share
        for share, number in zip(by_distance, network.all_hosts_by_distance, strict=True)
        if number
    ]
    return network.utilisations(total / seconds / network.hosts, shares)


def _partners(
    network: Network, sources: Hosts, targets: Hosts, sizes: Floats
) -> tuple[float, float]:
    """Return `FoldedTrace.partners`; drawn targets are at the distances of those of the trace."""
    random = np.random.default_rng(0)
    flows = pl.DataFrame(
        {
            "source": sources // network.hosts_per_rack,
            "target": targets // network.hosts_per_rack,
            "bytes": sizes,
            "distance": network.distances(sources, targets),
        }
    ).filter(pl.col("distance") > 0)
    pod = pl.col("source") // network.racks
    # Targets within a pod are drawn in this pod, and others in all pods.
    flows = flows.with_columns(group=pl.when(pl.col("distance") == 1).then(pod).otherwise(-1))
    drawn = flows.with_columns(order=random.permutation(flows.height)).with_columns(
        pl.col("target").sort_by("order").over("group")
    )
    is_beyond_pod = pl.col("target") // network.racks != pod
    drawn = drawn.filter(
        pl.col("target") != pl.col("source"), (pl.col("distance") == 1) | is_beyond_pod
    )
    return _largest_share(flows), _largest_share(drawn)


def _largest_share(flows: pl.DataFrame) -> float:
    """Return the share of bytes that go from each rack to its largest partner at each distance."""
    pairs = flows.group_by("distance", "source", "target").agg(pl.col("bytes").sum())
    racks = pairs.group_by("distance", "source").agg(pl.col("bytes").sum(), most=pl.max("bytes"))
    return float(racks["most"].sum()) / float(racks["bytes"].sum() or 1.0)


class _TraceFolding:
    """Choice of racks, and of the flows between them."""

    def __init__(
        self,
        whole: Network,
        part: Network,
        flows: Mapping[str, Any],
        groups: Hosts,
        random: np.random.Generator,
    ) -> None:
        self._whole, self._part, self._random = whole, part, random
        self.sources: Hosts = flows["source"].astype(np.int64)
        self.targets: Hosts = flows["target"].astype(np.int64)
        self._groups, self._are_together = groups, groups != ALONE
        hosts, sizes = whole.hosts, flows["size_bytes"].astype(np.float64)
        self._sizes: Floats = sizes
        self._sent: Floats = np.bincount(self.sources, sizes, hosts).astype(np.float64)
        self._received: Floats = np.bincount(self.targets, sizes, hosts).astype(np.float64)
        racks = self._choose_racks()
        # By host of the whole: its number in the part, or -1; by host of the part: the old one.
        of_rack = whole.hosts_per_rack
        self._old = (racks[:, None] * of_rack + np.arange(of_rack)).ravel()
        self._new = np.full(hosts, -1)
        self._new[self._old] = np.arange(len(self._old))

    def _choose_racks(self) -> Hosts:
        """Return the racks that are kept, in random order."""
        whole, number = self._whole, self._part.pods * self._part.racks
        racks = whole.pods * whole.racks
        sent, received = (
            host.reshape(racks, -1).sum(axis=1) for host in (self._sent, self._received)
        )
        order = np.argsort(sent + received, kind="stable")
        quantiles = np.linspace(0, 1, 21)
        loads = [load / max(load.mean(), 1e-300) for load in (sent, received)]
        spreads = [np.quantile(load, quantiles) for load in loads]
        tiers = [load / load.mean() for load in self._received_beyond(racks) if load.any()]
        most = (sent + received)[order[-1]] / max((sent + received).mean(), 1e-300)
        draws = self._draws(racks, number, is_kept=most >= OUTSTANDING)
        enough = min(DRAWS, max(1, self.combinations // DIVERSITY))
        best, least, accepted = order[:number], (True, np.inf), 0
        for places in draws:
            drawn = order[places]
            score = sum(
                abs(load[drawn].mean() - 1)
                + np.abs(np.quantile(load[drawn], quantiles) - spread).mean()
                for load, spread in zip(loads, spreads, strict=True)
            )
            is_uneven = any(abs(load[drawn].mean() - 1) > UNEVEN for load in tiers)
            if (is_uneven, score) < least:
                best, least = drawn, (is_uneven, score)
            accepted += not is_uneven
            if accepted == enough:
                break
        return self._random.permutation(best)

    def _draws(self, racks: int, number: int, *, is_kept: bool) -> Hosts:
        """Return places of racks in the order of traffic: draws with one of each stratum of it.

        The last is the most loaded one if `is_kept`. Counts the possible combinations.
        """
        places = (self._random.uniform(size=(DRAWS, number)) + np.arange(number)) * racks / number
        bounds = np.arange(number + 1) * racks / number
        sizes = np.ceil(bounds[1:]).astype(int) - np.floor(bounds[:-1]).astype(int)
        if is_kept:
            places[:, -1] = racks - 1
            sizes[-1] = 1
        self.combinations = math.prod(map(int, sizes))
        # Strata may share a rack at their bound, of which one takes the next.
        least = places.astype(np.int64) - np.arange(number)
        distinct = np.minimum(np.maximum.accumulate(least, axis=1), racks - number)
        drawn: Hosts = distinct + np.arange(number)
        return drawn

    def _received_beyond(self, racks: int) -> list[Floats]:
        """Return the bytes that each rack receives: all, from beyond the rack, and the pod."""
        distances = self._whole.distances(self.sources, self.targets)
        of_flows = self.targets // self._whole.hosts_per_rack
        beyond = [np.where(distances >= least, self._sizes, 0.0) for least in range(3)]
        return [np.bincount(of_flows, sizes, racks).astype(np.float64) for sizes in beyond]

    def folded(self) -> pl.DataFrame:
        """Return the kept flows in order: `row` in the trace, new `source` and `target`."""
        rows = np.flatnonzero(self._new[self.targets] >= 0)
        targets = self._new[self.targets[rows]]
        together = self._are_together[rows]
        sources = np.empty_like(targets)
        sources[~together] = self._senders(rows[~together], targets[~together])
        sources[together] = self._senders_together(rows[together], targets[together])
        return pl.DataFrame({"row": rows, "source": sources, "target": targets})

    def _senders(self, rows: Hosts, targets: Hosts) -> Hosts:
        """Return a sender for each flow, at the distance that it has in the whole."""
        distances = self._whole.distances(self.sources, self.targets)
        of_flows = distances[rows]
        senders: Hosts = self._new[self.sources[rows]]
        sent = np.flatnonzero(~self._are_together & (self._new[self.sources] >= 0))
        of_sent = distances[sent]
        hosts_per_pod = self._part.racks * self._part.hosts_per_rack
        for pod in range(self._part.pods):
            flows = np.flatnonzero((of_flows == 1) & (targets // hosts_per_pod == pod))
            offered = sent[of_sent == 1]
            offered = offered[self._new[self.sources[offered]] // hosts_per_pod == pod]
            senders[flows] = self._matched(rows[flows], targets[flows], offered, 1)
        flows = np.flatnonzero(of_flows == 2)
        offered = sent[of_sent == 2]
        senders[flows] = self._matched(rows[flows], targets[flows], offered, 2)
        return senders

    def _matched(self, rows: Hosts, targets: Hosts, offered: Hosts, distance: int) -> Hosts:
        """Return for each flow the sender of one of the `offered` flows of about its size."""
        if not len(offered):
            candidates = (self._candidates(int(host), distance) for host in targets)
            drawn = [self._random.choice(hosts, p=odds) for hosts, odds in candidates]
            return np.array(drawn, dtype=np.int64)
        by_size = np.argsort(self._sizes[rows], kind="stable")
        offered = offered[np.argsort(self._sizes[offered], kind="stable")]
        places = np.arange(len(rows)) * len(offered) // max(1, len(rows))
        taken: Hosts = self._new[self.sources[offered[places]]]
        receivers = targets[by_size]
        # Flows whose sender is at another distance in the part swap senders with near ones.
        for _ in range(SWAPS):
            wrong = np.flatnonzero(self._part.distances(receivers, taken) != distance)
            if not len(wrong):
                break
            for one in map(int, wrong):
                low, high = max(0, one - REACH), min(len(taken), one + REACH + 1)
                other = int(self._random.integers(low, high))
                taken[one], taken[other] = taken[other], taken[one]
        for one in map(int, np.flatnonzero(self._part.distances(receivers, taken) != distance)):
            hosts, odds = self._candidates(int(receivers[one]), distance)
            taken[one] = self._random.choice(hosts, p=odds)
        senders: Hosts = np.empty_like(taken)
        senders[by_size] = taken
        return senders

    def _senders_together(self, rows: Hosts, targets: Hosts) -> Hosts:
        """Return senders for flows of groups, as many at each distance as a group had."""
        sources = np.empty_like(targets)
        distances = self._whole.distances(self.sources[rows], self.targets[rows])
        table = pl.DataFrame({"group": self._groups[rows]}).with_row_index()
        for _, group in table.group_by("group", maintain_order=True):
            members = group["index"].to_numpy()
            for distance in np.unique(distances[members]):
                of_distance = members[distances[members] == distance]
                senders, places = np.unique(self.sources[rows[of_distance]], return_inverse=True)
                target = int(targets[of_distance[0]])
                hosts, odds = self._candidates(target, int(distance))
                if len(senders) > np.count_nonzero(odds):
                    raise FewHostsError(
                        "hosts: the fold has fewer senders than start together for one host"
                    )
                drawn = self._random.choice(hosts, len(senders), replace=False, p=odds)
                sources[of_distance] = drawn[places]
        return sources

    def _candidates(self, host: int, distance: int) -> tuple[Hosts, Floats]:
        """Return the hosts of the part at a distance of one, and their probabilities as senders."""
        others = np.arange(self._part.hosts)
        hosts = others[
            (self._part.distances(np.full_like(others, host), others) == distance)
            & (others != host)
        ]
        odds = self._sent[self._old[hosts]]
        # Hosts that never send may be the only ones at a distance.
        odds = odds if odds.sum() else np.ones(len(hosts))
        return hosts, odds / odds.sum()
