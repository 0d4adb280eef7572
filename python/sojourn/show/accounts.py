"""Public module `sojourn.accounts`: FCT breakdowns and their stacked bars."""

from sojourn.analysis.breakdown import *  # noqa: F403 - all names are public
from sojourn.show.parts import COLOURS as COLOURS  # noqa: PLC0414
from sojourn.show.parts import stack as stack  # noqa: PLC0414
