"""Pictures of runs, as `sojourn plot` draws them: time series, distributions, topology."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from sojourn._core import ScenarioError
from sojourn.analysis import metrics
from sojourn.base.messages import did_you_mean
from sojourn.base.units import fitting_unit, format_time, parse_time
from sojourn.runs.first_sample import (
    flows_of_first_sample,
    has_several_samples,
    links_of_first_sample,
)
from sojourn.runs.links import least_span_s
from sojourn.runs.results import Result, Run
from sojourn.show.plot.frame import canvas, one_legend, save, unit_of_time
from sojourn.show.plot.lines import cdf, series
from sojourn.show.plot.networks import topology
from sojourn.show.style import distinct

CURVE = "curve"
"""Label of the runs of a picture: the name of the curve."""

SIZES, RATES, TIMES = ("MB", "KB", "B"), ("Gb/s", "Mb/s", "Kb/s"), ("s", "ms", "us")

POINTS, COUNTER_POINTS = 400, 100
"""Most spans in which a time series is drawn; a rate of packets needs longer spans."""


class Quantity(NamedTuple):
    """A quantity that is sampled over time."""

    probe: str
    """Probe in `samples.parquet`, before the name of the flow or link."""
    of: str
    """Owner of the quantity: `flow`, `link`, or empty for the whole network."""
    label: str
    units: tuple[str, ...]
    """Units of the axis, from large to small; empty for plain numbers."""
    is_counter: bool = False
    """True if the samples count bytes, and the picture shows bits per second."""


QUANTITIES = {
    "queue": Quantity("queue_bytes", "link", "queue", SIZES),
    "throughput": Quantity("delivered_bytes", "flow", "throughput", RATES, is_counter=True),
    "link_throughput": Quantity(
        "transmitted_bytes", "link", "throughput of the link", RATES, is_counter=True
    ),
    "window": Quantity("window_bytes", "flow", "congestion window", SIZES),
    "rate": Quantity("rate_bps", "flow", "sending rate", RATES),
    "rtt": Quantity("measured_rtt_s", "flow", "measured RTT", TIMES),
    "flows": Quantity("active_flows", "", "flows in progress", ()),
}
"""Quantities over time by their names in `sojourn plot`."""

OF_CONTROLLERS = ("window", "rate")
"""Quantities that only some transports have; flows have samples of them with the throughput."""

PICTURES = (*QUANTITIES, "cdf", "topology")
"""Pictures of `sojourn plot`."""


class Selection(NamedTuple):
    """Flows, links and classes that are drawn; all flows if `classes` is empty."""

    flows: Sequence[int] = ()
    links: Sequence[str] = ()
    classes: Sequence[str] = ()


def draw(
    what: str, runs: Sequence[Run], chosen: Selection, stem: Path, formats: Sequence[str]
) -> list[Path]:
    """Draw one of `PICTURES` of runs with the label `CURVE`; return the files.

    The runs have what the picture needs (`missing`).
    """
    if what == "topology":
        return _draw_topology(runs, stem, formats)
    if what == "cdf":
        return _draw_distributions(runs, chosen.classes, stem, formats)
    return _draw_series(what, runs, chosen, stem, formats)


def missing(what: str, runs: Sequence[Run], chosen: Selection) -> str:
    """Return what the runs lack for a picture: finished flows or samples; empty if nothing."""
    if what == "cdf":
        buckets = [metrics.Bucket(name, of_class=name) for name in chosen.classes] or [metrics.ALL]
        tables = [metrics.cdf(runs, "fct_s", bucket) for bucket in buckets]
        return "no flow has finished" if all(table.is_empty() for table in tables) else ""
    if what == "topology" or any(not table.is_empty() for table in _tables(what, runs, chosen)):
        return ""
    if absent := _absent(what, runs, chosen):
        return absent
    if brief := _too_short(what, runs, chosen):
        return brief
    kinds = {probe.partition(" ")[0] for run in runs for probe in probes_of(run.result)}
    names = ", ".join(sorted(name for name, item in QUANTITIES.items() if item.probe in kinds))
    probe = QUANTITIES[what].probe
    return (
        f"the run has no samples of `{probe}` (sampled: {names or 'nothing'}); "
        "`sojourn plot SCENARIO` runs a scenario with the samples that its pictures need"
    )


def _absent(what: str, runs: Sequence[Run], chosen: Selection) -> str:
    """Return why no sample could show a quantity, or an empty string if samples could."""
    scenarios = [run.result.summary["scenario"] for run in runs]
    label = QUANTITIES[what].label
    if all(scenario["model"] != "packet" for scenario in scenarios):
        return f"an ideal has no {label}"
    if what in OF_CONTROLLERS and _sampled_curves("throughput", runs, chosen):
        names = dict.fromkeys(_transport_name(scenario["transport"]) for scenario in scenarios)
        return f"no flow has a {label} (transport: {', '.join(names)})"
    return ""


def _transport_name(transport: dict[str, Any]) -> str:
    """Return the kind of a transport, or the name of its class in Python."""
    name = transport["controller"]["name"] if "controller" in transport else transport["kind"]
    return str(name).rpartition(":")[2]


def _too_short(what: str, runs: Sequence[Run], chosen: Selection) -> str:
    """Return that flows end before their second sample, or an empty string if they do not."""
    samples = runs[0].result.summary["scenario"]["samples"] or {}
    flows = set(chosen.flows)
    if QUANTITIES[what].of != "flow" or not flows or not flows <= set(samples.get("flows", ())):
        return ""
    lifetimes = [lifetime([run.result], [flow]) for run in runs for flow in chosen.flows]
    longest_s = max(end - begin for begin, end in lifetimes)
    interval_s = parse_time(samples["interval"])
    if longest_s > 2 * interval_s:
        return ""
    return (
        f"the longest of the flows lasts {format_time(longest_s)}, and samples have an interval "
        f"of {format_time(interval_s)}; choose longer flows with --flow, end the run earlier, or "
        "set `samples.interval`"
    )


def _sampled_curves(
    what: str, runs: Sequence[Run], chosen: Selection
) -> list[tuple[str, str, Result]]:
    """Return the curves of a quantity: name, probe and result."""
    quantity = QUANTITIES[what]
    members = {"flow": [f"flow {flow}" for flow in chosen.flows], "link": list(chosen.links)}
    owners = members.get(quantity.of, [""])
    curves = []
    for run in runs:
        names = dict(zip(owners, owners, strict=True))
        if quantity.of == "flow":
            names |= _flow_names(run.result, chosen.flows)
        for member in owners:
            scheme = str(run.labels[CURVE]) if len(runs) > 1 else ""
            parts = [scheme, names[member] if len(owners) > 1 or not scheme else ""]
            name = ", ".join(part for part in parts if part) or quantity.label
            probe = f"{quantity.probe} {member}".strip()
            if probe in probes_of(run.result):
                curves.append((name, probe, run.result))
    return curves


def _flow_names(result: Result, flows: Sequence[int]) -> dict[str, str]:
    """Return the names of flows in a legend, with their classes if these differ."""
    classes = {flow: str(result.flows["class"][flow]) for flow in flows}
    several = len(set(classes.values())) > 1
    return {
        f"flow {flow}": f"flow {flow} ({name})" if several else f"flow {flow}"
        for flow, name in classes.items()
    }


def probes_of(result: Result) -> list[str]:
    """Return the names of the probes that a result has samples of."""
    names: list[str] = result.samples["probe"].unique().sort().to_list()
    return names


def sampled(result: Result, what: str) -> list[str]:
    """Return the flows or links of which a result has samples; a name for the whole network."""
    quantity = QUANTITIES[what]
    probes = probes_of(result)
    if not quantity.of:
        return [probe for probe in probes if probe == quantity.probe]
    begin = f"{quantity.probe} flow " if quantity.of == "flow" else f"{quantity.probe} "
    return [probe.removeprefix(begin) for probe in probes if probe.startswith(begin)]


def _draw_series(
    what: str, runs: Sequence[Run], chosen: Selection, stem: Path, formats: Sequence[str]
) -> list[Path]:
    quantity = QUANTITIES[what]
    table = pl.concat(_tables(what, runs, chosen)).drop_nulls()
    if quantity.of == "flow" and not quantity.is_counter:
        begin, end = lifetime([run.result for run in runs], chosen.flows)
        table = table.filter(pl.col("time_s").is_between(begin, end))
    curves = table[CURVE].unique(maintain_order=True).to_list()
    largest = float(table.select(pl.exclude(CURVE, "time_s")).to_numpy().max())
    unit = fitting_unit(quantity.units, largest) if quantity.units else ""
    time_unit = unit_of_time(float(table["time_s"].to_numpy().max()))
    with canvas() as (picture, axes):
        looks = distinct(curves)
        label = quantity.label
        if quantity.of == "link" and len(chosen.links) == 1 and len(runs) > 1:
            # Curves are named by their scheme alone.
            label += f", {chosen.links[0]}"
        note = "line: mean; band: to the largest value" if "high" in table.columns else ""
        options: Any = {"by": CURVE, "unit": unit, "label": label, "drawn_as": looks, "note": note}
        series(axes, table, time_unit=time_unit, step=quantity.is_counter, **options)
        axes.set_ylim(bottom=0)
        return save(picture, stem, formats)


def _tables(what: str, runs: Sequence[Run], chosen: Selection) -> list[pl.DataFrame]:
    """Return a table of values over time for each curve of a quantity."""
    curves = _sampled_curves(what, runs, chosen)
    if QUANTITIES[what].is_counter:
        return [_throughput(*curve) for curve in curves]
    return [
        metrics.series([Run({CURVE: name}, result)], probe, POINTS)
        for name, probe, result in curves
    ]


def _throughput(name: str, probe: str, result: Result) -> pl.DataFrame:
    """Return bits per second of a counter over time, in spans of several full packets each.

    The last row repeats the last value at the end of its span.
    """
    links = links_of_first_sample(result.summary)
    samples = result.samples.filter(pl.col("probe") == probe)
    owner = probe.partition(" ")[2]
    senders = [link for link in links if link["name"] == owner]
    if not senders:
        flow = int(owner.removeprefix("flow "))
        (delivered,) = result.flows.filter(flow=flow)["delivered_bytes"]
        # The links of the flow's path, and others that carried as much.
        senders = [link for link in links if link["bytes"] >= (delivered or 0)]
        # A sender waits for the last ACK after the end of the flow.
        _, end = lifetime([result], [flow])
        samples = samples.filter(pl.col("time_s").shift(1, fill_value=-1.0) < end)
    least_s = least_span_s(result.summary["scenario"], senders)
    runs = [Run({CURVE: name}, Result(result.flows, samples, result.summary))]
    rates = metrics.series(runs, probe, COUNTER_POINTS, per_second=True, least_s=least_s)
    rates = rates.select(CURVE, "time_s", pl.col("value") * 8)
    end_of_last = samples.select(pl.col("time_s").last()).item()
    return pl.concat([rates, rates.tail(1).with_columns(time_s=pl.lit(end_of_last))])


def lifetime(results: Sequence[Result], flows: Sequence[int]) -> tuple[float, float]:
    """Return the first start of the flows and their last end, in seconds."""
    tables = [
        result.flows.filter(pl.col("flow").is_in(list(flows))).select(
            "start_s",
            end_s=(pl.col("start_s") + pl.col("fct_s")).fill_null(result.summary["simulated_s"]),
        )
        for result in results
    ]
    times = pl.concat(tables).rows()
    return min((row[0] for row in times), default=0.0), max((row[1] for row in times), default=0.0)


def _draw_distributions(
    runs: Sequence[Run], classes: Sequence[str], stem: Path, formats: Sequence[str]
) -> list[Path]:
    buckets = [metrics.Bucket(name, of_class=name) for name in classes] or [metrics.ALL]
    labelled = [
        (bucket, Run({CURVE: _curve_name(run, bucket, len(runs))}, run.result))
        for run in runs
        for bucket in buckets
    ]
    with canvas(1, 2) as (picture, panels):
        for axes, column in zip(panels, ("fct_s", "slowdown"), strict=True):
            table = pl.concat(metrics.cdf([run], column, bucket) for bucket, run in labelled)
            curves = table[CURVE].unique(maintain_order=True).to_list()
            is_time = column == "fct_s"
            # The unit of the median: the longest FCTs may be much longer.
            unit = unit_of_time(float(np.median(table["value"].to_numpy()))) if is_time else ""
            label = "flow completion time" if is_time else "slowdown"
            cdf(axes, table, by=CURVE, unit=unit, label=label, drawn_as=distinct(curves))
        one_legend(panels)
        return save(picture, stem, formats)


def _curve_name(run: Run, bucket: metrics.Bucket, runs: int) -> str:
    if bucket == metrics.ALL:
        return str(run.labels[CURVE])
    return bucket.name if runs == 1 else f"{run.labels[CURVE]}, {bucket.name}"


def _draw_topology(runs: Sequence[Run], stem: Path, formats: Sequence[str]) -> list[Path]:
    """Draw the network of the first run; the title names it if there are several."""
    links = [metrics.measured(link) for link in links_of_first_sample(runs[0].result.summary)]
    busiest = max(links, key=lambda link: float(link.get("utilisation", 0.0)))
    with canvas() as (picture, axes):
        topology(axes, links)
        used = 100 * float(busiest.get("utilisation", 0.0))
        text = f"width: utilisation; red: the busiest, {busiest['name']}, {used:.0f} %"
        text = f"{runs[0].labels[CURVE]}; {text}" if len(runs) > 1 else text
        axes.set_title(text, fontsize=9, loc="left")
        return save(picture, stem, formats)


def check_names(result: Result, chosen: Selection) -> None:
    """Raise `ScenarioError` if a result lacks a chosen flow, link or class."""
    flows = flows_of_first_sample(result).height
    for flow in chosen.flows:
        if flow >= flows:
            whole = "first sample" if has_several_samples(result.summary) else "run"
            raise ScenarioError(f"--flow {flow}: the {whole} has flows 0 to {flows - 1}")
    links = [str(link["name"]) for link in links_of_first_sample(result.summary)]
    classes = result.flows["class"].unique(maintain_order=True).to_list()
    for option, names, known in (("link", chosen.links, links), ("class", chosen.classes, classes)):
        for name in names:
            if name not in known:
                some = ", ".join(known[:5]) + (", …" if len(known) > 5 else "")
                raise ScenarioError(
                    f"--{option} {name}: unknown {option}{did_you_mean(name, known)} ({some})"
                )
