"""Picture of a search: its history, the Pareto front of two goals, and effects of parameters."""

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from sojourn.base.units import PER_UNIT
from sojourn.scenario import fidelity
from sojourn.show import plot
from sojourn.show.style import BLACK, BLUE, GREY, ORANGE, RED
from sojourn.tune import optuna_sampler
from sojourn.tune.objectives import Goal, Measure
from sojourn.tune.ranges import Parameter, Range
from sojourn.tune.tables import ratio
from sojourn.tune.trials import DONE, INVALID, Trial, Tuned

MAX_PARAMETERS = 6
"""Number of parameters with a panel; the most important ones."""

LEAST_SPAN = 0.02
"""Smallest span of a goal's axis, as a share of the values, so that noise does not fill it."""

KINDS: dict[str, dict[str, Any]] = {
    "all seeds": {"color": BLUE, "marker": "o"},
    "stopped early": {"color": GREY, "marker": "o", "facecolors": "none"},
    "violates a bound": {"color": RED, "marker": "x"},
}

BASELINE_STYLE: dict[str, Any] = {"color": BLACK, "linestyle": "--", "linewidth": 1.2}
BEST: dict[str, Any] = {"marker": "*", "s": 170, "color": ORANGE, "edgecolors": BLACK, "zorder": 5}


def draw(tuned: Tuned, stem: Path) -> None:
    """Draw the search to `STEM.svg` and `STEM.png`."""
    shares = optuna_sampler.importances(tuned)
    first = next(iter(shares.values()), {})
    space = sorted(tuned.space, key=lambda parameter: -first.get(parameter.path, 0.0))[
        :MAX_PARAMETERS
    ]
    panels = [
        *([partial(_front, tuned=tuned)] if len(tuned.goals) > 1 else []),
        *(partial(_history, tuned=tuned, goal=goal) for goal in tuned.goals),
        *([partial(_importances, shares=shares)] if shares else []),
        *(partial(_effect, tuned=tuned, parameter=parameter) for parameter in space),
    ]
    columns = 2 if len(panels) in (2, 4) else 3
    rows = math.ceil(len(panels) / columns)
    size = (3.9 * columns, 3.2 * rows + 0.6)
    with plot.canvas(rows, columns, size=size) as (picture, grid):
        panel_axes = np.ravel(grid)
        for axes, panel in zip(panel_axes, panels, strict=False):
            panel(axes)
        for axes in panel_axes[len(panels) :]:
            axes.set_axis_off()
        style: Any = {"ncols": 6, "frameon": False, "alignment": "left"}
        handles, names = _legend(panel_axes)
        style |= {"title": f"{_gain_title(tuned)}{_fidelity(tuned)}", "title_fontsize": 10}
        picture.legend(handles, names, loc="outside upper left", **style)
        plot.save(picture, stem)


def _fidelity(tuned: Tuned) -> str:
    """Return what stands for whole networks; empty for packets."""
    chosen = fidelity.read(tuned.scenario.get(fidelity.FIELD, fidelity.PACKETS))
    return "" if chosen.kind == fidelity.PACKETS else f" (fidelity {chosen.kind})"


def _gain_title(tuned: Tuned) -> str:
    """Return the gain on fresh seeds in words; the panels show the seeds of the search."""
    if len(tuned.goals) > 1:
        return f"{len(tuned.front)} of {len(tuned.done)} trials are on the Pareto front"
    if tuned.gain is None:
        return f"no trial of {len(tuned.done)} is better than the baseline"
    gain = tuned.gain
    if not gain.seeds:
        return f"no fresh seed gives a value of {gain.measure}"
    interval = f"{ratio(gain.value)} ({ratio(gain.low)} to {ratio(gain.high)})"
    if math.isnan(gain.low):
        interval = ratio(gain.value)
    return (
        f"{gain.measure} of trial {gain.trial} on {gain.seeds} fresh seeds:"
        f" {interval} times the baseline"
    )


