"""`sojourn explain`: FCT breakdown of all flows by size, or the causal chain of one flow."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
    output_directory,
    prefix_errors,
    run_options,
)

if TYPE_CHECKING:
    from sojourn.runs.results import Run
    from sojourn.scenario.reading import Labels, Scenario


def explain(
    path: ScenarioFile,
    vary: Annotated[list[str] | None, VARY] = None,
    seeds: Seeds = 1,
    flow: Annotated[
        int | None, typer.Option(min=0, help="Show the causal chain of this flow.")
    ] = None,
    alone: Annotated[
        bool,
        typer.Option("--alone", help="Also run flows of each size alone, with the same transport."),
    ] = False,
    out: Out = None,
    threads: Threads = None,
    cluster: Cluster = None,
    memory: Memory = None,
    fresh: Fresh = False,
) -> None:
    """Divide completion times by the reason and place of waits."""
    from sojourn.compare import comparison
    from sojourn.scenario import overrides, reading

    with prefix_errors(path):
        variations = overrides.parse_variations(vary or ())
        base = reading.read(path) | {"account": True}
        if flow is not None:
            base |= {"account_flows": [flow]}
        out = output_directory(out, "explain", path.stem)
        options = run_options(threads, cluster, memory, fresh)
        runs = comparison.run_all(base, variations, seeds, what=path.name, **options)
        written = _all_flows(runs, out) if flow is None else _one_flow(runs, flow, out)
        if alone:
            written += _unloaded(runs, overrides.expand(base, variations), out, options)
    print(f"written to {out}: {', '.join(written)}")


def _all_flows(runs: "Sequence[Run]", out: Path) -> list[str]:
    """Print and write the breakdown of flows and calls; return the files' names."""
    import polars as pl

    from sojourn.analysis import breakdown
    from sojourn.explain import rpc_plot
    from sojourn.explain import tables as page
    from sojourn.show import console, intervals, parts
    from sojourn.show.environment import difference_lines, environment_line

    table, calls = breakdown.by_size(runs), breakdown.by_call(runs)
    if table.is_empty():
        raise ScenarioError("no flow has finished: there is no completion time to divide")
    labels = [name for name in runs[0].labels if name != "seed"]
    differences = breakdown.differences(runs, labels[0]) if labels else pl.DataFrame()
    console.show(parts.breakdown_tables(table, labels, intervals.format_duration))
    if len(runs) == 1:
        console.show([page.slowest(runs[0].result)])
    console.show(page.call_tables(calls, labels, intervals.format_duration))
    if not differences.is_empty():
        scope = ", on the same flows" if differences["same_flows"].all() else ""
        print(f"difference from {runs[0].labels[labels[0]]}{scope}:")
        console.show(parts.breakdown_tables(differences, labels, intervals.format_duration))
    for line in (
        environment_line(runs[0].result),
        *(difference_lines(runs, labels[0]) if labels else ()),
        *page.call_sentences(calls, labels),
        *page.sentences(runs, labels),
    ):
        print(line)
    written = page.write(runs, table, labels, out)
    written += rpc_plot.write(calls, labels, intervals.format_duration, out)
    return written + page.write_differences(differences, out)


def _unloaded(
    runs: "Sequence[Run]",
    schemes: "Sequence[tuple[Labels, Scenario]]",
    out: Path,
    options: dict[str, Any],
) -> list[str]:
    """Print and write the unloaded FCTs of each scheme; return the files' names."""
    from sojourn.explain import unloaded
    from sojourn.show import console

    table = unloaded.unloaded(runs, schemes, what="flows alone", **options)
    console.show(unloaded.tables(table, list(schemes[0][0])))
    print("ratios: geometric means; slowdown = unloaded / ideal x FCT / unloaded")
    return unloaded.write(table, out)


def _one_flow(runs: "Sequence[Run]", flow: int, out: Path) -> list[str]:
    """Print and write the causal chain of a flow under each scheme; return the files' names."""
    from sojourn.analysis.chains import of_runs
    from sojourn.base import units
    from sojourn.explain import tables as page
    from sojourn.explain import waterfall
    from sojourn.show import console

    chains = of_runs(runs, flow)
    if len(chains) == 1:
        console.show([page.flow_table(runs[0].result, flow)])
    console.show(waterfall.table(chain, units.format_time) for chain in chains)
    return waterfall.write(chains, out)
