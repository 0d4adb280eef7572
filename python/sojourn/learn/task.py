"""What agents do and see: actions, observations and rewards, once an interval."""

import dataclasses
import math
from array import array
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypedDict

import numpy as np
from numpy.typing import NDArray

from sojourn._core import Interval, ScenarioError
from sojourn.base import files
from sojourn.base.messages import did_you_mean
from sojourn.learn.episode import Agent
from sojourn.scenario.controller_files import KIND, MECHANISM

AGENT = Path(__file__).with_name("agent_controller.py")
"""File of the controller that flows of agents have."""

Array = NDArray[np.float32]
Info = dict[str, Any]

LEAST, MOST = 1.0, 10_000.0
"""Packets that an action can allow; a rate also stays below the line rate."""


def observed(interval: Interval) -> tuple[float, ...]:
    """Return what is observed of an interval by default: six numbers without units.

    The share of the line rate that was used; the mean RTT beyond the base RTT, in base RTTs; the
    slope of the RTT; the share of packets lost; the share of ACKs with marks; and what was allowed,
    as the logarithm to base 2 of its share of the bandwidth-delay product.
    """
    return (
        interval.utilisation,
        interval.queueing,
        interval.rtt_gradient,
        interval.lost_share,
        interval.marks / max(interval.acks, 1),
        math.log2(interval.allowed_packets / interval.pipe_packets),
    )


def rewarded(interval: Interval) -> float:
    """Return the reward by default: `minus_completion_time`, or `utility` of a flow without end."""
    if interval.left_bytes is None:
        return utility(interval)
    return minus_completion_time(interval)


def minus_completion_time(interval: Interval) -> float:
    """Return minus the time that passed, in base RTTs: in an episode, minus the completion time."""
    return -interval.duration_s / interval.base_rtt_s


def utility(interval: Interval) -> float:
    """Return the utilisation less the queueing delay in base RTTs less ten times the lost share.

    It is linear, as Aurora's; the weights are ours: a queue of one base RTT costs as much as the
    whole line rate is worth, and so does a tenth of all packets lost.
    """
    return interval.utilisation - interval.queueing - 10.0 * interval.lost_share


class Options(TypedDict, total=False):
    """What all environments can be told."""

    action: Literal["window", "rate"]
    """What actions set: a window (the default), or a rate that packets are paced at."""
    factor: float | None
    """What an action of 1 multiplies by and one of -1 divides by; 2 by default. With `None` actions
    are the window in packets, or the rate as a share of the line rate."""
    interval: float
    """How long a step is, in base RTTs of the first agent to start; 1 by default."""
    observe: Callable[[Interval], Sequence[float]]
    """What is observed of an interval; `observed` by default."""
    reward: Callable[[Interval], float]
    """What an interval is worth; `rewarded` by default."""
    history: int
    """How many intervals an observation has, the last one at its end; 10 by default."""
    largest: float
    """Observed numbers are cut off at plus and minus this; 10 by default."""
    mechanism: Mapping[str, Any]
    """What else a transport of kind `python` says, such as `{"ecn": False}`."""


@dataclasses.dataclass(kw_only=True)
class Task:
    """What agents do and see."""

    action: str = "window"
    factor: float | None = 2.0
    interval: float = 1.0
    observe: Callable[[Interval], Sequence[float]] = observed
    reward: Callable[[Interval], float] = rewarded
    history: int = 10
    largest: float = 10.0
    mechanism: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check what was given."""
        if self.action not in ("window", "rate"):
            hint = did_you_mean(self.action, ("window", "rate"))
            raise ScenarioError(f"action: must be window or rate, not `{self.action}`{hint}")
        if self.factor is not None and not 1.0 < self.factor < math.inf:
            raise ScenarioError(f"factor: must be a number above 1, or None, not {self.factor}")
        if not 0.01 <= self.interval < math.inf:
            raise ScenarioError(f"interval: must be 0.01 or more base RTTs, not {self.interval}")
        if not self.largest > 0.0:
            raise ScenarioError(f"largest: must be above 0, not {self.largest}")
        if self.history < 1:
            raise ScenarioError(f"history: must be 1 or more intervals, not {self.history}")
        for name in self.mechanism.keys() - MECHANISM.values():
            hint = did_you_mean(name, MECHANISM.values())
            raise ScenarioError(f"mechanism: unknown key `{name}`{hint}")
        self.width = len(self.observe(_NOTHING))
        self.is_paced = self.action == "rate"
        self.low, self.high = -1.0, 1.0
        if self.factor is None:
            self.low, self.high = (0.0, 1.0) if self.is_paced else (LEAST, MOST)

    def transport(self) -> dict[str, Any]:
        """Return the transport of agents."""
        text = files.read_text(AGENT, files.MAX_SETTINGS_BYTES)
        return {
            "kind": KIND,
            "controller": {"name": "agent.py:Agent", "text": text},
            "burst": 1 if self.is_paced else "none",
            "paced": self.is_paced,
            **self.mechanism,
        }


_NOTHING = Interval(
    0, 0.0, 0.0, 1e-6, 0, 0, 0, 0, 0, 1e-6, 0.0, 0, 1.0, None, 1e-6, 1e9, 1500, 1460
)
"""An interval in which nothing happened, to see how many numbers are observed of one."""


class Learner:
    """An agent and what it has seen."""

    def __init__(self, task: Task, agent: Agent) -> None:
        self.agent, self._task = agent, task
        self._seen = array("f", bytes(4 * task.history * task.width))

    def see(self, now_s: float) -> tuple[Array, Info]:
        """Return the observation when an interval ends now, and the interval."""
        task = self._task
        self._last = interval = self.agent.close(now_s)
        least, most = -task.largest, task.largest
        numbers = task.observe(interval)
        if min(numbers) < least or max(numbers) > most:
            numbers = [min(max(number, least), most) for number in numbers]
        # A hundred numbers are put together faster so than by numpy.
        self._seen = self._seen[task.width :] + array("f", numbers)
        info: Info = {"interval": interval}
        if self.agent.is_over:
            info["completion_s"] = interval.end_s - interval.start_s
        return np.array(self._seen), info

    def reward(self) -> float:
        """Return the reward of the last interval."""
        return float(self._task.reward(self._last))

    def act(self, action: Any) -> None:
        """Set what the agent may send."""
        task, pipe = self._task, self._last.pipe_packets
        number = min(max(float(action[0]), task.low), task.high)
        if math.isnan(number):
            raise ScenarioError(f"action: must be a number from {task.low} to {task.high}, not nan")
        if task.factor is not None:
            packets = self._last.allowed_packets * task.factor**number
        else:
            packets = number * pipe if task.is_paced else number
        most = pipe if task.is_paced else MOST
        self.agent.allow(max(min(packets, most), min(LEAST, most)))
