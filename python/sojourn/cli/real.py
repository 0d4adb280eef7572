"""`sojourn real`."""

from typing import Annotated

import typer

from sojourn import scenario
from sojourn.cli.shared import Out, ScenarioFile, about, place


def real(
    path: ScenarioFile,
    repeats: Annotated[
        int, typer.Option(min=1, help="Runs at most, until the relay is in time in one.")
    ] = 3,
    out: Out = None,
) -> None:
    """Run a scenario's flows over the TCP of this machine's kernel, and compare."""
    from sojourn import real as kernel
    from sojourn import real_page, screen

    with about(path):
        given = scenario.read(path)
        out = place(out, "real", path.stem)
        measured = kernel.measure(given, repeats=repeats, what=path.name)
    screen.show(real_page.tables(measured))
    for line in real_page.sentences(measured):
        print(line)
    print(f"written to {out}: {', '.join(real_page.write(measured, out))}")
