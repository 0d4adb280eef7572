"""`sojourn real`: a scenario's flows over the TCP of this machine's kernel."""

from typing import Annotated

import typer

from sojourn.cli.shared import Out, ScenarioFile, Scheme, output_directory, prefix_errors


def real(
    path: ScenarioFile,
    repeats: Annotated[
        int,
        typer.Option(min=1, help="Most attempts, until the emulator meets all deadlines in one."),
    ] = 3,
    scheme: Scheme = None,
    out: Out = None,
) -> None:
    """Run a scenario over this machine's kernel TCP, and compare.

    Example: `sojourn real scenario.toml`
    """
    from sojourn.scenario import overrides, reading
    from sojourn.show import console
    from sojourn.validate import kernel, kernel_tables

    with prefix_errors(path):
        scenario = overrides.choose_scheme(reading.read(path), scheme)
        out = output_directory(out, "real", path.stem)
        measured = kernel.measure(scenario, repeats=repeats, what=path.name)
    written = kernel_tables.write(measured, out)
    console.show(kernel_tables.tables(measured))
    for line in kernel_tables.sentences(measured):
        print(line)
    print(f"written to {out}: {', '.join(written)}")
