"""What notebooks show of results and comparisons: the tables of the command line, and a picture."""

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import polars as pl

from sojourn.analysis import paired
from sojourn.compare import paired_plot, paired_tables, plot
from sojourn.compare.comparison import compare
from sojourn.compare.tables import comparison_tables
from sojourn.runs.results import Run
from sojourn.show.notebook import as_html, as_svg


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
        return paired.ratios(self.runs, by=self.by, against=self.against)

    @property
    def sentences(self) -> list[str]:
        """What the pairs say, a sentence a scheme."""
        return paired_tables.sentences(self.pairs, self.by)

    def __str__(self) -> str:
        """Return the sentences."""
        return "\n".join(self.sentences)

    def _repr_html_(self) -> str:
        tables = comparison_tables(self.table)
        said = "".join(f"<p>{html.escape(one)}</p>" for one in self.sentences)
        drawn = [as_svg(lambda stem: plot.draw(self.table, stem))]
        if not self.pairs.is_empty():
            drawn.append(as_svg(lambda stem: paired_plot.draw(self.pairs, self.by, stem)))
        return "".join([as_html(tables), said, *drawn])


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
    table, runs = compare(base, variations, **options)
    return Comparison(table, runs, against)
