"""Validation: what another simulator ran, run again here with the same flows and parameters."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from sojourn.analysis import metrics
from sojourn.analysis.claims import Verdict, at_most, finding, not_judged
from sojourn.runs.results import Result
from sojourn.runs.runner import run_many
from sojourn.validate import shares
from sojourn.validate.cases import Replay
from sojourn.validate.schema import BINS, TOTALS

NAMES = {"timeouts": "time-outs", "retransmits": "sent again"}
"""What counts are called."""

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
    Ideals have none: they are exact. `p99_difference` is that of the percentiles."""
    ours: Mapping[str, float | None]
    theirs: Mapping[str, float | None]
    """The numbers of `TOTALS`."""
    shares: pl.DataFrame
    """Those of `shares.beside`."""

    @property
    def judged(self) -> pl.DataFrame:
        """The bins with enough flows to be judged."""
        return self.bins.filter(
            pl.col("flows_other") >= self.replay.settings.least_flows,
            pl.col("difference").is_not_null(),
        )

    @property
    def completions(self) -> list[tuple[str, Verdict]]:
        """Whether completion times are near enough: in all bins, or by statistic and group."""
        within = self.replay.settings.within
        rows = self.judged.to_dicts()
        unjudged = [("FCT", not_judged("no bin has enough flows"))]
        if within is None or not rows:
            return unjudged
        if not isinstance(within, dict):
            worst = max(rows, key=lambda row: abs(row["difference"]))
            return [("FCT", self._near("mean", worst, within))]
        judged = [
            (f"{statistic}, {self.bin_name(row)}", self._near(statistic, row, limit))
            for statistic, limits in within.items()
            for row in rows
            if (limit := limits.get(self.bin_name(row))) is not None
        ]
        return judged or unjudged

    @property
    def completion(self) -> Verdict:
        """Whether all completion times are near enough that are judged: the first that is not."""
        verdicts = [verdict for _, verdict in self.completions]
        return next((one for one in verdicts if one.held is False), verdicts[0])

    def _near(self, statistic: str, row: Mapping[str, Any], within: float) -> Verdict:
        if statistic == "mean":
            distance, what = abs(row["difference"]), apart(row)
            what += " (no more than chance)" if distance <= row["error"] else ""
        elif (difference := row[f"{statistic}_difference"]) is None:
            return not_judged(f"no percentile at {self.bin_name(row)}")
        else:
            distance, what = abs(difference), f"{100 * difference:+.1f} %"
        sentence = f"{what} at {self.bin_name(row)}, {100 * within:g} % allowed"
        return finding(bool(distance <= within), sentence)

    @property
    def counts(self) -> list[tuple[str, Verdict]]:
        """Whether as much was sent again, and as often timed out."""
        return [
            (NAMES[name], self._as_many(name, factor))
            for name, factor in self.replay.settings.factor.items()
        ]

    def _as_many(self, name: str, factor: float) -> Verdict:
        ours, theirs = self.ours[name], self.theirs[name]
        if ours is None or theirs is None:
            return not_judged("not measured")
        ratio = max(ours, 1) / max(theirs, 1)
        allowed = f"a factor of {factor:g} allowed" if factor > 1 else "as many wanted"
        return finding(
            1 / factor <= ratio <= factor if factor > 1 else ours == theirs,
            f"{ours:.4g}, and {theirs:.4g} there; {allowed}",
        )

    @property
    def periods(self) -> list[tuple[str, Verdict]]:
        """Whether flows have about the shares of each period that they have there."""
        within, judged = self.replay.settings.share_within or 0, []
        for period in self.shares.partition_by(shares.PERIOD):
            rows = period.to_dicts()
            worst = max(rows, key=lambda row: abs(row["share"] - row["share_other"]))
            verdict = _share_verdict(worst, len(self.replay.scenarios), within)
            judged.append((f"shares, {worst['from_s']:g} to {worst['to_s']:g} s", verdict))
        return judged

    @property
    def utilisation(self) -> Verdict:
        """Whether the link was used as much."""
        ours, theirs = self.ours["utilisation"], self.theirs["utilisation"]
        if ours is None or theirs is None:
            return not_judged("not measured")
        return at_most(abs(ours - theirs), UTILISATION_WITHIN, "difference of utilisations")

    def bin_name(self, row: Mapping[str, Any]) -> str:
        """Return the name of the bin of a row."""
        return self.replay.bin_name(row["low"], row["high"])


