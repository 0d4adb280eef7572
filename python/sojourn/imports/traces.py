"""Rate traces: Mahimahi's delivery opportunities, and rows of seconds and Mb/s (Pensieve)."""

from fractions import Fraction
from itertools import pairwise

from sojourn.base.units import count
from sojourn.imports import pairs
from sojourn.imports.document import Document, number, whole
from sojourn.imports.parts import Options, Rates
from sojourn.imports.quantities import seconds

MAHIMAHI_SHAPE = "a line with a whole number of milliseconds for each packet of 1500 B, in order"

PENSIEVE_SHAPE = "`seconds rate` on each line, rates in Mb/s, times in ascending order"

MAX_RATE = 10**9
"""Largest rate in Mb/s; the limit of rate traces."""

MAX_MILLISECONDS = 2**64 // 10**9
"""Limit of traces of Mahimahi."""

LATE_MILLISECONDS = 60_000
"""First time of a trace of Mahimahi above which it may be that of another clock."""

SETTINGS = {
    "transport": '"cubic"',
    "packet": '{ payload = "1460 B", header = "40 B" }',
}


def is_mahimahi(document: Document) -> bool:
    """Return true if the first lines have one number each."""
    rows = document.lines[:3]
    return all(len(row.words) == 1 and number(row.words[0]) is not None for row in rows)


def is_pensieve(document: Document) -> bool:
    """Return true for two columns of numbers that can only be seconds and rates."""
    return pairs.are_rates(pairs.of(document.lines))


def read_mahimahi(document: Document, _options: Options) -> Rates:
    """Read a trace of Mahimahi, which scenarios have with plain integers."""
    last = 0
    times: list[str] = []
    for row in document.lines:
        time = whole(row.words[0]) if len(row.words) == 1 else None
        if time is None or time < last:
            raise row.expected(MAHIMAHI_SHAPE)
        if time > MAX_MILLISECONDS:
            raise row.error(f"milliseconds must be at most {MAX_MILLISECONDS}, not {time}")
        last = time
        times.append(f"{time}\n")
    if last == 0:
        raise document.error("the last line ends the trace, and must be above 0")
    packets = len(times)
    mean = Fraction(packets * 1500 * 8, last * 1000)
    notes: tuple[str, ...] = (
        f"{count(packets, 'packet')} of 1500 B in {last / 1000:g} s, which repeats; "
        f"mean {float(mean):.4g} Mb/s",
    )
    first = int(times[0])
    if first > LATE_MILLISECONDS:
        notes += (
            f"the link sends nothing before {first / 1000:.12g} s: Mahimahi counts from 0; "
            "subtract the first time if it is that of another clock",
        )
    return Rates("".join(times), ".trace", notes, SETTINGS)


def read_pensieve(document: Document, options: Options) -> Rates:
    """Convert rows of seconds and Mb/s."""
    rows: list[tuple[Fraction, Fraction]] = []
    for row in document.lines:
        numbers = [number(word) for word in row.words]
        match numbers:
            case [Fraction() as time, Fraction() as rate] if time >= 0 and 0 <= rate <= MAX_RATE:
                if rows and time <= rows[-1][0]:
                    raise row.error("times must ascend from row to row")
                rows.append((time, rate))
            case _:
                raise row.expected(PENSIEVE_SHAPE)
    times, rates = [time for time, _ in rows], [rate for _, rate in rows]
    first, clock = times[0], tuple[str, ...]()
    longest = max((after - before for before, after in pairwise(times)), default=first)
    holds_before = options.rates_hold == "before"
    # Before the first row, its rate may hold for a step, but not for the age of a clock.
    if first > (longest if holds_before else 0):
        times = [time - first for time in times]
        clock = (f"times are counted from the first row, at {seconds(round(first * 10**12))} s",)
    if holds_before:
        # The rate of a row holds from the row before, and the first one only from 0 on.
        is_late = times[0] > 0
        starts = [Fraction(0), *times[:-1]] if is_late else times[:-1]
        pieces = list(zip(starts, rates if is_late else rates[1:], strict=True))
        hold = "before the time of its row, as in Pensieve's simulator"
        ends = [*[start for start, _ in pieces[1:]], times[-1]]
    else:
        pieces = list(zip(times, rates, strict=True))
        hold = "from the time of its row on (`--rates-hold before`: as in Pensieve's simulator)"
        ends = [*times[1:], times[-1]]
    if not pieces:
        raise document.error("one row at time 0 is not a trace")
    if pieces[-1][1] == 0:
        raise document.error("the last rate holds until the end of a run, and must be above 0")
    lasts = times[-1]
    work = sum(
        ((end - start) * rate for (start, rate), end in zip(pieces, ends, strict=True)), Fraction(0)
    )
    mean = work / lasts if lasts else pieces[-1][1]
    table = ["time_s,rate_bps"]
    table += [f"{seconds(round(time * 10**12))},{round(rate * 10**6)}" for time, rate in pieces]
    if any(before >= after for before, after in pairwise(round(t * 10**12) for t, _ in pieces)):
        raise document.error("times must differ by a picosecond or more")
    notes = (
        f"{count(len(rows), 'row')} over {float(lasts):g} s, read as seconds and Mb/s; mean "
        f"{float(mean):.4g} Mb/s",
        *clock,
        f"each rate holds {hold}",
        "the last rate holds until the end of a run: the trace does not repeat",
    )
    return Rates("\n".join(table) + "\n", ".csv", notes, SETTINGS, lasts)
