"""Chains of causes: the pieces of one flow's completion time, in order of time."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from sojourn._core import ScenarioError
from sojourn.analysis import breakdown
from sojourn.analysis.breakdown import PARTS
from sojourn.runs.results import Result, Run


def pieces(result: Result, flow: int) -> pl.DataFrame:
    """Return the chain of a flow: a row a piece, in order of time.

    `reason`, when it `begins_s` after the flow's start, how long it `lasts_s`, and each of `PARTS`
    in seconds, which add up to that. Neighbours of one reason are one piece, but for round trips
    of the window. Raises `ScenarioError` if the flow has no chain.
    """
    chain = result.chain.filter(flow=flow)
    if chain.is_empty():
        known = flow in result.flows["flow"]
        raise ScenarioError(
            f"--flow {flow}: "
            + ("did not finish, and so has no account" if known else "is not among the flows")
        )
    places = [name for name in chain.columns if name not in ("flow", "reason", "begins_ps")]
    rows: list[dict[str, Any]] = []
    for row in chain.iter_rows(named=True):
        piece = {"reason": row["reason"], "begins_s": row["begins_ps"] / 1e12}
        piece |= dict.fromkeys(PARTS, 0.0)
        for place in places:
            piece[breakdown.part_of(f"{row['reason']}_{place}")] += row[place] / 1e12
        if rows and row["reason"] != "window" and rows[-1]["reason"] == row["reason"]:
            for part in PARTS:
                rows[-1][part] += piece[part]
        else:
            rows.append(piece)
    return pl.DataFrame(rows).with_columns(lasts_s=pl.sum_horizontal(*PARTS))


@dataclass(frozen=True)
class Chain:
    """What held back a flow in one run."""

    title: str
    """The flow, and the scheme if there are several."""
    pieces: pl.DataFrame
    ideal_s: float
    """What the flow would take alone."""

    @property
    def fct_s(self) -> float:
        """How long it took."""
        return float(self.pieces["begins_s"][-1] + self.pieces["lasts_s"][-1])


def of_runs(runs: Sequence[Run], flow: int) -> list[Chain]:
    """Return the chain of a flow under each scheme, in the first of its runs.

    Raises `ScenarioError` if there is none: the flow has no account, or the run is of an ideal.
    """
    if any(breakdown.is_ideal(run.result) for run in runs):
        raise ScenarioError(f"--flow {flow}: an ideal divides no flow's time by cause")
    chains = {}
    for run in runs:
        scheme = ", ".join(str(value) for name, value in run.labels.items() if name != "seed")
        title = f"{scheme}: flow {flow}" if scheme else f"flow {flow}"
        if title not in chains:
            found = pieces(run.result, flow)
            ideal_s = float(run.result.flows.filter(flow=flow)["ideal_fct_s"].item())
            chains[title] = Chain(title, found, ideal_s)
    return list(chains.values())
