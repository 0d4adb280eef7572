"""The command line: `sojourn run`, `compare`, `figure`, `report`, `parts` and the rest.

A command is a function in one of the files here, and a line in this list. `app` runs it and tells
what went wrong; `shared` has what several commands need. What a command does is done by the lab.
"""

from sojourn.cli import bench, compare, explain, figure, real, run, scenarios, tune, validate
from sojourn.cli.app import app, invoke, main

COMMANDS = (
    run.run,
    compare.compare,
    explain.explain,
    tune.tune,
    figure.figure,
    figure.report,
    scenarios.parts,
    scenarios.schema,
    scenarios.examples,
    scenarios.new,
    scenarios.check,
    scenarios.trace,
    validate.validate,
    real.real,
    bench.bench,
)
"""In the order of `sojourn --help`."""

__all__ = ["COMMANDS", "app", "invoke", "main"]

for command in COMMANDS:
    app.command()(command)
