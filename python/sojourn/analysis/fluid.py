"""Fluid models: control laws as delay differential equations, with fixed points and phase margins.

A fluid says where a law leads on average, without packets or chance, and how close to oscillation
it is. The laws and their parameters are under `fluid` in the catalogue of parts.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from sojourn import _core
from sojourn.runs.results import sample_table
from sojourn.scenario.encoding import as_json


@dataclass(frozen=True)
class PhaseMargin:
    """How far the loop is from oscillation at its fixed point."""

    degrees: float
    """Phase left at the gain crossover; below zero the fixed point is unstable."""

    frequency_rad_s: float
    """The crossover's frequency in radians a second."""


@dataclass(frozen=True)
class Fluid:
    """What a fluid model gives."""

    samples: pl.DataFrame
    """The state over time in long form: `time_s`, `probe`, `value`.

    Probes are `queue_bytes`, `rate_bps flow I`, and what else the law has, such as `alpha flow I`.
    """

    fixed_point: dict[str, float] | None
    """The variables where nothing changes, such as `queue_bytes` and `rate_bps`, if any."""

    phase_margin: PhaseMargin | None
    """The margin that follows from the law; none without a fixed point or a crossover."""

    phase_margin_published: PhaseMargin | None
    """The margin as the law's paper evaluated it, where that differs; none elsewhere."""

    summary: dict[str, Any]
    """The model with every default filled in, and why there is no fixed point if there is none."""

    def mean(self, probe: str, since_s: float = 0.0) -> float:
        """Return the mean of a probe from an instant on, in the probe's unit."""
        chosen = self.samples.filter(pl.col("probe") == probe, pl.col("time_s") >= since_s)
        return float(chosen["value"].to_numpy().mean())


def fluid(model: Mapping[str, Any]) -> Fluid:
    """Integrate a fluid model, and return its samples, fixed point and phase margin.

    The model is plain data like a scenario: `model` names the law, and beside it stand `flows`,
    `capacity`, `delay` and the rest. Raises `ScenarioError` for what it cannot be.

    >>> fluid({"model": "patched_timely", "flows": 2}).fixed_point["queue_bytes"]
    78125.0
    """
    columns = _core.fluid(as_json(model))
    summary: dict[str, Any] = json.loads(columns["summary"])
    return Fluid(
        samples=sample_table(columns),
        fixed_point=summary.get("fixed_point"),
        phase_margin=_margin(summary.get("phase_margin")),
        phase_margin_published=_margin(summary.get("phase_margin_published")),
        summary=summary,
    )


def _margin(found: Mapping[str, float] | None) -> PhaseMargin | None:
    return PhaseMargin(**found) if found else None
