"""Page of all commands, generated from their help."""

import re
from collections.abc import Iterator
from typing import Any

import typer

from sojourn.cli import app

INTRODUCTION = """\
# Commands

`sojourn COMMAND --help` (or `-h`) prints the same. An error is one line on standard error, with \
exit status 2. Ctrl-C ends a command with status 130; finished runs stay in the cache.
"""

EXAMPLE = re.compile(r"Example: `(.*)`")
"""Last paragraph of a command's help."""


def commands() -> dict[str, Any]:
    """Return the commands of the command line by name, in the order of `sojourn --help`."""
    group: Any = typer.main.get_command(app)
    return dict(group.commands)


def commands_page() -> str:
    """Return the page of all commands as Markdown: purpose, example, arguments and options."""
    pages = {name: "\n".join(_section(name, command)) for name, command in commands().items()}
    links = [
        f"* [{name}](#{name}): {_paragraphs(command)[0]}" for name, command in commands().items()
    ]
    return "\n".join([INTRODUCTION, *links, "", *pages.values()])


def _paragraphs(command: Any) -> list[str]:
    return [" ".join(text.split()) for text in command.help.split("\n\n")]


def _section(name: str, command: Any) -> Iterator[str]:
    *purpose, last = _paragraphs(command)
    example = EXAMPLE.fullmatch(last)
    assert example is not None, f"{name}: the help of a command ends with an example"
    yield f"## {name}\n"
    yield "\n\n".join(purpose)
    yield f"\n```sh\n{example[1]}\n```\n"
    context = command.make_context(name, [], resilient_parsing=True)
    records = [record for item in command.params if (record := item.get_help_record(context))]
    if records:
        yield "| argument or option | meaning |\n| --- | --- |"
    for left, text in records:
        meaning = " ".join(text.split()).replace("|", "\\|")
        yield f"| `{left.replace('<int range>', 'N')}` | {meaning} |"
    yield ""
