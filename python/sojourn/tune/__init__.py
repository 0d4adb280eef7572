"""Search for the best parameters of a scenario."""

from sojourn.tune.objectives import Constraint, Goal, Measure
from sojourn.tune.ranges import Choice, Parameter, Range
from sojourn.tune.study import search
from sojourn.tune.trials import Gain, Held, Trial, Tuned

__all__ = [
    "Choice",
    "Constraint",
    "Gain",
    "Goal",
    "Held",
    "Measure",
    "Parameter",
    "Range",
    "Trial",
    "Tuned",
    "search",
]
