"""Figure D2: congestion of the reverse path, with and without priority for ACKs."""

from collections.abc import Iterator
from functools import partial
from itertools import product
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
    every,
    metrics,
    override,
    plot,
    steady,
)

from .paper import paper
from .testbed import AUTHORS, OURS, SCALES, UNPACED, rack

REVERSE_FLOWS = 20

SERVER, PEERS = 10, (11, 12)

HOSTS = [*(f"client{number}" for number in range(10)), "server", "peer0", "peer1"]

CONNECTIONS = (0, 10, 20, 30)
"""The connections of the first client."""

PRIORITY, PLAIN = "with priority", "without priority"

ERROR, GOODPUT = "error", "throughput"

SETS: dict[str, dict[str, Any]] = {AUTHORS: {}, OURS: {"segments": UNPACED}}

figure = Figure(
    paper,
    id="d2",
    title="Congestion of the reverse path, with and without priority for ACKs",
    source="Figure: reverse path congestion",
    scales=SCALES,
    deviations=(
        "The cause of congestion of the paper's reverse path is unknown. Here two peers join the "
        "testbed and send to the first client over 20 connections: ACKs to this client share their "
        "queue. Switches do not pause, because with pause frames ACKs always have priority; no "
        "packets are dropped.",
        "The error without priority is the delay of the peers' queue, which depends on how they "
        "send: 42 µs with the authors' set, 74 µs with unpaced segments of 16 KB, the first choice "
        "and now a set of our own. The source states that reverse congestion adds to RTTs and that "
        "priority prevents it; the bound of 50 µs is ours.",
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
    for (way, transport), scheme in product(SETS.items(), (PRIORITY, PLAIN)):
        change = {
            "topology": {"file": "reverse.csv", "hosts": HOSTS, "senders": "none"},
            "workload": {"kind": "flows", "flows": [*forward, *reverse]},
            "transport": transport,
            "switch": {"control_priority": scheme == PRIORITY, "pause": "none"},
            "host": {"rtt_noise": {"kind": "gaussian", "deviation": "100 ns"}},
            "samples": {"rtt_flows": list(CONNECTIONS)},
        }
        yield {"scheme": scheme, "way": way}, override(rack(scale), change)


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    errors = [rtt_errors(run, flow) for run in runs for flow in CONNECTIONS]
    rates = steady.flow_rates(runs, 10e-3).filter(pl.col("flow").is_in(CONNECTIONS))
    by = ("scheme", "way", "seed")
    client = rates.group_by(*by, "time_s", maintain_order=True).agg(pl.col("value").sum())
    goodput = client.group_by(by, maintain_order=True).agg(pl.col("value").mean())
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
    rank = (pl.col("value").rank("ordinal") / pl.len()).over("scheme", "way")
    name = pl.when(way=AUTHORS).then("scheme").otherwise(pl.format("{}, {}", "scheme", "way"))
    errors = table.filter(metric=ERROR).sort("value").with_columns(fraction=rank)
    named = errors.with_columns(scheme=name).sort("way", "scheme", maintain_order=True)
    plot.cdf(left, named, label="error of RTTs as a measure of forward queueing")
    plot.legend(left, columns=2)
    left.set_ylabel("fraction of RTTs")
    left.set_xlim(left=0.01)
    goodput = metrics.across_seeds(
        table.filter(metric=GOODPUT).with_columns(at_least=pl.lit(value=False))
    )
    plot.bars(
        right,
        goodput,
        group="way",
        unit="Gb/s",
        label="throughput of the client",
        values="{:.2f}",
    )
    right.set_xlabel("")
    right.set_xticks(range(len(SETS)), SETS)


def mean_error_us(table: pl.DataFrame, scheme: str, way: str) -> float:
    """Return the mean error in microseconds."""
    errors = table.filter(metric=ERROR, scheme=scheme, way=way)["value"]
    return float(errors.mean()) * 1e6  # type: ignore[arg-type]


@figure.check("with priority the mean error is below 5 µs")
def error_with_priority(table: pl.DataFrame) -> Verdict:
    return every(
        at_most(mean_error_us(table, PRIORITY, way), 5, f"{way}: the mean error in µs")
        for way in SETS
    )


@figure.claim("without priority the mean error is larger than with priority")
def priority_helps(table: pl.DataFrame) -> Verdict:
    plain, priority = (mean_error_us(table, scheme, AUTHORS) for scheme in (PLAIN, PRIORITY))
    return at_least(plain / priority, 1, f"{plain:.1f} µs without over {priority:.2f} with")


def error_without_priority(table: pl.DataFrame, way: str) -> Verdict:
    """Judge that reverse congestion adds a large error."""
    return at_least(mean_error_us(table, PLAIN, way), 50, "the mean error in µs")


figure.claim("without priority the mean error is above 50 µs", stated=False)(
    partial(error_without_priority, way=AUTHORS)
)
figure.claim(
    "with unpaced segments of 16 KB the mean error without priority is above 50 µs", stated=False
)(partial(error_without_priority, way=OURS))
