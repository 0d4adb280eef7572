"""What notebooks show of results and comparisons: the tables of the command line, and a picture."""

import html
import io
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl
from rich.console import Console, RenderableType

from sojourn import compare, metrics, pairs, pairs_page, plot, screen
from sojourn.results import Result, Run

WIDTH = 118
"""How many signs fit into a line of a table."""

MOST_PROBES = 6
"""How many samples over time a picture shows."""

FORMAT = '<pre style="line-height:1.25;font-size:85%;white-space:pre;overflow-x:auto">{code}</pre>'


@dataclass(frozen=True)
class Comparison:
    """Schemes side by side over seeds, and each held to one of them on the same flows."""

    table: pl.DataFrame
    """Means with 95 % intervals: what `sojourn compare` writes as `comparison.csv`."""
    runs: list[Run]
    """The runs, with their labels."""
    against: Any = None
    """What the others are held to; the first scheme by default."""

    @property
    def by(self) -> str:
        """The variation whose values are the schemes: the first."""
        return str(next(iter(self.runs[0].labels)))

    @cached_property
    def pairs(self) -> pl.DataFrame:
        """The ratio of each scheme's times to those of one of them, as `pairs.ratios` has it."""
        return pairs.ratios(self.runs, by=self.by, against=self.against)

    @property
    def sentences(self) -> list[str]:
        """What the pairs say, a sentence a scheme."""
        return pairs_page.sentences(self.pairs, self.by)

    def __str__(self) -> str:
        """Return the sentences."""
        return "\n".join(self.sentences)

    def _repr_html_(self) -> str:
        tables = screen.comparison_tables(self.table)
        said = "".join(f"<p>{html.escape(one)}</p>" for one in self.sentences)
        drawn = [_svg(lambda stem: compare.draw(self.table, stem))]
        if not self.pairs.is_empty():
            drawn.append(_svg(lambda stem: pairs_page.draw(self.pairs, self.by, stem)))
        return "".join([_text(tables), said, *drawn])


def comparison(
    base: Mapping[str, Any],
    variations: Mapping[str, Sequence[Any]],
    *,
    against: Any = None,
    **options: Any,
) -> Comparison:
    """Run every combination of the variations over `seeds`, and compare what the first one varies.

    The options are those of `compare.compare` and `run_many`: `seeds`, `median`, `cache`,
    `threads`, `cluster`, `memory`.

    >>> schemes = {"transport": ["dctcp", "swift", "gentle.py:Gentle"]}
    >>> print(sojourn.comparison(base, schemes, seeds=5))  # doctest: +SKIP
    """
    table, runs = compare.compare(base, variations, **options)
    return Comparison(table, runs, against)


def of_result(result: Result) -> str:
    """Return what a notebook shows of a run, as HTML."""
    return _text([screen.result_tables(result)]) + _svg(lambda stem: _draw(result, stem))


def _text(tables: Sequence[RenderableType]) -> str:
    """Return tables as they look in a terminal."""
    console = Console(record=True, file=io.StringIO(), width=WIDTH, force_jupyter=False)
    for table in tables:
        console.print(table)
    return console.export_html(inline_styles=True, code_format=FORMAT)


def _svg(draw: Callable[[Path], object]) -> str:
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
