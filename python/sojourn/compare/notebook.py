"""Comparisons in notebooks: the tables, sentences and pictures of `sojourn compare`."""

import functools
import html
import inspect
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from sojourn._core import ScenarioError
from sojourn.analysis import paired
from sojourn.base.messages import unknown_option
from sojourn.compare import paired_plot, paired_tables, plot
from sojourn.compare.comparison import compare, first_labels, scheme_label
from sojourn.compare.tables import main_tables
from sojourn.runs.results import Run
from sojourn.runs.runner import run_many
from sojourn.scenario.reading import ScenarioLike, as_scenario
from sojourn.show.console import text_table
from sojourn.show.fidelity import fidelity_title
from sojourn.show.notebook import as_html, as_svg
from sojourn.show.plot.frame import titled


@dataclass(frozen=True)
class Comparison:
    """Metrics of schemes over seeds, and ratios to a baseline on the same flows."""

    table: pl.DataFrame
    """Means with 95 % intervals, as `sojourn compare` writes them to `comparison.csv`."""
    runs: list[Run]
    """The runs, with their labels."""
    against: Any = None
    """The baseline; by default the first scheme."""

    @property
    def by(self) -> str:
        """The label of the schemes: `scheme`, or the first variation of several values."""
        return scheme_label(self.runs)

    @functools.cached_property
    def pairs(self) -> pl.DataFrame:
        """Ratios of each scheme's completion times to the baseline's, by `pairs.ratios`."""
        return paired.ratios(self.runs, by=self.by, against=self.against)

    @property
    def sentences(self) -> list[str]:
        """The ratios in words, one sentence for each scheme."""
        wording = paired_tables.wording_of(self.runs)
        return paired_tables.sentences(self.pairs, self.by, wording=wording)

    def __str__(self) -> str:
        """Return the sentences."""
        return "\n".join(self.sentences)

    def _repr_html_(self) -> str:
        tables = [text_table(table) for table in main_tables(self.table, self.pairs)]
        text = "".join(f"<p>{html.escape(sentence)}</p>" for sentence in self.sentences)
        with titled(fidelity_title(run.result for run in self.runs)):
            pictures = [as_svg(lambda stem: plot.draw(self.table, stem))]
            if not paired_plot.means(self.pairs).is_empty():
                looks = plot.looks_of(self.table)
                draw = functools.partial(paired_plot.draw, self.pairs, self.by)
                pictures.append(as_svg(lambda stem: draw(stem, looks)))
        return "".join([text, as_html(tables), *pictures])


def comparison(
    base: ScenarioLike,
    variations: Mapping[str, Sequence[Any]] | None = None,
    *,
    against: Any = None,
    **options: Any,
) -> Comparison:
    """Run every combination of the variations, and compare the values of the first variation.

    `base` is a scenario as `read` returns it, or the path of a scenario file.
    The schemes of a table `schemes` in the scenario come first.
    `against` is the baseline, by default the first value. The options are those of
    `compare.compare` and `run_many`: `seeds`, `median`, `cache`, `threads`, `cluster`, `memory`.
    Raises `ScenarioError` for an invalid scenario, variation or option.

    >>> schemes = {"transport": ["dctcp", "swift", "gentle.py:Gentle"]}
    >>> print(sojourn.comparison(base, schemes, seeds=5))  # doctest: +SKIP
    """
    takers = (inspect.signature(function).parameters.values() for function in (compare, run_many))
    named = inspect.Parameter.KEYWORD_ONLY
    allowed = [each.name for each in itertools.chain(*takers) if each.kind == named]
    if message := unknown_option(options, [*allowed, "against"]):
        raise ScenarioError(message)
    scenario = as_scenario(base)
    if against is not None:
        names = first_labels(scenario, variations or {})
        paired.reference_of(names or [scenario.get("name") or "scenario"], against)
    table, runs = compare(scenario, variations, **options)
    return Comparison(table, runs, against)