def _legend(panels: Iterable[Any]) -> tuple[list[Any], list[str]]:
    """Return handles and labels of the panels without a legend, without duplicates."""
    handle_of: dict[str, Any] = {}
    for axes in panels:
        if axes.get_legend() is None:
            handles, names = axes.get_legend_handles_labels()
            handle_of = dict(zip(names, handles, strict=True)) | handle_of
    return list(handle_of.values()), list(handle_of)


def _history(axes: Any, tuned: Tuned, goal: Goal) -> None:
    """Draw the trials in order, and the best so far."""
    scale, label = _unit(tuned, goal)
    _draw_trials(
        axes, tuned, lambda trial: trial.number, lambda trial: tuned.value(trial, goal) * scale
    )
    axes.axhline(tuned.value(tuned.done[0], goal) * scale, label="baseline", **BASELINE_STYLE)
    if len(tuned.goals) == 1:
        steps = _best_so_far(tuned, goal)
        axes.step(*zip(*steps, strict=True), where="post", color=BLUE, label="best so far")
        _draw_best(axes, tuned, lambda trial: trial.number, goal, scale)
    axes.set_xlabel("trial")
    _label_axis(axes, goal, label)


def _best_so_far(tuned: Tuned, goal: Goal) -> list[tuple[int, float]]:
    scale, _ = _unit(tuned, goal)
    best, steps = math.inf, []
    for trial in tuned.done:
        if trial.ended == DONE and tuned.is_allowed(trial):
            best = min(best, goal.loss(tuned.value(trial, goal)))
        value = math.exp(-best if goal.maximise else best) * scale
        steps.append((trial.number, value if math.isfinite(best) else math.nan))
    return steps


def _front(axes: Any, tuned: Tuned) -> None:
    """Draw the two goals of each trial, and the Pareto front."""
    scales = [_unit(tuned, goal) for goal in tuned.goals]

    def point(trial: Trial) -> tuple[float, float]:
        pairs = zip(tuned.goals, scales, strict=True)
        x, y = (tuned.value(trial, goal) * scale for goal, (scale, _) in pairs)
        return x, y

    _draw_trials(axes, tuned, lambda trial: point(trial)[0], lambda trial: point(trial)[1])
    front = [point(trial) for trial in tuned.front]
    if front:
        axes.step(*zip(*front, strict=True), where="post", color=ORANGE)
        axes.scatter(*zip(*front, strict=True), label="Pareto front", **BEST)
    axes.scatter(*point(tuned.done[0]), marker="D", s=60, color=BLACK, zorder=6)
    names = {trial.number: str(trial.number) for trial in tuned.front} | {0: "baseline"}
    style: Any = {"textcoords": "offset points", "fontsize": 8, "zorder": 7, "bbox": plot.SHEET}
    for number, name in names.items():
        # There are no other points on the side of better values.
        shifts = [6 if goal.maximise == (number > 0) else -6 for goal in tuned.goals]
        sides = {"ha": "left" if shifts[0] > 0 else "right", "va": "center"}
        axes.annotate(
            name, point(tuned.done[number]), xytext=(shifts[0], 1.5 * shifts[1]), **sides, **style
        )
    for goal, (_, label), name in zip(tuned.goals, scales, ("x", "y"), strict=True):
        _label_axis(axes, goal, label, name)


def _importances(axes: Any, shares: dict[str, dict[str, float]]) -> None:
    """Draw the importance of each parameter."""
    first = next(iter(shares.values()))
    names = sorted(first, key=lambda path: first[path])[-2 * MAX_PARAMETERS :]
    height = 0.6 / len(shares)
    for index, (goal, share) in enumerate(shares.items()):
        positions = np.arange(len(names)) + 0.3 - height * (index + 0.5)
        bars = axes.barh(
            positions, [100 * share[name] for name in names], 0.9 * height,
            color=(BLUE, ORANGE)[index], label=goal if len(shares) > 1 else None,
        )  # fmt: skip
        axes.bar_label(bars, fmt="%.0f %%", fontsize=8, padding=2)
    axes.set_yticks(range(len(names)), names)
    axes.set_xlim(0, 115)
    axes.grid(visible=False, axis="y")
    axes.set_xlabel("importance for the better half of trials (%)")
    if len(shares) > 1:
        plot.legend(axes, columns=1)


