"""`sojourn compare`."""

from typing import Annotated

import polars as pl
import typer

from sojourn import scenario
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
    from sojourn import accounts, explain, pairs, pairs_page, screen
    from sojourn import compare as comparison

    with about(path):
        base = scenario.read(path)
        variations = scenario.parse_variations(vary)
        out = place(out, "compare", path.stem)
        schemes = scenario.labels_of(next(iter(variations.values())))
        reference = pairs.reference_of(schemes, against)
        table, runs = comparison.compare(
            base,
            variations,
            seeds=seeds,
            median=median,
            account=account,
            what=path.name,
            **run_options(threads, cluster, memory, fresh),
        )
    screen.console.print(*screen.comparison_tables(table), sep="\n")
    for line in screen.comparison_notes(table, runs, median=median):
        print(line)
    labels = comparison.labels(table)
    by = labels[0]
    paired = pairs.ratios(runs, by=by, against=against)
    screen.show(pairs_page.tables(paired))
    _, parts = comparison.divided(table)
    differences = accounts.differences(runs, by, against) if account else pl.DataFrame()
    screen.show(explain.shown(parts, labels, screen.spent, "where the time went, "))
    screen.show(explain.shown(differences, labels, screen.spent, f"more than under {reference}, "))
    for line in (*pairs_page.sentences(paired, by, differences), *pairs_page.notes(paired, by)):
        print(line)
    written = comparison.write(table, out) + pairs_page.write(paired, by, out)
    written += explain.write_differences(differences, out)
    print(f"written to {out}: {', '.join(written)}")
