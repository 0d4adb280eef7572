"""Catalogue of scenario components, as `sojourn parts` prints it."""

import json
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from sojourn.show.console import console, rich_table

ALIASES = {
    "reno": "tcp",
    "newreno": "tcp",
    "bbrv1": "bbr",
    "bbrv3": "bbr3",
    "wfq": "fair_queueing",
}
"""Other names of components, which their descriptions do not contain."""


def overview(catalogue: Mapping[str, Any]) -> list[RenderableType]:
    """Return one line for each component, under the name of its family."""
    rows = []
    for family, members in catalogue.items():
        names = [part["name"] for part in members]
        rows += [] if names == [family] else [(family, "")]
        indent = "" if names == [family] else "  "
        rows += [(f"{indent}{part['name']}", _first_sentence(part["about"])) for part in members]
    hint = "`sojourn parts NAME` shows parameters, `sojourn parts WORDS` searches"
    return [_lines(("part", "meaning"), rows), Text(hint)]


def parts_text(catalogue: Mapping[str, Any], name: str) -> list[RenderableType]:
    """Return the family or the components with a name, with all parameters; case is ignored."""
    pieces: list[RenderableType] = []
    name = ALIASES.get(_plain(name), name)
    for family, members in catalogue.items():
        for part in members:
            if _plain(name) in (_plain(family), _plain(part["name"])):
                pieces += [Text(f"{family}: {part['name']}", style="bold"), Text(part["about"])]
                pieces += _parameter_tables(part["parameters"])
                if changed := _set_by_environments(catalogue, family, part):
                    names = ", ".join(changed)
                    pieces.append(
                        Text(
                            f"environments other than `paper` have values of their own for {names}:"
                            " `sojourn parts environment`"
                        )
                    )
    return pieces


def _set_by_environments(
    catalogue: Mapping[str, Any], family: str, part: Mapping[str, Any]
) -> list[str]:
    """Return the parameters of a part to which some environment gives a value."""
    if family in {"environment", "fluid"}:
        return []
    given = {
        row["name"] for member in catalogue.get("environment", []) for row in member["parameters"]
    }
    owners = ("", f"{part['name']}.", f"{family}.", f"{family}.{part['name']}.")
    names = [row["name"] for row in part["parameters"]]
    return [name for name in names if any(f"{owner}{name}" in given for owner in owners)]


def field_text(catalogue: Mapping[str, Any], name: str) -> list[RenderableType]:
    """Return the row of a field of a scenario, if it has this name."""
    rows = [
        row
        for part in catalogue["scenario"]
        for row in part["parameters"]
        if _plain(row["name"]) == _plain(name)
    ]
    return [Text(f"scenario: {name}", style="bold"), *_parameter_tables(rows)] if rows else []


def value_text(catalogue: Mapping[str, Any], name: str) -> list[RenderableType]:
    """Return the meanings of a value of parameters, if it has this name."""
    rows = [
        (parameter, value, meaning)
        for parameter, value, meaning in _values(catalogue)
        if _plain(value) == _plain(name)
    ]
    return [_value_table(rows)] if rows else []


def search(catalogue: Mapping[str, Any], words: str) -> list[RenderableType]:
    """Return the components, parameters and values whose names or meanings contain the words.

    Fields of a scenario and values with this name are left out: `field_text` and `value_text` show
    them.
    """
    matches = _matches(catalogue, words)
    rows = {name: meaning for name, meaning in matches if _plain(name) != _plain(words)}
    if not rows:
        return []
    table = _lines(("part or parameter", "meaning"), rows.items())
    return [table, Text("`sojourn parts NAME` shows a part and its parameters")]


