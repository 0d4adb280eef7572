"""`sojourn real`."""

from typing import Annotated

import typer

from sojourn.cli.shared import Out, ScenarioFile, about, place
from sojourn.scenario import reading


def real(
    path: ScenarioFile,
    repeats: Annotated[
        int, typer.Option(min=1, help="Runs at most, until the relay is in time in one.")
    ] = 3,
    out: Out = None,
) -> None:
    """Run a scenario's flows over the TCP of this machine's kernel, and compare."""
    from sojourn.show import console
    from sojourn.validate import kernel, kernel_tables

    with about(path):
        given = reading.read(path)
        out = place(out, "real", path.stem)
        measured = kernel.measure(given, repeats=repeats, what=path.name)
    console.show(kernel_tables.tables(measured))
    for line in kernel_tables.sentences(measured):
        print(line)
    print(f"written to {out}: {', '.join(kernel_tables.write(measured, out))}")
