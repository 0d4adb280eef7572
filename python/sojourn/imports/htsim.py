"""Connection matrices (`.cm`) and topologies (`.topo`) of htsim."""

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

from sojourn.base.units import count
from sojourn.imports.document import Document, Line, number, whole
from sojourn.imports.parts import Cable, Flow, Flows, Network, Options, by_priority, ranges

MATRIX_SHAPE = (
    "`Nodes N`, `Connections N`, optionally `Triggers N`, and `source->target start T size BYTES` "
    "for each connection, with `id`, `trigger`, `send_done_trigger` or `recv_done_trigger`"
)

TOPOLOGY_SHAPE = (
    "`Nodes N`, `Tiers 2` or `3`, `Podsize N`, and for each `Tier` a Downlink_speed_Gbps, "
    "Downlink_Latency_ns, Radix_Down and, below the top, Radix_Up"
)

SETTINGS = {"transport": '"dctcp"'}

PACKET_NOTE = "transport and packet sizes are options of htsim's command line, not of these files"

HEADER = ("nodes", "connections", "triggers", "failures")

ENDS = re.compile(r"(\d{1,9})->(\d{1,9})", re.ASCII)

KINDS = ("oneshot", "multishot", "barrier")
"""Kinds of triggers; the first is the default."""

Kinds = dict[str, tuple[str, int | None]]
"""Kind and count of triggers by their number."""

UNITS = {"ps": 1, "us": 10**6}
"""Units of starts, in picoseconds."""

MAX_HOSTS = 1 << 15
"""Limit of the topology `graph`."""

MAX_CABLES = 1 << 20

MAX_VALUE = 10**9
"""Limit of the values of a tier."""


def is_matrix(document: Document) -> bool:
    """Return true if a line begins with `Connections` or `source->target`."""
    rows = document.lines[:100]
    return any(row.words[0].lower() == "connections" or "->" in row.words[0] for row in rows)


def is_topology(document: Document) -> bool:
    """Return true if a line begins with `Tier`, `Tiers` or `Podsize`."""
    rows = document.lines[:100]
    return any(row.words[0].lower() in ("tier", "tiers", "podsize") for row in rows)


def read_matrix(document: Document, options: Options) -> Flows:
    """Read a connection matrix."""
    unit = options.unit or "ps"
    if unit not in UNITS:
        raise document.error(f"--unit must be ps or us for a connection matrix, not {unit}")
    header, connections, kinds, failures = _matrix_lines(document, UNITS[unit])
    nodes = header.get("nodes", MAX_HOSTS)
    for connection in connections:
        if max(connection.flow.source, connection.flow.target) >= nodes:
            raise connection.line.error(f"the hosts are 0 to {nodes - 1}")
    flows, note = by_priority(_with_triggers(connections, kinds))
    notes = [count(len(flows), "flow")]
    if triggered := sum(bool(flow.after) for flow in flows):
        notes.append(f"{count(triggered, 'flow')} after other flows, by triggers")
    if unit == "ps":
        notes.append(
            "starts are read as ps (htsim_ndp, htsim_eqds); `--unit us`: htsim_uec, _swift"
        )
    else:
        notes.append("starts are read as us (htsim_uec, htsim_swift)")
    if failures:
        notes.append(f"{count(failures, 'failure')} not converted; see `failures` of scenarios")
    if header.get("connections", len(flows)) != len(flows):
        notes.append(f"the header states {count(header['connections'], 'connection')}")
    notes += [note, PACKET_NOTE]
    return Flows(tuple(flows), SETTINGS, tuple(filter(None, notes)), header.get("nodes"))


def _matrix_lines(
    document: Document, unit: int
) -> tuple[dict[str, int], list["_Connection"], Kinds, int]:
    """Return header, connections, kinds of triggers, and the number of failures."""
    header: dict[str, int] = {}
    connections: list[_Connection] = []
    kinds: Kinds = {}
    failures = 0
    for line in document.lines:
        first = line.words[0].lower()
        value = whole(line.words[1]) if len(line.words) == 2 else None
        if "->" in first:
            connections.append(_Connection(line, unit))
        elif first in HEADER and value is not None:
            header[first] = value
        elif first == "trigger":
            fields = _fields(line, line.words[1:], ("id", "count"), KINDS)
            kind = next((kind for kind in KINDS if kind in fields), KINDS[0])
            kinds[fields.get("id", "")] = (kind, whole(fields.get("count", "")))
        elif first == "failure":
            failures += 1
        else:
            raise line.expected(MATRIX_SHAPE)
    if not connections:
        raise document.error("no connections")
    return header, connections, kinds, failures


