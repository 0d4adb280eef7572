"""Page of one run or two as one HTML file."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from sojourn.analysis import breakdown
from sojourn.base import files
from sojourn.base.units import format_time, parse_size
from sojourn.runs.first_sample import has_several_samples, links_of_first_sample
from sojourn.runs.results import Result, Run
from sojourn.scenario.reading import kind_of
from sojourn.show.environment import environment_line
from sojourn.show.fidelity import doubt_lines, fidelity_lines
from sojourn.view import (
    answer,
    flow_blocks,
    loading,
    network_blocks,
    pair_blocks,
    recorded_blocks,
)
from sojourn.view.flow_blocks import SCHEME
from sojourn.web import columns, sheet

SCRIPTS = (
    *("state.js", "flows.js", "breakdown.js", "pairs.js", "recordings.js", "flow.js"),
    *("network_drawing.js", "network.js", "lanes.js", "view.js"),
)

MOST_FLOWS = 100_000
"""Flows of a page by default; of two runs, half of them each."""


def write(runs: Sequence[Run], file: Path, *, source: str, most: int | None = MOST_FLOWS) -> None:
    """Write the page of one run, or of two with different labels `scheme`.

    `source` are the arguments of the command for the shell: results or scenarios, and variations.
    `most` is the largest number of flows, or None for all.
    """
    files.write_text(file, render(runs, source=source, most=most))


def render(runs: Sequence[Run], *, source: str, most: int | None = MOST_FLOWS) -> str:
    """Return the HTML of the page of `write`."""
    title = _title(runs)
    most = None if most is None else max(most // len(runs), 1)
    blocks: dict[str, str] = {}
    rows = [flow_blocks.rows(run.result) for run in runs]
    are_pairs = len(runs) > 1 and pair_blocks.same_flows(runs)
    medians = [flow_blocks.medians(table, table["slowdown"]) for table in rows]
    counts = [table.height for table in rows]
    if are_pairs:
        rows = pair_blocks.finished_in_both(rows)
        medians = [pair_blocks.medians(*rows)]
    samples = _samples(rows, most, are_pairs)
    heads = []
    for index, (run, (table, weight)) in enumerate(zip(runs, samples, strict=True)):
        blocks[f"flows{index}"] = flow_blocks.block(table, [one for one, _ in samples])
        heads.append({**_run(run), "flows": counts[index], "weight": weight})
    pairs = {"groups": pair_blocks.groups(runs), "medians": medians[0]} if are_pairs else None
    if not are_pairs:
        for index, (head, table) in enumerate(zip(heads, rows, strict=True)):
            head |= {"medians": medians[index], "rim": flow_blocks.rim(table)}
            if head["weight"] > 1:
                head["density"], cells = flow_blocks.density(table)
                blocks[f"density{index}"] = columns.pack(cells)
    if len(runs) == 1:
        heads[0]["name"] = _transport(runs[0])
    for index, run in enumerate(runs):
        flows, made = recorded_blocks.blocks(
            run.result, str(index), recorded_blocks.MOST_BYTES // len(runs)
        )
        heads[index] |= {"recorded": flows}
        blocks |= made
    head = {
        "title": title,
        "source": source,
        "sentence": answer.sentence(runs, source),
        "parts": flow_blocks.parts(),
        "shareSteps": flow_blocks.SHARE_STEPS,
        "runs": heads,
        "pairs": pairs,
        "network": _network(runs, heads, blocks),
        "noNetwork": _no_network(runs),
    }
    blocks["head"] = sheet.as_json(head)
    return sheet.render("view.html", SCRIPTS, blocks, {"title": title})


def _network(
    runs: Sequence[Run], heads: list[dict[str, Any]], blocks: dict[str, str]
) -> dict[str, Any] | None:
    """Add the blocks of links; return the nodes, or None without a common network."""
    if _no_network(runs):
        return None
    nodes = network_blocks.nodes(runs[0].result)
    for index, run in enumerate(runs):
        most_bytes = network_blocks.MOST_BYTES // len(runs)
        heads[index]["widths"], made = network_blocks.series(run.result, str(index), most_bytes)
        blocks |= {f"links{index}": network_blocks.links(run.result, nodes["names"]), **made}
    return nodes


def _no_network(runs: Sequence[Run]) -> str:
    """Return why the page has no panels of the network; empty if it has them."""
    names = [[link["name"] for link in links_of_first_sample(run.result.summary)] for run in runs]
    if any(other != names[0] for other in names):
        return "The runs have different networks, so links and times cannot be compared here."
    return "" if names[0] else "The result has no counters of links."


def _title(runs: Sequence[Run]) -> str:
    """Return the name of the scenario, or those of two; without names, the schemes."""
    names = (run.result.summary["scenario"].get("name") or run.labels[SCHEME] for run in runs)
    return " and ".join(dict.fromkeys(map(str, names)))


def _transport(run: Run) -> str:
    """Return the name of a run's transport, or of its ideal."""
    scenario = run.result.summary["scenario"]
    model = scenario["model"]
    part = scenario["transport"] if model == "packet" else model
    return str(kind_of(part))


