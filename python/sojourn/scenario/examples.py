"""Examples to copy, and a first scenario or controller to edit."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sojourn._core import ScenarioError
from sojourn.base import paths
from sojourn.base.files import write_new
from sojourn.base.messages import did_you_mean
from sojourn.scenario.reading import named_file, parse

FIRST = Path(__file__).with_name("first_scenario.toml")
FIRST_CONTROLLER = paths.EXAMPLES / "controllers" / "gentle.py"


def examples() -> dict[str, Path]:
    """Return the files of the examples by name."""
    return {file.stem: file for file in sorted(paths.EXAMPLES.glob("*.toml"))}


def summary(example: Path) -> str:
    """Return the first sentence of the comment at the top of an example."""
    comment = re.match(r"(?:#.*\n)*", example.read_text(encoding="utf-8"))
    words = " ".join(line.strip("# ") for line in comment[0].splitlines()) if comment else ""
    return re.split(r"(?<=\.) ", words, maxsplit=1)[0]


def copy_example(name: str, out: Path | None = None) -> list[Path]:
    """Copy an example to `out` (default: `NAME.toml`), with the files that it names."""
    files = examples()
    if name not in files:
        raise ScenarioError(f"{name}: unknown example{did_you_mean(name, files)}")
    example, out = files[name], out or Path(f"{name}.toml")
    if out.is_dir():
        out /= example.name
    copies = {out: example}
    copies |= {out.parent / file: example.parent / file for file in _named_files(parse(example))}
    return write_new({file: source.read_text(encoding="utf-8") for file, source in copies.items()})


def write_first(out: Path) -> str:
    """Write a commented first scenario, or a controller if `out` ends in `.py`.

    Returns the command to use next.
    """
    if out.suffix == ".py":
        write_new({out: FIRST_CONTROLLER.read_text(encoding="utf-8")})
        return f"sojourn compare SCENARIO --vary transport=dctcp,{out}:Gentle"
    write_new({out: FIRST.read_text(encoding="utf-8").replace("FILE.toml", str(out))})
    return f"sojourn run {out}"


def _named_files(value: Any, field: str = "") -> Iterator[str]:
    """Yield the files that a scenario names, as `reading.with_files` finds them."""
    if (name := named_file(field, value)) is not None:
        yield name
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _named_files(inner, f"{field}.{key}".removeprefix("."))
    elif isinstance(value, list):
        for inner in value:
            yield from _named_files(inner, f"{field}[]")
