"""The report: one HTML page with every figure that was made, which needs no network."""

import json
import re
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from sojourn import _core
from sojourn._core import ScenarioError
from sojourn.experiments import natural
from sojourn.figure import Made


def write_report(directory: Path, page: Path | None = None) -> Path:
    """Write one page about the figures made in `directory`, by default there as `report.html`."""
    figures = made_in(directory)
    if not figures:
        raise ScenarioError(
            f"{directory}: no figures have been made here; run `sojourn figure all`"
        )
    page = page or directory / "report.html"
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(render(figures, directory), encoding="utf-8")
    return page


def made_in(directory: Path) -> list[Made]:
    """Return the figures made in `directory`, in order of their ids."""
    files = directory.glob("*.json") if directory.is_dir() else ()
    return sorted((Made.read(file) for file in files), key=lambda made: natural(made.id))


def render(figures: Iterable[Made], directory: Path) -> str:
    """Return the page's HTML."""
    environment = Environment(
        loader=PackageLoader("sojourn", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    figures = list(figures)
    verdicts = Counter(claim["verdict"] for made in figures for claim in made.claims)
    return environment.get_template("report.html").render(
        figures=figures,
        papers=_papers(figures),
        pictures={made.id: picture(directory, made) for made in figures},
        as_toml=as_toml,
        verdicts=[(word, verdicts[word]) for word in ("held", "not held", "not judged")],
        version=_core.VERSION,
        written=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    )


def _papers(figures: Iterable[Made]) -> list[tuple[dict[str, Any], list[Made]]]:
    papers: dict[str, tuple[dict[str, Any], list[Made]]] = {}
    for made in figures:
        papers.setdefault(made.paper["key"], (made.paper, []))[1].append(made)
    return list(papers.values())


def picture(directory: Path, made: Made) -> Markup:
    """Return the figure's SVG, ready to stand in a page beside others."""
    svg = (directory / f"{made.id}.svg").read_text(encoding="utf-8")
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
