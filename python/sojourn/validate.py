"""Validation: what another simulator ran, run again here with the same flows and parameters."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from sojourn import metrics
from sojourn.cases import BINS, TOTALS, Replay
from sojourn.claims import Verdict, at_most, not_judged
from sojourn.results import Result
from sojourn.run import run_many

UTILISATION_WITHIN = 0.02
"""How far apart utilisations may be."""


@dataclass(frozen=True)
class Outcome:
    """A run beside the other's."""

    replay: Replay
    bins: pl.DataFrame
    """The columns of `BINS`; those that end in `_other` are the other's. `difference` is ours over
    the other's mean less one, `error` two standard errors of it: from the differences of single
    flows where the other's are known, else as if both means were independent, which is too much.
    Ideals have none: they are exact."""
    ours: Mapping[str, float | None]
    theirs: Mapping[str, float | None]
    """The numbers of `TOTALS`."""

    @property
    def judged(self) -> pl.DataFrame:
        """The bins with enough flows to be judged."""
        return self.bins.filter(
            pl.col("flows_other") >= self.replay.settings["least_flows"],
            pl.col("difference").is_not_null(),
        )

    @property
    def completion(self) -> Verdict:
        """Whether mean completion times are near enough in every bin that is judged."""
        within = self.replay.settings.get("within")
        if within is None or self.judged.is_empty():
            return not_judged("no bin has enough flows")
        worst = self.judged.sort(pl.col("difference").abs(), descending=True).row(0, named=True)
        distance = abs(worst["difference"])
        chance = " (no more than chance)" if distance <= worst["error"] else ""
        what = f"{apart(worst)}{chance} at {self.bin_name(worst)}"
        return Verdict(bool(distance <= within), f"{what}, {100 * within:g} % allowed")

    @property
    def utilisation(self) -> Verdict:
        """Whether the link was used as much."""
        ours, theirs = self.ours["utilisation"], self.theirs["utilisation"]
        if ours is None or theirs is None:
            return not_judged("not measured")
        return at_most(abs(ours - theirs), UTILISATION_WITHIN, "difference of utilisations")

    def bin_name(self, row: Mapping[str, Any]) -> str:
        """Return the name of a bin, such as `8 to 11 packets`."""
        if self.replay.settings["by"] == "flow":
            return f"flow {row['low']}"
        return f"{row['low']} to {row['high']} packets"


def apart(row: Mapping[str, Any]) -> str:
    """Write the difference of a bin, and two standard errors of it if there is one."""
    error = f" ± {100 * row['error']:.1f}" if row["error"] else ""
    return f"{100 * row['difference']:+.1f}{error} %"


def validate(replays: Sequence[Replay], **options: Any) -> list[Outcome]:
    """Run everything, and put it beside the other's; the options are those of `run_many`."""
    linked = [replay for replay in replays if _has_link(replay)]
    wholes = [replay.scenario for replay in replays]
    results = run_many([*wholes, *(replay.beginning for replay in linked)], **options)
    beginnings = iter(results[len(replays) :])
    return [
        _beside(replay, result, next(beginnings) if _has_link(replay) else None)
        for replay, result in zip(replays, results, strict=False)
    ]


def _has_link(replay: Replay) -> bool:
    return "link" in replay.settings and not replay.is_ideal


def _beside(replay: Replay, result: Result, beginning: Result | None) -> Outcome:
    ours, theirs = _our_flows(replay, result), _their_flows(replay)
    bins, totals = replay.bins, replay.totals
    if replay.quick and theirs is not None:
        # A flow that only one of both finished in the short time would bias the other's mean.
        both = ours["fct_s"].is_not_null() & theirs["fct_s"].is_not_null()
        ours, theirs = ours.filter(both), theirs.filter(both)
        bins, totals = _binned(replay, theirs), _flow_totals(replay, theirs)
    pairs = _binned(replay, ours).join(
        bins.select(BINS), on=("low", "high"), suffix="_other", maintain_order="left"
    )
    if theirs is not None:
        differences = ours.with_columns(fct_s=ours["fct_s"] - theirs["fct_s"])
        errors = _binned(replay, differences)["stderr_s"]
    elif replay.is_ideal:
        errors = pl.zeros(pairs.height, eager=True)
    else:
        errors = (pairs["stderr_s"] ** 2 + pairs["stderr_s_other"] ** 2).sqrt()
    pairs = pairs.with_columns(
        difference=pl.col("mean_s") / pl.col("mean_s_other") - 1,
        error=2 * errors.fill_null(0) / pl.col("mean_s_other"),
    )
    nothing: dict[str, float | None] = dict.fromkeys(TOTALS)
    measured = nothing | _flow_totals(replay, ours)
    if beginning is not None:
        measured |= _link_totals(replay, result, beginning)
    return Outcome(replay, pairs, measured, nothing | dict(totals))


