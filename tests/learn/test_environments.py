"""Tests of environments for reinforcement learning."""

import importlib
import itertools
import math
import pickle
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import sojourn
from sojourn import ScenarioError
from sojourn.base import paths

gymnasium = pytest.importorskip("gymnasium", reason="the extra `rl` is not installed")
parallel_test = pytest.importorskip("pettingzoo.test", reason="the extra `rl` is not installed")

from gymnasium.utils.env_checker import check_env  # noqa: E402

from sojourn import learn  # noqa: E402
from sojourn.learn import Environment, ParallelEnvironment, episode, make_vectorised  # noqa: E402
from sojourn.learn.task import Array  # noqa: E402

LEARNER = {"source": 0, "target": 3, "size": "200 KB", "class": "learner"}

SCENARIO: dict[str, Any] = {
    "environment": "paper",
    "topology": {
        "kind": "dumbbell",
        "senders": 3,
        "receivers": 3,
        "rate": "1 Gbps",
        "delay": "10 us",
    },
    "workload": {
        "kind": "mixed",
        "parts": [
            {"kind": "flows", "flows": [LEARNER]},
            {
                "kind": "poisson",
                "load": 0.4,
                "flows": 100,
                "sizes": {"kind": "fixed", "size": "10 KB"},
            },
        ],
    },
    "transport": "dctcp",
    "time_limit": "1 s",
}
"""One agent among other flows."""

ENDLESS = sojourn.override(
    SCENARIO,
    {
        "workload": {"kind": "flows", "flows": [{**LEARNER, "size": "none"}]},
        "time_limit": "2 ms",
    },
)
"""One flow that ends with the run."""

SEVERAL = sojourn.override(
    SCENARIO,
    {
        "workload": {
            "kind": "flows",
            "flows": [
                {"source": 0, "target": 3, "size": "50 KB"},
                {"source": 1, "target": 4, "size": "100 KB"},
                {"source": 2, "target": 5, "size": "50 KB", "start": "5 ms"},
            ],
        }
    },
)
"""Three flows; the last starts after the end of the others."""


@pytest.fixture(autouse=True)
def no_threads_are_left() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    assert set(threading.enumerate()) <= before


def number(value: float) -> Array:
    return np.array([value], np.float32)


def play(
    environment: Environment, seed: int | None, actions: Sequence[float] = (0.5, -0.25)
) -> tuple[list[Array], list[float], dict[str, Any]]:
    """Play an episode with these actions in turn; return observations, rewards and last info."""
    observation, _ = environment.reset(seed=seed)
    observations: list[Array] = [observation]
    rewards: list[float] = []
    is_over = False
    while not is_over:
        action = number(actions[len(rewards) % len(actions)])
        observation, reward, terminated, truncated, info = environment.step(action)
        is_over = terminated or truncated
        observations.append(observation)
        rewards.append(reward)
    return observations, rewards, info


@pytest.mark.parametrize("action", ["window", "rate"])
def test_an_environment_passes_the_checks_of_gymnasium(action: Any) -> None:
    environment = Environment(SCENARIO, "learner", action=action)
    # The check of rendering needs a registered environment.
    check_env(environment, skip_render_check=True)
    environment.close()


def test_an_episode_is_a_function_of_seed_and_actions() -> None:
    environment = Environment(SCENARIO, "learner")
    first, same, other = (play(environment, seed) for seed in (7, 7, 8))
    assert np.array_equal(first[0], same[0])
    assert first[1:] == same[1:]
    assert not np.array_equal(first[0][:20], other[0][:20])
    environment.reset(seed=7)
    seeds = [environment.reset()[1]["seed"], environment.reset()[1]["seed"]]
    environment.reset(seed=7)
    assert seeds == [environment.reset()[1]["seed"], environment.reset()[1]["seed"]]
    environment.close()