def _samples(
    rows: Sequence[pl.DataFrame], most: int | None, are_pairs: bool
) -> list[tuple[pl.DataFrame, float]]:
    """Return at most `most` rows of each table and their weights; of pairs, the same flows."""
    if not are_pairs:
        return [flow_blocks.sample(table, most) for table in rows]
    one, two = rows
    sample, weight = flow_blocks.sample(one, most)
    others = sample.select("flow").join(two, on="flow", how="left", maintain_order="left")
    return [(sample, weight), (others.with_columns(sample["is_slow"]), weight)]


def _run(run: Run) -> dict[str, Any]:
    """Return the part of the head of a run."""
    result = run.result
    scenario = result.summary["scenario"]
    return {
        "name": str(run.labels[SCHEME]),
        "counts": _counts(run),
        "fidelity": _fidelity(result),
        "environment": environment_line(result),
        "hasBreakdown": breakdown.are_kept(result),
        "refusal": "" if breakdown.are_kept(result) else loading.refusal(scenario),
        "hasPackets": not breakdown.is_ideal(result),
        "payload": parse_size(scenario["packet"]["payload"]) if "packet" in scenario else 0,
        "hosts": network_blocks.hosts(result),
        "groups": flow_blocks.groups(result),
        "simulated": result.summary["simulated_s"],
        "inProgress": network_blocks.in_progress(result),
    }


def _fidelity(result: Result) -> list[str]:
    """Return lines about the fidelity of a run, as `sojourn run` prints them, and doubts."""
    are_several = has_several_samples(result.summary)
    panels = ["of the first sample only: network and flows in progress"] if are_several else []
    return [*fidelity_lines([result]), *panels, *doubt_lines([result])]


def _rounded(found: re.Match[str]) -> str:
    """Return a number of the text of a load with four digits."""
    value = float(f"{float(found[0]):.4g}")
    return answer.grouped(round(value)) if value >= 1000 else f"{value:g}"


def _counts(run: Run) -> list[str]:
    """Return what a run consists of, in short texts."""
    summary = run.result.summary
    counts = summary["counts"]
    words = {
        "flows": "flows",
        "unfinished": "unfinished",
        "long_lived": "long-lived",
        "terminated": "terminated",
        "packets": "packets",
        "drops": "drops",
        "credit_drops": "credit drops",
        "trims": "trims",
        "losses": "losses",
        "marks": "marks",
        "pauses": "pauses",
        "retransmits": "retransmits",
        "timeouts": "timeouts",
    }
    always = ("flows", "unfinished", "drops", "retransmits")
    shown = [
        f"{answer.grouped(counts[name])} {word}"
        for name, word in words.items()
        if name in counts and (counts[name] or name in always)
    ]
    load = re.sub(r"\d+\.?\d*(?= \w+/s)", _rounded, str(summary.get("load") or ""))
    return [
        *shown,
        f"{format_time(summary['simulated_s'])} simulated",
        *([load] if load else []),
        f"seed {summary['seed']}",
    ]
