"""`sojourn view`: a page of one run or two in the browser."""

import os
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from sojourn.base.errors import FileError
from sojourn.cli.shared import Fresh, Memory, Threads, checked_directory, prefix_errors


def view(
    path: Annotated[
        Path,
        typer.Argument(metavar="RESULT", help="Folder of `sojourn run --out`, or scenario file."),
    ],
    second: Annotated[
        Path | None,
        typer.Argument(metavar="SECOND", help="Result or scenario to compare with the first."),
    ] = None,
    vary: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=A,B", help="Compare two values of a parameter."),
    ] = None,
    scheme: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Scheme of the scenario's table `schemes`; may be given twice."
        ),
    ] = None,
    flow: Annotated[
        list[int] | None,
        typer.Option(min=0, help="Flow to record packet by packet; may be repeated."),
    ] = None,
    most: Annotated[
        str, typer.Option(metavar="NUMBER|all", help="Largest number of flows in the page.")
    ] = "100000",
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="File of the page (default: results/view/NAME.html)."),
    ] = None,
    no_open: Annotated[
        bool, typer.Option("--no-open", help="Write the page without opening it.")
    ] = False,
    threads: Threads = None,
    memory: Memory = None,
    fresh: Fresh = False,
) -> None:
    """Show one run, or two compared, as an interactive page.

    The page is one file that works offline. A folder is read; a scenario is run with the FCT
    breakdown first.

    Example: `sojourn view scenario.toml --vary transport=dctcp,swift`
    """
    from sojourn.cli.shared import run_options
    from sojourn.view import loading, page

    largest = _most(most)
    paths = [path] if second is None else [path, second]
    name = "-".join(each.absolute().stem for each in paths)
    file = out or Path("results") / "view" / f"{name}.html"
    if file.is_dir():
        raise FileError(f"--out {file}: is a directory; expected the name of a file")
    checked_directory(file.parent)
    options = run_options(threads, None, memory, fresh) | {"what": path.name}
    with prefix_errors(*paths):
        runs = loading.load(paths, vary or [], flow or [], options, scheme or [])
        file.parent.mkdir(parents=True, exist_ok=True)
        source = [*map(str, paths), *(word for text in vary or [] for word in ("--vary", text))]
        source += [word for name in scheme or [] for word in ("--scheme", name)]
        page.write(runs, file, source=shlex.join(source), most=largest)
    print(f"written to {file}")
    if not no_open and _has_display():
        typer.launch(file.absolute().as_uri())


def _most(text: str) -> int | None:
    """Return the number in `--most`, or None for `all`."""
    if text == "all":
        return None
    if not text.isdecimal() or int(text) == 0:
        raise FileError(f"--most {text}: expected a positive number, or all")
    return int(text)


def _has_display() -> bool:
    is_desktop = sys.platform in {"darwin", "win32"}
    return is_desktop or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
