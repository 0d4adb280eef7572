"""Queues: distributions over time of the backlogs of groups of ports.

`queues.csv` of a folder of cases contains mean, percentiles and maximum of the backlogs of all
ports of a group from the start of a run until `until_s`, in whole KB, rounded down as in the
histograms of HPCC's simulator; those of Sojourn are sampled (`queue_bytes`). `ports` in
`cases.toml` lists the links of each group.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import polars as pl

from sojourn.base.errors import FileError
from sojourn.base.messages import did_you_mean
from sojourn.runs.results import Result
from sojourn.scenario.typed import TEXT, Column, read_csv_if_any
from sojourn.validate import noise

PERCENTILES = {"p95_kb": 0.95, "p99_kb": 0.99, "p999_kb": 0.999}
STATISTICS = ("mean_kb", *PERCENTILES, "max_kb")
COLUMNS = {
    **dict.fromkeys(("case", "run", "ports"), TEXT),
    "until_s": Column(minimum=1e-12, maximum=1e9),
    **dict.fromkeys(STATISTICS, Column()),
}


def read(file: Path) -> pl.DataFrame:
    """Return the distributions by run and group; an empty table if the file is missing."""
    return read_csv_if_any(file, COLUMNS)


def check(
    rows: pl.DataFrame, ports: Mapping[str, Sequence[str]], end_s: float, location: str
) -> None:
    """Raise `FileError`, with `location`, if a distribution cannot be compared."""
    for row in rows.to_dicts():
        if (group := row["ports"]) not in ports:
            raise FileError(
                f"{location}: unknown group of ports `{group}`{did_you_mean(group, ports)}"
            )
        if row["until_s"] > end_s:
            raise FileError(f"{location}: until_s: must be no later than `end_s` = {end_s:g}")
    if rows["ports"].is_duplicated().any():
        raise FileError(f"{location}: contains a group of ports twice")


def compare(
    reference: pl.DataFrame, ports: Mapping[str, Sequence[str]], runs: Iterable[Result]
) -> pl.DataFrame:
    """Return the statistics of each group, of Sojourn's runs and of the reference (`_other`).

    `difference` is the ratio of the means minus one, and `noise` the noise of the mean over runs,
    relative to the reference; null if the mean of the reference is 0.
    """
    by = ("ports", "until_s")
    runs = list(runs)
    groups = []
    for group, until_s in reference.select(by).rows():
        backlogs = [_backlogs_kb(run, ports[group], until_s) for run in runs]
        means = [float(backlog["kb"].to_numpy().mean()) for backlog in backlogs]
        groups.append(
            pl.concat(backlogs).select(
                ports=pl.lit(group),
                until_s=pl.lit(until_s),
                mean_kb=pl.col("kb").mean(),
                **{name: pl.col("kb").quantile(share) for name, share in PERCENTILES.items()},
                max_kb=pl.col("kb").max(),
                noise=pl.lit(noise.prediction(means)),
            )
        )
    if not groups:
        return reference
    other = reference.select(*by, *STATISTICS)
    table = pl.concat(groups).join(other, on=by, suffix="_other", maintain_order="left")
    ratio = pl.col("mean_kb") / pl.col("mean_kb_other") - 1
    is_known = pl.when(pl.col("mean_kb_other") > 0)
    return table.with_columns(
        difference=is_known.then(ratio),
        noise=is_known.then(pl.col("noise") / pl.col("mean_kb_other")),
    )


def _backlogs_kb(run: Result, links: Sequence[str], until_s: float) -> pl.DataFrame:
    probes = [f"queue_bytes {link}" for link in links]
    samples = run.samples.filter(pl.col("probe").is_in(probes), pl.col("time_s") <= until_s)
    return samples.select(kb=(pl.col("value") / 1000).floor())
