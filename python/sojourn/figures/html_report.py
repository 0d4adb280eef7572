"""The report: one HTML page with every figure that was made, which needs no network."""

import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import tomlkit
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from sojourn import _core
from sojourn._core import ScenarioError
from sojourn.analysis.claims import Word
from sojourn.base import files
from sojourn.base.errors import FileError
from sojourn.base.messages import natural_key
from sojourn.figures import recorded
from sojourn.figures.figure import Made, Paper

WIDE_POINTS = 560.0
"""A picture that is wider is given the whole width of the page: its letters were too small else."""


def write_report(directory: Path, page: Path | None = None) -> Path:
    """Write one page about the figures made in `directory`, by default there as `report.html`.

    The page stands alone, but for links to the figures' files. What is no whole figure is left out,
    with a line on the error output.
    """
    figures, pictures = [], {}
    for made in made_in(directory):
        try:
            pictures[made.id] = picture(directory, made)
            figures.append(made)
        except FileError as error:
            _leave_out(error)
    if not figures:
        raise ScenarioError(f"{directory}: no figures have been made; run `sojourn figure all`")
    page = page or directory / "report.html"
    beside = Path(os.path.relpath(directory, page.parent)).as_posix()
    files.write_text(page, render(figures, pictures, beside))
    return page


def made_in(directory: Path) -> list[Made]:
    """Return the figures made in `directory`, in order of their ids, without what is none."""
    figures = []
    for file in sorted(directory.glob("*.json")) if directory.is_dir() else ():
        try:
            figures.append(Made.read(file))
        except FileError as error:
            _leave_out(error)
    return sorted(figures, key=lambda made: natural_key(made.id))


def _leave_out(error: FileError) -> None:
    print(f"sojourn: {' '.join(str(error).split())}; this is left out", file=sys.stderr)


def render(figures: Sequence[Made], pictures: Mapping[str, Markup], beside: str) -> str:
    """Return the HTML of the page with these figures, and their pictures by id.

    `beside` is where the figures' files lie, as seen from the page.
    """
    environment = Environment(
        loader=PackageLoader("sojourn.figures", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("report.html").render(
        figures=figures,
        papers=_papers(figures),
        pictures=pictures,
        as_toml=as_toml,
        tally=recorded.tally(claim for made in figures for claim in made.claims),
        scales=sorted({made.scale for made in figures}),
        otherwise=_otherwise(figures),
        wide={name for name, svg in pictures.items() if _width(svg) > WIDE_POINTS},
        beside=beside,
        version=_core.VERSION,
        written=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    )


def _otherwise(figures: Iterable[Made]) -> dict[tuple[str, str], Word]:
    """Return the verdicts kept at paper scale that are not those here, by figure and claim."""
    kept = recorded.kept()
    return {
        (made.id, claim.statement): other.verdict
        for made in figures
        if made.id in kept and kept[made.id].scale == "paper" != made.scale
        for claim in made.claims
        for other in kept[made.id].claims
        if other.statement == claim.statement and other.verdict != claim.verdict
    }


def _width(svg: str) -> float:
    """Return the width of a picture in points."""
    found = re.search(r'viewBox="[-\d.]+ [-\d.]+ ([\d.]+)', svg)
    return float(found[1]) if found else 0.0


def _papers(figures: Iterable[Made]) -> list[tuple[Paper, list[Made]]]:
    papers: dict[str, tuple[Paper, list[Made]]] = {}
    for made in figures:
        papers.setdefault(made.paper.key, (made.paper, []))[1].append(made)
    return list(papers.values())


def picture(directory: Path, made: Made) -> Markup:
    """Return the figure's SVG, ready to stand in a page beside others, or raise `FileError`."""
    file = directory / f"{made.id}.svg"
    try:
        svg = files.read_text(file, files.MAX_DATA_BYTES)
        root = ElementTree.fromstring(svg).tag
    except OSError as error:
        raise FileError(f"{file}: cannot be read: {error.strerror}") from None
    except (ElementTree.ParseError, ValueError) as error:
        raise FileError(f"{file}: is no whole SVG: {error}") from None
    if root != "{http://www.w3.org/2000/svg}svg" or "<svg" not in svg:
        raise FileError(f"{file}: is no SVG")
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    # Names must differ between the pictures of one page.
    svg = re.sub(r'\bid="', f'id="{made.id}-', svg)
    svg = re.sub(r'href="#', f'href="#{made.id}-', svg)
    svg = re.sub(r"url\(#", f"url(#{made.id}-", svg)
    # A page has no use for the names of XML's own vocabularies.
    svg = re.sub(r' xmlns(:xlink)?="[^"]*"', "", svg).replace("xlink:href", "href")
    title = Markup.escape(made.title)
    return Markup(svg.replace("<svg", f'<svg role="img" aria-label="{title}"', 1))


def as_toml(scenario: dict[str, Any]) -> str:
    """Return a scenario as the text of a scenario file."""
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
    """Return a value as an item of one line."""
    if isinstance(value, dict):
        inline = tomlkit.inline_table()
        inline.update({key: _item(inner) for key, inner in value.items()})
        return inline
    if isinstance(value, list | tuple):
        array = tomlkit.array()
        array.extend(_item(inner) for inner in value)
        return array
    return tomlkit.item(value)
