"""Figure D2: congestion of the reverse path, with and without priority for ACKs."""

from collections.abc import Iterator
from typing import Any

import polars as pl

from sojourn import (
    Figure,
    Labelled,
    Run,
    Scale,
    Verdict,
    at_least,
    at_most,
    metrics,
    override,
    plot,
    steady,
)

from .paper import paper
from .testbed import SOON, UNPACED, rack

REVERSE_FLOWS = 20

SERVER, PEERS = 10, (11, 12)

HOSTS = [*(f"client{number}" for number in range(10)), "server", "peer0", "peer1"]

CONNECTIONS = (0, 10, 20, 30)
"""The connections of the first client."""

PRIORITY, PLAIN = "with priority", "without priority"

ERROR, GOODPUT = "error", "throughput"

figure = Figure(
    paper,
    id="d2",
    title="Congestion of the reverse path, with and without priority for ACKs",
    source="Figure: reverse path congestion",
    scales=SOON,
    deviations=(
        "The cause of congestion of the paper's reverse path is unknown. Here two peers join the "
        "testbed and send to the first client over 20 connections: ACKs to this client share their "
        "queue. Switches do not pause, because with pause frames ACKs always have priority; no "
        "packets are dropped.",
        "The error without priority is the delay of the peers' queue: 75 µs with unpaced segments "
        "of 16 KB, as here, and 35 µs with 64 KB paced at 700 Mb/s.",
        "The error is the difference between the queueing that an RTT shows and the queueing of "
        "its packet on the forward path. Only connections of the first client are sampled. RTTs "
        "have noise of 0.1 µs.",
    ),
    panels=(1, 2),
    size=(11, 4.4),
)


@figure.runs
def runs(scale: Scale) -> Iterator[Labelled]:
    forward = [
        {"source": n % 10, "target": SERVER, "initial_rate": "500 Mbps", "start": f"{n * 50} us"}
        for n in range(40)
    ]
    reverse = [
        {
            "source": PEERS[n % 2],
            "target": 0,
            "initial_rate": "500 Mbps",
            "start": f"{n * 50 + 2000} us",
            "class": "reverse",
        }
        for n in range(REVERSE_FLOWS)
    ]
    for scheme in (PRIORITY, PLAIN):
        change = {
            "topology": {"file": "reverse.csv", "hosts": HOSTS, "senders": "none"},
            "workload": {"kind": "flows", "flows": [*forward, *reverse]},
            "transport": {"segments": UNPACED},
            "switch": {"control_priority": scheme == PRIORITY, "pause": "none"},
            "host": {"rtt_noise": {"kind": "gaussian", "deviation": "100 ns"}},
            "samples": {"rtt_flows": list(CONNECTIONS)},
        }
        yield {"scheme": scheme}, override(rack(scale), change)


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    errors = [rtt_errors(run, flow) for run in runs for flow in CONNECTIONS]
    rates = steady.flow_rates(runs, 10e-3).filter(pl.col("flow").is_in(CONNECTIONS))
    client = rates.group_by("scheme", "seed", "time_s").agg(pl.col("value").sum())
    goodput = client.group_by("scheme", "seed", maintain_order=True).agg(pl.col("value").mean())
    return pl.concat([*errors, goodput.with_columns(metric=pl.lit(GOODPUT))], how="diagonal")


def rtt_errors(run: Run, flow: int) -> pl.DataFrame:
    """Return the error of each RTT of a flow as a measure of queueing on the forward path."""
    warm_up = metrics.warm_up_s(run.result)
    samples = run.result.samples.filter(pl.col("time_s") >= warm_up)

    def probe(name: str) -> pl.Series:
        return samples.filter(pl.col("probe") == f"{name} flow {flow}")["value"]

    queueing = probe("measured_rtt_s") - probe("rtt_fixed_s")
    error = (queueing - probe("rtt_forward_queueing_s")).abs()
    table = pl.DataFrame({"value": error}).select("value", metric=pl.lit(ERROR))
    return metrics.labelled(run.labels, table)


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    left, right = axes
    rank = (pl.col("value").rank("ordinal") / pl.len()).over("scheme")
    errors = table.filter(metric=ERROR).sort("value").with_columns(fraction=rank)
    plot.cdf(left, errors, label="error of RTTs as a measure of forward queueing")
    left.set_ylabel("fraction of RTTs")
    left.set_xlim(left=0.01)
    goodput = metrics.across_seeds(
        table.filter(metric=GOODPUT).with_columns(at_least=pl.lit(value=False))
    )
    plot.bars(
        right,
        goodput.sort("scheme"),
        unit="Gb/s",
        label="throughput of the client",
        values="{:.2f}",
    )


def mean_error_us(table: pl.DataFrame, scheme: str) -> float:
    """Return the mean error in microseconds."""
    return float(table.filter(metric=ERROR, scheme=scheme)["value"].mean()) * 1e6  # type: ignore[arg-type]


@figure.claim("with priority the mean error is below 5 µs")
def error_with_priority(table: pl.DataFrame) -> Verdict:
    return at_most(mean_error_us(table, PRIORITY), 5, "the mean error in µs")


@figure.claim("without priority the mean error is above 50 µs")
def error_without_priority(table: pl.DataFrame) -> Verdict:
    return at_least(mean_error_us(table, PLAIN), 50, "the mean error in µs")
