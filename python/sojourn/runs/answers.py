"""Answers to scenarios: the runs that a scenario's fidelity requires, and their combination.

The answer of `packets` is one run. That of `sample` is several runs of folded networks, whose flows
form one result. That of `flows` is a run of the whole network as a fluid, whose completion times
become those of packets by a law learnt from samples.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np
import polars as pl

from sojourn._core import ScenarioError
from sojourn.base.units import parse_time
from sojourn.runs.links import of_sample
from sojourn.runs.result_tables import FLOWS, LINKS, OF_FLOWS, OUTCOMES, PACKETS, SAMPLES, TABLES
from sojourn.runs.results import Result, bounded, is_timed
from sojourn.scale.errors import Bounded, Floats, Slowdowns, errors_by_size, p99_rows, widest_p99
from sojourn.scale.law import Flags, FluidFlows, Indices, Law, law_hash, self_check
from sojourn.scale.network import Network, read_network
from sojourn.scale.sample import Samples, check_flows, fluid_of
from sojourn.scenario import fidelity
from sojourn.scenario.encoding import Prepared
from sojourn.scenario.reading import Scenario, ScenarioLike, as_scenario, with_files

SAMPLE = "sample"
"""Column of the flow records of a sampled answer: the number of the folded network."""


OF_PACKETS = (
    *("retransmits", "timeouts", "acked_s", "latency_s"),
    *("lost_packets", "reordered_packets", "reordering_extent"),
)
"""Columns of flow records that a law does not predict; null in the answer of `flows`."""


class Answer(Protocol):
    """Runs that answer a scenario."""

    @property
    def scenarios(self) -> Sequence[ScenarioLike]:
        """The scenario of each run."""

    def combined(self, results: Sequence[Result]) -> Result:
        """Return the answer, given the result of each run."""


def plan(scenario: ScenarioLike) -> Answer:
    """Return the runs that answer a scenario; raise `ScenarioError` if its fidelity is invalid."""
    given = as_scenario(scenario)
    chosen = fidelity.read(given.get(fidelity.FIELD, fidelity.PACKETS))
    assert chosen.kind != fidelity.AUTO, "a choice precedes the plan"
    if chosen.kind == fidelity.PACKETS:
        return _Packets({name: given[name] for name in given if name != fidelity.FIELD})
    return (_Sample if chosen.kind == fidelity.SAMPLE else _Flows)(with_files(given), chosen)


def add_samples(plans: Sequence[Answer], results: Sequence[Sequence[Result]]) -> None:
    """Add samples to the answers that do not have their precision, given the results so far.

    Answers with the same fidelity have the same number of samples, so that they remain paired.
    """
    rounds: dict[fidelity.Fidelity, list[tuple[_Sample, Sequence[Result]]]] = {}
    for answer, done in zip(plans, results, strict=True):
        if isinstance(answer, _Sample) and answer.chosen.precision != "none":
            rounds.setdefault(answer.chosen, []).append((answer, done))
    for chosen, answers in rounds.items():
        most = max(answer.needed(done) for answer, done in answers)
        for answer, _ in answers:
            answer.extend(min(most, 2 * answer.number, chosen.max_samples))


class _Packets:
    """One run of the whole network."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenarios = [scenario]

    def combined(self, results: Sequence[Result]) -> Result:
        (result,) = results
        return result


