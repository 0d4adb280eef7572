"""FCT breakdown: mean time of flows by cause, and differences between schemes.

A result's `account` has a column for each reason and place of a wait. This module adds the columns
up to the few parts in `PARTS`: a wait in a port counts by the place, whatever its reason; all other
waits count by their reason.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import polars as pl

from sojourn._core import ScenarioError
from sojourn.analysis import convergence, metrics, rpc
from sojourn.analysis.metrics import Bucket
from sojourn.analysis.paired import IDENTITY, are_disjoint, reference_of
from sojourn.runs.answers import by_sample
from sojourn.runs.results import Result, Run

FLIGHT, HANDSHAKE, ROUND_TRIPS = "flight", "handshake", "round trips"


OTHERS, OWN, CONTROL, PAUSED = "queues: others", "queues: own", "queues: control", "paused"


PACE, TURN, REPAIRS, TIME_OUTS = "pace", "turn", "repairs", "time-outs"


CONNECTION, CREDIT = "connection", "credit"


SHARED = "shared"


PARTS = {
    FLIGHT: "propagation and transmission of the last packet; the ideal FCT of an ideal",
    HANDSHAKE: "the RTT that opens the flow, and retransmissions of SYNs",
    ROUND_TRIPS: "waits for congestion or receive window: propagation, transmission, delayed ACKs",
    OTHERS: "queueing in ports behind packets of other flows",
    OWN: "queueing in ports behind earlier packets of the same flow or connection",
    CONTROL: "queueing behind ACKs and other control packets, or in ports that idle by design",
    PAUSED: "waits in ports paused by PFC",
    PACE: "waits for the sender's pacing, while it sends other packets of the flow, also repeated",
    TURN: "waits for the port of the flow's own host, also while it transmits packets of the flow",
    REPAIRS: "time from transmission to retransmission of losses that ACKs or credits revealed",
    TIME_OUTS: "time from transmission to retransmission of losses that a timer or probe revealed",
    CONNECTION: "waits for earlier flows of the same persistent connection",
    CREDIT: "waits for credits of the receiving host",
    SHARED: "waits while the ideal serves other flows",
}
"""The parts of a completion time, and their meaning. The names are values of `metric` in files."""


LABELS = {
    FLIGHT: "last packet",
    HANDSHAKE: "handshake",
    ROUND_TRIPS: "congestion window",
    OTHERS: "cross-traffic queueing",
    OWN: "own queueing",
    CONTROL: "control queueing",
    PAUSED: "PFC pause",
    PACE: "pacing",
    TURN: "NIC wait",
    REPAIRS: "loss recovery",
    TIME_OUTS: "loss timers",
    CONNECTION: "connection",
    CREDIT: "credit",
    SHARED: "sharing",
}
"""Names of the parts in printed tables, sentences and pictures."""


BY_PLACE = {
    "queue_others": OTHERS,
    "queue_own": OWN,
    "queue_control": CONTROL,
    "queue_idle": CONTROL,
    "paused": PAUSED,
}


BY_REASON = {
    "handshake": HANDSHAKE,
    "window": ROUND_TRIPS,
    "rate": PACE,
    "turn": TURN,
    "recovery_gap": REPAIRS,
    "recovery_timeout": TIME_OUTS,
    "flight": FLIGHT,
    "connection": CONNECTION,
    "credit": CREDIT,
}


NEAR_IDEAL = 1.1
"""Slowdown below which flows count as near their ideal FCT, and have no main cause."""


def split(column: str) -> tuple[str, str]:
    """Split the name of a breakdown column into reason and place."""
    for reason in BY_REASON:
        if column.startswith(f"{reason}_"):
            return reason, column.removeprefix(f"{reason}_").removesuffix("_ps")
    raise ValueError(f"{column!r}: not a column of an FCT breakdown; expected REASON_PLACE_ps")


def part_of(column: str) -> str:
    """Return the one of `PARTS` that a breakdown column belongs to."""
    reason, place = split(column)
    for start, part in BY_PLACE.items():
        if place.startswith(start):
            return part
    return BY_REASON[reason]


def columns_of(account: pl.DataFrame) -> list[str]:
    """Return the columns of a breakdown table that hold times."""
    return [name for name in account.columns if name.startswith(tuple(BY_REASON))]


def are_kept(result: Result) -> bool:
    """Return true if the scenario enabled the FCT breakdown (`account`)."""
    return bool(result.summary["scenario"].get("account"))


def is_ideal(result: Result) -> bool:
    """Return true if the run is of an ideal, which has no packets."""
    return bool(result.summary["scenario"].get("model", "packet") != "packet")


def divided(result: Result, *, excess: bool = False) -> pl.DataFrame:
    """Return the finished flows after the warm-up, with each of `PARTS` in seconds.

    The columns are those of flow records, `rounds`, and a column for each part; the parts add up to
    `fct_s`. With `excess`, the parts of the ideal FCT are subtracted, and the rest adds up to
    `fct_s - ideal_fct_s`. The ideal FCT consists of the last packet's propagation and transmission
    (`flight`) and its queueing behind earlier packets of the flow (`queues: own`). A flow that is
    limited by its host's port, window or pacing does not queue behind itself; the missing part of
    `queues: own` is then subtracted from those waits, in the order of `NOT_BEHIND_ITSELF`.

    The breakdown of an ideal has two parts: the ideal FCT is `flight`, the rest `shared`. Raises
    `ScenarioError` if the run has no FCT breakdown.
    """
    return _divided(result, metrics.judged(result), excess=excess)


def _divided(result: Result, flows: pl.DataFrame, *, excess: bool) -> pl.DataFrame:
    """Return the finished ones of these flows of a result, divided."""
    if not are_kept(result):
        raise ScenarioError("account: must be true; these results have no FCT breakdown")
    if is_ideal(result):
        return _of_ideal(flows, excess=excess)
    terms: dict[str, list[pl.Expr]] = {part: [] for part in PARTS}
    for column in columns_of(result.account):
        terms[part_of(column)].append(pl.col(column).cast(pl.Float64))
    for column, part in ALONE_IN.items() if excess else ():
        terms[part].append(-pl.col(column).cast(pl.Float64))
    zero = pl.lit(0.0)
    parts = [(sum(summands, zero) / 1e12).alias(part) for part, summands in terms.items()]
    breakdown = result.account.select("flow", "rounds", *parts)
    breakdown = _cover_negative_own_queueing(breakdown) if excess else breakdown
    return flows.join(breakdown, on="flow", how="inner", maintain_order="left")


def _of_ideal(flows: pl.DataFrame, *, excess: bool) -> pl.DataFrame:
    flows = flows.filter(pl.col("outcome") == "finished")
    ideal, zero = pl.col("ideal_fct_s"), pl.lit(0.0)
    nonzero = {FLIGHT: zero if excess else ideal, SHARED: pl.col("fct_s") - ideal}
    parts = [nonzero.get(part, zero).alias(part) for part in PARTS]
    return flows.with_columns(pl.lit(0, pl.UInt64).alias("rounds"), *parts)


ALONE, TOTAL = "alone", "all"


ALONE_IN = {
    "alone_propagation_ps": FLIGHT,
    "alone_transmission_ps": FLIGHT,
    "alone_queue_own_ps": OWN,
}
"""The columns of the ideal FCT, and the parts that they belong to."""


NOT_BEHIND_ITSELF = (
    *(TURN, ROUND_TRIPS, PACE, CONNECTION, CREDIT),
    *(REPAIRS, TIME_OUTS),
    *(OTHERS, CONTROL, PAUSED),
)
"""Parts during which other packets of the flow are transmitted, in the order of subtraction.