def test_an_agent_with_a_constant_window_equals_a_controller_with_that_window(
    tmp_path: Path,
) -> None:
    file = tmp_path / "constant.py"
    file.write_text(
        "import sojourn\n"
        "class Constant(sojourn.Controller):\n"
        "    ecn = True\n"
        "    def allowance(self):\n"
        "        return 20_000\n"
    )
    environment = Environment(SCENARIO, "learner", factor=None)
    _, rewards, info = play(environment, 3, [20.0])
    run = sojourn.run({**SCENARIO, "seed": 3, "transports": {"learner": f"{file}:Constant"}})
    record = run.flows.row(by_predicate=pl.col("class") == "learner", named=True)
    assert info["completion_s"] == pytest.approx(record["acked_s"], rel=1e-12)
    rewarded_s = -sum(rewards) * info["interval"].base_rtt_s
    assert rewarded_s == pytest.approx(record["acked_s"], abs=1.1 * episode.FIRST_STEP_DELAY_S)


def test_intervals_are_consecutive_and_add_up_to_the_flow() -> None:
    environment = Environment(SCENARIO, "learner", interval=1.5)
    _, info = environment.reset(seed=1)
    intervals = [info["interval"]]
    terminated = False
    while not terminated:
        _, _, terminated, _, info = environment.step(number(0.2))
        intervals.append(info["interval"])
    assert sum(interval.acked_bytes for interval in intervals) == 200_000
    assert intervals[-1].left_bytes == 0
    for before, after in itertools.pairwise(intervals):
        assert after.begin_s == before.end_s
        assert after.allowed_packets == pytest.approx(before.allowed_packets * 2**0.2)
    interval = intervals[3]
    # Environments in other processes send intervals.
    assert pickle.loads(pickle.dumps(interval)) == interval != intervals[4]
    assert interval.duration_s == pytest.approx(1.5 * interval.base_rtt_s, rel=1e-6)
    assert any(interval.marks for interval in intervals)


def test_a_growing_queue_increases_the_rtt_and_its_gradient() -> None:
    environment = Environment(ENDLESS, factor=None)
    environment.reset(seed=1)
    for _ in range(3):
        # The first packets are sent as a burst, further packets are clocked by ACKs.
        *_, info = environment.step(number(4.0))
    idle = info["interval"]
    assert idle.rtt_s == pytest.approx(idle.base_rtt_s)
    assert idle.rtt_gradient == pytest.approx(0.0, abs=1e-9)
    *_, info = environment.step(number(500.0))
    *_, info = environment.step(number(500.0))
    # Each packet has one more packet before it in the queue than its predecessor.
    assert info["interval"].rtt_gradient == pytest.approx(1.0, rel=1e-6)
    assert info["interval"].queueing > 0.3
    environment.close()


def test_losses_are_counted() -> None:
    lossy = {**ENDLESS, "topology": {"kind": "link", "delay": "20 us", "loss": 0.1}}
    lossy["workload"] = {"kind": "flows", "flows": [{**LEARNER, "size": "none", "target": 1}]}
    environment = Environment(lossy, factor=None)
    environment.reset(seed=1)
    intervals = [environment.step(number(20.0))[4]["interval"] for _ in range(30)]
    assert sum(interval.losses for interval in intervals) > 10
    assert learn.observed(max(intervals, key=lambda interval: interval.losses))[3] > 0.1
    environment.close()


def test_a_rate_is_a_share_of_the_line_rate() -> None:
    environment = Environment(ENDLESS, action="rate", factor=None)
    environment.reset(seed=1)
    intervals = [environment.step(number(0.25))[4]["interval"] for _ in range(12)]
    shares = [interval.utilisation for interval in intervals[2:]]
    assert np.mean(shares) == pytest.approx(0.25, abs=0.02)
    environment.close()


@pytest.mark.parametrize("factor", [None, 2.0])
def test_a_rate_may_be_below_a_packet_per_rtt(factor: float | None) -> None:
    link = {"kind": "link", "rate": "1 Gbps", "delay": "1 us"}
    flows = [{**LEARNER, "size": "none", "target": 1}]
    scenario = {**ENDLESS, "topology": link, "workload": {"kind": "flows", "flows": flows}}
    environment = Environment(scenario, action="rate", factor=factor, interval=5.0)
    environment.reset(seed=1)
    actions = [0.1, 0.0, 1.0] if factor is None else [-1.0, -1.0, 1.0]
    low, least, high = (
        [environment.step(number(action))[4]["interval"] for _ in range(12)] for action in actions
    )
    assert least[-1].allowed_packets == pytest.approx(1e-3 * least[-1].pipe_packets)
    if factor is None:
        assert np.mean([each.utilisation for each in low]) == pytest.approx(0.1, abs=0.06)
        # A higher rate takes effect at once.
        assert np.mean([each.utilisation for each in high]) > 0.9
    environment.close()