class _Sample:
    """Runs of folded networks; their flows form one result."""

    def __init__(self, scenario: Scenario, chosen: fidelity.Fidelity) -> None:
        self.chosen = chosen
        self._samples = Samples(scenario, chosen)
        self._whole = scenario
        self._half = self._samples.half()

    @property
    def number(self) -> int:
        """Number of samples."""
        return len(self._samples.scenarios)

    @property
    def scenarios(self) -> list[Scenario]:
        """Samples, each followed by that of half the size if there is one."""
        parts = [part.scenarios for part in (self._samples, self._half) if part]
        return [scenario for sample in zip(*parts, strict=True) for scenario in sample]

    def extend(self, number: int) -> None:
        """Add samples up to this number of them."""
        for part in (self._samples, self._half):
            if part:
                part.extend(number)

    def needed(self, results: Sequence[Result]) -> int:
        """Return the number of samples after which the precision is expected."""
        return int(self._precision(self._divided(results)[0])["needed"])

    def _precision(self, results: Sequence[Result]) -> dict[str, float]:
        """Return the entry `precision` of the summary.

        Half widths decrease with the square root of the number of samples. Without an interval,
        twice as many are needed.
        """
        widest = widest_p99([_slowdowns([result]) for result in results])
        required, reached = float(self.chosen.precision), widest.pop("half_width")
        factor = (reached / required) ** 2 if math.isfinite(reached) else 2.0
        needed = math.ceil(len(results) * max(1.0, factor))
        return {"required": required, "reached": reached, "needed": needed, **widest}

    def _divided(self, results: Sequence[Result]) -> tuple[Sequence[Result], Sequence[Result]]:
        """Return the results of the samples, and of those of half the size."""
        return (results[::2], results[1::2]) if self._half else (results, ())

    def combined(self, results: Sequence[Result]) -> Result:
        results, halves = self._divided(results)
        summary = _summary([result.summary for result in results], _first_numbers(results))
        summary |= {
            "scenario": Prepared(self._whole).complete(),
            "seed": self._whole.get("seed", 1),
            "fidelity": self._samples.summary(result.links for result in results),
        }
        if summary.get("record"):
            summary["record"] = _record(results)
        if self.chosen.precision != "none":
            summary["fidelity"]["precision"] = self._precision(results)
        if self._half:
            errors = errors_by_size([(_slowdowns(results), _slowdowns(halves))])
            half = {"kept": self._half.folded.kept, "errors": errors}
            summary["fidelity"]["half"] = half
        others = {name: _concat(results, name) for name in TABLES[2:]}
        flows = _concat(results, FLOWS)
        summary["fidelity"]["p99"] = _p99s(flows, summary)
        return Result(flows, _concat(results, SAMPLES), summary, others)


def _slowdowns(results: Sequence[Result]) -> Slowdowns:
    """Return the sizes and slowdowns of the flows of several runs, one run after another."""
    flows = pl.concat(
        result.flows.filter(*is_timed(result.summary)).select("size_bytes", "slowdown")
        for result in results
    )
    sizes = flows["size_bytes"].to_numpy().astype(np.float64)
    return sizes, flows["slowdown"].fill_null(math.inf).to_numpy()


def by_sample(flows: pl.DataFrame) -> pl.DataFrame:
    """Return flows in order of their samples, if they have any."""
    return flows.sort(SAMPLE, maintain_order=True) if SAMPLE in flows.columns else flows


def _p99s(flows: pl.DataFrame, summary: dict[str, Any]) -> dict[str, Any]:
    """Return the entry `p99` of the summary: FCTs and slowdowns of each size, with intervals."""
    sample = [SAMPLE] if SAMPLE in flows.columns else []
    # Only these columns are copied: records of ten million flows have gigabytes.
    columns = ["start_s", "size_bytes", "ideal_fct_s", "fct_s", "slowdown", *sample]
    timed = flows.lazy().filter(*is_timed(summary)).select(columns).collect()
    # The numbers of most workloads have this order: to see that is fast.
    if sample or not timed["start_s"].is_sorted():
        timed = timed.sort("start_s", maintain_order=True)
    # Without rows there are no parts.
    ordered = by_sample(timed)
    samples = (ordered.partition_by(SAMPLE, maintain_order=True) if sample else []) or [ordered]
    return {
        column: p99_rows([_bounded(part, column, summary) for part in samples])
        for column in ("fct_s", "slowdown")
    }


def _bounded(flows: pl.DataFrame, column: str, summary: dict[str, Any]) -> Bounded:
    """Return sizes, values or lower bounds, and true if finished."""
    table = flows.select(pl.col("size_bytes").cast(pl.Float64), **bounded(column, summary))
    sizes, values, is_finished = (series.to_numpy() for series in table.iter_columns())
    return sizes, values, is_finished


