"""Tests of metrics of long-lived flows: RTTs, rates, fairness over time."""

import math
from collections.abc import Mapping, Sequence

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import SCENARIO, make_result
from sojourn import Run, metrics, override, run, steady
from sojourn.runs.results import Result
from sojourn.show.console import console
from sojourn.show.result import result_tables


def delivering(flows: Mapping[int, Sequence[float]], warm_up: str = "0 s") -> Run:
    """Create a run from the bytes delivered to flows at 0, 1, 2 ... seconds."""
    rows = [
        {"time_s": float(time), "probe": f"delivered_bytes flow {flow}", "value": float(value)}
        for flow, values in flows.items()
        for time, value in enumerate(values)
    ]
    result = make_result([1.0], warm_up=warm_up)
    return Run({"scheme": "a"}, Result(result.flows, pl.DataFrame(rows), result.summary))


def counted(*classes: tuple[Sequence[float], Sequence[int]]) -> Result:
    """Create a result with RTTs in bins of 0.2 s around these values."""
    result = make_result([1.0])
    rtts = [
        {
            "class": "",
            "lower_s": [value - 0.1 for value in values],
            "upper_s": [value + 0.1 for value in values],
            "count": list(counts),
        }
        for values, counts in classes
    ]
    return Result(result.flows, result.samples, result.summary | {"rtts": rtts})


def test_rtts_of_classes_are_weighted_by_their_counts() -> None:
    result = counted(([1.0, 3.0], [90, 9]), ([11.0], [1]), ([], []))
    assert steady.rtt("mean")(result).value == pytest.approx((90 + 27 + 11) / 100)
    assert steady.rtt("p90")(result).value == pytest.approx(1.0)
    assert steady.rtt("p99")(result).value == pytest.approx(3.0)
    assert steady.rtt("max", less_s=0.5)(result).value == pytest.approx(10.5)


def test_metrics_without_rtts_are_nan() -> None:
    assert math.isnan(steady.rtt("mean")(counted()).value)


@given(
    st.lists(st.tuples(st.integers(1, 99), st.integers(1, 9)), min_size=1, unique_by=lambda p: p[0])
)
def test_the_percentile_of_counts_equals_that_of_the_values(bins: list[tuple[int, int]]) -> None:
    values, counts = zip(*sorted(bins), strict=True)
    expanded = [float(value) for value, count in bins for _ in range(count)]
    result = counted(([float(value) for value in values], counts))
    one_by_one = metrics.percentile(pl.Series(expanded).to_numpy(), pl.Series([]).to_numpy(), 0.9)
    assert steady.rtt("p90")(result).value == pytest.approx(one_by_one.value)


def test_the_rtt_distribution_pools_seeds() -> None:
    one, other = counted(([1.0], [1])), counted(([1.0, 2.0], [1, 2]))
    curve = steady.rtt_cdf([Run({"scheme": "a", "seed": n}, r) for n, r in enumerate((one, other))])
    assert curve["value"].to_list() == pytest.approx([1.0, 1.0, 2.0])
    assert curve["fraction"].to_list() == [0, 0.5, 1.0]


def test_rates_are_measured_in_intervals_after_the_warm_up() -> None:
    flows = delivering({0: [0, 9, 10, 11, 13, 15], 1: [0, 0, 1, 2, 2, 2]}, warm_up="1 s")
    rates = steady.flow_rates([flows], 2.0)
    assert rates["flow"].to_list() == [0, 0, 1, 1]
    assert rates["time_s"].to_list() == [3.0, 5.0, 3.0, 5.0]
    assert rates["value"].to_list() == [8.0, 16.0, 8.0, 0.0]


def test_goodput_and_fairness_are_computed_from_mean_rates() -> None:
    result = delivering({0: [5, 8, 11], 1: [0, 1, 2]}, warm_up="0 s").result
    assert steady.goodput()(result).value == 8 * 4
    assert steady.fairness()(result).value == pytest.approx(metrics.jain([3, 1]))


def test_fairness_over_time_is_computed_for_each_interval() -> None:
    index = steady.jain_over_time([delivering({0: [0, 1, 2], 1: [0, 1, 1]})], 1.0)
    assert index["time_s"].to_list() == [1.0, 2.0]
    assert index["value"].to_list() == pytest.approx([1.0, 0.5])


def test_constant_rates_have_no_variation_and_idle_flows_are_excluded() -> None:
    flows = {0: [0, 1, 2, 3], 1: [0, 1, 1, 3], 2: [0, 0, 0, 0]}
    even = pl.Series([1.0, 0.0, 2.0])
    expected = (0.0 + even.std() / even.mean()) / 2  # type: ignore[operator]
    assert steady.variation(1.0)(delivering(flows).result).value == pytest.approx(expected)


