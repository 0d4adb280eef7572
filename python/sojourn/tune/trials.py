"""Trials: choices of parameters with their measures, and the best of them.

All trials have the same seeds, and so the same flows; ratios are taken for each seed. Means over
seeds are geometric, so that the mean of ratios is the ratio of means.
"""

import importlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from sojourn._core import ScenarioError
from sojourn.analysis import metrics
from sojourn.analysis.metrics import Floats
from sojourn.scenario.encoding import check
from sojourn.scenario.overrides import override
from sojourn.scenario.reading import Scenario
from sojourn.tune.objectives import Constraint, Goal, Measure
from sojourn.tune.ranges import Parameter, Range

DONE, STOPPED, INVALID = "done", "stopped early", "refused"
"""Outcomes of a trial in tables and journals.

The trial has all seeds; it was significantly worse than another trial; its scenario is invalid.
"""

MIN_IMPROVEMENT = 0.01
"""Relative change of an objective below which a trial does not count as an improvement."""


@dataclass(frozen=True)
class Trial:
    """A choice of parameters with its measures."""

    number: int
    """Number in order of proposal; 0 is the baseline, the unchanged scenario."""
    at: Mapping[str, Any]
    """Values of the parameters in the scenario, by path."""
    places: Mapping[str, Any] = field(default_factory=dict)
    """Numbers or names of the values in the search, by path; empty if a value is out of range."""
    measured: Mapping[str, list[float]] = field(default_factory=dict)
    """Values of each measure, one for each seed, in seconds, bytes or plain numbers."""
    ended: str = DONE
    """Outcome: `done`, `stopped early` or `refused`."""
    why: str = ""
    """Error of an invalid scenario."""
    missing: Mapping[str, str] = field(default_factory=dict, compare=False)
    """Reason for each measure of which a seed gives no value; empty after a resumed search."""
    at_least: bool = False
    """True if a value is a lower bound because flows did not finish."""
    thread_s: float = field(default=0.0, compare=False)
    """Time of all threads in the simulation of its runs, in seconds; 0 after a resumed search."""

    @property
    def seeds(self) -> int:
        """Number of seeds that were run."""
        return max(map(len, self.measured.values()), default=0)

    def losses(self, goal: Goal) -> Floats:
        """Return the goal's loss for each seed; smaller is better."""
        return np.array([goal.loss(value) for value in self.measured[goal.measure.text]])

    def excess(self, bound: Constraint) -> Floats:
        """Return the violation of a bound for each seed; at most 0 if the bound is satisfied."""
        return np.array([bound.excess(value) for value in self.measured[bound.measure.text]])


@dataclass(frozen=True)
class Gain:
    """Gain of a trial over the baseline for a goal, on fresh seeds."""

    trial: int
    measure: str
    value: float
    """Ratio of the measure to that of the baseline, on the same flows."""
    low: float
    high: float
    """Bounds of the 95 % confidence interval of the ratio, by Student's distribution over seeds."""
    before: float
    after: float
    """Geometric means of the measure over seeds: of the baseline, and of the trial."""
    seeds: int
    """Number of seeds that give a value in both; the others are left out of all numbers."""
    of_seeds: int
    """Number of all seeds."""
    why: str = ""
    """Reason why seeds give no value; empty if all of them give one."""


@dataclass(frozen=True)
class Held:
    """Mean of a bounded measure of a trial on fresh seeds, with its 95 % confidence interval."""

    trial: int
    bound: Constraint
    value: float
    low: float
    high: float
    seeds: int
    """Number of seeds that give a value."""
    of_seeds: int
    """Number of all seeds."""
    why: str = ""
    """Reason why seeds give no value; empty if all of them give one."""


