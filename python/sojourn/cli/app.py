"""Entry point of the command line: runs a command, prints errors in one line, sets the exit status.

Errors of the user are printed to standard error, with exit status 2, before any file is written.
"""

import io
import os
import sys
from dataclasses import dataclass
from typing import Annotated

import typer

from sojourn import _core
from sojourn._core import ScenarioError
from sojourn.cli.shared import caches_in_use

INTERRUPTED = 130
"""Exit status after Ctrl-C: 128 + SIGINT, as in POSIX shells."""

MAX_MESSAGE_LENGTH = 2000
"""Characters of an error message; a message may quote an argument that is longer."""

app = typer.Typer(
    name="sojourn",
    help="A laboratory for congestion control, judged by flow completion time.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Run the command line, and exit with its status."""
    # A pool of threads for linear algebra, which commands hardly use, would start in 0.1 s of CPU.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # File names and texts may contain characters that the terminal's encoding lacks.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    sys.exit(invoke(sys.argv[1:]))


def invoke(arguments: list[str]) -> int:
    """Run a command line; return its exit status."""
    message, status = "", 2
    caches_in_use.clear()
    try:
        status = int(app(arguments or ["--help"], prog_name="sojourn", standalone_mode=False) or 0)
    except KeyboardInterrupt:
        status = INTERRUPTED
    except SystemExit as request:  # Typer's shell completion exits by itself.
        status = int(request.code or 0)
    except ScenarioError as error:
        message = str(error)
        if _global_options.traceback:
            print(*getattr(error, "__notes__", ()), sep="\n", file=sys.stderr)
    except OSError as error:
        message = ": ".join(str(part) for part in (error.filename, error.strerror or error) if part)
    except typer.TyperException as error:
        message = _of_settings(error) or getattr(error, "format_message", lambda: "")()
    if status == INTERRUPTED:
        message = "interrupted" + ("; finished runs are in the cache" if caches_in_use else "")
    if message:
        print(f"sojourn: {_one_line(message)}", file=sys.stderr)
    return status


def _of_settings(error: typer.TyperException) -> str:
    """Return the message about `--set` of a command that lacks it, or an empty string."""
    if getattr(error, "option_name", "") != "--set":
        return ""
    command = getattr(getattr(error, "ctx", None), "command", None)
    options = [name for each in getattr(command, "params", ()) for name in each.opts]
    instead = "use --vary NAME=VALUE" if "--vary" in options else "change the scenario's file"
    return f"no such option: --set; {instead}"


def _one_line(message: str) -> str:
    """Return a message of bounded length without line breaks and control characters."""
    characters = " ".join(message.split())
    line = "".join(character if character.isprintable() else "�" for character in characters)
    half = MAX_MESSAGE_LENGTH // 2
    return line if len(line) <= MAX_MESSAGE_LENGTH else f"{line[:half]} … {line[-half:]}"


@dataclass
class _GlobalOptions:
    """Options of `sojourn` that apply to all commands."""

    traceback: bool = False


_global_options = _GlobalOptions()


def _print_version(is_requested: bool) -> None:
    if is_requested:
        print(f"sojourn {_core.VERSION} (source {_core.SOURCE_HASH[:12]})")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
    traceback: Annotated[
        bool,
        typer.Option("--traceback", help="Show the traceback of an error in a Python controller."),
    ] = False,
) -> None:
    """Store the options that apply to all commands."""
    _global_options.traceback = traceback
