"""Fluid models: control laws as delay differential equations, with fixed points and phase margins.

A fluid model gives the mean behaviour of a control law without packets and randomness, and its
distance from oscillation. The laws and their parameters are under `fluid` in `sojourn parts`.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from sojourn import _core
from sojourn.runs.result_tables import sample_table
from sojourn.scenario.encoding import as_json
from sojourn.scenario.reading import with_files


@dataclass(frozen=True)
class PhaseMargin:
    """Phase margin of the control loop at its fixed point."""

    degrees: float
    """Phase margin at the gain crossover; if negative, the fixed point is unstable."""

    frequency_rad_s: float
    """Frequency of the crossover in radians per second."""


@dataclass(frozen=True)
class Fluid:
    """Solution of a fluid model."""

    samples: pl.DataFrame
    """State variables over time in long form: `time_s`, `probe`, `value`.

    Probes are `queue_bytes`, `rate_bps flow I`, and variables of the law, such as `alpha flow I`.
    """

    fixed_point: dict[str, float] | None
    """Values of `queue_bytes`, `rate_bps` and other variables at the fixed point, if it exists."""

    phase_margin: PhaseMargin | None
    """Phase margin derived from the law; `None` without a fixed point or a crossover."""

    phase_margin_published: PhaseMargin | None
    """Phase margin by the paper's formula, if that differs from the derivation; else `None`."""

    summary: dict[str, Any]
    """The model with all defaults, and the reason for a missing fixed point."""

    def mean(self, probe: str, since_s: float = 0.0) -> float:
        """Return the mean of a probe from `since_s` to the end, in the probe's unit."""
        samples = self.samples.filter(pl.col("probe") == probe, pl.col("time_s") >= since_s)
        return float(samples["value"].to_numpy().mean())


def fluid(model: Mapping[str, Any]) -> Fluid:
    """Integrate a fluid model, and return its samples, fixed point and phase margin.

    The model is plain data like a scenario: `model` names the law; other fields are `flows`,
    `capacity`, `delay` and the parameters of the law. Raises `ScenarioError` for an invalid model.

    >>> fluid({"model": "patched_timely", "flows": 2}).fixed_point["queue_bytes"]
    78125.0
    """
    columns = _core.fluid(as_json(with_files(model)))
    summary: dict[str, Any] = json.loads(columns["summary"])
    return Fluid(
        samples=sample_table(columns),
        fixed_point=summary.get("fixed_point"),
        phase_margin=_margin(summary.get("phase_margin")),
        phase_margin_published=_margin(summary.get("phase_margin_published")),
        summary=summary,
    )


def _margin(fields: Mapping[str, float] | None) -> PhaseMargin | None:
    return PhaseMargin(**fields) if fields else None
