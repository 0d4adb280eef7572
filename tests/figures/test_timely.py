"""Tests of the figures of TIMELY: one set of parameters, and comparisons at equal throughput."""

import importlib
import math
from types import ModuleType
from typing import Any

import polars as pl
import pytest

from sojourn.base import paths
from sojourn.figures import discovery

FIGURES = discovery.discover(paths.EXPERIMENTS)

SWEPT: dict[str, set[str]] = {
    "d1": set(),
    "d2": set(),
    "d3": {"t_low", "t_high"},
    "d4": set(),
    "d5": set(),
    "d6": set(),
    "d7": {"t_low", "size"},
    "d8": {"t_low", "t_high"},
    "d9": {"spacing"},
}
"""Parameters of TIMELY that a figure sweeps."""


def module(name: str) -> ModuleType:
    """Import a module of the figures."""
    return importlib.import_module(f"sojourn.experiments.timely_sigcomm15.{name}")


def flat(transport: dict[str, Any], without: set[str]) -> dict[str, Any]:
    """Return the parameters of a transport and of its segments, without some of them."""
    own = {name: value for name, value in transport.items() if name != "segments"}
    both = own | transport["segments"]
    return {name: value for name, value in both.items() if name not in without}


@pytest.mark.parametrize("name", SWEPT)
def test_claims_of_the_source_have_one_timely(name: str) -> None:
    testbed = module("testbed")
    own_sets = {testbed.OURS, "segments not paced"}
    timely = [
        scenario["transport"]
        for labels, scenario in FIGURES[name].plan("smoke")
        if labels.get("way") not in own_sets and "timely" in str(scenario["transport"])
    ]
    expected = flat(testbed.base["transport"], SWEPT[name])
    assert timely
    assert all(flat(transport, SWEPT[name]) == expected for transport in timely)


def test_settings_in_which_all_packets_are_marked_are_not_judged() -> None:
    figure = module("d1_rtt_queue")
    rows = [{"scheme": name, "value": 0.5} for name in ("20", "40")]
    labels = {"metric": figure.R, "way": figure.TWO, "packet_kb": figure.SINGLE_KB}
    table = pl.DataFrame([row | labels for row in rows])
    assert figure.weakly_correlated(table, figure.SINGLE_KB, ["20", "40"]).word == "held"
    assert figure.weakly_correlated(table, figure.SINGLE_KB, ["40", "80"]).word == "not judged"


def test_fast_is_compared_at_equal_throughput() -> None:
    figure = module("d5_table")
    slow, fast = (10.0, 18.0), (20.0, 19.0)
    points = {figure.TIMELY: (1.0, 18.25)} | {
        figure.fast(alpha): point
        for alpha, point in zip(
            figure.ALPHAS[figure.FAST], [(1.0, 9.0), (2.0, 10.0), slow, fast, fast], strict=True
        )
    }
    table = pl.DataFrame(
        [
            {"scheme": scheme, "metric": metric, "value": value}
            for scheme, (rtt, throughput) in points.items()
            for metric, value in ((figure.MEAN, rtt), (figure.THROUGHPUT, throughput))
        ]
    )
    assert figure.rtt_at_equal_throughput(table, figure.FAST) == pytest.approx(12.5)
    less = table.with_columns(
        value=pl.when(scheme=figure.TIMELY).then(pl.lit(20.0)).otherwise("value")
    )
    assert math.isnan(figure.rtt_at_equal_throughput(less, figure.FAST))


@pytest.mark.parametrize(
    ("share", "rtt", "held"), [(0.9, 1.0, True), (1.0, 2.0, True), (1.0, 1.0, False)]
)
def test_a_target_without_both_lacks_throughput_or_a_short_rtt(
    share: float, rtt: float, held: bool
) -> None:
    verdict = module("d3_gradient").lacks_one("50 µs", share, rtt, 0.95, 1.5)
    assert verdict.held is held
