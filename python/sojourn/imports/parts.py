"""Parts of a scenario that files of other tools become."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from sojourn.base.units import count
from sojourn.imports.document import Line
from sojourn.imports.quantities import format_rate, format_time

NO_SETTINGS: Mapping[str, str] = {}


@dataclass(frozen=True)
class Cable:
    """Cable between two nodes; rates in bit/s, delays in picoseconds."""

    ends: tuple[str, str]
    rate: int
    delay: int
    reverse_delay: int
    loss: str = "0"


@dataclass(frozen=True)
class Network:
    """Network of hosts and switches.

    Attributes:
        cables: the cables, in the order of the file.
        hosts: names of the hosts by their number in the file.
        settings: other fields of the scenario, as TOML.
        notes: sentences on the content and on every assumption.

    """

    cables: tuple[Cable, ...]
    hosts: Mapping[int, str]
    settings: Mapping[str, str]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Flow:
    """Flow between hosts with these numbers; the start in picoseconds."""

    source: int
    target: int
    size: int
    start: int
    priority: str = ""
    after: tuple[int, ...] = ()
    """Flows, by their index in the list, after which this one starts; `start` is then 0."""
    after_count: int = 0
    """Number of these flows that must have ended."""
    delays: tuple[int, ...] = ()
    """Picoseconds after the ends of these flows; empty if all are 0."""
    earliest: int = 0
    """Time of the run in picoseconds before which a flow with `after` does not start."""
    line: Line | None = field(default=None, compare=False, repr=False)
    """Line of the file."""


@dataclass(frozen=True)
class Flows:
    """List of flows, in order of start; `hosts` is the number of hosts that the file states."""

    flows: tuple[Flow, ...]
    settings: Mapping[str, str]
    notes: tuple[str, ...]
    hosts: int | None = None


@dataclass(frozen=True)
class Sizes:
    """Flow size distribution.

    Attributes:
        text: the table in the format of `empirical`.
        packet: TOML field of the packet size, if the table counts packets.
        notes: sentences on the content and on every assumption.

    """

    text: str
    packet: str
    notes: tuple[str, ...]
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Rates:
    """Rate of a link over time.

    Attributes:
        text: the trace, in a format of `rate_traces`.
        suffix: end of the file's name.
        notes: sentences on the content and on every assumption.
        lasts: duration of the trace in seconds; 0 if it repeats.

    """

    text: str
    suffix: str
    notes: tuple[str, ...]
    settings: Mapping[str, str] = field(default_factory=dict)
    lasts: Fraction = Fraction(0)


Part = Network | Flows | Sizes | Rates


@dataclass(frozen=True)
class Options:
    """Options that a file's content does not determine.

    Attributes:
        unit: unit of sizes (`bytes`, `packets`) or of starts in a connection matrix (`ps`, `us`).
        rates_hold: `after` (the default) or `before` the time of their row.

    """

    unit: str | None = None
    rates_hold: str | None = None


SLOW_BPS = 10**6
"""Rate below which a unit may have been misread."""

LONG_PS = 10**12
"""Delay from which on a unit may have been misread."""


def ranges(cables: Sequence[Cable], units: str = "") -> Iterator[str]:
    """Yield the ranges of rates and delays, and warnings of odd ones that state the units."""
    if not cables:
        return
    rates = [cable.rate for cable in cables]
    delays = [max(cable.delay, cable.reverse_delay) for cable in cables]
    least = min(min(cable.delay, cable.reverse_delay) for cable in cables)
    spans = (map(format_rate, (min(rates), max(rates))), map(format_time, (least, max(delays))))
    shown = (" to ".join(dict.fromkeys(span)) for span in spans)
    yield "rates {}, delays {}".format(*shown)
    slow = [(cable, format_rate(cable.rate)) for cable in cables if cable.rate < SLOW_BPS]
    long = [
        (cable, format_time(delay))
        for cable, delay in zip(cables, delays, strict=True)
        if delay >= LONG_PS
    ]
    for odd, what in ((slow, "a rate below 1 Mbps"), (long, "a delay of 1 s or more")):
        if odd:
            cable, value = odd[0]
            place = f"{cable.ends[0]} to {cable.ends[1]} with {value}"
            number = count(len(odd), "cable has", "cables have")
            yield f"warning: {number} {what}, such as {place}{units}"


def by_priority(flows: list[Flow]) -> tuple[list[Flow], str]:
    """Return the flows, and a note on priorities; equal priorities are dropped."""
    names = sorted({flow.priority for flow in flows} - {""})
    if len(names) > 1 or (names and any(not flow.priority for flow in flows)):
        return flows, "priorities become classes of flows, such as " + f"`priority{names[0]}`"
    plain = [replace(flow, priority="") for flow in flows]
    return plain, f"the priority {names[0]} of all flows is dropped" if names else ""
