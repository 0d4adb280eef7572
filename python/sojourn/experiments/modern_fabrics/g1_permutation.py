"""Figure G1: a permutation, by transport and message size."""

from collections.abc import Iterator
from typing import Any

import polars as pl

from sojourn import (
    Figure,
    Labelled,
    Run,
    Scale,
    Verdict,
    all_at_least,
    all_at_most,
    at_most,
    looks,
    metrics,
    override,
)

from .paper import (
    BOTH,
    DCQCN,
    EQDS,
    HPCC,
    NDP,
    NSCC,
    RCCC,
    SWIFT,
    fabric,
    grouped_bars,
    none_is_faster,
    over_bound,
    paper,
)
from .paper import schemes as modern

NSCC_ON_ONE_PATH, SWIFT_SPRAYED = f"{NSCC}, one path", f"{SWIFT}, sprayed"

SPRAYING = (NSCC, RCCC, BOTH, EQDS, NDP)

schemes: dict[str, dict[str, Any]] = {
    **{name: modern[name] for name in SPRAYING},
    SWIFT_SPRAYED: {**modern[SWIFT], "routing": "spray_random"},
    **{name: modern[name] for name in (SWIFT, HPCC, DCQCN)},
    NSCC_ON_ONE_PATH: {"transport": modern[NSCC]["transport"], "routing": "ecmp"},
}

ON_ONE_PATH = (SWIFT, HPCC, DCQCN, NSCC_ON_ONE_PATH)

SIZES = {"100 KB": 100e3, "1 MB": 1e6, "10 MB": 10e6}

LARGE = "10 MB"

figure = Figure(
    paper,
    id="g1",
    title="A permutation: time until all messages have arrived, over its bound",
    source="ours",
    scales={
        "smoke": {"leaves": 2},
        "quick": {"leaves": 8},
        "paper": {"leaves": 16},
    },
    deviations=(
        "Every host sends one message and receives one; 8 hosts at each leaf, 8 spines, 8 leaves "
        "at the scale `quick`. Messages start within 1 µs. The bound is the ideal FCT, of a "
        "message that is alone in the network.",
        "DCQCN: flows that have collided reduce their rates often, and then increase them by 20 "
        "Mb/s at a time, so that the last messages of 10 MB mostly wait for pacing. In the "
        "first runs a port with data sent one control packet for each data packet; EQDS has more "
        "of them, so that its credits waited and 10 MB took 1.39 of the bound. Now ports send ten.",
    ),
    size=(10, 4.6),
)


@figure.runs
def runs(scale: Scale) -> Iterator[Labelled]:
    for scheme, transport in schemes.items():
        for name, size in SIZES.items():
            permutation = network(scale["leaves"], size)
            yield {"scheme": scheme, "size": name}, override(permutation, transport)


def network(leaves: int, size: float) -> dict[str, Any]:
    """Return the scenario of a permutation of all hosts with messages of this size."""
    return {
        "name": "A permutation of all hosts of a fabric",
        **fabric(leaves, hosts=8, spines=8),
        "workload": {"kind": "permutation", "size": f"{size:.0f} B", "jitter": "1 us"},
        "time_limit": "1 s",
    }


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    return metrics.across_seeds(metrics.measure(runs, over_bound=over_bound), ratios=True)


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    grouped_bars(axes, table, "scheme", "size")
    axes.set_ylabel("completion time over its bound")
    axes.legend(title="message size", loc="upper left")
    first_on_one_path = list(schemes).index(ON_ONE_PATH[0])
    axes.axvline(first_on_one_path - 0.5, color=looks.BLACK, linestyle="--", linewidth=1)
    top: Any = {"y": 0.97, "transform": axes.get_xaxis_transform(), "va": "top", "fontsize": 11}
    axes.text(first_on_one_path - 0.6, s="packets over all paths", ha="right", **top)
    axes.text(first_on_one_path - 0.4, s="each flow on one path", ha="left", **top)


def value(table: pl.DataFrame, scheme: str, size: str = LARGE) -> float:
    """Return the completion time over its bound."""
    return metrics.at(table, scheme=scheme, size=size)


figure.check("no permutation is faster than its bound")(none_is_faster)


@figure.claim(
    "messages of 10 MB over all paths (UET, EQDS, NDP) take at most 1.2 of the bound", stated=False
)
def spraying_is_near_the_bound(table: pl.DataFrame) -> Verdict:
    return all_at_most({f"{name},": value(table, name) for name in SPRAYING}, 1.2)


@figure.claim(
    "messages of 10 MB on one path each take at least twice the bound under each transport, since "
    "flows collide",
    stated=False,
)
def collisions_double_the_time(table: pl.DataFrame) -> Verdict:
    return all_at_least({f"{name},": value(table, name) for name in ON_ONE_PATH}, 2)


@figure.claim(
    "paths decide, not the law: Swift with sprayed packets takes at most 0.7 of its time on one "
    "path",
    stated=False,
)
def paths_decide(table: pl.DataFrame) -> Verdict:
    ratio = value(table, SWIFT_SPRAYED) / value(table, SWIFT)
    return at_most(ratio, 0.7, "Swift, sprayed over one path")
