"""Figure D12: the distribution of round-trip times of calls over the longest paths."""

from collections.abc import Iterator
from typing import Any

import polars as pl

from sojourn import Figure, Labelled, Run, Scale, Verdict, at_most, plot, steady

from . import cluster
from .cluster import GRADIENT, PAUSE, SMOOTH
from .paper import paper

figure = Figure(
    paper,
    id="d12",
    title="Round-trip times of calls of 64 KB at a high load",
    source="Large scale: RTTs of TIMELY and of pause frames alone",
    scales=cluster.HIGH_LOAD,
    deviations=(
        *cluster.deviations,
        "The load, 0.75 of what all hosts can send, is not the paper's, which is not known: it is "
        "between what pause frames alone and TIMELY can carry (D11). It was chosen after a load of "
        "0.8, which TIMELY does not carry either: the p99 was then 39 to 43 % shorter, about the "
        "bound, and not 55 to 57. Every packet gives a round-trip time with pause frames alone, "
        "every segment's last packet with TIMELY.",
        "With weight 0.02 the moving average hardly moves in four samples, and only the threshold "
        "of 500 µs cuts rates: round-trip times lie in between.",
    ),
)


@figure.runs
def runs(scale: Scale) -> Iterator[Labelled]:
    yield from cluster.at_high_load(scale)


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    return steady.rtt_cdf(runs, of="rpc request", less_s=cluster.PACKET_S)


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    plot.cdf(axes, table, label="round-trip time")
    axes.set_ylabel("fraction of round-trip times")


def reduced(table: pl.DataFrame, scheme: str, fraction: float, bound: float) -> Verdict:
    """Judge that a percentile is at most `bound` times that with pause frames alone."""
    ours, theirs = (cluster.reached(table, fraction, scheme=name) for name in (scheme, PAUSE))
    numbers = f"{ours * 1e6:.0f} µs over {theirs * 1e6:.0f} µs with pauses alone"
    return at_most(ours / theirs, bound, numbers)


@figure.claim("TIMELY's median RTT is at least 40 % shorter (60 % in the paper)")
def shorter_median(table: pl.DataFrame) -> Verdict:
    return reduced(table, GRADIENT, 0.5, 0.6)


@figure.claim("TIMELY's p99 RTT is at least 40 % shorter (75 % in the paper)")
def shorter_tail(table: pl.DataFrame) -> Verdict:
    return reduced(table, GRADIENT, 0.99, 0.6)


@figure.claim("TIMELY's median RTT is at least 40 % shorter with weight 0.02 too", stated=False)
def shorter_median_whatever_the_weight(table: pl.DataFrame) -> Verdict:
    return reduced(table, SMOOTH, 0.5, 0.6)