First waits at the sender (pacing includes the transmission time at the host's port), then loss
recovery, during which other data is sent, then queueing in other ports.
"""


def _cover_negative_own_queueing(breakdown: pl.DataFrame) -> pl.DataFrame:
    """Cover negative own queueing (less than in the ideal FCT) by `NOT_BEHIND_ITSELF`."""
    for part in NOT_BEHIND_ITSELF:
        moved = pl.min_horizontal(part, (-pl.col(OWN)).clip(lower_bound=0))
        breakdown = breakdown.with_columns(pl.col(part) - moved, pl.col(OWN) + moved)
    return breakdown


EVERY = {TOTAL: "fct_s", ALONE: "ideal_fct_s", **{part: part for part in PARTS}}
"""The metrics of `by_size`, and the columns of `divided` that they are means of."""


def by_size(
    runs: Sequence[Run],
    buckets: Iterable[Bucket] | None = None,
    *,
    excess: bool = False,
    slowdowns: bool = False,
) -> pl.DataFrame:
    """Return the mean parts of flows of each size and class, over seeds, in seconds.

    A row is a combination of labels, a `size` (and a `class`, if any bucket has one) and a `metric`
    (one of `PARTS`; `all`, the FCT; or `alone`, the ideal FCT), in the columns of
    `metrics.across_seeds`. The default `buckets` are those of `metrics.sizes_and_classes`. The
    parts are those of `divided`: they add up to `all`, and with `excess` to `all` less `alone`.
    With `slowdowns`, the times of each flow are divided by its ideal FCT: `all` is the mean
    slowdown, and `alone` is 1. The table is empty if no flow has finished.
    """
    identified = _identified_buckets(runs, buckets)
    means = mean_slowdown if slowdowns else _means
    rows = []
    for run in runs:
        flows = divided(run.result, excess=excess)
        for bucket, identity in identified:
            members = flows.filter(*metrics.within(bucket))
            if not members.is_empty():
                rows += [
                    {**run.labels, **identity, "metric": name, "value": value}
                    for name, value in means(members).items()
                ]
    return _over_seeds(rows)


def _identified_buckets(
    runs: Iterable[Run], buckets: Iterable[Bucket] | None
) -> list[tuple[Bucket, dict[str, str]]]:
    """Return buckets with their columns in tables: `size`, and `class` if any bucket has one."""
    if buckets is None:
        buckets = metrics.sizes_and_classes(run.result for run in runs)
    buckets = list(buckets)
    columns = ("size", "class") if any(bucket.of_class for bucket in buckets) else ("size",)
    return [(bucket, {name: bucket.where[name] for name in columns}) for bucket in buckets]


def _over_seeds(rows: list[dict[str, Any]]) -> pl.DataFrame:
    if not rows:
        return pl.DataFrame()
    table = pl.DataFrame(rows, infer_schema_length=None).with_columns(at_least=False)
    return _rounded(metrics.across_seeds(table))


def _rounded(table: pl.DataFrame) -> pl.DataFrame:
    """Return the table without rounding errors: times are whole picoseconds.

    The sum of a negative zero and zero is zero.
    """
    return table.with_columns(pl.col("value", "low", "high").round(15) + 0.0)


def _means(flows: pl.DataFrame) -> dict[str, float]:
    return flows.select(**{name: pl.col(column).mean() for name, column in EVERY.items()}).row(
        0, named=True
    )


def mean_slowdown(flows: pl.DataFrame) -> dict[str, float]:
    """Return the means of the metrics of `by_size` over flows of `divided`, in ideal FCTs."""
    shares = {name: pl.col(column) / pl.col("ideal_fct_s") for name, column in EVERY.items()}
    return flows.select(**{name: share.mean() for name, share in shares.items()}).row(0, named=True)


REQUEST, SERVER, RESPONSE, CALL = "request", "server", "response", "call"
"""The legs of a call, and the complete call."""


LEGS = (REQUEST, SERVER, RESPONSE)


def of_calls(result: Result, kind: str = "", *, excess: bool = False) -> pl.DataFrame:
    """Return the answered calls with the parts of their latency in seconds.

    A row is a row of `calls.numbered` with a column for each of `PARTS` of the request, such as
    `request: pace`, and of the response, and with `server`, the time from the last byte of the
    request to the start of the response. These columns add up to `latency_s`; the FCTs are
    `request_s` and `response_s`. With `excess`, the parts of the ideal FCTs are subtracted, as in
    `divided`. Raises `ScenarioError` if the run has no FCT breakdown.
    """
    # The response to a call in the measured time may start after it.
    flows = _divided(result, result.flows, excess=excess)
    table = rpc.numbered(result, kind).drop_nulls("latency_s")
    for leg in (REQUEST, RESPONSE):
        names = {leg: "flow", f"{leg}_s": "fct_s", f"{leg}_alone_s": "ideal_fct_s"}
        names |= {f"{leg}: {part}": part for part in PARTS}
        columns = [pl.col(column).alias(name) for name, column in names.items()]
        table = table.join(flows.select(columns), on=leg, how="inner", maintain_order="left")
    server = pl.col("latency_s") - pl.col("request_s") - pl.col("response_s")
    # Times are whole picoseconds; smaller digits are rounding errors of the subtraction.
    return table.with_columns(server.round(12).alias(SERVER))


def by_call(runs: Iterable[Run], *, excess: bool = False) -> pl.DataFrame:
    """Return the mean parts of calls of each kind, over seeds, in seconds.

    The parts are those of `of_calls`.

    A row is a combination of labels, a `kind`, a `leg` (request, server, response, or call) and a
    `metric` of `by_size`, in the columns of `metrics.across_seeds`. A server's time has no parts.
    The table is empty if there are no calls.
    """
    rows = []
    for run in runs:
        if run.result.flows["latency_s"].count() == 0:
            continue
        answered = of_calls(run.result, excess=excess)
        for calls in answered.partition_by("kind", maintain_order=True):
            means = calls.select(pl.selectors.numeric().mean()).row(0, named=True)
            rows += [
                {
                    **run.labels,
                    "kind": calls["kind"][0],
                    "leg": leg,
                    "metric": name,
                    "value": mean,
                }
                for leg, values in _legs(means).items()
                for name, mean in values.items()
            ]
    return _over_seeds(rows)


def _legs(means: Mapping[str, float]) -> dict[str, dict[str, float]]:
    """Return the values of each leg of calls, by metric, from the means of `of_calls`."""

    def flow_values(leg: str) -> dict[str, float]:
        parts = {part: means[f"{leg}: {part}"] for part in PARTS}
        return {TOTAL: means[f"{leg}_s"], ALONE: means[f"{leg}_alone_s"], **parts}

    request, response = flow_values(REQUEST), flow_values(RESPONSE)
    both = {part: request[part] + response[part] for part in PARTS}
    call = {TOTAL: means["latency_s"], **both}
    return {REQUEST: request, SERVER: {TOTAL: means[SERVER]}, RESPONSE: response, CALL: call}


def differences(
    runs: Sequence[Run],
    by: str,
    against: Any = None,
    buckets: Iterable[Bucket] | None = None,
) -> pl.DataFrame:
    """Return the differences of mean parts between schemes and a baseline, on the same flows.

    `by` is the label whose values are schemes; `against` is the baseline, by default the first
    scheme. Only flows that finished under both schemes count. If flows differ between schemes
    (calls, loads), the means of all flows are compared. The columns are those of `by_size` and
    `same_flows`, true if flows were paired. Intervals are over seeds, of the differences within
    each seed; of one seed, by batches of flows in order of start, or by samples
    (`convergence.batch_means`), or NaN. If one of two schemes is an ideal, the ideal FCT counts as
    `flight` of both.
    """
    schemes = list({str(run.labels[by]): run.labels[by] for run in runs}.values())
    reference = str(reference_of(schemes, against))
    runs = metrics.without_repetition(runs)

    def other_labels(run: Run) -> str:
        return str({name: value for name, value in run.labels.items() if name != by})

    baselines = {other_labels(run): run for run in runs if str(run.labels[by]) == reference}
    identified = _identified_buckets(runs, buckets)
    rows = []
    for run in runs:
        baseline = baselines.get(other_labels(run))
        if baseline is None or baseline is run:
            continue
        sides, is_paired = _paired(run.result, baseline.result)
        for bucket, identity in identified:
            flows, baseline_flows = (
                by_sample(side.filter(*metrics.within(bucket))) for side in sides
            )
            if flows.is_empty() or baseline_flows.is_empty():
                continue
            columns = {**run.labels, **identity, "same_flows": is_paired}
            means, baseline_means = _means(flows), _means(baseline_flows)
            for name in (TOTAL, *PARTS):
                value, low, high = means[name] - baseline_means[name], math.nan, math.nan
                if is_paired and convergence.are_batches(flows):
                    difference = (flows[EVERY[name]] - baseline_flows[EVERY[name]]).to_numpy()
                    samples = convergence.samples_of(flows)
                    _, low, high = convergence.batch_means(difference, samples=samples)
                rows.append({**columns, "metric": name, "value": value, "low": low, "high": high})
    if not rows:
        return pl.DataFrame()
    table = pl.DataFrame(rows, infer_schema_length=None)
    values = table.drop("low", "high", "same_flows").with_columns(at_least=False)
    summary = metrics.across_seeds(values)
    labels = summary.columns[: summary.columns.index("value")]
    if summary["seeds"].max() == 1:
        summary = summary.update(table.select(*labels, "low", "high"), on=labels)
    same = table.group_by(labels).agg(pl.col("same_flows").all())
    return _rounded(summary.join(same, on=labels, how="left", maintain_order="left"))


def _comparable(results: Sequence[Result]) -> list[pl.DataFrame]:
    """Return the parts of runs; if one run is of an ideal, with the ideal FCT in one part."""
    if len({is_ideal(result) for result in results}) == 1:
        return [divided(result) for result in results]
    excesses = [divided(result, excess=True) for result in results]
    return [flows.with_columns(pl.col(FLIGHT) + pl.col("ideal_fct_s")) for flows in excesses]


def _paired(*results: Result) -> tuple[list[pl.DataFrame], bool]:
    """Return the parts of two runs in order of start, and true if their flows are the same.

    If the flows are the same, only those that finished in both runs remain.
    """
    first, second = _comparable(results)
    common = [
        side.join(other, on="flow", how="semi").sort("start_s", "flow")
        for side, other in ((first, second), (second, first))
    ]
    same = all(common[0][name].equals(common[1][name]) for name in ("flow", *IDENTITY))
    same = same and not are_disjoint(*map(metrics.judged, results))
    return (common, True) if same else ([first, second], False)


def places(runs: Iterable[Run], part: str, bucket: Bucket = metrics.ALL) -> dict[str, float]:
    """Return the shares of a part by breakdown column (reason and place), the largest first.

    They are shares of the mean slowdown: the times of each flow count over its ideal FCT.
    """
    totals: dict[str, float] = {}
    for run in runs:
        chosen = divided(run.result).filter(*metrics.within(bucket)).select("flow", "ideal_fct_s")
        breakdown = run.result.account.join(chosen, on="flow", how="inner")
        for column in columns_of(breakdown):
            if part_of(column) == part:
                over_ideal: Any = (breakdown[column] / breakdown["ideal_fct_s"]).sum()
                totals[column] = totals.get(column, 0.0) + over_ideal
    whole = sum(totals.values())
    ordered = sorted(totals.items(), key=lambda item: -item[1])
    return {column: total / whole for column, total in ordered if total > 0}
