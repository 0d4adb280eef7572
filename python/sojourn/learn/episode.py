"""Episodes: runs that pause at every step until the environment has set the actions of the agents.

A run is one call of the core, so it has a thread of its own. The run and the environment alternate:
one waits while the other proceeds, so that neither needs locks. A coroutine would switch stacks
below the compiled core, which associates them with threads.
"""

import contextlib
import itertools
import json
import queue
import threading
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from sojourn import _core
from sojourn._core import Interval, ScenarioError
from sojourn.base.threads import interrupt, set_interrupt
from sojourn.runs.runner import POLL_INTERVAL_S
from sojourn.scenario.encoding import encode

FIRST_STEP_DELAY_S = 1e-9
"""Time from an agent's start to its first step.

Agents that start together have then started, and no packet has left.
"""

TOO_MANY_AGENTS = (
    "agent: its class has more than {} flow, and all flows of a class are agents; give the agent a"
    " separate class, or use a ParallelEnvironment"
)


class Agent(Protocol):
    """Interface of the controller of an agent's flow."""

    flow: int
    next_step_s: float
    is_over: bool

    def set_allowance(self, packets: float) -> None:
        """Set the window, or the rate as packets per base RTT."""

    def close(self, now_s: float) -> Interval:
        """Return the interval since the last call."""


class Stopped(Exception):
    """Exception that ends a run from within after its environment has closed."""


running: dict[int, "Episode"] = {}
"""Episodes in progress by number; agents look up their episode here."""

_numbers = itertools.count(1)


class Episode:
    """A run that pauses at every step.

    The agents call the methods `on_agent_…` in the thread of the run.
    """

    def __init__(
        self, scenario: Mapping[str, Any], classes: Iterable[str], flows: int, rtts: float
    ) -> None:
        """Prepare a run of a complete scenario, in which the `flows` flows of `classes` are agents.

        An interval is `rtts` base RTTs of the agent that starts first.
        """
        self.agents: dict[int, Agent] = {}
        """Agents that have started, by flow, including those whose flow is complete."""
        self.now_s = 0.0
        """Simulated time of the current pause."""
        self.is_done = False
        """True if the run has ended: no events are left, or the time limit was reached."""
        self._expected, self._rtts, self._interval_s = flows, rtts, 0.0
        self._next_s = -1.0
        self._number = next(_numbers)
        transports = dict(scenario["transports"])
        for name in classes:
            parameters = transports[name]["parameters"] | {"episode": self._number}
            transports[name] = transports[name] | {"parameters": parameters}
        self._text, self._texts = encode({**scenario, "transports": transports})
        self._run_control = _core.RunControl()
        self._error: BaseException | None = None
        self._is_active = True
        self._resume_signal: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._pause_signal: queue.SimpleQueue[None] = queue.SimpleQueue()
        # A daemon thread lets the program end even if an environment was not closed.
        self._thread = threading.Thread(target=self._run, name="sojourn episode", daemon=True)

    def start(self) -> None:
        """Run to the first step."""
        running[self._number] = self
        self._thread.start()
        self._wait()
        if not self.agents:
            raise ScenarioError("time_limit: the run ends before the first agent's flow starts")

    def advance(self) -> None:
        """Run to the next step, to the end of the last agent, or to the end of the run."""
        self._resume_signal.put(None)
        self._wait()

    def end(self) -> None:
        """Stop the run and its thread."""
        if running.pop(self._number, None) is None:
            return
        self._is_active = False
        self._run_control.stop()
        self._resume_signal.put(None)
        interrupt(lambda: set_interrupt(self._thread, KeyboardInterrupt), self._has_ended)

    def _has_ended(self, timeout_s: float) -> bool:
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _wait(self) -> None:
        try:
            while not self._has_paused():
                pass
        except BaseException:
            self.end()
            raise
        if self._error is not None:
            self.end()
            raise self._error
        for agent in self.agents.values():
            # The sender of a stopped flow has no timer events.
            agent.is_over |= agent.next_step_s < self.now_s

    def _has_paused(self) -> bool:
        """Wait for a pause; return false after a timeout, so that Python can handle interrupts."""
        try:
            self._pause_signal.get(timeout=POLL_INTERVAL_S)
        except queue.Empty:
            return False
        return True

    def _run(self) -> None:
        try:
            columns = _core.prepare(self._text, self._texts).run(self._run_control)
            self.now_s = float(json.loads(columns["summary"])["simulated_s"])
            self.is_done = True
        except BaseException as error:
            self._error = self._error or error
        # The interrupt of `end` may arrive after the run; then nothing waits for this signal.
        with contextlib.suppress(KeyboardInterrupt):
            self._pause_signal.put(None)

    def on_agent_start(self, agent: Agent, start_s: float, base_rtt_s: float) -> float:
        """Register an agent that starts; return the time of its first step in seconds."""
        if len(self.agents) == self._expected:
            self._is_active = False
            self._error = ScenarioError(TOO_MANY_AGENTS.format(self._expected))
            raise self._error
        self.agents[agent.flow] = agent
        self._interval_s = self._interval_s or self._rtts * base_rtt_s
        if self._next_s <= start_s:
            self._next_s = _rounded_to_picoseconds(start_s + FIRST_STEP_DELAY_S)
        return self._next_s

    def on_agent_timer(self, now_s: float) -> float:
        """Pause at a step, once for all agents; return the time of the next step in seconds."""
        if now_s >= self._next_s:
            self._next_s = _rounded_to_picoseconds(now_s + self._interval_s)
            self._pause(now_s)
        return self._next_s

    def on_agent_end(self, now_s: float) -> None:
        """Pause at once if the flow of the last agent is complete."""
        if sum(agent.is_over for agent in self.agents.values()) == self._expected:
            self._pause(now_s)

    def _pause(self, now_s: float) -> None:
        """Wait until the environment resumes or ends the run."""
        self.now_s = now_s
        if self._is_active:
            self._pause_signal.put(None)
            self._resume_signal.get()
        # Several agents may get here before a stopped run has ended.
        if not self._is_active:
            raise Stopped


def _rounded_to_picoseconds(time_s: float) -> float:
    """Return the time in the resolution of the core, for comparisons with times of the core."""
    return round(1e12 * time_s) / 1e12
