"""Shared elements of tests of imports."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sojourn.imports import scenario
from sojourn.imports.parts import Options
from sojourn.imports.scenario import Imported

Convert = Callable[..., Imported]


@pytest.fixture
def convert(tmp_path: Path) -> Convert:
    """Return a function that converts texts, each given by its file name."""

    def converted(files: dict[str, str], **options: Any) -> Imported:
        for name, text in files.items():
            (tmp_path / name).write_text(text, encoding="utf-8")
        given = {name: options.pop(name) for name in ("names", "links") if name in options}
        paths = [tmp_path / name for name in files]
        return scenario.convert(paths, options=Options(**options), **given)

    return converted


def write(imported: Imported, folder: Path) -> Path:
    """Write a scenario; return its file."""
    for name, text in imported.texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder / scenario.SCENARIO
