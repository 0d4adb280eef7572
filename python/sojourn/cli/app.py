"""What runs a command line, whatever the command: its status, and what went wrong in one line.

What a user did wrong is told on the error output, with exit status 2, before anything is written.
"""

import io
import sys
from dataclasses import dataclass
from typing import Annotated

import typer

from sojourn import _core
from sojourn._core import ScenarioError

INTERRUPTED = 130
"""The exit status after Ctrl-C, as shells have it."""

MOST_SIGNS = 2000
"""How long a message may be; what was given may be longer."""

app = typer.Typer(
    name="sojourn",
    help="A laboratory for congestion control, judged by flow completion time.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def main() -> None:
    """Run the command line, and exit with its status."""
    # Names of files may hold bytes, and texts signs, that the terminal's encoding has not.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    sys.exit(invoke(sys.argv[1:]))


def invoke(arguments: list[str]) -> int:
    """Run a command line; return its exit status."""
    message, status = "", 2
    try:
        status = int(app(arguments or ["--help"], prog_name="sojourn", standalone_mode=False) or 0)
    except KeyboardInterrupt:
        status = INTERRUPTED
    except SystemExit as done:  # what completes a line in the shell ends by itself
        status = int(done.code or 0)
    except ScenarioError as error:
        message = str(error)
        if _wanted.traceback:
            print(*getattr(error, "__notes__", ()), sep="\n", file=sys.stderr)
    except OSError as error:
        message = ": ".join(str(part) for part in (error.filename, error.strerror or error) if part)
    except typer.TyperException as error:
        message = getattr(error, "format_message", lambda: "")()
    if status == INTERRUPTED:
        message = "interrupted; what has finished is kept"
    if message:
        print(f"sojourn: {_one_line(message)}", file=sys.stderr)
    return status


def _one_line(message: str) -> str:
    """Return a message without what would end the line, move the cursor or fill the screen."""
    line = "".join(sign if sign.isprintable() else "�" for sign in " ".join(message.split()))
    half = MOST_SIGNS // 2
    return line if len(line) <= MOST_SIGNS else f"{line[:half]} … {line[-half:]}"


@dataclass
class _Wanted:
    """What the options of `sojourn` itself ask for."""

    traceback: bool = False


_wanted = _Wanted()


def _version(wanted: bool) -> None:
    if wanted:
        print(f"sojourn {_core.VERSION} (source {_core.SOURCE_HASH[:12]})")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
    traceback: Annotated[
        bool,
        typer.Option("--traceback", help="Show the way to an error in a controller of your own."),
    ] = False,
) -> None:
    """Take the options of `sojourn` itself."""
    _wanted.traceback = traceback
