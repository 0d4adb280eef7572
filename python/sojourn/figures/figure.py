"""Figures: what to run, how to reduce and draw it, and what must hold.

A figure is one Python file in a folder `experiments/PAPER/` with a value named `figure`. Beside it
may lie a CSV file of the same name with the published points.
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
from sojourn.analysis.claims import Claim, ClaimFunction, Verdict, Word, not_judged, with_intervals
from sojourn.analysis.metrics import NotInABatch
from sojourn.analysis.sectioning import sections
from sojourn.base import files
from sojourn.base.errors import FileError
from sojourn.runs.results import Run
from sojourn.runs.runner import over_seeds, sweep
from sojourn.scenario.reading import Labels, with_files
from sojourn.scenario.typed import read_json
from sojourn.show import plot

SCALES = ("smoke", "quick", "paper")

P = ParamSpec("P")
T = TypeVar("T")

Scale = Mapping[str, Any]
Labelled = tuple[Labels, Mapping[str, Any]]
RunsFunction = Callable[[Scale], Iterable[Labelled]]
TableFunction = Callable[[list[Run]], pl.DataFrame]
DrawFunction = Callable[[Any, pl.DataFrame, pl.DataFrame | None], None]


@dataclass(frozen=True)
class Paper:
    """A source of figures: what is cited, and how its set-up was read."""

    key: str
    citation: str
    setup: str = ""
    deviations: tuple[str, ...] = ()


@dataclass
class Figure:
    """A figure of a paper, made again: declare it, then add its four functions as decorators."""

    paper: Paper
    id: str
    title: str
    scales: Mapping[str, Scale]
    """What `smoke`, `quick` and `paper` mean: at least `seeds`, and what `runs` reads."""
    source: str = ""
    deviations: tuple[str, ...] = ()
    panels: tuple[int, int] = (1, 1)
    size: tuple[float, float] | None = None
    claims: list[Claim] = field(default_factory=list)
    path: Path | None = None

    def __post_init__(self) -> None:
        """Start without functions: each must be given."""
        self._runs: RunsFunction | None = None
        self._table: TableFunction | None = None
        self._draw: DrawFunction | None = None

    def runs(self, function: RunsFunction) -> RunsFunction:
        """Take the function that yields labels and scenarios at a scale."""
        self._runs = function
        return function

    def table(self, function: TableFunction) -> TableFunction:
        """Take the function that reduces the runs to the figure's table."""
        self._table = function
        return function

    def draw(self, function: DrawFunction) -> DrawFunction:
        """Take the function that draws the table, and the published points if there are any."""
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
        """Take a function that judges a claim on the table; other scales do not judge it.

        What is `exact` is arithmetic, and has no intervals.
        """

        def add(function: ClaimFunction) -> ClaimFunction:
            self.claims.append(Claim(statement, function, stated, scales, exact))
            return function

        return add

    def published(self) -> pl.DataFrame | None:
        """Return the published points beside the figure's file, if there are any."""
        file = self.path.with_suffix(".csv") if self.path else None
        if file is None or not file.exists():
            return None
        try:
            return pl.read_csv(
                io.StringIO(files.read_text(file, files.MAX_DATA_BYTES)), comment_prefix="#"
            )
        except (OSError, pl.exceptions.PolarsError) as error:
            raise FileError(f"{file}: cannot be read: {error}".partition("\n")[0]) from None

    def beside(self, table: pl.DataFrame) -> list["Beside"]:
        """Return the published numbers that the table has too, with what it says."""
        published = self.published()
        if published is None or not {"value"} <= set(published.columns) <= set(table.columns):
            return []
        labels = [name for name in published.columns if name != "value"]
        ours = table.select(*labels, ours="value").drop_nulls().unique(labels, keep="none")
        both = published.join(ours, on=labels, how="inner", maintain_order="left")
        return [
            Beside({name: row[name] for name in labels}, row["value"], row["ours"])
            for row in both.to_dicts()
        ]

    def plan(self, scale: str) -> list[Labelled]:
        """Return every labelled scenario at a scale, over its seeds."""
        if scale not in self.scales:
            raise ScenarioError(
                f"{self.id}: has no scale `{scale}`; it has {', '.join(self.scales)}"
            )
        chosen = {"name": scale, "seeds": 1, **self.scales[scale]}
        directory = self.path.parent if self.path else None
        labelled = [
            (labels, with_files(scenario, directory))
            for labels, scenario in _given(self._runs, "runs")(chosen)
        ]
        return over_seeds(labelled, chosen["seeds"])

    def judge(self, table: pl.DataFrame, scale: str, runs: Iterable[Run] = ()) -> list["Judged"]:
        """Return what became of each claim, with intervals from sections of the runs."""
        parts = self._tables_of_sections(runs)
        judgements: list[Judged] = []
        for claim in self.claims:
            verdict = self._verdict(claim, table, parts, scale)
            judgements.append(Judged(claim.statement, claim.stated, verdict.word, verdict.sentence))
        return judgements

    def _verdict(
        self, claim: Claim, table: pl.DataFrame, parts: Iterable[pl.DataFrame], scale: str
    ) -> Verdict:
        if scale not in claim.scales:
            return not_judged(f"too little data at {scale} scale")
        whole = claim.judge(table)
        return (
            whole if claim.exact else with_intervals(whole, [claim.judge(part) for part in parts])
        )

    def _tables_of_sections(self, runs: Iterable[Run]) -> list[pl.DataFrame]:
        """Return the table of each section; none if it tells what only a whole run has."""
        reduce = _given(self._table, "table")
        try:
            return [reduce(part) for part in sections(runs)]
        except NotInABatch:
            return []

    def make(self, scale: str, directory: Path, **options: Any) -> "Made":
        """Run, reduce, draw and judge; write `ID.svg`, `ID.png`, `ID.csv` and `ID.json`.

        The options are those of `run_many`.
        """
        return self.simulate(scale, **options)(directory)

    def simulate(self, scale: str, **options: Any) -> Callable[[Path], "Made"]:
        """Do the runs of `make`, and return a function that does the rest of it."""
        begun = time.monotonic()
        plan = self.plan(scale)
        runs = sweep(plan, what=f"figure {self.id}", **options)
        return lambda directory: self._finish(scale, plan, runs, directory, begun)

    def _finish(
        self, scale: str, plan: list[Labelled], runs: list[Run], directory: Path, begun: float
    ) -> "Made":
        table = _given(self._table, "table")(runs)
        with plot.canvas(*self.panels, self.size, salt=self.id) as (picture, axes):
            _given(self._draw, "draw")(axes, table, self.published())
            plot.save(picture, directory / self.id)
        files.write_text(directory / f"{self.id}.csv", table.write_csv())
        made = Made(
            id=self.id,
            title=self.title,
            source=self.source,
            paper=self.paper,
            deviations=list(self.deviations),
            scale=scale,
            seeds=sorted({int(run.labels["seed"]) for run in runs}),
            runs=len(runs),
            flows=sum(run.result.summary["counts"]["flows"] for run in runs),
            load=_load(runs),
            version=_core.VERSION,
            source_hash=_core.SOURCE_HASH,
            seconds=round(time.monotonic() - begun, 1),
            claims=self.judge(table, scale, runs),
            scenarios=_examples(plan),
            beside=self.beside(table),
            notes=[note] if (note := convergence.note(table)) else [],
        )
        made.write(directory)
        return made