def _share_verdict(row: Mapping[str, Any], runs: int, within: float) -> Verdict:
    ours, lowest, highest, theirs = (
        100 * row[name] for name in ("share", "lowest", "highest", "share_other")
    )
    of_runs = f" ({lowest:.0f} to {highest:.0f} in {runs} runs)" if runs > 1 else ""
    sentence = (
        f"{ours - theirs:+.1f} points at flow {row['flow']}: {ours:.0f} %{of_runs},"
        f" {theirs:.0f} % there; {100 * within:g} allowed"
    )
    return finding(bool(abs(ours - theirs) <= 100 * within), sentence)


def apart(row: Mapping[str, Any]) -> str:
    """Write the difference of a bin, and two standard errors of it if there is one."""
    error = f" ± {100 * row['error']:.1f}" if row["error"] else ""
    return f"{100 * row['difference']:+.1f}{error} %"


def validate(replays: Sequence[Replay], **options: Any) -> list[Outcome]:
    """Run everything, and put it beside the other's; the options are those of `run_many`."""
    linked = [replay for replay in replays if replay.has_link]
    wholes = [scenario for replay in replays for scenario in replay.scenarios]
    starts = [scenario for replay in linked for scenario in replay.beginnings]
    results = iter(run_many([*wholes, *starts], **options))
    runs = [[next(results) for _ in replay.scenarios] for replay in replays]
    begun = [
        [next(results) for _ in replay.scenarios] if replay.has_link else [] for replay in replays
    ]
    return [_beside(*each) for each in zip(replays, runs, begun, strict=True)]


def _beside(replay: Replay, runs: Sequence[Result], begun: Sequence[Result]) -> Outcome:
    each, theirs = [_our_flows(replay, run) for run in runs], _their_flows(replay)
    ours = pl.concat(each)
    bins, totals = replay.bins, replay.totals
    if replay.quick and theirs is not None:
        # A flow that only one of both finished in the short time would bias the other's mean.
        both = ours["fct_s"].is_not_null() & theirs["fct_s"].is_not_null()
        ours, theirs = ours.filter(both), theirs.filter(both)
        each = [ours]
        bins, totals = _binned(replay, theirs), _flow_totals(replay, theirs)
    pairs = _binned(replay, ours).join(
        bins.select(BINS), on=("low", "high"), suffix="_other", maintain_order="left"
    )
    if theirs is not None:
        differences = ours.with_columns(time=ours["time"] - theirs["time"])
        errors = _binned(replay, differences)["stderr"]
    elif replay.is_ideal:
        errors = pl.zeros(pairs.height, eager=True)
    else:
        errors = (pairs["stderr"] ** 2 + pairs["stderr_other"] ** 2).sqrt()
    pairs = pairs.with_columns(
        difference=pl.col("mean") / pl.col("mean_other") - 1,
        p95_difference=pl.col("p95") / pl.col("p95_other") - 1,
        p99_difference=pl.col("p99") / pl.col("p99_other") - 1,
        error=2 * errors.fill_null(0) / pl.col("mean_other"),
    )
    nothing: dict[str, float | None] = dict.fromkeys(TOTALS)
    measured = nothing | _mean([_flow_totals(replay, flows) for flows in each])
    if replay.has_link:
        pairs_of_runs = zip(runs, begun, strict=True)
        measured |= _mean([_link_totals(replay, *pair) for pair in pairs_of_runs])
    elif not replay.is_ideal:
        measured |= _mean([_network_totals(replay, run) for run in runs])
    periods = shares.beside(replay.shares, runs)
    return Outcome(replay, pairs, measured, nothing | dict(totals), periods)