def _fields(
    line: Line, words: tuple[str, ...], names: tuple[str, ...], flags: tuple[str, ...]
) -> dict[str, str]:
    """Return the values of named fields, and an empty text for each flag."""
    fields: dict[str, str] = {}
    rest = iter(words)
    for name in rest:
        if name in flags:
            fields[name] = ""
        elif name in names:
            fields[name] = next(rest, "")
            if number(fields[name]) is None:
                raise line.error(f"`{name}` needs a number")
        else:
            raise line.error(f"unknown option `{name[:40]}` (of {', '.join((*names, *flags))})")
    return fields


OPTIONS = (
    "start",
    "size",
    "id",
    "trigger",
    "send_done_trigger",
    "recv_done_trigger",
    "prio",
    "msg",
)


class _Connection:
    """Connection of a matrix, with its triggers."""

    def __init__(self, line: Line, unit: int) -> None:
        ends = ENDS.fullmatch(line.words[0])
        if ends is None:
            raise line.expected(MATRIX_SHAPE)
        fields = _fields(line, line.words[1:], OPTIONS, ("addon",))
        size = whole(fields.get("size", ""))
        if not size:
            message = "expected `size` with a number of bytes above 0 (a flow without end is not "
            raise line.error(message + "converted)")
        if ("start" in fields) == ("trigger" in fields):
            raise line.error("expected either `start` or `trigger`")
        start = number(fields.get("start", "0"))
        if start is None or not 0 <= start * unit < 2**63:
            raise line.error("expected a `start` from 0 on")
        source, target = int(ends[1]), int(ends[2])
        if source == target:
            raise line.error("source and target must differ")
        self.line = line
        self.start = start
        self.trigger = fields.get("trigger")
        self.on_sent, self.on_received = (
            fields.get(f"{name}_done_trigger") for name in ("send", "recv")
        )
        priority = fields.get("prio", "")
        self.flow = Flow(source, target, size, round(start * unit), priority, line=line)


NOT_WAITING: tuple[list[int], int] = ([], 0)


def _with_triggers(connections: list[_Connection], kinds: Kinds) -> list[Flow]:
    """Return the flows, with those that each one waits for before it; others in order of start."""
    causes: dict[str, list[int]] = defaultdict(list)
    for index, connection in enumerate(connections):
        for trigger in {connection.on_sent, connection.on_received} - {None}:
            causes[str(trigger)].append(index)
    waiting: dict[int, tuple[list[int], int]] = {}
    targets: dict[str, int] = defaultdict(int)
    for index, connection in enumerate(connections):
        if (trigger := connection.trigger) is not None:
            before = _causes(connection, connections, causes[trigger])
            targets[trigger] += 1
            waiting[index] = (before, _needed(connection, len(before), targets[trigger], kinds))
    order = sorted(set(range(len(connections))) - set(waiting), key=lambda i: connections[i].start)
    place = {index: number for number, index in enumerate(order)}
    followers: dict[int, list[int]] = defaultdict(list)
    for index, (before, _) in waiting.items():
        for cause in before:
            followers[cause].append(index)
    missing = {index: len(before) for index, (before, _) in waiting.items()}
    for index in order:
        for follower in followers[index]:
            missing[follower] -= 1
            if missing[follower] == 0:
                place[follower] = len(order)
                order.append(follower)
    for index in waiting:
        if index not in place:
            raise connections[index].line.error("triggers in a circle: the flow never starts")
    return [
        replace(
            connections[index].flow,
            after=tuple(sorted(place[cause] for cause in waiting.get(index, NOT_WAITING)[0])),
            after_count=waiting.get(index, NOT_WAITING)[1],
        )
        for index in order
    ]


