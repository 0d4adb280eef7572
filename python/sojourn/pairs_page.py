"""What a comparison shows of pairs: tables, a sentence for each scheme, warnings, and a picture."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from sojourn import files, plot
from sojourn.accounts import TOTAL
from sojourn.looks import look
from sojourn.metrics import ALL
from sojourn.pairs import BY_FLOW, COLUMNS, METRICS
from sojourn.validation_page import Rows

MOST_DRAWN = 60
"""Combinations of other variations in one picture; it would be too high for more."""

MATTERS = 0.01
"""The share of flows that finished under one scheme only, above which that is warned of."""

WHERE = ("size", "class")


def tables(table: pl.DataFrame) -> list[Rows]:
    """Return ratios with their intervals, by size and by class, as `screen.text_table` shows."""
    if table.is_empty():
        return []
    shown: list[Rows] = []
    for part in table.partition_by(*WHERE, maintain_order=True):
        labels = _labels(table)
        rows = []
        for group in part.partition_by(labels, maintain_order=True):
            first = group.row(0, named=True)
            ratios = {row["metric"]: _with_interval(row) for row in group.to_dicts()}
            left_out = [first[name] for name in COLUMNS[10:13]]
            rows.append(
                (
                    *(str(first[label]) for label in labels),
                    f"{first['pairs']:,}",
                    " + ".join(map(str, left_out)) if any(left_out) else "-",
                    *(ratios[name] for name in METRICS),
                )
            )
        # A size or class that has all flows would say it twice.
        if shown and rows == shown[0].rows:
            continue
        head = "size" if part["class"][0] == ALL.name else "class"
        title = f"against {table['against'][0]}, {head}: {part[head][0]}"
        columns = (*labels, "pairs", "unfinished", *METRICS)
        shown.append(Rows(title, columns, rows))
    return shown


def sentences(table: pl.DataFrame, by: str, differences: pl.DataFrame | None = None) -> list[str]:
    """Return a sentence for each scheme, and each combination of the other variations.

    With the `differences` of their accounts it says which part most of a difference is.
    """
    if table.is_empty():
        return []
    parts = Parts(_labels(table), differences)
    means = table.filter(pl.col("metric") == "FCT mean")
    return [
        _sentence(part.to_dicts(), by, _labels(table), parts)
        for part in means.partition_by(_labels(table), maintain_order=True)
    ]


class Parts:
    """What the differences of schemes' mean times are made of."""

    def __init__(self, labels: list[str], differences: pl.DataFrame | None) -> None:
        """Take what `accounts.differences` returned, if anything."""
        self.labels = [*labels, *WHERE]
        self.known: dict[tuple[str, ...], dict[str, float]] = {}
        for row in () if differences is None else differences.to_dicts():
            self.known.setdefault(self._key(row), {})[row["metric"]] = row["value"]

    def _key(self, row: dict[str, Any]) -> tuple[str, ...]:
        return tuple(str(row.get(name, ALL.name)) for name in self.labels)

    def told(self, row: dict[str, Any]) -> str:
        """Say which part most of the difference is, if the two can be told apart."""
        known = dict(self.known.get(self._key(row), {}))
        whole = known.pop(TOTAL, 0.0)
        if whole == 0 or row["low"] <= 1 <= row["high"]:
            return ""
        shares = {name: value / whole for name, value in known.items()}
        most, least = (choose(shares, key=lambda name: shares[name]) for choose in (max, min))
        does = "save" if whole < 0 else "lose"
        back = f" (less {-100 * shares[least]:.0f} % for {least})" if shares[most] > 1 else ""
        return f", and {100 * shares[most]:.0f} % of what they {does} is {most}{back}"


