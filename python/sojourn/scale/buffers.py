"""Shared buffers of switches that have fewer ports in a fold than in the whole network.

More ports share such a buffer in the whole network, so that it is full there more often.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

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

    `links` are those of a run of the scenario `complete`, which has all defaults.
    """
    if complete["switch"]["shared_buffer"] == "none":
        return Counter()
    ends = pl.col("name").str.extract_groups(r"^(?<from>[a-z]+).*->(?<to>[a-z]+)").struct
    table = links.select("drops", "pauses", ends.unnest())
    # A switch pauses links to it, and drops packets for links from it.
    sums = [
        table.group_by(kind=end).agg(pl.col(name).sum())
        for end, name in (("to", "pauses"), ("from", "drops"))
    ]
    counts: Counter[str] = Counter()
    for kind, number in (row for each in sums for row in each.iter_rows()):
        if kind in kinds and number:
            counts[kind] += number
    return counts
