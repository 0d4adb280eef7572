"""Why flow completion time: what flows spend it on, in the settings of four papers and one more."""

import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from sojourn import Paper, Run, Verdict, accounts, at_least, looks, metrics

paper = Paper(
    key="where_time_went",
    citation="This project: where the time of flows went, divided exactly by reason and place",
    setup=(
        "Settings of figures of the other papers, with accounts: what each flow took beyond what "
        "it would alone in the network, its excess, is divided by what it waited for, to the "
        "picosecond (docs/design.md, Accounts). Bars are mean slowdowns: the mean completion time "
        "over the mean of the same flows alone, so that large flows weigh more. Grey, from the "
        "bottom: 1, which is the flow alone; its handshake; round trips for its window to open, on "
        "wires and in transmitters. Colours: waiting in queues, for pauses, for its own pace or "
        "its host's port, and for what was lost to be sent again. Most claims are what we "
        "expected before we looked, and what turned out otherwise is left as it is; those that "
        "were added when first runs had been seen are named as such."
    ),
    deviations=(
        "Accounts are of flows that have finished. Where a run ends before all have, those that "
        "took longest are missing.",
        "What sending a flow takes anyway is taken off where the flow waited meanwhile (its turn, "
        "round trips, pace, repairs, at last queues), so that no part is less than nothing. As a "
        "plain difference of two accounts, PCP's pace at load 0.15 (I4) would be more than all of "
        "its excess, and its claim would hold.",
        "Shares are those of the mean excess: of all flows of a size together, not means of each "
        "flow's shares. Batches of a run, or seeds, tell how sure they are. The scale `quick` has "
        "small networks, few flows or short runs: what load does to large flows is understated.",
    ),
)

Chosen = Mapping[str, Mapping[str, Any]]

COUNTED = {"account": True, "samples": "none"}
"""What is added to the scenarios of other figures: accounts, and nothing over time."""

AT_HOST, IN_SWITCHES, BACK = (
    f"{accounts.OTHERS}, {where}"
    for where in ("at the own host", "in switches there", "on the way back")
)

LEGS = {"host": AT_HOST, "there": IN_SWITCHES, "back": BACK}
"""Where flows wait for others: what the columns of accounts end with, and its name."""


def over_size(
    runs: Iterable[Run], buckets: Sequence[metrics.Bucket], **more: pl.Expr
) -> pl.DataFrame:
    """Return what flows of each size take, alone and beyond, and its parts: means over seeds.

    In the columns of `accounts.by_size`, in seconds. Also how much of `queues: others` was where,
    and the means of `more`, which are told of the flows of `accounts.divided`.
    """
    means: dict[str, pl.Expr] = {
        accounts.TOTAL: pl.col("fct_s"),
        accounts.ALONE: pl.col("ideal_fct_s"),
        **{name: pl.col(name) for name in (*accounts.PARTS, *LEGS.values())},
        **more,
    }
    chosen = [mean.mean().fill_null(math.nan).alias(name) for name, mean in means.items()]
    rows = [
        {**run.labels, "size": bucket.name, "metric": metric, "value": value}
        for run in runs
        for flows in [accounts.divided(run.result, excess=True).join(_legs(run), on="flow")]
        for bucket in buckets
        for metric, value in flows.filter(*metrics.within(bucket))
        .select(chosen)
        .row(0, named=True)
        .items()
    ]
    return over_seeds(rows)


def over_seeds(rows: Iterable[Mapping[str, Any]]) -> pl.DataFrame:
    """Return means over seeds of what is known; NaN where nothing is, as in many a batch."""
    known = pl.DataFrame(list(rows), infer_schema_length=None).with_columns(at_least=False)
    found = known.filter(pl.col("value").is_not_nan())
    table = metrics.across_seeds(known if found.is_empty() else found)
    # Of parts that are next to nothing no interval is small beside them; shares have their own.
    is_whole = pl.col("metric") == accounts.TOTAL
    return table.with_columns(pl.when(is_whole).then(pl.col("low", "high")).otherwise(math.nan))


def _legs(run: Run) -> pl.DataFrame:
    """Return how long each flow waited for others, by where, in seconds."""
    return run.result.account.select(
        "flow",
        *(
            (pl.sum_horizontal(f"^.*_queue_others_{leg}_ps$") / 1e12).alias(name)
            for leg, name in LEGS.items()
        ),
    )


def value(table: pl.DataFrame, metric: str, **labels: Any) -> float:
    """Return one number of a table in seconds; NaN if it is not there."""
    return metrics.at(table, metric=metric, **labels)


