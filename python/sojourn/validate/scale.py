"""Comparison of answers from samples and laws with packet runs of whole networks.

Whole runs take minutes, so that the package contains their slowdowns (`validation/scale/truth.csv`)
with a hash of the scenario and of the simulator's source. `--truth` runs the missing ones again.

Both sides have many seeds, because single seeds differ too much to show a bias: the means of two
seeds of one whole network are within the bound of 5 % in half to four fifths of the cases only. A
number is judged by the rule of figures' claims: its interval, over the seeds of both sides, must be
on one side of the bound.
"""

import functools
import hashlib
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from sojourn import _core
from sojourn._core import ScenarioError
from sojourn.analysis import metrics
from sojourn.analysis.claims import Comparison, Verdict, Word, between, with_intervals
from sojourn.analysis.convergence import batch_means, samples_of
from sojourn.analysis.metrics import ALL, Floats, size_buckets
from sojourn.base import files, paths
from sojourn.base.errors import FileError
from sojourn.base.messages import did_you_mean
from sojourn.base.statistics import nearest_rank
from sojourn.runs.answers import SAMPLE as SAMPLE_COLUMN
from sojourn.runs.answers import by_sample
from sojourn.runs.result_tables import flow_table
from sojourn.runs.results import Result, bounded
from sojourn.runs.runner import run_many
from sojourn.scale.errors import p99_interval
from sojourn.scenario.encoding import Prepared, as_json, trace
from sojourn.scenario.fidelity import FIELD, FLOWS, SAMPLE
from sojourn.scenario.reading import Scenario
from sojourn.show.table import Table

NAME = "scale"

SIZES = (ALL, *size_buckets(1e3, 10e3, 100e3, 1e6))

LEAST_FLOWS, LEAST_SHOWN = 1000, 100
"""Flows of the whole run from which a size is judged, and from which it is shown."""

BOUNDS = {"mean": 0.05, "p99": 0.10}
"""Largest errors of the mean and of the p99."""

LOOSE = {"mean": 0.10, "p99": 0.20}
"""Largest errors under TCP over drop-tail queues, where timeouts make up the tail."""

RACKS = {name: {"mean": 0.10, "p99": 0.15} for name in ("hottest racks", "coldest racks")}
"""Groups of flows by the racks that receive them, and largest errors."""

HOSTS_PER_RACK = 16

SEEDS = {SAMPLE: 30, FLOWS: 10}
"""Whole runs of a case, and folded networks of `sample` or answers of `flows`.

With ten, the number of figures at `paper` scale, intervals of `sample` are as wide as the bounds.
"""

INSIDE = 0.9
"""Share of the judged numbers of a goal that must be within their bounds."""

SIGNS: dict[Word, str] = {"held": "✓", "not held": "✗", "not judged": "·"}
"""Signs of verdicts in tables."""

N1: Scenario = {"kind": "leaf_spine"}

N2: Scenario = {
    **{"kind": "clos", "pods": 4, "edges_per_pod": 4, "hosts_per_edge": 16},
    **{"aggregations_per_pod": 2, "cores": 4},
}
"""256 hosts, oversubscribed 2:1 at edge switches and 4:1 at pods."""

H1, H4 = {**N2, "pods": 16}, {**N2, "pods": 64}
"""1024 and 4096 hosts in pods of 4 racks."""

DROP_TAIL = {
    **{"transport": "tcp", "environment": "paper", "reliability": {"min_rto": "10 ms"}},
    "queue": {"kind": "drop_tail", "capacity": "240 KB"},
}


@dataclass(frozen=True)
class Case:
    """A whole scenario, and how it is answered without running it."""

    name: str
    scenario: Scenario
    fidelity: Mapping[str, Any]
    bounds: Mapping[str, float] | None = None

    @property
    def rung(self) -> str:
        """Name of the fidelity."""
        return str(self.fidelity["kind"])

    @property
    def seeds(self) -> list[int]:
        """Seeds of whole runs, and of answers."""
        return list(range(1, SEEDS[self.rung] + 1))

    @property
    def questions(self) -> list[Scenario]:
        """Scenarios of the answers: one with a sample per seed, or one per seed for `flows`."""
        question = {**self.scenario, FIELD: self.fidelity}
        if self.rung == SAMPLE:
            return [question]
        return [{**question, "seed": seed} for seed in self.seeds]

    @functools.cached_property
    def digest(self) -> str:
        """Hash of the whole scenario with all defaults, which other versions may have changed."""
        complete = Prepared(self.scenario).complete()
        return hashlib.sha256(as_json(complete).encode()).hexdigest()[:16]


