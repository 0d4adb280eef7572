"""`sojourn compare`."""

from typing import Annotated

import polars as pl
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
    about,
    place,
    run_options,
)
from sojourn.scenario import overrides, reading


def compare(
    path: ScenarioFile,
    vary: Annotated[list[str], VARY],
    seeds: Seeds = 1,
    median: Annotated[
        bool, typer.Option("--median", help="Medians over seeds, which a heavy tail leaves alone.")
    ] = False,
    against: Annotated[
        str | None,
        typer.Option(metavar="VALUE", help="Of the first variation, what the others are held to."),
    ] = None,
    account: Annotated[
        bool, typer.Option("--account", help="Say where times and differences come from.")
    ] = False,
    out: Out = None,
    threads: Threads = None,
    cluster: Cluster = None,
    memory: Memory = None,
    fresh: Fresh = False,
) -> None:
    """Run the product of variations; print and draw it, and each scheme against the first."""
    from sojourn.analysis import breakdown
    from sojourn.analysis.paired import ratios, reference_of
    from sojourn.compare import comparison, paired_plot, paired_tables, plot, tables
    from sojourn.explain.tables import write_differences
    from sojourn.show import console, intervals
    from sojourn.show.parts import shown

    with about(path):
        base = reading.read(path)
        variations = overrides.parse_variations(vary)
        out = place(out, "compare", path.stem)
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
    _, parts = comparison.divided(table)
    differences = breakdown.differences(runs, by, against) if account else pl.DataFrame()
    console.show(shown(parts, labels, intervals.spent, "where the time went, "))
    console.show(shown(differences, labels, intervals.spent, f"more than under {reference}, "))
    for line in (
        *paired_tables.sentences(paired, by, differences),
        *paired_tables.notes(paired, by),
    ):
        print(line)
    written = plot.write(table, out) + paired_plot.write(paired, by, out)
    written += write_differences(differences, out)
    print(f"written to {out}: {', '.join(written)}")