class _Flows:
    """A run of the whole network as a fluid, and samples by packets and as fluids."""

    def __init__(self, scenario: Scenario, chosen: fidelity.Fidelity) -> None:
        check_flows(scenario)
        self._samples = Samples(scenario, chosen)
        self._whole = {name: scenario[name] for name in scenario if name != fidelity.FIELD}
        self._scenario = scenario
        samples = self._samples.scenarios
        self.scenarios = [*samples, *map(fluid_of, samples), fluid_of(self._whole)]

    def combined(self, results: Sequence[Result]) -> Result:
        number = len(self._samples.scenarios)
        packets, fluids, whole = results[:number], results[number:-1], results[-1]
        # A controller in Python may give up flows without deadlines.
        if any((result.flows["outcome"] == "terminated").any() for result in packets):
            raise ScenarioError(
                f"transport: terminates flows, and {fidelity.FIELD} `{fidelity.FLOWS}` predicts no "
                f"terminations; use `{fidelity.SAMPLE}`"
            )
        classes = sorted({name for result in results for name in result.flows["class"].unique()})
        network = self._samples.network
        complete = Prepared(self._scenario).complete()
        limit_s = parse_time(complete["time_limit"])
        pairs = [
            _learnt_flows(by_packets, fluid, classes, network, limit_s)
            for by_packets, fluid in zip(packets, fluids, strict=True)
        ]
        seed = int(self._scenario.get("seed", 1))
        whole_network = read_network(complete["topology"])
        fluid_flows = _fluid_flows(whole.flows, classes, whole_network, limit_s)
        slowdowns, are_sparse = Law(pairs).predict(fluid_flows, seed)
        flows = _predicted(whole.flows, slowdowns, limit_s)
        outcomes = dict(flows["outcome"].value_counts().iter_rows())
        ends = flows["start_s"] + flows["fct_s"]
        last_s: Any = limit_s if "unfinished" in outcomes else ends.max()
        summary = {
            **whole.summary,
            "warnings": _warnings([result.summary for result in (*packets, whole)]),
            "counts": {"flows": flows.height, **{name: outcomes.get(name, 0) for name in OUTCOMES}},
            "scenario": complete,
            "simulated_s": max(whole.summary["simulated_s"], last_s or 0.0),
            "fidelity": self._samples.summary(result.links for result in packets)
            | {
                "law": law_hash(pairs, classes),
                "sparse": float(are_sparse.mean()) if len(are_sparse) else 0.0,
                "sparse_classes": _shares(are_sparse, fluid_flows.classes, classes),
                "self_check": self_check(pairs, classes, seed),
                "fluid": {
                    "whole": _mean(_finished(fluid_flows)[_are_timed(whole.flows, whole.summary)]),
                    "samples": _mean(np.concatenate([_finished(fluid) for fluid, _ in pairs])),
                },
            },
            "wall_seconds": sum(result.summary["wall_seconds"] for result in results),
            "cpu_seconds": _sum_of_times(result.summary["cpu_seconds"] for result in results),
        }
        summary["fidelity"]["p99"] = _p99s(flows, summary)
        others = {LINKS: whole.links}
        return Result(flows, whole.samples, summary, others)


def _fluid_flows(
    flows: pl.DataFrame, classes: Sequence[str], network: Network, limit_s: float
) -> FluidFlows:
    """Return flow records of a fluid as arrays.

    A flow that the time limit cuts off continues at its mean rate, since packets, which are faster
    than the fluid, may finish it. The slowdown of a flow without delivered bytes is infinite.
    """
    numbers = flows["class"].cast(pl.Enum(classes)).to_physical().to_numpy()
    sizes = flows["size_bytes"].to_numpy().astype(np.float64)
    sources, targets = (flows[end].to_numpy().astype(np.int64) for end in ("source", "target"))
    starts = flows["start_s"].to_numpy()
    seconds = (float(np.ptp(starts)) if len(starts) else 0.0) or math.inf
    loads, switch_loads = network.receiving_loads(sources, targets, 8 * sizes / seconds)
    limit = (limit_s - pl.col("start_s")) / pl.col("ideal_fct_s")
    continued = limit * pl.col("size_bytes") / pl.col("delivered_bytes")
    times = flows.select(
        limit=limit, slowdown=pl.coalesce("slowdown", continued.fill_nan(math.inf))
    )
    return FluidFlows(
        *(numbers.astype(np.int64), sizes, loads, switch_loads),
        slowdowns=times["slowdown"].to_numpy(),
        limits=times["limit"].to_numpy(),
    )


