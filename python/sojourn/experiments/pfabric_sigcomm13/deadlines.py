"""Flows with deadlines: scenarios of each scheme, and deadlines that a start-up RTT makes late."""

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
"""Minimum deadline, as a multiple of the flow's ideal FCT."""

WITH_DEADLINE = metrics.Bucket("with a deadline", 0, 199_999)
WITHOUT_DEADLINE = metrics.Bucket("without a deadline", 199_999)

WITHOUT_DEADLINES = (TCP, DCTCP, PFABRIC)
"""Schemes without deadlines: one run shows the share of deadlines that they would meet."""

WITH_DEADLINES: dict[str, dict[str, Any]] = {PDQ: schemes[PDQ], EDF: pfabric(deadlines="first")}
"""Schemes that use deadlines."""

DEADLINE_SOURCE = "Alone"
"""Label of the runs whose random deadlines the schemes without deadlines are judged by."""


def over_deadlines(scale: Scale) -> Iterator[Labelled]:
    """Yield schemes without deadlines once; other schemes and deadlines for every mean deadline."""
    for workload in WORKLOADS:
        shared = scenario(workload, LOAD, scale["flows"][workload])
        for scheme in WITHOUT_DEADLINES:
            labels = {"scheme": scheme, "workload": workload, "deadline_s": None}
            yield labels, override(shared, schemes[scheme])
        for mean_s in scale["deadlines_s"]:
            deadlines = {
                "mean": f"{mean_s * 1e6:g} us",
                "minimum_slowdown": SLACK,
                "below": "200 KB",
            }
            with_deadline_flows = override(shared, {"workload.deadlines": deadlines})
            for scheme, change in {**WITH_DEADLINES, DEADLINE_SOURCE: {"model": "alone"}}.items():
                labels = {"scheme": scheme, "workload": workload, "deadline_s": mean_s}
                yield labels, override(with_deadline_flows, change)


def with_deadlines(runs: list[Run]) -> list[Run]:
    """Return a run of every scheme with every mean deadline."""
    sources = [run for run in runs if run.labels["scheme"] == DEADLINE_SOURCE]
    result_runs = []
    for run in runs:
        if run.labels["scheme"] in WITH_DEADLINES:
            result_runs.append(run)
        elif run.labels["scheme"] in WITHOUT_DEADLINES:
            result_runs += [
                _with_deadlines_of(run, other) for other in sources if _has_same_flows(run, other)
            ]
    return result_runs


def _has_same_flows(run: Run, other: Run) -> bool:
    return all(run.labels[name] == other.labels[name] for name in ("workload", "seed"))


def _with_deadlines_of(run: Run, source: Run) -> Run:
    """Return a run with the deadlines of another run of the same flows."""
    flows, source_flows = run.result.flows, source.result.flows
    if not flows.select("start_s", "size_bytes").equals(
        source_flows.select("start_s", "size_bytes")
    ):
        raise ValueError(f"{run.labels} and {source.labels} have different flows")
    with_deadline_flows = flows.with_columns(source_flows["deadline_s"])
    result = run.result.with_flows(with_deadline_flows)
    return Run({**run.labels, "deadline_s": source.labels["deadline_s"]}, result)


class PathLength(NamedTuple):
    """Paths of one length: their share of flows, and their delays."""

    share: float
    added_s: float
    """Ideal FCT at the sender less the transmission time of the flow's packets."""
    ack_s: float
    """Delay of an ACK; twice this delay is the RTT of a start-up."""


PATH_LENGTHS = (
    PathLength(128 / 143, 13.48e-6, ACK_BETWEEN_RACKS_S),
    PathLength(15 / 143, 12.064e-6, ACK_WITHIN_RACK_S),
)
"""Paths between racks, and paths within a rack."""

SLOT_S = 1.2e-6
"""Transmission time of a packet at 10 Gb/s."""


def late_by_start_up(workload: str, mean_s: float, *, at_sender: bool) -> float:
    """Return the share of deadlines that an RTT before the first packet makes impossible.

    If `at_sender`, an FCT ends at the sender with the last ACK, otherwise at the receiver.
    """
    packets = np.arange(WITH_DEADLINE.up_to // PAYLOAD + 1)
    shares = np.diff(WORKLOADS[workload].sizes.moments(0, packets))
    share_late = 0.0
    for path in PATH_LENGTHS:
        added_s = path.added_s if at_sender else path.added_s - path.ack_s
        ideal_s = added_s + SLOT_S * packets[1:]
        is_late = theory.late_by_start_up(ideal_s, 2 * path.ack_s, mean_s, SLACK)
        share_late += path.share * float((shares * is_late).sum() / shares.sum())
    return share_late
