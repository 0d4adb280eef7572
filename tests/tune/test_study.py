"""Tuning: goals and ranges in words, a search that goes on, early stops, fronts, fresh seeds."""

import itertools
import math
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import polars as pl
import pytest

import sojourn
from conftest import SCENARIO, made_result
from sojourn import ScenarioError, cli, metrics, tune
from sojourn.runs.runner import run_many
from sojourn.tune import objectives, optuna_sampler, ranges, study, trials
from sojourn.tune.trials import DONE, REFUSED, STOPPED, Trial, Tuned

pytest.importorskip("optuna", reason="the extra `tune` is not installed")

SMALL = sojourn.override(SCENARIO, {"workload.flows": 60, "topology.senders": 4})

GOAL = "mean slowdown"

RATES = {"topology.rate": "1 Gbps:100 Gbps:log"}
"""What has a best end: flows take least on the fastest link."""


@pytest.mark.parametrize(
    ("text", "metric"),
    [
        ("p99 slowdown of <= 100 KB", metrics.slowdown("p99", metrics.Bucket("", up_to=100e3))),
        ("mean  fct", metrics.fct("mean")),
        ("max fct of > 10 KB", metrics.fct("max", metrics.Bucket("", above=10e3))),
        ("p50 fct of 10 KiB to 1 MB", metrics.fct("p50", metrics.Bucket("", 10240, 1e6))),
        ("mean fct of class poisson", metrics.fct("mean", metrics.Bucket("", of_class="poisson"))),
        ("utilisation", metrics.utilisation("left->right")),
        ("utilisation of left->right", metrics.utilisation("left->right")),
        ("marks", metrics.count("marks")),
    ],
)
def test_measures_in_words_are_those_of_metrics(text: str, metric: metrics.Metric) -> None:
    result = sojourn.run(SMALL)
    assert objectives.read(text).metric(result) == metric(result)
    assert not math.isnan(metric(result).value)


def test_queues_are_those_of_the_busiest_link_or_of_the_one_named() -> None:
    result = sojourn.run(SMALL)
    busiest = metrics.link_counters(result, "left->right")
    assert objectives.read("max queue").metric(result).value == busiest["queue_max_bytes"] > 0
    other = objectives.read("max queue of right->left").metric(result).value
    assert other == metrics.link_counters(result, "right->left")["queue_max_bytes"]
    with pytest.raises(ScenarioError, match="did you mean `left->right`"):
        objectives.read("utilisation of left-right").metric(result)


@pytest.mark.parametrize(
    ("text", "bound", "excess"),
    [
        ("utilisation >= 0.9", 0.9, 0.1),
        ("utilisation >= 90 %", 0.9, 0.1),
        ("p99 fct of <= 100 KB <= 2 ms", 0.002, -0.0012),
        ("max queue ≤ 1 KB", 1000, -999.2),
        ("drops <= 0", 0, 0.8),
    ],
)
def test_bounds_are_in_the_unit_of_what_they_bound(text: str, bound: float, excess: float) -> None:
    constraint = objectives.constraint(text)
    assert constraint.bound == pytest.approx(bound)
    value = 0.0008 if constraint.measure.unit == "s" else 0.8
    assert constraint.excess(value) == pytest.approx(excess)


@pytest.mark.parametrize(
    ("spec", "middle", "value"),
    [
        ("0.01:1:log", 0.123456, 0.1235),
        ("1:100", 7, 7),
        ("10 KB:200 KB", 133.33333, "133.3 KB"),
        ("1 us:1 ms:log", 12.3456789, "12.35 us"),
        ("1 Gbps:10 Gbps", 5.0, "5 Gbps"),
        ("10 packets:65 packets", 20, "20 packets"),
        ("none,linux", "linux", "linux"),
        ("1,2.5", "2.5", 2.5),
    ],
)
def test_values_of_a_range_are_what_scenarios_say_and_back(
    spec: str, middle: Any, value: Any
) -> None:
    parameter = ranges.read("some.field", spec)
    assert parameter.value(middle) == value
    assert parameter.value(parameter.place(value)) == value
    assert [parameter.value(parameter.place(end)) for end in parameter.ends()] == list(
        parameter.ends()
    )
    assert parameter.place("none of these") is None