@dataclass(frozen=True)
class Judged:
    """What became of a claim."""

    statement: str
    stated: bool
    verdict: Word
    numbers: str


@dataclass(frozen=True)
class Beside:
    """A published number, and ours."""

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
        """Ours over the published one."""
        return self.ours / self.published if self.published else float("nan")


@dataclass(frozen=True)
class Example:
    """One of the scenarios of a figure."""

    labels: dict[str, Any]
    scenario: dict[str, Any]


@dataclass(frozen=True)
class Made:
    """A figure that was made, as the report shows it."""

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
    claims: list[Judged]
    scenarios: list[Example]
    beside: list[Beside] = field(default_factory=list)
    """The published numbers, with ours."""
    notes: list[str] = field(default_factory=list)
    """What a reader of the numbers should know, such as that they are not converged."""

    @property
    def command(self) -> str:
        """The command that makes it again."""
        return f"sojourn figure {self.id} --scale {self.scale}"

    def table(self, directory: Path) -> pl.DataFrame:
        """Return the figure's table."""
        return pl.read_csv(directory / f"{self.id}.csv", infer_schema_length=None)

    def write(self, directory: Path) -> None:
        """Write `ID.json`."""
        text = json.dumps(asdict(self), indent=2, ensure_ascii=False)
        files.write_text(directory / f"{self.id}.json", text + "\n")

    @classmethod
    def read(cls, file: Path) -> "Made":
        """Read what `write` wrote, or raise `FileError`."""
        made = read_json(file, cls)
        if made.id != file.stem:
            raise FileError(f"{file}: is of the figure `{made.id}`")
        return made


def _given(function: Callable[P, T] | None, name: str) -> Callable[P, T]:
    if function is None:
        raise TypeError(f"a figure needs a function under `@figure.{name}`")
    return function


def _load(runs: Iterable[Run]) -> str:
    """Return what the load means, with the numbers of the first run."""
    loads = dict.fromkeys(str(run.result.summary.get("load", "")) for run in runs)
    others = f"; and {len(loads) - 1} more" if len(loads) > 1 else ""
    return next(iter(loads), "") + others


def _examples(plan: Iterable[Labelled]) -> list[Example]:
    """Return the first scenario of each scheme, without the texts of files."""
    examples: dict[str, Example] = {}
    for labels, scenario in plan:
        name = str(next(iter(labels.values()), ""))
        examples.setdefault(name, Example(dict(labels), _without_texts(scenario)))
    return list(examples.values())


def _without_texts(value: Any) -> Any:
    if isinstance(value, Mapping):
        if value.keys() == {"name", "text"}:
            return value["name"]
        return {key: _without_texts(inner) for key, inner in value.items()}
    return value