def _sentence(rows: list[dict[str, Any]], by: str, labels: list[str], parts: Parts) -> str:
    first = rows[0]
    sized = [row for row in rows if row["class"] == ALL.name and row["size"] != ALL.name]
    told: list[str] = []
    for row in sized or rows[:1]:
        # Of ranges that users name, only those of `metrics.BUCKETS` have words of their own.
        of = _words(row["size"])
        ratio = f"{_number(row['value'], row)} of {_name(by, row['against'])}'s time"
        ratio = ratio if not told else _number(row["value"], row)
        told.append(f"{of} take {ratio}{_bounds(row)}{parts.told(row)}")
    where = ", ".join(f"{name}={first[name]}" for name in labels if name != by)
    sentence = f"{_name(by, first[by])}'s {'; '.join(told)}"
    return f"{where}: {sentence}" if where else sentence


def _words(size: str) -> str:
    if size.startswith("≤ "):
        return f"flows up to {size[2:]}"
    if size.startswith("> "):
        return f"flows above {size[2:]}"
    return "flows" if size == ALL.name else f"flows of {size}"


def _name(by: str, value: Any) -> str:
    return value if isinstance(value, str) else f"{by}={value}"


def _bounds(row: dict[str, Any]) -> str:
    if math.isnan(row["low"]):
        return " (no interval)"
    low, high = (_number(row[name], row) for name in ("low", "high"))
    same = ": not told apart" if row["low"] <= 1 <= row["high"] else ""
    return f" ({low} to {high}{same})"


def notes(table: pl.DataFrame, by: str) -> list[str]:
    """Say what the ratios are of, and warn where flows that did not finish may change them."""
    if table.is_empty():
        return []
    one = table["seeds"].max() == 1
    how = "by ten batches of the run's flows" if one else "over seeds"
    lines = [
        f"ratios to {_name(by, table['against'][0])}{_same(table)}, 95 % confidence {how}; "
        f"{BY_FLOW}: geometric mean"
    ]
    if not table["same_flows"].all():
        lines.append(
            "note: some flows start or weigh otherwise under another scheme (calls, loads): there "
            "schemes are paired by seed only, not flow by flow"
        )
    means = table.filter(pl.col("metric") == "FCT mean")
    for part in means.partition_by(by, maintain_order=True):
        worrying = [row for row in part.to_dicts() if _matters(row)]
        if worrying:
            lines.append(_warning(worrying, by, _labels(table)))
    return lines


def _matters(row: dict[str, Any]) -> bool:
    """Tell whether flows that are left out may change the ratio."""
    one_sided = row["unfinished"] + row["unfinished_against"]
    inside = row["low"] <= row["with_unfinished"] <= row["high"]
    total = row["pairs"] + one_sided + row["unfinished_both"]
    return bool(one_sided) and (not inside or one_sided > MATTERS * total)


def _warning(rows: list[dict[str, Any]], by: str, labels: list[str]) -> str:
    worst = max(rows, key=lambda row: row["unfinished"] + row["unfinished_against"])
    ours, theirs = worst["unfinished"], worst["unfinished_against"]
    bound = "" if ours and theirs else "at least " if ours else "at most "
    where = [f"{name}={worst[name]}" for name in labels if name != by]
    where += [worst[name] for name in WHERE if worst[name] != ALL.name]
    place = f" ({', '.join(where)})" if where else ""
    total = worst["pairs"] + ours + theirs + worst["unfinished_both"]
    more = f"; worst of {len(rows)}" if len(rows) > 1 else ""
    return (
        f"warning: {ours + theirs:,} of {total:,} flows finished under one of "
        f"{_name(by, worst[by])} and {_name(by, worst['against'])} only and are left out{place}: "
        f"with the time that they waited the ratio is {bound}"
        f"{_number(worst['with_unfinished'], worst)}{more}"
    )


def _with_interval(row: dict[str, Any]) -> str:
    if math.isnan(row["value"]):
        return "-"
    value = _number(row["value"], row)
    if math.isnan(row["low"]):
        return value
    return f"{value} [{_number(row['low'], row)}, {_number(row['high'], row)}]"


def _number(value: float, row: dict[str, Any]) -> str:
    """Write a ratio with as many digits as its interval tells."""
    width = row["high"] - row["low"]
    if not 0 < width < math.inf:
        return f"{value:.2f}" if value >= 0.1 else f"{value:.2g}"
    digits = min(max(-math.floor(math.log10(width)), 1 if width >= 1 else 2), 6)
    return f"{value:.{digits}f}"


