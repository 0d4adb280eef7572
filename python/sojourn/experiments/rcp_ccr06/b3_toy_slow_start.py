"""Figure B3: flows in progress under slow start, six times as many as under processor sharing."""

from collections.abc import Iterator

import numpy as np
import polars as pl
from matplotlib.axes import Axes

from sojourn import Figure, Labelled, Run, Scale, Verdict, equals, every, plot, theory

from .paper import NOT_RANDOM, PAYLOAD, SHAPE, link_topology, paper

ROUNDS = 40
"""Round trips shown."""

SIZE, EACH_ROUND = 50, 2

# 100 packets of 1000 B each round trip of 100 ms.
LINK = theory.Link(8e6, 0.1)

EXACT, SIMULATED, SHARED = "Slow start", "Slow start, simulated", "Processor sharing"

figure = Figure(
    paper,
    id="b3",
    title="Slow start stretches flows over many round trips",
    source="Figure 3",
    one_seed=NOT_RANDOM,
    scales={name: {} for name in ("smoke", "quick", "paper")},
    deviations=(
        "The example has rounds: packets arrive in the round in which they are sent. In the "
        "simulation packets follow one another on the link; a flow counts in every round that "
        "begins before its last packet has left the link.",
    ),
)


@figure.runs
def runs(scale: Scale) -> Iterator[Labelled]:
    """Yield the example as a scenario: the link carries 100 packets in a round trip."""
    flows = [
        {"source": 0, "target": 1, "size": f"{SIZE * PAYLOAD} B", "start": f"{100 * start} ms"}
        for start in range(ROUNDS)
        for _ in range(EACH_ROUND)
    ]
    yield (
        {"scheme": SIMULATED},
        {
            "name": "Flows in slow start gather",
            "topology": link_topology(LINK),
            "packet": dict(SHAPE),
            "workload": {"kind": "flows", "flows": flows},
            "transport": {
                "kind": "tcp",
                "window": {"initial": 1},
                "reliability": {
                    "initial_rto": "3 s",
                    "min_rto": "1 s",
                    "timestamps": False,
                    "handshake": False,
                },
            },
            "queue": "drop_tail",
            "time_limit": f"{ROUNDS / 10 + 5:g} s",
        },
    )


def by_arithmetic() -> list[int]:
    """Return the number of flows in each round: a flow sends 1, 2, 4, … until it is done."""
    left: list[int] = []
    sent: list[int] = []
    counts = []
    for _ in range(ROUNDS):
        left += [SIZE] * EACH_ROUND
        sent += [1] * EACH_ROUND
        counts.append(len(left))
        left = [rest - window for rest, window in zip(left, sent, strict=True)]
        sent = [2 * window for window, rest in zip(sent, left, strict=True) if rest > 0]
        left = [rest for rest in left if rest > 0]
    return counts


def simulated(run: Run) -> list[int]:
    """Return the number of flows in each round of the simulation."""
    flows = run.result.flows
    first = (flows["start_s"] / LINK.rtt_s).round().to_numpy()
    # Subtract the propagation delay to the receiver.
    left_link = flows["start_s"] + flows["fct_s"].fill_null(np.inf) - LINK.rtt_s / 2
    rounds = np.arange(ROUNDS)[:, None]
    ends = left_link.to_numpy() / LINK.rtt_s
    # A packet that leaves at the end of a round belongs to that round, despite rounding.
    return [int(n) for n in ((first <= rounds) & (ends > rounds + 1e-6)).sum(axis=1)]


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    counts = {
        EXACT: by_arithmetic(),
        SIMULATED: simulated(runs[0]),
        SHARED: [EACH_ROUND] * ROUNDS,
    }
    return pl.concat(
        pl.DataFrame({"scheme": name, "round": range(ROUNDS), "value": flows})
        for name, flows in counts.items()
    ).with_columns(pl.col("value").cast(pl.Float64))


@figure.draw
def draw(axes: Axes, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    first_rounds = table.filter(pl.col("round") < 20)
    labels = ("time (round trips)", "flows in progress")
    plot.against(axes, first_rounds, x="round", labels=labels)
    axes.set_ylim(0, 14)
    axes.set_xticks(range(0, 20, 2))


def counted(table: pl.DataFrame, scheme: str) -> list[int]:
    """Return a scheme's number of flows in each round."""
    return [int(flows) for flows in table.filter(scheme=scheme)["value"]]


EVERYWHERE = ("smoke", "quick", "paper")


@figure.check(
    "there are 2, 4, 6, 8, 10 flows, then 12 for ever: 6 times as many as under processor sharing",
    scales=EVERYWHERE,
    exact=True,
)
def twelve_flows(table: pl.DataFrame) -> Verdict:
    flows = counted(table, EXACT)
    shared = counted(table, SHARED)
    return every(
        [
            equals(flows[:6], [2, 4, 6, 8, 10, 12], "flows"),
            equals(sorted(set(flows[5:])), [12], "flows from round 5 on"),
            equals(flows[-1] / shared[-1], 6.0, "times as many as under processor sharing"),
        ]
    )


@figure.check("the simulator agrees in every round", scales=EVERYWHERE, exact=True)
def agrees(table: pl.DataFrame) -> Verdict:
    return equals(counted(table, SIMULATED), counted(table, EXACT), "simulated flows")