def _learnt_flows(
    packets: Result, fluid: Result, classes: Sequence[str], network: Network, limit_s: float
) -> tuple[FluidFlows, Floats]:
    """Return the flows of a sample in the fluid after the warm-up, and their slowdowns by packets.

    Flows of the warm-up find shorter queues than the others.
    """
    of_packets = packets.flows.select("flow", packets="slowdown")
    both = fluid.flows.join(of_packets, on="flow", how="left", maintain_order="left")
    slowdowns = both["packets"].fill_null(math.inf).to_numpy()
    chosen = _are_timed(both, packets.summary)
    return _fluid_flows(fluid.flows, classes, network, limit_s).take(chosen), slowdowns[chosen]


def _are_timed(flows: pl.DataFrame, summary: dict[str, Any]) -> Flags:
    """Return true for the flows of FCT statistics."""
    flags: Flags = flows.select(pl.all_horizontal(*is_timed(summary))).to_series().to_numpy()
    return flags


def _shares(are_sparse: Flags, numbers: Indices, classes: Sequence[str]) -> dict[str, float]:
    """Return the share of the flows of each class in sparse cells of the law."""
    of_classes = {name: are_sparse[numbers == number] for number, name in enumerate(classes)}
    return {name: float(flags.mean()) for name, flags in of_classes.items() if len(flags)}


def _finished(fluid: FluidFlows) -> Floats:
    """Return the slowdowns of flows in a fluid; infinite for unfinished ones."""
    return fluid.within_limits(fluid.slowdowns)


def _mean(slowdowns: Floats) -> float | None:
    """Return the mean slowdown of finished flows; `None` without any."""
    finished = slowdowns[np.isfinite(slowdowns)]
    return float(finished.mean()) if len(finished) else None


def _predicted(flows: pl.DataFrame, slowdowns: Floats, limit_s: float) -> pl.DataFrame:
    """Return flow records with these slowdowns; flows that end after the limit are unfinished.

    Such a flow has delivered the share of its bytes that its time until the limit is of its FCT;
    with an infinite slowdown it has no FCT, and delivered bytes are null.
    """
    fct = pl.Series("fct_s", slowdowns) * flows["ideal_fct_s"]
    left = limit_s - flows["start_s"]
    is_done = fct.is_finite() & (fct <= left)
    share = (left / fct).fill_nan(0.0).clip(0.0, 1.0)
    size, types = flows["size_bytes"], flows.schema
    part = pl.min_horizontal((share * size).floor().cast(size.dtype), size - 1)
    outcome = pl.when(is_done).then(pl.lit("finished")).otherwise(pl.lit("unfinished"))
    columns = {
        **{name: pl.lit(None, types[name]) for name in OF_PACKETS},
        **{"fct_s": pl.when(is_done).then(fct), "slowdown": pl.when(is_done).then(slowdowns)},
        "outcome": outcome.cast(types["outcome"]),
        "delivered_bytes": pl.when(is_done).then(size).when(fct.is_finite()).then(part),
    }
    return flows.with_columns(**columns)


def _concat(results: Sequence[Result], name: str) -> pl.DataFrame:
    """Return a table of all samples, with flows numbered through and links side by side.

    Tables over time have the rows of the first sample.
    """
    tables = []
    for number, (result, first) in enumerate(zip(results, _first_numbers(results), strict=True)):
        table = result._table(name)
        if name == FLOWS:
            table = table.with_columns(pl.lit(number, pl.UInt16).alias(SAMPLE))
        if name == LINKS and number:
            table = table.with_columns(pl.col("name") + of_sample(number))
        if name == PACKETS and number:
            table = table.with_columns(pl.col("lost_at") + of_sample(number))
        if name == FLOWS or name in OF_FLOWS:
            table = table.with_columns(pl.col("flow") + first)
        elif number and name != LINKS:
            break
        tables.append(table)
    return pl.concat(tables, how="diagonal")


def _first_numbers(results: Sequence[Result]) -> list[int]:
    """Return the number of the first flow of each sample in the tables of all."""
    numbers = [int(result.flows["flow"].to_numpy().max(initial=0)) + 1 for result in results]
    return [sum(numbers[:number]) for number in range(len(results))]


