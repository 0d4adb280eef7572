"""Scenario of imported parts, in the documented formats, with all assumptions as comments."""

import math
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TypeVar

from sojourn._core import ScenarioError
from sojourn.base.errors import FileError
from sojourn.base.units import count
from sojourn.imports import formats
from sojourn.imports.document import Document
from sojourn.imports.parts import Flow, Flows, Network, Options, Part, Rates, Sizes
from sojourn.imports.quantities import format_rate, format_time, seconds
from sojourn.scenario import encoding

P = TypeVar("P", Network, Flows, Sizes)

SCENARIO = "scenario.toml"

TOPOLOGY, FLOWS, SIZES = "topology.csv", "flows.csv", "sizes.csv"
"""Files of a scenario, besides rate traces."""

MADE = re.compile(r"(?:[\w.\[\]]+: )?(\w+\.(?:csv|trace))(?::(\d+))?: ")
"""Place of an error in such a file, after the field that names it."""

LINKS = ("left->right", "right->left")
"""Links of rate traces on the topology `link`, in the order of the files."""

LAST_FLOW_SECONDS = 10
"""Time limit after the start of the last flow."""

TRACE_SECONDS = 60
"""Time limit of a run of rate traces that are shorter, or repeat."""

HOUR = 3600
"""Time limit of a run of longer rate traces."""

MAX_SECONDS = 9 * 10**6
"""Largest time limit; a scenario counts picoseconds up to 2^63."""

PERMUTATION = '{ kind = "permutation", size = "1 MB" }'


@dataclass(frozen=True)
class Imported:
    """Scenario of imported files.

    Attributes:
        texts: contents of the files to write, by name.
        lines: a summary: sentences on every file.

    """

    texts: Mapping[str, str]
    lines: Sequence[str]


@dataclass(frozen=True)
class Source:
    """Imported file: its name, format and part."""

    name: str
    format: str
    part: Part


def convert(
    paths: Sequence[Path],
    *,
    names: Sequence[str] = (),
    options: Options | None = None,
    links: Sequence[str] = (),
) -> Imported:
    """Return a scenario of these files, checked.

    Args:
        paths: the files, at most one of each kind, and one rate trace for each link.
        names: the format of each file, if not to be recognised.
        options: units and other facts that the files do not contain.
        links: the link of each rate trace, in order.

    Raises:
        ScenarioError: for a file that cannot be read or does not go with the others.

    """
    if names and len(names) != len(paths):
        raise ScenarioError(f"--as: {len(names)} formats, but {len(paths)} files")
    options = options or Options()
    sources = []
    used: set[str] = set()
    for number, path in enumerate(paths):
        document = Document.read(path)
        chosen = formats.named(names[number]) if names else formats.recognised(document)
        used.update(chosen.options)
        part = chosen.read(document, options)
        sources.append(Source(_printable(path.name), chosen.name, part))
    if options.unit is not None and "unit" not in used:
        raise ScenarioError(
            "--unit: no file of this import has a unit to choose; only sizes (bytes, packets) and "
            "connection matrices (ps, us) have"
        )
    if options.rates_hold is not None and "rates_hold" not in used:
        raise ScenarioError("--rates-hold: no file of this import is a table of seconds and Mb/s")
    builder = _Builder(sources, links)
    fields, texts, notes = builder.build()
    if builder.sizes:
        # Other seeds have other starts, and the last flows need time to end.
        with builder.naming_sources():
            last = _last_arrival(fields, texts)
        limit = min(math.ceil(2 * last) + LAST_FLOW_SECONDS, MAX_SECONDS)
        limit = max(limit, builder.rates_limit())
        fields["time_limit"] = f'"{limit} s"'
        notes.append(f"the flows arrive within {last:.3g} s; the time limit is {limit} s")
    # Files of one tool share notes on facts that they do not contain.
    by_note = {note: source.name for source in reversed(sources) for note in source.part.notes}
    notes = [
        f"{source.name}: {note}"
        for source in sources
        for note in source.part.notes
        if by_note[note] == source.name
    ] + notes
    names_of = ", ".join(f"{source.name} ({source.format})" for source in sources)
    comments = [f"Made by `sojourn import` of {names_of}.", *notes]
    body = _toml(fields)
    texts[SCENARIO] = "".join(f"# {line}\n" for line in comments) + "\n" + body
    with builder.naming_sources():
        encoding.check(_with_texts(tomllib.loads(body), texts))
    return Imported(texts, notes)


