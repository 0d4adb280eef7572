"""The public names, and the modules that define them.

Public are names imported `as` themselves, and the aliases at the end.
"""

from . import learn as learn
from . import tune as tune
from ._core import VERSION
from ._core import Ack as Ack
from ._core import Allowance as Allowance
from ._core import Arrival as Arrival
from ._core import Credit as Credit
from ._core import CreditHost as CreditHost
from ._core import Header as Header
from ._core import HopTelemetry as HopTelemetry
from ._core import InboundFlow as InboundFlow
from ._core import Interval as Interval
from ._core import Loss as Loss
from ._core import Monitor as Monitor
from ._core import Opened as Opened
from ._core import OutgoingPacket as OutgoingPacket
from ._core import Path as Path
from ._core import ScenarioError as ScenarioError
from .analysis import closed_forms, long_lived, paired, rpc
from .analysis import convergence as convergence
from .analysis import jobs as jobs
from .analysis import metrics as metrics
from .analysis.claims import Verdict as Verdict
from .analysis.claims import all_at_least as all_at_least
from .analysis.claims import all_at_most as all_at_most
from .analysis.claims import at_least as at_least
from .analysis.claims import at_most as at_most
from .analysis.claims import between as between
from .analysis.claims import equals as equals
from .analysis.claims import every as every
from .analysis.claims import finding as finding
from .analysis.claims import not_judged as not_judged
from .analysis.fluid import Fluid as Fluid
from .analysis.fluid import PhaseMargin as PhaseMargin
from .analysis.fluid import fluid as fluid
from .compare.notebook import Comparison as Comparison
from .compare.notebook import comparison as comparison
from .figures.figure import Figure as Figure
from .figures.figure import Labelled as Labelled
from .figures.figure import Paper as Paper
from .figures.figure import Scale as Scale
from .runs.cache import default_cache as default_cache
from .runs.results import Result as Result
from .runs.results import Run as Run
from .runs.runner import over_seeds as over_seeds
from .runs.runner import run as run
from .runs.runner import run_many as run_many
from .runs.runner import sweep as sweep
from .scale.fold import Folded as Folded
from .scale.fold import fold as fold
from .scenario import rate_traces
from .scenario.controller import Controller as Controller
from .scenario.credit_scheduler import CreditScheduler as CreditScheduler
from .scenario.encoding import check as check
from .scenario.encoding import parts as parts
from .scenario.encoding import schema as schema
from .scenario.overrides import expand as expand
from .scenario.overrides import override as override
from .scenario.reading import read as read
from .show import accounts as accounts
from .show import plot as plot
from .show import style

__version__ = VERSION
calls = rpc
looks = style
pairs = paired
steady = long_lived
theory = closed_forms
traces = rate_traces
