"""Tuning: a search for the parameters with which a scheme does best, and what they are worth.

All trials see the same flows, those of the same seeds. After two seeds and each further one a trial
is held to the best of the batches before, and stopped if it is surely worse. The best of many owes
something to chance, so what it gains over the scenario as it is comes from fresh seeds, which the
search has not seen.

What a batch tries is a function of the batches before it, so a search that was killed goes on as if
it had not been, with the trials on disk and the runs in the cache.
"""

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from sojourn._core import ScenarioError
from sojourn.analysis import metrics, paired
from sojourn.runs.runner import key, run, run_many
from sojourn.scenario.encoding import check
from sojourn.scenario.overrides import find, override
from sojourn.scenario.reading import Scenario, with_files
from sojourn.tune import objectives, optuna_sampler, ranges
from sojourn.tune.objectives import LEAST, Goal
from sojourn.tune.ranges import Parameter
from sojourn.tune.trials import REFUSED, STOPPED, Gain, Held, Trial, Tuned, surely_worse

FRESH_SEEDS = 5
"""The fewest seeds that gains are measured on."""

MOST_FRONT = 8
"""The most trials of a front that are measured on fresh seeds, evenly along it."""

MOST_GOALS = 2


def search(  # noqa: PLR0913 - each is an option of its own
    scenario: Mapping[str, Any],
    parameters: Mapping[str, str | Sequence[Any]],
    *,
    minimise: str | Iterable[str] = (),
    maximise: str | Iterable[str] = (),
    subject_to: str | Iterable[str] = (),
    trials: int = 100,
    seeds: int = 3,
    at_once: int = 8,
    journal: Path | None = None,
    again: bool = False,
    tell: Callable[[Tuned], None] = lambda so_far: None,
    what: str = "tune",
    **options: Any,
) -> Tuned:
    """Search for the parameters that are best for one goal, or for two that conflict.

    `parameters` are ranges by name, such as `{"transport.gain": "0.01:1:log"}`, or lists of values.
    Goals and bounds are measures as `objectives` reads them. The first of the `trials` is the
    scenario as it is. Each has the same `seeds`, from the scenario's own on, and `at_once` of them
    are chosen and run together. The `journal` is a file from which an interrupted search goes on,
    unless it is to begin `again`. `tell` is called after each batch with what is known so far. The
    options are those of `run_many`; with a `cache`, runs of an interrupted batch are known, too.

    Raises `ScenarioError` if the scenario, a range, a goal or a bound is wrong.
    """
    optuna_sampler.check_installed()
    for name, count in {"--trials": trials, "--seeds": seeds, "--at-once": at_once}.items():
        if count < 1:
            raise ScenarioError(f"{name}: must be at least 1, not {count}")
    start = _begun(with_files(scenario), parameters, trials)
    goals = (
        *_read("--minimise", minimise, objectives.goal),
        *_read("--maximise", maximise, lambda text: objectives.goal(text, maximise=True)),
    )
    if not 1 <= len(goals) <= MOST_GOALS or len({goal.measure.text for goal in goals}) < len(goals):
        raise ScenarioError("--minimise, --maximise: wants one goal, or two that differ")
    bounds = tuple(_read("--subject-to", subject_to, objectives.constraint))
    so_far = replace(start, goals=goals, bounds=bounds)
    options |= {"what": what}
    known = None
    if journal is not None:
        known = optuna_sampler.Journal(journal, _name(so_far, seeds, at_once), so_far, again=again)
        so_far = replace(so_far, done=known.trials()[:trials])
    while len(so_far.done) < trials:
        for trial in _batch(so_far, seeds, at_once, options):
            so_far = replace(so_far, done=(*so_far.done, trial))
            if known is not None:
                known.add(trial, so_far)
        tell(so_far)
    return _on_fresh_seeds(so_far, seeds, options)


def _read(option: str, texts: str | Iterable[str], read: Callable[[str], Any]) -> Iterator[Any]:
    """Read goals or bounds, and name the option in what is wrong with one."""
    for text in [texts] if isinstance(texts, str) else texts:
        try:
            yield read(text)
        except ScenarioError as error:
            raise ScenarioError(f"{option} {text}: {error}") from None


