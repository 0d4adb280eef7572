"""Report: one self-contained HTML page with all figures made so far."""

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
from sojourn.figures.figure import FigureResult, Paper

WIDE_POINTS = 560.0
"""Width above which a picture gets the full width of the page, to keep its text readable."""


def write_report(directory: Path, page: Path | None = None) -> Path:
    """Write a page about the figures made in `directory`, by default `report.html` in it.

    The page loads no other files; it links to the figures' files. An incomplete figure is skipped
    with a warning on the standard error output. Raises `ScenarioError` if no figure remains.
    """
    figures, pictures = [], {}
    for result in read_results(directory):
        try:
            pictures[result.id] = picture(directory, result)
            figures.append(result)
        except FileError as error:
            _warn_skipped(error)
    if not figures:
        raise ScenarioError(f"{directory}: contains no figures; run `sojourn figure all`")
    page = page or directory / "report.html"
    folder = Path(os.path.relpath(directory, page.parent)).as_posix()
    files.write_text(page, render(figures, pictures, folder))
    return page


def read_results(directory: Path) -> list[FigureResult]:
    """Return the figures made in `directory`, sorted by id; unreadable files are skipped."""
    figures = []
    for file in sorted(directory.glob("*.json")) if directory.is_dir() else ():
        try:
            figures.append(FigureResult.read(file))
        except FileError as error:
            _warn_skipped(error)
    return sorted(figures, key=lambda result: natural_key(result.id))


def _warn_skipped(error: FileError) -> None:
    print(f"sojourn: {' '.join(str(error).split())}; figure skipped", file=sys.stderr)


def render(figures: Sequence[FigureResult], pictures: Mapping[str, Markup], folder: str) -> str:
    """Return the HTML of the page with these figures and their pictures by id.

    `folder` is the folder of the figures' files, relative to the page.
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
        tally=recorded.tally(claim for result in figures for claim in result.claims),
        scales=sorted({result.scale for result in figures}),
        paper_verdicts=_other_paper_verdicts(figures),
        wide={name for name, svg in pictures.items() if _width(svg) > WIDE_POINTS},
        folder=folder,
        version=_core.VERSION,
        written=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    )


def _other_paper_verdicts(figures: Iterable[FigureResult]) -> dict[tuple[str, str], Word]:
    """Return the verdicts recorded at paper scale that differ, by figure and claim."""
    records = recorded.read_records()
    return {
        (result.id, claim.statement): other.verdict
        for result in figures
        if result.id in records and records[result.id].scale == "paper" != result.scale
        for claim in result.claims
        for other in records[result.id].claims
        if other.statement == claim.statement and other.verdict != claim.verdict
    }


def _width(svg: str) -> float:
    """Return the width of a picture in points."""
    match = re.search(r'viewBox="[-\d.]+ [-\d.]+ ([\d.]+)', svg)
    return float(match[1]) if match else 0.0


def _papers(figures: Iterable[FigureResult]) -> list[tuple[Paper, list[FigureResult]]]:
    papers: dict[str, tuple[Paper, list[FigureResult]]] = {}
    for result in figures:
        papers.setdefault(result.paper.key, (result.paper, []))[1].append(result)
    return list(papers.values())


def picture(directory: Path, result: FigureResult) -> Markup:
    """Return the figure's SVG for a page with other pictures, or raise `FileError`."""
    file = directory / f"{result.id}.svg"
    try:
        svg = files.read_text(file, files.MAX_DATA_BYTES)
        root = ElementTree.fromstring(svg).tag
    except OSError as error:
        raise FileError(f"{file}: cannot be read: {error.strerror}") from None
    except (ElementTree.ParseError, ValueError) as error:
        raise FileError(f"{file}: invalid SVG: {error}") from None
    if root != "{http://www.w3.org/2000/svg}svg" or "<svg" not in svg:
        raise FileError(f"{file}: not an SVG")
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    # Ids must be unique in a page.
    svg = re.sub(r'\bid="', f'id="{result.id}-', svg)
    svg = re.sub(r'href="#', f'href="#{result.id}-', svg)
    svg = re.sub(r"url\(#", f"url(#{result.id}-", svg)
    # HTML does not need XML namespaces.
    svg = re.sub(r' xmlns(:xlink)?="[^"]*"', "", svg).replace("xlink:href", "href")
    title = Markup.escape(result.title)
    return Markup(svg.replace("<svg", f'<svg role="img" aria-label="{title}"', 1))


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
