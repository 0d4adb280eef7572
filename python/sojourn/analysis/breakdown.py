"""Accounts in words: what flows spent their time on, and where schemes differ.

A result's `account` has a column for each reason and place. Here they are put together to few
parts, which people know: what a wait in a port was spent on counts as that, whatever the packet was
for, and what is left counts by its reason.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import polars as pl

from sojourn._core import ScenarioError
from sojourn.analysis import convergence, metrics, rpc
from sojourn.analysis.metrics import Bucket
from sojourn.analysis.paired import IDENTITY, reference_of
from sojourn.runs.results import Result, Run

FLIGHT, HANDSHAKE, ROUND_TRIPS = "flight", "handshake", "round trips"


OTHERS, OWN, CONTROL, PAUSED = "queues: others", "queues: own", "queues: control", "paused"


PACE, TURN, REPAIRS, TIME_OUTS = "pace", "turn", "repairs", "time-outs"


SHARED = "shared"


PARTS = {
    FLIGHT: "the journey of the packet that completes the flow; of an ideal, its time alone",
    HANDSHAKE: "the round trip that opens the flow, and lost SYNs",
    ROUND_TRIPS: "for the window to open: wires, transmissions, and receivers that wait",
    OTHERS: "in ports that send packets of other flows",
    OWN: "in ports that send earlier packets of the same flow",
    CONTROL: "in ports that send ACKs and other control packets, or idle by their own rule",
    PAUSED: "in ports that must not send (PFC)",
    PACE: "for the sender's own pace",
    TURN: "for the host's port, which sends for the flow or for others",
    REPAIRS: "from when lost packets were sent first until again, where ACKs told of it",
    TIME_OUTS: "from when lost packets were sent first until again, where a time-out told of it",
    SHARED: "for others that the ideal serves meanwhile",
}
"""What there is to spend time on, and what it means."""


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
}


def split(column: str) -> tuple[str, str]:
    """Return the reason and the place that a column of accounts is of."""
    for reason in BY_REASON:
        if column.startswith(f"{reason}_"):
            return reason, column.removeprefix(f"{reason}_").removesuffix("_ps")
    raise ValueError(f"{column!r} is no part of an account")


def part_of(column: str) -> str:
    """Return which of `PARTS` a column of accounts belongs to."""
    reason, place = split(column)
    for start, part in BY_PLACE.items():
        if place.startswith(start):
            return part
    return BY_REASON[reason]


def columns_of(account: pl.DataFrame) -> list[str]:
    """Return the columns of accounts that are parts of the time."""
    return [name for name in account.columns if name.startswith(tuple(BY_REASON))]


def are_kept(result: Result) -> bool:
    """Return whether the scenario asked for accounts."""
    return bool(result.summary["scenario"].get("account"))


def is_ideal(result: Result) -> bool:
    """Tell whether the run is one of an ideal, which has no packets to keep accounts of."""
    return bool(result.summary["scenario"].get("model", "packet") != "packet")


def divided(result: Result, *, excess: bool = False) -> pl.DataFrame:
    """Return the judged flows that have finished, with each of `PARTS` in seconds.

    Their records, `rounds`, and a column a part; these add up to `fct_s`. Of the `excess` what the
    flow would spend alone in the network is taken off, and they add up to `fct_s - ideal_fct_s`.
    There its last packet is on its way (`flight`) behind those before it (`queues: own`). A flow
    that waits for the host's port, a window or its pace does not wait behind itself: what sending
    it takes anyway is then found in these, and taken off there (`NOT_BEHIND_ITSELF`).

    An ideal has no packets: what a flow would take alone is `flight`, the rest `shared`, and
    nothing else. Raises `ScenarioError` if no accounts were kept.
    """
    if not are_kept(result):
        raise ScenarioError("account: must be true; these results have no accounts")
    if is_ideal(result):
        return _of_ideal(result, excess=excess)
    names: dict[str, list[pl.Expr]] = {part: [] for part in PARTS}
    for column in columns_of(result.account):
        names[part_of(column)].append(pl.col(column).cast(pl.Float64))
    for column, part in ALONE_IN.items() if excess else ():
        names[part].append(-pl.col(column).cast(pl.Float64))
    zero = pl.lit(0.0)
    parts = [(sum(found, zero) / 1e12).alias(part) for part, found in names.items()]
    account = result.account.select("flow", "rounds", *parts)
    account = _settled(account) if excess else account
    return metrics.judged(result).join(account, on="flow", how="inner", maintain_order="left")


def _of_ideal(result: Result, *, excess: bool) -> pl.DataFrame:
    flows = metrics.judged(result).filter(pl.col("outcome") == "finished")
    alone, zero = pl.col("ideal_fct_s"), pl.lit(0.0)
    known = {FLIGHT: zero if excess else alone, SHARED: pl.col("fct_s") - alone}
    parts = [known.get(part, zero).alias(part) for part in PARTS]
    return flows.with_columns(pl.lit(0, pl.UInt64).alias("rounds"), *parts)


ALONE, TOTAL = "alone", "all"


ALONE_IN = {
    "alone_propagation_ps": FLIGHT,
    "alone_transmission_ps": FLIGHT,
    "alone_queue_own_ps": OWN,
}
"""Which parts the time of a flow alone belongs to."""


NOT_BEHIND_ITSELF = (TURN, ROUND_TRIPS, PACE, REPAIRS, TIME_OUTS, OTHERS, CONTROL, PAUSED)
"""What a flow waits for while the rest of it is sent, in the order in which that time is looked for
there: first what holds data back at its sender, of which a pace makes longer what the host's port
takes; then repairs, while which other data goes; at last other ports, while which it goes by."""


def _settled(account: pl.DataFrame) -> pl.DataFrame:
    """Take what a flow has less of than alone, its own queue, off what it spent this time on."""
    for part in NOT_BEHIND_ITSELF:
        found = pl.min_horizontal(part, (-pl.col(OWN)).clip(lower_bound=0))
        account = account.with_columns(pl.col(part) - found, pl.col(OWN) + found)
    return account


EVERY = {TOTAL: "fct_s", ALONE: "ideal_fct_s", **{part: part for part in PARTS}}
"""What there are means of, and the columns of `divided` that they are means of."""


def by_size(
    runs: Sequence[Run],
    buckets: Iterable[Bucket] | None = None,
    *,
    excess: bool = False,
) -> pl.DataFrame:
    """Return what flows of each size and class spend on each part on average, over seeds.

    A row is a combination of labels, a `size` (and a `class`, if any bucket is of one) and a
    `metric` (one of `PARTS`; `all`, their completion time; or what the same flows take `alone`), in
    the columns of `metrics.across_seeds`, in seconds. The `buckets` are by default those of
    `metrics.sizes_and_classes`. Parts are those of `divided`: they add up to `all`, or beyond
    `alone` to it if they are those of the `excess`. Empty if no flow has finished.
    """
    given = _told_apart(runs, buckets)
    rows = []
    for run in runs:
        flows = divided(run.result, excess=excess)
        for bucket, where in given:
            part = flows.filter(*metrics.within(bucket))
            if not part.is_empty():
                rows += [
                    {**run.labels, **where, "metric": name, "value": value}
                    for name, value in _means(part).items()
                ]
    return _over_seeds(rows)


def _told_apart(
    runs: Iterable[Run], buckets: Iterable[Bucket] | None
) -> list[tuple[Bucket, dict[str, str]]]:
    """Return buckets with what tells them apart: the size, and the class if any is of one."""
    if buckets is None:
        buckets = metrics.sizes_and_classes(run.result for run in runs)
    buckets = list(buckets)
    columns = ("size", "class") if any(bucket.of_class for bucket in buckets) else ("size",)
    return [(bucket, {name: bucket.where[name] for name in columns}) for bucket in buckets]


def _over_seeds(rows: list[dict[str, Any]]) -> pl.DataFrame:
    if not rows:
        return pl.DataFrame()
    known = pl.DataFrame(rows, infer_schema_length=None).with_columns(at_least=False)
    return metrics.across_seeds(known)


def _means(flows: pl.DataFrame) -> dict[str, float]:
    return flows.select(**{name: pl.col(column).mean() for name, column in EVERY.items()}).row(
        0, named=True
    )


REQUEST, SERVER, RESPONSE, CALL = "request", "server", "response", "call"
"""What a call consists of, and all of it."""


LEGS = (REQUEST, SERVER, RESPONSE)


def of_calls(result: Result, kind: str = "") -> pl.DataFrame:
    """Return the calls that were answered, with what they spent in seconds.

    A row is one of `calls.numbered`, with a column for each of `PARTS` of the request, such as
    `request: pace`, and of the response; and with `server`, the time from the request's last byte
    to the start of the answer. All of these add up to `latency_s`; the flows' own times are
    `request_s` and `response_s`. Raises `ScenarioError` if no accounts were kept.
    """
    flows = divided(result)
    table = rpc.numbered(result, kind).drop_nulls("latency_s")
    for leg in (REQUEST, RESPONSE):
        every = {leg: "flow", f"{leg}_s": "fct_s", f"{leg}_alone_s": "ideal_fct_s"}
        every |= {f"{leg}: {part}": part for part in PARTS}
        columns = [pl.col(column).alias(name) for name, column in every.items()]
        table = table.join(flows.select(columns), on=leg, how="inner", maintain_order="left")
    server = pl.col("latency_s") - pl.col("request_s") - pl.col("response_s")
    # Times are whole picoseconds; what is less is left by the subtraction.
    return table.with_columns(server.round(12).alias(SERVER))


def by_call(runs: Iterable[Run]) -> pl.DataFrame:
    """Return what calls of each kind spend on average, over seeds; nothing if there are none.

    A row is a combination of labels, a `kind`, a `leg` (request, server, response, or the whole
    call) and a `metric` as those of `by_size`, in the columns of `metrics.across_seeds`, in
    seconds. A server's time is not divided.
    """
    rows = []
    for run in runs:
        if run.result.flows["latency_s"].count() == 0:
            continue
        answered = of_calls(run.result)
        for of_kind in answered.partition_by("kind", maintain_order=True):
            means = of_kind.select(pl.selectors.numeric().mean()).row(0, named=True)
            rows += [
                {
                    **run.labels,
                    "kind": of_kind["kind"][0],
                    "leg": leg,
                    "metric": name,
                    "value": mean,
                }
                for leg, values in _legs(means).items()
                for name, mean in values.items()
            ]
    return _over_seeds(rows)


def _legs(means: Mapping[str, float]) -> dict[str, dict[str, float]]:
    """Return what each leg of calls takes, by metric, of the means of `of_calls`."""

    def of_flow(leg: str) -> dict[str, float]:
        parts = {part: means[f"{leg}: {part}"] for part in PARTS}
        return {TOTAL: means[f"{leg}_s"], ALONE: means[f"{leg}_alone_s"], **parts}

    request, response = of_flow(REQUEST), of_flow(RESPONSE)
    both = {part: request[part] + response[part] for part in PARTS}
    call = {TOTAL: means["latency_s"], **both}
    return {REQUEST: request, SERVER: {TOTAL: means[SERVER]}, RESPONSE: response, CALL: call}


def differences(
    runs: Sequence[Run],
    by: str,
    against: Any = None,
    buckets: Iterable[Bucket] | None = None,
) -> pl.DataFrame:
    """Return how much more of each part flows have under other schemes, on the same flows.

    `by` is the label whose values are schemes, `against` the one that others are held to: the first
    by default. Only flows that have finished under both count; where flows are not the same ones
    (calls, loads), means of all are held to each other. In the columns of `by_size`, with intervals
    over the seeds of the differences within them; of one seed, by batches of flows in order of
    start (`convergence.batch_means`), or unknown. `same_flows` tells whether flows were paired.
    Where an ideal and a transport are held to each other, all that a flow would take alone counts
    as `flight` of both: an ideal's time alone has no other parts.
    """
    schemes = list({str(run.labels[by]): run.labels[by] for run in runs}.values())
    reference = str(reference_of(schemes, against))

    def others(run: Run) -> str:
        return str({name: value for name, value in run.labels.items() if name != by})

    held_to = {others(run): run for run in runs if str(run.labels[by]) == reference}
    given = _told_apart(runs, buckets)
    rows = []
    for run in runs:
        other = held_to.get(others(run))
        if other is None or other is run:
            continue
        sides, paired = _paired(run.result, other.result)
        for bucket, where in given:
            ours, theirs = (flows.filter(*metrics.within(bucket)) for flows in sides)
            if ours.is_empty() or theirs.is_empty():
                continue
            here = {**run.labels, **where, "same_flows": paired}
            mine, reference_means = _means(ours), _means(theirs)
            for name in (TOTAL, *PARTS):
                value, low, high = mine[name] - reference_means[name], math.nan, math.nan
                if paired:
                    apart = (ours[EVERY[name]] - theirs[EVERY[name]]).to_numpy()
                    _, low, high = convergence.batch_means(apart)
                rows.append({**here, "metric": name, "value": value, "low": low, "high": high})
    if not rows:
        return pl.DataFrame()
    table = pl.DataFrame(rows, infer_schema_length=None)
    means = table.drop("low", "high", "same_flows").with_columns(at_least=False)
    known = metrics.across_seeds(means)
    labels = known.columns[: known.columns.index("value")]
    if known["seeds"].max() == 1:
        known = known.update(table.select(*labels, "low", "high"), on=labels)
    same = table.group_by(labels).agg(pl.col("same_flows").all())
    return known.join(same, on=labels, how="left", maintain_order="left")


def _alike(results: Sequence[Result]) -> list[pl.DataFrame]:
    """Return what runs' flows spent; beside ideals, with the time alone in one part."""
    if len({is_ideal(result) for result in results}) == 1:
        return [divided(result) for result in results]
    beyond = [divided(result, excess=True) for result in results]
    return [flows.with_columns(pl.col(FLIGHT) + pl.col("ideal_fct_s")) for flows in beyond]


def _paired(*results: Result) -> tuple[list[pl.DataFrame], bool]:
    """Return what two runs' flows spent, in order of start, and whether these are the same ones.

    If they are, only those that have finished in both are left.
    """
    one, other = _alike(results)
    both = [
        ours.join(theirs, on="flow", how="semi").sort("start_s", "flow")
        for ours, theirs in ((one, other), (other, one))
    ]
    same = all(both[0][name].equals(both[1][name]) for name in ("flow", *IDENTITY))
    return (both, True) if same else ([one, other], False)


def places(runs: Iterable[Run], part: str, bucket: Bucket = metrics.ALL) -> dict[str, float]:
    """Return how a part divides by reason and place: each one's share of it, the largest first."""
    totals: dict[str, float] = {}
    for run in runs:
        chosen = divided(run.result).filter(*metrics.within(bucket)).select("flow")
        account = run.result.account.join(chosen, on="flow", how="semi")
        for column in columns_of(account):
            if part_of(column) == part:
                spent: Any = account[column].cast(pl.Float64).sum()
                totals[column] = totals.get(column, 0.0) + spent
    whole = sum(totals.values())
    ordered = sorted(totals.items(), key=lambda item: -item[1])
    return {column: spent / whole for column, spent in ordered if spent > 0}
