"""Catalogue of scenario components, as `sojourn parts` prints it."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from sojourn.show.console import rich_table


def parts_text(catalogue: Mapping[str, Any], kind: str | None) -> list[RenderableType]:
    """Return the catalogue of a family or a component, or the names of all components."""
    if kind is None:
        table = rich_table("family", "parts")
        table.columns[1].justify = "left"
        for family, members in catalogue.items():
            table.add_row(family, ", ".join(part["name"] for part in members))
        return [table, Text("sojourn parts NAME shows the parameters of a family or part")]
    pieces: list[RenderableType] = []
    for family, members in catalogue.items():
        for part in members:
            if kind in (family, part["name"]):
                pieces += [Text(f"{family}: {part['name']}", style="bold"), Text(part["about"])]
                pieces.append(_parameter_table(part["parameters"]))
    return pieces


def _parameter_table(parameters: Iterable[Mapping[str, Any]]) -> Table:
    table = rich_table("parameter", "default", "allowed", "meaning and source")
    for column in table.columns[1:]:
        column.justify = "left"
    for parameter in parameters:
        default = parameter["default"]
        text = default if isinstance(default, str) else json.dumps(default)
        text = "required" if default is None else text
        about, allowed = " ".join(parameter["about"].split()), parameter["allowed"]
        table.add_row(parameter["name"], Text(text), Text(allowed), Text(about))
    return table