def _matches(catalogue: Mapping[str, Any], words: str) -> Iterator[tuple[str, str]]:
    """Yield names and meanings: of components, then of parameters, each meaning once."""
    parts = re.split(r"[\s_-]+", words.strip())
    # At the start of a word: `ecn` is not in `decnet`.
    pattern = re.compile(r"(?<![a-z0-9])" + r"[\s_-]*".join(map(re.escape, parts)), re.IGNORECASE)
    named = [
        (family, part, parameter)
        for family, members in catalogue.items()
        for part in members
        # The parameters of environments are those of other components.
        for parameter in (None, *(part["parameters"] if family != "environment" else ()))
    ]
    components = [(family, part) for family, part, parameter in named if parameter is None]
    for family, part in components:
        if pattern.search(f"{part['name']} {part['about']}"):
            yield f"{family}: {part['name']}", _first_sentence(part["about"])
    meanings = set()
    for family, part, parameter in named:
        if parameter is None or (family, parameter["about"]) in meanings:
            continue
        if pattern.search(f"{parameter['name']} {parameter['about']}"):
            meanings.add((family, parameter["about"]))
            yield _full_name(part, parameter), " ".join(parameter["about"].split())
    for parameter, value, meaning in _values(catalogue):
        if _plain(value) != _plain(words) and pattern.search(f"{value} {meaning}"):
            yield f'{parameter} = "{value}"', meaning


def _values(catalogue: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield parameters, their values that are words, and the meanings, each meaning once."""
    known = set()
    for family, members in catalogue.items():
        # The parameters of environments are those of other components.
        for part in members if family != "environment" else ():
            for parameter in part["parameters"]:
                name = parameter["name"].rpartition(".")[2]
                for value, meaning in parameter.get("values", {}).items():
                    if (key := (name, value, meaning)) not in known:
                        known.add(key)
                        yield _full_name(part, parameter), value, meaning


def _full_name(part: Mapping[str, Any], parameter: Mapping[str, Any]) -> str:
    """Return the name of a parameter with that of its component."""
    owner = "" if part["name"] == "scenario" else f"{part['name']}."
    return f"{owner}{parameter['name']}"


def _plain(name: str) -> str:
    """Return a name in lower case without separators, such as `fattree` for `Fat-tree`."""
    return re.sub(r"[\s_-]+", "", name).lower()


def _first_sentence(text: str) -> str:
    return re.split(r"(?<=\.)\s", " ".join(text.split()), maxsplit=1)[0]


def _lines(columns: tuple[str, str], rows: Iterable[tuple[str, str]]) -> Table:
    """Return a table of one line for each row; meanings are shortened to the console's width."""
    rows = list(rows)
    table = rich_table(*columns)
    table.columns[1].justify = "left"
    # Three spaces are between the columns, and two at each end.
    width = console.width - max(len(name) for name, _ in rows) - 7
    for name, meaning in rows:
        table.add_row(Text(name), Text(textwrap.shorten(meaning, max(width, 20), placeholder=" …")))
    return table


def _parameter_tables(parameters: Iterable[Mapping[str, Any]]) -> list[Table]:
    """Return the table of parameters, and that of the meanings of their values."""
    table = rich_table("parameter", "default", "allowed", "meaning and source")
    for column in table.columns[1:]:
        column.justify = "left"
    values = []
    for parameter in parameters:
        default = parameter["default"]
        text = default if isinstance(default, str) else json.dumps(default)
        text = "required" if default is None else text
        about, allowed = " ".join(parameter["about"].split()), parameter["allowed"]
        table.add_row(parameter["name"], Text(text), Text(allowed), Text(about))
        values += [
            (parameter["name"], value, meaning)
            for value, meaning in parameter.get("values", {}).items()
        ]
    return [table, _value_table(values)] if values else [table]


def _value_table(rows: Iterable[tuple[str, str, str]]) -> Table:
    """Return a table of parameters, values and meanings; a parameter stands at its first value."""
    table = rich_table("parameter", "value", "meaning")
    for column in table.columns[1:]:
        column.justify = "left"
    # Names stay whole, so that meanings are wrapped first.
    for column in table.columns[:2]:
        column.no_wrap = True
    last = ""
    for parameter, value, meaning in rows:
        table.add_row(parameter if parameter != last else "", Text(value), Text(meaning))
        last = parameter
    return table
