"""Output of a search: progress, the best parameters, their gains, and scenario files.

Tables contain values over the seeds of the search; gains and bounds are over fresh seeds.
"""

import math
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tomlkit

from sojourn.analysis.metrics import LEAST_FOR_MEAN
from sojourn.base import files
from sojourn.base.units import format_bit_rate, format_long_time, format_size, format_time
from sojourn.scenario.controller_files import KIND, is_name
from sojourn.scenario.environments import FIELD
from sojourn.scenario.overrides import override, scheme_alone
from sojourn.scenario.reading import TRANSPORT, named_file
from sojourn.show.table import Table
from sojourn.tune.objectives import Constraint, Goal, Measure
from sojourn.tune.trials import INVALID, MIN_IMPROVEMENT, STOPPED, Gain, Held, Trial, Tuned

BASELINE = "baseline"
"""Name of trial 0, the unchanged scenario."""

WORKLOAD_PREFIXES = ("workload.", "topology", "packet.")
"""Prefixes of the paths of parameters on which flows may depend."""

OUTCOMES = {STOPPED: "stopped early", INVALID: "invalid"}
"""Outcomes of trials in words."""


def formatted(measure: Measure, value: float) -> str:
    """Return a value of a measure with three digits and its unit."""
    formats = {"s": format_time, "B": format_size, "b/s": format_bit_rate}
    return formats.get(measure.unit, "{:.3g}".format)(value)


def progress(so_far: Tuned) -> str:
    """Return one line with the progress and the best trial of a search."""
    best, stopped = so_far.best, _count(so_far, STOPPED)
    parts = [f"{len(so_far.done)} of {so_far.wanted} trials"]
    if best is None:
        parts.append("no trial satisfies the bounds")
    elif len(so_far.front) > 1:
        parts.append(f"{len(so_far.front)} on the Pareto front")
    else:
        for goal in so_far.goals:
            values = [so_far.value(trial, goal) for trial in (best, so_far.done[0])]
            value, baseline = (formatted(goal.measure, number) for number in values)
            parts.append(
                f"{goal.measure.text} {value} in trial {best.number} ({BASELINE} {baseline})"
            )
    if stopped:
        parts.append(f"{stopped} {OUTCOMES[STOPPED]}")
    if so_far.remaining_s:
        parts.append(f"up to {format_long_time(so_far.remaining_s)} left")
    return ", ".join(parts)


def table(tuned: Tuned) -> Table:
    """Return the baseline and the best trials: parameters, and measures over the search's seeds."""
    heads = ["trial", *(parameter.path for parameter in tuned.space)]
    heads += [measure.text for measure in tuned.measures]
    rows = []
    for trial in (tuned.done[0], *(trial for trial in tuned.front if trial.number > 0)):
        values = _values(tuned, trial)
        rows.append(
            (
                f"{trial.number} ({BASELINE})" if trial.number == 0 else str(trial.number),
                *(str(trial.at[parameter.path]) for parameter in tuned.space),
                *(formatted(measure, values[measure.text]) for measure in tuned.measures),
            )
        )
    return Table("best parameters", heads, rows)


def _values(tuned: Tuned, trial: Trial) -> dict[str, float]:
    """Return the measures of a trial over the seeds of the search."""
    means = {name: float(np.mean(values)) for name, values in trial.measured.items()}
    return means | {goal.measure.text: tuned.value(trial, goal) for goal in tuned.goals}


def ratio(value: float) -> str:
    """Return a ratio with three significant digits, including trailing zeros."""
    return f"{value:#.3g}".rstrip(".")


