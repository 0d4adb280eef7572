"""`sojourn compare`: a table of variations, and each scheme in ratio to a baseline."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sojourn._core import ScenarioError
from sojourn.cli.shared import (
    VARY,
    Cluster,
    Fidelity,
    Formats,
    Fresh,
    Memory,
    Out,
    Percentiles,
    Precision,
    Seeds,
    Threads,
    output_directory,
    parse_formats,
    parse_percentiles,
    prefix_errors,
    read_scenarios,
    run_options,
    with_fidelity,
)

if TYPE_CHECKING:
    import polars as pl

    from sojourn.runs.results import Run
    from sojourn.tune.objectives import Measure


def compare(
    paths: Annotated[
        list[Path],
        typer.Argument(metavar="SCENARIO...", help="Scenario file (TOML); several are schemes."),
    ],
    vary: Annotated[list[str] | None, VARY] = None,
    seeds: Seeds = 1,
    fidelity: Fidelity = None,
    precision: Precision = None,
    median: Annotated[
        bool,
        typer.Option(
            "--median", help="Report medians over seeds instead of means (robust to heavy tails)."
        ),
    ] = False,
    percentiles: Percentiles = None,
    against: Annotated[
        str | None,
        typer.Option(
            metavar="SCHEME",
            help="Baseline: a scheme, or a value of the first --vary with several values "
            "(default: the first).",
        ),
    ] = None,
    plot: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MEASURE",
            help="Measure to plot, such as `p99 fct of class incast`; may be repeated "
            "(default: mean and p99 slowdown).",
        ),
    ] = None,
    account: Annotated[
        bool, typer.Option("--account", help="Report the FCT breakdown of times and differences.")
    ] = False,
    all_tables: Annotated[
        bool,
        typer.Option("--tables", help="Print the values and ratios of each size and class."),
    ] = False,
    flows: Annotated[
        bool, typer.Option("--flows", help="Write the flows of all runs to flows.parquet.")
    ] = False,
    formats: Formats = "svg,png",
    out: Out = None,
    threads: Threads = None,
    cluster: Cluster = None,
    memory: Memory = None,
    fresh: Fresh = False,
) -> None:
    """Run and compare variations of a scenario, or several scenarios.

    Prints and plots every combination, and the ratio of each scheme to a baseline. Schemes that
    differ in several fields are tables of one scenario, such as [schemes.pfc] with the lines
    transport = "dcqcn" and switch.pause = {}, or scenarios of their own. A field in a part of a
    mixed workload is workload.CLASS.FIELD.

    Example: `sojourn compare my.toml --vary transport=dctcp,swift --seeds 3`
    """
    import polars as pl

    from sojourn.analysis import breakdown
    from sojourn.analysis.paired import BY_FLOW, ratios, reference_of
    from sojourn.compare import comparison, outputs, paired_plot, paired_tables, tables
    from sojourn.compare import plot as pictures
    from sojourn.explain.tables import write_differences
    from sojourn.scenario import overrides
    from sojourn.scenario.encoding import SCHEMES
    from sojourn.scenario.fidelity import FIELD
    from sojourn.show import console, intervals
    from sojourn.show.parts import breakdown_tables

    chosen = comparison.PERCENTILES if percentiles is None else parse_percentiles(percentiles)
    suffixes = parse_formats(formats)
    scenarios = read_scenarios(paths)
    for path, scenario in scenarios.items():
        with prefix_errors(path):
            scenarios[path] = with_fidelity(scenario, fidelity, precision)
    with prefix_errors(*scenarios):
        measures = {text: _measure(text) for text in plot or ()}
        variations = overrides.parse_variations(vary or ())
        if fidelity is not None and (both := {FIELD, f"{FIELD}.kind"} & variations.keys()):
            raise ScenarioError(f"--fidelity: `{both.pop()}` is varied, too; give one of the two")
        base = next(iter(scenarios.values()))
        if len(scenarios) > 1 or not (variations or SCHEMES in base):
            base = overrides.as_schemes(scenarios)
        out = output_directory(out, "compare", outputs.folder_name(list(scenarios)))
        if flows:
            outputs.check_folder(out)
        reference = reference_of(comparison.first_labels(base, variations), against)
        table, runs = comparison.compare(
            base,
            variations,
            seeds=seeds,
            percentiles=chosen,
            median=median,
            account=account,
            what=", ".join(path.name for path in scenarios),
            **run_options(threads, cluster, memory, fresh),
        )
        drawn, without_values = _measured(measures, runs, median)
    labels = comparison.labels(table)
    by = comparison.scheme_label(runs)
    paired = ratios(runs, by=by, against=against)
    differences = breakdown.differences(runs, by, against) if account else pl.DataFrame()
    # Files are written first: a pipe that closes early, as of `head`, ends the output.
    outputs.remove_old(out)
    units = {measure.text: measure.unit for measure in measures.values()}
    with _titled(runs):
        written = [
            *pictures.write(table, out, drawn, units, suffixes),
            *paired_plot.write(paired, by, out, pictures.looks_of(table), suffixes),
            *write_differences(differences, out),
            *outputs.write_index(runs, out),
            *(outputs.write_flows(runs, out) if flows else []),
        ]
    sentences = paired_tables.sentences(paired, by, differences, paired_tables.wording_of(runs))
    console.show_lines(paired_tables.shortened(sentences))
    console.show(tables.main_tables(table, paired))
    show_parts = partial(breakdown_tables, labels=labels, show=intervals.format_duration)
    parts = comparison.parts_of(table, comparison.FCT_PARTS)
    console.show_lines([] if parts.is_empty() else tables.breakdown_lines(runs))
    console.show(
        [
            *show_parts(parts, prefix="FCT breakdown, "),
            *show_parts(differences, prefix=f"difference from {reference}, "),
        ]
    )
    if all_tables:
        console.show([*tables.comparison_tables(table), *paired_tables.tables(paired)])
    lines = [
        *paired_tables.notes(paired, by, runs),
        *([f"{BY_FLOW}: geometric mean of ratios"] if all_tables else []),
        *tables.comparison_notes(table, runs, median=median),
        *([] if all_tables else ["`--tables` prints a table for each size, class and ratio"]),
        f"written to {out}: {', '.join(written)}",
        *overrides.shared_environment_lines(base, variations),
        *overrides.dropped_parameters(base, variations),
        *overrides.replaced_values(base, variations),
        *tables.comparison_warnings(table, runs, median=median),
        *without_values,
        *paired_tables.warnings(paired, by),
    ]
    console.show_lines(lines)


def _titled(runs: "Sequence[Run]") -> contextlib.AbstractContextManager[None]:
    """Return a context in which titles of pictures name what stands for whole networks."""
    from sojourn.show.fidelity import fidelity_title
    from sojourn.show.plot.frame import titled

    return titled(fidelity_title(run.result for run in runs))


def _measure(text: str) -> "Measure":
    """Parse a measure; errors name the option."""
    from sojourn.tune import objectives

    with _of_plot(text):
        return objectives.read(text)


def _measured(
    measures: "Mapping[str, Measure]", runs: "Sequence[Run]", median: bool
) -> "tuple[pl.DataFrame | None, list[str]]":
    """Return the table of measures, which are named by their options, and warnings.

    The table is `None` without measures that have values. A measure without one has a warning.
    """
    import polars as pl

    from sojourn.analysis import metrics

    found, warnings = [], []
    for text, measure in measures.items():
        with _of_plot(text):
            measure.check_class(run.result for run in runs)
            measured = metrics.measure(runs, **{measure.text: measure.metric})
        if measured["value"].is_finite().any():
            found.append(measured)
        else:
            warnings.append(
                f"warning: --plot {text}: no run has enough such flows for a value; it is not drawn"
            )
    return metrics.across_seeds(pl.concat(found), median=median) if found else None, warnings


@contextlib.contextmanager
def _of_plot(text: str) -> Iterator[None]:
    """Prepend the option to errors of a measure."""
    try:
        yield
    except ScenarioError as error:
        raise ScenarioError(f"--plot {text}: {error}") from None