@pytest.mark.parametrize(("factor", "action"), [(None, 1e9), (1e6, 1.0)])
def test_the_limit_of_the_window_grows_with_the_pipe(factor: float | None, action: float) -> None:
    flows = [{**LEARNER, "target": 1}]
    for rate, expected in (("1 Gbps", 10_000.0), ("100 Gbps", None)):
        link = {"kind": "link", "rate": rate, "delay": "1 ms"}
        scenario = {**ENDLESS, "topology": link, "workload": {"kind": "flows", "flows": flows}}
        environment = Environment(scenario, factor=factor)
        environment.reset(seed=1)
        interval = environment.step(number(action))[4]["interval"]
        assert interval.allowed_packets == (expected or 10 * interval.pipe_packets)
        environment.close()


def test_a_long_lived_flow_is_truncated_at_the_time_limit() -> None:
    environment = Environment(ENDLESS)
    environment.reset(seed=1)
    ends = [environment.step(number(0.0))[2:4] for _ in range(23)]
    *_, terminated, truncated, info = environment.step(number(0.0))
    assert ends == [(False, False)] * 23
    assert (terminated, truncated) == (False, True)
    assert info["interval"].end_s == 2e-3
    with pytest.raises(gymnasium.error.ResetNeeded, match="call reset"):
        environment.step(number(0.0))


def test_user_functions_receive_intervals() -> None:
    environment = Environment(
        ENDLESS,
        observe=lambda interval: (interval.acks, interval.in_flight_bytes),
        reward=lambda interval: 8.0 * interval.acked_bytes,
        history=3,
        largest=1e6,
    )
    assert environment.observation_space.shape == (6,)
    environment.reset(seed=1)
    environment.step(number(0.0))
    observation, reward, *_, info = environment.step(number(0.0))
    interval = info["interval"]
    assert observation[-2:].tolist() == [interval.acks, interval.in_flight_bytes]
    assert reward == 8.0 * interval.acked_bytes > 0.0
    environment.close()


def test_the_example_of_the_documentation_runs() -> None:
    lines = [line[4:] for line in str(learn.__doc__).splitlines() if line.startswith("    ")]
    names: dict[str, Any] = {}
    exec("\n".join(lines), names)
    assert names["terminated"]
    assert names["info"]["completion_s"] > 8e-3


def test_an_error_in_a_user_function_does_not_end_the_episode() -> None:
    environment = Environment(ENDLESS, reward=lambda interval: 1 / interval.timeouts)
    environment.reset(seed=1)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            environment.step(number(0.0))
    environment.close()


def test_reset_or_garbage_collection_of_an_environment_ends_its_run() -> None:
    environment = Environment(SCENARIO, "learner")
    for _ in range(3):
        environment.reset(seed=1)
        environment.step(number(1.0))
        assert [thread.name for thread in threading.enumerate()].count("sojourn episode") == 1
    del environment


def output_of(program: str) -> tuple[str, str]:
    """Run a program in a separate process; return its standard and error output."""
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=True
    )
    return run.stdout, run.stderr


def test_a_program_ends_with_an_episode_in_progress() -> None:
    program = (
        "from sojourn import learn\n"
        f"environment = learn.Environment({SCENARIO!r}, 'learner')\n"
        "environment.reset(seed=1)\n"
        "print('started')\n"
    )
    assert output_of(program) == ("started\n", "")


