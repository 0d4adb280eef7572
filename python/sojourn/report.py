"""The report: one HTML page with every figure that was made, which needs no network."""

import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from sojourn import _core, files
from sojourn._core import ScenarioError
from sojourn.experiments import natural
from sojourn.figure import Made, Paper
from sojourn.scenario import FileError


def write_report(directory: Path, page: Path | None = None) -> Path:
    """Write one page about the figures made in `directory`, by default there as `report.html`.

    What is no whole figure is left out, with a line on the error output.
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
    files.write_text(page, render(figures, pictures))
    return page


def made_in(directory: Path) -> list[Made]:
    """Return the figures made in `directory`, in order of their ids, without what is none."""
    figures = []
    for file in sorted(directory.glob("*.json")) if directory.is_dir() else ():
        try:
            figures.append(Made.read(file))
        except FileError as error:
            _leave_out(error)
    return sorted(figures, key=lambda made: natural(made.id))


def _leave_out(error: FileError) -> None:
    print(f"sojourn: {' '.join(str(error).split())}; this is left out", file=sys.stderr)


def render(figures: Sequence[Made], pictures: Mapping[str, Markup]) -> str:
    """Return the HTML of the page with these figures, and their pictures by id."""
    environment = Environment(
        loader=PackageLoader("sojourn", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    verdicts = Counter(claim.verdict for made in figures for claim in made.claims)
    return environment.get_template("report.html").render(
        figures=figures,
        papers=_papers(figures),
        pictures=pictures,
        as_toml=as_toml,
        verdicts=[(word, verdicts[word]) for word in ("held", "not held", "not judged")],
        version=_core.VERSION,
        written=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    )


def _papers(figures: Iterable[Made]) -> list[tuple[Paper, list[Made]]]:
    papers: dict[str, tuple[Paper, list[Made]]] = {}
    for made in figures:
        papers.setdefault(made.paper.key, (made.paper, []))[1].append(made)
    return list(papers.values())


def picture(directory: Path, made: Made) -> Markup:
    """Return the figure's SVG, ready to stand in a page beside others, or raise `FileError`."""
    file = directory / f"{made.id}.svg"
    try:
        svg = files.read_text(file, files.MOST_DATA)
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
    """Write a scenario as a scenario file would say it."""
    plain = [
        f"{name} = {_value(value)}" for name, value in scenario.items() if not _is_table(value)
    ]
    blocks = ["\n".join(plain)]
    for name, value in scenario.items():
        if _is_table(value):
            fields = [f"{key} = {_value(inner)}" for key, inner in value.items()]
            blocks.append("\n".join([f"[{name}]", *fields]))
    return "\n\n".join(block for block in blocks if block)


def _is_table(value: Any) -> bool:
    return isinstance(value, dict)


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_value(inner)}" for key, inner in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_value(inner) for inner in value) + "]"
    return json.dumps(value, ensure_ascii=False)
