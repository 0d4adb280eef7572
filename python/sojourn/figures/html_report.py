"""Report: one self-contained HTML page with all figures made so far."""

import hashlib
import json
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree

from sojourn import _core
from sojourn._core import ScenarioError
from sojourn.analysis.claims import Word
from sojourn.base import files
from sojourn.base.errors import FileError
from sojourn.base.messages import natural_key
from sojourn.figures import recorded
from sojourn.figures.figure import FigureResult, Paper
from sojourn.scenario.typed import read_json, typed
from sojourn.scenario.writing import as_toml
from sojourn.web import columns, drawn, sheet

SCRIPTS = ("figure.js", "report.js")

INTRODUCTION = sheet.FOLDER / "introduction.drawn.json"
"""Picture of the page's head: the FCT breakdown of `INTRODUCTION_COMMAND`."""

INTRODUCTION_COMMAND = (
    "sojourn explain examples/dctcp_dumbbell.toml --vary transport=dctcp,swift,timely --seeds 3"
)

MAX_TABLE_BYTES = 100_000
"""Size up to which a figure's table is part of the page."""

PLACES = re.compile(r'(?: (?:d|x|y)="|translate\()[^")]*')
DECIMALS = re.compile(r"-?\d+\.\d{2,}")
"""Places in an SVG, whose numbers the page has to a tenth of a point: a quarter of its size."""

GLYPH = re.compile(r'(<path id="([^"]+)"(?: d="[^"]*")? transform="scale\(0\.015625\)"/>)\s*')
"""Outline of a character in an SVG. The page has it once for all figures: a third of their size."""

HEIGHTS_PX = (300, 215)
"""Heights of the panel of a figure that has only one, and of others."""


def write_report(directory: Path, page: Path | None = None) -> Path:
    """Write a page about the figures made in `directory`, by default `report.html` in it.

    The page loads no other files, and contains pictures, and tables of up to `MAX_TABLE_BYTES`. Its
    links to the figures' files in `directory` are relative. An incomplete figure is skipped with a
    warning on the standard error output. Raises `ScenarioError` if no figure remains.
    """
    figures, blocks = [], {}
    for result in read_results(directory):
        try:
            blocks[result.id] = read_blocks(directory, result)
            figures.append(result)
        except FileError as error:
            _warn_skipped(error)
    if not figures:
        raise ScenarioError(f"{directory}: contains no figures; run `sojourn figure all`")
    page = page or directory / "report.html"
    folder = Path(os.path.relpath(directory, page.parent)).as_posix()
    files.write_text(page, render(figures, blocks, folder))
    return page


def read_results(directory: Path) -> list[FigureResult]:
    """Return the figures made in `directory`, sorted by id; unreadable files are skipped."""
    figures = []
    for file in sorted(directory.glob("*.json")) if directory.is_dir() else ():
        if file.name.endswith(drawn.SUFFIX):
            continue
        try:
            figures.append(FigureResult.read(file))
        except FileError as error:
            _warn_skipped(error)
    return sorted(figures, key=lambda result: natural_key(result.id))


def _warn_skipped(error: FileError) -> None:
    print(f"sojourn: {' '.join(str(error).split())}; figure skipped", file=sys.stderr)


def render(
    figures: Sequence[FigureResult], blocks: Mapping[str, Mapping[str, str]], folder: str
) -> str:
    """Return the HTML of the page with these figures and their texts of `read_blocks` by id.

    `folder` is the folder of the figures' files, relative to the page.
    """
    glyphs, blocks = _share_glyphs(blocks)
    texts = {"introduction": {"drawn": INTRODUCTION.read_text(encoding="utf-8")}, **blocks}
    pictures = {name: _picture_data(kinds.get("drawn")) for name, kinds in texts.items()}
    values = {
        "title": "Sojourn: figures and claims",
        "figures": figures,
        "papers": _papers(figures),
        "words": recorded.WORDS,
        "tally": recorded.tally(claim for result in figures for claim in result.claims),
        "scales": sorted({result.scale for result in figures}),
        "paper_verdicts": _other_paper_verdicts(figures),
        "anchors": {
            (result.id, claim.statement): anchor(result.id, claim.statement)
            for result in figures
            for claim in result.claims
        },
        "alternatives": {result.id: alternative(result, pictures[result.id]) for result in figures},
        "heights": {name: _height(picture) for name, picture in pictures.items()},
        "grids": {name: _grid(picture) for name, picture in pictures.items()},
        "introduction_command": INTRODUCTION_COMMAND,
        "folder": folder,
        "version": _core.VERSION,
        "written": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    }
    packed = {
        f"{name}.{kind}": columns.deflate(text.encode())
        for name, kinds in texts.items()
        for kind, text in kinds.items()
    }
    packed["glyphs"] = columns.deflate(json.dumps(glyphs).encode())
    return sheet.render("report.html", SCRIPTS, packed, values)


