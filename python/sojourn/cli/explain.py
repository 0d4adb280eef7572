"""`sojourn explain`: all flows by size, or one of them piece by piece."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import polars as pl
import typer

from sojourn._core import ScenarioError
from sojourn.cli.shared import (
    VARY,
    Cluster,
    Fresh,
    Memory,
    Out,
    ScenarioFile,
    Seeds,
    Threads,
    about,
    place,
    run_options,
)
from sojourn.runs.results import Run
from sojourn.scenario import overrides, reading


def explain(
    path: ScenarioFile,
    vary: Annotated[list[str] | None, VARY] = None,
    seeds: Seeds = 1,
    flow: Annotated[
        int | None, typer.Option(min=0, help="Show what held this flow back, piece by piece.")
    ] = None,
    out: Out = None,
    threads: Threads = None,
    cluster: Cluster = None,
    memory: Memory = None,
    fresh: Fresh = False,
) -> None:
    """Say why flows took as long as they did: where their time went, exactly."""
    from sojourn.compare import comparison

    with about(path):
        variations = overrides.parse_variations(vary or ())
        base = reading.read(path) | {"account": True}
        if flow is not None:
            base |= {"account_flows": [flow]}
        out = place(out, "explain", path.stem)
        options = run_options(threads, cluster, memory, fresh)
        runs = comparison.run_all(base, variations, seeds, what=path.name, **options)
        written = _all_flows(runs, out) if flow is None else _one_flow(runs, flow, out)
    print(f"written to {out}: {', '.join(written)}")


def _all_flows(runs: Sequence[Run], out: Path) -> list[str]:
    """Print where the time of flows and calls went, and write it; return the files' names."""
    from sojourn.analysis import breakdown
    from sojourn.explain import rpc_plot
    from sojourn.explain import tables as page
    from sojourn.show import console, intervals, parts

    table, calls = breakdown.by_size(runs), breakdown.by_call(runs)
    if table.is_empty():
        raise ScenarioError("no flow has finished: there is no time to divide")
    labels = [name for name in runs[0].labels if name != "seed"]
    differences = breakdown.differences(runs, labels[0]) if labels else pl.DataFrame()
    console.show(parts.shown(table, labels, intervals.spent))
    if len(runs) == 1:
        console.show([page.slowest(runs[0].result)])
    console.show(page.calls_shown(calls, labels, intervals.spent))
    if not differences.is_empty():
        of = ", on the same flows" if differences["same_flows"].all() else ""
        print(f"more than under {runs[0].labels[labels[0]]}{of}:")
        console.show(parts.shown(differences, labels, intervals.spent))
    for line in (*page.calls_told(calls, labels), *page.sentences(runs, labels)):
        print(line)
    written = page.write(runs, table, labels, out)
    written += rpc_plot.write(calls, labels, intervals.spent, out)
    return written + page.write_differences(differences, out)


def _one_flow(runs: Sequence[Run], flow: int, out: Path) -> list[str]:
    """Print the chain of a flow under each scheme, and write it; return the files' names."""
    from sojourn.analysis.chains import of_runs
    from sojourn.base import units
    from sojourn.explain import tables as page
    from sojourn.explain import waterfall
    from sojourn.show import console

    chains = of_runs(runs, flow)
    if len(chains) == 1:
        console.show([page.of_flow(runs[0].result, flow)])
    console.show(waterfall.table(chain, units.format_time) for chain in chains)
    return waterfall.write(chains, out)
