"""Topologies and flows of the HPCC simulator and its descendants.

Among them are ConWeave, ns3-datacenter (PowerTCP), ns-3-alibabacloud (SimAI) and Parsimon.
Their readers take any white space for a separator, and only as many rows as the header states.
"""

from collections.abc import Iterable
from itertools import product

from sojourn.base.units import count
from sojourn.imports.document import Document, Line, Words, number, whole
from sojourn.imports.parts import Cable, Flow, Flows, Network, Options, by_priority, ranges
from sojourn.imports.quantities import RATE, TIME, parse_rate, parse_time

TOPOLOGY_SHAPE = (
    "`nodes switches links` (or `nodes switches tors links`, or `nodes gpus_per_server nvswitches "
    "switches links gpu_type`), the switches' numbers, and `a b rate delay error` for each link"
)

FLOWS_SHAPE = (
    "the number of flows, and for each `source target priority port bytes start_s` "
    "(or without the port, or with a number before)"
)

PACKET = '{ payload = "1000 B", header = "48 B", ack = "60 B" }'
"""Packet sizes of the HPCC simulator without INT."""

SETTINGS = {"transport": '"dcqcn"', "packet": PACKET}

PACKET_NOTE = (
    "transport and packet sizes are not in these files; those below are DCQCN and the sizes of "
    "the HPCC simulator without INT"
)

COLUMNS = (5, 6, 7)
"""Columns of flows: those of ConWeave, HPCC and Parsimon."""

MAX_NODES = 1 << 20
"""Limit of the topology `graph`."""


def is_topology(document: Document) -> bool:
    """Return true if a line has a rate or a time with its unit, where links have them."""
    rows = [row.words for row in document.lines[1:100] if len(row.words) > 3]
    return any(RATE.fullmatch(row[2]) or TIME.fullmatch(row[3]) for row in rows)


def is_flows(document: Document) -> bool:
    """Return true for lines of five to seven numbers, below the number of flows or a header."""
    first, *rest = document.lines[:2]
    has_count = len(first.words) == 1 and whole(first.words[0]) is not None
    row = rest[0] if rest else first
    is_row = len(row.words) in COLUMNS and None not in map(number, row.words)
    is_uniform = len({number(word) is None for word in first.words}) == 1
    return is_row and (has_count or (is_uniform and len(first.words) in COLUMNS))


def read_topology(document: Document, _options: Options) -> Network:
    """Read `topology.txt`."""
    header = document.lines[0]
    node_count, nvswitch_count, switch_count, link_count = _header(header)
    words = Words(document, document.lines[1:])

    def node(meaning: str) -> int:
        value = whole(words.take(meaning))
        if value is None or value >= node_count:
            raise words.line.error(f"expected {meaning}, a number from 0 to {node_count - 1}")
        return value

    names: dict[int, str] = {}
    for prefix, amount in (("nv", nvswitch_count), ("s", switch_count)):
        for _ in range(amount):
            switch = node("the number of a switch")
            if switch in names:
                raise words.line.error(f"the switch {switch} is listed twice")
            names[switch] = f"{prefix}{switch}"
    hosts = {host: f"h{host}" for host in range(node_count) if host not in names}
    names |= hosts
    cables: list[Cable] = []
    for _ in range(link_count):
        stated = f"link {len(cables) + 1} of {link_count}, `a b rate delay error`"
        ends = (names[node(stated)], names[node(stated)])
        if ends[0] == ends[1]:
            raise words.line.error("a link must join two different nodes")
        rate, delay = parse_rate(words.take(stated)), parse_time(words.take(stated))
        loss = words.take(stated)
        share = number(loss)
        if rate is None:
            raise words.line.error(f"{stated}: the rate must be like 25Gbps or 25000000000.0")
        if delay is None:
            raise words.line.error(f"{stated}: the delay must be like 0.001ms, 1000ns or 1us")
        if share is None or not 0 <= share <= 1:
            raise words.line.error(f"{stated}: the error rate must be from 0 to 1, not `{loss}`")
        cables.append(Cable(ends, rate, delay, delay, loss if share else "0"))
    ignored = len(list(words.rest()))
    linked = {end for cable in cables for end in cable.ends}
    lone = [name for name in hosts.values() if name not in linked]
    hosts = {host: name for host, name in hosts.items() if name in linked}
    switches = count(switch_count + nvswitch_count, "switch", "switches")
    notes = [f"{count(len(hosts), 'host')}, {switches}, {count(link_count, 'cable')}"]
    notes += ranges(cables, "; numbers without a unit count bit/s and seconds")
    if ignored:
        stated = f"{count(link_count, 'link')} of the header"
        notes.append(f"{count(ignored, 'line')} after the {stated} are ignored, as by HPCC")
    if lone:
        notes.append(f"{count(len(lone), 'host')} without a link left out, such as {lone[0]}")
    if _has_equal_paths(cables, hosts.values()):
        notes.append(
            "hosts of a server share both an NVSwitch and a switch: SimAI sends over the NVSwitch "
            "only, and here flows are hashed over both paths"
        )
    if any(cable.loss != "0" for cable in cables):
        notes.append("error rates are losses of packets, in both directions")
    notes.append(PACKET_NOTE)
    return Network(tuple(cables), hosts, SETTINGS, tuple(notes))


