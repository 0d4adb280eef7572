"""Pictures: marks, lines, legends and layouts."""

from typing import Any

import polars as pl
import pytest

from sojourn import looks, plot
from sojourn.show.network_layout import layout
from sojourn.show.plot import frame


def test_the_look_of_a_scheme_does_not_depend_on_the_spelling_of_its_name() -> None:
    assert looks.look("patched_timely") == looks.look("Patched TIMELY") != looks.look("TIMELY")
    assert looks.look("something new") == looks.look("Something New")


def test_every_published_distribution_is_named_in_the_legend() -> None:
    columns = {"scheme": ["DCQCN", "TIMELY"], "value": [1e-4, 1e-3], "fraction": [0.5, 0.5]}
    points = pl.DataFrame(columns)
    with plot.canvas() as (_, axes):
        plot.cdf(axes, points, published=points)
    names = [text.get_text() for text in axes.get_legend().get_texts()]
    assert names == ["DCQCN", "TIMELY", "DCQCN, published", "TIMELY, published"]


def test_lower_bounds_along_sizes_are_hollow_and_closed_forms_dashed() -> None:
    curve = pl.DataFrame(
        {
            "scheme": ["TCP"] * 3,
            "size": [1.0, 10.0, 100.0],
            "mean": [0.1, 0.2, 0.4],
            "stderr": [0.01] * 3,
            "flows": [9] * 3,
            "at_least": [False, False, True],
        }
    )
    forms = pl.DataFrame({"scheme": ["Ideal"] * 2, "size": [1.0, 100.0], "mean": [0.05, 0.1]})
    with plot.canvas() as (_, axes):
        plot.along_sizes(axes, curve, curves=forms, limits=(1, 50))
        solid, hollow, form = axes.lines
    assert list(solid.get_xdata()) == [1, 10]
    assert list(hollow.get_xdata()) == []
    assert (form.get_label(), form.get_linestyle()) == ("Ideal", "--")
    with plot.canvas() as (_, axes):
        plot.along_sizes(axes, curve)
        assert list(axes.lines[1].get_xdata()) == [100]
        assert axes.lines[1].get_markerfacecolor() == "white"


def test_lower_bounds_of_single_values_are_hollow() -> None:
    columns = {"scheme": ["a", "b"], "value": [9.0, 99.0], "low": [8.0, 98.0], "high": [10.0, 1e2]}
    with plot.canvas() as (_, axes):
        plot.levels(axes, pl.DataFrame(columns | {"at_least": [False, True]}), values="{:.0f}")
        assert [text.get_text() for text in axes.texts] == ["9", "≥ 99"]
    hollow = [line for line in axes.lines if line.get_markerfacecolor() == "white"]
    assert [len(line.get_xdata()) for line in hollow] == [0, 1]


BOUNDED: dict[str, Any] = {
    **{"scheme": ["a", "a", "b", "b"], "load": [0.2, 0.4, 0.2, 0.4], "place": ["p", "q", "p", "q"]},
    **{"value": [1.0, 3.0, 2.0, 4.0], "low": [0.9, 2.8, 1.9, 3.8], "high": [1.1, 3.2, 2.1, 4.2]},
    "at_least": [False, True, False, None],
}
"""Values of two schemes, one of which is a lower bound."""


def entries(axes: Any) -> list[str]:
    return [text.get_text() for text in axes.get_legend().get_texts()]


def test_lower_bounds_of_bars_have_a_mark_instead_of_an_interval() -> None:
    table = pl.DataFrame(BOUNDED)
    with plot.canvas() as (_, axes):
        plot.bars(axes, table, group="place")
        (bound,) = axes.texts
        assert (bound.get_text(), bound.xy[1]) == ("≥", 3)
        assert entries(axes) == ["a", "b", frame.LOWER_BOUND]
        ends = [[len(line) for line in lines.get_segments()] for lines in axes.collections]
    assert ends == [[2, 0], [2, 2]]
    with plot.canvas() as (_, axes):
        plot.bars(axes, table, group="place", values="{:.0f}")
        assert [text.get_text() for text in axes.texts] == ["1", "≥ 3", "2", "4"]
    with plot.canvas() as (_, axes):
        plot.bars(axes, table.drop("at_least"), group="place")
        assert entries(axes) == ["a", "b"]


