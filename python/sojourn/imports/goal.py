"""Schedules of the format GOAL, of LogGOPSim and ATLAHS, in their text form."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from sojourn.base.units import count
from sojourn.imports.document import Document, Line, whole
from sojourn.imports.parts import Flow, Flows, Options

SHAPE = (
    "`num_ranks N`, and `rank R { … }` with lines `label: send 8b to R`, `recv 8b from R`, "
    "`calc NS`, `label requires label`, `label irequires label`"
)

SETTINGS = {"transport": '"dctcp"'}

COMMENTS = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)

LABEL = re.compile(r"[A-Za-z_]\w{0,63}", re.ASCII)

MAX_RANKS = 1 << 20

MAX_WAITS = 10**6
"""Limit of the ends for which all flows wait."""

NANOSECOND = 1000
"""Picoseconds of the unit of `calc`."""

ROOT = -1
"""Start of the run, in place of the number of a message."""

Waits = dict[int, int]
"""Delay in picoseconds after each end of a message, or after `ROOT`."""


@dataclass
class _Operation:
    """Operation of a rank: `needs` are those that must have ended, `begun` must have begun."""

    line: Line
    kind: str
    rank: int
    peer: int = 0
    amount: int = 0
    """Bytes of a message, nanoseconds of a computation."""
    tag: int = 0
    needs: list[int] = field(default_factory=list)
    begun: list[int] = field(default_factory=list)


def is_goal(document: Document) -> bool:
    """Return true if a line begins with `num_ranks`."""
    return any(line.words[0] == "num_ranks" for line in document.lines[:100])


def read(document: Document, _options: Options) -> Flows:
    """Read a schedule."""
    operations = _operations(document)
    messages = _matched(document, operations)
    starts = _starts(document, operations, messages)
    sends = [number for number, operation in enumerate(operations) if operation.kind == "send"]
    flows = _in_order(operations, sends, starts)
    notes = [
        f"{count(len(flows), 'flow')}, {count(sum(bool(flow.after) for flow in flows), 'flow')} "
        "after other flows",
        "a send ends when all its data are acknowledged, a recv when all its data have arrived",
        "hosts have no overheads, and compute any number of `calc` at the same time",
    ]
    return Flows(tuple(flows), SETTINGS, tuple(notes))


def _lines(document: Document) -> Iterator[Line]:
    """Yield the lines without comments; a brace is a word of its own."""

    def blank(comment: re.Match[str]) -> str:
        return "\n" * comment[0].count("\n") or " "

    text = COMMENTS.sub(blank, document.text)
    for number, row in enumerate(text.split("\n"), 1):
        words = tuple(row.replace("{", " { ").replace("}", " } ").split())
        if words:
            yield Line(document.path, number, words)


def _operations(document: Document) -> list[_Operation]:
    """Return the operations of all ranks, with what they need."""
    lines = _lines(document)
    first = next(lines, None)
    ranks = whole(first.words[1]) if first and len(first.words) == 2 else None
    if first is None or first.words[0] != "num_ranks" or not ranks or ranks > MAX_RANKS:
        raise document.error(f"expected {SHAPE}, with 1 to {MAX_RANKS} ranks")
    operations: list[_Operation] = []
    labels: dict[str, int] = {}
    rank: int | None = None
    seen: set[int] = set()
    for line in lines:
        words = line.words
        if rank is None:
            rank = whole(words[1]) if len(words) == 3 and words[::2] == ("rank", "{") else None
            if rank is None:
                raise line.expected("`rank R {`")
            if rank >= ranks or rank in seen:
                problem = "appears twice" if rank in seen else f"the ranks are 0 to {ranks - 1}"
                raise line.error(f"rank {rank}: {problem}")
            seen.add(rank)
            labels = {}
        elif words == ("}",):
            rank = None
        elif len(words) == 3 and words[1] in ("requires", "irequires"):
            later, earlier = (labels.get(word) for word in words[::2])
            if later is None or earlier is None:
                unknown = words[0] if later is None else words[2]
                raise line.error(f"rank {rank} has no label `{unknown[:40]}`")
            operation = operations[later]
            (operation.needs if words[1] == "requires" else operation.begun).append(earlier)
        else:
            label = words[0].removesuffix(":") if words[0].endswith(":") else None
            if label is not None:
                if not LABEL.fullmatch(label) or label in labels:
                    raise line.error(f"the label `{label[:40]}` is invalid, or appears twice")
                labels[label] = len(operations)
                words = words[1:]
            operations.append(_operation(line, words, rank, ranks))
    if rank is not None:
        raise document.error(f"ends within rank {rank}; expected `}}`")
    return operations


def _operation(line: Line, words: tuple[str, ...], rank: int, ranks: int) -> _Operation:
    """Return the operation of a line without its label."""
    kind = words[0] if words else ""
    amount = whole(words[1].removesuffix("b")) if len(words) > 1 else None
    if kind not in ("send", "recv", "calc") or amount is None:
        raise line.expected(SHAPE)
    rest = words[2:]
    operation = _Operation(line, kind, rank, amount=amount)
    if kind != "calc":
        preposition = "to" if kind == "send" else "from"
        is_named = len(rest) > 1 and rest[0] == preposition
        peer = whole(rest[1]) if is_named else None
        if rest[:2] == ("from", "-1"):
            raise line.error("a recv from any rank (-1) cannot be converted; name the rank")
        if peer is None:
            raise line.expected(SHAPE)
        if peer >= ranks or peer == rank or amount == 0:
            raise line.error(
                f"expected another rank from 0 to {ranks - 1}, and a size above 0, "
                f"not {amount}b with rank {peer}"
            )
        operation.peer = peer
        rest = rest[2:]
    names = ("cpu",) if kind == "calc" else ("tag", "cpu", "nic")
    for name, value in zip(rest[::2], (*rest[1::2], ""), strict=False):
        number = whole(value)
        if name not in names or number is None:
            raise line.error(f"expected numbers after {', '.join(names)}, not `{name[:40]}`")
        if name == "tag":
            operation.tag = number
    return operation


def _matched(document: Document, operations: list[_Operation]) -> dict[int, int]:
    """Return the send of each recv: those of two ranks and one tag, in order."""
    sends: dict[tuple[int, int, int], list[int]] = defaultdict(list)
    recvs: dict[tuple[int, int, int], list[int]] = defaultdict(list)
    for number, operation in enumerate(operations):
        if operation.kind == "send":
            sends[operation.rank, operation.peer, operation.tag].append(number)
        elif operation.kind == "recv":
            recvs[operation.peer, operation.rank, operation.tag].append(number)
    if not sends:
        raise document.error("no send")
    matched = {}
    for key in [*sends, *(recvs.keys() - sends.keys())]:
        if len(sends[key]) != len(recvs[key]):
            source, target, tag = key
            number = (sends[key] or recvs[key])[0]
            raise operations[number].line.error(
                f"from rank {source} to rank {target} with tag {tag} there are "
                f"{count(len(sends[key]), 'send')} and {count(len(recvs[key]), 'recv')}"
            )
        for send, recv in zip(sends[key], recvs[key], strict=True):
            if operations[send].amount != operations[recv].amount:
                expected = operations[send].amount
                raise operations[recv].line.error(f"its send has {expected} bytes")
            matched[recv] = send
    return matched


def _starts(document: Document, operations: list[_Operation], sends: dict[int, int]) -> list[Waits]:
    """Return for each operation the ends of messages after which it starts."""
    before = [[*operation.needs, *operation.begun] for operation in operations]
    order = _topological(before)
    if len(order) < len(operations):
        stuck = min(set(range(len(operations))) - set(order))
        raise operations[stuck].line.error("requires itself, through other operations")
    starts: list[Waits] = [{} for _ in operations]
    ends: list[Waits] = [{} for _ in operations]
    total = 0
    for number in order:
        operation = operations[number]
        start = _latest(
            [*(ends[other] for other in operation.needs), *(starts[o] for o in operation.begun)]
        ) or {ROOT: 0}
        starts[number] = start
        if operation.kind == "calc":
            ends[number] = {end: d + operation.amount * NANOSECOND for end, d in start.items()}
        elif operation.kind == "send":
            ends[number] = {number: 0}
        else:
            ends[number] = _latest([start, {sends[number]: 0}])
        total += len(start)
        if total > MAX_WAITS:
            raise document.error(f"more than {MAX_WAITS} dependencies of operations on messages")
    return starts


def _latest(waits: Iterable[Waits]) -> Waits:
    """Return the largest delay after each end."""
    latest: Waits = {}
    for item in waits:
        for end, delay in item.items():
            latest[end] = max(delay, latest.get(end, 0))
    return latest


def _topological(before: list[list[int]]) -> list[int]:
    """Return the numbers in an order in which each follows those before it; without circles."""
    followers: dict[int, list[int]] = defaultdict(list)
    missing = [len(numbers) for numbers in before]
    for number, earlier in enumerate(before):
        for other in earlier:
            followers[other].append(number)
    order = [number for number, needed in enumerate(missing) if needed == 0]
    for number in order:
        for follower in followers[number]:
            missing[follower] -= 1
            if missing[follower] == 0:
                order.append(follower)
    return order


def _in_order(operations: list[_Operation], sends: list[int], starts: list[Waits]) -> list[Flow]:
    """Return the flows: those that start by themselves in order of start, then the others."""
    place = {number: index for index, number in enumerate(sends)}
    before = [[place[end] for end in starts[number] if end != ROOT] for number in sends]
    order = _topological(before)
    if len(order) < len(sends):
        stuck = sends[min(set(range(len(sends))) - set(order))]
        raise operations[stuck].line.error("waits for itself, through messages of other ranks")
    by_themselves = [index for index in order if not before[index]]
    by_themselves.sort(key=lambda index: starts[sends[index]][ROOT])
    order = by_themselves + [index for index in order if before[index]]
    row = {sends[index]: number for number, index in enumerate(order)}
    flows = []
    for index in order:
        number = sends[index]
        operation, waits = operations[number], dict(starts[number])
        flow = Flow(operation.rank, operation.peer, operation.amount, 0, line=operation.line)
        earliest = waits.pop(ROOT, 0)
        if not waits:
            flows.append(replace(flow, start=earliest))
            continue
        after = sorted((row[end], delay) for end, delay in waits.items())
        rows, delays = zip(*after, strict=True)
        shown = delays if any(delays) else ()
        flows.append(
            replace(flow, after=rows, after_count=len(rows), delays=shown, earliest=earliest)
        )
    return flows
