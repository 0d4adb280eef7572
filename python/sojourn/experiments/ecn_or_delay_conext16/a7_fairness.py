"""Figure A7: two flows under TIMELY and patched TIMELY, and where the published ones stay."""

from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl
from matplotlib.axes import Axes

from sojourn import Figure, Run, Verdict, at_least, at_most, every, looks, override, plot

from .paper import paper, sharing

figure = Figure(
    paper,
    id="a7",
    title="Two flows that start at 7 and 3 Gb/s, or together at 5",
    source="Figures: TIMELY with different starting rates; patched TIMELY",
    scales={
        "smoke": {"seeds": 1, "length": "20 ms"},
        "quick": {"seeds": 1, "length": "150 ms"},
        "paper": {"seeds": 1, "length": "150 ms"},
    },
    deviations=(
        "beta is 0.8, as documented. Segments have 64 KB, as in all the authors' fluid scripts of "
        "this TIMELY; the text gives 16 KB to patched TIMELY alone. With segments of 16 KB the "
        "flows from 7 and 3 Gb/s drift further apart than published, to 9.6 and 0.35 Gb/s.",
        "The measured round-trip time leaves out a segment's own serialisation, as [timely15] "
        "defines it. The authors' simulator leaves out that of one packet: with bursts of 16 KB "
        "the flows then stay at 5.3 and 4.1 Gb/s, and do not meet.",
        "Our rates count headers, so that two flows that share the link evenly have 5 Gb/s each.",
    ),
    panels=(2, 2),
    size=(10.5, 7),
)


def timely(size: str, pacing: str, kind: str = "timely") -> dict[str, Any]:
    """Return the change that gives flows TIMELY with segments of this size."""
    segments = {"size": size, "pacing": pacing, "min_rate": "100 Mbps"}
    return {"transport": {"kind": kind, "segments": segments}}


FLOWS = ("one", "other")

APART = "TIMELY, from 7 and 3 Gb/s"
TOGETHER = "TIMELY, from 5 Gb/s both"
BURSTS = "TIMELY, bursts of 16 KB"
PATCHED = "Patched TIMELY"

CASES: dict[str, tuple[tuple[int, int], dict[str, Any]]] = {
    APART: ((7, 3), timely("64 KB", "per_packet")),
    TOGETHER: ((5, 5), timely("64 KB", "per_packet")),
    BURSTS: ((7, 3), timely("16 KB", "per_burst")),
    PATCHED: ((7, 3), timely("16 KB", "per_packet", "patched_timely")),
}
"""The rates in Gb/s that the flows start at, and what they run."""


@figure.runs
def runs(scale: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    for case, (rates, change) in CASES.items():
        scenario = override(sharing([f"{rate} Gbps" for rate in rates]), change)
        yield {"scheme": case}, override(scenario, {"time_limit": scale["length"]})


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    rates = [
        run.result.samples.filter(pl.col("probe") == f"rate_bps flow {number}").select(
            pl.lit(run.labels["scheme"]).alias("scheme"),
            pl.lit(flow).alias("flow"),
            "time_s",
            "value",
        )
        for run in runs
        for number, flow in enumerate(FLOWS)
    ]
    return pl.concat(rates)


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    colours = {"one": looks.BLUE, "other": looks.PURPLE, "both": "#222222"}
    for place, (case, (rates, _)) in zip(axes.flat, CASES.items(), strict=True):
        for flow, rate in zip(FLOWS, rates, strict=True):
            part = table.filter(scheme=case, flow=flow)
            times, values = part["time_s"] * plot.UNITS["ms"], part["value"] * plot.UNITS["Gb/s"]
            label = f"from {rate} Gb/s" if len(set(rates)) > 1 else f"the {flow} from {rate} Gb/s"
            line: Any = {"color": colours[flow], "lw": 0.9, "label": label}
            place.plot(times.to_numpy(), values.to_numpy(), **line)
        known = [] if published is None else published.filter(scheme=case).rows(named=True)
        for number, row in enumerate(known):
            low, high = (row[bound] * plot.UNITS["Gb/s"] for bound in ("low", "high"))
            band: Any = {"color": colours[row["flow"]], "alpha": 0.13, "lw": 0}
            thick = max(high, low + 0.15)
            place.axhspan(low, thick, label=None if number else "published range", **band)
        style_panel(place, case)


def style_panel(panel: Axes, case: str) -> None:
    """Name a panel and its axes."""
    panel.set_ylim(0, 10.2)
    panel.set_xlabel(plot.with_unit("time", "ms"))
    panel.set_ylabel(plot.with_unit("rate", "Gb/s"))
    panel.set_title(case, fontsize=10, pad=22)
    plot.legend(panel)


def late_ratio(table: pl.DataFrame, case: str) -> float:
    """Return the mean rate of the one flow over that of the other, in the last 50 ms."""
    from_s = float(table["time_s"].max()) - 0.050  # type: ignore[arg-type]
    late = table.filter(pl.col("scheme") == case, pl.col("time_s") >= from_s)
    one, other = (late.filter(flow=name)["value"].mean() for name in FLOWS)
    return float(one) / float(other)  # type: ignore[arg-type]


@figure.claim("under TIMELY flows from 7 and 3 Gb/s stay apart, by a factor of 1.5 to 4")
def apart(table: pl.DataFrame) -> Verdict:
    ratio = late_ratio(table, APART)
    return every(
        [
            at_least(ratio, 1.5, "the faster flow over the slower"),
            at_most(ratio, 4, "the faster flow over the slower"),
        ]
    )


@figure.claim(
    "under TIMELY flows from 5 Gb/s both settle apart, by a factor of 1.1 to 1.8", stated=False
)
def uneven(table: pl.DataFrame) -> Verdict:
    ratio = late_ratio(table, TOGETHER)
    faster = max(ratio, 1 / ratio)
    return every(
        [
            at_least(faster, 1.1, "the faster flow over the slower"),
            at_most(faster, 1.8, "the faster flow over the slower"),
        ]
    )


@figure.claim("with bursts of 16 KB they meet (within 20 %)", stated=False)
def bursts_meet(table: pl.DataFrame) -> Verdict:
    return at_most(abs(late_ratio(table, BURSTS) - 1), 0.2, "the difference")


@figure.claim("under patched TIMELY they meet (within 10 %)")
def patched_meet(table: pl.DataFrame) -> Verdict:
    return at_most(abs(late_ratio(table, PATCHED) - 1), 0.1, "the difference")
