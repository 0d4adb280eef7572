"""Actions, observations and rewards of agents."""

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
from sojourn.base.errors import check_whole
from sojourn.base.messages import did_you_mean, unknown_option
from sojourn.learn.episode import Agent
from sojourn.scenario.controller_files import KIND, MECHANISM
from sojourn.scenario.conversion import without_array

AGENT = Path(__file__).with_name("agent_controller.py")
"""File of the controller of agents' flows."""

Array = NDArray[np.float32]
Info = dict[str, Any]

MAX_OBSERVED = 1e38
"""Largest limit of observed numbers, which observations contain as 32-bit floats."""

MIN_PACKETS, MAX_PACKETS = 1.0, 10_000.0
"""Limits of the window in packets; the upper one is that of short paths."""

MAX_PIPES = 10.0
"""Limit of the window in bandwidth-delay products on long paths."""

MIN_RATE = 1e-3
"""Least rate as a share of the line rate, where this is less than a packet per base RTT."""


def observed(interval: Interval) -> tuple[float, ...]:
    """Return the default observation of an interval: six numbers without units.

    They are the utilisation of the line rate; the mean queueing delay in base RTTs; the slope of
    the RTT; the share of packets lost; the share of ACKs with an ECN echo; and the base-2 logarithm
    of the window as a share of the bandwidth-delay product.
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
    """Return the default reward: `minus_completion_time`, or `utility` for a long-lived flow."""
    if interval.left_bytes is None:
        return utility(interval)
    return minus_completion_time(interval)


def minus_completion_time(interval: Interval) -> float:
    """Return minus the duration of the interval in base RTTs.

    The sum over an episode is minus the flow completion time.
    """
    return -interval.duration_s / interval.base_rtt_s


def utility(interval: Interval) -> float:
    """Return utilisation, minus queueing delay in base RTTs, minus 10 times the loss rate.

    The function is linear, as that of Aurora [aurora19]. The weights are of Sojourn: a queueing
    delay of one base RTT, or a loss of a tenth of all packets, cancels full utilisation.
    """
    return interval.utilisation - interval.queueing - 10.0 * interval.lost_share


class Options(TypedDict, total=False):
    """Options of all environments."""

    action: Literal["window", "rate"]
    """Quantity that actions set: a window (the default), or a pacing rate. An action is a number,
    alone or in an array. A rate is clipped to at most the line rate, and at least the smaller of
    1/1000 of it and a packet per base RTT; a window to at least a packet, and at most 10,000
    packets or 10 bandwidth-delay products, whichever is larger."""
    factor: float | None
    """Factor of an action of 1, and divisor of an action of -1; other numbers are clipped; 2 by
    default. With `None`, an action is the window in packets, or the rate as a share of the line
    rate. The action space of windows ends at 10,000 packets, since the path is unknown when it is
    made; larger actions are valid up to the limit of the window."""
    interval: float
    """Duration of a step in base RTTs of the agent that starts first; 1 by default."""
    observe: Callable[[Interval], Sequence[float]]
    """Function that returns the observation of an interval; `observed` by default."""
    reward: Callable[[Interval], float]
    """Function that returns the reward of an interval; `rewarded` by default."""
    history: int
    """Number of intervals in an observation, the latest at its end; 10 by default."""
    largest: float
    """Limit of the absolute values of observed numbers; 10 by default. It is
    at most 1e38, or infinite."""
    mechanism: Mapping[str, Any]
    """Further fields of the transport of kind `python`, such as `ecn`."""


def task_of(options: Options) -> "Task":
    """Return the task with these options; raise `ScenarioError` for an unknown or invalid one."""
    if message := unknown_option(options, Options.__annotations__):
        raise ScenarioError(message)
    return Task(**options)


@dataclasses.dataclass(kw_only=True)
class Task:
    """Actions, observations and rewards of the agents of an environment."""

    action: str = "window"
    factor: float | None = 2.0
    interval: float = 1.0
    observe: Callable[[Interval], Sequence[float]] = observed
    reward: Callable[[Interval], float] = rewarded
    history: int = 10
    largest: float = 10.0
    mechanism: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check the options; raise `ScenarioError` if one is invalid."""
        if self.action not in ("window", "rate"):
            hint = did_you_mean(str(self.action), ("window", "rate"))
            raise ScenarioError(f"action: expected window or rate, not `{self.action}`{hint}")
        if not (self.factor is None or (_is_number(self.factor) and 1.0 < self.factor < math.inf)):
            raise ScenarioError(f"factor: must be a number above 1, or None, not {self.factor!r}")
        if not (_is_number(self.interval) and 0.01 <= self.interval < math.inf):
            raise ScenarioError(f"interval: must be 0.01 or more base RTTs, not {self.interval!r}")
        is_small = _is_number(self.largest) and 0.0 < self.largest <= MAX_OBSERVED
        if not (is_small or self.largest == math.inf):
            raise ScenarioError(
                f"largest: must be a number above 0, up to {MAX_OBSERVED:g}, or infinite, "
                f"not {self.largest!r}"
            )
        check_whole("history", self.history)
        if self.history < 1:
            raise ScenarioError(f"history: must be 1 or more intervals, not {self.history}")
        for name in ("observe", "reward"):
            if not callable(function := getattr(self, name)):
                raise ScenarioError(f"{name}: must be a function of an interval, not {function!r}")
        if not isinstance(self.mechanism, Mapping):
            raise ScenarioError(f"mechanism: must be a dictionary, not {self.mechanism!r}")
        for name in self.mechanism.keys() - set(MECHANISM):
            hint = did_you_mean(str(name), MECHANISM)
            raise ScenarioError(f"mechanism: unknown key `{name}`{hint}")
        self.width = len(self.observed(_EMPTY_INTERVAL))
        self.is_paced = self.action == "rate"
        self.low, self.high = -1.0, 1.0
        if self.factor is None:
            self.low, self.high = (0.0, 1.0) if self.is_paced else (MIN_PACKETS, MAX_PACKETS)

    def observed(self, interval: Interval) -> Sequence[float]:
        """Return the observation of an interval; a single number may be a scalar."""
        numbers = without_array(self.observe(interval))
        numbers = (numbers,) if isinstance(numbers, int | float) else numbers
        if not (isinstance(numbers, Sequence) and numbers and all(map(_is_real, numbers))):
            raise ScenarioError(f"observe: must return numbers, not {numbers!r}")
        return numbers

    def rewarded(self, interval: Interval) -> float:
        """Return the reward of an interval."""
        result = self.reward(interval)
        reward = _single(result)
        if reward is None or not math.isfinite(reward):
            raise ScenarioError(f"reward: must return a finite number, not {result!r}")
        return reward

    def limits(self, pipe_packets: float) -> tuple[float, float]:
        """Return the least and the largest window or rate in packets (per base RTT)."""
        if self.is_paced:
            return min(MIN_PACKETS, MIN_RATE * pipe_packets), pipe_packets
        return MIN_PACKETS, max(MAX_PACKETS, MAX_PIPES * pipe_packets)

    def transport(self) -> dict[str, Any]:
        """Return the transport of agents' flows."""
        text = files.read_text(AGENT, files.MAX_SETTINGS_BYTES)
        return {
            "kind": KIND,
            "controller": {"name": "agent.py:Agent", "text": text},
            "files": [],
            "burst": 1 if self.is_paced else "none",
            "paced": self.is_paced,
            **self.mechanism,
        }


