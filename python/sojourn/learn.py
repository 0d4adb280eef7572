"""Environments for reinforcement learning: flows of a scenario whose windows or rates are learnt.

    from sojourn import learn

    scenario = {
        "topology": {"kind": "dumbbell", "rate": "1 Gbps", "delay": "10 us"},
        "workload": {"kind": "flows", "flows": [
            {"source": 0, "target": 10, "size": "1 MB", "class": "learner"},
            {"source": 1, "target": 11},
        ]},
        "transport": "dctcp",
    }
    environment = learn.Environment(scenario, "learner")
    observation, _ = environment.reset(seed=1)
    terminated = truncated = False
    while not (terminated or truncated):
        action = environment.action_space.sample()
        observation, reward, terminated, truncated, info = environment.step(action)

A step is a monitor interval, as in PCC and Aurora [aurora19]: a base RTT by default, as feedback on
an action takes that long to come. An action is a number from -1 to 1 that multiplies what may be
sent, as Aurora's and Orca's [orca20] do, so one policy fits all rates; by a factor of at most 2, so
that it can start as fast as slow start and give way as fast as TCP. Observations have a history of
10 intervals (Aurora's), in which the effect of an action shows.

Agents are all flows of a class; the scenario's own transport remains that of others, and says what
the queues are. An episode ends for an agent when its flow is over, which is terminated, or the time
limit has come, which is truncated. It is a function of the scenario, its seed and the actions; the
results cache knows nothing of it. Needs the extra `rl`: pip install 'sojourn[rl]'.
"""

import dataclasses
import functools
import itertools
import math
import weakref
from array import array
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from sojourn import files
from sojourn._core import ScenarioError
from sojourn.controllers import KIND, MECHANISM
from sojourn.episode import MORE, Agent, Episode, Interval
from sojourn.places import PACKAGE
from sojourn.scenario import check, trace, with_files
from sojourn.wording import did_you_mean

try:
    import gymnasium
    from gymnasium.spaces import Box
    from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv, VectorEnv
    from pettingzoo import ParallelEnv
except ImportError as error:
    needs = "sojourn.learn: needs the extra `rl`: pip install 'sojourn[rl]'"
    raise ImportError(f"{needs} ({error})") from None

