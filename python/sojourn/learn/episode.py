"""Episodes: runs that stop at every turn, until somebody has said what their agents do next.

A run is one call of the core, so it has a thread of its own. Run and caller take turns: one always
waits while the other goes on, so neither needs to guard what it reads of the other. Threads, since
a coroutine would switch stacks below the compiled core, which keeps account of them by thread.
"""

import itertools
import json
import queue
import threading
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from sojourn import _core
from sojourn._core import Interval, ScenarioError
from sojourn.runs.runner import POLL_INTERVAL_S
from sojourn.scenario.encoding import encode

AT_ONCE_S = 1e-9
"""How long after an agent's start its first turn is: all that start together have then started, and
no packet has left."""

MORE = (
    "agent: its class has more than {} flow, and all flows of a class are agents; give one a class"
    " of its own, or take a ParallelEnvironment"
)


class Agent(Protocol):
    """The controller of a flow that learns, as its episode knows it."""

    flow: int
    wakes_s: float
    is_over: bool

    def allow(self, packets: float) -> None:
        """Set what may be sent from now on, as `Interval.allowed_packets` counts it."""

    def close(self, now_s: float) -> Interval:
        """Return what happened since it was closed last."""


class Stopped(Exception):
    """Ends a run from within: nobody steps it any more."""


running: dict[int, "Episode"] = {}
"""The episodes in progress by number, by which agents find theirs."""

_numbers = itertools.count(1)


class Episode:
    """One run, from turn to turn. What begins with `run_` is for its agents, in its own thread."""

    def __init__(
        self, scenario: Mapping[str, Any], classes: Iterable[str], flows: int, rtts: float
    ) -> None:
        """Prepare a run of a scenario as `check` returns it; so many flows of `classes` are agents.

        An interval is so many base RTTs of the first of them.
        """
        self.agents: dict[int, Agent] = {}
        """All that have started, by flow; those that are over too."""
        self.now_s = 0.0
        """When the run stands still, in seconds."""
        self.is_done = False
        """Whether the run has ended by itself: nothing is left to happen, or the time is up."""
        self._expected, self._rtts, self._interval_s = flows, rtts, 0.0
        self._next_s = -1.0
        self._number = next(_numbers)
        transports = dict(scenario["transports"])
        for name in classes:
            parameters = transports[name]["parameters"] | {"episode": self._number}
            transports[name] = transports[name] | {"parameters": parameters}
        self._text, self._texts = encode({**scenario, "transports": transports})
        self._watch = _core.Watch()
        self._problem: BaseException | None = None
        self._is_wanted = True
        self._go: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._stands: queue.SimpleQueue[None] = queue.SimpleQueue()
        # A daemon, for who forgets to close an environment should still see the program end.
        self._thread = threading.Thread(target=self._run, name="sojourn episode", daemon=True)

    def begin(self) -> None:
        """Go on to the first turn."""
        running[self._number] = self
        self._thread.start()
        self._wait()
        if not self.agents:
            raise ScenarioError("time_limit: ends the run before the first agent's flow starts")

    def go_on(self) -> None:
        """Go on to the next turn, to the last agent's end or to the end of the run."""
        self._go.put(None)
        self._wait()

    def end(self) -> None:
        """End the run, wherever it is, and its thread."""
        if running.pop(self._number, None) is None:
            return
        self._is_wanted = False
        self._watch.stop()
        self._go.put(None)
        self._thread.join()

    def _wait(self) -> None:
        try:
            while not self._has_stopped():
                pass
        except BaseException:
            self.end()
            raise
        if self._problem is not None:
            self.end()
            raise self._problem
        for agent in self.agents.values():
            # Of a flow that has stopped, nobody wakes the sender.
            agent.is_over |= agent.wakes_s < self.now_s

    def _has_stopped(self) -> bool:
        """Wait a while for the run to stand still; an interrupt is heard of only in between."""
        try:
            self._stands.get(timeout=POLL_INTERVAL_S)
        except queue.Empty:
            return False
        return True

    def _run(self) -> None:
        try:
            columns = _core.run(self._text, self._watch, 1, self._texts)
            self.now_s = float(json.loads(columns["summary"])["simulated_s"])
            self.is_done = True
        except BaseException as error:
            self._problem = self._problem or error
        self._stands.put(None)

    def run_join(self, agent: Agent, start_s: float, base_rtt_s: float) -> float:
        """Take in an agent that starts; return when its first turn is, in seconds."""
        if len(self.agents) == self._expected:
            self._is_wanted = False
            self._problem = ScenarioError(MORE.format(self._expected))
            raise self._problem
        self.agents[agent.flow] = agent
        self._interval_s = self._interval_s or self._rtts * base_rtt_s
        if self._next_s <= start_s:
            self._next_s = _to_the_picosecond(start_s + AT_ONCE_S)
        return self._next_s

    def run_turn(self, now_s: float) -> float:
        """Take a turn, unless another agent has taken it; return when the next one is."""
        if now_s >= self._next_s:
            self._next_s = _to_the_picosecond(now_s + self._interval_s)
            self._stand(now_s)
        return self._next_s

    def run_leave(self, now_s: float) -> None:
        """Hear that an agent's flow is over: the last one's is told at once."""
        if sum(agent.is_over for agent in self.agents.values()) == self._expected:
            self._stand(now_s)

    def _stand(self, now_s: float) -> None:
        """Stand still until somebody wants the run to go on."""
        self.now_s = now_s
        if self._is_wanted:
            self._stands.put(None)
            self._go.get()
        # Before a run has stopped, several agents may have come here.
        if not self._is_wanted:
            raise Stopped


def _to_the_picosecond(time_s: float) -> float:
    """Return the time as the core will tell it, so that the two can be compared."""
    return round(1e12 * time_s) / 1e12
