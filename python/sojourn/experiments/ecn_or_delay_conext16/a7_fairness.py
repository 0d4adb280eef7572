"""Figure A7: rates of two flows under TIMELY and patched TIMELY, and the published ranges."""

from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl
from matplotlib.axes import Axes

from sojourn import (
    Figure,
    Result,
    Run,
    Verdict,
    at_least,
    at_most,
    between,
    looks,
    metrics,
    override,
    plot,
)

from .paper import FACTOR, PATCHED, WEIGHT, paper, sharing

figure = Figure(
    paper,
    id="a7",
    title="Two flows that start at 7 and 3 Gb/s, or both at 5",
    source="Figures: TIMELY with different starting rates; patched TIMELY",
    scales={
        "smoke": {"length": "20 ms"},
        "quick": {"length": "150 ms"},
        "paper": {"length": "150 ms"},
    },
    deviations=(
        "beta is 0.8, as documented. Segments have 64 KB, as in all the authors' fluid scripts of "
        "this TIMELY; the text gives 16 KB to patched TIMELY alone.",
        "As the source shows, any split of the rates is an equilibrium of TIMELY, so the final "
        "rates of two flows are sensitive to minimal differences. Noise of at most 0.1 µs in the "
        "measured RTTs, an eighth of a packet, makes seeds differ; we added it after runs without "
        "it. The line is the first seed, the band contains all seeds. Without noise, flows that "
        "start at the same moment from 7 and 3 Gb/s end at 7.1 and 2.4 Gb/s, as in the one "
        "published run. If one starts up to 0.1 ms later, the ratio of the last 50 ms is from 3.4 "
        "to 47 (20 runs, median 9); with noise it is from 2.3 to 59 (12 seeds). The published run "
        "is a possible outcome, not the typical one.",
        "The ratio of the published rates is that of the middles of their ranges, 2.3. The claim "
        "about it was first a ratio of at most 4.",
        "The measured RTT excludes the serialisation of the complete segment, as [timely15] "
        "defines it. The authors' simulator excludes that of one packet; bursts of 16 KB converge "
        "with that definition too (20 starts: 0.89 to 1.34; otherwise 0.79 to 1.28).",
        "Rates here include headers, so two flows with equal shares of the link have 5 Gb/s each.",
    ),
    panels=(2, 2),
    size=(10.5, 7),
)

FLOWS = ("one", "other")
LINES = "rate"
RATIO, UNEVENNESS = "the one over the other", "the faster over the slower"


def timely(size: str, pacing: str, kind: str = "timely") -> dict[str, Any]:
    """Return the change to TIMELY with segments of this size."""
    segments = {"size": size, "pacing": pacing, "min_rate": "100 Mbps"}
    return {"transport": {"kind": kind, **WEIGHT, "segments": segments}}


APART = "TIMELY, from 7 and 3 Gb/s"
WITHOUT_NOISE = f"{APART}, without noise"
TOGETHER = "TIMELY, from 5 Gb/s both"
BURSTS = "TIMELY, bursts of 16 KB"

CASES: dict[str, tuple[tuple[int, int], dict[str, Any]]] = {
    APART: ((7, 3), timely("64 KB", "per_packet")),
    TOGETHER: ((5, 5), timely("64 KB", "per_packet")),
    BURSTS: ((7, 3), timely("16 KB", "per_burst")),
    PATCHED: ((7, 3), timely("16 KB", "per_packet", "patched_timely")),
}
"""The initial rates of the flows in Gb/s, and their transport."""


