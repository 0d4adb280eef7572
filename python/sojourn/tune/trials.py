"""Trials: choices of parameters, what was measured of them, and which of them are the best.

All trials have the same seeds, so the same flows, and ratios are taken within seeds. Means over
seeds are geometric, as those of ratios are.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from sojourn.analysis import metrics
from sojourn.analysis.metrics import Floats
from sojourn.scenario.overrides import override
from sojourn.scenario.reading import Scenario
from sojourn.tune.objectives import Constraint, Goal, Measure
from sojourn.tune.ranges import Parameter, Range

DONE, STOPPED, REFUSED = "done", "stopped early", "refused"
"""How a trial ends: with all seeds, as surely worse than another, or as a scenario that is none."""


@dataclass(frozen=True)
class Trial:
    """One choice of parameters, and what came of it."""

    number: int
    """The first, 0, is the scenario as it is."""
    at: Mapping[str, Any]
    """What the parameters are, by path, as scenarios say it."""
    places: Mapping[str, Any] = field(default_factory=dict)
    """What the search calls them; empty for a scenario that lies outside of the ranges."""
    measured: Mapping[str, list[float]] = field(default_factory=dict)
    """What was measured: by measure, a value for each seed."""
    ended: str = DONE
    why: str = ""
    """Why it was refused."""
    at_least: bool = False
    """Whether a value is a lower bound, since flows did not finish."""

    @property
    def seeds(self) -> int:
        """With how many seeds it was run."""
        return max(map(len, self.measured.values()), default=0)

    def losses(self, goal: Goal) -> Floats:
        """Return the logarithm of a goal's value for each seed, less where it is better."""
        return np.array([goal.loss(value) for value in self.measured[goal.measure.text]])

    def excess(self, bound: Constraint) -> Floats:
        """Return by how much each seed breaks a bound; at most 0 where it keeps it."""
        return np.array([bound.excess(value) for value in self.measured[bound.measure.text]])


@dataclass(frozen=True)
class Gain:
    """What the parameters of a trial are worth for a goal, on fresh seeds."""

    trial: int
    measure: str
    value: float
    """The measure over that of the scenario as it is, on the same flows."""
    low: float
    high: float
    """The 95 % interval of this ratio, by Student's distribution over seeds."""
    before: float
    after: float
    """The geometric means of the measure that the ratio is of."""
    seeds: int


@dataclass(frozen=True)
class Held:
    """A measure that has a bound, of a trial on fresh seeds: the mean and its 95 % interval."""

    trial: int
    bound: Constraint
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Tuned:
    """A search that is over, or how far it is."""

    scenario: Scenario
    space: tuple[Parameter, ...]
    implied: Mapping[str, Any]
    """What else a scenario says that has these parameters, such as the kind of its queue."""
    goals: tuple[Goal, ...]
    bounds: tuple[Constraint, ...]
    done: tuple[Trial, ...]
    wanted: int
    """How many trials there are to be."""
    gains: tuple[Gain, ...] = ()
    """By trial, then by goal. Empty if the search found nothing better than the scenario."""
    held: tuple[Held, ...] = ()
    """By trial, then by bound."""

    @property
    def measures(self) -> list[Measure]:
        """What is measured, of goals and then of bounds, each once."""
        every = [goal.measure for goal in self.goals] + [bound.measure for bound in self.bounds]
        return list({one.text: one for one in every}.values())

    def value(self, trial: Trial, goal: Goal) -> float:
        """Return the mean over all seeds; that of a trial with fewer seeds by its ratios."""
        losses, defaults = trial.losses(goal), self.done[0].losses(goal)
        loss = float(defaults.mean() + (losses - defaults[: len(losses)]).mean())
        return math.exp(-loss if goal.maximise else loss)

    def losses(self, trial: Trial) -> list[float]:
        """Return the logarithm of each goal's value, less where it is better."""
        return [goal.loss(self.value(trial, goal)) for goal in self.goals]

    def excess(self, trial: Trial) -> dict[str, float]:
        """Return by how much the mean over seeds breaks each bound; at most 0 where it keeps it."""
        return {bound.text: float(trial.excess(bound).mean()) for bound in self.bounds}

    def is_allowed(self, trial: Trial) -> bool:
        """Return whether a trial keeps all bounds."""
        return trial.ended != REFUSED and all(over <= 0 for over in self.excess(trial).values())

    @property
    def front(self) -> list[Trial]:
        """The best trials by the first goal, each better in the second than all before it.

        With a single goal it is one trial. Empty if no trial with all seeds keeps the bounds.
        """
        whole = [one for one in self.done if one.ended == DONE and self.is_allowed(one)]
        found: list[Trial] = []
        for trial in sorted(whole, key=lambda one: (*self.losses(one), one.number)):
            last = self.losses(found[-1]) if found else []
            if not found or self.losses(trial)[1:] < last[1:]:
                found.append(trial)
        return found

    @property
    def best(self) -> Trial | None:
        """The best trial by the first goal; `None` if no trial keeps the bounds."""
        return next(iter(self.front), None)

    @property
    def gain(self) -> Gain | None:
        """What the best trial is worth on fresh seeds; `None` if it is the scenario as it is."""
        return next((gain for gain in self.gains if gain.trial == self.front[0].number), None)

    def changes(self, trial: Trial) -> dict[str, Any]:
        """Return what the scenario of a trial says, by path."""
        return {} if trial.number == 0 else {**self.implied, **trial.at}

    def scenario_of(self, trial: Trial) -> Scenario:
        """Return the scenario with the parameters of a trial."""
        return override(self.scenario, self.changes(trial))

    @property
    def trials(self) -> pl.DataFrame:
        """A row for each trial: its parameters, its measures, and how it ended.

        Goals are geometric means over seeds, other measures means. Of a trial that was stopped
        early goals are what its ratios to the scenario as it is, on its seeds, make of all seeds.
        """
        return pl.DataFrame([self._row(one) for one in self.done], infer_schema_length=None)

    def _row(self, trial: Trial) -> dict[str, Any]:
        means = {
            name: float(np.mean(values)) if values else None
            for name, values in trial.measured.items()
        }
        is_run = trial.ended != REFUSED
        values = {
            goal.measure.text: self.value(trial, goal) if is_run else None for goal in self.goals
        }
        return {
            "trial": trial.number,
            **{one.path: _in_column(one, trial.at[one.path]) for one in self.space},
            **{one.text: values.get(one.text, means.get(one.text)) for one in self.measures},
            "seeds": trial.seeds,
            "ended": trial.ended,
            "keeps_bounds": self.is_allowed(trial),
            "at_least": trial.at_least,
            "why": trial.why,
        }


def _in_column(parameter: Parameter, value: Any) -> Any:
    """Return a value for a column, whose values are of one kind: numbers, or else texts."""
    if not isinstance(parameter, Range) or parameter.unit:
        return str(value)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number else None


def surely_worse(
    trial: Trial, rivals: list[Trial], goals: tuple[Goal, ...], bounds: tuple[Constraint, ...]
) -> bool:
    """Return whether a trial need not go on: a rival surely beats it, or it surely breaks a bound.

    That is so if the 95 % interval over the seeds so far, at least two, says so: of the ratio to
    the rival within each seed, for every goal; or of what is bounded.
    """
    if any(metrics.t_interval(trial.excess(bound))[1] > 0 for bound in bounds):
        return True
    return any(
        all(_least(trial.losses(goal), rival.losses(goal)) > 0 for goal in goals)
        for rival in rivals
    )


def _least(ours: Floats, theirs: Floats) -> float:
    return metrics.t_interval(ours - theirs[: len(ours)])[1]
