"""Folded networks: some racks or pods of a network, with the traffic that they have in the whole.

Every link keeps its rate, every tier its oversubscription and every path its hops. A host sends as
much as in the whole and to each distance as much as there, so that every class of links carries
what it carried; only some kinds of switches have fewer ports. A folded scenario is an ordinary
scenario.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sojourn._core import ScenarioError
from sojourn.base.errors import FewHostsError, FoldHostsError
from sojourn.base.units import count
from sojourn.scale.buffers import kinds_in_words, with_fewer_ports
from sojourn.scale.incasts import base_rtt_s
from sojourn.scale.network import (
    ENOUGH_PODS,
    ENOUGH_RACKS,
    FAT_TREE,
    MANY_PODS,
    Network,
    read_network,
    sprays,
)
from sojourn.scale.workload import LARGEST_ERROR, Folding, table
from sojourn.scenario.encoding import Prepared
from sojourn.scenario.fidelity import FIELD, FLOWS, PACKETS, RECORDS, Fidelity, read
from sojourn.scenario.fields import parts_of
from sojourn.scenario.reading import Scenario, ScenarioLike, with_files

LEAST_HOSTS, LEAST_RACKS = 64, 4
"""Smallest fold, unless the network itself is smaller."""

LARGEST_ERROR_OF_TRACES = 0.1
"""`LARGEST_ERROR`, where the racks of a trace differ."""

LARGEST_ERROR_FOR_LAWS = 1.0
"""`LARGEST_ERROR_OF_TRACES` if a law is learnt from the fold, which has ratios of each load.

