"""The public module `sojourn.accounts`: FCT breakdowns, and the bars that draw them."""

from sojourn.analysis.breakdown import *  # noqa: F403 - all of it is public
from sojourn.show.parts import COLOURS as COLOURS  # noqa: PLC0414
from sojourn.show.parts import stack as stack  # noqa: PLC0414
