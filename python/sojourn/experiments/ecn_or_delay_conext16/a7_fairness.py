"""Figure A7: two flows that start at 7 and 3 Gb/s, under TIMELY and patched TIMELY."""

from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl
from matplotlib.axes import Axes

from sojourn import Figure, Run, Verdict, at_least, at_most, every, override, plot

from .paper import AUTHORS_FLOOR, paper, sharing

figure = Figure(
    paper,
    id="a7",
    title="Two flows that start at 7 and 3 Gb/s",
    source="Figures: TIMELY with different starting rates; patched TIMELY",
    scales={
        "smoke": {"seeds": 1, "length": "20 ms"},
        "quick": {"seeds": 1, "length": "150 ms"},
        "paper": {"seeds": 1, "length": "150 ms"},
    },
    panels=(1, 3),
)

SCHEMES: dict[str, dict[str, Any]] = {
    "TIMELY": {"transport": {"kind": "timely", **AUTHORS_FLOOR}},
    "TIMELY, bursts of 16 KB": {
        "transport": {
            "kind": "timely",
            "segments": {
                "min_rate": "100 Mbps",
                "pacing": "per_burst",
                "rtt_excludes": "packet",
            },
        }
    },
    "Patched TIMELY": {"transport": {"kind": "patched_timely", **AUTHORS_FLOOR}},
}


@figure.runs
def runs(scale: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    for scheme, change in SCHEMES.items():
        scenario = override(sharing(["7 Gbps", "3 Gbps"]), change)
        yield {"scheme": scheme}, override(scenario, {"time_limit": scale["length"]})


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    rates = [
        run.result.samples.filter(pl.col("probe") == f"rate_bps flow {flow}").select(
            pl.lit(run.labels["scheme"]).alias("scheme"),
            pl.lit(f"flow {flow}").alias("flow"),
            "time_s",
            "value",
        )
        for run in runs
        for flow in (0, 1)
    ]
    return pl.concat(rates)


@figure.draw
def draw(axes: list[Axes], table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    for place, scheme in zip(axes, SCHEMES, strict=True):
        part = table.filter(pl.col("scheme") == scheme)
        plot.series(place, part, by="flow", unit="Gb/s", label="rate")
        place.set_ylim(0, 10.2)
        place.set_title(scheme, fontsize=10, pad=22)


def late_ratio(table: pl.DataFrame, scheme: str) -> float:
    """Return the mean rate of the first flow over that of the second, in the last 20 ms."""
    from_s = float(table["time_s"].max()) - 0.020  # type: ignore[arg-type]
    late = table.filter(pl.col("scheme") == scheme, pl.col("time_s") >= from_s)
    first, second = (late.filter(pl.col("flow") == f"flow {n}")["value"].mean() for n in (0, 1))
    return float(first) / float(second)  # type: ignore[arg-type]


@figure.claim("under TIMELY the flows stay apart, under patched TIMELY they meet (within 10 %)")
def unfair_or_fair(table: pl.DataFrame) -> Verdict:
    return every(
        [
            at_least(late_ratio(table, "TIMELY"), 1.5, "first over second flow under TIMELY"),
            at_most(abs(late_ratio(table, "Patched TIMELY") - 1), 0.1, "difference when patched"),
        ]
    )


@figure.claim(
    "with bursts of 16 KB TIMELY's flows come close (within a factor of 1.5)", stated=False
)
def bursts_help(table: pl.DataFrame) -> Verdict:
    ratio = late_ratio(table, "TIMELY, bursts of 16 KB")
    return at_most(max(ratio, 1 / ratio), 1.5, "the ratio of the rates")
