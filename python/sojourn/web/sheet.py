"""Page as one HTML file: a template with styles, data blocks and one script."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

FOLDER = Path(__file__).parent

STYLES = ("vendor/uPlot.min.css", "base.css")
SCRIPTS = ("vendor/uPlot.iife.min.js", "base.js", "layers.js", "axes.js", "frame.js")
"""Scripts of every page; they are one module, so that equal names are an error."""


def render(
    template: str, scripts: Sequence[str], blocks: Mapping[str, str], values: Mapping[str, Any]
) -> str:
    """Return the HTML of a page.

    `template` is `sheet.html` or extends it, and gets `values`, among them `title`. `scripts` are
    files of this folder, or absolute paths, and follow `SCRIPTS`. `blocks` are texts of
    `columns.pack`, `columns.deflate` or `as_json`, which scripts read by name.
    """
    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for name, text in blocks.items():
        if "<" in text:
            raise ValueError(f"block {name}: contains `<`")
    return environment.get_template(template).render(
        values,
        styles=[Markup(_text(name)) for name in STYLES],
        script=Markup("\n".join(map(_text, (*SCRIPTS, *scripts)))),
        blocks={name: Markup(text) for name, text in blocks.items()},
    )


def as_json(value: Any) -> str:
    """Return a value as JSON for a block; NaN and infinities raise `ValueError`."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c")


def _text(name: str) -> str:
    text = (FOLDER / name).read_text(encoding="utf-8")
    if "</script" in text or "</style" in text:
        raise ValueError(f"{name}: ends its element")
    return text
