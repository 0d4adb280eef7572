"""FCT breakdowns in the settings of four papers, and in a setting of our own."""

import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from sojourn import Paper, Run, Verdict, accounts, at_least, looks, metrics

paper = Paper(
    key="where_time_went",
    citation="This project: exact FCT breakdown by reason and place",
    setup=(
        "Settings of figures of the other papers, with FCT breakdowns: the excess of each flow, "
        "its FCT less its ideal FCT, is divided by cause, to the picosecond (docs/design). Bars "
        "are ratios of means: the mean FCT over the mean ideal FCT of the same flows, so that "
        "large flows weigh more than in a mean slowdown. Grey, from the bottom: 1, the ideal FCT; "
        "the handshake; round trips until the congestion window opens, on links and in "
        "transmitters. Colours: queueing, PFC pauses, pacing, NIC wait, and loss recovery. Most "
        "claims were written before the first runs and remain unchanged where they failed; claims "
        "that were added after first runs are marked."
    ),
    deviations=(
        "Breakdowns exist for finished flows only. Where a run ends before all flows have "
        "finished, the slowest flows are missing.",
        "The transmission time that a flow needs in any case is subtracted from the waits during "
        "which it was transmitted (NIC wait, round trips, pacing, loss recovery, then queueing), "
        "so that no part is negative. As a plain difference of two breakdowns, PCP's pacing at "
        "load 0.15 (I4) would exceed its whole excess, and the claim would hold.",
        "Shares are shares of the mean excess of all flows of a size, not means of the shares of "
        "single flows. Their confidence intervals come from batches of a run, or from seeds. The "
        "scale `quick` has small networks, few flows or short runs, and understates the effect of "
        "load on large flows.",
    ),
)

Chosen = Mapping[str, Mapping[str, Any]]

COUNTED = {"account": True, "samples": "none"}
"""Changes to the scenarios of other figures: FCT breakdowns on, samples off."""

AT_HOST, IN_SWITCHES, BACK = (
    f"{accounts.OTHERS}, {where}"
    for where in ("at the own host", "in switches of the forward path", "on the reverse path")
)

LEGS = {"host": AT_HOST, "there": IN_SWITCHES, "back": BACK}
"""Places of cross-traffic queueing: the suffix of breakdown columns, and the name in tables."""


def over_size(
    runs: Iterable[Run], buckets: Sequence[metrics.Bucket], **extra: pl.Expr
) -> pl.DataFrame:
    """Return the mean FCT, ideal FCT and parts of the excess of flows of each size, over seeds.

    The columns are those of `accounts.by_size`; values are in seconds. The table also contains
    cross-traffic queueing by place, and the means of the expressions `more` over the flows of
    `accounts.divided`.
    """
    means: dict[str, pl.Expr] = {
        accounts.TOTAL: pl.col("fct_s"),
        accounts.ALONE: pl.col("ideal_fct_s"),
        **{name: pl.col(name) for name in (*accounts.PARTS, *LEGS.values())},
        **extra,
    }
    aggregates = [mean.mean().fill_null(math.nan).alias(name) for name, mean in means.items()]
    rows = [
        {**run.labels, "size": bucket.name, "metric": metric, "value": value}
        for run in runs
        for flows in [accounts.divided(run.result, excess=True).join(_legs(run), on="flow")]
        for bucket in buckets
        for metric, value in flows.filter(*metrics.within(bucket))
        .select(aggregates)
        .row(0, named=True)
        .items()
    ]
    return over_seeds(rows)


def over_seeds(rows: Iterable[Mapping[str, Any]]) -> pl.DataFrame:
    """Return means over seeds without NaN values; NaN where no seed or batch has a value."""
    values = pl.DataFrame(list(rows), infer_schema_length=None).with_columns(at_least=False)
    numbers = values.filter(pl.col("value").is_not_nan())
    table = metrics.across_seeds(values if numbers.is_empty() else numbers)
    # Relative intervals of very small parts are never small; shares have intervals of their own.
    is_total = pl.col("metric") == accounts.TOTAL
    return table.with_columns(pl.when(is_total).then(pl.col("low", "high")).otherwise(math.nan))


def _legs(run: Run) -> pl.DataFrame:
    """Return the cross-traffic queueing of each flow by place, in seconds."""
    return run.result.account.select(
        "flow",
        *(
            (pl.sum_horizontal(f"^.*_queue_others_{leg}_ps$") / 1e12).alias(name)
            for leg, name in LEGS.items()
        ),
    )


def value(table: pl.DataFrame, metric: str, **labels: Any) -> float:
    """Return one number of a table in seconds; NaN if the row is missing."""
    return metrics.at(table, metric=metric, **labels)


def excess(table: pl.DataFrame, **labels: Any) -> float:
    """Return the mean excess of flows, their FCT less their ideal FCT, in seconds."""
    return value(table, accounts.TOTAL, **labels) - value(table, accounts.ALONE, **labels)


