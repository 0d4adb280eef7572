"""Environments for reinforcement learning: flows of a scenario whose windows or rates are learnt.

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
