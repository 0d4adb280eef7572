"""HTML of results for notebooks: the tables of the command line, and a picture."""

import io
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import polars as pl
from rich.console import Console, RenderableType

from sojourn.analysis import metrics
from sojourn.runs.results import Result, Run
from sojourn.show import plot
from sojourn.show.fidelity import fidelity_title
from sojourn.show.plot.frame import titled
from sojourn.show.result import result_tables
from sojourn.show.style import distinct

WIDTH = 118
"""Width of a table in characters."""


MAX_PROBES = 6
"""Largest number of probes in a picture."""


FORMAT = (
    '<pre style="font-family:monospace;line-height:1.25;font-size:85%;white-space:pre;'
    'overflow-x:auto">{code}</pre>'
)


def result_html(result: Result) -> str:
    """Return the tables and the picture of a run as HTML."""
    return as_html([result_tables(result)]) + as_svg(lambda stem: _draw(result, stem))


def as_html(tables: Sequence[RenderableType]) -> str:
    """Return tables as HTML with the look of a terminal."""
    console = Console(record=True, file=io.StringIO(), width=WIDTH, force_jupyter=False)
    for table in tables:
        console.print(table)
    return console.export_html(inline_styles=True, code_format=FORMAT)


def as_svg(draw: Callable[[Path], object]) -> str:
    """Return the SVG text of a picture; `draw` writes it to a path without suffix, if at all."""
    with tempfile.TemporaryDirectory() as folder:
        draw(Path(folder) / "picture")
        file = Path(folder) / "picture.svg"
        svg = file.read_text(encoding="utf-8") if file.exists() else ""
    return svg[svg.find("<svg") :] if svg else ""


def _draw(result: Result, stem: Path) -> None:
    """Draw slowdowns by size, if flows finished, and samples of the first kind, if any."""
    runs = [Run({"scheme": "all"}, result)]
    sizes = [
        metrics.cdf(runs, "slowdown", bucket).with_columns(scheme=pl.lit(bucket.name))
        for bucket in metrics.BUCKETS
    ]
    sizes = [part for part in sizes if not part.is_empty()]
    samples = result.samples
    count = bool(sizes) + (not samples.is_empty())
    if not count:
        return
    with titled(fidelity_title([result])), plot.canvas(1, count) as (picture, panels):
        places = [panels] if count == 1 else list(panels)
        if sizes:
            names = [part["scheme"][0] for part in sizes]
            plot.cdf(
                places[0], pl.concat(sizes), unit="", label="slowdown", drawn_as=distinct(names)
            )
        if not samples.is_empty():
            probes = samples["probe"].unique(maintain_order=True).to_list()
            # The number of active flows is always sampled, and drawn only without other samples.
            kinds = [probe.partition(" ")[0] for probe in probes]
            kind = next((kind for kind in kinds if kind != "active_flows"), kinds[0])
            names = [probe for probe in probes if probe.partition(" ")[0] == kind][:MAX_PROBES]
            selected = samples.filter(pl.col("probe").is_in(names))
            options: Any = {"by": "probe", "unit": "", "label": kind.replace("_", " ")}
            plot.series(places[-1], selected, drawn_as=distinct(names), **options)
        plot.save(picture, stem)
