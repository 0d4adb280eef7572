"""Network as blocks of a page: its nodes, and counters of its links in all and over time.

Of several samples, the network is the first.
"""

import math
from typing import Any

import numpy as np
import polars as pl

from sojourn.analysis import metrics
from sojourn.runs.first_sample import flows_of_first_sample, links_of_first_sample
from sojourn.runs.links import carried_bits, ends, least_span_s
from sojourn.runs.results import Result
from sojourn.show.network_layout import layout
from sojourn.web import columns

MOST_CELLS = 120_000
"""Links times bins of the series of all links."""

LEAST_BINS = 40
"""Fewest bins of a shortened series."""

BUSIEST, FINE_BINS = 64, 400
"""Links whose series have more bins, if not all links can, and the number of these bins."""

MOST_BYTES = 500_000
"""Size of the series of a page."""

IN_PROGRESS_BINS = 400
"""Bins of the line of flows in progress."""

COUNTERS = (
    *("rate_bps", "bytes", "drops", "losses", "marks", "queue_max_bytes"),
    *("queue_mean_bytes", "paused_s"),
)
"""Columns of links in the page; the last two are rounded."""

SUMS = ("bytes", "marks", "drops", "losses", "paused_ps")


def nodes(result: Result) -> dict[str, list[Any]]:
    """Return the names of all nodes, 1 for switches, and positions in the network's picture."""
    pairs = _ends(result)
    places, switches = layout(list(dict.fromkeys((min(pair), max(pair)) for pair in pairs)))
    is_switch = set(switches)
    return {
        "names": list(places),
        "isSwitch": [int(name in is_switch) for name in places],
        "x": [round(x, 4) for x, _ in places.values()],
        "y": [round(y, 4) for _, y in places.values()],
    }


def hosts(result: Result) -> list[str]:
    """Return the names of hosts by number; empty if they are `host0` and so on."""
    names = metrics.host_names(result.summary)
    are_numbered = all(name == f"host{number}" for number, name in enumerate(names))
    return [] if are_numbered else names


def _ends(result: Result) -> list[tuple[str, str]]:
    return [ends(link["name"]) for link in links_of_first_sample(result.summary)]


def links(result: Result, names: list[str]) -> str:
    """Return the links as a block: numbers of their ends in `names`, and counters of the run."""
    number = {name: place for place, name in enumerate(names)}
    pairs = _ends(result)
    table = pl.DataFrame(links_of_first_sample(result.summary), infer_schema_length=None)
    # The links of an ideal have no queues.
    absent = [pl.lit(0).alias(name) for name in COUNTERS if name not in table.columns]
    table = table.with_columns(absent)
    return columns.pack(
        table.select(
            pl.Series("from", [number[left] for left, _ in pairs]),
            pl.Series("to", [number[right] for _, right in pairs]),
            *COUNTERS[:-2],
            "utilisation",
            pl.col("queue_mean_bytes").round().cast(pl.Int64),
            (pl.col("paused_s") * 1e9).round().cast(pl.Int64).alias("paused_ns"),
        )
    )