def sentences(tuned: Tuned) -> list[str]:
    """Return lines with the gains of the best trials on fresh seeds, counts, and warnings."""
    lines = [*_gain_lines(tuned), *(_bound_line(held) for held in tuned.held)]
    counts = {name: _count(tuned, ended) for ended, name in OUTCOMES.items()}
    outcomes = [f"{count} {name}" for name, count in counts.items() if count]
    runs = sum(trial.seeds for trial in tuned.done)
    lines.append(", ".join([f"{len(tuned.done)} trials in {runs} runs", *outcomes]))
    if len(tuned.done) < tuned.wanted:
        lines.append(
            f"the search ended before {tuned.wanted} trials: none of the last {tuned.patience} "
            f"improved by {100 * MIN_IMPROVEMENT:.0f} % (--patience)"
        )
    lines += _edge_lines(tuned)
    paths = [item.path for item in tuned.space if item.path.startswith(WORKLOAD_PREFIXES)]
    if paths:
        lines.append(
            f"{', '.join(paths)} may change the flows; ratios then compare seeds, not equal flows"
        )
    invalid = next((trial for trial in tuned.done if trial.ended == INVALID), None)
    if invalid is not None:
        lines.append(f"some trials were invalid, for example trial {invalid.number}: {invalid.why}")
    if any(trial.at_least for trial in (tuned.done[0], *tuned.front)):
        lines.append(
            "warning: some flows did not finish, so values are lower bounds; increase `time_limit`"
        )
    return lines


def _edge_lines(tuned: Tuned) -> list[str]:
    """Return a line for each parameter whose best value lies at the edge of its range."""
    lines = {}
    for index, goal in enumerate(tuned.goals if tuned.front else ()):
        best = min(tuned.front, key=lambda trial: tuned.losses(trial)[index])
        for item in tuned.at_edges(best):
            ends = " to ".join(map(str, item.ends()))
            lines[item.path, best.number] = (
                f"warning: the best {item.path} for {goal.measure.text}, {best.at[item.path]}, "
                f"lies at the edge of its range, {ends}: widen the range"
            )
    return list(lines.values())


def _gain_lines(tuned: Tuned) -> list[str]:
    if not tuned.front:
        nearest = min(
            (trial for trial in tuned.done if trial.ended != INVALID),
            key=lambda trial: max(_relative_excess(tuned, trial).values()),
        )
        bound = max(_relative_excess(tuned, nearest).items(), key=lambda item: item[1])[0]
        value = float(np.mean(nearest.measured[bound.measure.text]))
        measure = f"{bound.measure.text} {formatted(bound.measure, value)}"
        return [f"no trial satisfies the bounds; the nearest is trial {nearest.number} ({measure})"]
    if not tuned.gains:
        return ["no trial is better than the baseline"]
    lines = []
    for number in dict.fromkeys(gain.trial for gain in tuned.gains):
        gains = [gain for gain in tuned.gains if gain.trial == number]
        pairs = zip(gains, tuned.goals, strict=True)
        text = "; ".join(_gain_text(gain, goal) for gain, goal in pairs)
        lines.append(f"trial {number} on {gains[0].of_seeds} fresh seeds: {text}")
    return lines


def _gain_text(gain: Gain, goal: Goal) -> str:
    if not gain.seeds:
        return f"no seed counts: {gain.why}"
    before, after = (formatted(goal.measure, value) for value in (gain.before, gain.after))
    better, worse = (gain.high < 1, gain.low > 1)[:: -1 if goal.maximise else 1]
    verdict = "better" if better else "worse" if worse else "no significant difference"
    value, low, high = (ratio(number) for number in (gain.value, gain.low, gain.high))
    interval = f"{low} to {high}; {verdict}"
    if math.isnan(gain.low):
        interval = f"no interval: it needs {LEAST_FOR_MEAN} seeds"
    text = f"{gain.measure} {after}, baseline {before}, ratio {value} ({interval})"
    return f"{text}{_left_out(gain)}"


def _left_out(item: Gain | Held) -> str:
    """Return the number of seeds that count and the reason, if some give no value."""
    if item.seeds == item.of_seeds:
        return ""
    return f", over the {item.seeds} of {item.of_seeds} seeds with a value ({item.why})"


def _relative_excess(tuned: Tuned, trial: Trial) -> dict[Constraint, float]:
    """Return the violation of each bound by a trial as a share of the bound."""
    excess = tuned.excess(trial)
    return {bound: excess[bound.text] / max(abs(bound.bound), 1e-12) for bound in tuned.bounds}