@dataclass(frozen=True, repr=False)
class Tuned:
    """State or result of a search."""

    scenario: Scenario
    space: tuple[Parameter, ...]
    implied: Mapping[str, Any]
    """Further changes that the parameters need, such as the kind of the queue."""
    goals: tuple[Goal, ...]
    bounds: tuple[Constraint, ...]
    done: tuple[Trial, ...]
    wanted: int
    """Maximum number of trials."""
    gains: tuple[Gain, ...] = ()
    """Gains by trial, then by goal; empty if no trial is better than the baseline."""
    held: tuple[Held, ...] = ()
    """Bounded measures on fresh seeds by trial, then by bound."""
    patience: int = 0
    """Number of trials without an improvement after which the search ends."""
    remaining_s: float | None = None
    """Expected time of all remaining trials in seconds; `None` before the first trial."""

    def __repr__(self) -> str:
        """Return one line, without the scenario and the sources of its controllers."""
        best = self.best
        values = "" if best is None else f", best: trial {best.number} with {dict(best.at)}"
        return f"<Tuned: {len(self.done)} of {self.wanted} trials{values}>"

    def _repr_html_(self) -> str:
        # By name: the module imports this one, and loads matplotlib.
        return str(importlib.import_module("sojourn.tune.notebook").tuned_html(self))

    @property
    def measures(self) -> list[Measure]:
        """Measures of the goals, then of the bounds, without duplicates."""
        measures = [goal.measure for goal in self.goals]
        measures += [bound.measure for bound in self.bounds]
        return list({measure.text: measure for measure in measures}.values())

    def value(self, trial: Trial, goal: Goal) -> float:
        """Return the geometric mean over all seeds.

        For a trial with fewer seeds, it is the mean of the baseline times the mean ratio to it.
        """
        losses, baseline = trial.losses(goal), self.done[0].losses(goal)
        loss = float(baseline.mean() + (losses - baseline[: len(losses)]).mean())
        return math.exp(-loss if goal.maximise else loss)

    def losses(self, trial: Trial) -> list[float]:
        """Return the loss of each goal; smaller is better."""
        return [goal.loss(self.value(trial, goal)) for goal in self.goals]

    def excess(self, trial: Trial) -> dict[str, float]:
        """Return the mean violation of each bound over seeds; at most 0 if it is satisfied."""
        return {bound.text: float(trial.excess(bound).mean()) for bound in self.bounds}

    def is_allowed(self, trial: Trial) -> bool:
        """Return true if a trial is valid and satisfies all bounds."""
        return trial.ended != INVALID and all(excess <= 0 for excess in self.excess(trial).values())

    @property
    def front(self) -> list[Trial]:
        """The Pareto front, sorted by the first goal: no other trial is better in both goals.

        With a single goal it is the best trial. Empty if no trial with all seeds satisfies the
        bounds.
        """
        complete = [trial for trial in self.done if trial.ended == DONE and self.is_allowed(trial)]
        front: list[Trial] = []
        for trial in sorted(complete, key=lambda trial: (*self.losses(trial), trial.number)):
            last = self.losses(front[-1]) if front else []
            if not front or self.losses(trial)[1:] < last[1:]:
                front.append(trial)
        return front

    @property
    def improvements(self) -> list[int]:
        """Numbers of the trials that improved on all trials before them.

        Such a trial satisfies the bounds, has all seeds, and is better than each earlier
        improvement in at least one objective, by `MIN_IMPROVEMENT`.
        """
        least = math.log1p(MIN_IMPROVEMENT)
        improved: dict[int, list[float]] = {}
        for trial in self.done:
            if trial.ended != DONE or not self.is_allowed(trial):
                continue
            losses = self.losses(trial)
            if all(
                any(new < old - least for new, old in zip(losses, earlier, strict=True))
                for earlier in improved.values()
            ):
                improved[trial.number] = losses
        return list(improved)

    def at_edges(self, trial: Trial) -> list[Range]:
        """Return the ranges at whose edge the values of a trial lie, if they can be widened."""
        edges = []
        for item in self.space:
            if isinstance(item, Range) and item.path in trial.places:
                value = item.beyond(trial.places[item.path])
                wider = override(self.scenario, {**self.changes(trial), item.path: value})
                if value is not None and is_valid(wider):
                    edges.append(item)
        return edges

    @property
    def best(self) -> Trial | None:
        """The best trial by the first goal; `None` if no trial satisfies the bounds."""
        return next(iter(self.front), None)

    @property
    def gain(self) -> Gain | None:
        """Gain of the best trial on fresh seeds; `None` if the best trial is the baseline."""
        return next((gain for gain in self.gains if gain.trial == self.front[0].number), None)

    def changes(self, trial: Trial) -> dict[str, Any]:
        """Return the changes of a trial to the scenario, by path."""
        return {} if trial.number == 0 else {**self.implied, **trial.at}

    def scenario_of(self, trial: Trial) -> Scenario:
        """Return the scenario with the parameters of a trial."""
        return override(self.scenario, self.changes(trial))

    @property
    def trials(self) -> pl.DataFrame:
        """Table with a row for each trial: its parameters, measures and outcome.

        Goals are geometric means over seeds, other measures arithmetic means. Goals of a trial
        that was stopped early are extrapolated to all seeds by the ratios to the baseline.
        """
        rows = [self._row(trial) for trial in self.done]
        return pl.DataFrame(rows, infer_schema_length=None, schema_overrides={"why": pl.String})

    def _row(self, trial: Trial) -> dict[str, Any]:
        means = {
            name: float(np.mean(values)) if values else None
            for name, values in trial.measured.items()
        }
        is_valid = trial.ended != INVALID
        values = {
            goal.measure.text: self.value(trial, goal) if is_valid else None for goal in self.goals
        }
        return {
            "trial": trial.number,
            **{item.path: _column_value(item, trial.at[item.path]) for item in self.space},
            **{item.text: values.get(item.text, means.get(item.text)) for item in self.measures},
            "seeds": trial.seeds,
            "ended": trial.ended,
            "keeps_bounds": self.is_allowed(trial),
            "at_least": trial.at_least,
            "why": trial.why or None,
        }


def _column_value(parameter: Parameter, value: Any) -> Any:
    """Return a value for a column of one type: numbers for plain ranges, otherwise text."""
    if not isinstance(parameter, Range) or parameter.unit:
        return str(value)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number else None


def is_valid(scenario: Scenario) -> bool:
    """Return true if the scenario is valid."""
    try:
        check(scenario)
    except ScenarioError:
        return False
    return True


def is_surely_worse(
    trial: Trial, rivals: list[Trial], goals: tuple[Goal, ...], bounds: tuple[Constraint, ...]
) -> bool:
    """Return true if a rival is significantly better, or if a bound is significantly violated.

    The criterion is the 95 % confidence interval over the seeds so far, at least two: of the ratio
    to the rival for each seed, for every goal; or of the bounded measure.
    """
    if any(metrics.t_interval(trial.excess(bound))[1] > 0 for bound in bounds):
        return True
    return any(
        all(_lower_bound(trial.losses(goal), rival.losses(goal)) > 0 for goal in goals)
        for rival in rivals
    )


def _lower_bound(losses: Floats, rival_losses: Floats) -> float:
    return metrics.t_interval(losses - rival_losses[: len(losses)])[1]