A few racks with the hottest among them receive more than the mean: 1.5 times as much in 16 of 256
racks with lognormal loads.
"""

STEP = 1.1
"""Ratio of consecutive numbers of hosts of which one is sought that suffices."""

FEW = 2
"""Racks in a pod, or pods, with which overloads differ from those of more."""

NEARLY_MOST_LOADED = 0.8
"""Utilisation of the core or of the fabric, as a share of that of the most loaded tier, from which
it needs the queues of the whole."""

MOSTLY_WITHIN_PODS = 0.6
"""Share of the traffic beyond racks that stays in pods from which two racks of a pod are too few:
means of folds were 0 to 1 % off at 0.25 and 0.5, 3 % too low at 0.75, and 16 % too low at 0.95."""

OVERSUBSCRIBED = 1.5
"""Utilisation of links to the core, as a multiple of that of access links, from which the flows of
few pods share too many of them."""

LARGEST_LOAD, SLOW = 0.3, 2.0
"""Utilisation of core or fabric, and their rate as a multiple of that of hosts, at which two pods
or racks are refused if these are the most loaded tier: means were 10 % too low at the first with
cores as fast as hosts, and 23 % at a load of 0.7 with the second."""

OF_SINGLE_LINKS = ("failures", "degraded_links", "rate_traces")
"""Fields of a scenario that concern single links, which a fold may lack."""

PATHS = "a flow's path is drawn anew, so that single collisions of ECMP differ"
"""Difference of any fold from the whole network."""

CACHES = "a host has fewer peers, so that more flows find the cached RTT or ssthresh of another"
"""Difference of a fold in which hosts remember their peers."""

PARTNERS = "the racks from which a rack of a trace receives are drawn anew, at their distance"
"""Difference of any folded trace from the whole one."""


@dataclass(frozen=True)
class Folded:
    """A folded scenario, and how it differs from the whole."""

    scenario: Scenario
    hosts: int
    """Hosts of the whole network."""
    kept: int
    units: str
    """The kept racks or pods in words."""
    utilisations: Mapping[str, tuple[float, float]]
    """Expected utilisation of each tier of links with a known load: whole and folded."""
    are_alike: bool = True
    """As the function `are_alike`."""
    fan_in: int = 0
    """Most senders of an incast, or of flows of a trace that start together for one host."""
    partners: tuple[float, float] = (0.0, 0.0)
    """As `FoldedTrace.partners`; of several traces, those with the largest difference."""
    not_preserved: Sequence[str] = ()
    """Differences from the whole network in words."""
    enough: int = 0
    """Hosts of a fold with enough pods and racks, if this one has too few."""
    short: str = ""
    """Tier whose queues are too short, if this fold has too few pods or racks."""

    @property
    def share(self) -> float:
        """Share of the hosts that was kept."""
        return self.kept / self.hosts

    def lines(self) -> list[str]:
        """Return the report in lines."""
        if self.kept == self.hosts:
            return [f"{self.hosts} hosts: the network is as small as its fold"]
        loads = [
            f"{tier} {100 * whole:.1f} % (whole) and {100 * folded:.1f} % (folded)"
            for tier, (whole, folded) in self.utilisations.items()
        ]
        return [
            f"{self.kept} of {self.hosts} hosts: {self.units}",
            *([f"expected utilisation of links: {', '.join(loads)}"] if loads else []),
            *(f"not preserved: {line}" for line in self.not_preserved),
            *(
                [f"warning: {short_queues(self.units, self.short, self.enough)}"]
                if self.enough
                else []
            ),
        ]


def fold(scenario: ScenarioLike, hosts: int = Fidelity.hosts, sample: int = 0) -> Folded:
    """Return the scenario of about `hosts` hosts that stands for the given one.

    The racks of a trace differ; `sample` chooses those that are kept. Small numbers of events are
    rounded up or down, such that those of consecutive samples have the right sum. A network of at
    most `hosts` hosts is returned as it is. If the fidelity of the scenario is `flows`, links may
    carry more on average than those of the whole. Raises `ScenarioError` for a scenario that does
    not fold: a topology whose racks are not alike, links that fail or differ, or a workload that
    names hosts.
    """
    try:
        return fold_with(scenario, hosts, sample)
    except FewHostsError as error:
        enough = _enough_hosts(scenario, hosts, sample)
        raise FoldHostsError(f"{error}; keep {enough} hosts") from None


def _enough_hosts(scenario: ScenarioLike, hosts: int, sample: int) -> int:
    """Return more hosts than these with which the sample folds, and those next to it.

    The least of those that are tried, each a `STEP` larger than the one before.
    """
    whole, tried = whole_network(Prepared(_without_fidelity(scenario)).complete()), hosts
    for size in whole.sizes(hosts + 1):
        if size < min(STEP * tried, whole.hosts):
            continue
        tried = size
        try:
            for each in range(max(0, sample - 1), sample + 2):
                fold_with(scenario, size, each)
        except FoldHostsError:
            continue
        return size
    return whole.hosts


def fold_with(scenario: ScenarioLike, hosts: int, sample: int) -> Folded:
    """Return the same as `fold`, but raise `FewHostsError` if more hosts may suffice.

    Searching their number takes several folds.
    """
    for_law = read(with_files(scenario).get(FIELD, PACKETS)).kind == FLOWS
    given = _without_fidelity(scenario)
    complete = Prepared(given).complete()
    whole = whole_network(complete)
    if whole.hosts <= hosts:
        return Folded(given, whole.hosts, whole.hosts, "all", {})
    for name in OF_SINGLE_LINKS:
        if complete[name]:
            raise ScenarioError(
                f"{name}: do not fold, as they concern single links; run the scenario with packets"
            )
    _check_size(whole, hosts, complete["workload"])
    part = whole.folded(hosts)
    if part.hosts == whole.hosts:
        return Folded(given, whole.hosts, whole.hosts, "all", {})
    folded = _folded(given, complete, whole, part, sample)
    _check_loads(folded, for_law=for_law)
    least = max(LEAST_HOSTS, 2 * folded.fan_in)
    # Sprayed packets share all uplinks of a rack, and a half of these has larger fluctuations.
    # Incasts keep their senders, whose bursts are too large for fewer uplinks and receivers.
    is_divisible = folded.are_alike and not folded.fan_in and not sprays(complete["routing"])
    needs = _needs(whole, folded, is_divisible=is_divisible)
    for need in needs:
        if part.has(*need, whole):
            return folded
        better = whole.folded_with(*need, least, max(hosts, part.hosts), is_divisible=is_divisible)
        if better:
            folded = _folded(given, complete, whole, better, sample)
            _check_loads(folded, for_law=for_law)
            return folded
    if not needs:
        return folded
    short = _short_tier(whole, part, folded)
    number = whole.hosts_with(*needs[-1], least, is_divisible=is_divisible)
    if _is_refused(whole, part, folded, short):
        raise FoldHostsError(f"hosts: {short_queues(folded.units, short, number)}")
    return replace(folded, enough=number, short=short)


def whole_network(complete: Mapping[str, Any]) -> Network:
    """Return the network of a complete scenario; raise for one that does not fold."""
    has_opposites = any(map(_has_opposites, parts_of(complete["workload"])))
    return replace(read_network(complete["topology"]), has_opposites=has_opposites)


def _has_opposites(part: Mapping[str, Any]) -> bool:
    """Return true if hosts send to the opposite host in a part of the workload."""
    pairs = part.get("pattern", part).get("pairs")
    return pairs == "opposite" or part["kind"] in ("long_lived", "synchronised")


def _without_fidelity(scenario: ScenarioLike) -> Scenario:
    """Return the scenario of a run with packets in which all flows have records."""
    names = (FIELD, RECORDS)
    return {name: value for name, value in with_files(scenario).items() if name not in names}


def _check_size(whole: Network, hosts: int, workload: Mapping[str, Any]) -> None:
    """Raise an error for fewer hosts than the smallest fold has."""
    if hosts < (least := least_hosts(whole, workload)):
        is_odd = whole.has_opposites and whole.pods % 2 == 1
        parity = ", odd in number as in the whole" if is_odd else ""
        raise FoldHostsError(
            f"hosts: {hosts}: too few; a fold needs the largest of {LEAST_HOSTS} hosts, "
            f"{LEAST_RACKS} racks and twice the senders of an incast, in whole racks of equal "
            f"pods{parity}: here {least} or more"
        )


def least_hosts(whole: Network, workload: Mapping[str, Any]) -> int:
    """Return the least number of hosts for which `fold` keeps enough, in whole racks."""
    fan_in = _largest_fan_in(workload)
    least = max(LEAST_HOSTS, LEAST_RACKS * whole.hosts_per_rack, 2 * fan_in)
    least = min(least, whole.hosts)
    if whole.folded(least).hosts >= least:
        return least
    return whole.sizes(least)[0]


def _loads(whole: Network, folded: Folded) -> dict[str, float]:
    """Return the utilisation of each tier of the whole.

    Flows without a load are as fast as hosts and go to all others.
    """
    loads = {tier: load for tier, (load, _) in folded.utilisations.items()}
    return loads or whole.utilisations(whole.rates["access"], whole.uniform_shares())


def _is_slow(whole: Network, tier: str) -> bool:
    """Return true if a host's flow fills a good part of a link of a tier."""
    return whole.rates[tier] <= SLOW * whole.rates["access"]


