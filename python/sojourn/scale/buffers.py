"""Shared buffers of switches that have fewer ports in a fold than in the whole network.

More ports share such a buffer in the whole network, so that it is full there more often.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from sojourn.base.units import parse_size
from sojourn.scale.network import Network


def with_fewer_ports(whole: Network, part: Network) -> list[str]:
    """Return the kinds of switches that have fewer ports in a part of a network."""
    return [kind for kind, ports in part.ports.items() if ports < whole.ports[kind]]


def kinds_in_words(kinds: Sequence[str]) -> str:
    """Return kinds of switches in words."""
    first = f"{', '.join(kinds[:-1])} and " if len(kinds) > 1 else ""
    return f"{first}{kinds[-1]} switches"


def full_buffers(
    links: pl.DataFrame, kinds: Sequence[str], complete: Mapping[str, Any]
) -> Counter[str]:
    """Return the pauses and drops by shared buffers of switches, for each of the kinds.

    `links` are those of a run of the scenario `complete`, which has all defaults. Queues have
    limits of their own, so that drops at a port count only if the longest queues of its switch
    allow the shared buffer to be the cause.
    """
    switch, packet = complete["switch"], complete["packet"]
    if switch["shared_buffer"] == "none":
        return Counter()
    ends = pl.col("name").str.extract_groups(r"^(?<from>\w+)->(?<to>\w+)").struct
    table = links.select("drops", "pauses", "queue_max_bytes", ends.unnest())
    paused = table.group_by(switch="to").agg(pl.col("pauses").sum())
    ports = table.select(pl.exclude("pauses"), switch="from").join(paused, on="switch", how="left")
    # A queue lacks the packet in transmission, and a dropped one would have been added to it.
    packet_bytes = parse_size(packet["payload"]) + parse_size(packet["header"])
    queue = pl.col("queue_max_bytes") + 2 * packet_bytes
    free = parse_size(switch["shared_buffer"]) - queue.sum().over("switch")
    ports = ports.with_columns(
        kind=pl.col("switch").str.extract(r"^([a-z]+)"),
        drops=pl.when(_may_drop(switch, queue, free)).then("drops").otherwise(0),
    )
    counts = ports.group_by("kind", "switch").agg(pl.col("drops").sum(), pl.col("pauses").first())
    sums = counts.group_by("kind").agg(number=(pl.col("drops") + pl.col("pauses")).sum())
    return Counter({kind: number for kind, number in sums.iter_rows() if kind in kinds and number})


def _may_drop(switch: Mapping[str, Any], queue: pl.Expr, free: pl.Expr) -> pl.Expr:
    """Return true for ports at which a full shared buffer may have dropped packets."""
    if switch["pause"] != "none":
        # A packet of a lossless class exceeds its headroom only after a pause.
        return pl.lit(switch["pause"]["classes"] != "none") | (pl.col("pauses") > 0)
    if switch["alpha"] != "none":
        return queue > float(switch["alpha"]) * free
    return free < 0
