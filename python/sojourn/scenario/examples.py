"""What a newcomer starts from: the examples, and a first scenario to change."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sojourn._core import ScenarioError
from sojourn.base import paths
from sojourn.base.errors import FileError
from sojourn.base.messages import did_you_mean
from sojourn.scenario.reading import named_file, parse

FIRST = Path(__file__).with_name("first_scenario.toml")
FIRST_CONTROLLER = paths.EXAMPLES / "controllers" / "gentle.py"


def examples() -> dict[str, Path]:
    """Return the files of the examples, by their names."""
    return {file.stem: file for file in sorted(paths.EXAMPLES.glob("*.toml"))}


def summary(example: Path) -> str:
    """Return what an example shows: the first sentence of the comment that it begins with."""
    comment = re.match(r"(?:#.*\n)*", example.read_text(encoding="utf-8"))
    words = " ".join(line.strip("# ") for line in comment[0].splitlines()) if comment else ""
    return re.split(r"(?<=\.) ", words, maxsplit=1)[0]


def copy_example(name: str, out: Path | None = None) -> list[Path]:
    """Copy an example to `out` (`NAME.toml` here), and the files that it names beside it."""
    known = examples()
    if name not in known:
        raise ScenarioError(f"{name}: there is no such example{did_you_mean(name, known)}")
    example, out = known[name], out or Path(f"{name}.toml")
    if out.is_dir():
        out /= example.name
    copies = {out: example}
    copies |= {out.parent / file: example.parent / file for file in _named_files(parse(example))}
    return _write({file: source.read_text(encoding="utf-8") for file, source in copies.items()})


def write_first(out: Path) -> str:
    """Write a commented first scenario, or a controller if `out` ends in `.py`.

    Returns the command that is next.
    """
    if out.suffix == ".py":
        _write({out: FIRST_CONTROLLER.read_text(encoding="utf-8")})
        return f"sojourn compare SCENARIO --vary transport=dctcp,{out}:Gentle"
    _write({out: FIRST.read_text(encoding="utf-8").replace("FILE.toml", str(out))})
    return f"sojourn run {out}"


def _write(texts: Mapping[Path, str]) -> list[Path]:
    """Write all of the files or, if one exists, none; make folders in that of the first."""
    folder = next(iter(texts)).parent
    for file in texts:
        if file.exists() or file.is_symlink():
            raise FileError(f"{file}: exists already, so nothing was written; give another name")
    for file, text in texts.items():
        try:
            if file.parent != folder:
                file.parent.mkdir(exist_ok=True)
            with file.open("x", encoding="utf-8") as opened:
                opened.write(text)
        except OSError as error:
            # A full disk's has no name.
            raise OSError(error.errno, error.strerror, str(file)) from None
    return list(texts)


def _named_files(value: Any, field: str = "") -> Iterator[str]:
    """Yield the files that a scenario names, as `scenario.with_files` finds them."""
    if (name := named_file(field, value)) is not None:
        yield name
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _named_files(inner, f"{field}.{key}".removeprefix("."))
    elif isinstance(value, list):
        for inner in value:
            yield from _named_files(inner, f"{field}[]")
