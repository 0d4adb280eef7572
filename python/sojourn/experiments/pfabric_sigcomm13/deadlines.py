"""Flows with deadlines: who knows of them, and which cannot be met after a start-up."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from sojourn import Labelled, Run, Scale, metrics, override, theory

from .paper import (
    ACK_BETWEEN_RACKS_S,
    ACK_WITHIN_RACK_S,
    DCTCP,
    PAYLOAD,
    PDQ,
    PFABRIC,
    TCP,
    WORKLOADS,
    pfabric,
    scenario,
    schemes,
)

LOAD = 0.6

EDF = "pFabric-EDF"

DEADLINES_S = (100e-6, 500e-6, 1e-3, 10e-3, 100e-3)
"""Mean deadlines; the text names the first three."""

SLACK = 1.25
"""No deadline is shorter than this many times what its flow takes alone."""

HURRIED = metrics.Bucket("with a deadline", 0, 199_999)
PATIENT = metrics.Bucket("without a deadline", 199_999)

BLIND = (TCP, DCTCP, PFABRIC)
"""Schemes that know no deadlines: one run gives what they would have met."""

PROMPT: dict[str, dict[str, Any]] = {PDQ: schemes[PDQ], EDF: pfabric(deadlines="first")}
"""Schemes that know deadlines."""

DRAWN = "Alone"
"""The runs from which the others take the deadlines that were drawn."""


def over_deadlines(scale: Scale) -> Iterator[Labelled]:
    """Yield blind schemes once, the others and the deadlines for every mean deadline."""
    for workload in WORKLOADS:
        shared = scenario(workload, LOAD, scale["flows"][workload])
        for scheme in BLIND:
            labels = {"scheme": scheme, "workload": workload, "deadline_s": None}
            yield labels, override(shared, schemes[scheme])
        for mean_s in scale["deadlines_s"]:
            given = {
                "mean": f"{mean_s * 1e6:g} us",
                "minimum_slowdown": SLACK,
                "below": "200 KB",
            }
            hurried = override(shared, {"workload.deadlines": given})
            for scheme, change in {**PROMPT, DRAWN: {"model": "alone"}}.items():
                labels = {"scheme": scheme, "workload": workload, "deadline_s": mean_s}
                yield labels, override(hurried, change)


def with_deadlines(runs: list[Run]) -> list[Run]:
    """Return what every scheme made of every mean deadline."""
    drawn = [run for run in runs if run.labels["scheme"] == DRAWN]
    given = []
    for run in runs:
        if run.labels["scheme"] in PROMPT:
            given.append(run)
        elif run.labels["scheme"] in BLIND:
            given += [_given(run, other) for other in drawn if _same(run, other)]
    return given


def _same(one: Run, other: Run) -> bool:
    return all(one.labels[name] == other.labels[name] for name in ("workload", "seed"))


def _given(run: Run, drawn: Run) -> Run:
    """Give the flows of a run the deadlines that another drew for them."""
    flows, others = run.result.flows, drawn.result.flows
    if not flows.select("start_s", "size_bytes").equals(others.select("start_s", "size_bytes")):
        raise ValueError(f"{run.labels} and {drawn.labels} have different flows")
    hurried = flows.with_columns(others["deadline_s"])
    result = run.result.with_flows(hurried)
    return Run({**run.labels, "deadline_s": drawn.labels["deadline_s"]}, result)


class Way(NamedTuple):
    """Paths of one length: how many flows take them, and what they add to transmission."""

    share: float
    added_s: float
    """What a flow takes alone beyond the transmission of its packets, until its last ACK."""
    ack_s: float
    """What an ACK takes: two of them are the round trip of a start-up."""


WAYS = (
    Way(128 / 143, 13.48e-6, ACK_BETWEEN_RACKS_S),
    Way(15 / 143, 12.064e-6, ACK_WITHIN_RACK_S),
)
"""Between racks, and within one."""

SLOT_S = 1.2e-6
"""Transmission of a packet at 10 Gb/s."""


def late_by_start_up(workload: str, mean_s: float, *, at_sender: bool) -> float:
    """Return which share of deadlines a round trip before the first packet makes impossible.

    A completion time ends at the sender with the last ACK, or else at the receiver.
    """
    packets = np.arange(HURRIED.up_to // PAYLOAD + 1)
    shares = np.diff(WORKLOADS[workload].sizes.moments(0, packets))
    late = 0.0
    for way in WAYS:
        added = way.added_s if at_sender else way.added_s - way.ack_s
        alone = added + SLOT_S * packets[1:]
        missed = theory.late_by_start_up(alone, 2 * way.ack_s, mean_s, SLACK)
        late += way.share * float((shares * missed).sum() / shares.sum())
    return late