def _bound_line(held: Held) -> str:
    bound = held.bound
    place = f"trial {held.trial} on fresh seeds: {bound.text}"
    if not held.seeds:
        return f"{place}: no seed counts: {held.why}"
    value, low, high = (
        formatted(bound.measure, number) for number in (held.value, held.low, held.high)
    )
    worst, best = (held.low, held.high) if bound.at_least else (held.high, held.low)
    is_satisfied, is_violated = bound.excess(worst) <= 0, bound.excess(best) > 0
    verdict = "satisfied" if is_satisfied else "violated" if is_violated else "inconclusive"
    interval = f"{low} to {high}; {verdict}"
    if math.isnan(held.low):
        interval = "no interval: it needs 2 seeds"
    return f"{place}: {value} ({interval}){_left_out(held)}"


def _count(tuned: Tuned, ended: str) -> int:
    return sum(trial.ended == ended for trial in tuned.done)


def write_best(tuned: Tuned, source: Path, out: Path, scheme: str | None = None) -> list[Path]:
    """Write the scenario `source` with the parameters of the best trials; return the new files.

    The file is `best.toml`; a Pareto front gives `best-17.toml` and so on for each trial that was
    run on fresh seeds. Other fields and comments do not change; relative paths are adapted. Of
    several schemes the file contains the one that was tuned.
    """
    # A scheme is tuned in the environment that all schemes of the scenario have.
    of_scheme = {} if scheme is None else {FIELD: tuned.scenario[FIELD]}
    numbers = {gain.trial for gain in tuned.gains}
    best = [trial for trial in tuned.front if trial.number in numbers] or tuned.front[:1]
    new_files = []
    for trial in best:
        file = out / ("best.toml" if len(best) == 1 else f"best-{trial.number}.toml")
        files.write_text(file, _changed_text(source, scheme, of_scheme | tuned.changes(trial), out))
        new_files.append(file)
    return new_files


def _changed_text(source: Path, scheme: str | None, changes: Mapping[str, Any], out: Path) -> str:
    """Return the text of a scenario with changes by path, for a file in another folder."""
    text = files.read_text(source, files.MAX_SETTINGS_BYTES)
    folder = os.path.relpath(source.parent.resolve(), out.resolve())
    content = {key: _relocated(value, key, folder) for key, value in tomllib.loads(text).items()}
    document = tomlkit.parse(text)
    _update(document, override(scheme_alone(content, scheme), changes))
    return tomlkit.dumps(document)


def _relocated(value: Any, field: str, folder: str) -> Any:
    """Prefix relative paths with `folder`; the name of a controller in Python becomes a table."""
    if TRANSPORT.fullmatch(field) and is_name(value):
        value = {"kind": KIND, "controller": value}
    if isinstance(value, Mapping):
        return {key: _relocated(inner, f"{field}.{key}", folder) for key, inner in value.items()}
    if isinstance(value, list):
        return [_relocated(inner, f"{field}[{index}]", folder) for index, inner in enumerate(value)]
    is_file = named_file(field, value) is not None
    return Path(os.path.normpath(Path(folder) / value)).as_posix() if is_file else value


def _update(document: Any, content: Mapping[str, Any]) -> None:
    """Change a document to this content; equal values keep their format and comments."""
    for key in [key for key in document if key not in content]:
        del document[key]
    for key, value in content.items():
        old = document.get(key)
        if isinstance(value, Mapping) and isinstance(old, Mapping):
            _update(old, value)
        elif isinstance(value, Mapping):
            inner = tomlkit.inline_table()
            inner.update(value)
            document[key] = inner
        elif _are_tables(value) and isinstance(old, list) and len(old) == len(value):
            for old_entry, entry in zip(old, value, strict=True):
                _update(old_entry, entry)
        elif old != value:
            document[key] = value


def _are_tables(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(entry, Mapping) for entry in value)
