"""Accounts in words: what flows spent their time on, and where schemes differ.

A result's `account` has a column for each reason and place. Here they are put together to few
parts, which people know: what a wait in a port was spent on counts as that, whatever the packet was
for, and what is left counts by its reason.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from sojourn import looks, metrics
from sojourn._core import ScenarioError
from sojourn.metrics import Bucket
from sojourn.pairs import reference_of
from sojourn.results import Result, Run

FLIGHT, HANDSHAKE, ROUND_TRIPS = "flight", "handshake", "round trips"
OTHERS, OWN, CONTROL, PAUSED = "queues: others", "queues: own", "queues: control", "paused"
PACE, TURN, REPAIRS, TIME_OUTS = "pace", "turn", "repairs", "time-outs"

PARTS = {
    FLIGHT: "the journey of the packet that completes the flow",
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
}
"""What there is to spend time on, and what it means."""

COLOURS = {
    FLIGHT: "#E5E7EB",
    HANDSHAKE: "#B6BCC6",
    ROUND_TRIPS: "#7C8593",
    OTHERS: looks.RED,
    OWN: looks.ORANGE,
    CONTROL: looks.YELLOW,
    PAUSED: looks.BLACK,
    PACE: looks.SKY,
    TURN: looks.BLUE,
    REPAIRS: looks.PURPLE,
    TIME_OUTS: looks.GREEN,
}
"""Grey is what a flow alone has too; colours are what costs."""

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


def divided(result: Result, *, excess: bool = False) -> pl.DataFrame:
    """Return the judged flows that have finished, with each of `PARTS` in seconds.

    Their records, `rounds`, and a column a part; these add up to `fct_s`. Of the `excess` what the
    flow would spend alone in the network is taken off, and they add up to `fct_s - ideal_fct_s`.
    There its last packet is on its way (`flight`) behind those before it (`queues: own`). A flow
    that waits for the host's port, a window or its pace does not wait behind itself: what sending
    it takes anyway is then found in these, and taken off there (`NOT_BEHIND_ITSELF`). Raises
    `ScenarioError` if no accounts were kept.
    """
    if not are_kept(result):
        raise ScenarioError("account: must be true; these results have no accounts")
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


def by_size(
    runs: Iterable[Run],
    buckets: Iterable[Bucket] = metrics.BUCKETS,
    *,
    excess: bool = False,
) -> pl.DataFrame:
    """Return what flows of each size spend on each part on average, over seeds.

    A row is a combination of labels, a `size` and a `metric` (one of `PARTS`; `all`, their
    completion time; or what the same flows take `alone`), in the columns of
    `metrics.across_seeds`, in seconds. Parts are those of `divided`: they add up to `all`, or
    beyond `alone` to it if they are those of the `excess`. Without flows there are no rows.
    """
    rows = []
    for run in runs:
        flows = divided(run.result, excess=excess)
        for bucket in buckets:
            part = flows.filter(*metrics.within(bucket))
            if not part.is_empty():
                rows += [
                    {**run.labels, "size": bucket.name, "metric": name, "value": value}
                    for name, value in _means(part).items()
                ]
    if not rows:
        return pl.DataFrame()
    known = pl.DataFrame(rows, infer_schema_length=None).with_columns(at_least=False)
    return metrics.across_seeds(known)


def _means(flows: pl.DataFrame) -> dict[str, float]:
    every = {TOTAL: "fct_s", ALONE: "ideal_fct_s", **{part: part for part in PARTS}}
    return flows.select(**{name: pl.col(column).mean() for name, column in every.items()}).row(
        0, named=True
    )


def differences(
    runs: Sequence[Run],
    by: str,
    against: Any = None,
    buckets: Iterable[Bucket] = metrics.BUCKETS,
) -> pl.DataFrame:
    """Return how much more of each part flows have under other schemes, on the same flows.

    `by` is the label whose values are schemes, `against` the one that others are held to: the first
    by default. Only flows that have finished under both count. In the columns of `by_size`, with
    intervals over the seeds of the differences within them.
    """
    schemes = list({str(run.labels[by]): run.labels[by] for run in runs}.values())
    reference = str(reference_of(schemes, against))

    def others(run: Run) -> str:
        return str({name: value for name, value in run.labels.items() if name != by})

    held_to = {others(run): run for run in runs if str(run.labels[by]) == reference}
    rows = []
    for run in runs:
        other = held_to.get(others(run))
        if other is None or other is run:
            continue
        flows, theirs = divided(run.result), divided(other.result)
        for bucket in buckets:
            ours = flows.filter(*metrics.within(bucket))
            both = [
                ours.join(theirs, on="flow", how="semi"),
                theirs.join(ours, on="flow", how="semi"),
            ]
            if both[0].is_empty():
                continue
            mine, reference_means = (_means(side) for side in both)
            rows += [
                {
                    **run.labels,
                    "size": bucket.name,
                    "metric": name,
                    "value": mine[name] - reference_means[name],
                }
                for name in (TOTAL, *PARTS)
            ]
    if not rows:
        return pl.DataFrame()
    return metrics.across_seeds(
        pl.DataFrame(rows, infer_schema_length=None).with_columns(at_least=False)
    )


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


def stack(
    axes: Any,
    places: npt.ArrayLike,
    heights: pl.DataFrame,
    widths: npt.ArrayLike = 0.8,
    align: str = "center",
) -> None:
    """Draw a bar at each of the places: the columns of `heights` that are of `PARTS`, stacked.

    What is less than nothing hangs below the axis.
    """
    tops, bottoms = np.zeros(heights.height), np.zeros(heights.height)
    style: Any = {"align": align, "edgecolor": "white", "linewidth": 0.3}
    for name, colour in COLOURS.items():
        part = heights[name].to_numpy()
        foot = np.where(part < 0, bottoms, tops)
        axes.bar(places, part, widths, bottom=foot, label=name, color=colour, **style)
        tops, bottoms = tops + part.clip(min=0), bottoms + part.clip(max=0)