def series(result: Result, prefix: str, most_bytes: int) -> tuple[dict[str, Any], dict[str, str]]:
    """Return widths of bins in seconds by the name of a block, and the blocks.

    `series` has all links; `fine`, if present, has more bins of the busiest. The capacities of
    links with rate traces are in blocks whose names begin with `capacity-`. There are no blocks
    without recorded series.
    """
    table = result.series
    if table.is_empty():
        return {}, {}
    bin_s = result.summary["record"]["bin_ps"] / 1e12
    names = [link["name"] for link in links_of_first_sample(result.summary)]
    numbers = {name: number for number, name in enumerate(names)}
    table = table.with_columns(pl.col("link").replace_strict(numbers, return_dtype=pl.Int64))
    whole = result.summary["simulated_s"] / bin_s
    bins = max(int(np.ceil(whole)), int(table.select(pl.col("bin").max()).item()) + 1)
    most_bins = max(MOST_CELLS // len(names), LEAST_BINS)
    least = _least_factor(result, bin_s, bins)
    factor = max(-(-bins // most_bins), least)
    while True:
        coarse = columns.pack(_merged(table, factor, whole))
        if len(coarse) <= most_bytes or bins / (2 * factor) < LEAST_BINS:
            break
        factor *= 2
    factors, blocks = {"series": factor}, {f"series{prefix}": coarse}
    fine = max(-(-bins // FINE_BINS), least)
    if fine < factor:
        totals = table.group_by("link").agg(pl.col("bytes").sum())
        busiest = totals.sort("bytes", "link", descending=[True, False]).head(BUSIEST)
        chosen = table.join(busiest, on="link", how="semi")
        factors["fine"] = fine
        blocks[f"fine{prefix}"] = columns.pack(_merged(chosen, fine, whole))
    widths = {name: joined * bin_s for name, joined in factors.items()}
    for name, width in widths.items():
        capacities = _capacities(result, width)
        if not capacities.is_empty():
            blocks[f"capacity-{name}{prefix}"] = columns.pack(capacities)
    return widths, blocks


def _least_factor(result: Result, bin_s: float, bins: int) -> int:
    """Return how many bins are joined so that a full one has several full packets.

    In a bin of few packets the utilisation of a full link is anything between 0 and 100 %. At least
    half of `LEAST_BINS` remain.
    """
    wanted = least_span_s(result.summary["scenario"], links_of_first_sample(result.summary))
    return max(min(math.ceil(wanted / bin_s), 2 * bins // LEAST_BINS), 1)


def _merged(table: pl.DataFrame, factor: int, whole: float) -> pl.DataFrame:
    """Return series in bins that are `factor` times as long, sorted by link and bin.

    `whole` is the length of the run in bins of the table.
    """
    # A bin in which nothing happened has no row, and no queue. The run may end inside a bin.
    within = pl.lit(whole) - pl.col("bin")
    area = (pl.col("queue_mean_bytes") * within.clip(0, 1)).sum()
    lasts = (pl.lit(whole) - pl.col("bin").first() // factor * factor).clip(0, factor)
    mean = pl.when(lasts > 0).then(area / lasts).otherwise(0).round().cast(pl.Int64)
    merged = table.group_by("link", pl.col("bin").alias("joined") // factor).agg(
        *(pl.col(name).sum() for name in SUMS),
        mean.alias("queue_mean_bytes"),
        pl.col("queue_max_bytes").max(),
    )
    paused = (pl.col("paused_ps") / 1000).round().cast(pl.Int64).alias("paused_ns")
    merged = merged.rename({"joined": "bin"}).sort("link", "bin")
    return merged.with_columns(paused).drop("paused_ps")


def _capacities(result: Result, width: float) -> pl.DataFrame:
    """Return the bits that links with rate traces can carry in each bin before the end of the run.

    `link` is the number of a link, as in the series.
    """
    end = result.summary["simulated_s"]
    edges = np.minimum(np.arange(int(np.ceil(end / width)) + 1) * width, end)
    carried = carried_bits(result.summary["scenario"], edges)
    tables = [
        pl.DataFrame({"bits": np.diff(carried[link["name"]]).round().astype(np.int64)})
        .with_row_index("bin")
        .with_columns(link=pl.lit(number, pl.Int64))
        for number, link in enumerate(links_of_first_sample(result.summary))
        if link["name"] in carried
    ]
    return pl.concat(tables) if tables else pl.DataFrame()


def in_progress(result: Result) -> dict[str, list[float]]:
    """Return the mean and the largest number of flows in progress in bins of time."""
    first = result.with_flows(flows_of_first_sample(result))
    bins = metrics.in_progress_in_bins(first, IN_PROGRESS_BINS)
    times, means = ([float(f"{value:.6g}") for value in bins[name]] for name in ("time_s", "mean"))
    return {"time": times, "mean": means, "max": bins["max"].to_list()}
