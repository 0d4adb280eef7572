"""What a comparison shows of pairs: tables, a sentence for each scheme, warnings, and a picture."""

import math
from typing import Any

import polars as pl

from sojourn.analysis.breakdown import TOTAL
from sojourn.analysis.metrics import ALL
from sojourn.analysis.paired import BY_FLOW, COLUMNS, METRICS
from sojourn.show.table import Table

MATTERS = 0.01
"""The share of flows that finished under one scheme only, above which that is warned of."""


WHERE = ("size", "class")


def tables(table: pl.DataFrame) -> list[Table]:
    """Return ratios with their intervals, by size and by class, as `screen.text_table` shows."""
    if table.is_empty():
        return []
    shown: list[Table] = []
    for part in table.partition_by(*WHERE, maintain_order=True):
        labels = label_columns(table)
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
        shown.append(Table(title, columns, rows))
    return shown


def sentences(table: pl.DataFrame, by: str, differences: pl.DataFrame | None = None) -> list[str]:
    """Return a sentence for each scheme, and each combination of the other variations.

    With the `differences` of their accounts it says which part most of a difference is.
    """
    if table.is_empty():
        return []
    parts = Parts(label_columns(table), differences)
    means = table.filter(pl.col("metric") == "FCT mean")
    return [
        _sentence(part.to_dicts(), by, label_columns(table), parts)
        for part in means.partition_by(label_columns(table), maintain_order=True)
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
        ratio = f"{_number(row['value'], row)} of {scheme_name(by, row['against'])}'s time"
        ratio = ratio if not told else _number(row["value"], row)
        told.append(f"{of} take {ratio}{_bounds(row)}{parts.told(row)}")
    where = ", ".join(f"{name}={first[name]}" for name in labels if name != by)
    sentence = f"{scheme_name(by, first[by])}'s {'; '.join(told)}"
    return f"{where}: {sentence}" if where else sentence


def _words(size: str) -> str:
    if size.startswith("≤ "):
        return f"flows up to {size[2:]}"
    if size.startswith("> "):
        return f"flows above {size[2:]}"
    return "flows" if size == ALL.name else f"flows of {size}"


def scheme_name(by: str, value: Any) -> str:
    """Return the name of a scheme: a text by itself, a number with the name of its label."""
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
    reference = scheme_name(by, table["against"][0])
    lines = [
        f"ratios to {reference}{same_flows_note(table)}, 95 % confidence {how}; "
        f"{BY_FLOW}: geometric mean"
    ]
    if not table["same_flows"].all():
        lines.append(
            "note: some flows start or weigh otherwise under another scheme (calls, loads): there "
            "schemes are paired by seed only, not flow by flow"
        )
    means = table.filter(pl.col("metric") == "FCT mean")
    for part in means.partition_by(by, maintain_order=True):
        worrying = [row for row in part.to_dicts() if may_change_ratio(row)]
        if worrying:
            lines.append(_warning(worrying, by, label_columns(table)))
    return lines


def may_change_ratio(row: dict[str, Any]) -> bool:
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
    one, other = (scheme_name(by, worst[name]) for name in (by, "against"))
    return (
        f"warning: {ours + theirs:,} of {total:,} flows finished under one of "
        f"{one} and {other} only and are left out{place}: "
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


def same_flows_note(table: pl.DataFrame) -> str:
    """Return a note if ratios are of the same flows."""
    return " on the same flows" if table["same_flows"].any() else ""


def label_columns(table: pl.DataFrame) -> list[str]:
    """Return the columns of labels: all but those of ratios."""
    return [name for name in table.columns if name not in COLUMNS]