def _toml(fields: Mapping[str, str]) -> str:
    return "".join(f"{name} = {value}\n" for name, value in fields.items())


def _last_arrival(fields: Mapping[str, str], texts: Mapping[str, str]) -> float:
    """Return the start of the last flow in seconds."""
    endless = _toml({**fields, "time_limit": f'"{MAX_SECONDS} s"'})
    columns = encoding.trace(_with_texts(tomllib.loads(endless), texts))
    return float(max(columns["flows"]["start_s"], default=0))


def _printable(name: str) -> str:
    """Return a file name for comments, without control characters."""
    return "".join(char if char.isprintable() else "?" for char in name)


def _with_texts(value: object, texts: Mapping[str, str]) -> dict[str, object]:
    """Return a scenario with the texts of its files."""

    def replace(value: object) -> object:
        if isinstance(value, dict):
            return {
                key: {"name": inner, "text": texts[inner]} if key == "file" else replace(inner)
                for key, inner in value.items()
            }
        return [replace(inner) for inner in value] if isinstance(value, list) else value

    replaced = replace(value)
    assert isinstance(replaced, dict)
    return replaced


class _Builder:
    """Fields and files of the scenario of several parts."""

    def __init__(self, sources: Sequence[Source], links: Sequence[str]) -> None:
        self._sources = sources
        self.network = self._only(Network, "topologies")
        self.flows = self._only(Flows, "lists of flows")
        self.sizes = self._only(Sizes, "size distributions")
        if self.flows and self.sizes:
            raise ScenarioError(f"{self._name(Sizes)}: the flows of {self._name(Flows)} have sizes")
        self.rates = [s.part for s in sources if isinstance(s.part, Rates)]
        self.links = links or ("" if self.network else LINKS)
        if self.rates and not self.links:
            raise ScenarioError("--link: needed for each rate trace, such as --link s6->s7")
        if (links and len(links) != len(self.rates)) or len(self.rates) > len(self.links):
            raise ScenarioError(f"--link: {len(self.links)} links, {len(self.rates)} rate traces")
        self.texts: dict[str, str] = {}
        self._origins: dict[str, str] = {}
        self.notes: list[str] = []

    def _only(self, kind: type[P], what: str) -> P | None:
        parts = [source.part for source in self._sources if isinstance(source.part, kind)]
        if len(parts) > 1:
            raise ScenarioError(f"{self._name(kind)}: one of several {what}; import one at a time")
        return parts[0] if parts else None

    def _name(self, kind: type[Part]) -> str:
        return next(source.name for source in self._sources if isinstance(source.part, kind))

    def build(self) -> tuple[dict[str, str], dict[str, str], list[str]]:
        """Return the fields of the scenario as TOML, the texts of other files, and notes."""
        fields: dict[str, str] = {}
        for source in reversed(self._sources):
            fields |= source.part.settings
        fields |= {"topology": self._topology(), "workload": self._workload()}
        if self.rates:
            fields["rate_traces"] = self._rate_traces()
        if self.rates:
            fields["time_limit"] = f'"{self.rates_limit()} s"'
        if self.flows:
            starts = _earliest_starts(self.flows.flows)
            last = max(starts)
            if last > MAX_SECONDS * 10**12:
                line = self.flows.flows[starts.index(last)].line
                problem = f"starts at {last / 10**12:.10g} s; a run has at most {MAX_SECONDS} s"
                raise line.error(problem) if line else ScenarioError(problem)
            fields["time_limit"] = f'"{-(-last // 10**12) + LAST_FLOW_SECONDS} s"'
        return fields, self.texts, self.notes

    @contextmanager
    def naming_sources(self) -> Iterator[None]:
        """Name the imported files in errors of the files that are made from them."""
        try:
            yield
        except ScenarioError as error:
            file = MADE.match(str(error))
            if file is None or file[1] not in self._origins:
                raise
            message = str(error)[file.end() :]
            row = int(file[2]) - 2 if file[2] else -1
            if file[1] == FLOWS and self.flows and 0 <= row < len(self.flows.flows):
                line = self.flows.flows[row].line
                if line is not None:
                    raise line.error(message) from None
            raise FileError(f"{self._origins[file[1]]}: {message}") from None

    def _topology(self) -> str:
        if self.network:
            self.texts[TOPOLOGY] = _links(self.network)
            self._origins[TOPOLOGY] = self._name(Network)
            self.notes += _renumbering(self.network)
            stated = self.flows.hosts if self.flows else None
            if stated not in (None, len(self.network.hosts)):
                self.notes.append(
                    f"{self._name(Flows)} states {count(stated or 0, 'host')}, and "
                    f"{self._name(Network)} has {len(self.network.hosts)}"
                )
            names = ", ".join(f'"{host}"' for host in _listed_hosts(self.network))
            listed = f", hosts = [{names}]" if names else ""
            return f'{{ kind = "graph", file = "{TOPOLOGY}"{listed} }}'
        if self.rates:
            self.notes.append("the delay of the link is an assumption, 20 ms one way")
            return '{ kind = "link", delay = "20 ms" }'
        if self.flows:
            last = max(max(flow.source, flow.target) for flow in self.flows.flows)
            self.notes.append("no topology was imported; the hosts are on one switch")
            return f'{{ kind = "star", hosts = {last + 1} }}'
        self.notes.append("no topology was imported; a dumbbell with defaults")
        return '{ kind = "dumbbell" }'

    def _workload(self) -> str:
        if self.flows:
            self.texts[FLOWS] = self._flow_rows(self.flows)
            self._origins[FLOWS] = self._name(Flows)
            return f'{{ kind = "trace", file = "{FLOWS}" }}'
        if self.sizes:
            self.texts[SIZES] = self.sizes.text
            self._origins[SIZES] = self._name(Sizes)
            packet = f", {self.sizes.packet}" if self.sizes.packet else ""
            self.notes.append("the load is an assumption, 0.3, with 1000 flows")
            sizes = f'{{ kind = "empirical", file = "{SIZES}"{packet} }}'
            # An assumed load may exceed the rates of an imported network.
            overload = ", allow_overload = true" if self.network or self.rates else ""
            return f'{{ kind = "poisson", load = 0.3, flows = 1000, sizes = {sizes}{overload} }}'
        if self.network and not self.rates:
            self.notes.append("no flows were imported; each host sends 1 MB to another")
            return PERMUTATION
        limit = self.rates_limit()
        self.notes.append(f"no flows were imported; one long-lived flow, for {limit} s")
        return '{ kind = "long_lived", flows = 1 }'

    def _flow_rows(self, flows: Flows) -> str:
        has_class = any(flow.priority for flow in flows.flows)
        has_after = any(flow.after for flow in flows.flows)
        columns = ["start_s", "source", "target", "size_bytes"]
        has_count = any(flow.after_count < len(flow.after) for flow in flows.flows)
        columns += ["class"] * has_class + ["after"] * has_after + ["after_count"] * has_count
        rows = [",".join(columns)]
        for flow in flows.flows:
            ends = [self._host(host, flow) for host in (flow.source, flow.target)]
            row = [seconds(flow.start), *ends, str(flow.size)]
            row += [f"priority{flow.priority}" if flow.priority else ""] * has_class
            row += [" ".join(_after(flow))] * has_after
            row += [str(flow.after_count or "")] * has_count
            rows.append(",".join(row))
        return "\n".join(rows) + "\n"

    def _host(self, host: int, flow: Flow) -> str:
        if self.network is None:
            return str(host)
        if host not in self.network.hosts:
            name, hosts = self._name(Network), self.network.hosts
            problem = f"{host} is not a host of {name}, which has {_numbers(hosts)}"
            raise flow.line.error(problem) if flow.line else ScenarioError(problem)
        return self.network.hosts[host]

    def rates_limit(self) -> int:
        """Return the time limit in seconds that rate traces need; 0 without them."""
        longest = max((rates.lasts for rates in self.rates), default=Fraction(0))
        return min(max(math.ceil(longest), TRACE_SECONDS), HOUR) if self.rates else 0

    def _rate_traces(self) -> str:
        entries = []
        traces = [source.name for source in self._sources if isinstance(source.part, Rates)]
        for number, (link, rates) in enumerate(zip(self.links, self.rates, strict=False), 1):
            file = f"rates{number if len(self.rates) > 1 else ''}{rates.suffix}"
            self.texts[file] = rates.text
            self._origins[file] = traces[number - 1]
            quoted = link.replace("\\", "\\\\").replace('"', '\\"')
            entries.append(f'{{ link = "{_printable(quoted)}", file = "{file}" }}')
        return f"[{', '.join(entries)}]"


