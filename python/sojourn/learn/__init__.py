"""Environments for reinforcement learning, in which agents control flows of a scenario.

Example::

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

A step is a monitor interval, as in PCC and Aurora [aurora19]: by default a base RTT, which is the
delay of the feedback on an action. An action is a number from -1 to 1 that multiplies the window or
rate, as in Aurora and Orca [orca20], so that one policy fits all rates. The factor is at most 2, so
that an agent can grow as fast as slow start and reduce as fast as TCP. An observation has a history
of 10 intervals, as in Aurora, which contain the effects of actions.

Agents are all flows of a class. Other flows have the scenario's transport, which also determines
the queues. An episode is terminated for an agent when its flow is complete, and truncated at the
time limit. An episode is a function of the scenario, its seed and the actions, and is not cached.
The package needs Gymnasium and PettingZoo, the extra `rl` of Sojourn.
"""

from sojourn._core import Interval
from sojourn.learn.environments import Environment, ParallelEnvironment, make_vectorised
from sojourn.learn.task import Options, minus_completion_time, observed, rewarded, utility

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
