"""Data of pictures: what the artists show is what the data contain."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from sojourn import cli, plot
from sojourn.figures import html_report
from sojourn.web import drawn

TABLE = pl.DataFrame(
    {
        "scheme": ["DCTCP", "DCTCP", "TIMELY", "TIMELY"],
        "load": [0.2, 0.8, 0.2, 0.8],
        "value": [1.5, 3.0, 1.25, float("nan")],
        "low": [1.25, 2.5, 1.0, float("nan")],
        "high": [1.75, 3.5, 1.5, float("nan")],
    }
)


def panel(draw: Any) -> drawn.Panel:
    with plot.canvas() as (picture, axes):
        draw(axes)
        found = drawn.of(picture)
    assert found.unknown == []
    (only,) = found.panels
    return only


def of_kind(shown: drawn.Panel, kind: str) -> list[dict[str, Any]]:
    return [mark for mark in shown.marks if mark["kind"] == kind]


def test_lines_have_the_values_intervals_and_names_of_the_table() -> None:
    published = TABLE.select("scheme", "load", "value")
    shown = panel(
        lambda axes: plot.against(
            axes, TABLE, published=published, unit="ms", labels=("load", "FCT"), log=True
        )
    )
    assert (shown.x.name, shown.y.name) == ("load", "FCT (ms)")
    assert (shown.x.scale, shown.y.scale) == ("linear", "log")
    dctcp, timely, published_dctcp, published_timely = of_kind(shown, "line")
    assert (dctcp["name"], dctcp["x"], dctcp["y"]) == ("DCTCP", [0.2, 0.8], [1500, 3000])
    assert (timely["name"], timely["x"], timely["y"]) == ("TIMELY", [0.2], [1250])
    assert (published_dctcp["name"], published_timely["name"]) == ("DCTCP", "TIMELY")
    assert published_dctcp["published"]
    assert published_dctcp["dash"]
    band = of_kind(shown, "band")[0]
    assert (band["name"], band["x"]) == ("DCTCP", [0.2, 0.8])
    assert (band["low"], band["high"]) == ([1250, 2500], [1750, 3500])


def test_a_mark_without_a_name_has_that_of_the_scheme_with_its_colour_and_shape() -> None:
    def draw(axes: Any) -> None:
        for shape in "os":
            axes.plot([1, 2], [3, 4], color="red", marker=shape, label=f"scheme {shape}")
        axes.plot([2], [4], color="red", marker="s", markerfacecolor="white", linestyle="none")
        axes.fill_between([1, 2], [2, 3], [4, 5], color="red")

    *_, bound = of_kind(panel(draw), "line")
    (band,) = of_kind(panel(draw), "band")
    assert (bound["name"], band["name"]) == ("scheme s", "scheme o")


def test_bars_have_their_heights_and_positions() -> None:
    table = TABLE.with_columns(place=pl.format("at {}", "load")).drop_nans()
    shown = panel(lambda axes: plot.bars(axes, table, group="place", values="{:.1f}"))
    boxes = {mark["name"]: mark for mark in of_kind(shown, "boxes")}
    assert boxes["DCTCP"]["top"] == [1.5, 3]
    assert boxes["DCTCP"]["bottom"] == [0, 0]
    assert [tick.text for tick in shown.x.ticks or []] == ["at\n0.2", "at\n0.8"]
    intervals = of_kind(shown, "intervals")
    assert intervals[0]["high"] == [1.75, 3.5]
    texts = [(mark["text"], mark["name"]) for mark in of_kind(shown, "text")]
    assert texts == [("1.5", "DCTCP"), ("3.0", "DCTCP"), ("1.2", "TIMELY")]


def test_large_clouds_state_how_many_points_are_drawn() -> None:
    table = pl.DataFrame({"scheme": ["TCP"] * 2000, "x": range(2000), "value": [1.0] * 2000})
    (cloud,) = of_kind(panel(lambda axes: plot.points(axes, table)), "line")
    assert (cloud["all"], len(cloud["x"]), cloud["width"]) == (2000, drawn.MOST_POINTS, 0)


def test_rules_spans_and_texts_keep_their_places() -> None:
    def draw(axes: Any) -> None:
        axes.set_xlim(0, 10)
        axes.set_ylim(0, 4)
        axes.axhline(1, color="#222222", linestyle="--", label="ideal")
        axes.axvspan(2, 3, color="#222222", alpha=0.1)
        axes.annotate("here", (5, 2), (3, 6), textcoords="offset points", ha="right")
        axes.text(0.5, 0.25, "inside", transform=axes.transAxes)

    shown = panel(draw)
    (rule,), (span,) = of_kind(shown, "rule"), of_kind(shown, "boxes")
    assert (rule["name"], rule["y"]) == ("ideal", 1)
    assert (span["left"], span["right"], span["bottom"], span["top"]) == ([2], [3], [0], [4])
    here, inside = of_kind(shown, "text")
    assert (here["x"], here["y"], here["align"], here["shift"]) == (5, 2, "right", [4, -8])
    assert (inside["x"], inside["y"]) == (5, 1)


def test_an_axis_that_is_linear_near_zero_has_its_threshold() -> None:
    table = TABLE.select("scheme", "value", time_s="load").drop_nans()
    shown = panel(lambda axes: plot.series(axes, table, log=True))
    assert (shown.y.scale, shown.y.threshold) == ("symlog", 1)


def test_panels_take_the_names_that_their_row_shares() -> None:
    with plot.canvas(1, 2) as (picture, axes):
        for each in axes:
            each.plot([1, 2], [1, 2])
        axes[0].set_ylabel("rate")
        found = drawn.of(picture)
    assert [item.y.name for item in found.panels] == ["rate", "rate"]
    assert [item.column for item in found.panels] == [0, 1]


def test_an_unknown_artist_is_named() -> None:
    with plot.canvas() as (picture, axes):
        axes.pie([1, 2])
        assert drawn.of(picture).unknown == ["Wedge"]


def test_long_lines_keep_their_extremes() -> None:
    values = np.sin(np.arange(100_000) / 500.0)
    values[70_123], values[3] = 5.0, float("nan")
    kept = drawn.thinned(values)
    assert len(kept) <= drawn.MOST_POINTS + 2
    assert {0, 70_123, 99_999} <= set(kept.tolist())
    assert (np.diff(kept) > 0).all()


def test_the_picture_of_the_head_is_that_of_its_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pictures: list[drawn.Picture] = []

    def keep(picture: Any, stem: Path, formats: Any) -> list[Path]:
        pictures.append(drawn.of(picture))
        return []

    monkeypatch.setattr(plot, "save", keep)
    _, *arguments = html_report.INTRODUCTION_COMMAND.split()
    assert cli.invoke([*arguments, "--out", str(tmp_path)]) == 0
    (picture,) = pictures
    if os.environ.get("UPDATE_SNAPSHOTS"):
        html_report.INTRODUCTION.write_text(drawn.as_json(picture), encoding="utf-8")
    assert drawn.as_json(picture) == html_report.INTRODUCTION.read_text(encoding="utf-8")
