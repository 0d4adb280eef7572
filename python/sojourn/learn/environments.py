"""Environments for Gymnasium and PettingZoo."""

import functools
import itertools
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Unpack

import numpy as np

from sojourn._core import ScenarioError
from sojourn.learn.episode import MORE, Episode
from sojourn.learn.task import (
    Array,
    Info,
    Learner,
    Options,
    Task,
)
from sojourn.scenario.encoding import check, trace
from sojourn.scenario.reading import with_files

try:
    import gymnasium
    from gymnasium.spaces import Box
    from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv, VectorEnv
    from pettingzoo import ParallelEnv
except ImportError as error:
    needs = "sojourn.learn: needs the extra `rl`: pip install 'sojourn[rl]'"
    raise ImportError(f"{needs} ({error})") from None


class _Stage:
    """A scenario whose flows of some classes are agents, and its episode in progress, if any."""

    def __init__(self, scenario: Mapping[str, Any], task: Task) -> None:
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
        if self._scenario["model"] != "packet":
            raise ScenarioError(f"model: must be packet, not {self._scenario['model']}")
        self.classes = classes

    def begin(self, flows: int, seed: int) -> Episode:
        """Begin an episode with so many agents."""
        self.end()
        scenario = {**self._scenario, "seed": seed}
        self.episode = Episode(scenario, self.classes, flows, self.task.interval)
        # Who forgets to close an environment keeps its thread as long as the environment.
        self._end = weakref.finalize(self, self.episode.end)
        return self._moved(self.episode, self.episode.begin)

    def go_on(self) -> Episode:
        """Go on to the next turn."""
        if self.episode is None:
            raise gymnasium.error.ResetNeeded("step: there is no episode in progress; call reset()")
        return self._moved(self.episode, self.episode.go_on)

    def _moved(self, episode: Episode, move: Callable[[], None]) -> Episode:
        try:
            move()
        except BaseException:
            self.end()
            raise
        return episode

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
        task = Task(**options)
        self._stage = _Stage(scenario, task)
        self._stage.cast([_own_class(self._stage, agent)])
        self.observation_space, self.action_space = _spaces(task)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, Info]:
        """Begin an episode, at the start of the flow; there are no `options`."""
        super().reset(seed=seed)
        seed = int(self.np_random.integers(2**63)) if seed is None else seed
        episode = self._stage.begin(1, seed)
        (agent,) = episode.agents.values()
        self._learner = Learner(self._stage.task, agent)
        observation, info = self._learner.see(episode.now_s)
        return observation, info | {"seed": seed}

    def step(self, action: Array) -> tuple[Array, float, bool, bool, Info]:
        """Set what the flow may send, and go on for an interval, or to the end of the flow."""
        if self._stage.episode is not None:
            self._learner.act(action)
        episode = self._stage.go_on()
        observation, info = self._learner.see(episode.now_s)
        terminated = self._learner.agent.is_over
        truncated = episode.is_done and not terminated
        if terminated or truncated:
            self._stage.end()
        return observation, self._learner.reward(), terminated, truncated, info

    def close(self) -> None:
        """End the episode in progress, and its thread."""
        self._stage.end()


Spaces = tuple["Box[np.float32]", "Box[np.float32]"]


def _spaces(task: Task) -> Spaces:
    """Return the spaces of observations, with intervals one after another, and of actions."""
    numbers = (task.history * task.width,)
    seen = Box(-task.largest, task.largest, numbers, np.float32)
    return seen, Box(task.low, task.high, (1,), np.float32)


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
        self._stage = _Stage(scenario, Task(**options))
        flows = self._stage.flows()
        self._stage.cast(list(flows) if agents is None else [agents])
        self._spaces: dict[str, Spaces] = {}
        self._random = np.random.default_rng()
        self._learners: dict[str, Learner] = {}
        self.possible_agents = self._names(flows)
        self.agents: list[str] = []

    def _names(self, flows: Mapping[str, Sequence[int]]) -> list[str]:
        numbers = itertools.chain.from_iterable(flows[name] for name in self._stage.classes)
        return [f"flow_{number}" for number in sorted(numbers)]

    def observation_space(self, agent: str) -> "Box[np.float32]":
        """Return the space of an agent's observations."""
        return self._spaces_of(agent)[0]

    def action_space(self, agent: str) -> "Box[np.float32]":
        """Return the space of an agent's actions."""
        return self._spaces_of(agent)[1]

    def _spaces_of(self, agent: str) -> Spaces:
        if agent not in self._spaces:
            self._spaces[agent] = _spaces(self._stage.task)
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
        infos = {name: info | {"seed": seed} for name, (_, info) in told.items()}
        return {name: observation for name, (observation, _) in told.items()}, infos

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
            {name: observation for name, (observation, _) in told.items()},
            {name: self._learners[name].reward() for name in told},
            terminated,
            truncated,
            {name: info for name, (_, info) in told.items()},
        )

    def _see(self, episode: Episode) -> dict[str, tuple[Array, Info]]:
        """Return what agents see, those that are new among them."""
        for flow, agent in episode.agents.items():
            name = f"flow_{flow}"
            if name not in self._learners and not (agent.is_over or episode.is_done):
                self._learners[name] = Learner(self._stage.task, agent)
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
