"""Folded networks of a scenario, which stand for the whole; the fluid beside them."""

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import polars as pl

from sojourn._core import ScenarioError
from sojourn.base.errors import FoldHostsError
from sojourn.scale.buffers import full_buffers, with_fewer_ports
from sojourn.scale.fold import OF_SINGLE_LINKS, Folded, fold, fold_with, least_hosts, whole_network
from sojourn.scale.network import read_network, sprays
from sojourn.scale.trace import DEADLINE, columns_of_trace
from sojourn.scenario.encoding import Prepared
from sojourn.scenario.fidelity import (
    AUTO,
    CHECKED_HOSTS,
    FIELD,
    FLOWS,
    MAX_SAMPLES,
    RECORDS,
    SAMPLE,
    Fidelity,
)
from sojourn.scenario.fields import parts_of
from sojourn.scenario.reading import Scenario, kind_of

NAMING_LINKS = ("samples", "record")
"""Fields of a scenario that may name links."""

SEEDS = 1 << 64
"""Number of seeds of the core."""


BY_DEADLINE = ("d3", "pdq")
"""Transports in which an earlier deadline gives a flow its rate first.

FCTs of a law are drawn whatever the deadline is: under D3 77 % of the flows met it, and 86 % by
packets; under D2TCP 70 and 71 %.
"""