def _causes(
    connection: _Connection,
    connections: list[_Connection],
    before: list[int],
) -> list[int]:
    """Return the connections whose end fires the trigger of a connection."""
    trigger, error = connection.trigger, connection.line.error
    if not before:
        raise error(f"trigger {trigger}: it is not a done trigger of any connection")
    for cause in before:
        flow, is_sent = connections[cause].flow, connections[cause].on_sent == trigger
        if (flow.source if is_sent else flow.target) != connection.flow.source:
            raise error(
                f"trigger {trigger}: a flow can start only after flows that its source sent "
                "(send_done_trigger) or received (recv_done_trigger)"
            )
    return before


def _needed(connection: _Connection, causes: int, number: int, kinds: Kinds) -> int:
    """Return how often a trigger fires until it starts a connection, its target of this number.

    A oneshot trigger fires once, and a barrier after a count. A multishot trigger starts the next
    of its targets each time.
    """
    trigger, error = connection.trigger, connection.line.error
    kind, stated = kinds.get(str(trigger), (KINDS[0], None))
    needed = {"oneshot": 1, "multishot": number, "barrier": stated or causes}[kind]
    if kind == "oneshot" and causes > 1:
        raise error(f"trigger {trigger}: a oneshot trigger, but {causes} connections fire it")
    if needed > causes:
        raise error(f"trigger {trigger}: needs {needed} connections, but {causes} fire it")
    return needed


TIER_KEYS = (
    "downlink_speed_gbps",
    "downlink_latency_ns",
    "radix_down",
    "radix_up",
    "switch_latency_ns",
    "queue_up",
    "queue_down",
    "oversubscribed",
    "bundle",
)


def read_topology(document: Document, _options: Options) -> Network:
    """Read a fat-tree of two or three tiers."""
    header, tiers = _tables(document)
    tree = _FatTree(document, header, tiers)
    hosts = {host: f"h{host}" for host in range(tree.nodes)}
    cables = tuple(tree.cables())
    switches = f"{tree.racks} ToR and {tree.aggs * tree.pods} "
    switches += "spine switches" if tree.tier_count == 2 else "aggregation switches"
    switches += f", {tree.aggs * tree.per_agg} core switches" if tree.tier_count == 3 else ""
    notes = [f"{count(tree.nodes, 'host')}, {switches}, {count(len(cables), 'cable')}"]
    notes += ranges(cables)
    if any(table.get("switch_latency_ns") for table in tiers.values()):
        notes.append("the latency of a switch is part of the delay of the links that leave it")
    if any(key.startswith("queue") for table in tiers.values() for key in table):
        notes.append("queue sizes of tiers are dropped; see `queue.capacity` of scenarios")
    notes += tree.oversubscription()
    return Network(cables, hosts, SETTINGS, (*notes, PACKET_NOTE))


