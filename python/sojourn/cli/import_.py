"""`sojourn import`: files of other tools become a scenario."""

from pathlib import Path
from typing import Annotated

import typer

from sojourn._core import ScenarioError
from sojourn.cli import completion
from sojourn.cli.shared import checked_directory


def import_(
    paths: Annotated[list[Path], typer.Argument(metavar="FILE", help="Files to import.")],
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder for the new files.")] = Path(
        "imported"
    ),
    formats: Annotated[
        list[str] | None,
        typer.Option(
            "--as",
            metavar="FORMAT",
            help="Format of each file in turn, if not to be recognised.",
            autocompletion=completion.formats,
        ),
    ] = None,
    unit: Annotated[
        str | None,
        typer.Option(
            metavar="UNIT",
            help="Unit of sizes (bytes, packets) or of starts in a connection matrix (ps, us).",
        ),
    ] = None,
    links: Annotated[
        list[str] | None,
        typer.Option(
            "--link",
            metavar="LINK",
            help="Link of each rate trace in turn (default: left->right, right->left).",
        ),
    ] = None,
    rates_hold: Annotated[
        str | None,
        typer.Option(
            metavar="WHEN",
            help="Whether a row's rate applies after its time (default) or before it.",
        ),
    ] = None,
) -> None:
    """Convert files of other tools to a scenario.

    Topologies, flows, sizes and traces of HPCC (and ConWeave, SimAI, ns3-datacenter, Parsimon),
    htsim, Homa, ns-2, Mahimahi, Pensieve. Files are recognised by their content.

    Example: `sojourn import topology.txt flow.txt --out imported`
    """
    from sojourn.base import files
    from sojourn.imports import scenario
    from sojourn.imports.parts import Options

    if rates_hold not in (None, "after", "before"):
        raise ScenarioError(f"--rates-hold: must be after or before, not {rates_hold}")
    options = Options(unit=unit, rates_hold=rates_hold)
    imported = scenario.convert(paths, names=formats or (), options=options, links=links or ())
    checked_directory(out).mkdir(parents=True, exist_ok=True)
    files.write_new({out / name: text for name, text in imported.texts.items()}, out)
    for line in imported.lines:
        print(line)
    print(f"written to {out}: {', '.join(sorted(imported.texts))}")
    print(f"now `sojourn run {out / scenario.SCENARIO}`")
