"""Networks of equal racks and pods: what a fold keeps, and the loads of their links."""

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from sojourn._core import ScenarioError
from sojourn.base.units import parse_rate
from sojourn.scenario.encoding import Prepared
from sojourn.scenario.reading import Scenario

Hosts = npt.NDArray[np.int64]
"""Numbers of hosts."""

Floats = npt.NDArray[np.float64]

ENOUGH_PODS = 4
"""Pods from which a fold keeps more racks in each rather than more pods.

With two, a port of a core switch has one input of its rate and no queue: if the core was the most
loaded tier, means were 10 to 27 % too low at loads of 0.3 to 0.7.
"""

MANY_PODS = 8
"""Pods (or leaves) with which flows that share an uplink seldom share the downlink, too.

With four, a third of them do: means of folds were 2 to 4 % too low, those of the fluid 12 to 14 %.
"""

ENOUGH_RACKS = 4
"""Racks of a pod from which its switches have the queues of the whole.

With two, a port of an aggregation switch to a rack has one input from its pod: if the fabric was
the most loaded tier, and most of its traffic stayed in pods, means were 14 to 16 % too low.
"""

LEAST_PER_RACK = 4
"""Least hosts of a divided rack: networks with as few had the slowdowns of the whole."""

LEAF_SPINE, CLOS, FAT_TREE = "leaf_spine", "clos", "fat_tree"


