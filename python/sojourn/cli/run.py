"""`sojourn run`: one run and its summary."""

from typing import Annotated

import typer

from sojourn.cli.shared import (
    Fidelity,
    Memory,
    Out,
    Percentiles,
    Precision,
    ScenarioFile,
    Scheme,
    Threads,
    checked_directory,
    parse_percentiles,
    prefix_errors,
    with_fidelity,
)


def run(
    path: ScenarioFile,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Change a field; may be repeated."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Seed (default: that of the scenario).")
    ] = None,
    scheme: Scheme = None,
    fidelity: Fidelity = None,
    precision: Precision = None,
    percentiles: Percentiles = None,
    out: Out = None,
    threads: Threads = None,
    memory: Memory = None,
) -> None:
    """Run a scenario, and print a summary.

    Example: `sojourn run scenario.toml --out out`
    """
    from sojourn.analysis.metrics import STATISTICS
    from sojourn.runs.runner import run_many
    from sojourn.scenario import environments, overrides, reading
    from sojourn.show import console
    from sojourn.show.result import result_tables

    statistics = STATISTICS if percentiles is None else ("mean", *parse_percentiles(percentiles))
    with prefix_errors(path):
        scenario = overrides.choose_scheme(reading.read(path), scheme)
        scenario = with_fidelity(scenario, fidelity, precision)
        settings = overrides.parse_settings(set_ or ())
        varied = {name: [value] for name, value in settings.items()}
        dropped = overrides.dropped_parameters(scenario, varied) if settings else []
        scenario = overrides.with_settings(scenario, settings)
        scenario |= {} if seed is None else {"seed": seed}
        if out is not None:
            checked_directory(out)
        result = run_many([scenario], threads=threads, memory=memory, what=path.name)[0]
    try:
        if out is not None:
            result.write(out)
    finally:
        # A result that cannot be written, as on a full disk, is printed at least.
        # In a pipe a note is one line.
        is_piped = not console.console.is_terminal
        is_automatic = environments.is_free(scenario)
        tables = result_tables(result, statistics, is_automatic=is_automatic)
        console.console.print(tables, soft_wrap=is_piped)
        console.show_lines(dropped)
    print(
        f"written to {out}"
        if out
        else "results are not stored; `--out DIR` writes flows and summary"
    )
