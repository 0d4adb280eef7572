"""Results in notebooks: the tables of the command line, and a picture."""

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
from sojourn.show.result import result_tables

WIDTH = 118
"""How many signs fit into a line of a table."""


MOST_PROBES = 6
"""How many samples over time a picture shows."""


FORMAT = '<pre style="line-height:1.25;font-size:85%;white-space:pre;overflow-x:auto">{code}</pre>'


def of_result(result: Result) -> str:
    """Return what a notebook shows of a run, as HTML."""
    return as_html([result_tables(result)]) + as_svg(lambda stem: _draw(result, stem))


def as_html(tables: Sequence[RenderableType]) -> str:
    """Return tables as they look in a terminal."""
    console = Console(record=True, file=io.StringIO(), width=WIDTH, force_jupyter=False)
    for table in tables:
        console.print(table)
    return console.export_html(inline_styles=True, code_format=FORMAT)


def as_svg(draw: Callable[[Path], object]) -> str:
    """Return a picture that `draw` writes under a stem."""
    with tempfile.TemporaryDirectory() as folder:
        draw(Path(folder) / "picture")
        svg = (Path(folder) / "picture.svg").read_text(encoding="utf-8")
    return svg[svg.index("<svg") :]


def _draw(result: Result, stem: Path) -> None:
    """Draw slowdowns by size and, if there are samples, those of the first kind over time."""
    runs = [Run({"scheme": "all"}, result)]
    sizes = [
        metrics.cdf(runs, "slowdown", bucket).with_columns(scheme=pl.lit(bucket.name))
        for bucket in metrics.BUCKETS
        if not metrics.judged(result, bucket).is_empty()
    ]
    samples = result.samples
    with plot.canvas(1, 1 if samples.is_empty() else 2) as (picture, panels):
        first = panels if samples.is_empty() else panels[0]
        names = [part["scheme"][0] for part in sizes]
        plot.cdf(first, pl.concat(sizes), unit="", label="slowdown", drawn_as=_told_apart(names))
        if not samples.is_empty():
            probes = samples["probe"].unique(maintain_order=True).to_list()
            # How many flows are in progress is always sampled too.
            kinds = [probe.partition(" ")[0] for probe in probes]
            kind = next((kind for kind in kinds if kind != "active_flows"), kinds[0])
            names = [probe for probe in probes if probe.partition(" ")[0] == kind][:MOST_PROBES]
            shown = samples.filter(pl.col("probe").is_in(names))
            options: Any = {"by": "probe", "unit": "", "label": kind.replace("_", " ")}
            plot.series(panels[1], shown, drawn_as=_told_apart(names), **options)
        plot.save(picture, stem)


def _told_apart(names: Sequence[str]) -> dict[str, str]:
    """Give names the looks of schemes whose colours differ."""
    looks = ("dctcp", "xcp", "dcqcn", "timely", "tcp", "cubic", "ideal")
    return dict(zip(names, looks, strict=False))
