"""Sojourn: a laboratory for congestion control, judged by flow completion time."""

import importlib
from typing import TYPE_CHECKING, Any

from sojourn._core import VERSION as __version__
from sojourn._core import (
    Ack,
    Allowance,
    Interval,
    Loss,
    Monitor,
    Opened,
    Path,
    ScenarioError,
)
from sojourn.controller import Controller
from sojourn.fluid import Fluid, PhaseMargin, fluid
from sojourn.results import Result, Run
from sojourn.run import over_seeds, run, run_many, sweep
from sojourn.scenario import check, expand, override, parts, read, schema

if TYPE_CHECKING:
    from sojourn import (
        accounts,
        calls,
        convergence,
        looks,
        metrics,
        pairs,
        plot,
        steady,
        theory,
        traces,
        tune,
    )
    from sojourn.claims import (
        Verdict,
        all_at_least,
        all_at_most,
        at_least,
        at_most,
        between,
        equals,
        every,
        not_judged,
        said,
    )
    from sojourn.figure import Figure, Labelled, Paper, Scale
    from sojourn.notebook import Comparison, comparison

__all__ = [
    "Ack",
    "Allowance",
    "Comparison",
    "Controller",
    "Figure",
    "Fluid",
    "Interval",
    "Labelled",
    "Loss",
    "Monitor",
    "Opened",
    "Paper",
    "Path",
    "PhaseMargin",
    "Result",
    "Run",
    "Scale",
    "ScenarioError",
    "Verdict",
    "__version__",
    "accounts",
    "all_at_least",
    "all_at_most",
    "at_least",
    "at_most",
    "between",
    "calls",
    "check",
    "comparison",
    "convergence",
    "equals",
    "every",
    "expand",
    "fluid",
    "looks",
    "metrics",
    "not_judged",
    "over_seeds",
    "override",
    "pairs",
    "parts",
    "plot",
    "read",
    "run",
    "run_many",
    "said",
    "schema",
    "steady",
    "sweep",
    "theory",
    "traces",
    "tune",
]


MODULES = (
    "accounts",
    "calls",
    "convergence",
    "looks",
    "metrics",
    "pairs",
    "plot",
    "steady",
    "theory",
    "traces",
    "tune",
)


OWNERS = dict.fromkeys(("Figure", "Labelled", "Paper", "Scale"), "figure") | dict.fromkeys(
    ("Comparison", "comparison"), "notebook"
)
"""Where what is neither here nor a claim is defined."""


def _shown(result: Result) -> str:
    return str(importlib.import_module("sojourn.notebook").of_result(result))


Result.shown = staticmethod(_shown)


def __getattr__(name: str) -> Any:
    """Load what draws and computes statistics only when it is asked for: that takes a second."""
    if name in MODULES:
        return importlib.import_module(f"sojourn.{name}")
    if name in __all__:
        module = OWNERS.get(name, "claims")
        return getattr(importlib.import_module(f"sojourn.{module}"), name)
    raise AttributeError(f"module 'sojourn' has no attribute {name!r}")
