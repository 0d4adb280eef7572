"""Search for good parameters of a scenario: `search`, and what it returns."""

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
