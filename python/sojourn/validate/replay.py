"""Validation: replays of runs of another simulator with the same flows and parameters."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from sojourn.analysis import metrics
from sojourn.analysis.claims import Verdict, at_most, finding, not_judged
from sojourn.runs.results import Result
from sojourn.runs.runner import run_many
from sojourn.validate import noise, queues, shares
from sojourn.validate.cases import Replay
from sojourn.validate.schema import BINS, TOTALS

NAMES = {"timeouts": "timeouts", "retransmits": "retransmissions", "pauses": "pauses"}
"""Names of counts in tables."""

MAX_UTILISATION_DIFFERENCE = 0.02
"""Allowed difference of utilisations."""


MOST_UNFINISHED = 0.01
"""Largest difference of the shares of unfinished flows with which statistics of a bin compare."""


@dataclass(frozen=True)
class Outcome:
    """Results of a replay compared with the reference."""

    replay: Replay
    bins: pl.DataFrame
    """Table with the columns of `BINS`; the suffix `_other` marks those of the reference.

    `difference` is the ratio of the means minus one; `p95_difference` and `p99_difference` are
    those of percentiles. `error` is two standard errors of `difference`: from differences of single
    flows if the reference contains them, otherwise as if the means were independent, which is an
    upper bound. Ideals are exact, with an error of 0. If the reference contains the flows and there
    are several repeats, statistics are means over repeats, `error` is the noise of the mean, and
    `mean_noise`, `p95_noise` and `p99_noise` are noise relative to the reference.
    """
    simulated: Mapping[str, float | None]
    reference: Mapping[str, float | None]
    """The numbers of `TOTALS`."""
    shares: pl.DataFrame
    """Table of `shares.compare`."""
    queues: pl.DataFrame
    """Table of `queues.compare`."""
    count_noise: Mapping[str, float]
    """Noise of counts over repeats, if the reference contains the flows."""

    @property
    def judged(self) -> pl.DataFrame:
        """Bins with enough flows for a verdict."""
        return self.bins.filter(
            pl.col("flows_other") >= self.replay.settings.least_flows,
            pl.col("difference").is_not_null(),
        )

    @property
    def completions(self) -> list[tuple[str, Verdict]]:
        """Verdicts on completion times: over all bins, or by statistic and group."""
        within = self.replay.settings.within
        rows = self.judged.to_dicts()
        unjudged = [("FCT", not_judged("no bin has enough flows"))]
        if within is None:
            return unjudged
        if not rows:
            return self._unfinished or unjudged
        if not isinstance(within, dict):
            allowed = [max(within, row.get("mean_noise") or 0.0) for row in rows]
            excess = [
                abs(row["difference"]) - most for row, most in zip(rows, allowed, strict=True)
            ]
            worst = rows[excess.index(max(excess))]
            return [("FCT", self._completion_verdict("mean", worst, within)), *self._unfinished]
        judged = [
            (f"{statistic}, {self.bin_name(row)}", self._completion_verdict(statistic, row, limit))
            for statistic, limits in within.items()
            for row in rows
            if (limit := limits.get(self.bin_name(row))) is not None
        ]
        return [*judged, *self._unfinished] or unjudged

    @property
    def _unfinished(self) -> list[tuple[str, Verdict]]:
        """Verdicts on bins whose means and percentiles lack flows that the reference has."""
        share, other = (pl.col(f"unfinished{of}") / pl.col(f"flows{of}") for of in ("", "_other"))
        unlike = self.bins.filter(
            pl.col("flows_other") >= self.replay.settings.least_flows,
            (share - other).abs() > MOST_UNFINISHED,
        )
        return [
            (
                f"unfinished, {self.bin_name(row)}",
                finding(
                    False, f"{_unfinished_text(row)}, reference {_unfinished_text(row, '_other')}"
                ),
            )
            for row in unlike.to_dicts()
        ]

    @property
    def completion(self) -> Verdict:
        """Verdict on all completion times: the first that is not held, otherwise the first."""
        verdicts = [verdict for _, verdict in self.completions]
        return next((verdict for verdict in verdicts if verdict.held is False), verdicts[0])

    def _completion_verdict(self, statistic: str, row: Mapping[str, Any], within: float) -> Verdict:
        if statistic == "mean":
            distance, text = abs(row["difference"]), difference_text(row)
            text += " (no significant difference)" if distance <= row["error"] else ""
        elif (difference := row[f"{statistic}_difference"]) is None:
            return not_judged(f"no percentile for {self.bin_name(row)}")
        else:
            distance, text = abs(difference), f"{100 * difference:+.1f} %"
        by_chance = row.get(f"{statistic}_noise") or 0.0
        sentence = f"{text} for {self.bin_name(row)}, {_allowed(within, by_chance)}"
        return finding(bool(distance <= max(within, by_chance)), sentence)

    @property
    def counts(self) -> list[tuple[str, Verdict]]:
        """Verdicts on the numbers of retransmissions, timeouts and pauses."""
        return [
            (NAMES[name], self._count_verdict(name, factor))
            for name, factor in self.replay.settings.factor.items()
        ]

    def _count_verdict(self, name: str, factor: float) -> Verdict:
        simulated, reference = self.simulated[name], self.reference[name]
        if simulated is None or reference is None:
            return not_judged("not measured")
        ratio = max(simulated, 1) / max(reference, 1)
        allowed = f"a factor of {factor:g} allowed" if factor > 1 else "must be equal"
        is_allowed = 1 / factor <= ratio <= factor if factor > 1 else simulated == reference
        if by_chance := self.count_noise.get(name, 0.0):
            allowed += f", ± {by_chance:.3g} by chance"
            is_allowed |= abs(simulated - reference) <= by_chance
        return finding(is_allowed, f"{simulated:.4g}, reference {reference:.4g}; {allowed}")

    @property
    def periods(self) -> list[tuple[str, Verdict]]:
        """Verdicts on the shares of flows in each period."""
        within, verdicts = self.replay.settings.share_within or 0, []
        for period in self.shares.partition_by(shares.PERIOD):
            rows = period.to_dicts()
            worst = max(rows, key=lambda row: abs(row["share"] - row["share_other"]))
            verdict = _share_verdict(worst, len(self.replay.scenarios), within)
            verdicts.append((f"shares, {worst['from_s']:g} to {worst['to_s']:g} s", verdict))
        return verdicts

    @property
    def mean_queues(self) -> list[tuple[str, Verdict]]:
        """Verdicts on the mean queues of groups of ports."""
        within = self.replay.settings.queue_within
        return [
            (f"mean queue, {row['ports']}", _queue_verdict(row, within))
            for row in self.queues.to_dicts()
            if within is not None and row["difference"] is not None
        ]

    @property
    def utilisation(self) -> Verdict:
        """Verdict on the utilisation of the link."""
        simulated, reference = self.simulated["utilisation"], self.reference["utilisation"]
        if simulated is None or reference is None:
            return not_judged("not measured")
        return at_most(
            abs(simulated - reference), MAX_UTILISATION_DIFFERENCE, "difference of utilisations"
        )

    def bin_name(self, row: Mapping[str, Any]) -> str:
        """Return the name of the bin of a row."""
        return self.replay.bin_name(row["low"], row["high"])


def _share_verdict(row: Mapping[str, Any], runs: int, within: float) -> Verdict:
    simulated, lowest, highest, reference = (
        100 * row[name] for name in ("share", "lowest", "highest", "share_other")
    )
    spread = f" ({lowest:.0f} to {highest:.0f} in {runs} runs)" if runs > 1 else ""
    sentence = (
        f"{simulated - reference:+.1f} percentage points for flow {row['flow']}:"
        f" {simulated:.0f} %{spread}, reference {reference:.0f} %; {100 * within:g} allowed"
    )
    return finding(bool(abs(simulated - reference) <= 100 * within), sentence)


def _queue_verdict(row: Mapping[str, Any], within: float) -> Verdict:
    difference, own, other = (row[name] for name in ("difference", "mean_kb", "mean_kb_other"))
    sentence = (
        f"{100 * difference:+.1f} %: {own:.3g} KB, reference {other:.3g};"
        f" {_allowed(within, row['noise'])}"
    )
    return finding(bool(abs(difference) <= max(within, row["noise"])), sentence)


def _unfinished_text(row: Mapping[str, Any], of: str = "") -> str:
    return f"{row[f'unfinished{of}']:g} of {row[f'flows{of}']:g} flows"


def _allowed(within: float, by_chance: float) -> str:
    """Return the text of an allowed difference, with the noise if that is more."""
    chance = f", {100 * by_chance:.1f} % by chance" if by_chance > within else ""
    return f"{100 * within:g} % allowed{chance}"


def difference_text(row: Mapping[str, Any]) -> str:
    """Return the difference of a bin, with two standard errors unless they are 0."""
    error = f" ± {100 * row['error']:.1f}" if row["error"] else ""
    return f"{100 * row['difference']:+.1f}{error} %"


def validate(replays: Sequence[Replay], **options: Any) -> list[Outcome]:
    """Run all replays and compare them with the reference; `options` are those of `run_many`."""
    linked = [replay for replay in replays if replay.has_link]
    scenarios = [scenario for replay in replays for scenario in replay.scenarios]
    warm_ups = [scenario for replay in linked for scenario in replay.warm_ups]
    results = iter(run_many([*scenarios, *warm_ups], **options))
    runs = [[next(results) for _ in replay.scenarios] for replay in replays]
    warm_up_runs = [
        [next(results) for _ in replay.scenarios] if replay.has_link else [] for replay in replays
    ]
    return [_compare(*item) for item in zip(replays, runs, warm_up_runs, strict=True)]


def _compare(replay: Replay, runs: Sequence[Result], warm_ups: Sequence[Result]) -> Outcome:
    flows_of_runs = [_simulated_flows(replay, run) for run in runs]
    simulated, reference = pl.concat(flows_of_runs), _reference_flows(replay)
    bins, totals = replay.bins, replay.totals
    if replay.quick and reference is not None:
        # Flows that completed in only one of the two short runs would bias the means.
        is_complete = simulated["fct_s"].is_not_null() & reference["fct_s"].is_not_null()
        simulated, reference = simulated.filter(is_complete), reference.filter(is_complete)
        flows_of_runs = [simulated]
        bins, totals = _binned(replay, reference), _flow_totals(replay, reference)
    has_noise = reference is not None and len(runs) > 1
    own = _binned(replay, simulated)
    if has_noise:
        of_runs = [_binned(replay, flows) for flows in flows_of_runs]
        own = noise.over_runs(of_runs, ("mean", "stderr", "median", "p95", "p99"))
    pairs = own.join(bins.select(BINS), on=("low", "high"), suffix="_other", maintain_order="left")
    if has_noise:
        errors = pairs["mean_noise"] / 2
    elif reference is not None:
        differences = simulated.with_columns(time=simulated["time"] - reference["time"])
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
        **{
            f"{name}_noise": pl.col(f"{name}_noise") / pl.col(f"{name}_other")
            for name in ("mean", "p95", "p99")
            if has_noise
        },
    )
    unknown: dict[str, float | None] = dict.fromkeys(TOTALS)
    means = unknown | _mean([_flow_totals(replay, flows) for flows in flows_of_runs])
    count_noise: dict[str, float] = {}
    if replay.has_link:
        links = zip(runs, warm_ups, strict=True)
        means |= _mean([_link_totals(replay, run, warm_up) for run, warm_up in links])
    elif not replay.is_ideal:
        totals_of_runs = [_network_totals(replay, run) for run in runs]
        means |= _mean(totals_of_runs)
        if has_noise:
            pauses = [numbers.get("pauses") for numbers in totals_of_runs]
            count_noise["pauses"] = noise.prediction(pauses)
    periods = shares.compare(replay.shares, runs)
    backlogs = queues.compare(replay.queues, replay.settings.ports, runs)
    return Outcome(replay, pairs, means, unknown | dict(totals), periods, backlogs, count_noise)


def _mean(totals: Sequence[Mapping[str, float | None]]) -> dict[str, float | None]:
    """Return the mean over runs of each number; `None` if a run lacks the number."""
    means: dict[str, float | None] = {}
    for name in totals[0]:
        values = [value for item in totals if (value := item.get(name)) is not None]
        means[name] = sum(values) / len(values) if len(values) == len(totals) else None
    return means


def _simulated_flows(replay: Replay, result: Result) -> pl.DataFrame:
    flows = result.flows.filter(pl.col("outcome") != "long_lived")
    if replay.flows is not None and "alone_us" in replay.flows.columns:
        ideal = pl.col("flow").cast(pl.UInt64), (pl.col("alone_us") / 1e6).alias("alone_s")
        flows = flows.join(replay.flows.with_row_index("flow").select(ideal), on="flow")
    fct = pl.col("fct_s") + replay.settings.adds_s
    if replay.settings.until == "acked":
        # Ideals have no ACKs: the last ACK takes the empty reverse path.
        ack_delay = pl.col("alone_s") - pl.col("ideal_fct_s")
        fct = fct + ack_delay if replay.is_ideal else pl.col("acked_s")
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


def _reference_flows(replay: Replay) -> pl.DataFrame | None:
    """Return the flows of the reference, or `None`; later completions than `end_s` are null."""
    if replay.flows is None or not replay.has_reference_flows:
        return None
    start, fct = pl.col("start_us") / 1e6, pl.col(replay.name) / 1e6
    fct = pl.when(start + fct <= replay.settings.end_s).then(fct)
    ideal = [(pl.col("alone_us") / 1e6).alias("alone_s")] if replay.is_slowdown else []
    key = pl.int_range(pl.len()) if replay.settings.by == "flow" else pl.col("packets")
    return replay.flows.with_columns(ideal).select(
        key.alias("key"),
        start.alias("start_s"),
        fct.alias("fct_s"),
        _time(replay, fct).alias("time"),
        pl.lit(None, pl.UInt32).alias("timeouts"),
        pl.lit(None, pl.UInt32).alias("retransmits"),
    )


def _time(replay: Replay, fct: pl.Expr) -> pl.Expr:
    """Return the compared quantity: the completion time, or its ratio to the ideal FCT."""
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
    # A flow is active until its sender has the last ACK.
    end_of_flow = pl.col("start_s") + pl.col("fct_s").fill_null(math.inf) + replay.settings.ack_s
    active = flows.select(
        end_of_flow.clip(since, end) - pl.col("start_s").clip(since, end)
    ).to_series()
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


def _link_totals(replay: Replay, result: Result, warm_up: Result) -> dict[str, float]:
    """Return utilisation, mean queue and drop rate of the link since the first measured arrival."""
    link = str(replay.settings.link)
    now, before = (metrics.link_counters(run, link) for run in (result, warm_up))
    dropped = now["drops"] - before["drops"]
    arrivals = dropped + now["packets"] - before["packets"]
    totals = {"drop_rate": dropped / arrivals if arrivals else 0.0}
    samples = result.samples.filter(pl.col("time_s") >= replay.settings.measured_s[0])
    sent, queue = (
        samples.filter(pl.col("probe") == f"{probe} {link}").sort("time_s")
        for probe in ("transmitted_bytes", "queue_bytes")
    )
    # A run shorter than the sampling interval has no utilisation.
    if sent.height < 2:
        return totals
    duration_s = sent["time_s"][-1] - sent["time_s"][0]
    bits = 8 * (sent["value"][-1] - sent["value"][0])
    packets = queue["value"].to_numpy().mean() / replay.settings.wire_bytes
    utilisation = bits / duration_s / now["rate_bps"]
    return totals | {"utilisation": utilisation, "queue_packets": float(packets)}


def _network_totals(replay: Replay, result: Result) -> dict[str, float]:
    """Return the drop rate, the retransmission rate and the pauses of the network."""
    flows, counts = result.flows, result.summary["counts"]
    packets = int(flows.select(_packets(replay, pl.col("size_bytes"))).sum().item())
    retransmits = int(flows["retransmits"].sum())
    if packets == 0:
        return {}
    return {
        "drop_rate": counts["drops"] / (packets + retransmits),
        "retransmit_rate": retransmits / packets,
        "pauses": counts["pauses"],
    }


def bins_table(outcomes: Iterable[Outcome]) -> pl.DataFrame:
    """Return a table with the bins of all runs."""
    return _with_run_names((outcome.replay, outcome.bins) for outcome in outcomes)


def shares_table(outcomes: Iterable[Outcome]) -> pl.DataFrame:
    """Return a table with the shares of all runs."""
    return _with_run_names((outcome.replay, outcome.shares) for outcome in outcomes)


def queues_table(outcomes: Iterable[Outcome]) -> pl.DataFrame:
    """Return a table with the queues of all runs."""
    return _with_run_names((outcome.replay, outcome.queues) for outcome in outcomes)


def _with_run_names(tables: Iterable[tuple[Replay, pl.DataFrame]]) -> pl.DataFrame:
    named_tables = (
        table.select(pl.lit(replay.case).alias("case"), pl.lit(replay.name).alias("run"), pl.all())
        for replay, table in tables
    )
    return pl.concat(named_tables, how="diagonal_relaxed")


def totals_table(outcomes: Iterable[Outcome]) -> pl.DataFrame:
    """Return a table with the totals of all runs."""
    rows = []
    for outcome in outcomes:
        names = {"case": outcome.replay.case, "run": outcome.replay.name}
        simulated = {name: outcome.simulated[name] for name in TOTALS}
        reference = {f"{name}_other": outcome.reference[name] for name in TOTALS}
        rows.append({**names, **simulated, **reference})
    return pl.DataFrame(rows, infer_schema_length=None)