def _earliest_starts(flows: Sequence[Flow]) -> list[int]:
    """Return starts in picoseconds as if all flows took no time; causes precede their effects."""
    starts: list[int] = []
    for flow in flows:
        delays = flow.delays or (0,) * len(flow.after)
        after = [starts[cause] + delay for cause, delay in zip(flow.after, delays, strict=True)]
        starts.append(max([flow.start, flow.earliest, *after]))
    return starts


def _after(flow: Flow) -> Iterator[str]:
    """Yield the words of the column `after`."""
    for number, delay in zip(flow.after, flow.delays or [0] * len(flow.after), strict=True):
        yield f"{number}+{seconds(delay)}" if delay else str(number)
    if flow.earliest:
        yield f"+{seconds(flow.earliest)}"


def _links(network: Network) -> str:
    """Return the table of links of the topology `graph`."""
    has_loss = any(cable.loss != "0" for cable in network.cables)
    has_reverse = any(cable.delay != cable.reverse_delay for cable in network.cables)
    columns = [
        "from",
        "to",
        "rate",
        "delay",
        *["loss"] * has_loss,
        *["reverse_delay"] * has_reverse,
    ]
    rows = [",".join(columns)]
    for cable in network.cables:
        row = [*cable.ends, format_rate(cable.rate), format_time(cable.delay)]
        row += [cable.loss] * has_loss + [format_time(cable.reverse_delay)] * has_reverse
        rows.append(",".join(row))
    return "\n".join(rows) + "\n"


