"""`sojourn tune`."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from sojourn.base import files
from sojourn.cli.shared import (
    Cluster,
    Memory,
    Out,
    ScenarioFile,
    Threads,
    about,
    place,
    run_options,
)
from sojourn.scenario import reading

if TYPE_CHECKING:
    from sojourn.tune.trials import Tuned


def tune(
    path: ScenarioFile,
    parameter: Annotated[
        list[str],
        typer.Option(
            metavar="NAME=RANGE",
            help="A range, as 0.01:1, 0.01:1:log, 10 KB:200 KB, or values; may be repeated.",
        ),
    ],
    minimise: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MEASURE", help="As `p99 slowdown of <= 100 KB`; two goals make a front."
        ),
    ] = None,
    maximise: Annotated[
        list[str] | None, typer.Option(metavar="MEASURE", help="As `utilisation`.")
    ] = None,
    subject_to: Annotated[
        list[str] | None,
        typer.Option(metavar="BOUND", help="As `utilisation >= 0.9`; may be repeated."),
    ] = None,
    trials: Annotated[int, typer.Option(min=1, help="Choices to try.")] = 100,
    seeds: Annotated[int, typer.Option(min=1, help="Runs of each, if it does well.")] = 3,
    at_once: Annotated[int, typer.Option(min=1, help="Trials that are chosen together.")] = 8,
    out: Out = None,
    threads: Threads = None,
    cluster: Cluster = None,
    memory: Memory = None,
    fresh: Annotated[bool, typer.Option(help="Begin again, and run again what is known.")] = False,
) -> None:
    """Search for the parameters that are best, and measure their gain on fresh seeds."""
    from sojourn.show import console
    from sojourn.tune import plot, ranges, tables
    from sojourn.tune import study as tuning

    def tell(so_far: "Tuned") -> None:
        print(f"{path.name}: {tables.progress(so_far)}", file=sys.stderr, flush=True)

    with about(path):
        base = reading.read(path)
        out = place(out, "tune", path.stem)
        tuned = tuning.search(
            base,
            ranges.parse(parameter),
            minimise=minimise or (),
            maximise=maximise or (),
            subject_to=subject_to or (),
            trials=trials,
            seeds=seeds,
            at_once=at_once,
            journal=out / "trials.journal",
            again=fresh,
            tell=tell,
            what=path.name,
            **run_options(threads, cluster, memory, fresh),
        )
    console.show([tables.table(tuned)])
    for line in tables.sentences(tuned):
        print(line)
    with files.writing(out / "trials.parquet"):
        tuned.trials.write_parquet(out / "trials.parquet")
    plot.draw(tuned, out / "tune")
    best = [file.name for file in tables.write_best(tuned, path, out)]
    print(f"written to {out}: {', '.join(['trials.parquet', 'tune.svg', 'tune.png', *best])}")
