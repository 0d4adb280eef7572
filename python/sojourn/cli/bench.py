"""`sojourn bench`."""

import json
from typing import Annotated

import typer

from sojourn import _core
from sojourn._core import ScenarioError
from sojourn.cli import completion


def bench(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME",
            help="W1 to W4, W5-TCP, W5-RCP, W6 to W10, W10-Reno, W14, W15, W15-few.",
            autocompletion=completion.benchmarks,
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a list of objects.")] = False,
    repeats: Annotated[int, typer.Option(min=1, help="Runs; the fastest counts.")] = 5,
    threads: Annotated[
        int,
        typer.Option(
            min=1, max=_core.MOST_THREADS, help="Threads of each run; more are compared with one."
        ),
    ] = 1,
) -> None:
    """Measure speed and memory on fixed scenarios."""
    from sojourn.bench import measure as benchmark
    from sojourn.bench import scenarios

    known = scenarios.SCENARIOS
    for name in names or ():
        if name not in known:
            raise ScenarioError(f"{name}: there is no such scenario (one of {', '.join(known)})")
    measured = benchmark.measure(names or known, repeats, threads)
    if as_json:
        print(json.dumps(measured, indent=2))
    else:
        from sojourn.bench import tables
        from sojourn.show import console

        table = tables.bench_table if threads == 1 else tables.threads_table
        console.console.print(table(measured))