def _effect(axes: Any, tuned: Tuned, parameter: Parameter) -> None:
    """Draw the first goal against a parameter."""
    goal = tuned.goals[0]
    scale, label = _unit(tuned, goal)
    path = parameter.path

    def position(trial: Trial) -> Any:
        place = parameter.place(trial.at[path])
        if isinstance(parameter, Range):
            return math.nan if place is None else place
        return math.nan if place is None else parameter.names.index(place)

    _draw_trials(axes, tuned, position, lambda trial: tuned.value(trial, goal) * scale)
    axes.axhline(tuned.value(tuned.done[0], goal) * scale, **BASELINE_STYLE)
    _draw_best(axes, tuned, position, goal, scale)
    if isinstance(parameter, Range):
        if parameter.log:
            axes.set_xscale("log")
            _plain(axes.xaxis)
        axes.set_xlabel(plot.with_unit(path, parameter.unit))
    else:
        axes.set_xticks(range(len(parameter.names)), parameter.names)
        axes.set_xlim(-0.5, len(parameter.names) - 0.5)
        axes.set_xlabel(path)
    _label_axis(axes, goal, label)


def _draw_trials(
    axes: Any, tuned: Tuned, x: Callable[[Trial], float], y: Callable[[Trial], float]
) -> None:
    """Draw trials as markers by outcome."""
    for kind, style in KINDS.items():
        trials = [trial for trial in tuned.done if _kind(tuned, trial) == kind]
        if trials:
            axes.scatter(
                [x(trial) for trial in trials],
                [y(trial) for trial in trials],
                s=22,
                label=kind,
                **style,
            )


def _kind(tuned: Tuned, trial: Trial) -> str:
    if trial.ended == INVALID:
        return INVALID
    if not tuned.is_allowed(trial):
        return "violates a bound"
    return "all seeds" if trial.ended == DONE else "stopped early"


def _draw_best(
    axes: Any, tuned: Tuned, x: Callable[[Trial], float], goal: Goal, scale: float
) -> None:
    if len(tuned.goals) == 1 and tuned.best is not None:
        best = tuned.best
        axes.scatter(x(best), tuned.value(best, goal) * scale, label="best", **BEST)


def _unit(tuned: Tuned, goal: Goal) -> tuple[float, str]:
    """Return the factor of values, and the label of the axis with its unit."""
    measure: Measure = goal.measure
    units: Sequence[str] = {
        "s": ("s", "ms", "us", "ns"),
        "B": ("MB", "KB", "B"),
        "b/s": ("Gb/s",),
    }.get(measure.unit, ())
    value = tuned.value(tuned.done[0], goal)
    # The largest unit in which the value is at least 1.
    unit = next((name for name in units if value * PER_UNIT[name] >= 1), "")
    return PER_UNIT[unit] if unit else 1.0, plot.with_unit(measure.text, unit)


def _label_axis(axes: Any, goal: Goal, label: str, axis: str = "y") -> None:
    """Label the axis of a goal; scale it logarithmically over a range of more than five."""
    direction = "more is better" if goal.maximise else "less is better"
    getattr(axes, f"set_{axis}label")(f"{label}\n{direction}", fontsize=9)
    low, high = getattr(axes, f"get_{axis}lim")()
    lacks = LEAST_SPAN * max(abs(low), abs(high)) - (high - low)
    if lacks > 0:
        getattr(axes, f"set_{axis}lim")(low - lacks / 2, high + lacks / 2)
    if low > 0 and high > 5 * low:
        getattr(axes, f"set_{axis}scale")("log")
        _plain(getattr(axes, f"{axis}axis"))


def _plain(axis: Any) -> None:
    """Write ticks as 0.02 instead of powers of ten."""
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())
