"""Page of one run or two as one HTML file."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sojourn.analysis import breakdown, paired
from sojourn.base import files
from sojourn.base.units import format_count, format_time
from sojourn.compare import paired_tables
from sojourn.explain import tables
from sojourn.runs.results import Run
from sojourn.view import flow_blocks
from sojourn.web import sheet

SCRIPTS = ("state.js", "flows.js", "breakdown.js", "view.js")

MOST_FLOWS = 100_000
"""Flows of a page by default; of two runs, half of them each."""

SCHEME = "scheme"
"""Label of the runs of a page."""


def write(runs: Sequence[Run], file: Path, *, source: str, most: int | None = MOST_FLOWS) -> None:
    """Write the page of one run, or of two with different labels `scheme`.

    `source` are the results or scenarios of the command, as the user gave them. `most` is the
    largest number of flows, or None for all.
    """
    files.write_text(file, render(runs, source=source, most=most))


def render(runs: Sequence[Run], *, source: str, most: int | None = MOST_FLOWS) -> str:
    """Return the HTML of the page of `write`."""
    title = _title(runs)
    most = None if most is None else max(most // len(runs), 1)
    blocks: dict[str, str] = {}
    heads = [_run(run, index, most, blocks) for index, run in enumerate(runs)]
    if len(runs) == 1:
        heads[0]["name"] = _transport(runs[0])
    head = {
        "title": title,
        "source": source,
        "sentence": _sentence(runs),
        "parts": flow_blocks.parts(),
        "runs": heads,
    }
    blocks["head"] = sheet.as_json(head)
    return sheet.render("view.html", SCRIPTS, blocks, {"title": title})


def _title(runs: Sequence[Run]) -> str:
    """Return the name of the scenario, or those of two; without names, the schemes."""
    names = (run.result.summary["scenario"].get("name") or run.labels[SCHEME] for run in runs)
    return " and ".join(dict.fromkeys(map(str, names)))


def _transport(run: Run) -> str:
    """Return the name of a run's transport, or of its ideal."""
    scenario = run.result.summary["scenario"]
    is_packet = scenario["model"] == "packet"
    return str(scenario["transport"]["kind"] if is_packet else scenario["model"])


def _run(run: Run, index: int, most: int | None, blocks: dict[str, str]) -> dict[str, Any]:
    """Add the blocks of a run; return its part of the head."""
    result = run.result
    flows = flow_blocks.rows(result)
    sample, weight = flow_blocks.sample(flows, most)
    blocks[f"flows{index}"] = flow_blocks.block(sample)
    return {
        "name": str(run.labels[SCHEME]),
        "counts": _counts(run),
        "flows": flows.height,
        "weight": weight,
        "hasBreakdown": breakdown.are_kept(result),
        "groups": flow_blocks.groups(result),
        "medians": flow_blocks.medians(flows),
    }


def _sentence(runs: Sequence[Run]) -> str:
    """Return the answer of the page in one sentence; empty if no flow has finished."""
    if not all(breakdown.are_kept(run.result) for run in runs):
        return ""
    if len(runs) == 1:
        lines = tables.sentences(runs, [])
        return _capital(f"{lines[0]}.") if lines else ""
    ratios = paired.ratios(runs, by=SCHEME)
    lines = paired_tables.sentences(ratios, SCHEME, breakdown.differences(runs, SCHEME))
    return _capital(f"{lines[0]}.") if lines else ""


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


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
        "losses": "losses",
        "marks": "marks",
        "retransmits": "retransmits",
        "timeouts": "timeouts",
    }
    always = ("flows", "unfinished", "drops", "retransmits")
    shown = [
        f"{format_count(counts[name])} {word}"
        for name, word in words.items()
        if name in counts and (counts[name] or name in always)
    ]
    load = str(summary.get("load") or "")
    return [
        *shown,
        f"{format_time(summary['simulated_s'])} simulated",
        *([load] if load else []),
        f"seed {summary['seed']}",
    ]