def share(table: pl.DataFrame, parts: Iterable[str], **labels: Any) -> float:
    """Return the share of these parts in the mean excess of flows; NaN if there is no excess."""
    total = excess(table, **labels)
    sum_s = sum(value(table, part, **labels) for part in parts)
    return sum_s / total if total > 1e-12 else math.nan


def made_of(table: pl.DataFrame, parts: Sequence[str], min_share: float, **labels: Any) -> Verdict:
    """Judge that these parts have at least the share `least` in the mean excess of flows."""
    case = ", ".join(str(label) for label in labels.values())
    names = " and ".join(name(part) for part in parts)
    return at_least(share(table, parts, **labels), min_share, f"{names} over the excess, {case},")


def name(part: str) -> str:
    """Return the printed name of a part, such as `pacing`, or of its place."""
    label, comma, position = part.partition(", ")
    return f"{accounts.LABELS.get(label, label)}{comma}{position}"


def slowdown(table: pl.DataFrame, **labels: Any) -> float:
    """Return the mean FCT over the mean ideal FCT of the same flows."""
    return value(table, accounts.TOTAL, **labels) / value(table, accounts.ALONE, **labels)


NAME_WIDTH = 7
"""Maximum number of characters in a line of a bar's name, except for longer words."""


SLOWDOWN = "mean FCT over mean ideal FCT"

OWN_SCALES = f"{SLOWDOWN} (scales differ)"
"""Label of the vertical axis if each panel has a scale of its own."""


def bars(axes: Any, table: pl.DataFrame, along: str, *, shares: bool = False) -> None:
    """Draw ratios of means, divided into parts, as stacked bars: one for each value of `along`.

    The ratio is written above each bar. With `shares`, bars show shares of the excess instead,
    without numbers.
    """
    parts = table.filter(pl.col("metric").is_in([accounts.TOTAL, accounts.ALONE, *accounts.PARTS]))
    rows = parts.pivot("metric", index=along, values="value", maintain_order=True)
    ideal, excess = rows[accounts.ALONE], rows[accounts.TOTAL] - rows[accounts.ALONE]
    heights = rows.select(pl.col(*accounts.PARTS) / (excess if shares else ideal))
    if not shares:
        heights = heights.with_columns(pl.col(accounts.FLIGHT) + 1)
    positions = np.arange(rows.height)
    accounts.stack(axes, positions, heights)
    if shares:
        axes.set_ylim(0, 1)
        axes.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0", "25", "50", "75", "100"])
    else:
        axes.axhline(1, color=looks.BLACK, linestyle="--", linewidth=1)
        offset: Any = {"xytext": (0, 2), "textcoords": "offset points", "ha": "center"}
        for position, height in zip(positions, rows[accounts.TOTAL] / ideal, strict=True):
            axes.annotate(f"{height:.3g}", (position, height), fontsize=8, **offset)
        axes.set_ylim(0, 1.08 * float((rows[accounts.TOTAL] / ideal).max()))  # type: ignore[arg-type]
    names = [textwrap.fill(str(name), NAME_WIDTH) for name in rows[along]]
    axes.set_xticks(positions, names, fontsize=8)
    axes.grid(visible=False, axis="x")


def panels(axes: Any, table: pl.DataFrame, column: str, titles: Mapping[Any, str]) -> None:
    """Draw a panel of schemes for each value of a column, under its title."""
    for panel, (value, title) in zip(axes, titles.items(), strict=True):
        bars(panel, table.filter(pl.col(column) == value), "scheme")
        panel.set_title(title, fontsize=11)
    tops = [panel.get_ylim()[1] for panel in axes]
    are_alike = max(tops) < 2 * min(tops)
    for panel, top in zip(axes, tops, strict=True):
        panel.set_ylim(0, max(tops) if are_alike else top)
    axes[0].set_ylabel(SLOWDOWN if are_alike else OWN_SCALES)
    legend(axes, table)


def legend(panels: Any, table: pl.DataFrame) -> None:
    """Draw one legend for all panels: the parts with at least 1 % of any bar, in stacking order."""
    total = table.filter(metric=accounts.TOTAL).select(
        pl.exclude("low", "high", "metric", "at_least")
    )
    labels = [name for name in total.columns if name not in ("value", "seeds")]
    parts = table.filter(pl.col("metric").is_in(list(accounts.PARTS)))
    parts_and_totals = parts.join(
        total.rename({"value": "whole"}), on=labels, how="left", nulls_equal=True
    )
    metrics_drawn = parts_and_totals.filter(pl.col("value") >= 0.01 * pl.col("whole"))["metric"]
    drawn_parts = {accounts.LABELS[name] for name in metrics_drawn.unique()}
    first = np.ravel(panels)[0]
    handles, names = first.get_legend_handles_labels()
    entries = {
        n: h
        for h, n in zip(handles, names, strict=True)
        if n in drawn_parts or n not in accounts.LABELS.values()
    }
    entries = {"ideal FCT": handles[names.index(accounts.LABELS[accounts.FLIGHT])], **entries}
    first.figure.legend(
        list(entries.values())[::-1], list(entries)[::-1], loc="outside right center", fontsize=9
    )