__all__ = [
    "Environment",
    "Interval",
    "Options",
    "ParallelEnvironment",
    "make_vectorised",
    "minus_completion_time",
    "observed",
    "rewarded",
    "utility",
]

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
    arrived = interval.acked_bytes / interval.payload_bytes
    return (
        interval.utilisation,
        interval.queueing,
        interval.rtt_gradient,
        interval.losses / max(arrived + interval.losses, 1.0),
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
    lost = interval.losses / max(interval.acked_bytes / interval.payload_bytes + interval.losses, 1)
    return interval.utilisation - interval.queueing - 10.0 * lost


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
class _Task:
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
        for name in ("interval", "largest"):
            if not getattr(self, name) > 0.0:
                raise ScenarioError(f"{name}: must be above 0, not {getattr(self, name)}")
        if self.history < 1:
            raise ScenarioError(f"history: must be 1 or more intervals, not {self.history}")
        for name in self.mechanism.keys() - MECHANISM.values():
            hint = did_you_mean(name, MECHANISM.values())
            raise ScenarioError(f"mechanism: unknown key `{name}`{hint}")
        self.width = len(self.observe(_NOTHING))

        self.low, self.high = -1.0, 1.0
        if self.factor is None:
            self.low, self.high = (LEAST, MOST) if self.action == "window" else (0.0, 1.0)

    def observation_space(self) -> "Box[np.float32]":
        """Return the space of observations: the intervals one after another."""
        return Box(-self.largest, self.largest, (self.history * self.width,), np.float32)

    def action_space(self) -> "Box[np.float32]":
        """Return the space of actions: one number."""
        return Box(self.low, self.high, (1,), np.float32)

    def transport(self) -> dict[str, Any]:
        """Return the transport of agents."""
        is_paced = self.action == "rate"
        text = files.read_text(PACKAGE / "agent.py", files.MOST_SETTINGS)
        return {
            "kind": KIND,
            "controller": {"name": "agent.py:Agent", "text": text},
            "burst": 1 if is_paced else "none",
            "paced": is_paced,
            **self.mechanism,
        }


_NOTHING = Interval(
    0, 0.0, 0.0, 1e-6, 0, 0, 0, 0, 0, 1e-6, 0.0, 0, 1.0, None, 1e-6, 1e9, 1500, 1460
)
"""An interval in which nothing happened, to see how many numbers are observed of one."""


class _Learner:
    """An agent and what it has seen."""

    def __init__(self, task: _Task, agent: Agent) -> None:
        self.agent, self._task = agent, task
        self._seen = array("f", bytes(4 * task.history * task.width))

    def see(self, now_s: float) -> tuple[Array, float, Info]:
        """Return the observation and the reward of the interval that ends now, and the interval."""
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
        return np.array(self._seen), float(task.reward(interval)), info

    def act(self, action: Any) -> None:
        """Set what the agent may send."""
        task, pipe = self._task, self._last.pipe_packets
        number = min(max(float(action[0]), task.low), task.high)
        if math.isnan(number):
            raise ScenarioError(f"action: must be a number from {task.low} to {task.high}, not nan")
        if task.factor is not None:
            packets = self._last.allowed_packets * task.factor**number
        else:
            packets = number if task.action == "window" else number * pipe
        most = pipe if task.action == "rate" else MOST
        self.agent.allow(max(min(packets, most), min(LEAST, most)))


class _Stage:
    """A scenario whose flows of some classes are agents, and its episode in progress, if any."""

    def __init__(self, scenario: Mapping[str, Any], task: _Task) -> None:
        # Windows serve hosts one after another, while all agents take their turns at the same time.
        self._scenario = {**with_files(scenario), "engine": "events"}
        self.task = task
        self.classes: Sequence[str] = ()
        self.episode: Episode | None = None
        self._end: Callable[[], object] = list

    def flows(self, seed: int | None = None) -> dict[str, list[int]]:
        """Return the numbers of the flows of every class, by default with the scenario's seed."""
        traced = trace(self._scenario if seed is None else {**self._scenario, "seed": seed})
        flows: dict[str, list[int]] = {name: [] for name in traced["classes"]}
        names, columns = list(flows), traced["flows"]
        for flow, number in zip(columns["flow"].tolist(), columns["class"].tolist(), strict=True):
            flows[names[number]].append(flow)
        return flows

    def cast(self, classes: Sequence[str]) -> None:
        """Make agents of the flows of these classes, or raise `ScenarioError`."""
        transports = {
            **self._scenario.get("transports", {}),
            **dict.fromkeys(classes, self.task.transport()),
        }
        self._scenario = check({**self._scenario, "transports": transports})
        self.classes = classes

    def begin(self, flows: int, seed: int) -> Episode:
        """Begin an episode with so many agents."""
        self.end()
        scenario = {**self._scenario, "seed": seed}
        self.episode = Episode(scenario, self.classes, flows, self.task.interval)
        # Who forgets to close an environment keeps its thread as long as the environment.
        self._end = weakref.finalize(self, self.episode.end)
        self.episode.begin()
        return self.episode

    def go_on(self) -> Episode:
        """Go on to the next turn."""
        if self.episode is None:
            raise gymnasium.error.ResetNeeded("step: there is no episode in progress; call reset()")
        self.episode.go_on()
        return self.episode

    def end(self) -> None:
        """End the episode."""
        self.episode = None
        self._end()


class Environment(gymnasium.Env[Array, Array]):
    """One flow learns.

    It is the `agent`: a class that only this flow has, or its number; the first flow by default.
    Raises `ScenarioError` if there is no such flow, its class has others, or the scenario cannot be
    run. `reset(seed=…)` runs the scenario with this seed, `reset()` with one drawn from the last.
    Every step's info has the `interval`, that of `reset` the `seed`, and the last one, if the flow
    is over, `completion_s`: the time from its start until all of it was acknowledged.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 - as gymnasium declares it

    def __init__(
        self, scenario: Mapping[str, Any], agent: int | str = 0, **options: Unpack[Options]
    ) -> None:
        """Take the scenario, and what else is to be told."""
        task = _Task(**options)
        self._stage = _Stage(scenario, task)
        self._stage.cast([_own_class(self._stage, agent)])
        self.observation_space = task.observation_space()
        self.action_space = task.action_space()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, Info]:
        """Begin an episode, at the start of the flow; there are no `options`."""
        super().reset(seed=seed)
        seed = int(self.np_random.integers(2**63)) if seed is None else seed
        episode = self._stage.begin(1, seed)
        (agent,) = episode.agents.values()
        self._learner = _Learner(self._stage.task, agent)
        observation, _, info = self._learner.see(episode.now_s)
        return observation, info | {"seed": seed}

    def step(self, action: Array) -> tuple[Array, float, bool, bool, Info]:
        """Set what the flow may send, and go on for an interval, or to the end of the flow."""
        if self._stage.episode is not None:
            self._learner.act(action)
        episode = self._stage.go_on()
        observation, reward, info = self._learner.see(episode.now_s)
        terminated = self._learner.agent.is_over
        truncated = episode.is_done and not terminated
        if terminated or truncated:
            self._stage.end()
        return observation, reward, terminated, truncated, info

    def close(self) -> None:
        """End the episode in progress, and its thread."""
        self._stage.end()


def _own_class(stage: _Stage, agent: int | str) -> str:
    """Return the class of the flow that is meant by `agent`, if no other flow has it."""
    if isinstance(agent, str):
        # Workloads with calls do not tell beforehand which flows there are.
        return agent
    flows = stage.flows()
    name = next((name for name, numbers in flows.items() if agent in numbers), None)
    if name is None:
        last = max(itertools.chain.from_iterable(flows.values()))
        raise ScenarioError(f"agent: there is no flow {agent}, the last one is {last}")
    if len(flows[name]) > 1:
        raise ScenarioError(MORE.format(1))
    return name


class ParallelEnvironment(ParallelEnv):  # type: ignore[misc] # untyped
    """All flows of a class learn, or all flows that there are.

    Agents are named `flow_0` and so on, after the numbers of their flows. They take their turns at
    the same times. One that starts between two of them sends by itself until the next, and is among
    `agents` from then on; if it is over before, it never is. Which flows there are may depend on
    the seed: `possible_agents` are those of the last `reset`. Otherwise all is as in `Environment`.
    """

    metadata: dict[str, Any] = {"name": "sojourn", "render_modes": []}  # noqa: RUF012 - as above

    def __init__(
        self, scenario: Mapping[str, Any], agents: str | None = None, **options: Unpack[Options]
    ) -> None:
        """Take the scenario, the class of the agents, and what else is to be told."""
        self._stage = _Stage(scenario, _Task(**options))
        flows = self._stage.flows()
        self._stage.cast(list(flows) if agents is None else [agents])
        self._spaces: dict[str, tuple[Box, Box]] = {}
        self._random = np.random.default_rng()
        self._learners: dict[str, _Learner] = {}
        self.possible_agents = self._names(flows)
        self.agents: list[str] = []

    def _names(self, flows: Mapping[str, Sequence[int]]) -> list[str]:
        numbers = itertools.chain.from_iterable(flows[name] for name in self._stage.classes)
        return [f"flow_{number}" for number in sorted(numbers)]

    def observation_space(self, agent: str) -> Box:
        """Return the space of an agent's observations."""
        return self._spaces_of(agent)[0]

    def action_space(self, agent: str) -> Box:
        """Return the space of an agent's actions."""
        return self._spaces_of(agent)[1]

    def _spaces_of(self, agent: str) -> tuple[Box, Box]:
        if agent not in self._spaces:
            task = self._stage.task
            self._spaces[agent] = task.observation_space(), task.action_space()
        return self._spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Array], dict[str, Info]]:
        """Begin an episode, at the start of the first flow; there are no `options`."""
        if seed is None:
            seed = int(self._random.integers(2**63))
        else:
            self._random = np.random.default_rng(seed)
        self.possible_agents = self._names(self._stage.flows(seed))
        self.agents, self._learners = [], {}
        episode = self._stage.begin(len(self.possible_agents), seed)
        told = self._see(episode)
        infos = {name: info | {"seed": seed} for name, (_, _, info) in told.items()}
        return {name: observation for name, (observation, _, _) in told.items()}, infos

    def step(
        self, actions: Mapping[str, Array]
    ) -> tuple[
        dict[str, Array], dict[str, float], dict[str, bool], dict[str, bool], dict[str, Info]
    ]:
        """Set what every agent may send, and go on to the next turn."""
        for name in self.agents:
            if name not in actions:
                raise ScenarioError(f"step: there is no action for the agent {name}")
            self._learners[name].act(actions[name])
        episode = self._stage.go_on()
        told = self._see(episode)
        terminated = {name: self._learners[name].agent.is_over for name in told}
        truncated = {name: episode.is_done and not over for name, over in terminated.items()}
        self.agents = [name for name in told if not (terminated[name] or truncated[name])]
        if not self.agents:
            self._stage.end()
        return (
            {name: observation for name, (observation, _, _) in told.items()},
            {name: reward for name, (_, reward, _) in told.items()},
            terminated,
            truncated,
            {name: info for name, (_, _, info) in told.items()},
        )

    def _see(self, episode: Episode) -> dict[str, tuple[Array, float, Info]]:
        """Return what agents see, those that are new among them."""
        for flow, agent in episode.agents.items():
            name = f"flow_{flow}"
            if name not in self._learners and not (agent.is_over or episode.is_done):
                self._learners[name] = _Learner(self._stage.task, agent)
                self.agents.append(name)
        return {name: self._learners[name].see(episode.now_s) for name in self.agents}

    def close(self) -> None:
        """End the episode in progress, and its thread."""
        self._stage.end()


def make_vectorised(
    scenario: Mapping[str, Any],
    count: int,
    agent: int | str = 0,
    *,
    processes: bool = True,
    **options: Unpack[Options],
) -> VectorEnv[Any, Any, Any]:
    """Return so many environments as one, of gymnasium's: each in a process, or one after another.

    `reset(seed=…)` gives the first one this seed, the next one the number after it, and so on. With
    processes a script has to stand below `if __name__ == "__main__":`.
    """
    if count < 1:
        raise ScenarioError(f"count: must be 1 or more environments, not {count}")
    made = [functools.partial(Environment, scenario, agent, **options)] * count
    # A fork of a process with threads, as polars has them, may hang.
    return AsyncVectorEnv(made, context="spawn") if processes else SyncVectorEnv(made)
