"""The compiled core: a run is a pure function of scenario, seed and version."""

from collections.abc import Sequence
from typing import Any, Final, final

__all__ = [
    "MOST_THREADS",
    "SOURCE_HASH",
    "VERSION",
    "ScenarioError",
    "Watch",
    "check",
    "estimate",
    "fluid",
    "parts",
    "run",
    "schema",
    "show",
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
class Watch:
    """Watches a run: asks it to stop, and how far it is; safe to use from any thread."""

    def __new__(cls) -> Watch: ...
    def stop(self, reason: str = "") -> None:
        """Ask the run to stop, and say why; the first reason stays."""

    def is_stopped(self) -> bool:
        """Tell whether a stop was asked for."""

    def progress(self) -> tuple[float, int, int]:
        """Tell simulated seconds, flows that have ended and packet-hops, as the run told last."""

def run(
    scenario: str, watch: Watch, threads: int = 1, texts: Sequence[str] = ...
) -> dict[str, Any]:
    """Run a scenario given as JSON; other Python threads go on meanwhile.

    What it gives as the text of a file may be a number, which counts `texts`; so in all functions.

    It may use so many `threads` of its own, from 1 to `MOST_THREADS`; any other number is a
    `ValueError`. The results are the same to the bit, whatever the number. A network that is not
    worth serving in windows runs on one thread anyway: the summary's `engine` says how many were
    used.
    """

def show(scenario: str, texts: Sequence[str] = ...) -> str:
    """Return the scenario with every default filled in, as JSON, without building any of it."""

def check(scenario: str, texts: Sequence[str] = ..., memory: int | None = None) -> str:
    """Check a scenario, and whether it fits into so many bytes of memory; return it as `show`."""

def estimate(scenario: str, texts: Sequence[str] = ..., threads: int = 1) -> str:
    """Return what a run on so many threads will need, as JSON."""

def trace(scenario: str, texts: Sequence[str] = ..., memory: int | None = None) -> dict[str, Any]:
    """Return the flows that a scenario's workload asks for, without running them.

    A workload that needs more than so many bytes of memory is refused.
    """

def fluid(setup: str) -> dict[str, Any]:
    """Integrate a fluid model given as JSON; other Python threads go on meanwhile."""

def parts() -> str:
    """Return the catalogue of parts with their parameters, as JSON."""

def schema() -> str:
    """Return what may be written in a scenario's file as a JSON schema (draft 7), as text."""
