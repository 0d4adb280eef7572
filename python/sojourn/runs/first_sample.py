"""Links and flows of the first of several samples.

Each sample is a network of its own, and only the first has series and samples over time.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from sojourn.runs.links import Row, is_of_later_sample
from sojourn.runs.results import Result
from sojourn.scenario.fidelity import SAMPLE


def has_several_samples(summary: Mapping[str, Any]) -> bool:
    """Return true for an answer from several folded networks."""
    fidelity = summary.get("fidelity") or {}
    return fidelity.get("kind") == SAMPLE and len(fidelity["seeds"]) > 1


def links_of_first_sample(summary: Mapping[str, Any]) -> Sequence[Row]:
    """Return the links of a summary; of several samples, those of the first."""
    links: Sequence[Row] = summary["links"]
    if not has_several_samples(summary):
        return links
    return [link for link in links if not is_of_later_sample(link["name"])]


def flows_of_first_sample(result: Result) -> pl.DataFrame:
    """Return the flow records of a result; of several samples, those of the first."""
    return result.flows.filter(sample=0) if has_several_samples(result.summary) else result.flows
