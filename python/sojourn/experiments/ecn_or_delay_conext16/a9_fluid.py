"""Figure A9: packets against the fluid models, under patched TIMELY and DCQCN."""

from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl
from matplotlib.axes import Axes

from sojourn import (
    Figure,
    Run,
    Verdict,
    at_least,
    at_most,
    every,
    fluid,
    looks,
    metrics,
    override,
    plot,
)

from .a8_patched_queue import WIRE_S
from .paper import AUTHORS_FLOOR, MIDDLE, paper, sharing

figure = Figure(
    paper,
    id="a9",
    title="Packets against fluid models",
    source="Figures: patched TIMELY from 7 and 3 Gb/s; impact of delay and flows on DCQCN",
    scales={
        "smoke": {"seeds": 1, "length": "20 ms"},
        "quick": {"seeds": 1, "length": "150 ms"},
        "paper": {"seeds": 1, "length": "300 ms"},
    },
    deviations=(
        "Patched TIMELY's fluid takes the round-trip time for queueing alone. Packets have 7.8 µs "
        "of links and serialisation besides, which is as much less queue: the fluid's queue is "
        "drawn less by that, 9.7 KB.",
        "DCQCN's link is 40 Gb/s, and its RED profile ends at 2000 KB and 10 %, as in the authors' "
        "script for this figure; the paper's text says 200 KB and 1 %, almost the same slope.",
        "DCQCN's receivers notify by a clock of 50 µs, as in the authors' simulator. The fluid "
        "cuts rates once in every 50 µs with a mark, which is just that. A receiver that answers "
        "a mark at once, as the paper describes it, waits 50 µs from then on and so notifies less "
        "often: more marks are needed, and the queue is longer.",
        "How far 10 flows' queue swings in one run is a draw of RED's marks. Over 40 seeds the "
        "packets' deviation at 85 µs is 1.12 to 1.57 times that at 4 µs, 1.34 in the mean, and "
        "below the 1.25 that we ask for in nine of them. The run that is judged has the least.",
    ),
    panels=(2, 2),
    size=(11.0, 7.0),
)

RATES = ["7 Gbps", "3 Gbps"]
PROFILE = {"kmax": "2000 KB", "pmax": 0.1}
DCQCN = "DCQCN, loop of {}"
# The loop's delay, and that of each of the six links of 40 Gb/s that it leads over.
LOOPS = {"4 us": "0.56 us", "85 us": "14.06 us"}
AT_ONCE = "DCQCN, notified at once"
DCQCN_FLOWS = (2, 10)
PATCHED = "Patched TIMELY"

TITLE_ABOVE_LEGEND = 36


