"""Fidelity of answers in words."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sojourn.analysis.fidelity import checked_flows, doubts
from sojourn.base.units import count, format_count, format_size_range
from sojourn.runs.results import Result
from sojourn.scenario.fidelity import FLOWS, PACKETS, RECORDS, SAMPLE

MOST_TITLES = 2
"""Answers from networks of different sizes up to which a title has the sizes."""


def fidelity_lines(results: Iterable[Result]) -> list[str]:
    """Return what stands for the whole network, and what is not preserved, each line once."""
    summaries = [result.summary for result in results if result.summary.get("fidelity")]
    fidelities = [summary["fidelity"] for summary in summaries]
    lines = [f"fidelity: {each['reason']}" for each in fidelities if "reason" in each]
    fidelities = [each for each in fidelities if each["kind"] != PACKETS]
    lines += [line for fidelity in fidelities for line in _lines(fidelity)]
    # Each seed of each scheme has a law of its own.
    lines += _law_lines(fidelities[0]) if len(fidelities) == 1 else []
    lines += [line for summary in summaries for line in _sample_lines(summary)]
    lines += _precision_lines([each for each in fidelities if "precision" in each])
    title = "self-check (law of one sample on another; mean, p99)"
    lines += _check_lines(title, [each.get("self_check", []) for each in fidelities])
    halves = [each["half"] for each in fidelities if "half" in each]
    for kept in dict.fromkeys(half["kept"] for half in halves):
        title = f"of {kept} hosts instead (mean, p99)"
        lines += _check_lines(title, [half["errors"] for half in halves if half["kept"] == kept])
    lines += [f"not preserved: {line}" for each in fidelities for line in each["not_preserved"]]
    return list(dict.fromkeys(lines))


def fidelity_title(results: Iterable[Result]) -> str:
    """Return what stands for whole networks in a picture of answers; empty if nothing does."""
    summaries = [result.summary.get("fidelity", {"kind": PACKETS}) for result in results]
    fidelities = [each for each in summaries if each["kind"] != PACKETS]
    titles = dict.fromkeys(
        f"{each['kind']}: {len(each['seeds'])} x {each['kept']} of {format_count(each['hosts'])} "
        "hosts"
        for each in fidelities
    )
    if len(titles) > MOST_TITLES:
        titles = dict.fromkeys(each["kind"] for each in fidelities)
    return f"fidelity {', '.join(titles)}" if titles else ""


def doubt_lines(results: Iterable[Result]) -> list[str]:
    """Return the doubts about the answers as warnings, the worst of each kind."""
    return [f"warning: {line}" for line in doubts(*results).values()]


def _lines(fidelity: Mapping[str, Any]) -> list[str]:
    samples = len(fidelity["seeds"])
    is_sum = fidelity["kind"] == SAMPLE and samples > 1
    counts = f"counts of flows, packets, drops and marks: sums of {count(samples, 'sample')}"
    return [*_network_lines(fidelity), *([counts] if is_sum else [])]


def _law_lines(fidelity: Mapping[str, Any]) -> list[str]:
    """Return the hash of the law, which answers of earlier versions lack."""
    samples = count(len(fidelity["seeds"]), "sample")
    law = fidelity.get("law", "")
    return [f"law: learnt from {samples}, hash {law}"] if law else []


def _sample_lines(summary: Mapping[str, Any]) -> list[str]:
    """Return what throughputs and tables of samples contain, where it differs from a run."""
    fidelity, scenario = summary["fidelity"], summary["scenario"]
    if fidelity["kind"] != SAMPLE:
        return []
    lines = []
    if summary.get("long_lived") and fidelity["kept"] * len(fidelity["seeds"]) != fidelity["hosts"]:
        lines.append("throughputs of long-lived flows: of the whole network, by its hosts")
    if (one_in := scenario.get(RECORDS, 1)) > 1:
        lines.append(f"{RECORDS} = {one_in} is not used: samples record all of their flows")
    return lines + ([] if len(fidelity["seeds"]) == 1 else _first_sample_lines(scenario))


def _first_sample_lines(scenario: Mapping[str, Any]) -> list[str]:
    """Return a line that names the requested tables of the first of several samples, if any."""
    record, samples = (_table(scenario.get(name)) for name in ("record", "samples"))
    words = {
        "counters of links over time": record,
        "packets on links": record.get("hops"),
        "sampled queues and rates": samples,
    }
    names = [name for name, is_recorded in words.items() if is_recorded]
    return [f"of the first sample only: {', '.join(names)}"] if names else []


def _table(value: Any) -> Mapping[str, Any]:
    """Return a table of a scenario; empty for `none`."""
    return value if isinstance(value, Mapping) else {}


def _network_lines(fidelity: Mapping[str, Any]) -> list[str]:
    """Return the networks that are simulated, and the utilisations of their links."""
    samples, hosts = len(fidelity["seeds"]), format_count(fidelity["hosts"])
    simulated = samples * fidelity["kept"]
    cost = f"samples simulate {format_count(simulated)} hosts, no fewer than `{PACKETS}` would"
    costs = [cost] if simulated >= fidelity["hosts"] else []
    if fidelity["kept"] == fidelity["hosts"]:
        runs = f"{count(samples, 'run')} of the whole network of {hosts} hosts"
        runs = f"a fluid, corrected by {runs}" if fidelity["kind"] == FLOWS else runs
        return [f"fidelity: {fidelity['kind']}: {runs}", *costs]
    loads = [
        f"{tier} {100 * folded:.1f} % (whole {100 * whole:.1f} %)"
        for tier, (whole, folded) in fidelity["utilisations"].items()
    ]
    return [
        f"fidelity: {fidelity['kind']}: {samples} x {fidelity['kept']} of {hosts} hosts "
        f"({fidelity['units']})",
        *costs,
        *([f"expected utilisation of links: {', '.join(loads)}"] if loads else []),
    ]


def _precision_lines(fidelities: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a line with the widest interval of several answers, if they have a precision."""
    widest = max(fidelities, key=lambda each: each["precision"]["reached"], default=None)
    return [] if widest is None else [_precision(widest)]


def _precision(fidelity: Mapping[str, Any]) -> str:
    """Return the precision that the samples reached, and how many would reach the required one."""
    precision, samples = fidelity["precision"], len(fidelity["seeds"])
    required, reached = (f"± {100 * precision[name]:.2g} %" for name in ("required", "reached"))
    if math.isinf(precision["reached"]):
        reached = "no interval (unfinished, or too few flows)"
    size = format_size_range(precision["above"], precision["up_to"])
    line = f"precision: p99 of {size} {reached} from {count(samples, 'sample')}"
    if precision["reached"] <= precision["required"]:
        return f"{line}, {required} required"
    needed = "" if math.isinf(precision["reached"]) else f": takes about {precision['needed']}"
    return f"{line}, not the {required} required{needed}"


def _check_lines(title: str, checks: Iterable[Iterable[Mapping[str, Any]]]) -> list[str]:
    """Return the largest errors of several answers by class and size in a line, if any."""
    errors: dict[str, dict[str, float]] = {}
    for row in (row for rows in checks for row in rows):
        worst = errors.setdefault(checked_flows(row), {"mean": 0.0, "p99": 0.0})
        for name, error in worst.items():
            worst[name] = max(error, row[name], key=abs)
    parts = [
        f"{flows} {_percent(worst['mean'])}, {_percent(worst['p99'])}"
        for flows, worst in errors.items()
    ]
    return [f"{title}: {'; '.join(parts)}"] if parts else []


def _percent(error: float) -> str:
    return f"{100 * error:+.0f} %" if math.isfinite(error) else "unfinished"