def _same(table: pl.DataFrame) -> str:
    return " on the same flows" if table["same_flows"].any() else ""


def _labels(table: pl.DataFrame) -> list[str]:
    return [name for name in table.columns if name not in COLUMNS]


def write(table: pl.DataFrame, by: str, out: Path) -> list[str]:
    """Write ratios and their picture into a folder, if there are any; return the files' names."""
    if table.is_empty():
        return []
    files.write_text(out / "pairs.csv", table.write_csv())
    draw(table, by, out / "pairs")
    return ["pairs.csv", "pairs.svg", "pairs.png"]


def draw(table: pl.DataFrame, by: str, stem: Path) -> None:
    """Draw ratios of mean completion times with intervals: a panel a size or class, a row a case.

    A row is a combination of the other variations; schemes stand in it one over the other. Hollow
    marks are ratios from which flows are missing that finished under one scheme only.
    """
    means = table.filter(pl.col("metric") == "FCT mean", pl.col("value").is_not_nan())
    others = [name for name in _labels(table) if name != by]
    case = [pl.format(f"{name}={{}}", pl.col(name).cast(pl.String)) for name in others]
    means = means.with_columns(
        case=pl.concat_str(case, separator=", ") if others else pl.lit(""),
        scheme=pl.col(by).cast(pl.String),
    )
    cases = means["case"].unique(maintain_order=True).to_list()[:MOST_DRAWN]
    schemes = means["scheme"].unique(maintain_order=True).to_list()
    panels = means.partition_by(*WHERE, maintain_order=True)
    height = 1.6 + 0.28 * len(cases) * (len(schemes) + 0.5)
    with plot.canvas(1, len(panels), size=(1.8 + 2.4 * len(panels), height)) as (picture, grid):
        for axes, part in zip(np.ravel(grid), panels, strict=True):
            _panel(axes, part, cases, schemes)
            head = "class" if part["class"][0] != ALL.name else "size"
            axes.set_title(part[head][0].replace("all", "all flows"), fontsize=10)
        first = np.ravel(grid)[0]
        first.set_yticks(range(len(cases)), cases)
        for axes in np.ravel(grid)[1:]:
            axes.set_yticks(range(len(cases)), [""] * len(cases))
        against = _name(by, table["against"][0])
        words = f"mean completion time over that of {against}{_same(table)}"
        picture.supxlabel(words, fontsize=10)
        handles, names = first.get_legend_handles_labels()
        picture.legend(handles, names, loc="outside upper left", ncols=6, frameon=False)
        plot.save(picture, stem)


def _panel(axes: Any, part: pl.DataFrame, cases: list[str], schemes: list[str]) -> None:
    for number, scheme in enumerate(schemes):
        style = look(scheme)
        rows = part.filter(pl.col("scheme") == scheme, pl.col("case").is_in(cases)).to_dicts()
        shift = 0.8 * ((number + 0.5) / len(schemes) - 0.5)
        # An empty series too, so that every scheme is in the legend.
        axes.plot([], [], style.marker, color=style.colour, label=scheme)
        for row in rows:
            height = cases.index(row["case"]) + shift
            if not math.isnan(row["low"]):
                axes.plot([row["low"], row["high"]], [height] * 2, color=style.colour)
            fill = "white" if _matters(row) else style.colour
            axes.plot(row["value"], height, style.marker, color=style.colour, markerfacecolor=fill)
    axes.axvline(1, color="#444444", linewidth=1)
    axes.set_xscale("log")
    low, high = axes.get_xlim()
    # Room on both sides of 1, and something to read values off.
    axes.set_xlim(min(low, 0.9), max(high, 1.11))
    low, high = axes.get_xlim()
    # Powers of ten and their kin are too far apart where all is near 1.
    narrow = high < 3 * low
    places = MaxNLocator(5, steps=(1, 2, 2.5, 5, 10)) if narrow else LogLocator(subs=(1, 2, 3, 5))
    axes.xaxis.set_major_locator(places)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_ylim(len(cases) - 0.5, -0.5)