class _FatTree:
    """Fat-tree of htsim: numbers of switches, and wiring as in its `fat_tree_topology.cpp`."""

    def __init__(
        self, document: Document, header: dict[str, int], tiers: dict[int, dict[str, int]]
    ) -> None:
        self._document, self._tiers = document, tiers
        self.nodes, self.tier_count = header.get("nodes", 0), header.get("tiers", 0)
        if not 0 < self.nodes <= MAX_HOSTS or self.tier_count not in (2, 3):
            raise document.error(f"expected {TOPOLOGY_SHAPE}")
        for tier in range(self.tier_count):
            needed = TIER_KEYS[: 4 if tier < self.tier_count - 1 else 3]
            missing = [key for key in needed if not tiers.get(tier, {}).get(key)]
            if missing:
                raise document.error(f"tier {tier}: missing {missing[0].capitalize()}")
        if self.tier_count in tiers:
            raise document.error(f"the header states {self.tier_count} tiers; tier 2 is one more")
        pod = header.get("podsize", self.nodes)
        self.pods = self._divide((self.nodes, "Nodes"), (pod, "Podsize"))
        radix = tiers[0]["radix_down"]
        self.racks_of_pod = self._divide((pod, "Podsize"), (radix, "Radix_Down of tier 0"))
        self.racks = self.pods * self.racks_of_pod
        self._bundles = [tiers[tier].get("bundle", 1) for tier in range(self.tier_count)]
        if self._bundles[0] != 1:
            raise document.error("tier 0: a host has one cable, so Bundle must be 1")
        self.aggs = self._divide(
            (tiers[0]["radix_up"], "Radix_Up of tier 0"), (self._bundles[1], "Bundle of tier 1")
        )
        self._check_down(1, self.racks_of_pod)
        self.per_agg = 0
        if self.tier_count == 3:
            self.per_agg = self._divide(
                (tiers[1]["radix_up"], "Radix_Up of tier 1"),
                (self._bundles[2], "Bundle of tier 2"),
            )
            self._check_down(2, self.pods)
        elif self.pods > 1:
            raise document.error("Podsize must be Nodes: two tiers have one pod")
        up = [
            self.racks * tiers[0]["radix_up"],
            self.pods * self.aggs * tiers[1].get("radix_up", 0),
        ]
        if self.nodes + sum(up[: self.tier_count - 1]) > MAX_CABLES:
            raise document.error(f"more than {MAX_CABLES} cables")

    def _divide(self, whole_number: tuple[int, str], part: tuple[int, str]) -> int:
        """Return a quotient without remainder."""
        if not part[0] or not whole_number[0] or whole_number[0] % part[0]:
            raise self._document.error(
                f"{whole_number[1]}, {whole_number[0]}, must be a multiple of {part[1]}, {part[0]}"
            )
        return whole_number[0] // part[0]

    def _check_down(self, tier: int, below: int) -> None:
        needed, stated = below * self._bundles[tier], self._tiers[tier]["radix_down"]
        if stated != needed:
            raise self._document.error(
                f"tier {tier}: Radix_Down must be {needed}, the number of cables to the "
                f"{below} {'racks' if tier == 1 else 'pods'} below, not {stated}"
            )

    def cables(self) -> Iterator[Cable]:
        """Yield the cables from the hosts up."""
        radix = self._tiers[0]["radix_down"]
        for host in range(self.nodes):
            yield from self._bundle(f"h{host}", f"tor{host // radix}", 0)
        for rack in range(self.racks):
            first = rack // self.racks_of_pod * self.aggs
            for agg in range(first, first + self.aggs):
                yield from self._bundle(f"tor{rack}", f"agg{agg}", 1)
        for agg in range(self.pods * self.aggs if self.tier_count == 3 else 0):
            for plane in range(self.per_agg):
                core = agg % self.aggs + self.aggs * plane
                yield from self._bundle(f"agg{agg}", f"core{core}", 2)

    def _bundle(self, low: str, high: str, tier: int) -> Iterator[Cable]:
        """Yield the cables of two nodes; a switch delays packets that leave it."""
        table = self._tiers[tier]
        latency = [0] + [self._tiers[i].get("switch_latency_ns", 0) for i in range(tier + 1)]
        delays = [(table["downlink_latency_ns"] + latency[i]) * 1000 for i in (tier, tier + 1)]
        rate = table["downlink_speed_gbps"] * 10**9
        yield from [Cable((low, high), rate, delays[0], delays[1])] * self._bundles[tier]

    def oversubscription(self) -> list[str]:
        """Return notes on tiers whose `Oversubscribed` differs from their radices and speeds."""
        notes = []
        for tier in range(self.tier_count - 1):
            table = self._tiers[tier]
            down = table["radix_down"] * table["downlink_speed_gbps"]
            up = table["radix_up"] * self._tiers[tier + 1]["downlink_speed_gbps"]
            if down != up * table.get("oversubscribed", 1):
                notes.append(f"tier {tier}: {down} Gb/s down, {up} Gb/s up, unlike Oversubscribed")
        return notes


def _tables(document: Document) -> tuple[dict[str, int], dict[int, dict[str, int]]]:
    """Return the keys of the header and of the tiers."""
    header: dict[str, int] = {}
    tiers: dict[int, dict[str, int]] = {}
    current = header
    for line in document.lines:
        key = line.words[0].lower()
        value = whole(line.words[1]) if len(line.words) == 2 else None
        allowed = ("nodes", "tiers", "podsize") if current is header else TIER_KEYS
        if value is None or value > MAX_VALUE or key not in ("tier", *allowed):
            raise line.expected(TOPOLOGY_SHAPE)
        if key == "tier":
            if value > 2 or value in tiers:
                raise line.error("expected each of the tiers 0, 1 and 2 once")
            current = tiers[value] = {}
        elif key in current:
            raise line.error(f"{line.words[0]} appears twice")
        else:
            current[key] = value
    return header, tiers