@figure.runs
def runs(scale: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    noise = {"host": {"rtt_noise": {"kind": "uniform", "most": "100 ns"}}}
    for case, (rates, change) in CASES.items():
        scenario = override(sharing([f"{rate} Gbps" for rate in rates]), change)
        scenario = override(scenario, {"time_limit": scale["length"]})
        yield {"scheme": case}, override(scenario, noise)
        if case == APART:
            yield {"scheme": WITHOUT_NOISE}, scenario


def late_rates(result: Result) -> list[float]:
    """Return the mean rate of each flow in the last third of a run."""
    from_s = 2 / 3 * result.summary["simulated_s"]
    late = result.samples.filter(pl.col("time_s") >= from_s)
    return [
        float(late.filter(pl.col("probe") == f"rate_bps flow {number}")["value"].mean())  # type: ignore[arg-type]
        for number in range(len(FLOWS))
    ]


def ratio(result: Result) -> metrics.Statistic:
    """Measure the rate of flow `one` over the rate of flow `other`."""
    one, other = late_rates(result)
    return metrics.Statistic(one / other)


def unevenness(result: Result) -> metrics.Statistic:
    """Measure the rate of the faster flow over the rate of the slower flow."""
    slower, faster = sorted(late_rates(result))
    return metrics.Statistic(faster / slower)


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    lines = [
        metrics.series(runs, f"rate_bps flow {number}", points=300).select(
            "scheme", "seed", "time_s", "value", metric=pl.lit(LINES), flow=pl.lit(flow)
        )
        for number, flow in enumerate(FLOWS)
    ]
    measured = metrics.measure(runs, **{RATIO: ratio, UNEVENNESS: unevenness})
    return pl.concat([metrics.across_seeds(measured, median=True), *lines], how="diagonal")


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    colours = {"one": looks.BLUE, "other": looks.PURPLE, "both": "#222222"}
    rates = table.filter(metric=LINES)
    for panel, (case, (starts, _)) in zip(axes.flat, CASES.items(), strict=True):
        for flow, start in zip(FLOWS, starts, strict=True):
            name = "" if len(set(starts)) > 1 else f"{flow} "
            draw_flow(panel, rates.filter(scheme=case, flow=flow), colours[flow])
            panel.lines[-1].set_label(f"{name}from {start} Gb/s")
        published_rows = [] if published is None else published.filter(scheme=case).rows(named=True)
        for number, row in enumerate(published_rows):
            for bound in ("low", "high"):
                label = "published range" if number == 0 and bound == "low" else None
                dashed: Any = {"color": colours[row["flow"]], "ls": "--", "lw": 1, "label": label}
                panel.axhline(row[bound] * plot.UNITS["Gb/s"], **dashed)
        panel.set_ylim(0, 10.2)
        panel.set_xlabel(plot.with_unit("time", "ms"))
        panel.set_ylabel(plot.with_unit("rate", "Gb/s"))
        panel.set_title(case, fontsize=10, pad=22)
        plot.legend(panel)


def draw_flow(panel: Axes, rates: pl.DataFrame, colour: str) -> None:
    """Draw a flow's rate in the first seed, over the band of all seeds."""
    value = pl.col("value") * plot.UNITS["Gb/s"]
    times = pl.col("time_s") * plot.UNITS["ms"]
    lines = rates.select("seed", time=times, value=value)
    extremes = lines.group_by("time", maintain_order=True).agg(
        low=pl.col("value").min(), high=pl.col("value").max()
    )
    times_ms, low, high = (extremes[name].to_numpy() for name in extremes.columns)
    panel.fill_between(times_ms, low, high, color=colour, alpha=0.15, lw=0)
    first = lines.filter(pl.col("seed") == pl.col("seed").min())
    panel.plot(first["time"].to_numpy(), first["value"].to_numpy(), color=colour, lw=0.9)


def late(table: pl.DataFrame, case: str, metric: str) -> float:
    """Return a ratio of the flows' rates in the last third of the runs, the median of the seeds."""
    return metrics.at(table, scheme=case, metric=metric)


@figure.claim("under TIMELY flows from 7 and 3 Gb/s stay apart (by a factor of 1.5 or more)")
def rates_differ(table: pl.DataFrame) -> Verdict:
    return at_least(late(table, WITHOUT_NOISE, RATIO), 1.5, RATIO)


@figure.claim("these flows stay apart with noise in their RTTs, too", stated=False)
def rates_differ_with_noise(table: pl.DataFrame) -> Verdict:
    return at_least(late(table, APART, RATIO), 1.5, RATIO)


def judge_ratio(table: pl.DataFrame, case: str) -> Verdict:
    """Judge that the ratio of the rates is the published one."""
    return between(late(table, case, RATIO), 2.3 / FACTOR, 2.3 * FACTOR, RATIO)


@figure.claim(
    f"the ratio of these flows' rates is the published 2.3 (within a factor of {FACTOR})",
    stated=False,
)
def same_ratio(table: pl.DataFrame) -> Verdict:
    return judge_ratio(table, WITHOUT_NOISE)


@figure.claim("their ratio is the published one with noise in their RTTs, too", stated=False)
def same_ratio_with_noise(table: pl.DataFrame) -> Verdict:
    return judge_ratio(table, APART)


@figure.claim(
    "under TIMELY flows from 5 Gb/s both settle apart, by a factor of 1.1 to 1.8", stated=False
)
def uneven(table: pl.DataFrame) -> Verdict:
    return between(late(table, TOGETHER, UNEVENNESS), 1.1, 1.8, UNEVENNESS)


@figure.claim(
    "with bursts of 16 KB TIMELY's flows come close (within a factor of 1.5)", stated=False
)
def bursts_meet(table: pl.DataFrame) -> Verdict:
    return at_most(late(table, BURSTS, UNEVENNESS), 1.5, UNEVENNESS)


@figure.claim("under patched TIMELY the rates converge (within 5 %)")
def patched_meet(table: pl.DataFrame) -> Verdict:
    return at_most(late(table, PATCHED, UNEVENNESS), 1.05, UNEVENNESS)
