"""What helps to write scenarios: `sojourn parts`, `schema`, `examples`, `new`, `check`, `trace`."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from sojourn._core import ScenarioError
from sojourn.base import files, messages
from sojourn.cli import completion
from sojourn.cli.shared import ScenarioFile, about
from sojourn.scenario import controller_files, encoding, reading


def parts(
    kind: Annotated[
        str | None,
        typer.Argument(
            metavar="KIND",
            help="A family, a part, or a controller as my.py:Mine.",
            autocompletion=completion.parts,
        ),
    ] = None,
) -> None:
    """Show the parts that scenarios are made of, with every parameter."""
    from sojourn.show import catalogue, console

    families = encoding.parts()
    if controller_files.is_name(kind):
        name = str(kind)
        text = files.read_text(Path(name.rpartition(":")[0]), files.MOST_SETTINGS)
        families, kind = {"transport": [controller_files.part(name, text)]}, "transport"
    shown = catalogue.parts_text(families, kind)
    if not shown:
        names = [part["name"] for members in families.values() for part in members]
        hint = messages.did_you_mean(str(kind), [*families, *names])
        raise ScenarioError(f"{kind}: there is no such family or part{hint}")
    console.console.print(*shown, sep="\n")


def schema(
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="The file to write.")] = None,
) -> None:
    """Show a JSON schema of scenarios, by which editors complete and check them."""
    _put(json.dumps(encoding.schema(), indent=1, ensure_ascii=False) + "\n", out)


def examples(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="The one to copy.", autocompletion=completion.examples),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where to copy it; else NAME.toml.")
    ] = None,
) -> None:
    """List the examples, or copy one and the files that it names."""
    from sojourn.scenario import examples as first_steps

    if name is not None:
        print(f"written: {', '.join(map(str, first_steps.copy_example(name, out)))}")
    elif out is not None:
        raise ScenarioError("--out: wants the name of an example")
    else:
        known = first_steps.examples()
        width = max(map(len, known))
        for each, file in known.items():
            print(f"{each:{width}}  {first_steps.about(file)}")
        print("`sojourn examples NAME` copies one")


def new(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="The file to write.")] = Path(
        "scenario.toml"
    ),
) -> None:
    """Write a first scenario, or a first controller in Python as FILE.py, to change."""
    from sojourn.scenario import examples as first_steps

    print(f"written: {path}; now `{first_steps.write_first(path)}`")


def check(path: ScenarioFile) -> None:
    """Check a scenario, and show it as JSON with every default filled in."""
    with about(path):
        shown = encoding.check(reading.read(path))
    print(json.dumps(shown, indent=2, ensure_ascii=False))


def trace(
    path: ScenarioFile,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="The CSV file to write.")] = None,
) -> None:
    """Write the workload of a scenario as CSV, which a workload of kind `trace` replays."""
    from sojourn.runs.results import flow_table

    with about(path):
        flows = flow_table(encoding.trace(reading.read(path)))
    columns = ("start_s", "source", "target", "size_bytes", "class", "deadline_s")
    # Twelve digits are picoseconds: the core's clock, exactly.
    _put(flows.select(columns).write_csv(float_precision=12), out)


def _put(text: str, out: Path | None) -> None:
    """Write a text to a file, or if there is none to the screen."""
    if out is None:
        sys.stdout.write(text)
        sys.stdout.flush()
    else:
        files.write_text(out, text)
