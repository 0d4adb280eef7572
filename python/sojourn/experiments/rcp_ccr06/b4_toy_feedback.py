"""Figure B4: with fair feedback every round trip, flows gather until there are a hundred."""

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import polars as pl

from sojourn import Figure, Labelled, Run, Scale, Verdict, at_least, equals, every, looks, plot

from .paper import paper

ROUNDS, CAPACITY = 4500, 100
SIZES = (99, 1)
"""Packets of the two flows that come at the start of every round."""

FAIR, WHOLE, SHARED = "Fair feedback", "Fair feedback, whole packets", "Processor sharing"
FLOWS, UTILISATION = "flows in progress", "utilisation"

EVERYWHERE = ("smoke", "quick", "paper")

figure = Figure(
    paper,
    id="b4",
    title="Fair feedback each round trip lets flows gather",
    source="Figure 4",
    scales={name: {"seeds": 1} for name in EVERYWHERE},
    deviations=(
        "There is no packet scenario: a flow is told at once how much to send in a round, and "
        "sends fractions of packets. Where shares are rounded down to whole packets there are 100 "
        "flows after 259 rounds, not 3422; this is the second curve.",
        "The horizontal range of the published picture is not in the text; ours is logarithmic.",
    ),
    panels=(2, 1),
    size=(6.4, 6.0),
)

# Shares are fractions with denominators up to 100; in these units they are whole numbers.
UNIT = math.lcm(*range(1, CAPACITY + 1))


@figure.runs
def runs(scale: Scale) -> Iterator[Labelled]:
    """Yield nothing: the figure is arithmetic."""
    yield from ()


def rounds(share: Callable[[int], int]) -> Iterator[tuple[int, float]]:
    """Yield the number of flows in each round, and how much of the capacity they use.

    `share` is what each of so many flows may send in a round.
    """
    left: list[int] = []
    while True:
        left += [size * UNIT for size in SIZES]
        flows, most = len(left), share(len(left))
        sent = sum(min(rest, most) for rest in left)
        left = [rest - most for rest in left if rest > most]
        yield flows, sent / (CAPACITY * UNIT)


def fair(flows: int) -> int:
    """Return an equal share of the capacity, exactly."""
    share, rest = divmod(CAPACITY * UNIT, flows)
    if rest:
        raise ValueError(f"{flows} flows have no exact share")
    return share


def in_whole_packets(flows: int) -> int:
    """Return an equal share of the capacity, rounded down to whole packets."""
    return CAPACITY // flows * UNIT


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    tables = []
    for scheme, share in ((FAIR, fair), (WHOLE, in_whole_packets)):
        counts, used = zip(*itertools.islice(rounds(share), ROUNDS), strict=True)
        for metric, values in ((FLOWS, counts), (UTILISATION, used)):
            columns = {"round": range(ROUNDS), "value": [float(value) for value in values]}
            names = {"scheme": scheme, "metric": metric}
            tables.append(
                pl.DataFrame(columns).select(
                    *(pl.lit(value).alias(name) for name, value in names.items()), "round", "value"
                )
            )
    return pl.concat(tables)


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    # Round 0 has no place on a logarithmic axis.
    shown = table.with_columns(pl.col("round") + 1)
    for place, metric, unit in zip(axes, (FLOWS, UTILISATION), ("", "%"), strict=True):
        for scheme, line in ((FAIR, "-"), (WHOLE, ":")):
            rows = shown.filter(scheme=scheme, metric=metric)
            values = rows["value"] * plot.UNITS.get(unit, 1.0)
            colour = looks.ORANGE if scheme == FAIR else looks.BLUE
            place.plot(rows["round"], values, line, color=colour, linewidth=1.3, label=scheme)
        ideal = len(SIZES) if metric == FLOWS else 100
        place.axhline(ideal, color=looks.BLACK, linestyle="--", linewidth=1, label=SHARED)
        place.set_xscale("log")
        place.xaxis.set_major_formatter("{x:g}")
        place.set_ylim(bottom=0)
        place.set_ylabel(plot.with_unit(metric, unit))
    plot.legend(axes[0])
    axes[1].set_xlabel("round trip (the first is 1)")


def values(table: pl.DataFrame, metric: str) -> list[float]:
    """Return what fair feedback gives in each round."""
    return table.filter(scheme=FAIR, metric=metric)["value"].to_list()


@figure.claim(
    "the flows gather: 2, 3, 4, 4, 5, 5, 6, …, and are 100 for ever from round 3422 on",
    scales=EVERYWHERE,
    exact=True,
)
def hundred(table: pl.DataFrame) -> Verdict:
    flows = values(table, FLOWS)
    return every(
        [
            equals(flows[:7], [2, 3, 4, 4, 5, 5, 6], "flows"),
            equals(flows.index(100) if 100 in flows else None, 3422, "first round with 100 flows"),
            equals(set(flows[3422:]), {100}, "flows from then on"),
            equals(max(flows) / len(SIZES), 50.0, "times as many as under processor sharing"),
        ]
    )


@figure.claim("in the long run the link is used to 100 %", scales=EVERYWHERE, exact=True)
def full(table: pl.DataFrame) -> Verdict:
    late = values(table, UTILISATION)[-500:]
    return at_least(sum(late) / len(late), 0.9999, "utilisation over the last 500 rounds")