def test_a_long_step_can_be_interrupted() -> None:
    stopped = {**LEARNER, "size": "none", "stop": "1 ms"}
    parts = [{"kind": "flows", "flows": [stopped]}, {"kind": "long_lived"}]
    endless = {
        **SCENARIO,
        "workload": {"kind": "mixed", "parts": parts},
        "time_limit": "1000 s",
    }
    program = (
        "import signal, threading\n"
        "from sojourn import learn\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        f"environment = learn.Environment({endless!r}, 'learner')\n"
        "environment.reset(seed=1)\n"
        "threading.Timer(0.3, signal.raise_signal, [signal.SIGINT]).start()\n"
        "try:\n"
        "    while True:\n"
        "        environment.step([0.0])\n"
        "except KeyboardInterrupt:\n"
        "    print(threading.active_count())\n"
    )
    assert output_of(program) == ("1\n", "")


def test_environments_are_independent() -> None:
    environments = [Environment(SCENARIO, "learner") for _ in range(3)]
    expected, _, _ = play(environments[0], 5)
    for environment in environments:
        environment.reset(seed=5)
    for step in range(1, 20):
        for environment in environments:
            observation, *_ = environment.step(number((0.5, -0.25)[(step - 1) % 2]))
            assert np.array_equal(observation, expected[step])
    for environment in environments:
        environment.close()


def test_a_parallel_environment_passes_the_checks_of_pettingzoo() -> None:
    environment = ParallelEnvironment(SEVERAL)
    parallel_test.parallel_api_test(environment, num_cycles=200)
    environment.close()


def test_agents_start_and_end_in_a_parallel_environment() -> None:
    environment = ParallelEnvironment(SEVERAL)
    assert environment.possible_agents == ["flow_0", "flow_1", "flow_2"]
    observations, infos = environment.reset(seed=1)
    assert list(observations) == environment.agents == ["flow_0", "flow_1"]
    assert infos["flow_0"]["seed"] == 1
    completion_s: dict[str, float] = {}
    agents = [tuple(environment.agents)]
    while environment.agents:
        actions = dict.fromkeys(environment.agents, number(0.1))
        _, _, terminated, truncated, infos = environment.step(actions)
        assert not any(truncated.values())
        for name in (name for name, is_over in terminated.items() if is_over):
            completion_s[name] = infos[name]["completion_s"]
        if agents[-1] != tuple(environment.agents):
            agents.append(tuple(environment.agents))
    assert agents == [("flow_0", "flow_1"), ("flow_1",), ("flow_2",), ()]
    # The last flow has the link to itself.
    assert completion_s["flow_2"] < completion_s["flow_0"] < completion_s["flow_1"]


def test_agents_of_a_class_share_the_network_with_other_flows() -> None:
    environment = ParallelEnvironment(SCENARIO, "poisson")
    environment.reset(seed=2)
    assert len(environment.possible_agents) == 100
    names = set(environment.agents)
    while environment.agents:
        environment.step(dict.fromkeys(environment.agents, number(0.0)))
        names |= set(environment.agents)
    assert 50 < len(names) <= 100
    assert names <= set(environment.possible_agents)


def test_an_action_must_be_given_for_every_agent() -> None:
    environment = ParallelEnvironment(SEVERAL)
    environment.reset(seed=1)
    with pytest.raises(ScenarioError, match="no action for the agent flow_1"):
        environment.step({"flow_0": number(0.0)})
    environment.close()


@pytest.mark.parametrize("processes", [False, True])
def test_vectorised_environments_have_consecutive_seeds(processes: bool) -> None:
    vector = make_vectorised(SCENARIO, 2, "learner", processes=processes, history=2)
    observations, infos = vector.reset(seed=4)
    assert list(infos["seed"]) == [4, 5]
    observations, rewards, *_ = vector.step(np.full((2, 1), 0.5, np.float32))
    vector.close()
    environment = Environment(SCENARIO, "learner", history=2)
    for index, seed in enumerate((4, 5)):
        environment.reset(seed=seed)
        observation, reward, *_ = environment.step(number(0.5))
        assert np.array_equal(observations[index], observation)
        assert rewards[index] == reward
    environment.close()