@dataclass(frozen=True)
class Network:
    """A leaf-spine or Clos network; a leaf-spine network is one of pods with one rack each."""

    pods: int
    racks: int
    """Racks (edge switches) per pod."""
    hosts_per_rack: int
    aggregations: int
    """Aggregation switches per pod; 0 in a leaf-spine network."""
    cores: int
    """Core switches, or spines."""
    rates: Mapping[str, float]
    """Rates of links in bits per second, by tier: `access`, `fabric`, `core`."""
    has_opposites: bool = False
    """True if hosts send to the opposite host, half the hosts further on."""

    @property
    def hosts(self) -> int:
        """Number of hosts."""
        return self.pods * self.racks * self.hosts_per_rack

    @property
    def top_tier(self) -> str:
        """Tier of the links to the core switches."""
        return "core" if self.aggregations else "fabric"

    @property
    def ports(self) -> dict[str, int]:
        """Number of ports of a switch, by kinds of switches as names of links have them."""
        if not self.aggregations:
            return {"leaf": self.hosts_per_rack + self.cores, "spine": self.pods}
        return {
            "edge": self.hosts_per_rack + self.aggregations,
            "aggregation": self.racks + self.cores // self.aggregations,
            "core": self.pods,
        }

    @property
    def all_hosts_by_distance(self) -> tuple[int, int, int]:
        """Number of other hosts at each distance: same rack, same pod, beyond."""
        of_rack, of_pod = self.hosts_per_rack, self.racks * self.hosts_per_rack
        return of_rack - 1, of_pod - of_rack, self.hosts - of_pod

    @property
    def hosts_by_distance(self) -> list[int]:
        """Number of other hosts at each distance that occurs."""
        return [number for number in self.all_hosts_by_distance if number]

    def distances(self, sources: Hosts, targets: Hosts) -> Hosts:
        """Return 0 for pairs of hosts in the same rack, 1 for the same pod, and 2 beyond."""
        of_rack, of_pod = self.hosts_per_rack, self.racks * self.hosts_per_rack
        is_beyond_rack = sources // of_rack != targets // of_rack
        is_beyond_pod = sources // of_pod != targets // of_pod
        distances: Hosts = is_beyond_rack.astype(np.int64) + is_beyond_pod
        return distances

    def uniform_shares(self) -> list[float]:
        """Return the share of each distance if all other hosts are equally likely targets."""
        return [number / (self.hosts - 1) for number in self.hosts_by_distance]

    def utilisations(self, bps: float, shares: list[float]) -> dict[str, float]:
        """Return the mean utilisation of each tier of links.

        `bps` is the rate that a host sends, and `shares` the shares of its traffic by distance.
        """
        beyond_rack = 1 - (shares[0] if self.hosts_per_rack > 1 else 0.0)
        beyond_pod = shares[-1] if self.pods > 1 else 0.0
        of_pod = bps * self.hosts_per_rack * self.racks
        loads = {"access": bps / self.rates["access"]}
        if self.aggregations:
            links = self.racks * self.aggregations
            loads["fabric"] = of_pod * beyond_rack / (links * self.rates["fabric"])
            loads["core"] = of_pod * beyond_pod / (self.cores * self.rates["core"])
        else:
            loads["fabric"] = of_pod * beyond_rack / (self.cores * self.rates["fabric"])
        return loads

    def receiving_loads(self, sources: Hosts, targets: Hosts, bps: Floats) -> tuple[Floats, Floats]:
        """Return the mean utilisation of links that flows of these rates cross last, for each flow.

        First that of the link to its target; then that of the links to the rack of its target, or
        of those to its pod if that is more, and 0 if it crosses neither.
        """
        of_rack, of_pod = self.hosts_per_rack, self.racks * self.hosts_per_rack
        to_racks = (self.aggregations or self.cores) * self.rates["fabric"]
        units = [(1, self.rates["access"]), (of_rack, to_racks)]
        if self.aggregations:
            units.append((of_pod, self.cores * self.rates["core"]))
        loads = []
        for hosts, rate in units:
            crosses = sources // hosts != targets // hosts
            received = np.bincount(targets // hosts, np.where(crosses, bps, 0.0)) / rate
            loads.append(np.where(crosses, received[targets // hosts], 0.0))
        return loads[0], np.max(loads[1:], axis=0)

    def folded(self, hosts: int) -> "Network":
        """Return the part of about `hosts` hosts that a fold keeps, in whole racks.

        Of the parts that keep the oversubscription of every tier, the largest that does not exceed
        `hosts`, else the smallest; among equals one with `ENOUGH_PODS`, and these as complete as
        possible.
        """
        parts = self._parts()
        fitting = [part for part in parts if part.hosts <= hosts]
        size = max(part.hosts for part in fitting) if fitting else min(part.hosts for part in parts)
        alike = [part for part in parts if part.hosts == size]
        return max(alike, key=lambda part: (min(part.pods, ENOUGH_PODS), part.racks))

    def has(self, pods: int, racks: int, whole: "Network") -> bool:
        """Return true if this part has `pods` with `racks` in each, or all if there are fewer."""
        return self.pods >= min(pods, whole.pods) and self.racks >= min(racks, whole.racks)

    def folded_with(
        self, pods: int, racks: int, least: int, hosts: int, *, is_divisible: bool = True
    ) -> "Network | None":
        """Return the part of `least` to `hosts` hosts that has `pods` of `racks`, if there is one.

        Of whole racks if possible, else of divided ones if `is_divisible`; the largest of those.
        """
        for parts in self._parts_with(pods, racks, is_divisible=is_divisible):
            if fitting := [part for part in parts if least <= part.hosts <= hosts]:
                return max(fitting, key=lambda part: (part.hosts, part.racks))
        return None

    def hosts_with(self, pods: int, racks: int, least: int, *, is_divisible: bool = True) -> int:
        """Return the hosts of the smallest part with `pods` of `racks` and `least` hosts."""
        parts = itertools.chain(*self._parts_with(pods, racks, is_divisible=is_divisible))
        return min((part.hosts for part in parts if part.hosts >= least), default=self.hosts)

    def sizes(self, least: int) -> list[int]:
        """Return the hosts of parts of whole racks, `least` or more, in ascending order."""
        return sorted({part.hosts for part in self._parts() if part.hosts >= least})

    def _parts_with(self, pods: int, racks: int, *, is_divisible: bool) -> "list[list[Network]]":
        """Return the parts for which `has` is true, of larger racks first."""
        uplinks = self.aggregations or self.cores
        most = math.gcd(self.hosts_per_rack, uplinks) if is_divisible else 1
        return [
            [part for part in self._divided(divisor)._parts() if part.has(pods, racks, self)]
            for divisor in range(1, most + 1)
            if most % divisor == 0
            and (divisor == 1 or self.hosts_per_rack >= LEAST_PER_RACK * divisor)
        ]

    def _divided(self, divisor: int) -> "Network":
        """Return the network with a share of the hosts of each rack, and of their uplinks."""
        return replace(
            self,
            hosts_per_rack=self.hosts_per_rack // divisor,
            aggregations=self.aggregations // divisor,
            cores=self.cores // divisor,
        )

    def _parts(self) -> "list[Network]":
        if not self.aggregations:
            parts = [replace(self, pods=pods) for pods in range(min(2, self.pods), self.pods + 1)]
        else:
            per_rack = self.cores // self.aggregations
            parts = [
                replace(self, pods=pods, racks=racks, cores=self.cores * racks // self.racks)
                for pods in range(min(2, self.pods), self.pods + 1)
                for racks in range(min(2, self.racks), self.racks + 1)
                if per_rack * racks % self.racks == 0
            ]
        return [part for part in parts if not self.has_opposites or part.has_parity(self)]

    def has_parity(self, whole: "Network") -> bool:
        """Return true if opposite hosts of a rack are in as many racks and pods as in the whole.

        Those of an even number of racks (pods) are in one, those of an odd number in two, so that
        a port of a spine has one or two inputs, and a queue or none. With leaves of another parity
        means were 21 % too low (17 leaves, folded to 8) and 29 % too high (18, folded to 9).
        """
        racks, of_whole = (network.pods * network.racks for network in (self, whole))
        return (self.pods - whole.pods) % 2 == 0 and (racks - of_whole) % 2 == 0

    def topology(self, given: Mapping[str, Any], whole: "Network") -> Scenario:
        """Return the topology of this part of the network that `given` describes.

        A fat-tree becomes a Clos network, and needs its defaults in `given`.
        """
        if not self.aggregations:
            divided = {"hosts_per_leaf": self.hosts_per_rack, "spines": self.cores}
            is_divided = self.has_divided_racks(whole)
            return {**given, "leaves": self.pods, **(divided if is_divided else {})}
        part = {"pods": self.pods, "edges_per_pod": self.racks, "cores": self.cores}
        sizes = {"hosts_per_edge": self.hosts_per_rack, "aggregations_per_pod": self.aggregations}
        if given["kind"] == CLOS:
            return {**given, **part, **(sizes if self.has_divided_racks(whole) else {})}
        rates = dict.fromkeys(("host_rate", "fabric_rate", "core_rate"), given["rate"])
        delays = dict.fromkeys(("host_delay", "fabric_delay", "core_delay"), given["delay"])
        return {"kind": CLOS, **part, **sizes, **rates, **delays}

    def has_divided_racks(self, whole: "Network") -> bool:
        """Return true if the racks of this part of a network have a share of the hosts."""
        return self.hosts_per_rack < whole.hosts_per_rack


def read_network(topology: Mapping[str, Any]) -> Network:
    """Return the network of a topology with all defaults; raise for one that does not fold."""
    kind = topology["kind"]
    if kind == LEAF_SPINE:
        rates = {"access": topology["host_rate"], "fabric": topology["fabric_rate"]}
        sizes = topology["leaves"], 1, topology["hosts_per_leaf"], 0, topology["spines"]
    elif kind == CLOS:
        names = {"access": "host_rate", "fabric": "fabric_rate", "core": "core_rate"}
        rates = {tier: topology[name] for tier, name in names.items()}
        sizes = (
            *(topology["pods"], topology["edges_per_pod"], topology["hosts_per_edge"]),
            *(topology["aggregations_per_pod"], topology["cores"]),
        )
    elif kind == FAT_TREE:
        half = topology["k"] // 2
        rates = dict.fromkeys(("access", "fabric", "core"), topology["rate"])
        sizes = topology["k"], half, half, half, half * half
    else:
        raise ScenarioError(
            f"topology.kind: {kind} does not fold, as its hosts or links are not all alike; "
            "leaf_spine, clos and fat_tree do, others run with packets"
        )
    return Network(*sizes, {tier: parse_rate(rate) for tier, rate in rates.items()})


PROBE = {
    "environment": "lossless_datacentre",
    "topology": "leaf_spine",
    "transport": "tcp",
    "workload": {"kind": "long_lived"},
}
"""Scenario whose defaults show if a routing sprays packets."""


def sprays(routing: Any) -> bool:
    """Return true if packets of a flow take different paths, however close they follow each other.

    The core states it by a default: in the environment of the probe, loss recovery is go-back-N
    unless packets of a flow overtake each other all the time.
    """
    transport = Prepared(PROBE | {"routing": routing}).complete()["transport"]
    return bool(transport["reliability"]["recovery"] != "go_back_n")
