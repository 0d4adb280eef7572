"""Causal chains: the intervals of one flow's completion time, in order of time."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from sojourn._core import ScenarioError
from sojourn.analysis import breakdown
from sojourn.analysis.breakdown import PARTS
from sojourn.runs.results import Result, Run, no_such_flow


def pieces(result: Result, flow: int) -> pl.DataFrame:
    """Return the causal chain of a flow: one row for each interval, in order of time.

    The columns are `reason`, `begins_s` (after the flow's start), `lasts_s`, and each of `PARTS` in
    seconds; the parts add up to `lasts_s`. Adjacent intervals with one reason are merged, except
    waits for a window, which last one RTT each. Raises `ScenarioError` if the flow has
    no chain.
    """
    chain = result.chain.filter(flow=flow)
    if chain.is_empty():
        if flow not in result.flows["flow"]:
            raise ScenarioError(no_such_flow(flow, result))
        raise ScenarioError(f"--flow {flow}: the flow did not finish; it has no FCT breakdown")
    places = [name for name in chain.columns if name not in ("flow", "reason", "begins_ps")]
    rows: list[dict[str, Any]] = []
    for row in chain.iter_rows(named=True):
        interval = {"reason": row["reason"], "begins_s": row["begins_ps"] / 1e12}
        interval |= dict.fromkeys(PARTS, 0.0)
        for place in places:
            interval[breakdown.part_of(f"{row['reason']}_{place}")] += row[place] / 1e12
        if rows and row["reason"] != "window" and rows[-1]["reason"] == row["reason"]:
            for part in PARTS:
                rows[-1][part] += interval[part]
        else:
            rows.append(interval)
    return pl.DataFrame(rows).with_columns(lasts_s=pl.sum_horizontal(*PARTS))


@dataclass(frozen=True)
class Chain:
    """The causal chain of a flow in one run."""

    title: str
    """The flow, preceded by the scheme if there are several, with the seed if it is not 1."""
    pieces: pl.DataFrame
    """The intervals, as the function `pieces` returns them."""
    ideal_s: float
    """The ideal FCT of the flow."""

    @property
    def fct_s(self) -> float:
        """The completion time of the flow."""
        return float(self.pieces["begins_s"][-1] + self.pieces["lasts_s"][-1])


def of_runs(runs: Sequence[Run], flow: int) -> list[Chain]:
    """Return the causal chain of a flow under each scheme, from the scheme's first run.

    Raises `ScenarioError` if the flow has no chain, or a run is of an ideal.
    """
    if any(breakdown.is_ideal(run.result) for run in runs):
        raise ScenarioError(f'--flow {flow}: an ideal has no causal chains; use model = "packet"')
    chains = {}
    for run in runs:
        scheme = ", ".join(str(value) for name, value in run.labels.items() if name != "seed")
        title = f"{scheme}: flow {flow}" if scheme else f"flow {flow}"
        if (seed := run.labels.get("seed", 1)) != 1:
            title += f", seed {seed}"
        if title not in chains:
            intervals = pieces(run.result, flow)
            ideal_s = float(run.result.flows.filter(flow=flow)["ideal_fct_s"].item())
            chains[title] = Chain(title, intervals, ideal_s)
    return list(chains.values())
