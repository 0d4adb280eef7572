"""Tuning: a search for the best parameters of a scenario, and a measurement of their gain.

All trials have the same seeds, and so the same flows. After two seeds, and after each further seed,
a trial is compared with the best trials of the batches before, and stopped if it is significantly
worse. The best of many trials owes something to chance, so the gain over the baseline, which is the
unchanged scenario, is measured on fresh seeds.

The trials of a batch are a function of the batches before it, so an interrupted search resumes from
the trials in the journal and the runs in the cache with the same result.
"""

import hashlib
import itertools
import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from sojourn._core import ScenarioError
from sojourn.analysis import metrics, paired
from sojourn.runs.results import Result
from sojourn.runs.runner import MAX_RUNS, key, run, run_many
from sojourn.scenario import fidelity
from sojourn.scenario.encoding import check
from sojourn.scenario.fields import find, value_at
from sojourn.scenario.overrides import override
from sojourn.scenario.reading import Scenario, with_files
from sojourn.tune import objectives, optuna_sampler, ranges
from sojourn.tune.objectives import MIN_VALUE, Constraint, Goal
from sojourn.tune.ranges import Parameter
from sojourn.tune.trials import INVALID, STOPPED, Gain, Held, Trial, Tuned, is_surely_worse

FRESH_SEEDS = 5
"""Minimum number of seeds on which gains are measured."""

MAX_FRONT = 8
"""Maximum number of trials, evenly along the Pareto front, that are measured on fresh seeds."""

MAX_GOALS = 2

PATIENCE = 10
"""Default number of trials without an improvement, for each parameter and once more."""

MEASUREMENT = frozenset(
    (
        "name",
        "model",
        "engine",
        "time_limit",
        "warm_up",
        "samples",
        "account",
        "account_flows",
        "record",
    )
)
"""Fields that change what is measured, and how, rather than the system that is tuned."""


def search(  # noqa: PLR0913 - each is an option of its own
    scenario: Mapping[str, Any],
    parameters: Mapping[str, str | Sequence[Any]],
    *,
    minimise: str | Iterable[str] = (),
    maximise: str | Iterable[str] = (),
    subject_to: str | Iterable[str] = (),
    trials: int = 100,
    patience: int | None = None,
    seeds: int = 3,
    at_once: int = 8,
    journal: Path | None = None,
    again: bool = False,
    report: Callable[[Tuned], None] = lambda so_far: None,
    what: str = "tune",
    **options: Any,
) -> Tuned:
    """Search for the best parameters for one goal, or for the Pareto front of two goals.

    `parameters` maps names to ranges, such as `{"transport.gain": "0.01:1:log"}`, or to lists of
    values. `minimise`, `maximise` and `subject_to` are measures and bounds in the syntax of
    `sojourn tune`. The first of the `trials` is the unchanged scenario, the baseline. Each trial
    has the same `seeds` consecutive seeds, from the scenario's seed on. `at_once` trials form a
    batch, which is proposed and run together. The search ends early after a batch if none of the
    last `patience` trials is an improvement (`Tuned.improvements`; default: 10, and 10 for each
    parameter); while no trial satisfies the bounds, it continues. An interrupted search resumes
    from the file `journal`; if `again`, its trials are discarded. `report` is called after each
    batch with the search so far. `what` is the title of the progress display. `options` are those
    of `run_many`; with a `cache`, an interrupted batch resumes too.

    Raises `ScenarioError` if the scenario, a range, a goal or a bound is invalid, or if the extra
    `tune` is not installed.
    """
    optuna_sampler.check_installed()
    patience = PATIENCE * (len(parameters) + 1) if patience is None else patience
    counts = {"trials": trials, "patience": patience, "seeds": seeds, "at-once": at_once}
    for name, count in counts.items():
        if count < 1:
            raise ScenarioError(f"--{name}: must be at least 1, not {count}")
    runs = trials * seeds + (MAX_FRONT + 1) * max(seeds, FRESH_SEEDS)
    if runs > MAX_RUNS:
        raise ScenarioError(
            f"--trials {trials}, --seeds {seeds}: up to {runs} runs; at most {MAX_RUNS} are allowed"
        )
    _check_fidelity(scenario)
    start = _new_search(with_files(scenario), parameters, trials)
    goals = (
        *_parse("--minimise", minimise, objectives.goal),
        *_parse("--maximise", maximise, lambda text: objectives.goal(text, maximise=True)),
    )
    if not 1 <= len(goals) <= MAX_GOALS or len({goal.measure.text for goal in goals}) < len(goals):
        raise ScenarioError("--minimise, --maximise: give one objective, or two different ones")
    bounds = tuple(_parse("--subject-to", subject_to, objectives.constraint))
    so_far = replace(start, goals=goals, bounds=bounds, patience=patience)
    options |= {"what": what}
    storage = None
    if journal is not None:
        name = _search_id(so_far, seeds, at_once)
        storage = optuna_sampler.Journal(journal, name, so_far, again=again)
        so_far = replace(so_far, done=storage.trials()[:trials])
    spent_s, ran = 0.0, 0
    while len(so_far.done) < (end := _end(so_far, at_once)):
        begin, is_baseline = time.monotonic(), not so_far.done
        batch = _batch(so_far, seeds, at_once, options)
        elapsed_s = time.monotonic() - begin
        if is_baseline:
            elapsed_s /= _baseline_share(seeds, options)
        # Runs from the cache take no time, but those of the next trials will.
        spent_s += max(elapsed_s, _time_on_threads(batch, options))
        ran += len(batch)
        for trial in batch:
            so_far = replace(so_far, done=(*so_far.done, trial))
            if storage is not None:
                storage.add(trial, so_far)
        left = _end(so_far, at_once) - len(so_far.done)
        so_far = replace(so_far, remaining_s=spent_s / ran * left)
        report(so_far)
    return _measure_gains(replace(so_far, done=so_far.done[:end], remaining_s=None), seeds, options)