def test_lower_bounds_on_lines_are_hollow_without_a_band() -> None:
    with plot.canvas() as (_, axes):
        plot.against(axes, pl.DataFrame(BOUNDED))
        (hollow,) = (line for line in axes.lines if line.get_markerfacecolor() == "white")
        assert hollow.get_xydata().tolist() == [[0.4, 3]]
        assert [text.get_text() for text in axes.texts] == ["≥"]
        assert entries(axes) == ["a", "b", frame.LOWER_BOUND]
        highest = [band.get_datalim(axes.transData).y1 for band in axes.collections]
    assert highest == [pytest.approx(1.1), pytest.approx(4.2)]


def test_one_legend_explains_the_lower_bounds_of_all_panels() -> None:
    table = pl.DataFrame(BOUNDED)
    with plot.canvas(1, 2) as (_, panels):
        plot.bars(panels[0], table.drop("at_least"), group="place")
        plot.bars(panels[1], table, group="place")
        plot.one_legend(panels)
    assert entries(panels[0]) == ["a", "b", frame.LOWER_BOUND]
    assert panels[1].get_legend() is None


def test_closed_forms_are_lines_without_markers() -> None:
    table = pl.DataFrame({"scheme": ["a", "a", "b"], "x": [2.0, 1.0, 1.0], "value": [4, 3, 5]})
    with plot.canvas() as (_, axes):
        plot.curves(axes, table, x="x")
        first, second = axes.get_lines()
    assert first.get_xydata().tolist() == [[1, 3], [2, 4]]
    assert (first.get_label(), first.get_marker()) == ("a", "None")
    assert second.get_color() == looks.look("b").colour


def test_clouds_of_points_are_drawn_in_the_units_of_the_axes() -> None:
    table = pl.DataFrame({"scheme": ["a", "b"], "x": [1e3, 2e3], "value": [1e-6, 3e-6]})
    with plot.canvas() as (_, axes):
        plot.points(axes, table, units=("KB", "us"), labels=("queue", "RTT"))
        clouds = [cloud.get_offsets().tolist() for cloud in axes.collections[::2]]
        assert axes.get_xlabel() == "queue (KB)"
        assert [text.get_text() for text in axes.get_legend().get_texts()] == ["a", "b"]
    assert clouds == [[[1, pytest.approx(1)]], [[2, pytest.approx(3)]]]


def test_a_tradeoff_labels_its_points_in_their_order() -> None:
    columns = {"scheme": ["a"] * 3, "name": ["p", "q", "r"], "x": [3.0, 1.0, 2.0]}
    with plot.canvas() as (_, axes):
        plot.tradeoff(axes, pl.DataFrame(columns | {"value": [7.0, 8.0, 9.0]}))
        assert axes.lines[0].get_xydata().tolist() == [[3, 7], [1, 8], [2, 9]]
        assert [text.get_text() for text in axes.texts] == ["p", "q", "r"]
        assert axes.get_xlim()[0] == 0


def test_bars_can_be_labelled_with_values() -> None:
    table = pl.DataFrame({"scheme": ["a", "b"], "value": [1.234, 2.0]})
    with plot.canvas() as (_, axes):
        plot.bars(axes, table, values="{:.2f}")
        assert [text.get_text() for text in axes.texts] == ["1.23", "2.00"]


def test_the_layout_of_a_dumbbell_has_hosts_on_two_sides() -> None:
    cables = [("l", "r"), *((f"a{i}", "l") for i in range(3)), *((f"b{i}", "r") for i in range(3))]
    places, switches = layout(cables)
    assert sorted(switches) == ["l", "r"]
    assert {places[f"a{i}"][0] for i in range(3)} == {0.0}
    assert {places[f"b{i}"][0] for i in range(3)} == {1.0}


def test_a_tree_is_drawn_in_tiers() -> None:
    cables = [
        *((f"leaf{leaf}", f"spine{spine}") for leaf in range(3) for spine in range(2)),
        *((f"host{leaf}{host}", f"leaf{leaf}") for leaf in range(3) for host in range(2)),
    ]
    places, switches = layout(cables)
    heights = {name.rstrip("0123456789"): places[name][1] for name in places}
    assert heights == {"host": 0.0, "leaf": 0.5, "spine": 1.0}
    assert len(switches) == 5
    assert len(set(places.values())) == len(places)


def test_a_curve_with_decreasing_times_is_an_error() -> None:
    table = pl.DataFrame(
        {"scheme": ["TCP"] * 4, "time_s": [0.0, 1.0, 0.0, 1.0], "value": [1.0, 2.0, 2.0, 3.0]}
    )
    with plot.canvas() as (_, axes):
        plot.series(axes, table[:2])
        with pytest.raises(ValueError, match="TCP: time_s decreases"):
            plot.series(axes, table)