def _listed_hosts(network: Network) -> list[str]:
    """Return the hosts to list: none if these are the nodes with one link, in order of use."""
    degrees: dict[str, int] = {}
    for cable in network.cables:
        for end in cable.ends:
            degrees[end] = degrees.get(end, 0) + 1
    hosts = list(network.hosts.values())
    lone = [node for node, degree in degrees.items() if degree == 1]
    return [] if lone == hosts else hosts


def _numbers(hosts: Mapping[int, str]) -> str:
    """Return the numbers of hosts in words; a range has no gaps."""
    numbers = list(hosts)
    if not numbers:
        return "none"
    if numbers == list(range(numbers[0], numbers[-1] + 1)):
        return f"{numbers[0]} to {numbers[-1]}"
    return ", ".join(map(str, numbers[:8])) + (", …" if len(numbers) > 8 else "")


def _renumbering(network: Network) -> list[str]:
    """Return a note on hosts whose numbers in results differ from those of the file."""
    numbers = list(network.hosts)
    if numbers == list(range(len(numbers))):
        return []
    shown = [", ".join(map(str, some[:4])) for some in (numbers, range(len(numbers)))]
    more = ", …" if len(numbers) > 4 else ""
    return [
        f"results number the hosts {shown[0]}{more} as {shown[1]}{more}; names, such as "
        f"{network.hosts[numbers[0]]}, keep the numbers of the file"
    ]
