"""`sojourn explain`: FCT breakdown of all flows by size, or the causal chain of one flow."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sojourn._core import ScenarioError
from sojourn.base import files
from sojourn.cli.shared import (
    VARY,
    Cluster,
    Formats,
    Fresh,
    Memory,
    Out,
    ScenarioFile,
    Seeds,
    Threads,
    output_directory,
    parse_formats,
    prefix_errors,
    run_options,
)
from sojourn.show.style import FORMATS

if TYPE_CHECKING:
    import polars as pl

    from sojourn.runs.results import Run

BREAKDOWN = (
    *("account.csv", *(f"account.{suffix}" for suffix in FORMATS)),
    *("calls.csv", *(f"calls.{suffix}" for suffix in FORMATS)),
    "differences.csv",
)
"""Files that the command may write for all flows; it writes the first in any case."""

CHAIN = ("chain.csv", *(f"chain.{suffix}" for suffix in FORMATS))
"""Files that the command writes for one flow."""

UNLOADED = "unloaded.csv"
"""File of `--alone`, for all flows or for one."""


def explain(
    path: ScenarioFile,
    vary: Annotated[list[str] | None, VARY] = None,
    seeds: Seeds = 1,
    flow: Annotated[
        int | None, typer.Option(min=0, help="Show this flow's causal chain (one seed).")
    ] = None,
    alone: Annotated[
        bool,
        typer.Option("--alone", help="Also run flows of each size alone, with the same transport."),
    ] = False,
    all_tables: Annotated[
        bool, typer.Option("--tables", help="Print a table with intervals for each size.")
    ] = False,
    formats: Formats = "svg,png",
    out: Out = None,
    threads: Threads = None,
    cluster: Cluster = None,
    memory: Memory = None,
    fresh: Fresh = False,
) -> None:
    """Break completion times down by the reason and place of waits.

    Example: `sojourn explain scenario.toml --vary transport=dctcp,swift`
    """
    from sojourn.compare import comparison
    from sojourn.explain import unloaded
    from sojourn.scenario import overrides, reading
    from sojourn.scenario.fidelity import refuse_flows
    from sojourn.show import console
    from sojourn.show.fidelity import fidelity_title
    from sojourn.show.plot.frame import titled

    suffixes = parse_formats(formats)
    with prefix_errors(path):
        if flow is not None and seeds > 1:
            raise ScenarioError(f"--seeds: must be 1 with --flow, not {seeds}")
        variations = overrides.parse_variations(vary or ())
        base = reading.read(path) | {"account": True}
        if flow is not None:
            base |= {"account_flows": [flow]}
        for _, scenario in overrides.combinations(base, variations):
            refuse_flows(scenario, "a breakdown needs `sample`")
        out = output_directory(out, "explain", path.stem)
        options = run_options(threads, cluster, memory, fresh)
        runs = comparison.run_all(base, variations, seeds, what=path.name, **options)
        flows_alone = None
        if alone:
            schemes = overrides.expand(base, variations)
            flows_alone = unloaded.unloaded(runs, schemes, what="flows alone", **options)
        with titled(fidelity_title(run.result for run in runs)):
            if flow is None:
                written = _all_flows(runs, out, suffixes, flows_alone, all_tables)
            else:
                written = _one_flow(runs, flow, out, suffixes, flows_alone)
    if flows_alone is not None:
        console.show(unloaded.tables(flows_alone, list(schemes[0][0])))
        print("slowdown, unloaded / ideal: means; slowdown = unloaded / ideal x FCT / unloaded")
    console.show_lines(overrides.shared_environment_lines(base, variations))
    console.show_lines(overrides.dropped_parameters(base, variations))
    print(f"written to {out}: {', '.join(written)}")


def _prepare(out: Path, own: Sequence[str], flows_alone: "pl.DataFrame | None") -> list[str]:
    """Remove stale files of a question, and write the table of flows alone, if any.

    `own` is `BREAKDOWN` or `CHAIN`. Files are written before anything is printed: a pipe that
    closes early, as of `head`, ends the command. Those of an earlier command may be of other
    schemes; those of the other question remain.
    """
    from sojourn.explain import unloaded

    # The table of flows alone belongs to the breakdown if the folder has one.
    of_breakdown = (out / BREAKDOWN[0]).exists()
    if (out / own[0]).exists():
        is_owner = of_breakdown == (own is BREAKDOWN)
        files.remove(out / name for name in (*own, *([UNLOADED] if is_owner else [])))
    return [] if flows_alone is None else unloaded.write(flows_alone, out)


def _all_flows(
    runs: "Sequence[Run]",
    out: Path,
    formats: Sequence[str],
    flows_alone: "pl.DataFrame | None",
    all_tables: bool,
) -> list[str]:
    """Write and print the breakdown of flows and calls; return the files' names."""
    import polars as pl

    from sojourn.analysis import breakdown
    from sojourn.base import units
    from sojourn.compare.comparison import scheme_label
    from sojourn.explain import rpc_plot
    from sojourn.explain import tables as page
    from sojourn.show import console, intervals, parts
    from sojourn.show.environment import difference_lines, environment_line, environment_lines
    from sojourn.show.fidelity import fidelity_lines

    table, calls = breakdown.by_size(runs), breakdown.by_call(runs)
    if table.is_empty():
        raise ScenarioError("no flow has finished, so that no completion time can be broken down")
    labels = [name for name in runs[0].labels if name != "seed"]
    by = scheme_label(runs) if labels else ""
    differences = breakdown.differences(runs, by) if labels else pl.DataFrame()
    last = _prepare(out, BREAKDOWN, flows_alone)
    written = page.write(runs, table, labels, out, formats)
    written += rpc_plot.write(calls, labels, intervals.format_duration, out, formats)
    written += page.write_differences(differences, out) + last
    console.show_lines([*page.call_sentences(runs, labels), *page.sentences(runs, labels)])
    console.show_lines(page.unfinished_lines(runs, labels))
    console.show_lines(page.job_sentences(runs, labels))
    console.show(parts.breakdown_summary(table, labels, units.format_time, "mean FCT by cause"))
    console.show_lines(parts.legend(table))
    console.show(page.call_tables(calls, labels, intervals.format_duration))
    if not differences.is_empty():
        scope = ", on the same flows" if differences["same_flows"].all() else ""
        title = f"difference from {runs[0].labels[by]}{scope}"
        console.show(parts.breakdown_summary(differences, labels, units.format_time, title))
    console.show(page.slowest(runs, labels))
    if all_tables:
        show = intervals.format_duration
        console.show(parts.breakdown_tables(table, labels, show))
        console.show(parts.breakdown_tables(differences, labels, show, "difference, "))
        console.show_lines([page.intervals_note(table, differences)])
    results = [run.result for run in runs]
    lines = [environment_line(results[0])]
    if labels:
        lines = [*environment_lines(runs, by), *difference_lines(runs, by)]
    console.show_lines([*fidelity_lines(results), *lines])
    return written


def _one_flow(
    runs: "Sequence[Run]",
    flow: int,
    out: Path,
    formats: Sequence[str],
    flows_alone: "pl.DataFrame | None",
) -> list[str]:
    """Write and print the causal chain of a flow under each scheme; return the files' names."""
    from sojourn.analysis.chains import of_runs
    from sojourn.base import units
    from sojourn.explain import tables as page
    from sojourn.explain import waterfall
    from sojourn.show import console

    chains = of_runs(runs, flow)
    last = _prepare(out, CHAIN, flows_alone)
    written = waterfall.write(chains, out, formats) + last
    if len(chains) == 1:
        console.show([page.flow_table(runs[0].result, flow)])
    console.show(waterfall.table(chain, units.format_time) for chain in chains)
    return written
