"""Environments for Gymnasium and PettingZoo."""

import functools
import itertools
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Unpack

import numpy as np

from sojourn._core import ScenarioError
from sojourn.base.errors import check_whole
from sojourn.base.messages import install_command
from sojourn.learn.episode import TOO_MANY_AGENTS, Episode
from sojourn.learn.task import (
    Array,
    Info,
    Learner,
    Options,
    Task,
    task_of,
)
from sojourn.scenario import fidelity
from sojourn.scenario.encoding import check, trace
from sojourn.scenario.reading import with_files

try:
    import gymnasium
    from gymnasium.spaces import Box
    from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv, VectorEnv
    from pettingzoo import ParallelEnv
except ImportError as error:
    message = f"sojourn.learn: needs Gymnasium and PettingZoo: {install_command('rl')}"
    raise ImportError(f"{message} ({error})") from None


class _Session:
    """A scenario in which flows of some classes are agents, and its episode in progress."""

    def __init__(self, scenario: Mapping[str, Any], task: Task) -> None:
        # All agents step at the same simulated time, which the engine with windows cannot do.
        self._scenario = {**with_files(scenario), "engine": "events"}
        kind = fidelity.read(self._scenario.pop(fidelity.FIELD, fidelity.PACKETS)).kind
        if kind != fidelity.PACKETS:
            raise ScenarioError(f"{fidelity.FIELD}: must be {fidelity.PACKETS}, not {kind}")
        self.task = task
        self.classes: Sequence[str] = ()
        self.episode: Episode | None = None
        self._end: Callable[[], object] = list

    def flows_by_class(self, seed: int | None = None) -> dict[str, list[int]]:
        """Return the numbers of the flows of every class, by default with the scenario's seed."""
        workload = trace(self._scenario if seed is None else {**self._scenario, "seed": seed})
        flows: dict[str, list[int]] = {name: [] for name in workload["classes"]}
        names, columns = list(flows), workload["flows"]
        for flow, number in zip(columns["flow"].tolist(), columns["class"].tolist(), strict=True):
            flows[names[number]].append(flow)
        return flows

    def set_agents(self, classes: Sequence[str]) -> None:
        """Make the flows of these classes agents.

        Raises `ScenarioError` if the scenario is invalid with them.
        """
        transports = {
            **self._scenario.get("transports", {}),
            **dict.fromkeys(classes, self.task.transport()),
        }
        self._scenario = check({**self._scenario, "transports": transports})
        if self._scenario["model"] != "packet":
            raise ScenarioError(f"model: expected packet, not {self._scenario['model']}")
        self.classes = classes

    def start(self, flows: int, seed: int) -> Episode:
        """Start an episode with `flows` agents, and run it to the first step."""
        self.end()
        scenario = {**self._scenario, "seed": seed}
        self.episode = Episode(scenario, self.classes, flows, self.task.interval)
        # An environment that is not closed ends its thread when it is garbage-collected.
        self._end = weakref.finalize(self, self.episode.end)
        return self._guarded(self.episode, self.episode.start)

    def advance(self) -> Episode:
        """Run to the next step."""
        if self.episode is None:
            raise gymnasium.error.ResetNeeded("step: no episode in progress; call reset()")
        return self._guarded(self.episode, self.episode.advance)

    def _guarded(self, episode: Episode, advance: Callable[[], None]) -> Episode:
        """Call `advance`; after an exception, end the episode and raise the exception again."""
        try:
            advance()
        except BaseException:
            self.end()
            raise
        return episode

    def end(self) -> None:
        """End the episode."""
        self.episode = None
        self._end()