def cases() -> list[Case]:
    """Return all cases."""
    third = {"kind": SAMPLE, "hosts": 64, "samples": SEEDS[SAMPLE]}
    law = {"kind": FLOWS, "hosts": 256, "samples": 2}
    found = [
        Case(
            f"N1 {sizes} {load:g} {name}",
            {"topology": N1, "workload": _poisson(sizes, load, flows), **scheme},
            third,
            bounds=LOOSE if name == "tcp" else None,
        )
        for sizes, flows in (("fb_hadoop", 30_000), ("web_search", 4000))
        for load in (0.3, 0.7)
        for name, scheme in _SCHEMES.items()
        if sizes == "fb_hadoop" or name == "dctcp"
    ]
    found += [
        Case(
            f"N2 fb_hadoop 0.5 {name}",
            # A load of 1 is that of the core links, which 48 of 63 hosts of a flow's pod cross.
            {
                "topology": N2,
                "workload": _poisson("fb_hadoop", 0.5, 30_000)
                | {"load_reference": f"{4 * 160 * 255 / 192:.3f} Gbps"},
                **scheme,
            },
            {"kind": SAMPLE, "hosts": 128, "samples": SEEDS[SAMPLE]},
            bounds=LOOSE if name == "tcp" else None,
        )
        for name, scheme in _SCHEMES.items()
    ]
    incast = {"kind": "incast", "fan_in": 32, "size": "20 KB", "load": 0.1, "stop": "20 ms"}
    background = _poisson("fb_hadoop", 0.3, None) | {"stop": "20 ms"}
    mixed = {"kind": "mixed", "parts": [background, incast]}
    pfabric = {"topology": N1, "workload": _poisson("fb_hadoop", 0.6, 30_000)}
    found += [
        Case("N1 pfabric 0.6", pfabric | {"transport": "pfabric", "environment": "paper"}, third),
        Case(
            "N1 incast of 32 dctcp", {"topology": N1, "workload": mixed} | _SCHEMES["dctcp"], third
        ),
        Case(
            "N1 incast of 32 timely, pauses",
            {"topology": N1, "workload": mixed, "transport": "timely"},
            third,
        ),
    ]
    # The loads of a law's cells were chosen on the first networks, not on the others.
    for title, topology, flows, seed, name in (
        ("H1 skewed", H1, 50_000, 1, "dctcp"),
        ("H1 skewed", H1, 50_000, 1, "swift"),
        ("H1 skewed otherwise", H1, 50_000, 2, "dctcp"),
        ("H4 skewed", H4, 200_000, 1, "dctcp"),
        ("H4 skewed otherwise", H4, 200_000, 2, "dctcp"),
    ):
        skewed = {"topology": topology, "workload": _skewed(topology["pods"], flows, seed)}
        found.append(Case(f"{title} {name}", skewed | _SCHEMES[name], law))
    # The limit cuts off most of the bytes. A load of 1 is that of the links to pods, as on N2.
    workload = _poisson("web_search", 0.5, 50_000) | {
        "load_reference": f"{16 * 160 * 1023 / 960:.3f} Gbps"
    }
    cut = {"topology": H1, "workload": workload, "time_limit": "50 ms"} | _SCHEMES["dctcp"]
    found.append(Case("H1 web_search 0.5 until 50 ms dctcp", cut, law))
    return found


_SCHEMES: dict[str, dict[str, Any]] = {
    "dctcp": {"transport": "dctcp"},
    "swift": {"transport": "swift"},
    "tcp": DROP_TAIL,
}


def _poisson(sizes: str, load: float, flows: int | None) -> dict[str, Any]:
    table = {"kind": "empirical", "table": sizes}
    limit = {} if flows is None else {"flows": flows}
    return {"kind": "poisson", "load": load, "sizes": table, **limit}


@functools.cache
def _skewed(pods: int, number: int, seed: int) -> dict[str, Any]:
    """Return a trace whose racks have lognormal weights, with a most loaded link at 0.7."""
    topology, racks = {**N2, "pods": pods}, 4 * pods
    uniform = {"topology": topology, "transport": "dctcp"}
    uniform["workload"] = _poisson("fb_hadoop", 0.2, number)
    flows = flow_table(trace(uniform | {"seed": seed}))
    random = np.random.default_rng(seed)
    weights = [np.repeat(random.lognormal(0, 1, racks), HOSTS_PER_RACK) for _ in range(2)]
    sources, targets = (
        np.searchsorted(np.cumsum(each) / each.sum(), random.uniform(size=flows.height))
        for each in weights
    )
    targets = np.where(targets == sources, (targets + 1) % (HOSTS_PER_RACK * racks), targets)
    sizes, starts = flows["size_bytes"].to_numpy(), flows["start_s"].to_numpy()
    starts = starts * (_largest_load(sources, targets, sizes, np.ptp(starts)) / 0.7)
    table = pl.DataFrame(
        {"start_s": starts, "source": sources, "target": targets, "size_bytes": sizes}
    )
    text = table.write_csv(float_precision=12)
    return {"kind": "trace", "file": {"name": "skewed.csv", "text": text}}


