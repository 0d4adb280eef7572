"""`sojourn bench`."""

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
            help="Names: W1 to W4, W5-TCP, W5-RCP, W6 to W10, W10-Reno, W11 to W18, W14-slow, "
            "W15-few.",
            autocompletion=completion.benchmarks,
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON: a list of objects.")] = False,
    repeats: Annotated[
        int, typer.Option(min=1, help="Runs of each benchmark; the fastest is reported.")
    ] = 5,
    threads: Annotated[
        int,
        typer.Option(
            min=1,
            max=_core.MOST_THREADS,
            help="Threads of each run; if more than 1, the speed-up over 1 thread is reported.",
        ),
    ] = 1,
) -> None:
    """Measure speed and memory on fixed scenarios.

    Example: `sojourn bench W1 --repeats 3`
    """
    import json

    from sojourn.base.messages import did_you_mean
    from sojourn.bench.measure import measure
    from sojourn.bench.scenarios import SCENARIOS

    for name in names or ():
        if name not in SCENARIOS:
            hint = did_you_mean(name, SCENARIOS)
            raise ScenarioError(
                f"{name}: unknown benchmark, expected one of {', '.join(SCENARIOS)}{hint}"
            )
    measurements = measure(names or SCENARIOS, repeats, threads)
    if as_json:
        print(json.dumps(measurements, indent=2))
    else:
        from sojourn.bench import tables
        from sojourn.show import console

        table = tables.bench_table if threads == 1 else tables.threads_table
        console.console.print(table(measurements))
