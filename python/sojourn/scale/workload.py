"""Workloads of folded networks: what each host sent in the whole, to the same distances."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from sojourn._core import ScenarioError
from sojourn.base.errors import FewHostsError, FoldHostsError
from sojourn.base.units import format_rate, parse_rate, parse_size, parse_time
from sojourn.scale.network import Network
from sojourn.scale.trace import FEW_COMBINATIONS, fold_trace
from sojourn.scenario.reading import Scenario

MOST_HOSTS = 4096
"""Largest fold with random pairs of hosts, the limit of the core's pairs by distance."""

LARGEST_ERROR = 0.02
"""Largest difference between the utilisations of a tier, as a share of that of the whole."""

FOLDING = ("poisson", "incast", "synchronised", "long_lived", "rpc", "storage", "trace", "mixed")
"""Workloads that fold; each is a method of `Folding`."""


class Folding:
    """Traffic of a part of a network; collects the expected utilisations of both."""

    def __init__(
        self, scenario: Scenario, whole: Network, part: Network, sample: int, rtt_s: float
    ) -> None:
        """Fold workloads of `scenario`; `rtt_s` is the base RTT of the network in seconds."""
        self._scenario, self._rtt_s = scenario, rtt_s
        self._whole, self._part, self._sample = whole, part, sample
        self._share = part.hosts / whole.hosts
        self._sums: dict[str, tuple[float, float]] = {}
        self._are_known = True
        self._partners: list[tuple[float, float]] = []
        self.differences: list[str] = []
        self.fan_in = 0

    @property
    def partners(self) -> tuple[float, float]:
        """Partners as of `Folded`."""
        return max(self._partners, default=(0.0, 0.0), key=lambda each: each[0] - each[1])

    @property
    def utilisations(self) -> dict[str, tuple[float, float]]:
        """Expected utilisations, whole and folded; empty unless all workloads have a load."""
        return self._sums if self._are_known else {}

    def workload(
        self, given: dict[str, Any], complete: Mapping[str, Any], field: str
    ) -> dict[str, Any]:
        """Return the folded workload; `complete` has the defaults of the `given` one."""
        kind = complete["kind"]
        if kind not in FOLDING:
            raise ScenarioError(
                f"{field}.kind: {kind} does not fold; {', '.join(FOLDING)} do, "
                "others run with packets"
            )
        return {**given, **getattr(self, f"_{kind}")(given, complete, field)}

    def _mixed(
        self, given: Mapping[str, Any], complete: Mapping[str, Any], field: str
    ) -> dict[str, Any]:
        parts = zip(given["parts"], complete["parts"], strict=True)
        return {
            "parts": [
                self.workload(table(part), whole, f"{field}.parts[{number}]")
                for number, (part, whole) in enumerate(parts)
            ]
        }

    def _poisson(
        self, _given: Mapping[str, Any], complete: Mapping[str, Any], field: str
    ) -> dict[str, Any]:
        if complete["gap_shape"] != "none":
            raise ScenarioError(
                f"{field}.gap_shape: does not fold, as all hosts share the bursts, which last "
                "longer with fewer hosts; leave `gap_shape` out, or run the scenario with packets"
            )
        return (
            self._number("flows", complete)
            | self._reference(complete)
            | self._pairs(complete, field)
        )

    def _incast(
        self, _given: Mapping[str, Any], complete: Mapping[str, Any], field: str
    ) -> dict[str, Any]:
        if complete["target"] != "none":
            raise ScenarioError(
                f"{field}.target: an incast to one host does not fold, as each part of the network "
                "would have such a host; leave `target` out"
            )
        shares = self._shares_of(complete["shares"])
        if complete["events"] != "none" and complete["events"] * self._share < 1:
            raise ScenarioError(
                f"{field}.events: the fold would have less than one event; keep more hosts"
            )
        changes = self._number("events", complete) | self._reference(complete)
        if complete["interval"] != "none":
            seconds = parse_time(complete["interval"])
            bits = 8 * complete["fan_in"] * parse_size(complete["size"])
            self._add(bits / seconds / self._whole.hosts, shares)
            changes["interval"] = f"{seconds / self._share * 1e9:.0f} ns"
        else:
            self._add(self._offered(complete), shares)
        return changes | {"shares": shares}

    def _trace(
        self, given: Mapping[str, Any], complete: Mapping[str, Any], field: str
    ) -> dict[str, Any]:
        if complete["connections"] != "none":
            raise ScenarioError(_connections_error(field))
        file = given["file"]
        scenario = {**self._scenario, "workload": given}
        folded = fold_trace(scenario, self._whole, self._part, self._sample, self._rtt_s)
        self._add_loads(*folded.loads)
        self._partners.append(folded.partners)
        self.fan_in = max(self.fan_in, folded.fan_in)
        if folded.combinations < FEW_COMBINATIONS:
            self.differences.append(
                f"samples keep nearly the same racks of a trace ({folded.combinations} "
                "combinations), so that intervals are too narrow (keep fewer hosts)"
            )
        return {"file": {"name": f"folded-{file['name']}", "text": folded.text}}

    def _synchronised(
        self, _given: Mapping[str, Any], complete: Mapping[str, Any], field: str
    ) -> dict[str, Any]:
        self._are_known = False
        return self._senders(complete, field)

    def _long_lived(
        self, _given: Mapping[str, Any], complete: Mapping[str, Any], field: str
    ) -> dict[str, Any]:
        self._are_known = False
        stagger = parse_time(complete["stagger"])
        changes = {"stagger": f"{stagger / self._share * 1e9:.0f} ns"} if stagger else {}
        return changes | self._senders(complete, field)

    def _rpc(
        self, given: Mapping[str, Any], complete: Mapping[str, Any], field: str
    ) -> dict[str, Any]:
        pattern, field = complete["pattern"], f"{field}.pattern"
        if pattern["peers"] != "none":
            raise ScenarioError(
                f"{field}.peers: a limited number of servers does not fold; leave `peers` out"
            )
        changes = self._number("calls", pattern) | self._reference(pattern)
        if pattern["load"] == "none":
            self._are_known = False
        return {"pattern": {**given["pattern"], **changes, **self._pairs(pattern, field)}}

    _storage = _rpc

    def _senders(self, complete: Mapping[str, Any], field: str) -> dict[str, Any]:
        """Return the number of flows, one from each host of the first racks or pods."""
        flows = complete["flows"]
        if flows == "none":
            return {}
        pods = Fraction(flows * self._whole.pods, self._whole.hosts)
        kept = pods * self._part.pods / self._whole.pods
        if pods.denominator > 1 or kept.denominator > 1:
            unit = "pod" if self._whole.aggregations else "leaf"
            raise ScenarioError(
                f"{field}.flows: {flows} flows do not fold, as their senders are the first hosts "
                f"and not every host of a {unit} in the whole and in the fold; leave `flows` out, "
                "or run the scenario with packets"
            )
        return {"flows": int(kept) * (self._part.hosts // self._part.pods)}

    def _number(self, name: str, complete: Mapping[str, Any]) -> dict[str, Any]:
        """Return the number of flows, calls or events, if it is limited.

        A small number is rounded such that consecutive samples have the right sum.
        """
        number = complete[name]
        if number == "none":
            return {}
        exact = number * Fraction(self._part.hosts, self._whole.hosts)
        rounded = max(1, round(exact))
        if abs(rounded - exact) > LARGEST_ERROR * exact:
            low = int(exact)
            bounds = f"{low} or {low + 1}" if low else "1"
            self.differences.append(
                f"a fold has {bounds} {name} instead of {float(exact):.3g}, which have "
                "another share of the traffic"
            )
            rounded = max(1, int((self._sample + 1) * exact) - int(self._sample * exact))
        return {name: rounded}

    def _reference(self, complete: Mapping[str, Any]) -> dict[str, Any]:
        """Return the load reference, if it is not that of the topology."""
        reference = complete["load_reference"]
        if reference == "none":
            return {}
        bps = round(parse_rate(reference) * self._share)
        text = format_rate(bps)
        return {"load_reference": text if parse_rate(text) == bps else f"{bps} bps"}

    def _pairs(self, complete: Mapping[str, Any], field: str) -> dict[str, Any]:
        """Return the host pairs, by the distances of the whole network."""
        pairs = complete["pairs"]
        if pairs in ("opposite", "longest"):
            # All of these are at the largest distance, in the whole as in the part.
            shares = [0.0] * (len(self._whole.hosts_by_distance) - 1) + [1.0]
            changes = {}
        else:
            shares = self._shares_of(complete["shares"])
            changes = {"pairs": "by_distance", "shares": shares}
        if complete["load"] != "none":
            self._add(self._offered(complete), shares)
        return changes | self._connections(complete, shares, field)

    def _connections(
        self, complete: Mapping[str, Any], shares: Sequence[float], field: str
    ) -> dict[str, Any]:
        """Return the connections of each pair of hosts, each as busy as in the whole."""
        number = complete["connections"]
        if number == "none" or complete["pairs"] == "opposite":
            return {}
        hosts = zip(self._whole.hosts_by_distance, self._part.hosts_by_distance, strict=True)
        ratios = {Fraction(*pair) for pair, share in zip(hosts, shares, strict=True) if share}
        numbers = {number * ratio for ratio in ratios}
        # Callers of a closed loop have connections of their own.
        if (
            complete["load"] != "none"
            and len(numbers) == 1
            and (exact := numbers.pop()) == int(exact)
        ):
            return {"connections": int(exact)}
        raise ScenarioError(_connections_error(field))

    def _shares_of(self, given: Any) -> list[float]:
        if len(self._part.hosts_by_distance) != len(self._whole.hosts_by_distance):
            raise FewHostsError("hosts: the fold lacks a distance of the whole")
        if self._part.hosts > MOST_HOSTS:
            raise FoldHostsError(
                f"hosts: a fold with random pairs has at most {MOST_HOSTS} hosts, not "
                f"{self._part.hosts}; keep fewer"
            )
        return self._whole.uniform_shares() if given == "none" else list(given)

    def _offered(self, complete: Mapping[str, Any]) -> float:
        """Return the rate that a host of the whole network sends."""
        reference = complete["load_reference"]
        access = self._whole.hosts * self._whole.rates["access"]
        total = access if reference == "none" else parse_rate(reference)
        return float(complete["load"]) * total / self._whole.hosts

    def _add(self, bps: float, shares: list[float]) -> None:
        whole, part = (net.utilisations(bps, shares) for net in (self._whole, self._part))
        self._add_loads(whole, part)

    def _add_loads(self, whole: dict[str, float], part: dict[str, float]) -> None:
        for tier, load in whole.items():
            sums = self._sums.get(tier, (0.0, 0.0))
            self._sums[tier] = sums[0] + load, sums[1] + part[tier]


def _connections_error(field: str) -> str:
    return (
        f"{field}.connections: do not fold, as a connection joins a pair of hosts, and the fold "
        "has fewer pairs for the same flows of a host; leave `connections` out, or run the "
        "scenario with packets"
    )


def table(component: Any) -> dict[str, Any]:
    """Return a component that may be only a kind as a table."""
    return dict(component) if isinstance(component, Mapping) else {"kind": component}