class Environment(gymnasium.Env[Array, Array]):
    """Gymnasium environment with one flow as the agent.

    `agent` is the number of the flow, or a class that contains no other flow; by default flow 0.
    `reset(seed=…)` runs the scenario with this seed, `reset()` with a seed drawn from a generator.
    The info of every step contains the `interval`, and the info of `reset` also the `seed`. The
    last info of a complete flow contains `completion_s`: the time from the start of the flow until
    all of its bytes are acknowledged.

    Raises `ScenarioError` if there is no such flow, if its class has other flows, or if the
    scenario or an option is invalid.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 - as gymnasium declares it

    def __init__(
        self, scenario: Mapping[str, Any], agent: int | str = 0, **options: Unpack[Options]
    ) -> None:
        """Create the environment of a scenario."""
        task = task_of(options)
        self._session = _Session(scenario, task)
        self._session.set_agents([_agent_class(self._session, agent)])
        self.observation_space, self.action_space = _spaces(task)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, Info]:
        """Start an episode at the start of the flow; `options` are ignored."""
        super().reset(seed=seed)
        seed = int(self.np_random.integers(2**63)) if seed is None else seed
        episode = self._session.start(1, seed)
        (agent,) = episode.agents.values()
        self._learner = Learner(self._session.task, agent)
        observation, info = self._learner.observe(episode.now_s)
        return observation, info | {"seed": seed}

    def step(self, action: Array) -> tuple[Array, float, bool, bool, Info]:
        """Set the window or rate, and run for an interval or to the end of the flow."""
        if self._session.episode is not None:
            self._learner.act(action)
        episode = self._session.advance()
        observation, info = self._learner.observe(episode.now_s)
        terminated = self._learner.agent.is_over
        truncated = episode.is_done and not terminated
        if terminated or truncated:
            self._session.end()
        return observation, self._learner.reward(), terminated, truncated, info

    def close(self) -> None:
        """End the episode in progress, and its thread."""
        self._session.end()


Spaces = tuple["Box[np.float32]", "Box[np.float32]"]


def _spaces(task: Task) -> Spaces:
    """Return the spaces of observations and of actions."""
    shape = (task.history * task.width,)
    observations = Box(-task.largest, task.largest, shape, np.float32)
    return observations, Box(task.low, task.high, (1,), np.float32)


def _agent_class(session: _Session, agent: int | str) -> str:
    """Return the class of the flow `agent`; raise `ScenarioError` if it contains other flows."""
    if isinstance(agent, str):
        # The flows of workloads with calls are not known in advance.
        return agent
    flows = session.flows_by_class()
    name = next((name for name, numbers in flows.items() if agent in numbers), None)
    if name is None:
        last = max(itertools.chain.from_iterable(flows.values()))
        raise ScenarioError(f"agent: unknown flow {agent}; the last flow is {last}")
    if len(flows[name]) > 1:
        raise ScenarioError(TOO_MANY_AGENTS.format(1))
    return name


class ParallelEnvironment(ParallelEnv):  # type: ignore[misc] # untyped
    """PettingZoo environment in which all flows of a class, or all flows, are agents.

    Agents are named `flow_0` and so on, after the numbers of their flows. All agents step at the
    same times. A flow that starts between two steps has its initial window until the next step, and
    is one of `agents` from then on; a flow that completes before that step never is. The flows may
    depend on the seed: `possible_agents` are those of the last `reset`. Options, info and errors
    are those of `Environment`.
    """

    metadata: dict[str, Any] = {"name": "sojourn", "render_modes": []}  # noqa: RUF012 - as above

    def __init__(
        self, scenario: Mapping[str, Any], agents: str | None = None, **options: Unpack[Options]
    ) -> None:
        """Create the environment; `agents` is the class of the agents, by default all flows."""
        self._session = _Session(scenario, task_of(options))
        flows = self._session.flows_by_class()
        self._session.set_agents(list(flows) if agents is None else [agents])
        self._spaces: dict[str, Spaces] = {}
        self._random = np.random.default_rng()
        self._learners: dict[str, Learner] = {}
        self.possible_agents = self._names(flows)
        self.agents: list[str] = []

    def _names(self, flows: Mapping[str, Sequence[int]]) -> list[str]:
        numbers = itertools.chain.from_iterable(flows[name] for name in self._session.classes)
        return [f"flow_{number}" for number in sorted(numbers)]

    def observation_space(self, agent: str) -> "Box[np.float32]":
        """Return the space of an agent's observations."""
        return self._spaces_of(agent)[0]

    def action_space(self, agent: str) -> "Box[np.float32]":
        """Return the space of an agent's actions."""
        return self._spaces_of(agent)[1]

    def _spaces_of(self, agent: str) -> Spaces:
        if agent not in self._spaces:
            self._spaces[agent] = _spaces(self._session.task)
        return self._spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Array], dict[str, Info]]:
        """Start an episode at the start of the first flow; `options` are ignored."""
        if seed is None:
            seed = int(self._random.integers(2**63))
        else:
            self._random = np.random.default_rng(seed)
        self.possible_agents = self._names(self._session.flows_by_class(seed))
        self.agents, self._learners = [], {}
        episode = self._session.start(len(self.possible_agents), seed)
        results = self._observe(episode)
        infos = {name: info | {"seed": seed} for name, (_, info) in results.items()}
        return {name: observation for name, (observation, _) in results.items()}, infos

    def step(
        self, actions: Mapping[str, Array]
    ) -> tuple[
        dict[str, Array], dict[str, float], dict[str, bool], dict[str, bool], dict[str, Info]
    ]:
        """Set the window or rate of every agent, and run to the next step."""
        for name in self.agents:
            if name not in actions:
                raise ScenarioError(f"step: no action for the agent {name}")
            self._learners[name].act(actions[name])
        episode = self._session.advance()
        results = self._observe(episode)
        terminated = {name: self._learners[name].agent.is_over for name in results}
        truncated = {name: episode.is_done and not over for name, over in terminated.items()}
        self.agents = [name for name in results if not (terminated[name] or truncated[name])]
        if not self.agents:
            self._session.end()
        return (
            {name: observation for name, (observation, _) in results.items()},
            {name: self._learners[name].reward() for name in results},
            terminated,
            truncated,
            {name: info for name, (_, info) in results.items()},
        )

    def _observe(self, episode: Episode) -> dict[str, tuple[Array, Info]]:
        """Return observation and info of each agent, including new agents."""
        for flow, agent in episode.agents.items():
            name = f"flow_{flow}"
            if name not in self._learners and not (agent.is_over or episode.is_done):
                self._learners[name] = Learner(self._session.task, agent)
                self.agents.append(name)
        return {name: self._learners[name].observe(episode.now_s) for name in self.agents}

    def close(self) -> None:
        """End the episode in progress, and its thread."""
        self._session.end()


def make_vectorised(
    scenario: Mapping[str, Any],
    count: int,
    agent: int | str = 0,
    *,
    processes: bool = True,
    **options: Unpack[Options],
) -> VectorEnv[Any, Any, Any]:
    """Return a Gymnasium vector environment of `count` environments.

    With `processes`, each environment has a process, and a script must call this function under
    `if __name__ == "__main__":`. `reset(seed=…)` gives consecutive seeds to the environments.
    Raises `ScenarioError` if `count` is not a whole number from 1, or for the errors of
    `Environment`.
    """
    check_whole("count", count)
    if count < 1:
        raise ScenarioError(f"count: must be at least 1, not {count}")
    factories = [functools.partial(Environment, scenario, agent, **options)] * count
    # A fork of a process with threads, which polars creates, may hang.
    return AsyncVectorEnv(factories, context="spawn") if processes else SyncVectorEnv(factories)
