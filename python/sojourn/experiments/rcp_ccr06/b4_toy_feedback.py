"""Figure B4: flows in progress with fair feedback every round trip, which grow to a hundred."""

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import polars as pl

from sojourn import Figure, Labelled, Run, Scale, Verdict, at_least, equals, every, looks, plot

from .paper import NOT_RANDOM, paper

ROUNDS, CAPACITY = 4500, 100
SIZES = (99, 1)
"""Sizes in packets of the two flows that start in every round."""

FAIR, WHOLE, SHARED = "Fair feedback", "Fair feedback, whole packets", "Processor sharing"
FLOWS, UTILISATION = "flows in progress", "utilisation"

EVERYWHERE = ("smoke", "quick", "paper")

figure = Figure(
    paper,
    id="b4",
    title="Fair feedback each round trip lets flows gather",
    source="Figure 4",
    one_seed=NOT_RANDOM,
    scales={name: {} for name in EVERYWHERE},
    deviations=(
        "There is no packet simulation: a flow receives its share of a round without delay, and "
        "sends fractions of packets. With shares rounded down to whole packets (second curve), "
        "there are 100 flows after 259 rounds, not 3422.",
        "The horizontal range of the published picture is not in the text; ours is logarithmic.",
    ),
    panels=(2, 1),
    size=(6.4, 6.0),
)

# Shares are fractions with denominators up to 100; in this unit all are integers.
UNIT = math.lcm(*range(1, CAPACITY + 1))


@figure.runs
def runs(scale: Scale) -> Iterator[Labelled]:
    """Yield nothing: the figure is arithmetic."""
    yield from ()


def rounds(share: Callable[[int], int]) -> Iterator[tuple[int, float]]:
    """Yield the number of flows in each round, and the share of the capacity that they use.

    `share(flows)` is the amount that each of `flows` flows may send in a round.
    """
    left: list[int] = []
    while True:
        left += [size * UNIT for size in SIZES]
        flows, flow_share = len(left), share(len(left))
        sent = sum(min(rest, flow_share) for rest in left)
        left = [rest - flow_share for rest in left if rest > flow_share]
        yield flows, sent / (CAPACITY * UNIT)


def exact_share(flows: int) -> int:
    """Return an equal share of the capacity, exactly."""
    share, rest = divmod(CAPACITY * UNIT, flows)
    if rest:
        raise ValueError(f"{flows} flows have no exact share")
    return share


def whole_packet_share(flows: int) -> int:
    """Return an equal share of the capacity, rounded down to whole packets."""
    return CAPACITY // flows * UNIT


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    tables = []
    for scheme, share in ((FAIR, exact_share), (WHOLE, whole_packet_share)):
        counts, utilisations = zip(*itertools.islice(rounds(share), ROUNDS), strict=True)
        for metric, values in ((FLOWS, counts), (UTILISATION, utilisations)):
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
    shifted = table.with_columns(pl.col("round") + 1)
    for panel, metric, unit in zip(axes, (FLOWS, UTILISATION), ("", "%"), strict=True):
        for scheme, line in ((FAIR, "-"), (WHOLE, ":")):
            rows = shifted.filter(scheme=scheme, metric=metric)
            values = rows["value"] * plot.UNITS.get(unit, 1.0)
            colour = looks.ORANGE if scheme == FAIR else looks.BLUE
            panel.plot(rows["round"], values, line, color=colour, linewidth=1.3, label=scheme)
        ideal = len(SIZES) if metric == FLOWS else 100
        panel.axhline(ideal, color=looks.BLACK, linestyle="--", linewidth=1, label=SHARED)
        panel.set_xscale("log")
        panel.xaxis.set_major_formatter("{x:g}")
        panel.set_ylim(bottom=0)
        panel.set_ylabel(plot.with_unit(metric, unit))
    plot.legend(axes[0])
    axes[1].set_xlabel("round trip (the first is 1)")


def values(table: pl.DataFrame, metric: str) -> list[float]:
    """Return a quantity under fair feedback in each round."""
    return table.filter(scheme=FAIR, metric=metric)["value"].to_list()


@figure.check(
    "the flows gather: 2, 3, 4, 4, 5, 5, 6, …, and are 100 for ever from round 3422 on",
    scales=EVERYWHERE,
    exact=True,
)
def hundred_flows(table: pl.DataFrame) -> Verdict:
    flows = values(table, FLOWS)
    return every(
        [
            equals(flows[:7], [2, 3, 4, 4, 5, 5, 6], "flows"),
            equals(flows.index(100) if 100 in flows else None, 3422, "first round with 100 flows"),
            equals(set(flows[3422:]), {100}, "flows from then on"),
            equals(max(flows) / len(SIZES), 50.0, "times as many as under processor sharing"),
        ]
    )


@figure.check("in the long run the link is used to 100 %", scales=EVERYWHERE, exact=True)
def full_utilisation(table: pl.DataFrame) -> Verdict:
    last_rounds = values(table, UTILISATION)[-500:]
    return at_least(
        sum(last_rounds) / len(last_rounds), 0.9999, "utilisation over the last 500 rounds"
    )