def _mean(totals: Sequence[Mapping[str, float | None]]) -> dict[str, float | None]:
    """Return the mean over runs of each number that all of them have."""
    found: dict[str, float | None] = {}
    for name in totals[0]:
        values = [value for one in totals if (value := one.get(name)) is not None]
        found[name] = sum(values) / len(values) if len(values) == len(totals) else None
    return found


def _our_flows(replay: Replay, result: Result) -> pl.DataFrame:
    flows = result.flows.filter(pl.col("outcome") != "long_lived")
    if replay.flows is not None and "alone_us" in replay.flows.columns:
        alone = pl.col("flow").cast(pl.UInt64), (pl.col("alone_us") / 1e6).alias("alone_s")
        flows = flows.join(replay.flows.with_row_index("flow").select(alone), on="flow")
    fct = pl.col("fct_s") + replay.settings.adds_s
    if replay.settings.until == "acked":
        # Ideals have no ACKs: theirs come back over an empty network.
        way_back = pl.col("alone_s") - pl.col("ideal_fct_s")
        fct = fct + way_back if replay.is_ideal else pl.col("acked_s")
    by_flow = replay.settings.by == "flow"
    key = pl.col("flow") if by_flow else _packets(replay, pl.col("size_bytes"))
    return flows.select(
        key.cast(pl.Int64).alias("key"),
        "start_s",
        fct.alias("fct_s"),
        _time(replay, fct).alias("time"),
        "timeouts",
        "retransmits",
    )


def _their_flows(replay: Replay) -> pl.DataFrame | None:
    """Return the other's flows if they are known, as far as they finish before our run ends."""
    if replay.flows is None or not replay.is_known_by_flow:
        return None
    start, fct = pl.col("start_us") / 1e6, pl.col(replay.name) / 1e6
    fct = pl.when(start + fct <= replay.settings.end_s).then(fct)
    alone = [(pl.col("alone_us") / 1e6).alias("alone_s")] if replay.is_slowdown else []
    key = pl.int_range(pl.len()) if replay.settings.by == "flow" else pl.col("packets")
    return replay.flows.with_columns(alone).select(
        key.alias("key"),
        start.alias("start_s"),
        fct.alias("fct_s"),
        _time(replay, fct).alias("time"),
        pl.lit(None, pl.UInt32).alias("timeouts"),
        pl.lit(None, pl.UInt32).alias("retransmits"),
    )


def _time(replay: Replay, fct: pl.Expr) -> pl.Expr:
    """Return what is compared of a completion time: itself, or its multiple of that alone."""
    return fct / pl.col("alone_s") if replay.is_slowdown else fct


def _packets(replay: Replay, size: pl.Expr) -> pl.Expr:
    payload = replay.settings.payload_bytes
    return (size + payload - 1) // payload


def _measured(replay: Replay, flows: pl.DataFrame) -> pl.DataFrame:
    since, until = replay.settings.measured_s
    return flows.filter(pl.col("start_s") >= since, pl.col("start_s") < until)


def _binned(replay: Replay, flows: pl.DataFrame) -> pl.DataFrame:
    if replay.bins.is_empty():
        return replay.bins.select(BINS)
    measured, time = _measured(replay, flows), pl.col("time")
    bins = [
        measured.filter(pl.col("key").is_between(low, high)).select(
            low=pl.lit(low, pl.Int64),
            high=pl.lit(high, pl.Int64),
            flows=pl.len(),
            unfinished=time.null_count(),
            mean=time.mean(),
            stderr=time.std() / time.count().sqrt(),
            median=time.median(),
            p95=time.quantile(0.95, replay.settings.p99),
            p99=time.quantile(0.99, replay.settings.p99),
        )
        for low, high in replay.bins.select("low", "high").iter_rows()
    ]
    return pl.concat(bins).filter(pl.col("flows") > 0).select(BINS)