def test_a_value_in_another_unit_is_in_the_range_and_one_outside_is_not() -> None:
    parameter = ranges.read("queue.threshold", "10 KB:1 MB")
    assert parameter.place("0.5 MB") == pytest.approx(500)
    assert parameter.place("65536 B") == pytest.approx(65.536)
    for outside in ("2 MB", "9 KB", "20 us", 20, "none", True):
        assert parameter.place(outside) is None


@pytest.mark.parametrize(
    ("option", "told"),
    [
        ("--minimise=p99 slowdwn", "--minimise p99 slowdwn: is no measure; did you mean `slow"),
        ("--minimise=slowdown", "lacks a statistic: expected `mean slowdown`"),
        ("--minimise=p999 fct", "has no statistic `p999`"),
        ("--minimise=mean fct of small", "`small` says not which flows"),
        ("--minimise=drops", "may be 0, of which there are no ratios"),
        ("--minimise=mean slowdown", "wants one goal, or two that differ"),
        ("--minimise=mean fct of > 1 MB", "mean fct of > 1 MB: the scenario has nothing to meas"),
        ("--subject-to=utilisation", "expected MEASURE >= VALUE"),
        ("--subject-to=p99 fct <= 2", "the bound must be a time, such as `2 ms`, not `2`"),
        ("--parameter=transport.gain", "expected NAME=RANGE"),
        ("--parameter=transport.gian=0.1:1", "did you mean `gain`?"),
        ("--parameter=transport.gain=0.1:7", "must be above 0 and at most 1, not 7"),
        ("--parameter=rate=1 Gbps:2 Gbps", "`topology.rate` is given twice"),
        ("--parameter=seed=1:5", "the seed is chance, and no parameter"),
        ("--parameter=transport.gain=1:0.1", "the range must rise: 1 is not below 0.1"),
        ("--parameter=transport.gain=0:1:log", "must begin above 0, not at 0"),
        ("--parameter=transport.gain=0.1", "expected a range or a list of values"),
        ("--parameter=topology.delay=1 us:1 KB", "`us` and `KB` do not fit each other"),
        ("--parameter=topology.delay=1:2", "topology.delay"),
        ("--parameter=transport=dctcp,dctcp", "wants two values or more, each another"),
        ("--parameter=topology.rate=1 Gbps:2 Gbps", "`topology.rate` is given twice"),
    ],
)
def test_what_is_wrong_is_told_in_a_line_before_anything_is_written(
    scenario_file: Path, option: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["tune", str(scenario_file), "--parameter", "topology.rate=1 Gbps:10 Gbps"]
    given += [] if option.startswith("--minimise") and "fct" in option else [f"--minimise={GOAL}"]
    assert cli.invoke([*given, option, "--trials", "1"]) == 2
    captured = capsys.readouterr()
    assert told in captured.err
    assert captured.err.startswith(f"sojourn: {scenario_file}: ")
    assert captured.err.count("\n") == 1


def test_without_a_goal_nothing_is_searched() -> None:
    with pytest.raises(ScenarioError, match="wants one goal, or two"):
        tune.search(SMALL, RATES)
    with pytest.raises(ScenarioError, match="--trials: must be at least 1"):
        tune.search(SMALL, RATES, minimise=GOAL, trials=0)


def test_a_search_finds_the_better_end_and_measures_it_on_fresh_seeds() -> None:
    tuned = tune.search(SMALL, RATES, minimise="mean fct", trials=17, seeds=2)
    assert tuned.best is not None
    assert tuned.gain is not None
    table = tuned.trials
    assert table["trial"].to_list() == list(range(17))
    assert table["mean fct"].min() == pytest.approx(tuned.value(tuned.best, tuned.goals[0]))
    # The gain is that of the ratios on five seeds that follow those of the search.
    fresh = range(3, 8)
    each = [
        [metrics.fct("mean")(result).value for result in run_many(
            [{**scenario, "seed": seed} for seed in fresh]
        )]
        for scenario in (SMALL, tuned.scenario_of(tuned.best))
    ]  # fmt: skip
    ratios = np.log(np.array(each[1]) / np.array(each[0]))
    assert tuned.gain.seeds == 5
    assert tuned.gain.value == pytest.approx(math.exp(ratios.mean()))
    assert tuned.gain.low < tuned.gain.value < tuned.gain.high < 1
    rate = float(str(tuned.best.at["topology.rate"]).removesuffix(" Gbps"))
    assert rate > 10


def test_all_trials_see_the_same_flows(cache: Path) -> None:
    space = {"transport.gain": "0.01:1:log"}
    tuned = tune.search(SMALL, space, minimise=GOAL, trials=4, seeds=2, cache=cache)
    flows = {
        (tuple(result.flows["start_s"]), tuple(result.flows["size_bytes"]))
        for result in map(sojourn.Result.read, cache.glob("[!.]*"))
    }
    assert len(flows) == 2 + (5 if tuned.gains else 0)
    assert len(list(cache.glob("[!.]*"))) > len(flows)


def space_of(tuned: Tuned) -> list[Any]:
    return [(one.number, dict(one.at), one.ended, dict(one.measured)) for one in tuned.done]


class Killed(Exception):
    """What ends a search from outside."""


@pytest.mark.parametrize("after", [1, 4, 7])
def test_a_search_that_was_killed_goes_on_as_if_it_had_not_been(
    after: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options: dict[str, Any] = {"minimise": GOAL, "trials": 12, "seeds": 2, "at_once": 4}
    space = {"transport.gain": "0.01:1:log", **RATES}
    whole = tune.search(SMALL, space, **options)
    journal = tmp_path / "trials.journal"
    add = optuna_sampler.Journal.add

    def fail_after(self: Any, trial: Trial, so_far: Tuned) -> None:
        add(self, trial, so_far)
        if trial.number == after:
            raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(optuna_sampler.Journal, "add", fail_after)
        with pytest.raises(Killed):
            tune.search(SMALL, space, journal=journal, **options)
    ran: list[int] = []
    judged = study._judged

    def count(so_far: Tuned, some: Any, *rest: Any) -> list[Trial]:
        ran.extend(one.number for one in some)
        return judged(so_far, some, *rest)

    monkeypatch.setattr(study, "_judged", count)
    again = tune.search(SMALL, space, journal=journal, **options)
    assert ran == list(range(after + 1, 12))
    assert space_of(again) == space_of(whole)
    assert again.gain == whole.gain
    # Another command begins a search of its own in the same file, and more trials go on.
    tune.search(SMALL, space, journal=journal, **{**options, "minimise": "mean fct", "trials": 2})
    more = tune.search(SMALL, space, journal=journal, **{**options, "trials": 14})
    assert space_of(more)[:12] == space_of(whole)
    assert ran[-2:] == [12, 13]
    ran.clear()
    tune.search(SMALL, space, journal=journal, again=True, **options)
    assert ran == list(range(1, 12))


def test_a_torn_last_line_is_forgotten_and_what_is_no_search_is_refused(tmp_path: Path) -> None:
    journal = tmp_path / "trials.journal"
    options: dict[str, Any] = {"minimise": GOAL, "trials": 5, "seeds": 1, "journal": journal}
    space = {"transport.gain": "0.01:1"}
    whole = tune.search(SMALL, space, **options)
    content = journal.read_bytes()
    for length in (len(content) - 30, len(content) - 1, 100, 0):
        journal.write_bytes(content[:length])
        assert space_of(tune.search(SMALL, space, **options)) == space_of(whole)
    for text in ("no search\n", "{}\n", '{"op_code": 99}\n'):
        journal.write_text(text, encoding="utf-8")
        with pytest.raises(ScenarioError, match="is not what a search wrote"):
            tune.search(SMALL, space, **options)


def test_trials_that_two_commands_added_at_once_count_once(tmp_path: Path) -> None:
    journal = tmp_path / "trials.journal"
    options: dict[str, Any] = {"minimise": GOAL, "seeds": 1, "journal": journal}
    space = {"transport.gain": "0.01:1"}
    first = tune.search(SMALL, space, trials=3, **options)
    begun = replace(first, done=())
    other = optuna_sampler.Journal(journal, study._name(begun, 1, 8), begun)
    for trial in first.done[1:]:
        other.add(trial, first)
    again = tune.search(SMALL, space, trials=5, **options)
    assert [one.number for one in again.done] == list(range(5))
    assert space_of(again) == space_of(tune.search(SMALL, space, trials=5, minimise=GOAL, seeds=1))


def test_without_the_extra_a_line_says_how_to_have_it(
    scenario_file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    given = ["tune", str(scenario_file), "--parameter", "transport.gain=0.1:1"]
    assert cli.invoke([*given, "--minimise", GOAL]) == 2
    assert "tuning needs the extra `tune`: pip install 'sojourn[tune]'" in capsys.readouterr().err


def test_the_parameter_that_decides_matters_more() -> None:
    random = np.random.default_rng(8)
    space = tuple(ranges.read(path, "0.0:1.0") for path in ("decides", "idle"))
    made = []
    for number, (decides, idle) in enumerate(random.uniform(0, 1, (40, 2))):
        at = {"decides": decides, "idle": idle}
        made.append(Trial(number, at, at, {"mean fct": [1 + decides]}))
    tuned = replace(tuned_of(made, "mean fct"), space=space)
    shares = optuna_sampler.importances(tuned)["mean fct"]
    assert shares["decides"] > 0.8
    assert sum(shares.values()) == pytest.approx(1)
    assert optuna_sampler.importances(replace(tuned, done=tuned.done[:10])) == {}


def trial_of(
    number: int,
    values: list[float],
    ended: str = DONE,
    more: Mapping[str, list[float]] = MappingProxyType({}),
) -> Trial:
    return Trial(number, {}, {}, {"mean fct": values, **more}, ended)


GOALS = (objectives.goal("mean fct"),)


def test_a_trial_is_stopped_if_its_ratios_are_surely_above_1_and_not_before() -> None:
    # Seeds differ by a factor of ten; what the trial takes more does not.
    best = trial_of(1, [1.0, 10.0, 3.0])
    worse = trial_of(2, [1.2, 12.1])
    assert trials.surely_worse(worse, [best], GOALS, ())
    assert not trials.surely_worse(trial_of(2, [1.2, 9.0]), [best], GOALS, ())
    assert not trials.surely_worse(trial_of(2, [0.8, 8.1]), [best], GOALS, ())
    assert not trials.surely_worse(trial_of(2, [5.0]), [best], GOALS, ())
    assert not trials.surely_worse(worse, [], GOALS, ())
    more = (objectives.goal("mean fct", maximise=True),)
    assert not trials.surely_worse(worse, [best], more, ())
    assert trials.surely_worse(trial_of(2, [0.8, 8.1]), [best], more, ())


def test_with_two_goals_a_trial_is_stopped_only_if_it_is_worse_in_both() -> None:
    goals = (*GOALS, objectives.goal("p99 fct"))
    best = trial_of(1, [1.0, 2.0], more={"p99 fct": [1.0, 2.0]})
    for other, is_worse in (([1.1, 2.21], True), ([0.9, 1.8], False), ([1.1, 1.9], False)):
        one = trial_of(2, [1.2, 2.41], more={"p99 fct": other})
        assert trials.surely_worse(one, [best], goals, ()) is is_worse


def test_a_trial_that_surely_breaks_a_bound_is_stopped() -> None:
    bounds = (objectives.constraint("utilisation >= 0.9"),)
    for values, is_over in (([0.5, 0.51], True), ([0.85, 0.91], False), ([0.95, 0.96], False)):
        one = trial_of(2, [1.0, 2.0], more={"utilisation": values})
        assert trials.surely_worse(one, [], GOALS, bounds) is is_over


def test_surely_worse_trials_end_early_in_a_search() -> None:
    options: dict[str, Any] = {"minimise": "mean fct", "trials": 17, "seeds": 4}
    tuned = tune.search(SMALL, RATES, **options)
    stopped = [one for one in tuned.done if one.ended == STOPPED]
    assert stopped
    assert {one.seeds for one in stopped} <= {2, 3}
    assert all(one.seeds == 4 for one in tuned.done if one.ended == DONE)
    # What a stopped trial would have come to is told from its ratios.
    goal = tuned.goals[0]
    for one in stopped[:3]:
        runs = [{**tuned.scenario_of(one), "seed": seed} for seed in range(1, 5)]
        logs = [math.log(metrics.fct("mean")(result).value) for result in run_many(runs)]
        assert math.log(tuned.value(one, goal)) == pytest.approx(np.mean(logs), abs=0.2)


def tuned_of(made: list[Trial], *texts: str) -> Tuned:
    goals = tuple(objectives.goal(text) for text in texts)
    return Tuned({}, (), {}, goals, (), tuple(made), len(made))


def test_a_front_has_the_trials_that_none_beats_in_both_goals() -> None:
    random = np.random.default_rng(7)
    for _ in range(20):
        # With ties.
        points = random.integers(1, 6, (12, 2)).astype(float)
        made = [trial_of(i, [a], more={"p99 fct": [b]}) for i, (a, b) in enumerate(points)]
        front = tuned_of(made, "mean fct", "p99 fct").front
        found = {tuple(points[one.number]) for one in front}
        expected = {
            tuple(one)
            for one in points
            if not any((other <= one).all() and (other < one).any() for other in points)
        }
        assert found == expected
        assert len(found) == len(front)


def test_the_best_keeps_the_bounds_and_has_all_seeds() -> None:
    bound = objectives.constraint("utilisation >= 0.9")
    made = [
        trial_of(0, [3.0], more={"utilisation": [0.95]}),
        trial_of(1, [1.0], more={"utilisation": [0.5]}),
        trial_of(2, [2.0], more={"utilisation": [0.9]}),
        trial_of(3, [1.5], STOPPED, more={"utilisation": [0.95]}),
        Trial(4, {}, ended=REFUSED),
    ]
    tuned = replace(tuned_of(made, "mean fct"), bounds=(bound,))
    assert tuned.best == made[2]
    assert replace(tuned, done=(made[1],)).best is None
    assert tuned.trials["keeps_bounds"].to_list() == [True, False, True, True, False]


def test_what_no_scenario_can_be_is_refused_and_the_search_goes_on() -> None:
    queue = {"kind": "red", "min_threshold": "20 KB", "max_threshold": "60 KB"}
    base = sojourn.override(SMALL, {"queue": queue})
    space = {"min_threshold": "10 KB:100 KB", "max_threshold": "20 KB:110 KB"}
    tuned = tune.search(base, space, minimise=GOAL, trials=17, seeds=1)
    ended = tuned.trials["ended"].to_list()
    assert {DONE, REFUSED} == set(ended)
    refused = tuned.trials.filter(ended=REFUSED)
    assert refused["why"].str.contains("threshold").all()
    assert refused[GOAL].null_count() == refused.height
    assert tuned.best is not None


def test_a_trial_that_leaves_nothing_to_measure_is_refused(tmp_path: Path) -> None:
    space = {"warm_up": ["0 s", "1 s"]}
    options: dict[str, Any] = {"minimise": GOAL, "seeds": 2, "journal": tmp_path / "journal"}
    tuned = tune.search(SMALL, space, trials=9, **options)
    empty = tuned.trials.filter(warm_up="1 s")
    assert empty.height > 0
    assert set(empty["ended"]) == {REFUSED}
    assert empty["why"].str.contains("mean slowdown: there is nothing to measure").all()
    assert space_of(tune.search(SMALL, space, trials=9, **options)) == space_of(tuned)


def test_a_queue_that_a_transport_is_designed_with_can_be_tuned() -> None:
    tuned = tune.search(
        SMALL, {"queue.threshold": "5 KB:200 KB"}, minimise="mean queue", trials=3, seeds=1
    )
    assert tuned.changes(tuned.done[0]) == {}
    assert tuned.changes(tuned.done[1])["queue.kind"] == "ecn_threshold"
    assert tuned.done[0].at["queue.threshold"] == "none"


CONTROLLER = '''
import sojourn

class Fixed(sojourn.Controller):
    packets: int = 2
    """Packets in flight."""

    def on_start(self, path):
        self.window = self.packets * path.payload_bytes

    def allowance(self):
        return self.window
'''


def test_the_command_tunes_a_class_of_python_and_writes_what_it_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "fixed.py").write_text(CONTROLLER, encoding="utf-8")
    file, out = tmp_path / "own.toml", tmp_path / "out" / "deep"
    file.write_text(
        "# What it shows.\n"
        'transport = "fixed.py:Fixed" # mine\n'
        "[topology]\nkind = 'dumbbell'\nsenders = 2\n"
        "[workload]\nkind = 'poisson'\nload = 0.2\nflows = 20\n"
        "sizes = { kind = 'fixed', size = '50 KB' }\n",
        encoding="utf-8",
    )
    given = ["tune", str(file), "--parameter", "transport.packets=1:64:log", "--trials", "4"]
    given += ["--minimise", "mean fct", "--subject-to", "drops <= 1000", "--out", str(out)]
    assert cli.invoke([*given, "--seeds", "1"]) == 0
    shown = capsys.readouterr()
    assert "own.toml: 4 of 4 trials, mean fct " in shown.err
    row = pl.read_parquet(out / "trials.parquet").sort("mean fct").row(0, named=True)
    packets = int(row["transport.packets"])
    assert packets > 2
    assert re.search(rf"trial {row['trial']} on 5 fresh seeds: mean fct .*: better", shown.out)
    best = (out / "best.toml").read_text(encoding="utf-8")
    assert best.startswith("# What it shows.\n")
    scenario = sojourn.read(out / "best.toml")
    assert scenario["transport"]["parameters"] == {"packets": packets}
    assert sojourn.run(scenario).flows["fct_s"].null_count() == 0
    for name in ("tune.svg", "tune.png"):
        assert (out / name).stat().st_size > 1000


def test_a_command_that_is_killed_goes_on_where_it_was(
    scenario_file: Path, cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["tune", str(scenario_file), "--parameter", "topology.rate=1 Gbps:100 Gbps:log"]
    given += ["--minimise", "mean fct", "--trials", "16", "--seeds", "1", "--at-once", "2", "--out"]
    killed, whole = scenario_file.parent / "killed", scenario_file.parent / "whole"
    journal = killed / "trials.journal"
    command = [sys.executable, "-m", "sojourn", *given, str(killed)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline:
        if journal.exists() and journal.read_bytes().count(b"\n") > 4:
            process.kill()
        time.sleep(0.01)
    assert process.wait() == -signal.SIGKILL, "it was at work when it was killed"
    known = len(list(cache.glob("*/summary.json")))
    assert cli.invoke([*given, str(killed)]) == 0
    assert "of 16 trials" in capsys.readouterr().err
    after = len(list(cache.glob("*/summary.json")))
    assert cli.invoke([*given, str(whole)]) == 0
    # What a search that was never killed asks for is all there.
    assert 0 < known < after == len(list(cache.glob("*/summary.json")))
    one, other = (pl.read_parquet(out / "trials.parquet") for out in (killed, whole))
    assert one.equals(other)


def test_the_command_shows_a_front(
    scenario_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    given = ["tune", str(scenario_file), "--parameter", "topology.rate=1 Gbps:100 Gbps:log"]
    given += ["--parameter", "transport.reliability.timestamps=true,false"]
    given += ["--minimise", "mean fct", "--maximise", "utilisation", "--trials", "21"]
    assert cli.invoke([*given, "--seeds", "1", "--out", str(out)]) == 0
    shown = capsys.readouterr().out
    table = pl.read_parquet(out / "trials.parquet")
    assert table.height == 21
    fastest = table.sort("mean fct")["trial"][0]
    busiest = table.sort("utilisation")["trial"][-1]
    names = {file.name for file in out.glob("best-*.toml")}
    for number in {fastest, busiest} - {0}:
        assert f"trial {number} on 5 fresh seeds: mean fct" in shown
        assert f"best-{number}.toml" in names
    numbers = [int(number) for number in re.findall(r"^trial (\d+) on", shown, re.MULTILINE)]
    times = dict(zip(table["trial"], table["mean fct"], strict=True))
    assert all(times[one] <= times[other] for one, other in itertools.pairwise(numbers))


def test_values_that_flows_without_an_end_make_lower_bounds_are_marked() -> None:
    measure = objectives.read("p99 fct").metric(made_result([1.0, None], simulated_s=5.0))
    assert measure.at_least
    cut = sojourn.override(SMALL, {"time_limit": "30 us"})
    tuned = tune.search(cut, {"transport.gain": "0.1:0.9"}, minimise="p99 fct", trials=1, seeds=1)
    assert tuned.done[0].at_least
