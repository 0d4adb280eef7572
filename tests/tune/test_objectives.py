"""Tests of objectives and ranges: what is measured, bounded and varied."""

import math
from typing import Any

import pytest

import sojourn
from conftest import SCENARIO, SMALL, make_result
from sojourn import ScenarioError, metrics, steady, tune
from sojourn.tune import objectives, ranges
from sojourn.tune.trials import DONE


@pytest.mark.parametrize(
    ("text", "metric"),
    [
        ("p95 slowdown of <= 100 KB", metrics.slowdown("p95", metrics.Bucket("", up_to=100e3))),
        ("mean  fct", metrics.fct("mean")),
        ("max fct of > 10 KB", metrics.fct("max", metrics.Bucket("", above=10e3))),
        ("p50 fct of 10 KiB to 1 MB", metrics.fct("p50", metrics.Bucket("", 10240, 1e6))),
        ("mean fct of class poisson", metrics.fct("mean", metrics.Bucket("", of_class="poisson"))),
        ("utilisation", metrics.utilisation("left->right")),
        ("utilisation of left->right", metrics.utilisation("left->right")),
        ("marks", metrics.count("marks")),
        ("FCT mean", metrics.fct("mean")),
        ("Slowdown  P95 of <= 100 KB", metrics.slowdown("p95", metrics.Bucket("", up_to=100e3))),
        ("retransmissions", metrics.count("retransmits")),
    ],
)
def test_a_parsed_measure_equals_the_metric(text: str, metric: metrics.Metric) -> None:
    result = sojourn.run(SMALL)
    assert objectives.read(text).metric(result) == metric(result)
    assert not math.isnan(metric(result).value)


@pytest.mark.parametrize("text", ["mean fct", "mean FCT", "FCT mean", "fct  MEAN"])
def test_a_measure_has_one_name(text: str) -> None:
    assert objectives.read(text).text == "mean fct"


def test_an_unknown_measure_gives_a_list_of_all() -> None:
    with pytest.raises(ScenarioError) as caught:
        objectives.read("speed")
    for word in objectives.WORDS:
        assert word in str(caught.value)


def test_durations_of_jobs_are_measures() -> None:
    workload = {"kind": "collective", "algorithm": "ring", "ranks": 4, "size": "40 KB", "jobs": 2}
    result = sojourn.run(
        {**SCENARIO, "topology": {"kind": "star", "hosts": 8}} | {"workload": workload}
    )
    lasted = sojourn.jobs.jobs(result)["duration_s"]
    assert objectives.read("mean duration").of(result).value == pytest.approx(lasted.mean())
    assert objectives.read("duration max").of(result).value == lasted.max()
    first = objectives.read("max duration of class collective 1")
    assert (first.of(result).value, first.unit) == (lasted[0], "s")
    with pytest.raises(ScenarioError, match="unknown job `collective`; did you mean"):
        objectives.read("max duration of class collective").of(result)
    with pytest.raises(ScenarioError, match="the run has no jobs"):
        objectives.read("mean duration").of(sojourn.run(SMALL))


def test_measures_of_long_lived_flows_are_those_of_tables() -> None:
    workload = {"kind": "long_lived", "class": "bulk"}
    result = sojourn.run({**SCENARIO, "workload": workload, "time_limit": "2 ms"})
    for name, value in steady.by_class(result).row(1, named=True).items():
        if name not in ("class", "flows"):
            assert objectives.read(f"{name} of class bulk").of(result).value == value
    assert objectives.constraint("throughput >= 2 Gb/s").bound == 2e9
    with pytest.raises(ScenarioError, match="the bound must be a rate, such as `10 Gb/s`"):
        objectives.constraint("throughput >= 2 GB")


def test_a_queue_measure_is_of_the_network_or_of_the_named_link() -> None:
    result = sojourn.run(SMALL)
    bottleneck = metrics.link_counters(result, "left->right")
    assert objectives.read("max queue").metric(result).value == bottleneck["queue_max_bytes"] > 0
    busiest = metrics.measured(bottleneck)["queue_mean_bytes"]
    assert objectives.read("mean queue").metric(result).value == busiest
    other = objectives.read("max queue of right->left").metric(result).value
    assert other == metrics.link_counters(result, "right->left")["queue_max_bytes"]
    with pytest.raises(ScenarioError, match="did you mean `left->right`"):
        objectives.read("utilisation of left-right").metric(result)