def _is_number(value: Any) -> bool:
    value = without_array(value)
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_real(value: Any) -> bool:
    """Return true for a number, also one of a library."""
    return hasattr(value, "__float__")


def _single(value: Any) -> float | None:
    """Return a number from a scalar, or from an array or list of one number; else `None`."""
    value = without_array(value)
    while isinstance(value, list | tuple) and len(value) == 1:
        value = without_array(value[0])
    return float(value) if isinstance(value, int | float) else None


_EMPTY_INTERVAL = Interval(
    0, 0.0, 0.0, 1e-6, 0, 0, 0, 0, 0, 1e-6, 0.0, 0, 1.0, None, 1e-6, 1e9, 1500, 1460
)
"""Interval without events, to determine the length of an observation."""


class Learner:
    """An agent and its history of observations."""

    def __init__(self, task: Task, agent: Agent) -> None:
        self.agent, self._task = agent, task
        self._history = array("f", bytes(4 * task.history * task.width))

    def observe(self, now_s: float) -> tuple[Array, Info]:
        """End the interval; return the observation, and the interval as info."""
        task = self._task
        self._last = interval = self.agent.close(now_s)
        low, high = -task.largest, task.largest
        numbers = task.observed(interval)
        if len(numbers) != task.width:
            raise ScenarioError(f"observe: must return {task.width} numbers, not {numbers}")
        if any(map(math.isnan, numbers)):
            raise ScenarioError(f"observe: must return numbers without NaN, not {numbers}")
        if min(numbers) < low or max(numbers) > high:
            numbers = [min(max(number, low), high) for number in numbers]
        # For a hundred numbers, `array` is faster than numpy.
        self._history = self._history[task.width :] + array("f", numbers)
        info: Info = {"interval": interval}
        if self.agent.is_over:
            info["completion_s"] = interval.end_s - interval.start_s
        return np.array(self._history), info

    def reward(self) -> float:
        """Return the reward of the last interval."""
        return self._task.rewarded(self._last)

    def act(self, action: Any) -> None:
        """Set the window or rate of the agent."""
        task, pipe = self._task, self._last.pipe_packets
        number = _single(action)
        if number is None or not math.isfinite(number):
            found = " ".join(str(action).split())[:60]
            message = f"action: must be a number from {task.low} to {task.high}, not {found}"
            raise ScenarioError(message)
        least, most = task.limits(pipe)
        if task.factor is not None:
            number = min(max(number, task.low), task.high)
            packets = min(self._last.allowed_packets, most) * task.factor**number
        else:
            packets = number * pipe if task.is_paced else number
        self.agent.set_allowance(min(max(packets, least), most))