def _largest_load(sources: Any, targets: Any, sizes: Any, seconds: float) -> float:
    """Return the utilisation of the most loaded links of H1 or H4: hosts', edges' and pods'."""
    loads = []
    for ends in (sources, targets):
        for unit, bps in ((1, 10e9), (16, 80e9), (64, 160e9)):
            crosses = sources // unit != targets // unit
            sums = np.bincount((ends // unit)[crosses], 8.0 * sizes[crosses])
            loads.append(float(sums.max()) / seconds / bps)
    return max(loads)


def slowdowns(case: Case, result: Result) -> dict[str, pl.DataFrame]:
    """Return the flows of each group in order of start, with the columns of `bounded`: slowdowns.

    Unfinished flows count with their waiting times. Groups are sizes and, of the whole network, the
    flows into the fifth of the racks that receives most, and into the fifth that receives least.
    """
    flows = metrics.timed(result).with_columns(**bounded("slowdown", result.summary))
    flows = flows.sort("start_s", maintain_order=True)
    groups = {bucket.name: flows.filter(*metrics.within(bucket)) for bucket in SIZES}
    if case.rung == FLOWS:
        racks = flows["target"].to_numpy() // HOSTS_PER_RACK
        received = np.bincount(racks, flows["size_bytes"].to_numpy())
        order = np.argsort(received, kind="stable")
        fifth = len(order) // 5
        for name, chosen in zip(RACKS, (order[-fifth:], order[:fifth]), strict=True):
            groups[name] = flows.filter(np.isin(racks, chosen))
    return {name: group for name, group in groups.items() if group.height >= LEAST_SHOWN}


def sections(answers: Sequence[pl.DataFrame]) -> list[Floats]:
    """Return the slowdowns of each answer; of a single answer, of each of its samples."""
    if len(answers) == 1:
        samples = answers[0].partition_by(SAMPLE_COLUMN)
        answers = sorted(samples, key=lambda sample: sample[SAMPLE_COLUMN][0])
    return [answer["value"].to_numpy() for answer in answers]


def statistic(values: Floats, name: str) -> float:
    """Return the mean, or the p99 by nearest rank."""
    return float(values.mean()) if name == "mean" else nearest_rank(values, 0.99)


def interval(flows: pl.DataFrame, name: str) -> tuple[float, float]:
    """Return the 95 % interval that answers show, before a self-check widens it; NaN if unknown."""
    flows = by_sample(flows)
    if name == "mean":
        return batch_means(flows["value"].to_numpy(), samples=samples_of(flows))[1:]
    samples = [flows]
    if SAMPLE_COLUMN in flows.columns:
        samples = flows.partition_by(SAMPLE_COLUMN, maintain_order=True)
    values, are_finished = (
        [sample[column].to_numpy() for sample in samples] for column in ("value", "is_finished")
    )
    return p99_interval(values, are_finished)[1:]


@dataclass(frozen=True)
class Row:
    """A number of whole runs, and its prediction."""

    case: str
    rung: str
    size: str
    flows: int
    metric: str
    truth: float
    predicted: float
    """Number of the answer, or mean of the numbers of several answers."""
    low: float
    high: float
    """Interval of an answer: means of its ends over the answers that have one; NaN without."""
    covered: float
    """Share of these answers whose intervals contain the truth."""
    ratio: Comparison | None
    """Prediction / truth, its interval and bounds; `None` with too few flows for a judgement."""

    @property
    def error(self) -> float:
        """Prediction / truth - 1."""
        return self.predicted / self.truth - 1

    @property
    def verdict(self) -> Word | None:
        """Verdict on the ratio; `None` with too few flows for a judgement."""
        return None if self.ratio is None else Verdict((self.ratio,)).word

    @property
    def is_within(self) -> bool:
        """True if the error is within its bounds, whatever its interval."""
        return self.ratio is not None and self.ratio.margin >= 0


def truth_of(case: Case, results: Sequence[Result]) -> list[dict[str, Any]]:
    """Return the numbers of whole runs of seeds 1, 2, … as rows of the table of truths."""
    return [
        {
            **{"case": case.name, "scenario": case.digest, "seed": seed, "size": size},
            "flows": flows.height,
            **{name: statistic(flows["value"].to_numpy(), name) for name in BOUNDS},
            **{"cpu_s": result.summary["cpu_seconds"], "source": _core.SOURCE_HASH[:12]},
        }
        for seed, result in enumerate(results, start=1)
        for size, flows in slowdowns(case, result).items()
    ]


def compare(case: Case, truth: pl.DataFrame, answers: Sequence[Result]) -> Iterator[Row]:
    """Yield the numbers of a case with their predictions."""
    bounds = case.bounds or BOUNDS
    groups = [slowdowns(case, answer) for answer in answers]
    for size in groups[0]:
        of_seeds = truth.filter(size=size).sort("seed")
        if of_seeds.height < truth["seed"].n_unique():
            continue
        of_answers = [group[size] for group in groups]
        values = [flows["value"].to_numpy() for flows in of_answers]
        parts = sections(of_answers)
        if len(parts) < of_seeds.height:
            # A sample has no such flow.
            continue
        least = int(of_seeds["flows"].to_numpy().min())
        # The bounds of `flows` are for all flows and for racks, those of `sample` for sizes.
        is_judged = least >= LEAST_FLOWS and (case.rung == SAMPLE or size in (ALL.name, *RACKS))
        for name in BOUNDS:
            of_whole = of_seeds[name].to_numpy()
            whole = float(of_whole.mean())
            predicted = float(np.mean([statistic(each, name) for each in values]))
            intervals = np.array([interval(each, name) for each in of_answers])
            bound = RACKS.get(size, {}).get(name, bounds[name])
            ratios = [
                predicted / whole,
                *(statistic(p, name) / t for p, t in zip(parts, of_whole, strict=True)),
            ]
            overall, *of_sections = (between(r, 1 - bound, 1 + bound, "ratio") for r in ratios)
            (ratio,) = with_intervals(overall, of_sections).parts
            low, high = intervals[~np.isnan(intervals).any(axis=1)].T
            yield Row(
                *(case.name, case.rung, size, least, name, whole, predicted),
                *(_mean(low), _mean(high)),
                covered=_mean((low <= whole) & (whole <= high)),
                ratio=ratio if is_judged and isinstance(ratio, Comparison) else None,
            )


def _mean(values: Floats | Sequence[float]) -> float:
    """Return the mean; NaN without values."""
    return float(np.mean(values)) if len(values) else math.nan


def folder() -> Path:
    """Return the folder of the shipped truths."""
    return paths.PACKAGE / paths.VALIDATION / NAME


def choose(only: Sequence[str]) -> list[Case]:
    """Return the cases whose names contain one of the words, or all without words."""
    found = [case for case in cases() if not only or any(word in case.name for word in only)]
    if not found:
        hint = did_you_mean(only[0], [case.name for case in cases()])
        raise ScenarioError(f"--only {only[0]}: in the name of no case{hint}")
    return found


def read_truths() -> pl.DataFrame:
    """Return the shipped truths; an empty table if the file is missing."""
    file = folder() / "truth.csv"
    try:
        return pl.read_csv(io.StringIO(files.read_text(file, files.MAX_SETTINGS_BYTES)))
    except FileNotFoundError:
        texts = dict.fromkeys(("case", "scenario"), pl.String)
        return pl.DataFrame(schema={**texts, "seed": pl.Int64})
    except (OSError, pl.exceptions.PolarsError) as error:
        raise FileError(f"{file}: cannot be read: {error}") from None


def current(truths: pl.DataFrame, case: Case) -> pl.DataFrame:
    """Return the truths of a case, if they are of its present scenario and of all seeds."""
    of_case = truths.filter(case=case.name, scenario=case.digest)
    return of_case if of_case["seed"].n_unique() == len(case.seeds) else of_case.clear()


def make_truths(chosen: Sequence[Case], **options: Any) -> Path | None:
    """Run the whole networks of cases without a current truth, one after another; store them.

    Return the file, or `None` if all were current.
    """
    truths, file, written = read_truths(), folder() / "truth.csv", None
    for case in chosen:
        if current(truths, case).is_empty():
            runs = [{**case.scenario, "seed": seed} for seed in case.seeds]
            results = run_many(runs, what=case.name, **options)
            others = truths.filter(pl.col("case") != case.name)
            truths = pl.concat([others, pl.DataFrame(truth_of(case, results))], how="diagonal")
            files.write_text(file, truths.write_csv(float_precision=4))
            written = file
    return written


def validate(chosen: Sequence[Case], **options: Any) -> list[Row]:
    """Answer the cases without whole runs, and return all numbers with their predictions."""
    truths = read_truths()
    by_case = {case.name: current(truths, case) for case in chosen}
    if missing := [name for name, truth in by_case.items() if truth.is_empty()]:
        raise ScenarioError(
            f"{missing[0]}: has no current truth; `sojourn validate {NAME} --truth` runs it"
        )
    asked = [(case, question) for case in chosen for question in case.questions]
    results = run_many([question for _, question in asked], what=f"validate {NAME}", **options)
    answers: dict[str, list[Result]] = {}
    for (case, _), result in zip(asked, results, strict=True):
        answers.setdefault(case.name, []).append(result)
    return [row for case in chosen for row in compare(case, by_case[case.name], answers[case.name])]


def goals(rows: Sequence[Row]) -> dict[tuple[str, str], list[Row]]:
    """Return the judged numbers of each goal: a metric of a fidelity, with TCP apart."""
    found: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if row.ratio is not None:
            name = f"{row.rung}, TCP" if row.case.endswith(" tcp") else row.rung
            found.setdefault((name, row.metric), []).append(row)
    return found


def verdict(goal: Sequence[Row]) -> Word:
    """Return whether nine of ten numbers of a goal are within their bounds.

    Numbers whose interval contains a bound may be on either side of it.
    """
    words = [row.verdict for row in goal]
    if words.count("held") >= INSIDE * len(words):
        return "held"
    possible = len(words) - words.count("not held")
    return "not judged" if possible >= INSIDE * len(words) else "not held"


def as_table(rows: Sequence[Row]) -> pl.DataFrame:
    """Return the rows as a table."""
    return pl.DataFrame(
        [
            {name: value for name, value in vars(row).items() if name != "ratio"}
            | {"error": row.error, "verdict": row.verdict}
            | {"sentence": None if row.ratio is None else row.ratio.sentence}
            for row in rows
        ]
    )


def tables(rows: Sequence[Row]) -> list[Table]:
    """Return the errors of each case by size, and a summary of each rung."""
    return [_errors(rows), _summary(rows)]


def _errors(rows: Sequence[Row]) -> Table:
    cells = []
    by_size: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        by_size.setdefault((row.case, row.rung, row.size), []).append(row)
    for (case, rung, size), pair in by_size.items():
        numbers = []
        for row in pair:
            numbers += [
                f"{row.truth:.3g}",
                f"{row.predicted:.3g}" + _interval(row),
                _error(row),
            ]
        cells.append([case, rung, size, f"{pair[0].flows:,}", *numbers])
    columns = ["case", "fidelity", "size", "flows"]
    for name in BOUNDS:
        columns += [f"{name}, whole", f"{name}, predicted", f"{name}, error"]
    return Table("slowdowns", columns, cells, labels=3, optional=columns[5::3])


def _interval(row: Row) -> str:
    return "" if math.isnan(row.covered) else f" ({row.low:.3g} to {row.high:.3g})"


def _error(row: Row) -> str:
    """Return the error of a number; if judged, with its interval and a sign of its verdict."""
    error = f"{100 * row.error:+.0f}"
    if row.ratio is None or row.verdict is None:
        return f"{error} %"
    low, high = (f"{100 * (bound - 1):+.0f}" for bound in row.ratio.interval)
    return f"{error} ({low} to {high}) % {SIGNS[row.verdict]}"


def _summary(rows: Sequence[Row]) -> Table:
    cells = []
    for (rung, metric), goal in goals(rows).items():
        errors = np.array([abs(row.error) for row in goal])
        covered = _mean([row.covered for row in goal if not math.isnan(row.covered)])
        cells.append(
            [
                *(rung, metric, str(len(goal))),
                *(f"{100 * np.quantile(errors, share):.1f} %" for share in (0.5, 0.9)),
                f"{100 * np.mean([row.is_within for row in goal]):.0f} %",
                *(str(sum(row.verdict == word for row in goal)) for word in SIGNS),
                "-" if math.isnan(covered) else f"{100 * covered:.0f} %",
                verdict(goal),
            ]
        )
    columns = ["fidelity", "metric", "numbers", "median error", "p90 error", "within bounds"]
    return Table("errors", [*columns, *SIGNS, "intervals cover", "verdict"], cells, labels=2)