@pytest.mark.parametrize(
    ("count", "expected"), [(0, "at least 1, not 0"), (1.5, "a whole number, not 1.5")]
)
def test_the_number_of_vectorised_environments_is_checked(count: Any, expected: str) -> None:
    with pytest.raises(ScenarioError, match=f"^count: must be {expected}$"):
        make_vectorised(SCENARIO, count, "learner")


CALLS = {
    "kind": "rpc",
    "request": {"kind": "fixed", "size": "1 KB"},
    "response": {"kind": "fixed", "size": "1 KB"},
    "pattern": {"load": 0.1, "calls": 20},
}


@pytest.mark.parametrize(
    ("scenario", "agent", "options", "expected"),
    [
        (SCENARIO, "leaner", {}, "no flow has the class `leaner`; did you mean `learner`?"),
        (SCENARIO, 500, {}, "agent: unknown flow 500; the last flow is 100"),
        (SCENARIO, 1, {}, "agent: its class has more than 1 flow"),
        (SCENARIO, "learner", {"action": "widow"}, "did you mean `window`?"),
        (SCENARIO, "learner", {"factor": 1.0}, "factor: must be a number above 1"),
        (SCENARIO, "learner", {"interval": 0.0}, "interval: must be 0.01 or more"),
        (SCENARIO, "learner", {"history": 0}, "history: must be 1 or more"),
        (SCENARIO, "learner", {"history": 2.5}, "history: must be a whole number, not 2.5"),
        (SCENARIO, "learner", {"interval": "1 ms"}, "must be 0.01 or more base RTTs, not '1 ms'"),
        (SCENARIO, "learner", {"factor": "2"}, "factor: must be a number above 1, or None, not '2"),
        (SCENARIO, "learner", {"largest": True}, "largest: must be a number above 0, up to"),
        (SCENARIO, "learner", {"largest": 1e300}, "up to 1e+38, or infinite, not 1e+300"),
        (SCENARIO, "learner", {"observe": 3}, "observe: must be a function of an interval, not 3"),
        (SCENARIO, "learner", {"reward": 1}, "reward: must be a function of an interval, not 1"),
        (SCENARIO, "learner", {"observe": lambda _: "abc"}, "observe: must return numbers, not 'a"),
        (SCENARIO, "learner", {"observe": lambda _: []}, "observe: must return numbers, not []"),
        (SCENARIO, "learner", {"mechanism": 3}, "mechanism: must be a dictionary, not 3"),
        (SCENARIO, "learner", {"mechanism": {"enc": True}}, "did you mean `ecn`?"),
        ({**SCENARIO, "transport": "dctpc"}, "learner", {}, "did you mean `dctcp`?"),
        ({**SCENARIO, "transport": "rcp"}, "learner", {}, "transport"),
        ({**SCENARIO, "model": "srpt"}, "learner", {}, "model: expected packet, not"),
        ({**SCENARIO, "fidelity": "auto"}, "learner", {}, "fidelity: must be packets, not auto"),
        (SCENARIO, "learner", {"timesteps": 3}, "timesteps: unknown option (allowed: action,"),
    ],
)
def test_an_invalid_option_gives_a_one_line_error(
    scenario: dict[str, Any], agent: int | str, options: Any, expected: str
) -> None:
    with pytest.raises(ScenarioError) as error:
        Environment(scenario, agent, **options)
    assert expected in str(error.value)
    assert "\n" not in str(error.value)


def test_a_complete_scenario_with_its_fidelity_is_accepted() -> None:
    complete = sojourn.check({**SCENARIO, "fidelity": "packets"})
    for environment in (Environment(complete, "learner"), ParallelEnvironment(complete)):
        environment.reset(seed=1)
        environment.close()


def test_calls_can_share_the_network_with_an_agent_but_cannot_be_agents() -> None:
    parts = [*SCENARIO["workload"]["parts"][:1], CALLS]
    with_calls = {**SCENARIO, "workload": {"kind": "mixed", "parts": parts}}
    _, _, info = play(Environment(with_calls, "learner"), 1)
    assert info["completion_s"] > 0.0
    with pytest.raises(ScenarioError, match="here some follow others"):
        ParallelEnvironment(with_calls)