def excess(table: pl.DataFrame, **labels: Any) -> float:
    """Return what flows take on average beyond what they would alone, in seconds."""
    return value(table, accounts.TOTAL, **labels) - value(table, accounts.ALONE, **labels)


def share(table: pl.DataFrame, parts: Iterable[str], **labels: Any) -> float:
    """Return which share of their excess flows spend on these parts; NaN if they have none."""
    whole = excess(table, **labels)
    spent = sum(value(table, part, **labels) for part in parts)
    return spent / whole if whole > 1e-12 else math.nan


def made_of(table: pl.DataFrame, parts: Sequence[str], least: float, **labels: Any) -> Verdict:
    """Judge that these parts are at least a share of the mean excess of flows."""
    of = ", ".join(str(label) for label in labels.values())
    said = f"{' and '.join(parts)} over the excess, {of},"
    return at_least(share(table, parts, **labels), least, said)


def slowdown(table: pl.DataFrame, **labels: Any) -> float:
    """Return the mean completion time over that of the same flows alone."""
    return value(table, accounts.TOTAL, **labels) / value(table, accounts.ALONE, **labels)


NAME_WIDTH = 7
"""Letters in a line of a bar's name, if its words allow that."""


SLOWDOWN = "mean slowdown (1 = alone; scales differ)"
"""What bars show, each panel on a scale of its own."""


def bars(axes: Any, table: pl.DataFrame, along: str, *, shares: bool = False) -> None:
    """Draw mean slowdowns as stacked bars, one for each value of `along`, or what they are made of.

    The slowdown stands on each bar; with `shares`, bars are parts of the excess, and none does.
    """
    parts = table.filter(pl.col("metric").is_in([accounts.TOTAL, accounts.ALONE, *accounts.PARTS]))
    rows = parts.pivot("metric", index=along, values="value", maintain_order=True)
    alone, excess = rows[accounts.ALONE], rows[accounts.TOTAL] - rows[accounts.ALONE]
    heights = rows.select(pl.col(*accounts.PARTS) / (excess if shares else alone))
    if not shares:
        heights = heights.with_columns(pl.col(accounts.FLIGHT) + 1)
    places = np.arange(rows.height)
    accounts.stack(axes, places, heights)
    if shares:
        axes.set_ylim(0, 1)
        axes.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0", "25", "50", "75", "100"])
    else:
        axes.axhline(1, color=looks.BLACK, linestyle="--", linewidth=1)
        above: Any = {"xytext": (0, 2), "textcoords": "offset points", "ha": "center"}
        for place, height in zip(places, rows[accounts.TOTAL] / alone, strict=True):
            axes.annotate(f"{height:.3g}", (place, height), fontsize=8, **above)
        axes.set_ylim(0, 1.08 * float((rows[accounts.TOTAL] / alone).max()))  # type: ignore[arg-type]
    names = [textwrap.fill(str(name), NAME_WIDTH) for name in rows[along]]
    axes.set_xticks(places, names, fontsize=8)
    axes.grid(visible=False, axis="x")


def panels(axes: Any, table: pl.DataFrame, column: str, titles: Mapping[Any, str]) -> None:
    """Draw a panel of schemes for each value of a column, under its title."""
    for panel, (value, title) in zip(axes, titles.items(), strict=True):
        bars(panel, table.filter(pl.col(column) == value), "scheme")
        panel.set_title(title, fontsize=11)
    axes[0].set_ylabel(SLOWDOWN)
    legend(axes, table)


def legend(panels: Any, table: pl.DataFrame) -> None:
    """Put one legend beside the panels: the parts that are a hundredth of some bar, as stacked."""
    whole = table.filter(metric=accounts.TOTAL).select(
        pl.exclude("low", "high", "metric", "at_least")
    )
    labels = [name for name in whole.columns if name not in ("value", "seeds")]
    parts = table.filter(pl.col("metric").is_in(list(accounts.PARTS)))
    both = parts.join(whole.rename({"value": "whole"}), on=labels, how="left", nulls_equal=True)
    metrics_drawn = both.filter(pl.col("value") >= 0.01 * pl.col("whole"))["metric"]
    matter = {accounts.LABELS[name] for name in metrics_drawn.unique()}
    first = np.ravel(panels)[0]
    handles, names = first.get_legend_handles_labels()
    shown = {
        n: h
        for h, n in zip(handles, names, strict=True)
        if n in matter or n not in accounts.LABELS.values()
    }
    shown = {"alone": handles[names.index(accounts.LABELS[accounts.FLIGHT])], **shown}
    first.figure.legend(
        list(shown.values())[::-1], list(shown)[::-1], loc="outside right center", fontsize=9
    )