def _our_flows(replay: Replay, result: Result) -> pl.DataFrame:
    payload = replay.settings["payload_bytes"]
    packets = (pl.col("size_bytes") + payload - 1) // payload
    key = pl.col("flow") if replay.settings["by"] == "flow" else packets
    flows = result.flows.filter(pl.col("outcome") != "long_lived")
    fct = pl.col("fct_s") + replay.settings["adds_s"]
    return flows.select(key.cast(pl.Int64).alias("key"), "start_s", fct, "timeouts")


def _their_flows(replay: Replay) -> pl.DataFrame | None:
    """Return the other's flows if they are known, as far as they finish before our run ends."""
    if replay.flows is None or replay.name not in replay.flows.columns:
        return None
    start, fct = pl.col("start_us") / 1e6, pl.col(replay.name) / 1e6
    return replay.flows.select(
        pl.col("packets").cast(pl.Int64).alias("key"),
        start.alias("start_s"),
        pl.when(start + fct <= replay.end_s).then(fct).alias("fct_s"),
        pl.lit(None, pl.UInt32).alias("timeouts"),
    )


def _measured(replay: Replay, flows: pl.DataFrame) -> pl.DataFrame:
    since, until = replay.settings["measured_s"]
    return flows.filter(pl.col("start_s") >= since, pl.col("start_s") < until)


def _binned(replay: Replay, flows: pl.DataFrame) -> pl.DataFrame:
    edges = replay.bins.select("low", "high").sort("low")
    fct = pl.col("fct_s")
    return (
        _measured(replay, flows)
        .sort("key")
        .join_asof(edges, left_on="key", right_on="low")
        .filter(pl.col("key") <= pl.col("high"))
        .group_by("low", "high")
        .agg(
            flows=pl.len(),
            unfinished=fct.null_count(),
            mean_s=fct.mean(),
            stderr_s=fct.std() / fct.count().sqrt(),
            median_s=fct.median(),
            p99_s=fct.quantile(0.99, "higher"),
        )
        .sort("low")
        .select(BINS)
    )


def _flow_totals(replay: Replay, flows: pl.DataFrame) -> dict[str, float | None]:
    measured = _measured(replay, flows)["fct_s"]
    since, end = replay.settings["measured_s"][0], replay.end_s
    # A flow is active until its sender knows that it is done.
    done = pl.col("start_s") + pl.col("fct_s").fill_null(math.inf) + replay.settings["ack_s"]
    active = flows.select(done.clip(since, end) - pl.col("start_s").clip(since, end)).to_series()
    timeouts = flows.filter(pl.col("fct_s").is_not_null())["timeouts"]
    return {
        "flows": len(measured),
        "unfinished": measured.null_count(),
        "mean_s": _number(measured.mean()),
        "median_s": _number(measured.median()),
        "p99_s": _number(measured.quantile(0.99, "higher")),
        "active_flows": float(active.sum()) / (end - since),
        "timeouts": None if timeouts.null_count() else float(timeouts.sum()),
    }


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def _link_totals(replay: Replay, result: Result, beginning: Result) -> dict[str, float]:
    """Return what the link carried, held and dropped since the first arrival that counts."""
    link = replay.settings["link"]
    samples = result.samples.filter(pl.col("time_s") >= replay.settings["measured_s"][0])
    sent, queue = (
        samples.filter(pl.col("probe") == f"{probe} {link}").sort("time_s")
        for probe in ("transmitted_bytes", "queue_bytes")
    )
    spent = sent["time_s"][-1] - sent["time_s"][0]
    carried = 8 * (sent["value"][-1] - sent["value"][0])
    now, before = (metrics.link_counters(run, link) for run in (result, beginning))
    dropped = now["drops"] - before["drops"]
    arrivals = dropped + now["packets"] - before["packets"]
    return {
        "utilisation": carried / spent / now["rate_bps"],
        "queue_packets": float(queue["value"].to_numpy().mean()) / replay.settings["wire_bytes"],
        "drop_rate": dropped / arrivals if arrivals else 0.0,
    }


def bins_table(outcomes: Iterable[Outcome]) -> pl.DataFrame:
    """Return all bins of all runs in one table."""
    return pl.concat(
        one.bins.select(
            pl.lit(one.replay.case).alias("case"), pl.lit(one.replay.name).alias("run"), pl.all()
        )
        for one in outcomes
    )


def totals_table(outcomes: Iterable[Outcome]) -> pl.DataFrame:
    """Return the numbers of all runs as wholes in one table."""
    rows = []
    for one in outcomes:
        theirs = {f"{name}_other": one.theirs[name] for name in TOTALS}
        ours = {name: one.ours[name] for name in TOTALS}
        rows.append({"case": one.replay.case, "run": one.replay.name, **ours, **theirs})
    return pl.DataFrame(rows, infer_schema_length=None)