def test_a_class_with_several_flows_cannot_be_the_agent() -> None:
    environment = Environment(SEVERAL, "flows")
    with pytest.raises(ScenarioError, match=r"^agent: its class has more than 1 flow, and"):
        environment.reset(seed=1)


@pytest.mark.parametrize("action", [0.5, np.float32(0.5), np.array(0.5), [0.5], [[0.5]]])
def test_an_action_may_be_a_scalar(action: Any) -> None:
    results = []
    for given in (number(0.5), action):
        environment = Environment(SCENARIO, "learner")
        environment.reset(seed=1)
        results.append(environment.step(given)[0].tolist())
        environment.close()
    assert results[0] == results[1]


@pytest.mark.parametrize("action", [np.zeros(2), [], "fast", math.inf, None])
def test_an_action_of_another_kind_is_an_error(action: Any) -> None:
    environment = Environment(SCENARIO, "learner")
    environment.reset(seed=1)
    with pytest.raises(ScenarioError, match=r"^action: must be a number from -1.0 to 1.0, not "):
        environment.step(action)
    environment.close()


def test_observations_and_rewards_may_be_scalars_and_must_be_numbers() -> None:
    options: dict[str, Any] = {
        "observe": lambda interval: np.array(interval.rtt_s),
        "reward": lambda _: np.array([2.5]),
    }
    environment = Environment(SCENARIO, "learner", history=2, **options)
    observation, _ = environment.reset(seed=1)
    assert observation.shape == environment.observation_space.shape == (2,)
    assert environment.step(number(0.0))[1] == 2.5
    environment.close()
    for name, result, expected in (
        ("reward", math.nan, "reward: must return a finite number, not nan"),
        ("reward", "high", "reward: must return a finite number, not 'high'"),
        ("observe", [math.nan], r"observe: must return numbers without NaN, not \[nan\]"),
    ):
        functions: dict[str, Any] = {name: lambda _, result=result: result}
        environment = Environment(SCENARIO, "learner", **functions)
        with pytest.raises(ScenarioError, match=expected):
            play(environment, 1)
        environment.close()


def test_an_action_must_be_a_number() -> None:
    environment = Environment(SCENARIO, "learner")
    environment.reset(seed=1)
    with pytest.raises(ScenarioError, match="action: must be a number from -1"):
        environment.step(number(float("nan")))
    environment.close()


@pytest.fixture
def training(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(paths.EXAMPLES / "learning"))
    yield importlib.import_module("train")
    for name in ("train", "learnt"):
        sys.modules.pop(name, None)


def test_the_learnt_policy_of_the_example_is_better_than_its_initial_policy(training: Any) -> None:
    learnt = sys.modules["learnt"]
    initial, final = (np.array(weights) for weights in (learnt.START, learnt.WEIGHTS))
    changes = [training.cost(final, seed) - training.cost(initial, seed) for seed in range(1, 13)]
    _, _, high = sojourn.metrics.t_interval(changes)
    assert high < 0.0


def test_a_round_of_the_example_reduces_the_cost(training: Any) -> None:
    initial = np.zeros(6)  # a constant window
    with ThreadPoolExecutor(1) as pool:
        after = training.improved(initial, [1], pool, np.random.default_rng(1))
    assert training.cost(after, 1) < training.cost(initial, 1) - 0.05


def test_a_learnt_policy_acts_alike_as_a_controller_and_as_an_agent(training: Any) -> None:
    learnt = sys.modules["learnt"]
    scenario = sojourn.override(training.SCENARIO, {"workload.flows": 1})
    environment = Environment(
        scenario, observe=learnt.observation, history=1, mechanism={"ecn": False}
    )
    observation, _ = environment.reset(seed=1)
    is_over = False
    while not is_over:
        action = learnt.action(learnt.WEIGHTS, observation)
        observation, _, is_over, _, info = environment.step([action])  # type: ignore[arg-type]
    run = sojourn.run({**scenario, "transport": learnt.Learnt(), "seed": 1})
    assert info["completion_s"] == pytest.approx(run.flows["acked_s"][0], rel=1e-3)
