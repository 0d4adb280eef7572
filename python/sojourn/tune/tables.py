"""What a search shows: how far it is, the best parameters, what they are worth, a scenario's file.

Numbers of the search are over its own seeds; what is told of gains and bounds is over fresh ones.
"""

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tomlkit

from sojourn.base import files
from sojourn.base.units import format_size, format_time
from sojourn.scenario.controller_files import KIND, is_name
from sojourn.scenario.overrides import override
from sojourn.scenario.reading import TRANSPORT, named_file
from sojourn.show.table import Table
from sojourn.tune.objectives import Constraint, Goal, Measure
from sojourn.tune.trials import REFUSED, STOPPED, Gain, Held, Trial, Tuned

AS_IT_IS = "as it is"
"""What the first trial is called."""

OF_WORKLOAD = ("workload.", "topology", "packet.")
"""How the paths of parameters begin that flows may depend on; they never do on others."""


def shown(measure: Measure, value: float) -> str:
    """Write a value of a measure with three digits and its unit."""
    if measure.unit:
        return format_time(value) if measure.unit == "s" else format_size(value)
    return f"{value:.3g}"


def progress(so_far: Tuned) -> str:
    """Say in a line how far a search is, and what it has found."""
    best, stopped = so_far.best, _count(so_far, STOPPED)
    told = [f"{len(so_far.done)} of {so_far.wanted} trials"]
    if best is None:
        told.append("none keeps the bounds")
    elif len(so_far.front) > 1:
        told.append(f"{len(so_far.front)} on the front")
    else:
        for goal in so_far.goals:
            values = [so_far.value(trial, goal) for trial in (best, so_far.done[0])]
            now, before = (shown(goal.measure, value) for value in values)
            told.append(f"{goal.measure.text} {now} in trial {best.number} ({AS_IT_IS} {before})")
    if stopped:
        told.append(f"{stopped} {STOPPED}")
    return ", ".join(told)


def table(tuned: Tuned) -> Table:
    """Return the scenario as it is and the best trials: parameters, and values in the search."""
    heads = ["trial", *(one.path for one in tuned.space)]
    heads += [one.text for one in tuned.measures]
    rows = []
    for trial in (tuned.done[0], *(one for one in tuned.front if one.number > 0)):
        values = _values(tuned, trial)
        rows.append(
            (
                f"{trial.number} ({AS_IT_IS})" if trial.number == 0 else str(trial.number),
                *(str(trial.at[one.path]) for one in tuned.space),
                *(shown(one, values[one.text]) for one in tuned.measures),
            )
        )
    return Table("best parameters", heads, rows)


def _values(tuned: Tuned, trial: Trial) -> dict[str, float]:
    """Return the measures of a trial over the seeds of the search."""
    means = {name: float(np.mean(values)) for name, values in trial.measured.items()}
    return means | {goal.measure.text: tuned.value(trial, goal) for goal in tuned.goals}


def ratio(value: float) -> str:
    """Write a ratio with three digits, also where the last are zeros."""
    return f"{value:#.3g}".rstrip(".")


def with_interval(gain: Gain) -> str:
    """Write a ratio to the scenario as it is, with its 95 % interval."""
    value, low, high = (ratio(one) for one in (gain.value, gain.low, gain.high))
    return f"{value} of it ({low} to {high})"


def sentences(tuned: Tuned) -> list[str]:
    """Say what the best parameters are worth on fresh seeds, and what to beware of."""
    lines = [*_found(tuned), *(_of_bound(held) for held in tuned.held)]
    counts = {ended: _count(tuned, ended) for ended in (STOPPED, REFUSED)}
    told = [f"{count} {ended}" for ended, count in counts.items() if count]
    runs = sum(one.seeds for one in tuned.done)
    lines.append(", ".join([f"{len(tuned.done)} trials in {runs} runs", *told]))
    others = [one.path for one in tuned.space if one.path.startswith(OF_WORKLOAD)]
    if others:
        lines.append(f"{', '.join(others)} may change the flows: then ratios are by seed only")
    refused = next((one for one in tuned.done if one.ended == REFUSED), None)
    if refused is not None:
        lines.append(f"refused was, for one, trial {refused.number}: {refused.why}")
    if any(one.at_least for one in (tuned.done[0], *tuned.front)):
        lines.append(
            "warning: flows did not finish, so values are lower bounds; a longer `time_limit` helps"
        )
    return lines


