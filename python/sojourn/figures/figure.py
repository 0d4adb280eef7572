"""Figures: scenarios, a reduction to a table, a drawing, and claims about the table.

A figure is one Python file in a folder `experiments/PAPER/` with a value named `figure`. A CSV
file of the same name in that folder contains the published points, if there are any.
"""

import io
import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import polars as pl
from pydantic import ConfigDict

from sojourn import _core
from sojourn._core import ScenarioError
from sojourn.analysis import convergence
from sojourn.analysis.claims import (
    Claim,
    ClaimFunction,
    Kind,
    Verdict,
    Word,
    not_judged,
    with_intervals,
)
from sojourn.analysis.metrics import NotInABatch
from sojourn.analysis.sectioning import sections
from sojourn.base import files
from sojourn.base.errors import FileError
from sojourn.runs.results import Run
from sojourn.runs.runner import over_seeds, sweep
from sojourn.scenario.reading import Labels, with_files
from sojourn.scenario.typed import read_json
from sojourn.show import plot
from sojourn.web import drawn

SEEDS = {"smoke": 1, "quick": 4, "paper": 10}
"""Number of seeds of every figure at each scale.

It is the same for all figures, so that no number is chosen after a verdict. Ten seeds have an
interval 1.15 times as wide as that of a normal distribution with known variance, four 1.6 times.
"""

P = ParamSpec("P")
T = TypeVar("T")

Scale = Mapping[str, Any]
Labelled = tuple[Labels, Mapping[str, Any]]
RunsFunction = Callable[[Scale], Iterable[Labelled]]
TableFunction = Callable[[list[Run]], pl.DataFrame]
DrawFunction = Callable[[Any, pl.DataFrame, pl.DataFrame | None], None]


@dataclass(frozen=True)
class Paper:
    """Source of figures: the citation, and its set-up as Sojourn reproduces it."""

    key: str
    citation: str
    setup: str = ""
    deviations: tuple[str, ...] = ()


