"""`sojourn compare`: a table of variations, and each scheme in ratio to a baseline."""

from typing import Annotated

import typer

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


def compare(
    path: ScenarioFile,
    vary: Annotated[list[str], VARY],
    seeds: Seeds = 1,
    median: Annotated[
        bool,
        typer.Option(
            "--median", help="Report medians over seeds instead of means (robust to heavy tails)."
        ),
    ] = False,
    against: Annotated[
        str | None,
        typer.Option(
            metavar="VALUE", help="Baseline: value of the first --vary (default: its first value)."
        ),
    ] = None,
    account: Annotated[
        bool, typer.Option("--account", help="Report the FCT breakdown of times and differences.")
    ] = False,
    out: Out = None,
    threads: Threads = None,
    cluster: Cluster = None,
    memory: Memory = None,
    fresh: Fresh = False,
) -> None:
    """Run and compare all combinations of variations.

    Prints and plots every combination, and the ratio of each scheme to a baseline.
    """
    import polars as pl

    from sojourn.analysis import breakdown
    from sojourn.analysis.paired import ratios, reference_of
    from sojourn.compare import comparison, paired_plot, paired_tables, plot, tables
    from sojourn.explain.tables import write_differences
    from sojourn.scenario import overrides, reading
    from sojourn.show import console, intervals
    from sojourn.show.parts import breakdown_tables

    with prefix_errors(path):
        base = reading.read(path)
        variations = overrides.parse_variations(vary)
        out = output_directory(out, "compare", path.stem)
        schemes = overrides.labels_of(next(iter(variations.values())))
        reference = reference_of(schemes, against)
        table, runs = comparison.compare(
            base,
            variations,
            seeds=seeds,
            median=median,
            account=account,
            what=path.name,
            **run_options(threads, cluster, memory, fresh),
        )
    console.console.print(*tables.comparison_tables(table), sep="\n")
    for line in tables.comparison_notes(table, runs, median=median):
        print(line)
    labels = comparison.labels(table)
    by = labels[0]
    paired = ratios(runs, by=by, against=against)
    console.show(paired_tables.tables(paired))
    _, parts = comparison.split_parts(table)
    differences = breakdown.differences(runs, by, against) if account else pl.DataFrame()
    console.show(breakdown_tables(parts, labels, intervals.format_duration, "FCT breakdown, "))
    console.show(
        breakdown_tables(
            differences, labels, intervals.format_duration, f"difference from {reference}, "
        )
    )
    for line in (
        *paired_tables.sentences(paired, by, differences),
        *paired_tables.notes(paired, by),
    ):
        print(line)
    written = plot.write(table, out) + paired_plot.write(paired, by, out)
    written += write_differences(differences, out)
    print(f"written to {out}: {', '.join(written)}")
