"""Tests of searches: resumed searches, early stops, Pareto fronts, gains."""

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import polars as pl
import pytest

import sojourn
from conftest import SMALL
from sojourn import ScenarioError, cli, metrics, tune
from sojourn.runs.runner import run_many
from sojourn.show import plot
from sojourn.tune import objectives, optuna_sampler, ranges, study, tables, trials
from sojourn.tune import plot as tune_plot
from sojourn.tune.trials import DONE, INVALID, STOPPED, Trial, Tuned

pytest.importorskip("optuna", reason="the extra `tune` is not installed")


GOAL = "mean slowdown"


RATES = {"topology.rate": "1 Gbps:100 Gbps:log"}
"""Range with a best end: FCTs are smallest on the fastest link."""


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ("--minimise=p99 slowdwn", "--minimise p99 slowdwn: unknown measure; did you mean `slow"),
        ("--minimise=slowdown", "missing statistic: expected `mean slowdown`"),
        ("--minimise=p999 fct", "unknown statistic `p999`"),
        ("--minimise=mean fct of small", "cannot parse `small` as a set of flows"),
        ("--minimise=drops", "a counter cannot be an objective"),
        ("--minimise=mean slowdown", "give one objective, or two different ones"),
        ("--minimise=mean fct of > 1 MB", "mean fct of > 1 MB: a run has 0 such flows, and 1 "),
        ("--subject-to=utilisation", "expected MEASURE >= VALUE"),
        ("--subject-to=utilisation >= nan", "the bound must be a number, not `nan`"),
        ("--seeds=100000000", "up to 1000000000 runs; at most 100000 are allowed"),
        ("--parameter=topology.delay=1 us:9 us:0 us", "STEP > 0"),
        ("--subject-to=p99 fct <= 2", "the bound must be a time, such as `2 ms`, not `2`"),
        ("--parameter=transport.gain", "expected NAME=RANGE"),
        ("--parameter=transport.gian=0.1:1", "did you mean `gain`?"),
        ("--parameter=transport.gain=0.1:7", "must be above 0 and at most 1, not 7"),
        ("--parameter=rate=1 Gbps:2 Gbps", "duplicate parameter `topology.rate`"),
        ("--parameter=seed=1:5", "cannot tune the seed"),
        ("--parameter=time_limit=1 s:2 s", "cannot tune the measurement; expected a field of the"),
        ("--parameter=account=true,false", "account=true,false: cannot tune the measurement"),
        ("--parameter=model=packet,alone", "model=packet,alone: cannot tune the measurement"),
        ("--parameter=samples.rtts=true,false", "cannot tune the measurement"),
        ("--subject-to=utilisation >= inf", "the bound must be a number, not `inf`"),
        ("--parameter=transport.gain=1:0.1", "1 is not below 0.1"),
        ("--parameter=transport.gain=0:1:log", "must start above 0, not at 0"),
        ("--parameter=transport.gain=0.1", "expected a range or a list of values"),
        ("--parameter=topology.delay=1 us:1 KB", "incompatible units: `us` and `KB`"),
        ("--parameter=topology.delay=1:2", "topology.delay"),
        ("--parameter=transport=dctcp,dctcp", "expected at least two different values"),
        ("--parameter=topology.rate=1 Gbps:2 Gbps", "duplicate parameter `topology.rate`"),
    ],
)
def test_an_invalid_option_gives_a_one_line_error(
    scenario_file: Path, option: str, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["tune", str(scenario_file), "--parameter", "topology.rate=1 Gbps:10 Gbps"]
    command += [] if option.startswith("--minimise") and "fct" in option else [f"--minimise={GOAL}"]
    assert cli.invoke([*command, option, "--trials", "1"]) == 2
    captured = capsys.readouterr()
    assert expected in captured.err
    assert captured.err.startswith(f"sojourn: {scenario_file}: ")
    assert captured.err.count("\n") == 1


def test_a_search_without_a_goal_or_trials_is_an_error() -> None:
    with pytest.raises(ScenarioError, match="give one objective"):
        tune.search(SMALL, RATES)
    with pytest.raises(ScenarioError, match="--trials: must be at least 1"):
        tune.search(SMALL, RATES, minimise=GOAL, trials=0)


def test_the_trials_of_a_search_have_one_fidelity() -> None:
    precise = SMALL | {"fidelity": {"kind": "sample", "precision": "5%"}}
    with pytest.raises(ScenarioError, match="precision: the trials of a search need equally"):
        tune.search(precise, RATES, minimise=GOAL, trials=1)
    with pytest.raises(ScenarioError, match="need the same one of packets, sample, flows"):
        tune.search(SMALL | {"fidelity": "auto"}, RATES, minimise=GOAL, trials=1)


def test_a_search_finds_the_better_end_and_measures_its_gain_on_fresh_seeds() -> None:
    tuned = tune.search(SMALL, RATES, minimise="mean fct", trials=17, seeds=2)
    assert tuned.best is not None
    assert tuned.gain is not None
    table = tuned.trials
    assert table["trial"].to_list() == list(range(17))
    assert table["mean fct"].min() == pytest.approx(tuned.value(tuned.best, tuned.goals[0]))
    # The gain is the mean ratio on the five seeds after those of the search.
    fresh = range(3, 8)
    values = [
        [metrics.fct("mean")(result).value for result in run_many(
            [{**scenario, "seed": seed} for seed in fresh]
        )]
        for scenario in (SMALL, tuned.scenario_of(tuned.best))
    ]  # fmt: skip
    ratios = np.log(np.array(values[1]) / np.array(values[0]))
    assert tuned.gain.seeds == 5
    assert tuned.gain.value == pytest.approx(math.exp(ratios.mean()))
    assert tuned.gain.low < tuned.gain.value < tuned.gain.high < 1
    rate = float(str(tuned.best.at["topology.rate"]).removesuffix(" Gbps"))
    assert rate > 10


@pytest.mark.parametrize("threads", [1, 2])
def test_a_search_ends_when_nothing_improves_and_resumes_with_the_same_end(
    threads: int, tmp_path: Path
) -> None:
    # No choice of an unused parameter improves anything.
    space = {"transport.max_window": "1000:2000"}
    options: dict[str, Any] = {"minimise": GOAL, "seeds": 1, "at_once": 2, "threads": threads}
    states: list[Tuned] = []
    tuned = tune.search(SMALL, space, trials=40, patience=5, report=states.append, **options)
    # The batch of trials 5 and 6 is the first with five trials after the baseline.
    assert [trial.number for trial in tuned.done] == list(range(7))
    assert tuned.improvements == [0]
    lines = tables.sentences(tuned)
    assert "the search ended before 40 trials: none of the last 5 improved by 1 % (--patience)" in (
        lines
    )
    # Before the end the expected time is that of all trials.
    assert states[0].remaining_s is not None
    assert re.search(r", up to \d+ s left$|, up to .* left$", tables.progress(states[0]))
    assert (states[-1].remaining_s, tuned.remaining_s) == (0, None)
    journal = tmp_path / "trials.journal"
    tune.search(SMALL, space, trials=12, patience=40, journal=journal, **options)
    again = tune.search(SMALL, space, trials=40, patience=5, journal=journal, **options)
    assert outcomes_of(again) == outcomes_of(tuned)


def test_cached_runs_count_with_the_time_of_their_simulation_in_the_time_left(
    tmp_path: Path,
) -> None:
    workload = {**SMALL["workload"], "flows": 3000}
    scenario = {**SMALL, "workload": workload, "time_limit": "10 s"}
    options: dict[str, Any] = {"cache": tmp_path, "threads": 1}
    simulated_s = sojourn.run(scenario, **options).summary["cpu_seconds"]
    states: list[Tuned] = []
    options |= {"minimise": GOAL, "trials": 2, "seeds": 1, "at_once": 1, "report": states.append}
    tune.search(scenario, RATES, **options)
    assert states[0].remaining_s is not None
    # A cached run takes a tenth of it.
    assert 0.9 * simulated_s < states[0].remaining_s


def test_the_default_patience_grows_with_the_number_of_parameters() -> None:
    options: dict[str, Any] = {"minimise": GOAL, "seeds": 1, "trials": 1}
    for space in (RATES, {**RATES, "transport.gain": "0.1:0.9"}):
        assert tune.search(SMALL, space, **options).patience == 10 + 10 * len(space)


def test_a_search_in_a_notebook_has_a_table_sentences_and_a_picture() -> None:
    tuned = tune.search(SMALL, RATES, minimise=GOAL, trials=2, seeds=1)
    page = tuned._repr_html_()
    for expected in ("best parameters", "topology.rate", "2 trials in 2 runs", "<svg"):
        assert expected in page
    assert repr(tuned).startswith("<Tuned: 2 of 2 trials, best: trial ")
    assert "workload" not in repr(tuned)


def test_an_improvement_satisfies_the_bounds_and_is_by_a_hundredth() -> None:
    times = [1.0, 0.995, 0.985, 0.98, 0.5, 2.0]
    done = [Trial(number, {}, {}, {"mean fct": [time]}) for number, time in enumerate(times)]
    tuned = tuned_of([*done[:4], replace(done[4], ended=STOPPED), done[5]], "mean fct")
    assert tuned.improvements == [0, 2]
    bound = objectives.constraint("mean fct <= 0.99 s")
    assert replace(tuned, bounds=(bound,)).improvements == [2]


@pytest.mark.parametrize(
    ("spec", "place", "beyond"),
    [
        ("1.05:3", 1.05, 0.855),
        ("1.05:3", 1.08, 0.855),
        ("1.05:3", 1.2, None),
        ("1.05:3", 2.99, 3.195),
        ("0.001:1:log", 0.02, None),
        ("0.01:1:log", 0.01, 0.01 * 10**-0.2),
        ("1:3", 2, None),
        ("1:3", 3, 4),
        ("1:3", 1, 0),
        ("10 KB:1 MB", 15.0, "-89 KB"),
    ],
)
def test_a_value_near_an_end_of_its_range_has_a_value_beyond(
    spec: str, place: float, beyond: Any
) -> None:
    parameter = ranges.read("some.field", spec)
    assert isinstance(parameter, ranges.Range)
    value = parameter.beyond(place)
    assert value == (pytest.approx(beyond, rel=1e-3) if isinstance(beyond, float) else beyond)


@pytest.mark.parametrize(
    ("path", "spec", "place", "value", "ends"),
    [
        ("topology.rate", "1 Gbps:10 Gbps", 10.0, "10 Gbps", "1 Gbps to 10 Gbps"),
        ("transport.gain", "0.1:0.5", 0.5, 0.5, "0.1 to 0.5"),
        # The gain is at most 1, so this range cannot be widened.
        ("transport.gain", "0.1:1.0", 1.0, 1.0, None),
        ("transport.gain", "0.1:0.5", 0.3, 0.3, None),
    ],
)
def test_a_best_value_at_the_edge_of_its_range_is_reported(
    path: str, spec: str, place: float, value: Any, ends: str | None
) -> None:
    best = Trial(1, {path: value}, {path: place}, {"mean fct": [1.0]})
    baseline = Trial(0, {path: value}, {}, {"mean fct": [2.0]})
    tuned = tuned_of([baseline, best], "mean fct")
    tuned = replace(tuned, scenario=SMALL, space=(ranges.read(path, spec),))
    expected = (
        f"warning: the best {path} for mean fct, {value}, lies at the edge of its range, {ends}: "
        "widen the range"
    )
    lines = [line for line in tables.sentences(tuned) if "edge" in line]
    assert lines == ([expected] if ends else [])


def test_no_more_trials_are_proposed_than_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[int] = []
    propose = optuna_sampler.propose

    def count(so_far: Tuned, number: int) -> list[Mapping[str, Any]]:
        counts.append(number)
        return propose(so_far, number)

    monkeypatch.setattr(optuna_sampler, "propose", count)
    tune.search(SMALL, RATES, minimise=GOAL, trials=4, seeds=1, at_once=10_000)
    assert counts == [3]


def test_all_trials_see_the_same_flows(cache: Path) -> None:
    space = {"transport.gain": "0.01:1:log"}
    tuned = tune.search(SMALL, space, minimise=GOAL, trials=4, seeds=2, cache=cache)
    flows = {
        (tuple(result.flows["start_s"]), tuple(result.flows["size_bytes"]))
        for result in map(sojourn.Result.read, cache.glob("[!.]*"))
    }
    assert len(flows) == 2 + (5 if tuned.gains else 0)
    assert len(list(cache.glob("[!.]*"))) > len(flows)


def outcomes_of(tuned: Tuned) -> list[Any]:
    return [
        (trial.number, dict(trial.at), trial.ended, dict(trial.measured)) for trial in tuned.done
    ]


class Killed(Exception):
    """Exception that interrupts a search."""


@pytest.mark.parametrize("after", [1, 4, 7])
def test_an_interrupted_search_resumes_with_the_same_result(
    after: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options: dict[str, Any] = {"minimise": GOAL, "trials": 12, "seeds": 2, "at_once": 4}
    space = {"transport.gain": "0.01:1:log", **RATES}
    expected = tune.search(SMALL, space, **options)
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
    run_batch = study._run_batch

    def count(so_far: Tuned, batch: Any, *rest: Any) -> list[Trial]:
        ran.extend(trial.number for trial in batch)
        return run_batch(so_far, batch, *rest)

    monkeypatch.setattr(study, "_run_batch", count)
    resumed = tune.search(SMALL, space, journal=journal, **options)
    assert ran == list(range(after + 1, 12))
    assert outcomes_of(resumed) == outcomes_of(expected)
    assert resumed.gain == expected.gain
    # Another goal starts a new search in the same file; more trials extend the first search.
    tune.search(SMALL, space, journal=journal, **{**options, "minimise": "mean fct", "trials": 2})
    more = tune.search(SMALL, space, journal=journal, **{**options, "trials": 14})
    assert outcomes_of(more)[:12] == outcomes_of(expected)
    assert ran[-2:] == [12, 13]
    ran.clear()
    tune.search(SMALL, space, journal=journal, again=True, **options)
    assert ran == list(range(1, 12))


def test_a_journal_with_an_incomplete_last_line_resumes_and_another_file_is_an_error(
    tmp_path: Path,
) -> None:
    journal = tmp_path / "trials.journal"
    options: dict[str, Any] = {"minimise": GOAL, "trials": 5, "seeds": 1, "journal": journal}
    space = {"transport.gain": "0.01:1"}
    expected = tune.search(SMALL, space, **options)
    content = journal.read_bytes()
    for length in (len(content) - 30, len(content) - 1, 100, 0):
        journal.write_bytes(content[:length])
        assert outcomes_of(tune.search(SMALL, space, **options)) == outcomes_of(expected)
    for text in ("other text\n", "{}\n", '{"op_code": 99}\n'):
        journal.write_text(text, encoding="utf-8")
        with pytest.raises(ScenarioError, match="not a journal of a search"):
            tune.search(SMALL, space, **options)


def test_duplicate_trials_in_a_journal_count_once(tmp_path: Path) -> None:
    journal = tmp_path / "trials.journal"
    options: dict[str, Any] = {"minimise": GOAL, "seeds": 1, "journal": journal}
    space = {"transport.gain": "0.01:1"}
    first = tune.search(SMALL, space, trials=3, **options)
    start = replace(first, done=())
    other = optuna_sampler.Journal(journal, study._search_id(start, 1, 8), start)
    for trial in first.done[1:]:
        other.add(trial, first)
    resumed = tune.search(SMALL, space, trials=5, **options)
    assert [trial.number for trial in resumed.done] == list(range(5))
    assert outcomes_of(resumed) == outcomes_of(
        tune.search(SMALL, space, trials=5, minimise=GOAL, seeds=1)
    )


def test_without_the_extra_an_error_names_the_command_to_install_it(
    scenario_file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    command = ["tune", str(scenario_file), "--parameter", "transport.gain=0.1:1"]
    assert cli.invoke([*command, "--minimise", GOAL]) == 2
    assert "tuning needs Optuna: pip install 'optuna>=" in capsys.readouterr().err


def test_importances_distinguish_a_decisive_and_an_idle_parameter() -> None:
    random = np.random.default_rng(8)
    space = tuple(ranges.read(path, "0.0:1.0") for path in ("decides", "idle"))
    done = []
    for number, (decides, idle) in enumerate(random.uniform(0, 1, (40, 2))):
        values = {"decides": decides, "idle": idle}
        done.append(Trial(number, values, values, {"mean fct": [1 + decides]}))
    tuned = replace(tuned_of(done, "mean fct"), space=space)
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


def test_a_trial_is_worse_if_its_ratios_are_significantly_above_1() -> None:
    # FCTs differ by a factor of ten between seeds; the ratios of the trials do not.
    best = trial_of(1, [1.0, 10.0, 3.0])
    worse = trial_of(2, [1.2, 12.1])
    assert trials.is_surely_worse(worse, [best], GOALS, ())
    assert not trials.is_surely_worse(trial_of(2, [1.2, 9.0]), [best], GOALS, ())
    assert not trials.is_surely_worse(trial_of(2, [0.8, 8.1]), [best], GOALS, ())
    assert not trials.is_surely_worse(trial_of(2, [5.0]), [best], GOALS, ())
    assert not trials.is_surely_worse(worse, [], GOALS, ())
    more = (objectives.goal("mean fct", maximise=True),)
    assert not trials.is_surely_worse(worse, [best], more, ())
    assert trials.is_surely_worse(trial_of(2, [0.8, 8.1]), [best], more, ())


def test_with_two_goals_a_trial_is_worse_only_if_it_is_worse_in_both() -> None:
    goals = (*GOALS, objectives.goal("p99 fct"))
    best = trial_of(1, [1.0, 2.0], more={"p99 fct": [1.0, 2.0]})
    for other, is_worse in (([1.1, 2.21], True), ([0.9, 1.8], False), ([1.1, 1.9], False)):
        trial = trial_of(2, [1.2, 2.41], more={"p99 fct": other})
        assert trials.is_surely_worse(trial, [best], goals, ()) is is_worse


def test_a_trial_that_significantly_violates_a_bound_is_worse() -> None:
    bounds = (objectives.constraint("utilisation >= 0.9"),)
    for values, is_worse in (([0.5, 0.51], True), ([0.85, 0.91], False), ([0.95, 0.96], False)):
        trial = trial_of(2, [1.0, 2.0], more={"utilisation": values})
        assert trials.is_surely_worse(trial, [], GOALS, bounds) is is_worse


def test_a_search_stops_significantly_worse_trials_early() -> None:
    options: dict[str, Any] = {"minimise": "mean fct", "trials": 17, "seeds": 4}
    tuned = tune.search(SMALL, RATES, **options)
    stopped = [trial for trial in tuned.done if trial.ended == STOPPED]
    assert stopped
    assert {trial.seeds for trial in stopped} <= {2, 3}
    assert all(trial.seeds == 4 for trial in tuned.done if trial.ended == DONE)
    # The values of a stopped trial are extrapolated by its ratios.
    goal = tuned.goals[0]
    for trial in stopped[:3]:
        runs = [{**tuned.scenario_of(trial), "seed": seed} for seed in range(1, 5)]
        logs = [math.log(metrics.fct("mean")(result).value) for result in run_many(runs)]
        assert math.log(tuned.value(trial, goal)) == pytest.approx(np.mean(logs), abs=0.2)


def tuned_of(done: list[Trial], *texts: str) -> Tuned:
    goals = tuple(objectives.goal(text) for text in texts)
    return Tuned({}, (), {}, goals, (), tuple(done), len(done))


def test_an_axis_states_whole_values_and_noise_does_not_fill_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pictures: list[Any] = []
    monkeypatch.setattr(plot, "save", lambda picture, _: pictures.append(picture))
    used = [0.52721, 0.52720, 0.52721]
    done = [trial_of(i, [1.0 + i], more={"utilisation": [share]}) for i, share in enumerate(used)]
    tuned = tuned_of(done, "mean fct", "utilisation")
    tune_plot.draw(tuned, Path("tune"))
    (picture,) = pictures
    (axes,) = [each for each in picture.axes if each.get_xlabel() == "trial"][1:]
    low, high = axes.get_ylim()
    assert high - low == pytest.approx(0.02 * 0.527, rel=0.01)
    assert axes.yaxis.get_major_formatter().get_useOffset() is False


@pytest.mark.parametrize("kind", ["packets", "sample"])
def test_the_title_of_a_search_names_a_fidelity_other_than_packets(
    monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    pictures: list[Any] = []
    monkeypatch.setattr(plot, "save", lambda picture, _: pictures.append(picture))
    tuned = tuned_of([trial_of(0, [1.0])], "mean fct")
    tune_plot.draw(replace(tuned, scenario={"fidelity": kind}), Path("tune"))
    title = pictures[0].legends[0].get_title().get_text()
    assert ("(fidelity sample)" in title) == (kind == "sample")
    assert ("fidelity" in title) == (kind == "sample")


def test_the_front_equals_the_pareto_front_by_brute_force() -> None:
    random = np.random.default_rng(7)
    for _ in range(20):
        # Small integers give ties.
        points = random.integers(1, 6, (12, 2)).astype(float)
        done = [trial_of(i, [a], more={"p99 fct": [b]}) for i, (a, b) in enumerate(points)]
        front = tuned_of(done, "mean fct", "p99 fct").front
        values = {tuple(points[trial.number]) for trial in front}
        expected = {
            tuple(point)
            for point in points
            if not any((other <= point).all() and (other < point).any() for other in points)
        }
        assert values == expected
        assert len(values) == len(front)


def test_the_best_trial_satisfies_the_bounds_and_has_all_seeds() -> None:
    bound = objectives.constraint("utilisation >= 0.9")
    done = [
        trial_of(0, [3.0], more={"utilisation": [0.95]}),
        trial_of(1, [1.0], more={"utilisation": [0.5]}),
        trial_of(2, [2.0], more={"utilisation": [0.9]}),
        trial_of(3, [1.5], STOPPED, more={"utilisation": [0.95]}),
        Trial(4, {}, ended=INVALID),
    ]
    tuned = replace(tuned_of(done, "mean fct"), bounds=(bound,))
    assert tuned.best == done[2]
    assert replace(tuned, done=(done[1],)).best is None
    assert tuned.trials["keeps_bounds"].to_list() == [True, False, True, True, False]


def test_a_search_continues_after_an_invalid_scenario() -> None:
    queue = {"kind": "red", "min_threshold": "20 KB", "max_threshold": "60 KB"}
    base = sojourn.override(SMALL, {"queue": queue})
    space = {"min_threshold": "10 KB:100 KB", "max_threshold": "20 KB:110 KB"}
    tuned = tune.search(base, space, minimise=GOAL, trials=17, seeds=1)
    ended = tuned.trials["ended"].to_list()
    assert {DONE, INVALID} == set(ended)
    invalid = tuned.trials.filter(ended=INVALID)
    assert invalid["why"].str.contains("threshold").all()
    assert invalid[GOAL].null_count() == invalid.height
    assert tuned.trials["why"].null_count() == tuned.trials.height - invalid.height
    assert tuned.best is not None


def test_a_trial_without_a_value_of_a_measure_is_invalid(tmp_path: Path) -> None:
    space = {"workload.sizes.size": ["20 KB", "200 KB"]}
    goal = f"{GOAL} of <= 100 KB"
    options: dict[str, Any] = {"minimise": goal, "seeds": 2, "journal": tmp_path / "journal"}
    tuned = tune.search(SMALL, space, trials=9, **options)
    empty = tuned.trials.filter(pl.col("workload.sizes.size") == "200 KB")
    assert empty.height > 0
    assert set(empty["ended"]) == {INVALID}
    assert empty["why"].str.contains(f"{goal}: a run has 0 such flows").all()
    assert outcomes_of(tune.search(SMALL, space, trials=9, **options)) == outcomes_of(tuned)


@pytest.mark.parametrize(("kept", "shown"), [(4, "better"), (2, "no interval: it needs 3 seeds")])
def test_a_fresh_seed_without_a_value_is_left_out_of_both_sides(
    monkeypatch: pytest.MonkeyPatch, kept: int, shown: str
) -> None:
    why = "mean fct: a run has 5 such flows, and 100 are needed"
    lost = [math.nan] * (5 - kept)

    def measure(_: Tuned, unmeasured: list[Trial], *rest: Any) -> list[Trial]:
        values = {0: [9.0, 2.0, 3.0, 4.0, 5.0], 1: [*lost, 1.0, 1.5, 2.1, 2.5][:5]}
        return [
            replace(trial, measured={"mean fct": values[index]}, missing={"mean fct": why})
            for index, trial in enumerate(unmeasured)
        ]

    monkeypatch.setattr(study, "_measure", measure)
    bound = objectives.constraint("mean fct <= 9 s")
    done = [trial_of(0, [3.0]), trial_of(1, [1.0])]
    so_far = replace(tuned_of(done, "mean fct"), bounds=(bound,))
    tuned = study._measure_gains(so_far, 1, {"what": "tune"})
    assert tuned.gain is not None
    assert (tuned.gain.seeds, tuned.gain.of_seeds) == (kept, 5)
    gain, held = tables.sentences(tuned)[:2]
    assert shown in gain
    for line in (gain, held):
        assert line.endswith(f", over the {kept} of 5 seeds with a value ({why})")
        assert "nan" not in line


def test_fresh_seeds_without_any_value_give_a_reason_and_no_verdict() -> None:
    base = sojourn.override(SMALL, {"workload.flows": 9})
    complete = [trial_of(0, [], more={"p99 fct": [3.0]}), trial_of(1, [], more={"p99 fct": [1.0]})]
    bound = objectives.constraint("p99 fct <= 9 s")
    so_far = replace(tuned_of(complete, "p99 fct"), bounds=(bound,), scenario=base)
    lines = tables.sentences(study._measure_gains(so_far, 1, {"what": "tune"}))[:2]
    why = "no seed counts: p99 fct: a run has 9 such flows, and 100 are needed"
    assert all(why in line for line in lines)
    assert not any("nan" in line or "significant" in line or "inconc" in line for line in lines)


def test_the_default_queue_of_a_transport_can_be_tuned() -> None:
    tuned = tune.search(
        SMALL, {"queue.threshold": "5 KB:200 KB"}, minimise="mean queue", trials=3, seeds=1
    )
    assert tuned.changes(tuned.done[0]) == {}
    assert tuned.changes(tuned.done[1])["queue.kind"] == "ecn_threshold"
    # The baseline has the values in force, which the environment sets.
    assert tuned.done[0].at["queue.threshold"] == "24 us"
