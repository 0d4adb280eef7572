"""Command line: `sojourn run`, `compare`, `figure`, `report`, `parts` and the other commands.

Each command is a function in a file of this package and an entry of `COMMANDS`. `app` runs a
command and prints its errors; `shared` defines options of several commands. A command imports the
packages that do its work when it runs, because `sojourn --help` must not wait for them.
"""

from sojourn.cli import (
    bench,
    compare,
    explain,
    export,
    figure,
    import_,
    plot,
    real,
    run,
    scenarios,
    tune,
    validate,
    view,
)
from sojourn.cli.app import app, invoke, main

COMMANDS = (
    run.run,
    compare.compare,
    explain.explain,
    plot.plot,
    view.view,
    tune.tune,
    figure.figure,
    figure.report,
    scenarios.parts,
    scenarios.schema,
    scenarios.examples,
    scenarios.new,
    scenarios.check,
    scenarios.trace,
    scenarios.fold,
    import_.import_,
    export.export,
    validate.validate,
    real.real,
    bench.bench,
)
"""Commands in the order of `sojourn --help`."""

__all__ = ["COMMANDS", "app", "invoke", "main"]

for command in COMMANDS:
    # `import` is a keyword of Python.
    app.command(command.__name__.rstrip("_"))(command)
