"""Recorded packets of a result, in bytes of the flow instead of segments."""

from collections.abc import Iterable

import polars as pl

from sojourn._core import ScenarioError
from sojourn.base.units import count, parse_size
from sojourn.runs.results import Result, no_such_flow

ANSWERS = ("syn_ack", "probe_ack", "credit", "ack", "nack", "cnp")
"""Kinds of packets on the reverse path."""

HOW_TO_RECORD = "with `account = true` and a table `record` in the scenario, a run records"


def payload_bytes(result: Result) -> int:
    """Return the payload of a full data packet."""
    return round(parse_size(result.summary["scenario"]["packet"]["payload"]))


def of_flow(table: pl.DataFrame, flow: int, result: Result) -> pl.DataFrame:
    """Return the rows of a flow; raise `ScenarioError` for a flow without rows."""
    rows = table.filter(flow=flow)
    if rows.is_empty():
        if flow not in result.flows["flow"]:
            raise ScenarioError(no_such_flow(flow, result))
        names = table["flow"].unique().sort().head(8).to_list()
        few = ", ".join(map(str, names)) + (", …" if table["flow"].n_unique() > len(names) else "")
        raise ScenarioError(
            f"--flow {flow}: has no recorded packets; `record.flows = [{flow}]` records it "
            f"(recorded: {few})"
        )
    return rows


def packets(result: Result, flow: int | None = None) -> pl.DataFrame:
    """Return the recorded packets, or those of one flow, with the columns of `with_bytes`.

    Raises `ScenarioError` if no packets are recorded.
    """
    table = result.packets
    if table.is_empty():
        # On persistent connections no flow has packets of its own.
        if result.summary["scenario"].get("record") not in (None, "none"):
            hint = "`record.flows` names flows that are recorded, except on persistent connections"
            raise ScenarioError(f"packets of no flow are recorded; {hint}")
        raise ScenarioError(f"no packets are recorded; {HOW_TO_RECORD} them")
    return with_bytes(table if flow is None else of_flow(table, flow, result), result)


def with_bytes(table: pl.DataFrame, result: Result) -> pl.DataFrame:
    """Return packets with their flow's `source` and `target`, and numbers in bytes of payload.

    `size` is that of the flow, null if it is long-lived; `offset` is the start of the segment, or
    the end of acknowledged data; `length` is the payload; `sack_begin` and `sack_end` are the
    block; `is_answer` is true on the reverse path.
    """
    payload = payload_bytes(result)
    is_endless = pl.col("outcome") == "long_lived"
    size = pl.when(is_endless).then(pl.lit(None, pl.UInt64)).otherwise("size_bytes")
    flows = result.flows.select("flow", "source", "target", size=size)

    def in_bytes(number: str) -> pl.Expr:
        return pl.min_horizontal(pl.col(number).cast(pl.UInt64) * payload, "size")

    full = pl.min_horizontal(pl.lit(payload, pl.UInt64), pl.col("size") - pl.col("offset"))
    return (
        table.join(flows, on="flow", how="left", maintain_order="left")
        .with_columns(
            offset=pl.coalesce(pl.when(pl.col("kind") == "fin").then("size"), in_bytes("number")),
            sack_begin=in_bytes("from"),
            sack_end=in_bytes("to"),
            is_answer=pl.col("kind").is_in(ANSWERS),
        )
        .with_columns(length=pl.when(pl.col("kind") == "data").then(full).otherwise(0))
    )


def thinned(result: Result, flows: Iterable[int]) -> list[str]:
    """Return a note on the flows of which only a part of the packets is recorded, if any."""
    every = {
        flow["flow"]: max(flow["every"], flow.get("every_lost", 1))
        for flow in result.summary["record"]["flows"]
    }
    thin = [number for number in set(flows) if every.get(number, 1) > 1]
    if not thin:
        return []
    most, few = max(every[number] for number in thin), count(len(thin), "flow")
    return [
        f"packets are missing: of {few} at least one in {most} is recorded; raise `record.packets`"
    ]