def _flow_totals(replay: Replay, flows: pl.DataFrame) -> dict[str, float | None]:
    measured = _measured(replay, flows)["time"]
    since, end = replay.settings.measured_s[0], replay.settings.end_s
    # A flow is active until its sender knows that it is done.
    done = pl.col("start_s") + pl.col("fct_s").fill_null(math.inf) + replay.settings.ack_s
    active = flows.select(done.clip(since, end) - pl.col("start_s").clip(since, end)).to_series()
    finished = flows.filter(pl.col("fct_s").is_not_null())
    return {
        "flows": len(measured),
        "unfinished": measured.null_count(),
        "mean": _number(measured.mean()),
        "median": _number(measured.median()),
        "p99": _number(measured.quantile(0.99, replay.settings.p99)),
        "active_flows": float(active.sum()) / (end - since),
        "timeouts": _sum(finished["timeouts"]),
        "retransmits": _sum(finished["retransmits"]),
    }


def _sum(counts: pl.Series) -> float | None:
    return None if counts.null_count() else float(counts.sum())


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def _link_totals(replay: Replay, result: Result, beginning: Result) -> dict[str, float]:
    """Return what the link carried, held and dropped since the first arrival that counts."""
    link = str(replay.settings.link)
    now, before = (metrics.link_counters(run, link) for run in (result, beginning))
    dropped = now["drops"] - before["drops"]
    arrivals = dropped + now["packets"] - before["packets"]
    totals = {"drop_rate": dropped / arrivals if arrivals else 0.0}
    samples = result.samples.filter(pl.col("time_s") >= replay.settings.measured_s[0])
    sent, queue = (
        samples.filter(pl.col("probe") == f"{probe} {link}").sort("time_s")
        for probe in ("transmitted_bytes", "queue_bytes")
    )
    # A run that is short beside the interval of the samples has none to compare.
    if sent.height < 2:
        return totals
    spent = sent["time_s"][-1] - sent["time_s"][0]
    carried = 8 * (sent["value"][-1] - sent["value"][0])
    packets = queue["value"].to_numpy().mean() / replay.settings.wire_bytes
    rate = carried / spent / now["rate_bps"]
    return totals | {"utilisation": rate, "queue_packets": float(packets)}


def _network_totals(replay: Replay, result: Result) -> dict[str, float]:
    """Return what all links together dropped of the data sent, and what was sent again."""
    flows, drops = result.flows, result.summary["counts"]["drops"]
    needed = int(flows.select(_packets(replay, pl.col("size_bytes"))).sum().item())
    again = int(flows["retransmits"].sum())
    if needed == 0:
        return {}
    return {"drop_rate": drops / (needed + again), "retransmit_rate": again / needed}


def bins_table(outcomes: Iterable[Outcome]) -> pl.DataFrame:
    """Return all bins of all runs in one table."""
    return _of_runs((one.replay, one.bins) for one in outcomes)


def shares_table(outcomes: Iterable[Outcome]) -> pl.DataFrame:
    """Return all shares of all runs in one table."""
    return _of_runs((one.replay, one.shares) for one in outcomes)


def _of_runs(tables: Iterable[tuple[Replay, pl.DataFrame]]) -> pl.DataFrame:
    named = (
        table.select(pl.lit(replay.case).alias("case"), pl.lit(replay.name).alias("run"), pl.all())
        for replay, table in tables
    )
    return pl.concat(named, how="vertical_relaxed")


def totals_table(outcomes: Iterable[Outcome]) -> pl.DataFrame:
    """Return the numbers of all runs as wholes in one table."""
    rows = []
    for one in outcomes:
        theirs = {f"{name}_other": one.theirs[name] for name in TOTALS}
        ours = {name: one.ours[name] for name in TOTALS}
        rows.append({"case": one.replay.case, "run": one.replay.name, **ours, **theirs})
    return pl.DataFrame(rows, infer_schema_length=None)