def _share_glyphs(
    blocks: Mapping[str, Mapping[str, str]],
) -> tuple[dict[str, str], dict[str, dict[str, str]]]:
    """Return the outlines of characters by their ids, and texts of figures without them.

    An outline that differs from another one of the same id stays in its figure.
    """
    glyphs: dict[str, str] = {}

    def move(glyph: re.Match[str]) -> str:
        outline, name = glyph.groups()
        return "" if glyphs.setdefault(name, outline) == outline else glyph[0]

    texts = {
        name: {**kinds, "svg": GLYPH.sub(move, kinds["svg"])} for name, kinds in blocks.items()
    }
    return glyphs, texts


def anchor(figure: str, statement: str) -> str:
    """Return the id of a claim in the page, which lasts as long as its statement."""
    return f"{figure}-{hashlib.sha256(statement.encode()).hexdigest()[:6]}"


def alternative(result: FigureResult, picture: drawn.Picture) -> str:
    """Return the text in place of a figure's picture: its title, axes and verdicts."""
    axes = dict.fromkeys(
        f"{panel.y.name} against {panel.x.name}"
        for panel in picture.panels
        if panel.y.name and panel.x.name
    )
    counts = recorded.tally(result.claims)
    verdicts = [
        f"{sum(words[word] for words in counts.values())} {word}" for word in recorded.WORDS
    ]
    shown = f" {'; '.join(axes)}." if axes else ""
    return f"{result.title}.{shown} Claims: {', '.join(verdicts)}."


def _picture_data(text: str | None) -> drawn.Picture:
    """Return the data of a picture from a text of `_drawn`; an empty picture if it is missing."""
    return typed(drawn.Picture, json.loads(text), "") if text else drawn.Picture([], [])


def _height(picture: drawn.Picture) -> int:
    return HEIGHTS_PX[len(picture.panels) > 1]


def _grid(picture: drawn.Picture) -> str:
    """Return the style that reserves the height of a figure, so that links land where they lead."""
    panels = picture.panels
    rows = 1 + max((panel.row for panel in panels), default=0)
    across = 1 + max((panel.column for panel in panels), default=0)
    # A panel's title, the names of its axes, and the gap to the next panel.
    names = 4.3 if any(panel.title for panel in panels) else 2.9
    height = f"calc({_height(picture)}px + {names}rem)"
    return f"--rows:{rows};--panels:{max(len(panels), 1)};--columns:{across};--height:{height}"


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


def _papers(figures: Iterable[FigureResult]) -> list[tuple[Paper, list[FigureResult]]]:
    papers: dict[str, tuple[Paper, list[FigureResult]]] = {}
    for result in figures:
        papers.setdefault(result.paper.key, (result.paper, []))[1].append(result)
    return list(papers.values())


def read_blocks(directory: Path, result: FigureResult) -> dict[str, str]:
    """Return the texts of a figure that the page contains, by their kinds, or raise `FileError`.

    They are the picture, its data, scenarios, and the table unless it is large. A figure whose
    picture has artists of unknown kinds, or which an earlier version made, lacks the data.
    """
    texts = {"svg": _picture(directory / f"{result.id}.svg")}
    data, table = directory / f"{result.id}{drawn.SUFFIX}", directory / f"{result.id}.csv"
    if data.exists():
        texts |= _drawn(data)
    if table.exists() and table.stat().st_size <= MAX_TABLE_BYTES:
        texts["table"] = _read(table)
    scenarios = [
        {
            "name": ", ".join(f"{name} {value}" for name, value in example.labels.items()),
            "toml": as_toml(example.scenario),
        }
        for example in result.scenarios
    ]
    return texts | {"scenarios": json.dumps(scenarios, ensure_ascii=False)}


def _read(file: Path) -> str:
    try:
        return files.read_text(file, files.MAX_DATA_BYTES)
    except OSError as error:
        raise FileError(f"{file}: cannot be read: {error.strerror}") from None


def _drawn(file: Path) -> dict[str, str]:
    """Return the data of a picture; nothing if it lacks artists."""
    text = _read(file)
    picture = read_json(file, drawn.Picture)
    return {} if picture.unknown else {"drawn": text}


def _picture(file: Path) -> str:
    svg = _read(file)
    try:
        root = ElementTree.fromstring(svg).tag
    except (ElementTree.ParseError, ValueError) as error:
        raise FileError(f"{file}: invalid SVG: {error}") from None
    if root != "{http://www.w3.org/2000/svg}svg":
        raise FileError(f"{file}: not an SVG")
    return PLACES.sub(lambda place: DECIMALS.sub(_to_a_tenth, place[0]), svg)


def _to_a_tenth(number: re.Match[str]) -> str:
    return f"{float(number[0]):.1f}"
