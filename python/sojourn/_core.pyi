"""The compiled core: a run is a pure function of scenario, seed and version."""

from typing import Any, Final, final

__all__ = [
    "MOST_THREADS",
    "SOURCE_HASH",
    "VERSION",
    "ScenarioError",
    "Stop",
    "check",
    "fluid",
    "parts",
    "run",
    "schema",
    "trace",
]

VERSION: Final[str]
"""Version of the simulator."""

SOURCE_HASH: Final[str]
"""Hash of the simulator's source: part of every cache key."""

MOST_THREADS: Final[int]
"""The most threads that a run may be given."""

class ScenarioError(ValueError):
    """A scenario that cannot be run: `field: what is wrong and what is allowed`."""

@final
class Stop:
    """Asks running simulations to stop; safe to set from any thread."""

    def __new__(cls) -> Stop: ...
    def set(self) -> None:
        """Ask every run that was given this object to stop."""

    def is_set(self) -> bool:
        """Tell whether a stop was asked for."""

def run(scenario: str, stop: Stop, threads: int = 1) -> dict[str, Any]:
    """Run a scenario given as JSON; other Python threads go on meanwhile.

    It may use so many `threads` of its own, from 1 to `MOST_THREADS`; any other number is a
    `ValueError`. The results are the same to the bit, whatever the number. A network that is not
    worth serving in windows runs on one thread anyway: the summary's `engine` says how many were
    used.
    """

def check(scenario: str) -> str:
    """Return the scenario with every default filled in, as JSON."""

def fluid(setup: str) -> dict[str, Any]:
    """Integrate a fluid model given as JSON; other Python threads go on meanwhile."""

def trace(scenario: str) -> dict[str, Any]:
    """Return the flows that a scenario's workload asks for, without running them."""

def parts() -> str:
    """Return the catalogue of parts with their parameters, as JSON."""

def schema() -> str:
    """Return what may be written in a scenario's file as a JSON schema (draft 7), as text."""