def _has_equal_paths(cables: list[Cable], hosts: Iterable[str]) -> bool:
    """Return true if two hosts have a common NVSwitch and another common switch."""
    neighbours: dict[str, set[str]] = {host: set() for host in hosts}
    for cable in cables:
        for host, other in (cable.ends, cable.ends[::-1]):
            if host in neighbours:
                neighbours[host].add(other)
    seen: set[tuple[str, str]] = set()
    for linked in neighbours.values():
        nvswitches = {node for node in linked if node.startswith("nv")}
        both = set(product(nvswitches, linked - nvswitches))
        if seen & both:
            return True
        seen |= both
    return False


def _header(header: Line) -> tuple[int, int, int, int]:
    """Return the numbers of nodes, NVSwitches, switches and links of one of the headers."""
    words = header.words
    numbers = [whole(word) for word in (words[:5] if len(words) == 6 else words)]
    match numbers:
        case [int(nodes), int(switches), int(links)]:
            nvswitches = 0
        case [int(nodes), int(switches), int(_tors), int(links)]:
            nvswitches = 0
        case [int(nodes), int(_gpus), int(nvswitches), int(switches), int(links)] if (
            len(words) == 6
        ):
            pass
        case _:
            raise header.expected(TOPOLOGY_SHAPE)
    if nodes > MAX_NODES:
        raise header.error(f"{nodes} nodes; at most {MAX_NODES}")
    if links == 0:
        raise header.error("the number of links must be above 0")
    if nvswitches + switches > nodes:
        raise header.error(f"{nvswitches + switches} switches, but {nodes} nodes")
    return nodes, nvswitches, switches, links


def read_flows(document: Document, _options: Options) -> Flows:
    """Read `flow.txt`."""
    first, *rows = document.lines
    stated = whole(first.words[0]) if len(first.words) == 1 else None
    if stated is None:
        raise first.expected("a line with the number of flows before the flows")
    flows = [_flow(row, len(rows[0].words)) for row in rows[:stated]]
    if not flows:
        raise document.error("no flows")
    notes = [count(len(flows), "flow")]
    if len(rows) > stated:
        notes.append(
            f"{count(len(rows) - stated, 'line')} after the {count(stated, 'flow')} of the header "
            "are ignored, as by HPCC"
        )
    elif len(rows) < stated:
        notes.append(f"the header states {count(stated, 'flow')}")
    in_order = sorted(flows, key=lambda flow: flow.start)
    if in_order != flows:
        notes.append("the flows are sorted by their start")
    in_order, note = by_priority(in_order)
    ports = "" if len(rows[0].words) == 5 else "ports are dropped"
    notes += [note, ports, PACKET_NOTE]
    return Flows(tuple(in_order), SETTINGS, tuple(filter(None, notes)))


def _flow(row: Line, columns: int) -> Flow:
    """Read a flow; Parsimon's have a number before, and ConWeave's have no port."""
    if len(row.words) != columns or columns not in COLUMNS:
        raise row.expected(FLOWS_SHAPE)
    source, target, priority, *_, size, start = row.words[1:] if columns == 7 else row.words
    ends, size_bytes, start_ps = (whole(source), whole(target)), whole(size), parse_time(start)
    if None in (*ends, size_bytes, start_ps) or whole(priority) is None or not size_bytes:
        raise row.expected(FLOWS_SHAPE)
    if ends[0] == ends[1]:
        raise row.error(f"source and target must differ, and both are {ends[0]}")
    return Flow(ends[0] or 0, ends[1] or 0, size_bytes, start_ps or 0, priority, line=row)
