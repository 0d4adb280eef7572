"""Writing of scenario files."""

from typing import Any

import tomlkit

from sojourn.scenario.reading import is_file


def as_toml(scenario: dict[str, Any]) -> str:
    """Return the text of a scenario file with this scenario."""
    document = tomlkit.document()
    tables = {name: value for name, value in scenario.items() if isinstance(value, dict)}
    for name, value in scenario.items():
        if name not in tables:
            document.add(name, _item(value))
    for name, fields in tables.items():
        table = tomlkit.table()
        for key, value in fields.items():
            table.add(key, _item(value))
        if document:
            document.add(tomlkit.nl())
        document.add(name, table)
    return tomlkit.dumps(document).strip()


def _item(value: Any) -> Any:
    """Return a value as a TOML item on one line."""
    if isinstance(value, dict):
        inline = tomlkit.inline_table()
        inline.update({key: _item(inner) for key, inner in value.items()})
        return inline
    if isinstance(value, list | tuple):
        array = tomlkit.array()
        array.extend(_item(inner) for inner in value)
        return array
    return tomlkit.item(value)


def with_names(value: Any) -> Any:
    """Return a part of a scenario with the names of files in place of their texts."""
    if is_file(value):
        return value["name"]
    if isinstance(value, dict):
        return {key: with_names(inner) for key, inner in value.items()}
    return [with_names(inner) for inner in value] if isinstance(value, list) else value


def texts(value: Any) -> dict[str, str]:
    """Return the texts of the files of a part of a scenario by their names."""
    if is_file(value):
        return {value["name"]: value["text"]}
    inner = value.values() if isinstance(value, dict) else value
    found: dict[str, str] = {}
    for each in inner if isinstance(value, dict | list) else ():
        found |= texts(each)
    return found