def _found(tuned: Tuned) -> list[str]:
    if not tuned.front:
        nearest = min(
            (one for one in tuned.done if one.ended != REFUSED),
            key=lambda one: max(_relative(tuned, one).values()),
        )
        over = max(_relative(tuned, nearest).items(), key=lambda item: item[1])[0]
        value = float(np.mean(nearest.measured[over.measure.text]))
        there = f"{over.measure.text} is {shown(over.measure, value)} there"
        return [f"no trial keeps the bounds; trial {nearest.number} is nearest ({there})"]
    if not tuned.gains:
        return ["no trial is better than the scenario as it is"]
    lines = []
    for number in dict.fromkeys(gain.trial for gain in tuned.gains):
        gains = [gain for gain in tuned.gains if gain.trial == number]
        told = "; ".join(_told(*each) for each in zip(gains, tuned.goals, strict=True))
        lines.append(f"trial {number} on {gains[0].seeds} fresh seeds: {told}")
    return lines


def _told(gain: Gain, goal: Goal) -> str:
    before, after = (shown(goal.measure, value) for value in (gain.before, gain.after))
    better, worse = (gain.high < 1, gain.low > 1)[:: -1 if goal.maximise else 1]
    verdict = "better" if better else "worse" if worse else "not told apart"
    return f"{gain.measure} {after} instead of {before}, {with_interval(gain)}: {verdict}"


def _relative(tuned: Tuned, trial: Trial) -> dict[Constraint, float]:
    """Return by which share of it a trial breaks each bound."""
    over = tuned.excess(trial)
    return {bound: over[bound.text] / max(abs(bound.bound), 1e-12) for bound in tuned.bounds}


def _of_bound(held: Held) -> str:
    bound = held.bound
    value, low, high = (shown(bound.measure, x) for x in (held.value, held.low, held.high))
    worst, best = (held.low, held.high) if bound.at_least else (held.high, held.low)
    kept, broken = bound.excess(worst) <= 0, bound.excess(best) > 0
    verdict = "surely kept" if kept else "surely broken" if broken else "not sure to be kept"
    return f"trial {held.trial}: {bound.text}: {value} ({low} to {high}) on fresh seeds: {verdict}"


def _count(tuned: Tuned, ended: str) -> int:
    return sum(one.ended == ended for one in tuned.done)


def write_best(tuned: Tuned, source: Path, out: Path) -> list[Path]:
    """Write the scenario of a file with the parameters of the best trials; return what is new.

    That is `best.toml`; of a front `best-17.toml` for each trial that was run on fresh seeds. What
    the source says besides, comments too, stays; names of files lead to where they are.
    """
    numbers = {gain.trial for gain in tuned.gains}
    best = [one for one in tuned.front if one.number in numbers] or tuned.front[:1]
    written = []
    for trial in best:
        file = out / ("best.toml" if len(best) == 1 else f"best-{trial.number}.toml")
        files.write_text(file, _with_changes(source, tuned.changes(trial), out))
        written.append(file)
    return written


def _with_changes(source: Path, changes: Mapping[str, Any], out: Path) -> str:
    """Return the text of a scenario with changes by path, for a file in another folder."""
    text = files.read_text(source, files.MAX_SETTINGS_BYTES)
    to = os.path.relpath(source.parent.resolve(), out.resolve())
    plain = {key: _moved(value, key, to) for key, value in tomllib.loads(text).items()}
    document = tomlkit.parse(text)
    _put(document, override(plain, changes))
    return tomlkit.dumps(document)


def _moved(value: Any, field: str, to: str) -> Any:
    """Lead names of files to where they are; a class of Python's by name becomes a table."""
    if TRANSPORT.fullmatch(field) and is_name(value):
        value = {"kind": KIND, "controller": value}
    if isinstance(value, Mapping):
        return {key: _moved(inner, f"{field}.{key}", to) for key, inner in value.items()}
    if isinstance(value, list):
        return [_moved(inner, f"{field}[{place}]", to) for place, inner in enumerate(value)]
    is_file = named_file(field, value) is not None
    return Path(os.path.normpath(Path(to) / value)).as_posix() if is_file else value


def _put(document: Any, wanted: Mapping[str, Any]) -> None:
    """Make a document say what is wanted, and leave alone what it says already."""
    for key in [key for key in document if key not in wanted]:
        del document[key]
    for key, value in wanted.items():
        old = document.get(key)
        if isinstance(value, Mapping) and isinstance(old, Mapping):
            _put(old, value)
        elif isinstance(value, Mapping):
            inner = tomlkit.inline_table()
            inner.update(value)
            document[key] = inner
        elif old != value:
            document[key] = value