def _needs_pods(whole: Network, loads: Mapping[str, float]) -> bool:
    """Return true if the queues of the core matter, which two pods lack."""
    core = loads[whole.top_tier]
    return core > 0 and core >= NEARLY_MOST_LOADED * max(loads.values())


def _needs_racks(whole: Network, loads: Mapping[str, float]) -> bool:
    """Return true if the queues from aggregation switches to racks matter, which two racks lack."""
    if not whole.aggregations or loads["fabric"] < NEARLY_MOST_LOADED * max(loads.values()):
        return False
    fabric = loads["fabric"] * whole.racks * whole.aggregations * whole.rates["fabric"]
    core = loads["core"] * whole.cores * whole.rates["core"]
    return fabric > 0 and 1 - core / fabric >= MOSTLY_WITHIN_PODS


def _needs(whole: Network, folded: Folded, *, is_divisible: bool) -> Sequence[tuple[int, int]]:
    """Return the pods, and racks in each, that a fold needs because of queues, best first."""
    loads = _loads(whole, folded)
    racks = ENOUGH_RACKS if _needs_racks(whole, loads) else FEW
    if not _needs_pods(whole, loads):
        return [(FEW, racks)] if racks > FEW else []
    # Without divided racks, more pods would have fewer racks.
    is_bottleneck = loads[whole.top_tier] >= OVERSUBSCRIBED * loads["access"]
    is_shared = is_bottleneck and _is_slow(whole, whole.top_tier) and is_divisible
    return [(pods, racks) for pods in ((MANY_PODS, ENOUGH_PODS) if is_shared else (ENOUGH_PODS,))]


def _short_tier(whole: Network, part: Network, folded: Folded) -> str:
    """Return the tier whose queues the part lacks: that of the core if it has too few pods."""
    loads = _loads(whole, folded)
    has_pods = part.has(ENOUGH_PODS, FEW, whole) or not _needs_pods(whole, loads)
    return "fabric" if has_pods else whole.top_tier


def _is_refused(whole: Network, part: Network, folded: Folded, short: str) -> bool:
    """Return true if the queues of the tier, which the part lacks, are most of the delays."""
    loads = _loads(whole, folded)
    number = part.pods if short == whole.top_tier else part.racks
    return (
        number == FEW
        and _is_slow(whole, short)
        and loads[short] == max(loads.values()) >= LARGEST_LOAD
    )