def _check_fidelity(scenario: Mapping[str, Any]) -> None:
    """Raise `ScenarioError` if the fidelity could differ between the trials of a search."""
    chosen = fidelity.read(scenario.get(fidelity.FIELD, fidelity.PACKETS))
    if chosen.kind == fidelity.AUTO:
        kinds = ", ".join(kind for kind in fidelity.KINDS if kind != fidelity.AUTO)
        raise ScenarioError(f"fidelity: the trials of a search need the same one of {kinds}")
    if chosen.precision != "none":
        raise ScenarioError(
            "fidelity.precision: the trials of a search need equally many samples; "
            "give fidelity.samples instead"
        )


def _end(so_far: Tuned, at_once: int) -> int:
    """Return the number of trials after which the search ends, as far as is known.

    It is the end of the first batch in which the last `patience` trials improved nothing. An end
    within a batch would depend on where an earlier search was interrupted.
    """
    for last, following in itertools.pairwise([*so_far.improvements, so_far.wanted]):
        batches = math.ceil((last + so_far.patience) / at_once)
        if (count := 1 + batches * at_once) <= min(len(so_far.done), following):
            return count
    return so_far.wanted


def _baseline_share(seeds: int, options: Mapping[str, Any]) -> float:
    """Return the time of the baseline in that of a trial of a batch, which keeps all threads busy.

    The number of threads of a cluster is unknown.
    """
    threads = options.get("threads") or os.cpu_count() or 1
    return 1.0 if options.get("cluster") else math.ceil(seeds / threads) * threads / seeds


def _time_on_threads(batch: Iterable[Trial], options: Mapping[str, Any]) -> float:
    """Return the time that the simulation of a batch takes if it keeps all threads busy.

    A cluster may run all trials at once.
    """
    times = [trial.thread_s for trial in batch]
    if options.get("cluster"):
        return max(times)
    return sum(times) / (options.get("threads") or os.cpu_count() or 1)


def _parse(option: str, texts: str | Iterable[str], parse: Callable[[str], Any]) -> Iterator[Any]:
    """Parse goals or bounds; errors name the option."""
    for text in [texts] if isinstance(texts, str) else texts:
        try:
            yield parse(text)
        except ScenarioError as error:
            raise ScenarioError(f"{option} {text}: {error}") from None


def _new_search(base: Scenario, specs: Mapping[str, str | Sequence[Any]], wanted: int) -> Tuned:
    """Return a search without trials and goals.

    Raises `ScenarioError` if a parameter is unknown, or if its range is invalid in the scenario.
    """
    if not specs:
        raise ScenarioError(f"--parameter: expected NAME=RANGE, where RANGE is {ranges.FORMS}")
    complete = check(base)
    space: dict[str, Parameter] = {}
    implied: dict[str, Any] = {}
    for name, spec in specs.items():
        try:
            path = find(base, name)
            if path == "seed":
                raise ScenarioError("cannot tune the seed; `--seeds N` runs N seeds")
            if path.partition(".")[0] in MEASUREMENT:
                raise ScenarioError(
                    "cannot tune the measurement; expected a field of the transport, the queues, "
                    "the network or the workload"
                )
            if path in space:
                raise ScenarioError(f"duplicate parameter `{path}`")
            if path.startswith("queue.") and complete["queue"] == "none":
                implied = {"queue.kind": _default_queue(base)["kind"]}
            space[path] = ranges.read(path, spec)
        except ScenarioError as error:
            raise ScenarioError(f"--parameter {name}={spec}: {error}") from None
    search = Tuned(base, tuple(space.values()), implied, (), (), (), wanted)
    for parameter, (name, spec) in zip(search.space, specs.items(), strict=True):
        if problem := _range_error(search, parameter):
            raise ScenarioError(f"--parameter {name}={spec}: {problem}")
    return search