def _begun(base: Scenario, given: Mapping[str, str | Sequence[Any]], wanted: int) -> Tuned:
    """Return a search without trials and goals; refuse ranges that the scenario cannot have."""
    if not given:
        raise ScenarioError(f"--parameter: wants one or more, as NAME={ranges.FORMS}")
    shown = check(base)
    space: dict[str, Parameter] = {}
    implied: dict[str, Any] = {}
    for name, spec in given.items():
        try:
            path = find(base, name)
            if path == "seed":
                raise ScenarioError("the seed is chance, and no parameter; `--seeds N` runs N")
            if path in space:
                raise ScenarioError(f"`{path}` is given twice")
            if path.startswith("queue.") and shown["queue"] == "none":
                implied = {"queue.kind": _designed_queue(base)}
            space[path] = ranges.read(path, spec)
        except ScenarioError as error:
            raise ScenarioError(f"--parameter {name}={spec}: {error}") from None
    begun = Tuned(base, tuple(space.values()), implied, (), (), (), wanted)
    for parameter, (name, spec) in zip(begun.space, given.items(), strict=True):
        if refusal := _refused_end(begun, parameter):
            raise ScenarioError(f"--parameter {name}={spec}: {refusal}")
    return begun


def _refused_end(begun: Tuned, parameter: Parameter) -> str:
    """Say what is wrong with an end of a range that no scenario has; nothing if both are right.

    One that does not fit the scenario's other parameters may fit the ends of their own ranges.
    """
    others = [{}, *({one.path: one.ends()[place] for one in begun.space} for place in (0, -1))]
    for end in parameter.ends():
        refusals = []
        for changes in others:
            at = {**begun.implied, **changes, parameter.path: end}
            refusals.append(_refusal(override(begun.scenario, at)))
            if not refusals[-1]:
                break
        if all(refusals):
            return refusals[0]
    return ""


def _refusal(scenario: Scenario) -> str:
    """Say what is wrong with a scenario; nothing if it is right."""
    try:
        check(scenario)
    except ScenarioError as error:
        return str(error)
    return ""


def _designed_queue(base: Scenario) -> str:
    """Return the kind of queue that the transport is designed with: a run of no time tells."""
    summary = run(override(base, {"time_limit": "1 ps"})).summary
    if not summary["queues"]:
        raise ScenarioError("the scenario has no queue")
    return str(summary["queues"][0]["switch"]["kind"])


def _defaults(so_far: Tuned) -> Trial:
    """Return the scenario as it is as the first trial; it may lie outside of the ranges."""
    shown = check(so_far.scenario)
    at = {one.path: _shown_at(shown, one.path) for one in so_far.space}
    places = {one.path: one.place(at[one.path]) for one in so_far.space}
    return Trial(0, at, {} if None in places.values() else places)


def _shown_at(shown: Mapping[str, Any], path: str) -> Any:
    """Return what a scenario says at a path; `none` where it says nothing."""
    value: Any = shown
    for name in path.split("."):
        if not isinstance(value, Mapping):
            return "none"
        # The parameters of a class of Python's.
        value = value.get(name, value.get("parameters", {}).get(name, "none"))
    return value


def _name(so_far: Tuned, seeds: int, at_once: int) -> str:
    """Return the name of a search: a hash of all that its trials depend on."""
    goals = [(goal.measure.text, goal.maximise) for goal in so_far.goals]
    asked = (so_far.space, goals, [bound.text for bound in so_far.bounds], seeds, at_once)
    return hashlib.sha256(f"{key(so_far.scenario)}\n{asked}".encode()).hexdigest()[:16]


def _batch(so_far: Tuned, seeds: int, at_once: int, options: Mapping[str, Any]) -> list[Trial]:
    """Run the scenario as it is, or the rest of the batch that comes next."""
    if not so_far.done:
        return [_first(so_far, seeds, options)]
    count = len(so_far.done)
    begin = count - (count - 1) % at_once
    before = replace(so_far, done=so_far.done[:begin])
    places = optuna_sampler.asked(before, at_once)
    trials = []
    for number in range(count, min(begin + at_once, so_far.wanted)):
        raw = places[number - begin]
        at = {one.path: one.value(raw[one.path]) for one in so_far.space}
        trials.append(Trial(number, at, _rounded(so_far, at, raw)))
    what = f"{options['what']}, trials {count} to {number}"
    return _judged(before, trials, seeds, {**options, "what": what})