def short_queues(units: str, tier: str, enough: int) -> str:
    """Return the doubt about a fold with too few pods or racks; `enough` hosts have enough."""
    return (
        f"{units} share the {tier}, which is the most loaded tier or nearly: its queues are too "
        f"short, so that `sample` has too low slowdowns and `flows` too high ones; keep {enough} "
        "hosts"
    )


def _check_loads(folded: Folded, *, for_law: bool) -> None:
    """Raise an error if links of a fold carry much more or less than those of the whole."""
    largest_error, note = LARGEST_ERROR, ""
    if not folded.are_alike:
        largest_error = LARGEST_ERROR_FOR_LAWS if for_law else LARGEST_ERROR_OF_TRACES
        note = "" if for_law else f" (the fidelity `{FLOWS}` is for racks that differ)"
    for tier, (whole, part) in folded.utilisations.items():
        if abs(part - whole) > largest_error * whole:
            raise FewHostsError(
                f"hosts: the fold would carry {100 * part:.1f} % on {tier} links, where the whole "
                f"network carries {100 * whole:.1f} %{note}"
            )


def _folded(
    given: Scenario, complete: Scenario, whole: Network, part: Network, sample: int
) -> Folded:
    """Return the scenario of a part of the network."""
    workload = complete["workload"]
    topology = complete["topology"]
    if topology["kind"] != FAT_TREE:
        topology = {"kind": topology["kind"], **table(given["topology"])}
    folding = Folding(given, whole, part, sample, base_rtt_s(complete))
    folded = {
        **given,
        "topology": part.topology(topology, whole),
        "workload": folding.workload(table(given["workload"]), workload, "workload"),
    }
    return Folded(
        *(folded, whole.hosts, part.hosts, _units(whole, part), folding.utilisations),
        are_alike=are_alike(workload),
        fan_in=max(_largest_fan_in(workload), folding.fan_in),
        partners=folding.partners,
        not_preserved=(
            f"{kinds_in_words(with_fewer_ports(whole, part))} have fewer ports, which share the "
            "same buffers",
            PATHS,
            *([] if are_alike(workload) else [PARTNERS]),
            *([CACHES] if _has_caches(complete) else []),
            *_bottlenecks(whole, part),
            *folding.differences,
        ),
    )


def _has_caches(complete: Mapping[str, Any]) -> bool:
    """Return true if flows take values of earlier ones between the same hosts."""
    transport = complete["transport"]
    reliability = transport.get("reliability", {}) if isinstance(transport, Mapping) else {}
    names = ("cached_rtt", "cached_ssthresh")
    return any(reliability.get(name, "none") not in ("none", False) for name in names)


def _bottlenecks(whole: Network, part: Network) -> list[str]:
    """Return the ports at which so few links of one rate meet that overloads differ."""
    lines = []
    if whole.aggregations and part.racks == FEW < whole.racks:
        lines.append(
            f"{FEW} instead of {whole.racks} racks share an uplink of a pod, whose queue is full "
            "for longer when it drops, so that more small packets are lost (keep more hosts)"
        )
        lines.append(
            f"{FEW} instead of {whole.racks} racks send to each other through the switches of a "
            "pod: no queue of their flows builds up at the ports to racks (keep more hosts)"
        )
    if whole.aggregations and part.pods == FEW < whole.pods:
        lines.append(
            f"{FEW} instead of {whole.pods} pods share the core switches: no queue builds up at "
            "their ports (keep more hosts)"
        )
    return lines


def _units(whole: Network, part: Network) -> str:
    words = [f"{part.pods} of {whole.pods} {'pods' if whole.aggregations else 'leaves'}"]
    if part.racks < whole.racks:
        words.append(f"{part.racks} of {count(whole.racks, 'rack')} in each")
    if part.has_divided_racks(whole):
        words.append(f"{part.hosts_per_rack} of {count(whole.hosts_per_rack, 'host')} in a rack")
    return ", ".join(words)


def are_alike(workload: Mapping[str, Any]) -> bool:
    """Return false for a workload with a trace, whose racks may differ in load."""
    return all(part["kind"] != "trace" for part in parts_of(workload))


def _largest_fan_in(workload: Mapping[str, Any]) -> int:
    parts = parts_of(workload)
    return max((part["fan_in"] for part in parts if part["kind"] == "incast"), default=0)
