"""Training of the policy of `learnt.py` by evolution strategies, with numpy only.

    python train.py

All flows of `learnt_controller.toml` are agents with the same policy; the cost of a policy is their
mean FCT. Every round evaluates the policy plus and minus noise on the same flows, and takes a step
along an estimate of the gradient from ranks (Salimans et al., 2017, "Evolution Strategies as a
Scalable Alternative to Reinforcement Learning"). The result is evaluated on flows of other seeds.
The training takes about a minute on two cores.
"""

import argparse
from collections.abc import Iterable
from concurrent.futures import Executor, ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from learnt import START, action, observation
from numpy.typing import NDArray

import sojourn
from sojourn import metrics
from sojourn.learn import environments

SCENARIO = sojourn.override(
    sojourn.read(Path(__file__).parents[1] / "learnt_controller.toml"),
    {"transport": "tcp", "workload.flows": 40},
)
"""Training scenario, shorter than the example; agents replace its transport."""

PAIRS, NOISE, STEP = 8, 0.1, 0.1
"""Pairs of policies in a round, standard deviation of the noise, and step size."""

HELD_OUT = range(1, 21)
"""Seeds that the search does not use."""

Numbers = NDArray[np.float64]


def cost(policy: Numbers, seed: int) -> float:
    """Return the logarithm of the mean FCT in base RTTs, if all flows use the policy."""
    weights = tuple(map(float, policy))
    environment = environments.ParallelEnvironment(
        SCENARIO, observe=observation, history=1, mechanism={"ecn": False}
    )
    observations, _ = environment.reset(seed=seed)
    total = 0.0
    while environment.agents:
        actions = {
            name: np.array([action(weights, numbers)], np.float32)
            for name, numbers in observations.items()
        }
        observations, rewards, *_ = environment.step(actions)
        total -= sum(rewards.values())
    return float(np.log(total / len(environment.possible_agents)))


def costs(pool: Executor, policies: Iterable[Numbers], seeds: Iterable[int]) -> Numbers:
    """Return the costs of policies (rows) with seeds (columns)."""
    candidates = list(policies)
    return np.array([list(pool.map(partial(cost, seed=seed), candidates)) for seed in seeds]).T


def improved(
    policy: Numbers, seeds: Iterable[int], pool: Executor, random: np.random.Generator
) -> Numbers:
    """Return the policy after one round."""
    directions = random.standard_normal((PAIRS, len(policy)))
    noise = NOISE * np.concatenate([directions, -directions])
    ranks = costs(pool, policy + noise, seeds).mean(axis=1).argsort().argsort() / (2 * PAIRS - 1)
    uphill: Numbers = (ranks[:PAIRS] - ranks[PAIRS:]) @ directions / PAIRS
    return policy - STEP * uphill


def main() -> None:
    """Search for a policy, and evaluate the result."""
    parser = argparse.ArgumentParser(description="Learn the policy of learnt.py.")
    parser.add_argument("--rounds", type=int, default=40)
    rounds = parser.parse_args().rounds
    random, policy = np.random.default_rng(1), np.array(START)
    # A forked process may hang, because polars has threads.
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        for done in range(rounds):
            print(f"\r{done} of {rounds} rounds", end="", flush=True)
            policy = improved(policy, range(1000 + 3 * done, 1003 + 3 * done), pool, random)
        policy = policy.round(3)
        before, after = costs(pool, [np.array(START), policy], HELD_OUT)
    mean, low, high = np.exp(metrics.t_interval(after - before))
    print(f"\rWEIGHTS = {tuple(map(float, policy))}")
    print(f"mean FCT over that of the initial policy: {mean:.3f} ({low:.3f} to {high:.3f})")


if __name__ == "__main__":
    main()