def _range_error(search: Tuned, parameter: Parameter) -> str:
    """Return the error of an end of a range that is invalid in all scenarios, or an empty string.

    An end that conflicts with the scenario's values of other parameters may be valid with the ends
    of the ranges of those parameters.
    """
    combinations: list[dict[str, Any]] = [
        {},
        *({other.path: other.ends()[index] for other in search.space} for index in (0, -1)),
    ]
    for end in parameter.ends():
        errors = []
        for others in combinations:
            changes = {**search.implied, **others, parameter.path: end}
            errors.append(_scenario_error(override(search.scenario, changes)))
            if not errors[-1]:
                break
        if all(errors):
            return errors[0]
    return ""


def _scenario_error(scenario: Scenario) -> str:
    """Return the error of a scenario; an empty string if it is valid."""
    try:
        check(scenario)
    except ScenarioError as error:
        return str(error)
    return ""


def _default_queue(base: Scenario) -> Mapping[str, Any]:
    """Return the transport's default queue, from the summary of an empty run."""
    summary = run(override(base, {"time_limit": "1 ps"})).summary
    if not summary["queues"]:
        raise ScenarioError("the scenario has no queue")
    queue: Mapping[str, Any] = summary["queues"][0]["switch"]
    return queue


def _baseline(so_far: Tuned) -> Trial:
    """Return the unchanged scenario as the first trial; it may lie outside the ranges."""
    complete = check(so_far.scenario)
    if so_far.implied:
        complete = {**complete, "queue": _default_queue(so_far.scenario)}
    values = {parameter.path: value_at(complete, parameter.path) for parameter in so_far.space}
    places = _places(so_far, values)
    return Trial(0, values, {} if None in places.values() else places)


def _places(so_far: Tuned, values: Mapping[str, Any]) -> dict[str, Any]:
    return {parameter.path: parameter.place(values[parameter.path]) for parameter in so_far.space}


def _search_id(so_far: Tuned, seeds: int, at_once: int) -> str:
    """Return the id of a search in its journal: a hash of everything that its trials depend on."""
    goals = [(goal.measure.text, goal.maximise) for goal in so_far.goals]
    inputs = (so_far.space, goals, [bound.text for bound in so_far.bounds], seeds, at_once)
    return hashlib.sha256(f"{key(so_far.scenario)}\n{inputs}".encode()).hexdigest()[:16]


def _batch(so_far: Tuned, seeds: int, at_once: int, options: Mapping[str, Any]) -> list[Trial]:
    """Run the baseline, or the rest of the next batch."""
    if not so_far.done:
        return [_run_baseline(so_far, seeds, options)]
    count = len(so_far.done)
    begin = count - (count - 1) % at_once
    before = replace(so_far, done=so_far.done[:begin])
    places = optuna_sampler.propose(before, min(at_once, so_far.wanted - begin))
    trials = []
    for number in range(count, min(begin + at_once, so_far.wanted)):
        proposal = places[number - begin]
        values = {
            parameter.path: parameter.value(proposal[parameter.path]) for parameter in so_far.space
        }
        trials.append(Trial(number, values, _rounded_places(so_far, values, proposal)))
    title = f"{options['what']}, trials {count} to {number}"
    return _run_batch(before, trials, seeds, {**options, "what": title})