@dataclass
class Figure:
    """Reproduction of a figure of a paper.

    A file declares the figure, and adds its functions with the decorators `runs`, `table`, `draw`
    and `claim`.
    """

    paper: Paper
    id: str
    title: str
    scales: Mapping[str, Scale]
    """Values of `smoke`, `quick` and `paper` for the function `runs`.

    `seeds` is the number of seeds, by default that of `SEEDS`; published figures have no other.
    """
    source: str = ""
    reference: str = "published"
    """Origin of the numbers in the CSV file, as tables name it."""
    one_seed: str = ""
    """Reason why the figure has a single seed; empty if it has as many as others."""
    deviations: tuple[str, ...] = ()
    panels: tuple[int, int] = (1, 1)
    size: tuple[float, float] | None = None
    claims: list[Claim] = field(default_factory=list)
    path: Path | None = None

    def __post_init__(self) -> None:
        """Create the figure without functions; the decorators add them."""
        self._runs: RunsFunction | None = None
        self._table: TableFunction | None = None
        self._draw: DrawFunction | None = None

    def runs(self, function: RunsFunction) -> RunsFunction:
        """Add the function that yields (labels, scenario) at a scale."""
        self._runs = function
        return function

    def table(self, function: TableFunction) -> TableFunction:
        """Add the function that reduces the runs to the figure's table."""
        self._table = function
        return function

    def draw(self, function: DrawFunction) -> DrawFunction:
        """Add the function that draws the table, and the published points or `None`, on axes."""
        self._draw = function
        return function

    def claim(
        self,
        statement: str,
        *,
        stated: bool = True,
        scales: tuple[str, ...] = ("quick", "paper"),
        exact: bool = False,
    ) -> Callable[[ClaimFunction], ClaimFunction]:
        """Add a function that judges a claim on the table.

        `stated`: true if the paper states the claim, with the bound and the setting that follow
        from the paper; false if the claim is our own, for example with a bound or a setting that
        was chosen after a result.
        `scales`: the scales with enough data; at others the claim is not judged.
        `exact`: true if the numbers are arithmetic that no seed changes; they have no intervals.
        """
        return self._add(statement, "stated" if stated else "own", scales, exact=exact)

    def check(
        self, statement: str, *, scales: tuple[str, ...] = ("quick", "paper"), exact: bool = False
    ) -> Callable[[ClaimFunction], ClaimFunction]:
        """Add a function that checks what is true by construction; see `claim`.

        A check fails only if the code or the scenario is wrong, so it does not count as a claim.
        """
        return self._add(statement, "check", scales, exact=exact)

    def _add(
        self, statement: str, kind: Kind, scales: tuple[str, ...], *, exact: bool
    ) -> Callable[[ClaimFunction], ClaimFunction]:
        def add(function: ClaimFunction) -> ClaimFunction:
            self.claims.append(Claim(statement, function, kind, scales, exact))
            return function

        return add

    def published(self) -> pl.DataFrame | None:
        """Return the published points, or `None` without a file of them.

        Raises `FileError` if the file is not a table.
        """
        file = self.path.with_suffix(".csv") if self.path else None
        if file is None or not file.exists():
            return None
        try:
            return pl.read_csv(
                io.StringIO(files.read_text(file, files.MAX_DATA_BYTES)), comment_prefix="#"
            )
        except (OSError, pl.exceptions.PolarsError) as error:
            raise FileError(f"{file}: cannot be read: {error}".partition("\n")[0]) from None

    def compare_published(self, table: pl.DataFrame) -> list["PublishedPair"]:
        """Return the published numbers with the numbers of the same labels in the table.

        Raises `FileError` for labels that the table cannot have.
        """
        published = self.published()
        if published is None or not {"value"} <= set(published.columns) <= set(table.columns):
            return []
        labels = [name for name in published.columns if name != "value"]
        ours = table.select(*labels, ours="value").drop_nulls().unique(labels, keep="none")
        # A column of whole numbers in the file may be one of fractions in the table.
        as_ours = [pl.col(name).cast(ours.schema[name]) for name in labels]
        try:
            published = published.with_columns(as_ours)
        except pl.exceptions.PolarsError as error:
            reason = str(error).partition("\n")[0]
            raise FileError(f"{self.id}.csv: labels unlike those of the table: {reason}") from None
        both = published.join(ours, on=labels, how="inner", maintain_order="left")
        return [
            PublishedPair({name: row[name] for name in labels}, row["value"], row["ours"])
            for row in both.to_dicts()
        ]

    def plan(self, scale: str) -> list[Labelled]:
        """Return every labelled scenario at a scale, for each seed.

        Scenarios that name no environment have `paper`: every component as its source had it.

        Raises `ScenarioError` if the figure does not have the scale.
        """
        if scale not in self.scales:
            raise ScenarioError(
                f"{self.id}: unknown scale `{scale}` (allowed: {', '.join(self.scales)})"
            )
        seeds = 1 if self.one_seed else SEEDS.get(scale, 1)
        parameters = {"name": scale, "seeds": seeds, **self.scales[scale]}
        directory = self.path.parent if self.path else None
        labelled = [
            (labels, with_files({"environment": "paper", **scenario}, directory))
            for labels, scenario in _require(self._runs, "runs")(parameters)
        ]
        return over_seeds(labelled, parameters["seeds"])

    def reduce(self, runs: Iterable[Run]) -> pl.DataFrame:
        """Return the figure's table of these runs."""
        return _require(self._table, "table")(list(runs))

    def judge(
        self, table: pl.DataFrame, scale: str, runs: Iterable[Run] = ()
    ) -> list["ClaimResult"]:
        """Return the result of each claim, with confidence intervals from sections of the runs."""
        section_tables = self._section_tables(runs)
        results: list[ClaimResult] = []
        for claim in self.claims:
            verdict = self._verdict(claim, table, section_tables, scale)
            results.append(ClaimResult(claim.statement, claim.kind, verdict.word, verdict.sentence))
        return results

    def _verdict(
        self, claim: Claim, table: pl.DataFrame, section_tables: Iterable[pl.DataFrame], scale: str
    ) -> Verdict:
        if scale not in claim.scales:
            return not_judged(f"too little data at {scale} scale")
        verdict = claim.judge(table)
        if claim.exact:
            return verdict
        return with_intervals(verdict, [claim.judge(section) for section in section_tables])

    def _section_tables(self, runs: Iterable[Run]) -> list[pl.DataFrame]:
        """Return the table of each section; no tables if the figure needs complete runs."""
        try:
            return [self.reduce(section) for section in sections(runs)]
        except NotInABatch:
            return []

    def make(self, scale: str, directory: Path, **options: Any) -> "FigureResult":
        """Run, reduce, draw and judge; write the files of the figure.

        They are `ID.csv`, `ID.json`, `ID.svg`, `ID.png` and, for the report, `ID.drawn.json`.
        `options` are those of `run_many`.
        """
        return self.simulate(scale, **options)(directory)

    def simulate(self, scale: str, **options: Any) -> Callable[[Path], "FigureResult"]:
        """Do the runs of `make`; return the function that reduces, draws, judges and writes."""
        started = time.monotonic()
        plan = self.plan(scale)
        runs = sweep(plan, what=f"figure {self.id}", **options)
        return lambda directory: self._finish(scale, plan, runs, directory, started)

    def _finish(
        self, scale: str, plan: list[Labelled], runs: list[Run], directory: Path, started: float
    ) -> "FigureResult":
        table = self.reduce(runs)
        with plot.canvas(*self.panels, self.size, salt=self.id) as (picture, axes):
            _require(self._draw, "draw")(axes, table, self.published())
            plot.save(picture, directory / self.id)
            drawn.write(picture, directory / self.id)
        files.write_text(directory / f"{self.id}.csv", table.write_csv())
        result = FigureResult(
            id=self.id,
            title=self.title,
            source=self.source,
            paper=self.paper,
            deviations=list(self.deviations),
            scale=scale,
            seeds=sorted({int(run.labels["seed"]) for run in runs}),
            one_seed=self.one_seed,
            runs=len(runs),
            flows=sum(run.result.summary["counts"]["flows"] for run in runs),
            load=_load_text(runs),
            version=_core.VERSION,
            source_hash=_core.SOURCE_HASH,
            seconds=round(time.monotonic() - started, 1),
            claims=self.judge(table, scale, runs),
            scenarios=_first_scenarios(plan),
            beside=self.compare_published(table),
            reference=self.reference,
            notes=[note] if (note := convergence.note(table)) else [],
        )
        result.write(directory)
        return result