def test_the_time_to_reach_a_level_is_relative_to_a_start() -> None:
    table = pl.DataFrame({"time_s": [1.0, 2.0, 3.0], "value": [9.0, 1.0, 5.0]})
    assert steady.time_to_reach(table, 5.0, from_s=1.5) == 1.5
    assert steady.time_to_reach(table, 10.0) == math.inf


def test_long_lived_flows_share_a_link_and_rtts_count_after_the_warm_up() -> None:
    change = {
        "topology": {"kind": "dumbbell", "senders": 2, "receivers": 2},
        "workload": {"kind": "long_lived", "jitter": "100 us"},
        "samples": {"interval": "100 us", "flows": [0, 1], "rtts": True},
        "time_limit": "20 ms",
        "warm_up": "10 ms",
    }
    result = run(override(SCENARIO, change))
    assert steady.goodput()(result).value == pytest.approx(10e9 / 1.04, rel=0.02)
    assert steady.fairness()(result).value > 0.9
    late = sum(sum(counts["count"]) for counts in result.summary["rtts"])
    early = run(override(SCENARIO, change, {"warm_up": "0 s"}))
    assert 0 < late < sum(sum(counts["count"]) for counts in early.summary["rtts"])


def test_throughputs_are_by_class_while_all_flows_send() -> None:
    result = make_result([1.0, None, None, None, None])
    flows = result.flows.with_columns(
        pl.Series("outcome", ["finished", *["long_lived"] * 4]),
        pl.Series("class", ["web", "cubic", "bbr", "bbr", "bbr"]),
        pl.Series("source", range(5)),
        pl.Series("target", range(5)),
        pl.Series("start_s", [0.0, 0.0, 5.0, 5.0, 10.0]),
    )
    together = {"from_s": 5.0, "to_s": 10.0, "flows": [1, 2, 3], "bytes": [1500, 2000, 1000]}
    summary = {**result.summary, "simulated_s": 10.0, "long_lived": together}
    result = Result(flows, result.samples, summary)
    # The last flow would start at the end of the run.
    table = steady.by_class(result)
    assert table["class"].to_list() == ["all", "bbr", "cubic"]
    assert table["flows"].to_list() == [3, 2, 1]
    assert table["throughput"].to_list() == pytest.approx([7200, 4800, 2400])
    assert table["share"].to_list() == pytest.approx([1, 2 / 3, 1 / 3])
    assert table["Jain index"].to_list()[1:] == pytest.approx([0.9, 1.0])
    assert steady.by_class(make_result([1.0])).is_empty()
    assert math.isnan(steady.throughput()(make_result([1.0])).value)


def test_flows_that_never_send_together_have_no_throughput() -> None:
    result = make_result([None, None])
    flows = result.flows.with_columns(
        pl.Series("outcome", ["long_lived"] * 2), pl.Series("class", ["early", "late"])
    )
    apart = Result(flows, result.samples, {**result.summary, "long_lived": None})
    table = steady.by_class(apart)
    assert table["flows"].to_list() == [2, 1, 1]
    for name in ("throughput", "share", "Jain index"):
        assert table[name].is_nan().all()


@pytest.mark.parametrize(
    ("flows", "bounds"),
    [
        ([{}, {"start": "400 ms"}, {"start": "800 ms"}], (0.8, 1.0)),
        ([{"stop": "500 ms"}, {"start": "200 ms"}], (0.3, 0.5)),
        ([{"stop": "500 ms"}, {"start": "500 ms"}], None),
    ],
)
def test_throughputs_add_up_to_no_more_than_their_link_carries(
    flows: list[dict[str, str]], bounds: tuple[float, float] | None
) -> None:
    # Mean rates from the starts to the end of the run would add up to more.
    ends = [{"source": place, "target": place + 4, **flow} for place, flow in enumerate(flows)]
    scenario = {
        "topology": {
            "kind": "dumbbell",
            "senders": 4,
            "receivers": 4,
            "rate": "1 Gbps",
            "bottleneck_rate": "100 Mbps",
        },
        "queue": {"kind": "drr", "capacity": "100 packets"},
        "transport": "tcp",
        "warm_up": "300 ms",
        "time_limit": "1 s",
        "workload": {"kind": "flows", "flows": ends},
    }
    result = run(scenario)
    assert steady.interval(result) == bounds
    value = steady.throughput()(result).value
    with console.capture() as capture:
        console.print(result_tables(result), width=200)
    if bounds is None:
        assert math.isnan(value)
        assert "long-lived flows never sent all at the same time" in capture.get()
    else:
        assert "all long-lived flows sent from " in capture.get()
        assert 85e6 < value < 100e6
        assert steady.jain_index()(result).value > 0.9
