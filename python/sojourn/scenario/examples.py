"""Examples to copy, and a first scenario or controller to edit."""

import ast
import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeGuard

from sojourn._core import ScenarioError
from sojourn.base import paths
from sojourn.base.files import write_new
from sojourn.base.messages import did_you_mean
from sojourn.scenario import controller_files
from sojourn.scenario.reading import named_file, parse

FIRST = Path(__file__).with_name("first_scenario.toml")
FIRST_CONTROLLER = paths.EXAMPLES / "controllers" / "gentle.py"


def examples() -> dict[str, Path]:
    """Return the files of the examples by name."""
    return {file.stem: file for file in sorted(paths.EXAMPLES.glob("*.toml"))}


def all_examples() -> dict[str, Path]:
    """Return all files that can be copied by name: examples, controllers, scripts, notebooks."""
    others = sorted([*paths.EXAMPLES.rglob("*.py"), *paths.EXAMPLES.rglob("*.ipynb")])
    return examples() | {_place(file).as_posix(): file for file in others}


def _place(file: Path) -> Path:
    """Return the path of a file in the folder of the examples."""
    return file.relative_to(paths.EXAMPLES)


def summary(example: Path) -> str:
    """Return the first sentence of the comment at the top of an example."""
    text = example.read_text(encoding="utf-8")
    if example.suffix == ".py":
        words = " ".join((ast.get_docstring(ast.parse(text)) or "").split())
    elif example.suffix == ".ipynb":
        # The paragraph below the title.
        words = str(json.loads(text)["cells"][0]["source"]).rpartition("\n\n")[2]
    else:
        comment = re.match(r"(?:#.*\n)*", text)
        words = " ".join(line.strip("# ") for line in comment[0].splitlines()) if comment else ""
    return re.split(r"(?<=\.) ", words, maxsplit=1)[0]


def copy_example(name: str, out: Path | None = None) -> list[Path]:
    """Copy an example to `out` (default: its name), with the files that it needs.

    Files keep their places relative to each other. A needed file that exists with the same content
    is not written.
    """
    example = _find(name)
    folder = Path() if out is None else out if out.is_dir() else out.parent
    if out is None or out.is_dir():
        out = folder / _place(example)
    copies = {out: example}
    for file in sorted(_needed_files(example)):
        place = Path(os.path.relpath(file, example.parent))
        if ".." in place.parts and out.parent.name in ("", ".."):
            raise ScenarioError(f"--out: {name} needs {place.as_posix()}; name a folder instead")
        copies[Path(os.path.normpath(out.parent / place))] = file
    texts = {file: source.read_text(encoding="utf-8") for file, source in copies.items()}
    kept = {file for file in texts if file != out and _contains(file, texts[file])}
    return write_new({file: text for file, text in texts.items() if file not in kept}, folder)


def _find(name: str) -> Path:
    """Return the example of a name, with or without folder and suffix."""
    files = all_examples()
    for file in files.values():
        place = _place(file)
        if name in {place.as_posix(), place.with_suffix("").as_posix(), file.name, file.stem}:
            return file
    hint = did_you_mean(name, [*files, *(file.stem for file in files.values())])
    raise ScenarioError(f"{name}: unknown example{hint} (`sojourn examples` lists all)")


def _needed_files(example: Path) -> set[Path]:
    """Return the files that an example imports, reads or names, and the files that these need."""
    found, pending = {example}, [example]
    while pending:
        file = pending.pop()
        new: set[Path] = set()
        if file.suffix == ".toml":
            new = {file.parent / name for name in _named_files(parse(file))}
        elif file.suffix == ".py":
            text = file.read_text(encoding="utf-8")
            words = {node.value for node in ast.walk(ast.parse(text)) if _is_text(node)}
            scenarios = {path for stem, path in examples().items() if f"{stem}.toml" in words}
            beside = controller_files.read_neighbours(file, text)
            new = scenarios | {file.parent / name for name in beside}
        pending += new - found
        found |= new
    return found - {example}


def _is_text(node: ast.AST) -> TypeGuard[ast.Constant]:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _contains(file: Path, text: str) -> bool:
    return file.is_file() and file.read_text(encoding="utf-8", errors="replace") == text


def write_first(out: Path) -> str:
    """Write a commented first scenario, or a controller if `out` ends in `.py`.

    Returns the command to use next.
    """
    if out.suffix == ".py":
        write_new({out: FIRST_CONTROLLER.read_text(encoding="utf-8")}, out.parent)
        return f"sojourn compare SCENARIO --vary transport=dctcp,{out}:Gentle"
    write_new({out: FIRST.read_text(encoding="utf-8").replace("FILE.toml", str(out))}, out.parent)
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