@dataclass(frozen=True)
class ClaimResult:
    """Result of a claim."""

    statement: str
    kind: Kind
    verdict: Word
    numbers: str


@dataclass(frozen=True)
class PublishedPair:
    """A published number, and the simulated number of the same labels."""

    labels: dict[str, Any]
    published: float
    ours: float

    @property
    def name(self) -> str:
        """The labels in words."""
        return ", ".join(
            value if isinstance(value, str) else f"{name} {value:g}"
            for name, value in self.labels.items()
        )

    @property
    def ratio(self) -> float:
        """The simulated number divided by the published number; NaN if that is 0."""
        return self.ours / self.published if self.published else float("nan")


@dataclass(frozen=True)
class Example:
    """A scenario of a figure with its labels."""

    labels: dict[str, Any]
    scenario: dict[str, Any]


@dataclass(frozen=True)
class FigureResult:
    """Result of a figure: the content of `ID.json`, which the report shows."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    id: str
    title: str
    source: str
    paper: Paper
    deviations: list[str]
    scale: str
    seeds: list[int]
    runs: int
    flows: int
    load: str
    version: str
    source_hash: str
    seconds: float
    claims: list[ClaimResult]
    scenarios: list[Example]
    beside: list[PublishedPair] = field(default_factory=list)
    """Published numbers with the simulated numbers."""
    reference: str = "published"
    """Origin of the published numbers, if they are not the source's own."""
    notes: list[str] = field(default_factory=list)
    """Warnings about the numbers, for example that the runs have not converged."""
    one_seed: str = ""
    """Reason for a single seed, if the figure has one."""

    @property
    def command(self) -> str:
        """The command that reproduces the figure."""
        return f"sojourn figure {self.id} --scale {self.scale}"

    def table(self, directory: Path) -> pl.DataFrame:
        """Return the figure's table."""
        return pl.read_csv(directory / f"{self.id}.csv", infer_schema_length=None)

    def write(self, directory: Path) -> None:
        """Write `ID.json`."""
        text = json.dumps(asdict(self), indent=2, ensure_ascii=False)
        files.write_text(directory / f"{self.id}.json", text + "\n")

    @classmethod
    def read(cls, file: Path) -> "FigureResult":
        """Read a file that `write` wrote, or raise `FileError`."""
        result = read_json(file, cls)
        if result.id != file.stem:
            raise FileError(f"{file}: contains the figure `{result.id}`")
        return result


def _require(function: Callable[P, T] | None, name: str) -> Callable[P, T]:
    if function is None:
        raise TypeError(f"a figure needs a function under `@figure.{name}`")
    return function


def _load_text(runs: Iterable[Run]) -> str:
    """Return the load of the first run in words, and the number of different loads."""
    loads = dict.fromkeys(str(run.result.summary.get("load", "")) for run in runs)
    rest = f"; and {len(loads) - 1} more" if len(loads) > 1 else ""
    return next(iter(loads), "") + rest


def _first_scenarios(plan: Iterable[Labelled]) -> list[Example]:
    """Return the first scenario of each scheme, with names in place of files' texts."""
    examples: dict[str, Example] = {}
    for labels, scenario in plan:
        name = str(next(iter(labels.values()), ""))
        examples.setdefault(name, Example(dict(labels), _without_file_texts(scenario)))
    return list(examples.values())


def _without_file_texts(value: Any) -> Any:
    if isinstance(value, Mapping):
        if value.keys() == {"name", "text"}:
            return value["name"]
        return {key: _without_file_texts(inner) for key, inner in value.items()}
    return value