@figure.runs
def runs(scale: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    length = {"time_limit": scale["length"]}
    timely = {"transport": {"kind": "patched_timely", **AUTHORS_FLOOR}}
    yield {"case": PATCHED, "flows": 2}, override(sharing(RATES), timely, length)
    cases = [(DCQCN.format(loop), delay, "tick") for loop, delay in LOOPS.items()]
    for case, delay, notify_at in [*cases, (AT_ONCE, LOOPS["4 us"], "mark")]:
        change = {
            "topology": {"rate": "40 Gbps", "delay": delay},
            "transport": {"kind": "dcqcn", "notify_at": notify_at},
            "queue": {"kind": "dcqcn_red", **PROFILE},
            "switch.shared_buffer": "none",
        }
        for flows in DCQCN_FLOWS:
            scenario = override(sharing(["40 Gbps"] * flows), change, length)
            yield {"case": case, "flows": flows}, scenario


def models(length: str) -> Iterator[tuple[str, int, dict[str, Any]]]:
    """Yield the fluid model of each run, with its labels."""
    common = {"duration": length, "interval": "500 us"}
    timely = {"model": "patched_timely", "initial_rates": RATES, "delay": "7 us"}
    yield PATCHED, 2, {**common, **timely}
    for loop in LOOPS:
        for flows in DCQCN_FLOWS:
            link = {"flows": flows, "capacity": "40 Gbps", "delay": loop}
            dcqcn = {"model": {"kind": "dcqcn", **PROFILE}, **link}
            yield DCQCN.format(loop), flows, {**common, **dcqcn}


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    parts = []
    for probe, name in [
        (f"queue_bytes {MIDDLE}", "queue_bytes"),
        ("rate_bps flow 0", "rate_bps flow 0"),
        ("rate_bps flow 1", "rate_bps flow 1"),
    ]:
        of_packets = metrics.series(runs, probe, points=600)
        parts.append(_part(of_packets, "packets", name))
    length = runs[0].result.summary["scenario"]["time_limit"]
    for case, flows, model in models(length):
        of_fluid = fluid(model).samples.with_columns(case=pl.lit(case), flows=pl.lit(flows))
        for name in ("queue_bytes", "rate_bps flow 0", "rate_bps flow 1"):
            parts.append(_part(of_fluid.filter(pl.col("probe") == name), "fluid", name))
    shift = WIRE_S * 10e9 / 8
    of_shifted = (
        (pl.col("case") == PATCHED)
        & (pl.col("from") == "fluid")
        & (pl.col("probe") == "queue_bytes")
    )
    shifted = (pl.col("value") - shift).clip(0)
    return pl.concat(parts).with_columns(
        value=pl.when(of_shifted).then(shifted).otherwise(pl.col("value"))
    )


def _part(samples: pl.DataFrame, source: str, probe: str) -> pl.DataFrame:
    return samples.select(
        "case",
        pl.col("flows").cast(pl.Int64),
        pl.lit(source).alias("from"),
        pl.lit(probe).alias("probe"),
        "time_s",
        "value",
    )


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    timely = table.filter(pl.col("case") == PATCHED)
    rates = [timely.filter(pl.col("probe") == f"rate_bps flow {flow}") for flow in (0, 1)]
    colours = (looks.BLUE, looks.ORANGE)
    for flow, part in enumerate(rates):
        _pair(axes[0][0], part, f"from {RATES[flow].replace('bps', 'b/s')}", colours[flow], "Gb/s")
    axes[0][0].set_ylim(0, 10.2)
    queue = timely.filter(pl.col("probe") == "queue_bytes")
    _pair(axes[0][1], queue, "2 flows", looks.BLUE, "KB")
    for panel, loop in zip(axes[1], LOOPS, strict=True):
        case = DCQCN.format(loop)
        of_case = table.filter(pl.col("case") == case, pl.col("probe") == "queue_bytes")
        for colour, flows in zip(colours, DCQCN_FLOWS, strict=True):
            _pair(panel, of_case.filter(pl.col("flows") == flows), f"{flows} flows", colour, "KB")
        panel.set_title(f"{case.replace('us', 'µs')}: queue", fontsize=10, pad=TITLE_ABOVE_LEGEND)
        panel.set_xlim(0, 150)
        panel.set_ylim(0, 450)
    for panel, what in zip(axes[0], ("rates", "queue"), strict=True):
        panel.set_title(f"{PATCHED}: {what}", fontsize=10, pad=TITLE_ABOVE_LEGEND)
        panel.set_xlim(0, 150)


def _pair(axes: Axes, part: pl.DataFrame, name: str, colour: str, unit: str) -> None:
    """Draw packets as a broad pale line, and the fluid as a thin dark one over it."""
    looks = {"packets": {"lw": 2.2, "alpha": 0.35}, "fluid": {"lw": 1.0, "alpha": 1.0}}
    for source, look in looks.items():
        line = part.filter(pl.col("from") == source)
        axes.plot(
            line["time_s"].to_numpy() * plot.UNITS["ms"],
            line["value"].to_numpy() * plot.UNITS[unit],
            color=colour,
            label=f"{name}, {source}",
            lw=look["lw"],
            alpha=look["alpha"],
        )
    axes.set_xlabel(plot.with_unit("time", "ms"))
    axes.set_ylabel(plot.with_unit("queue" if unit == "KB" else "rate", unit))
    plot.legend(axes, columns=2)


def queue(table: pl.DataFrame, case: str, flows: int, source: str) -> pl.Series:
    """Return the queue in the second half of a run."""
    chosen = table.filter(
        pl.col("case") == case,
        pl.col("flows") == flows,
        pl.col("probe") == "queue_bytes",
        pl.col("from") == source,
    )
    return chosen.filter(pl.col("time_s") >= pl.col("time_s").max() / 2)["value"]


def more(table: pl.DataFrame, case: str, flows: int, fluid_of: str) -> float:
    """Return by which share the packets' mean queue is above the fluid's of a case."""
    packets = queue(table, case, flows, "packets").to_numpy().mean()
    return float(packets / queue(table, fluid_of, flows, "fluid").to_numpy().mean()) - 1


@figure.claim(
    "patched TIMELY's packets queue as much as its fluid (mean, within 10 %)", stated=False
)
def timely_agrees(table: pl.DataFrame) -> Verdict:
    return at_most(abs(more(table, PATCHED, 2, PATCHED)), 0.1, "distance")


@figure.claim(
    "with a loop of 4 µs DCQCN's packets queue as much as its fluid (mean, within 25 %)",
    stated=False,
)
def dcqcn_agrees(table: pl.DataFrame) -> Verdict:
    case = DCQCN.format("4 us")
    return every(
        at_most(abs(more(table, case, flows, case)), 0.25, f"distance with {flows} flows")
        for flows in DCQCN_FLOWS
    )


@figure.claim(
    "if receivers notify at once, DCQCN's packets queue 10 to 60 % more than its fluid",
    stated=False,
)
def at_once_is_more(table: pl.DataFrame) -> Verdict:
    verdicts = []
    for flows in DCQCN_FLOWS:
        excess = more(table, AT_ONCE, flows, DCQCN.format("4 us"))
        verdicts.append(at_least(excess, 0.1, f"more with {flows} flows"))
        verdicts.append(at_most(excess, 0.6, f"more with {flows} flows"))
    return every(verdicts)


def swing(table: pl.DataFrame, source: str, loop: str) -> float:
    """Return the standard deviation of 10 flows' queue over its mean."""
    late = queue(table, DCQCN.format(loop), 10, source).to_numpy()
    return float(late.std() / late.mean())


@figure.claim("10 flows' queue swings with a loop of 85 µs, and does not with one of 4 µs")
def unstable(table: pl.DataFrame) -> Verdict:
    packets = swing(table, "packets", "85 us") / swing(table, "packets", "4 us")
    return every(
        [
            at_most(swing(table, "fluid", "4 us"), 0.1, "the fluid's deviation at 4 µs"),
            at_least(swing(table, "fluid", "85 us"), 0.5, "at 85 µs"),
            at_least(packets, 1.25, "the packets' at 85 µs over that at 4 µs"),
        ]
    )