def _record(results: Sequence[Result]) -> dict[str, Any]:
    """Return the entry `record` of the summary: the recorded flows of all samples."""
    flows = []
    for number, (result, first) in enumerate(zip(results, _first_numbers(results), strict=True)):
        for flow in result.summary["record"]["flows"]:
            paths = {
                name: [link + of_sample(number) for link in flow[name]]
                for name in ("forward", "reverse")
            }
            flows.append({**flow, "flow": flow["flow"] + first, **paths})
    return {**results[0].summary["record"], "flows": flows}


def _summary(summaries: Sequence[dict[str, Any]], first_numbers: Sequence[int]) -> dict[str, Any]:
    """Return the summary of several samples: counts, events, RTTs and times added, warnings once.

    `first_numbers` are those of the samples' first flows.
    """
    rtts = {"rtts": _rtts(summaries)} if "rtts" in summaries[0] else {}
    engines = [summary["engine"] for summary in summaries if summary.get("engine")]
    events = {"events": sum(engine["events"] for engine in engines)}
    loads = [summary["realised_load"] for summary in summaries if summary.get("realised_load")]
    ends = [summary["measured_until_s"] for summary in summaries if "measured_until_s" in summary]
    long_lived = _long_lived([summary.get("long_lived") for summary in summaries], first_numbers)
    earliest = {name: min(end[name] for end in ends if name in end) for end in ends for name in end}
    return {
        **summaries[0],
        **rtts,
        **({"engine": engines[0] | events} if engines else {}),
        **({"measured_until_s": earliest} if ends else {}),
        "long_lived": long_lived,
        "warnings": _warnings(summaries),
        "deadlocks": [cycle for summary in summaries for cycle in summary.get("deadlocks", ())],
        "counts": _added([summary["counts"] for summary in summaries]),
        "stuck": [flow for summary in summaries for flow in summary["stuck"]],
        "realised_load": sum(loads) / len(loads) if loads else None,
        "simulated_s": max(summary["simulated_s"] for summary in summaries),
        "wall_seconds": sum(summary["wall_seconds"] for summary in summaries),
        "cpu_seconds": _sum_of_times(summary["cpu_seconds"] for summary in summaries),
    }


def _long_lived(
    intervals: Sequence[dict[str, Any] | None], first_numbers: Sequence[int]
) -> dict[str, Any] | None:
    """Return the bytes of the long-lived flows of all samples, none if a sample has none.

    Intervals differ by random starts; the bytes are those of the first sample's at the same rates.
    """
    present = [each for each in intervals if each is not None]
    if len(present) < len(intervals):
        return None
    spans = [each["to_s"] - each["from_s"] for each in present]
    flows, delivered = [], []
    for each, first, span in zip(present, first_numbers, spans, strict=True):
        flows += [flow + first for flow in each["flows"]]
        delivered += [count * spans[0] / span for count in each["bytes"]]
    return {**present[0], "flows": flows, "bytes": delivered}


def _warnings(summaries: Sequence[dict[str, Any]]) -> list[str]:
    """Return the warnings of several runs, each once."""
    return list(dict.fromkeys(line for each in summaries for line in each.get("warnings", ())))


def _rtts(summaries: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the histograms of RTTs of several samples, added by class."""
    classes: dict[str, dict[tuple[float, float], int]] = {}
    for histogram in (each for summary in summaries for each in summary["rtts"]):
        counts = classes.setdefault(histogram["class"], {})
        bounds = zip(histogram["lower_s"], histogram["upper_s"], strict=True)
        for bin_of, number in zip(bounds, histogram["count"], strict=True):
            counts[bin_of] = counts.get(bin_of, 0) + number
    return [
        {
            "class": name,
            "lower_s": [lower for lower, _ in sorted(counts)],
            "upper_s": [upper for _, upper in sorted(counts)],
            "count": [counts[bin_of] for bin_of in sorted(counts)],
        }
        for name, counts in classes.items()
    ]


def _sum_of_times(times: Iterable[float | None]) -> float | None:
    """Return the sum of CPU times; `None` if one is unknown."""
    known = list(times)
    return None if None in known else sum(time for time in known if time)


def _added(counts: Sequence[Any]) -> Any:
    """Return the sums of counts, which may be in nested tables."""
    if isinstance(counts[0], dict):
        return {name: _added([count[name] for count in counts]) for name in counts[0]}
    return sum(counts)
