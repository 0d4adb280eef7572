"""`sojourn tune`: search for the best parameters."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from sojourn.cli.shared import (
    Cluster,
    Fidelity,
    Memory,
    Out,
    ScenarioFile,
    Scheme,
    Threads,
    output_directory,
    prefix_errors,
    run_options,
    with_fidelity,
)

if TYPE_CHECKING:
    from sojourn.tune.trials import Tuned


def tune(
    path: ScenarioFile,
    parameter: Annotated[
        list[str],
        typer.Option(
            metavar="NAME=RANGE",
            help="Range, such as 0.01:1, 0.01:1:log, 10 KB:200 KB, or values; may be repeated.",
        ),
    ],
    minimise: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MEASURE",
            help="Such as `p99 slowdown of <= 100 KB`; two objectives give a Pareto front.",
        ),
    ] = None,
    maximise: Annotated[
        list[str] | None, typer.Option(metavar="MEASURE", help="Such as `utilisation`.")
    ] = None,
    subject_to: Annotated[
        list[str] | None,
        typer.Option(metavar="BOUND", help="Such as `utilisation >= 0.9`; may be repeated."),
    ] = None,
    scheme: Scheme = None,
    fidelity: Fidelity = None,
    trials: Annotated[
        int, typer.Option(min=1, help="Maximum number of parameter choices to try.")
    ] = 100,
    patience: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="End when N trials improve nothing by 1 % (default: 10, and 10 per parameter).",
        ),
    ] = None,
    seeds: Annotated[
        int, typer.Option(min=1, help="Seeds per trial; inferior trials stop after fewer.")
    ] = 3,
    at_once: Annotated[
        int, typer.Option(min=1, help="Trials that are chosen and run together.")
    ] = 8,
    out: Out = None,
    threads: Threads = None,
    cluster: Cluster = None,
    memory: Memory = None,
    fresh: Annotated[
        bool, typer.Option(help="Discard earlier trials and ignore the cache.")
    ] = False,
) -> None:
    """Search for the best parameters of a scenario.

    Measures the gain of the best choice on new seeds.

    Example: `sojourn tune my.toml --parameter gain=0.1:1 --minimise "mean fct"`
    """
    from sojourn.base import files
    from sojourn.scenario import overrides, reading
    from sojourn.show import console
    from sojourn.tune import plot, ranges, tables
    from sojourn.tune import study as tuning

    def report(so_far: "Tuned") -> None:
        print(f"{path.name}: {tables.progress(so_far)}", file=sys.stderr, flush=True)

    with prefix_errors(path):
        base = overrides.choose_scheme(reading.read(path), scheme)
        base = with_fidelity(base, fidelity)
        out = output_directory(out, "tune", path.stem)
        tuned = tuning.search(
            base,
            ranges.parse(parameter),
            minimise=minimise or (),
            maximise=maximise or (),
            subject_to=subject_to or (),
            trials=trials,
            patience=patience,
            seeds=seeds,
            at_once=at_once,
            journal=out / "trials.journal",
            again=fresh,
            report=report,
            what=path.name,
            **run_options(threads, cluster, memory, fresh),
        )
    with files.writing(out / "trials.parquet"):
        tuned.trials.write_parquet(out / "trials.parquet")
    plot.draw(tuned, out / "tune")
    best = [file.name for file in tables.write_best(tuned, path, out, scheme)]
    console.show([tables.table(tuned)])
    for line in tables.sentences(tuned):
        print(line)
    print(f"written to {out}: {', '.join(['trials.parquet', 'tune.svg', 'tune.png', *best])}")
