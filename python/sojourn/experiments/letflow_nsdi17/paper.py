"""Common parts of the figures of LetFlow (NSDI 2017)."""

from typing import Any

import polars as pl

from sojourn import Paper
from sojourn.experiments.conga_sigcomm14 import paper as conga14

paper = Paper(
    key="letflow17",
    citation=(
        "E. Vanini, R. Pan, M. Alizadeh, P. Taheri, T. Edsall: Let It Flow: Resilient Asymmetric "
        "Load Balancing with Flowlet Switching. NSDI 2017"
    ),
    setup=(
        "The test bed of CONGA with a failed cable, and a simulated network with slow cables. "
        "LetFlow chooses a random next hop for each flowlet, after gaps of 500 µs, also those of "
        "CONGA. ECMP divides flows evenly among next hops; WCMP in proportion to the capacity "
        "behind them. Sprayed packets take random paths, each as often."
    ),
    deviations=(
        "What the test bed's source leaves open is stated with the figures of CONGA.",
        "Sprayed packets stand for Presto. Receivers wait for packets that others have overtaken: "
        "no fast retransmit.",
    ),
)

LETFLOW, WCMP, SPRAYED = "LetFlow", "WCMP", "sprayed packets"

ECMP, CONGA, MEAN, ratio = conga14.ECMP, conga14.CONGA, conga14.MEAN, conga14.ratio

routings: dict[str, Any] = {
    ECMP: "ecmp",
    SPRAYED: "spray_random",
    # On these networks the capacities behind next hops are their numbers of paths.
    WCMP: "flow_hash",
    LETFLOW: "flowlets",
    CONGA: "conga",
}


def loads(table: pl.DataFrame) -> list[float]:
    """Return the loads of a table."""
    return table["load"].unique().sort().to_list()
