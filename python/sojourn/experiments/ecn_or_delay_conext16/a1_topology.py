"""Figure A1: the dumbbell, drawn from the links of a run."""

from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl
from matplotlib.axes import Axes

from sojourn import Figure, Run, Verdict, equals, every, plot

from .paper import MIDDLE, SCALES, at_load, paper, schemes

figure = Figure(
    paper,
    id="a1",
    title="The dumbbell",
    source="Figure: the dumbbell topology",
    scales=SCALES,
)


@figure.runs
def runs(scale: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    yield {"scheme": "DCQCN", "load": 0.8}, at_load(scale, schemes["DCQCN"], 0.8)


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    links = pl.concat([pl.DataFrame(run.result.summary["links"]) for run in runs])
    columns = links.group_by("name", "rate_bps", maintain_order=True)
    return columns.agg(pl.mean("utilisation", "bytes"))


@figure.draw
def draw(axes: Axes, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    plot.topology(axes, table.to_dicts())
    utilisation = float(table["utilisation"].max())  # type: ignore[arg-type]
    axes.set_title(
        f"Every link: 10 Gb/s and 1 µs. Orange: the bottleneck, {utilisation:.0%} used at load 0.8",
        fontsize=9,
    )


@figure.check("20 hosts, 2 switches, one bottleneck", scales=("smoke", "quick", "paper"))
def shape(table: pl.DataFrame) -> Verdict:
    ends = table["name"].str.split("->").list
    degrees = ends.first().value_counts()["count"]
    busiest = table.sort("utilisation", descending=True)["name"][0]
    return every(
        [
            equals((degrees == 1).sum(), 20, "nodes with one cable"),
            equals((degrees > 1).sum(), 2, "nodes with several"),
            equals(busiest, MIDDLE, "the busiest link"),
        ]
    )