def _rounded_places(
    so_far: Tuned, values: Mapping[str, Any], proposal: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the places of rounded values.

    An end of a range, rounded to a byte, may lie outside the range; then the proposal is kept.
    """
    places = _places(so_far, values)
    return {path: proposal[path] if place is None else place for path, place in places.items()}


def _run_baseline(so_far: Tuned, seeds: int, options: Mapping[str, Any]) -> Trial:
    """Run the baseline."""
    trial = _measure(so_far, [_baseline(so_far)], range(seeds), options)[0]
    for name, values in trial.measured.items():
        if not np.isfinite(values).all():
            raise ScenarioError(trial.why or f"{name}: the scenario gives no finite value")
    return trial


def _run_batch(
    so_far: Tuned, trials: Iterable[Trial], seeds: int, options: Mapping[str, Any]
) -> list[Trial]:
    """Run trials seed by seed; stop a trial that is significantly worse than the front so far."""
    ended: list[Trial] = []
    running: list[Trial] = []
    for trial in trials:
        if error := _scenario_error(so_far.scenario_of(trial)):
            ended.append(replace(trial, ended=INVALID, why=error))
        else:
            running.append(trial)
    # One seed gives no confidence interval.
    first = min(2, seeds)
    for step in (range(first), *(range(seed, seed + 1) for seed in range(first, seeds))):
        measured, running = _measure(so_far, running, step, options), []
        for trial in measured:
            if trial.why:
                ended.append(replace(trial, ended=INVALID, measured={}))
            elif step.stop < seeds and is_surely_worse(
                trial, so_far.front, so_far.goals, so_far.bounds
            ):
                ended.append(replace(trial, ended=STOPPED))
            else:
                running.append(trial)
    return sorted([*ended, *running], key=lambda trial: trial.number)


def _measure(
    so_far: Tuned, trials: Sequence[Trial], seeds: range, options: Mapping[str, Any]
) -> list[Trial]:
    """Run trials with further seeds, counted from the scenario's seed, and add the measures.

    A trial without a value of one has the reason.
    """
    begin = int(so_far.scenario.get("seed", 1))
    runs = [
        {**so_far.scenario_of(trial), "seed": begin + seed} for trial in trials for seed in seeds
    ]
    results = run_many(runs, **options) if runs else []
    if results:
        for measure in so_far.measures:
            measure.check_class(results)
    updated = []
    for index, trial in enumerate(trials):
        measured = {name: list(values) for name, values in trial.measured.items()}
        at_least, missing, thread_s = trial.at_least, dict(trial.missing), trial.thread_s
        for result in results[index * len(seeds) : (index + 1) * len(seeds)]:
            thread_s += _thread_time(result)
            for measure in so_far.measures:
                statistic = measure.metric(result)
                measured.setdefault(measure.text, []).append(statistic.value)
                at_least |= statistic.at_least
                if math.isnan(statistic.value):
                    missing.setdefault(measure.text, measure.why_missing(result))
        why = trial.why or next(iter(missing.values()), "")
        known = replace(trial, measured=measured, at_least=at_least, why=why)
        updated.append(replace(known, missing=missing, thread_s=thread_s))
    return updated


def _thread_time(result: Result) -> float:
    """Return the time of all threads in the simulation of a run, also of one from the cache.

    The CPU time of a run on several threads is unknown.
    """
    cpu_s: float | None = result.summary["cpu_seconds"]
    wall_s: float = result.summary["wall_seconds"]
    return wall_s * result.threads if cpu_s is None else cpu_s


def _measure_gains(so_far: Tuned, seeds: int, options: Mapping[str, Any]) -> Tuned:
    """Measure the gains of the best trials on seeds after those of the search."""
    best = [trial for trial in so_far.front if trial.number > 0]
    if len(best) > MAX_FRONT:
        indices = np.linspace(0, len(best) - 1, MAX_FRONT).round().astype(int)
        best = [best[index] for index in indices]
    if not best:
        return so_far
    fresh = range(seeds, seeds + max(seeds, FRESH_SEEDS))
    unmeasured = [replace(trial, measured={}) for trial in (so_far.done[0], *best)]
    title = f"{options['what']}, fresh seeds"
    baseline, *trials = _measure(so_far, unmeasured, fresh, {**options, "what": title})
    gains = [_gain(baseline, trial, goal) for trial in trials for goal in so_far.goals]
    held = [_held(trial, bound) for trial in trials for bound in so_far.bounds]
    return replace(so_far, gains=tuple(gains), held=tuple(held))


def _gain(baseline: Trial, trial: Trial, goal: Goal) -> Gain:
    """Return the gain over the seeds that give a value in both."""
    name = goal.measure.text
    values = np.array([item.measured[name] for item in (baseline, trial)])
    kept = values[:, ~np.isnan(values).any(axis=0)]
    why = next((item.missing[name] for item in (baseline, trial) if name in item.missing), "")
    seeds = (kept.shape[1], values.shape[1], why)
    if not kept.size:
        nan = math.nan
        return Gain(trial.number, name, nan, nan, nan, nan, nan, *seeds)
    logs = np.log(np.maximum(kept, MIN_VALUE))
    before, after = (math.exp(each.mean()) for each in logs)
    return Gain(trial.number, name, *paired.interval(logs[1] - logs[0]), before, after, *seeds)


def _held(trial: Trial, bound: Constraint) -> Held:
    """Return the mean of a bounded measure over the seeds that give a value."""
    name = bound.measure.text
    values = np.array(trial.measured[name])
    kept = values[~np.isnan(values)]
    seeds = (len(kept), len(values), trial.missing.get(name, ""))
    return Held(trial.number, bound, *metrics.t_interval(kept), *seeds)