@pytest.mark.parametrize(
    ("text", "bound", "excess"),
    [
        ("utilisation >= 0.9", 0.9, 0.1),
        ("utilisation >= 90 %", 0.9, 0.1),
        ("p99 fct of <= 100 KB <= 2 ms", 0.002, -0.0012),
        ("max queue ≤ 1 KB", 1000, -999.2),
        ("drops <= 0", 0, 0.8),
    ],
)
def test_a_bound_has_the_unit_of_its_measure(text: str, bound: float, excess: float) -> None:
    constraint = objectives.constraint(text)
    assert constraint.bound == pytest.approx(bound)
    value = 0.0008 if constraint.measure.unit == "s" else 0.8
    assert constraint.excess(value) == pytest.approx(excess)


@pytest.mark.parametrize(
    ("text", "given"),
    [
        ("utilisation >= 90", "90"),
        ("utilisation of left->right <= 95", "95"),
        ("deadlines met of class a >= 101 %", "101 %"),
        ("share of class a <= -0.1", "-0.1"),
        ("Jain index >= 1.5", "1.5"),
    ],
)
def test_a_bound_on_a_share_lies_between_0_and_1(text: str, given: str) -> None:
    expected = f"the bound must be from 0 to 1, or from 0 % to 100 %, not `{given}`"
    with pytest.raises(ScenarioError) as caught:
        objectives.constraint(text)
    assert str(caught.value) == expected


@pytest.mark.parametrize(
    ("spec", "middle", "value"),
    [
        ("0.01:1:log", 0.123456, 0.1235),
        ("1:100", 7, 7),
        ("10 KB:200 KB", 133.33333, "133.3 KB"),
        ("1 us:1 ms:log", 12.3456789, "12.35 us"),
        ("1 Gbps:10 Gbps", 5.0, "5 Gbps"),
        ("10 packets:65 packets", 20, "20 packets"),
        ("none,linux", "linux", "linux"),
        ("1,2.5", "2.5", 2.5),
        ("1:3:1", "2", 2),
        ("10 KB:30 KB:10 KB", "20 KB", "20 KB"),
    ],
)
def test_values_of_a_range_convert_to_the_scenario_and_back(
    spec: str, middle: Any, value: Any
) -> None:
    parameter = ranges.read("some.field", spec)
    assert parameter.value(middle) == value
    assert parameter.value(parameter.place(value)) == value
    assert [parameter.value(parameter.place(end)) for end in parameter.ends()] == list(
        parameter.ends()
    )
    assert parameter.place("none of these") is None


def test_a_range_has_units_as_results_print_them() -> None:
    delays = ranges.read("topology.delay", "1 µs:0.01 ms")
    assert delays.place("2 us") == pytest.approx(2)
    rates = ranges.read("topology.rate", "500 Mb/s:10 Gb/s")
    assert rates.place("1 Gbps") == pytest.approx(1000)


def test_a_range_converts_units_and_rejects_values_outside() -> None:
    parameter = ranges.read("queue.threshold", "10 KB:1 MB")
    assert parameter.place("0.5 MB") == pytest.approx(500)
    assert parameter.place("65536 B") == pytest.approx(65.536)
    for outside in ("2 MB", "9 KB", "20 us", 20, "none", True):
        assert parameter.place(outside) is None


def test_a_percentile_of_too_few_flows_is_no_objective() -> None:
    # 60 flows have no p99.
    space = {"transport.gain": "0.1:0.9"}
    with pytest.raises(ScenarioError, match="p99 fct: a run has 60 such flows, and 100 are needed"):
        tune.search(SMALL, space, minimise="p99 fct", trials=1, seeds=1)
    tuned = tune.search(SMALL, space, minimise="p95 fct", trials=1, seeds=1)
    assert tuned.done[0].ended == DONE


def test_unfinished_flows_mark_values_as_lower_bounds() -> None:
    measure = objectives.read("p50 fct").metric(make_result([1.0, None, None], simulated_s=5.0))
    assert measure.at_least
    cut = sojourn.override(SMALL, {"time_limit": "30 us"})
    tuned = tune.search(cut, {"transport.gain": "0.1:0.9"}, minimise="max fct", trials=1, seeds=1)
    assert tuned.done[0].at_least