class Samples:
    """Folded networks of a scenario, each with a seed of its own."""

    def __init__(
        self, scenario: Mapping[str, Any], fidelity: Fidelity, *, has_advice: bool = True
    ) -> None:
        """Fold the scenario; raise `ScenarioError` if it cannot be answered by samples.

        With `has_advice`, an error about too few hosts names enough of them.
        """
        self._scenario, self._fold = scenario, fold if has_advice else fold_with
        self._whole = {name: value for name, value in scenario.items() if name != FIELD}
        if (model := self._whole.get("model", "packet")) != "packet":
            raise ScenarioError(
                f"{FIELD}: {fidelity.kind} is for packets, not for the ideal {kind_of(model)}; "
                "leave `fidelity` out"
            )
        self.fidelity = fidelity
        self.seeds: list[int] = []
        self.scenarios: list[Scenario] = []
        self.folded: Folded = self._add()
        prepared = Prepared(self.folded.scenario)
        if any(self._whole.get(name) for name in NAMING_LINKS):
            self._check(prepared)
        topology = prepared.complete()["topology"]
        self.network = read_network(topology)
        self.extend(fidelity.samples)

    def _check(self, prepared: Prepared) -> None:
        """Raise the error of a folded network, such as a link that it lacks, as one of a fold."""
        try:
            prepared.core.check()
        except ScenarioError as error:
            if self.folded.kept == self.folded.hosts:
                raise
            raise ScenarioError(
                f"{error}, in the folded network of {self.folded.kept} hosts"
            ) from None

    def _add(self) -> Folded:
        # Consecutive seeds of a comparison have different samples.
        most = self.fidelity.samples if self.fidelity.precision == "none" else MAX_SAMPLES
        seed = (int(self._whole.get("seed", 1)) * most + len(self.seeds)) % SEEDS
        try:
            of_kind = self._whole | {FIELD: self.fidelity.kind}
            folded = self._fold(of_kind, self.fidelity.hosts, seed)
        except FoldHostsError as error:
            raise ScenarioError(f"{FIELD}.{error}") from None
        self.seeds.append(seed)
        self.scenarios.append({**folded.scenario, "seed": seed})
        return folded

    def extend(self, number: int) -> None:
        """Add samples up to this number of them."""
        while len(self.seeds) < number:
            self._add()

    def half(self) -> "Samples | None":
        """Return samples of half the size if `check` requires them.

        Large networks have them by default, unless half the size is less than the smallest fold.
        """
        check, folded = self.fidelity.check, self.folded
        if not check or (check == AUTO and folded.hosts < CHECKED_HOSTS):
            return None
        fidelity = replace(self.fidelity, hosts=folded.kept // 2)
        try:
            return Samples(self._scenario, fidelity, has_advice=check != AUTO)
        except ScenarioError as error:
            if check == AUTO:
                return None
            self._check_half(fidelity.hosts)
            raise ScenarioError(f"{error} (in half of the network, for `check`)") from None

    def _check_half(self, half: int) -> None:
        """Raise `ScenarioError` if half of the kept hosts are too few for a fold."""
        complete = Prepared(self._whole).complete()
        whole = whole_network(complete)
        if half >= (least := least_hosts(whole, complete["workload"])):
            return
        enough = (hosts for hosts in whole.sizes(2 * least) if self._kept(hosts) >= 2 * least)
        advice = "".join(f", or set `hosts` to {hosts}" for hosts in itertools.islice(enough, 1))
        raise ScenarioError(
            f"{FIELD}.check: uses half of the {self.folded.kept} hosts, and a fold of this network "
            f"has at least {least}; leave it out{advice}"
        )

    def _kept(self, hosts: int) -> int:
        """Return the hosts of a fold of about `hosts`; 0 if these are too few."""
        try:
            return fold_with(self._whole, hosts, self.seeds[0]).kept
        except FoldHostsError:
            return 0

    def summary(self, links: Iterable[pl.DataFrame]) -> dict[str, Any]:
        """Return the entry `fidelity` of the summary, given the links of each sample."""
        folded, full = self.folded, self._full_buffers(links)
        return {
            "kind": self.fidelity.kind,
            "hosts": folded.hosts,
            "kept": folded.kept,
            "units": folded.units,
            "are_alike": folded.are_alike,
            "fan_in": folded.fan_in,
            "partners": list(folded.partners),
            "seeds": list(self.seeds),
            "utilisations": {tier: list(loads) for tier, loads in folded.utilisations.items()},
            "not_preserved": list(folded.not_preserved),
            "enough": folded.enough,
            "short": folded.short,
            "full_buffers": full.total(),
            "full_switches": [kind for kind in self.network.ports if kind in full],
        }

    def _full_buffers(self, links: Iterable[pl.DataFrame]) -> Counter[str]:
        """Return the pauses and drops by shared buffers that more ports share in the whole."""
        complete = Prepared(self._whole).complete()
        if self.folded.kept == self.folded.hosts:
            return Counter()
        kinds = with_fewer_ports(read_network(complete["topology"]), self.network)
        return sum((full_buffers(table, kinds, complete) for table in links), Counter())


FLUID = "processor_sharing"
"""Ideal in which a flow gets the least equal share of its links; others leave its rest unused.

That makes it cheap: an event changes few flows. What it leaves out, the law puts back.
"""

FLUID_FIELDS = ("time_limit", "warm_up", "topology", "workload", "packet", "environment", "routing")
"""Fields on which flows in a fluid depend, besides the seed. Schemes share one fluid."""


def fluid_of(scenario: Scenario) -> Scenario:
    """Return the scenario of the same flows in the fluid."""
    complete = Prepared(scenario).complete()
    fields = {name: complete[name] for name in FLUID_FIELDS}
    return fields | {"seed": scenario.get("seed", 1), "model": FLUID}


def check_flows(scenario: Mapping[str, Any]) -> None:
    """Raise `ScenarioError` if the fluid and a law cannot answer a scenario."""
    for name in ("account", "record", "samples"):
        if scenario.get(name, "none") not in ("none", False):
            raise ScenarioError(
                f"{name}: {FIELD} `{FLOWS}` predicts completion times only; "
                f"leave it out, or use `{SAMPLE}`"
            )
    for name in OF_SINGLE_LINKS:
        if scenario.get(name):
            raise ScenarioError(
                f"{name}: the fluid of {FIELD} `{FLOWS}` has the links of the topology as they "
                "are; run the scenario with packets"
            )
    if scenario.get(RECORDS, 1) != 1:
        raise ScenarioError(
            f"{RECORDS}: must be 1 with {FIELD} `{FLOWS}`, whose law reads the load of each "
            "receiver from the records of all flows"
        )
    whole = {name: value for name, value in scenario.items() if name != FIELD}
    complete = Prepared(whole).complete()
    _check_deadlines(complete)
    for part in parts_of(complete["workload"]):
        if part["kind"] == "long_lived" and part["size"] == "none":
            raise ScenarioError(
                f"workload: long-lived flows have no completion time, and {FIELD} `{FLOWS}` "
                f"predicts no throughput; give a `size`, or use `{SAMPLE}`"
            )
        if part.get("pattern", {}).get("outstanding", "none") != "none":
            raise ScenarioError(
                "workload: calls of a closed loop (`outstanding`) follow others, whose ends "
                f"{FIELD} `{FLOWS}` predicts one by one; use `{SAMPLE}`, or give a `load`"
            )
        if part["kind"] == "collective":
            raise ScenarioError(
                f"workload: messages of collective operations follow others, whose ends {FIELD} "
                f"`{FLOWS}` predicts one by one; run the scenario with packets"
            )
    if sprays(routing := complete["routing"]):
        raise ScenarioError(
            f"routing: under `{FLOWS}` a flow has one path, and {kind_of(routing)} sprays its "
            f"packets; use the fidelity `{SAMPLE}`, or give a routing with one path, such as `ecmp`"
        )


def _check_deadlines(complete: Mapping[str, Any]) -> None:
    """Raise `ScenarioError` if transports terminate flows or order them because of deadlines."""
    if not any(map(_has_deadlines, parts_of(complete["workload"]))):
        return
    transports = {"transport": complete["transport"]} | {
        f"transports.{name}": transport for name, transport in complete["transports"].items()
    }
    for field, transport in transports.items():
        if not isinstance(transport, Mapping):
            continue
        kind = transport["kind"]
        if transport.get("early_termination", False):
            raise ScenarioError(
                f"{field}: {kind} terminates flows that miss their deadlines, and "
                f"{FIELD} `{FLOWS}` predicts no terminations; use `{SAMPLE}`"
            )
        if kind in BY_DEADLINE or transport.get("deadlines", "ignored") != "ignored":
            raise ScenarioError(
                f"{field}: {kind} gives rates by deadlines, which the law of {FIELD} `{FLOWS}` "
                f"does not contain; use `{SAMPLE}`"
            )


def _has_deadlines(part: Mapping[str, Any]) -> bool:
    """Return true if flows of a part of the workload have deadlines."""
    if part["kind"] == "trace":
        return DEADLINE in columns_of_trace(part["file"]["text"])
    if part["kind"] == "flows":
        return any(flow["deadline"] != "none" for flow in part["flows"])
    return bool(part.get("deadlines", "none") != "none")
