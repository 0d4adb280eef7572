"""Figure A8: patched TIMELY's queue for 2, 10 and 40 flows, and its fixed point."""

from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl
from matplotlib.axes import Axes

from sojourn import Figure, Run, Verdict, at_most, every, metrics, override, plot

from .paper import AUTHORS_FLOOR, MIDDLE, paper, sharing

FLOWS = (2, 10, 40)

# The part of a segment's RTT that is not queueing at the middle link: six links of 1 us, and the
# serialisation of a packet on two links and of its ACK on three.
UNQUEUED_RTT_S = 6 * 1e-6 + (2 * 1030 + 3 * 60) * 8 / 10e9

figure = Figure(
    paper,
    id="a8",
    title="Patched TIMELY's queue and its fixed point",
    source="Figure: patched TIMELY with 2 and 40 flows; the fixed point of its analysis",
    one_seed="nothing in it is random",
    scales={
        "smoke": {"length": "20 ms"},
        "quick": {"length": "150 ms"},
        "paper": {"length": "300 ms"},
    },
    deviations=(
        "The analysis identifies the RTT with queueing delay. The RTT here also contains 7.8 µs of "
        "propagation and serialisation, which shortens the queue by the same time: the fixed point "
        "drawn is q* = C (T_low (1 + N delta / (beta C)) - 7.8 µs).",
        "By the analysis, 40 flows are at the limit of stability. Their queue oscillates between "
        "327 and 361 KB, with a mean 6 % below the fixed point; the published queue is 320 to 400 "
        "KB.",
    ),
)


def fixed_point(flows: int) -> float:
    """Return the fixed point of the queue in bytes."""
    capacity, delta, beta, t_low = 10e9, 10e6, 0.008, 50e-6
    return capacity / 8 * (t_low * (1 + flows * delta / (beta * capacity)) - UNQUEUED_RTT_S)


@figure.runs
def runs(scale: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    change = {"transport": {"kind": "patched_timely", **AUTHORS_FLOOR}}
    for flows in FLOWS:
        scenario = override(sharing([f"{10_000 // flows} Mbps"] * flows), change)
        labels = {"scheme": f"{flows} flows", "flows": flows}
        yield labels, override(scenario, {"time_limit": scale["length"]})


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    series = metrics.series(runs, f"queue_bytes {MIDDLE}", points=400)
    expected = pl.col("flows").map_elements(fixed_point, return_dtype=pl.Float64)
    return series.with_columns(fixed_point=expected)


@figure.draw
def draw(axes: Axes, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    plot.series(axes, table.drop("high"), unit="KB", label="queue")
    end = float(table["time_s"].max()) * plot.UNITS["ms"]  # type: ignore[arg-type]
    for flows in FLOWS:
        height_kb = fixed_point(flows) * plot.UNITS["KB"]
        axes.axhline(height_kb, color="#222222", ls=":", lw=1)
        text = f"fixed point of {flows} flows: {height_kb:.0f} KB"
        axes.annotate(text, (end, height_kb), (0, 3), textcoords="offset points", ha="right")
    axes.set_ylim(top=1.15 * fixed_point(max(FLOWS)) * plot.UNITS["KB"])
    plot.legend(axes)


@figure.claim("the queue settles at its fixed point (within 10 %)", stated=False, exact=True)
def settles(table: pl.DataFrame) -> Verdict:
    def distance_to_fixed_point(flows: int) -> Verdict:
        half_s = float(table["time_s"].max()) / 2  # type: ignore[arg-type]
        second_half = table.filter(pl.col("flows") == flows, pl.col("time_s") >= half_s)
        mean = float(second_half["value"].mean())  # type: ignore[arg-type]
        distance = abs(mean / fixed_point(flows) - 1)
        return at_most(distance, 0.1, f"distance with {flows} flows, at {mean / 1e3:.0f} KB,")

    return every(distance_to_fixed_point(flows) for flows in FLOWS)