def _rounded(so_far: Tuned, at: Mapping[str, Any], raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return where values of few digits are; an end in whole bytes may lie outside of itself."""
    places = {one.path: one.place(at[one.path]) for one in so_far.space}
    return {path: raw[path] if place is None else place for path, place in places.items()}


def _first(so_far: Tuned, seeds: int, options: Mapping[str, Any]) -> Trial:
    """Run the scenario as it is, to which all else is held."""
    trial = _measured(so_far, [_defaults(so_far)], range(seeds), options)[0]
    for name, values in trial.measured.items():
        if not np.isfinite(values).all():
            raise ScenarioError(f"{name}: the scenario has nothing to measure it of")
    return trial


def _judged(
    so_far: Tuned, trials: Iterable[Trial], seeds: int, options: Mapping[str, Any]
) -> list[Trial]:
    """Run trials seed by seed, each until it is surely worse than one of the best so far."""
    over: list[Trial] = []
    going: list[Trial] = []
    for trial in trials:
        if refusal := _refusal(so_far.scenario_of(trial)):
            over.append(replace(trial, ended=REFUSED, why=refusal))
        else:
            going.append(trial)
    # Of one seed there is no interval.
    first = min(2, seeds)
    for some in (range(first), *(range(seed, seed + 1) for seed in range(first, seeds))):
        judged, going = _measured(so_far, going, some, options), []
        for trial in judged:
            missing = [name for name, values in trial.measured.items() if np.isnan(values).any()]
            if missing:
                why = f"{missing[0]}: there is nothing to measure it of"
                over.append(replace(trial, ended=REFUSED, why=why, measured={}))
            elif some.stop < seeds and surely_worse(
                trial, so_far.front, so_far.goals, so_far.bounds
            ):
                over.append(replace(trial, ended=STOPPED))
            else:
                going.append(trial)
    return sorted([*over, *going], key=lambda trial: trial.number)


def _measured(
    so_far: Tuned, trials: Sequence[Trial], seeds: range, options: Mapping[str, Any]
) -> list[Trial]:
    """Run trials with more seeds, counted from the scenario's own, and measure them."""
    begin = int(so_far.scenario.get("seed", 1))
    runs = [
        {**so_far.scenario_of(trial), "seed": begin + seed} for trial in trials for seed in seeds
    ]
    results = run_many(runs, **options) if runs else []
    found = []
    for place, trial in enumerate(trials):
        measured = {name: list(values) for name, values in trial.measured.items()}
        at_least = trial.at_least
        for result in results[place * len(seeds) : (place + 1) * len(seeds)]:
            known = {one.text: one.metric(result) for one in so_far.measures}
            for name, statistic in known.items():
                measured.setdefault(name, []).append(statistic.value)
                at_least |= statistic.at_least
        found.append(replace(trial, measured=measured, at_least=at_least))
    return found


def _on_fresh_seeds(so_far: Tuned, seeds: int, options: Mapping[str, Any]) -> Tuned:
    """Measure what the best trials are worth, on seeds after those of the search."""
    best = [trial for trial in so_far.front if trial.number > 0]
    if len(best) > MOST_FRONT:
        places = np.linspace(0, len(best) - 1, MOST_FRONT).round().astype(int)
        best = [best[place] for place in places]
    if not best:
        return so_far
    fresh = range(seeds, seeds + max(seeds, FRESH_SEEDS))
    blank = [replace(trial, measured={}) for trial in (so_far.done[0], *best)]
    what = f"{options['what']}, fresh seeds"
    defaults, *tried = _measured(so_far, blank, fresh, {**options, "what": what})
    gains = [_gain(defaults, trial, goal) for trial in tried for goal in so_far.goals]
    held = [
        Held(trial.number, bound, *metrics.t_interval(trial.measured[bound.measure.text]))
        for trial in tried
        for bound in so_far.bounds
    ]
    return replace(so_far, gains=tuple(gains), held=tuple(held))


def _gain(defaults: Trial, trial: Trial, goal: Goal) -> Gain:
    name = goal.measure.text
    logs = [np.log(np.maximum(one.measured[name], LEAST)) for one in (defaults, trial)]
    before, after = (math.exp(each.mean()) for each in logs)
    return Gain(
        trial.number, name, *paired.interval(logs[1] - logs[0]), before, after, len(logs[0])
    )
