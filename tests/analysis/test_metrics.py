"""Tests of metrics: percentiles, censoring, intervals."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sojourn
from conftest import SCENARIO, make_result
from sojourn import Run, metrics
from sojourn.analysis.metrics.tables import log_bin
from sojourn.runs.results import Result

TIMES = st.floats(1e-6, 10.0)
SHARES = st.floats(0.0, 1.0)


def array(values: list[float]) -> metrics.Floats:
    return np.array(values, dtype=np.float64)


@given(TIMES, st.integers(1, 50), SHARES)
def test_every_percentile_of_constants_is_the_constant(
    value: float, count: int, share: float
) -> None:
    assert metrics.percentile(array([value] * count), array([]), share) == (value, False)


@given(st.lists(TIMES, min_size=1), SHARES)
def test_a_percentile_is_a_value_that_the_share_does_not_exceed(
    values: list[float], share: float
) -> None:
    value, at_least = metrics.percentile(array(values), array([]), share)
    assert value in values
    assert not at_least
    assert sum(other <= value for other in values) >= share * len(values) - 1e-6
    assert sum(other < value for other in values) <= share * len(values) + 1e-6


@given(st.lists(TIMES), st.lists(st.tuples(TIMES, TIMES), min_size=1), SHARES)
def test_a_percentile_is_a_bound_for_all_later_fcts_of_unfinished_flows(
    finished: list[float], unfinished: list[tuple[float, float]], share: float
) -> None:
    least = [bound for bound, _ in unfinished]
    final = [bound + more for bound, more in unfinished]
    value, at_least = metrics.percentile(array(finished), array(least), share)
    truth, _ = metrics.percentile(array(finished + final), array([]), share)
    assert value <= truth if at_least else value == truth


@given(st.lists(TIMES, min_size=1), st.lists(st.tuples(TIMES, TIMES), min_size=1))
def test_the_mean_is_a_lower_bound_if_a_flow_is_unfinished(
    finished: list[float], unfinished: list[tuple[float, float]]
) -> None:
    value, at_least = metrics.mean(array(finished), array([bound for bound, _ in unfinished]))
    assert at_least
    assert value <= np.mean([*finished, *(bound + more for bound, more in unfinished)]) + 1e-9


def test_two_unfinished_flows_of_a_hundred_mark_the_p99_but_not_the_median() -> None:
    result = make_result([*[2e-6] * 98, None, None])
    assert metrics.fct("p50")(result) == (2e-6, False)
    p99 = metrics.fct("p99")(result)
    assert p99.at_least
    # The 99th of 100 values; the flows that started at 98 and 99 ms of 1 s wait 902 and 901 ms.
    assert p99.value == pytest.approx(1.0 - 99e-3)
    row = metrics.by_size(result, "slowdown").row(0, named=True)
    assert (row["flows"], row["unfinished"], row["at_least"]) == (100, 2, "mean,p99")


@pytest.mark.parametrize(("name", "least"), [("p50", 2), ("p95", 20), ("p99", 100), ("max", 1)])
def test_a_percentile_needs_flows_beyond_it(name: str, least: int) -> None:
    # By nearest rank, a percentile p of fewer than 1 / (1 - p) values is the largest.
    assert metrics.least_flows(name) == least
    times = [float(number) for number in range(1, least + 1)]
    enough, few = make_result(times, simulated_s=9e9), make_result(times[1:], simulated_s=9e9)
    assert metrics.fct(name)(enough).value == max(least - 1, 1)
    assert math.isnan(metrics.fct(name)(few).value)
    assert math.isnan(metrics.by_size(few, "fct_s", statistics=[name])[name][0])
    if least > 1:
        assert metrics.fct(name, few=True)(few).value == least


def test_a_mean_of_maxima_is_not_shown_as_a_p99() -> None:
    # Lognormal times (sigma 2), 50 flows a seed: the mean of the maxima is 1.66 times the true p99.
    random = np.random.default_rng(1)
    results = [
        make_result(random.lognormal(0, 2, 50).tolist(), simulated_s=1e9) for _ in range(100)
    ]
    truth = math.exp(2 * 2.3263)
    maxima = [metrics.fct("p99", few=True)(result).value for result in results]
    assert np.mean(maxima) > 1.2 * truth
    assert all(math.isnan(metrics.fct("p99")(result).value) for result in results)


def test_the_bound_of_an_unfinished_flow_is_at_least_its_ideal_fct() -> None:
    result = make_result([None], simulated_s=0.0)
    assert metrics.fct("mean")(result) == (1e-6, True)
    assert metrics.slowdown("mean")(result) == (1.0, True)


def test_flows_of_the_warm_up_are_excluded() -> None:
    result = make_result([1.0, 2e-6, 2e-6], warm_up="500 us")
    assert metrics.fct("max")(result) == (2e-6, False)


def test_terminated_flows_have_a_count_and_no_completion_time() -> None:
    result = make_result([2e-6, None, None, 4e-6], terminated=[1])
    assert metrics.flows()(result).value == 3
    assert metrics.terminated()(result).value == 1
    assert metrics.fct("p50")(result) == (4e-6, False)
    row = metrics.by_size(result, "slowdown").row(0, named=True)
    assert (row["flows"], row["unfinished"], row["terminated"]) == (3, 1, 1)
    given_up = make_result([2e-6, None, 4e-6], terminated=[1])
    assert metrics.fct("mean")(given_up) == (3e-6, False)
    assert metrics.cdf([Run({}, given_up)])["fraction"].to_list() == [0, 0.5, 1.0]
    assert metrics.in_progress([Run({}, given_up)])["value"].to_list()[-1] == 0
    curve = metrics.size_curve([Run({}, given_up)], payload=1000)
    assert curve.select("flows", "unfinished", "mean").row(0) == (2, 0, pytest.approx(3e-6))


def test_a_deadline_is_met_by_a_flow_that_finishes_by_it() -> None:
    fcts, deadlines = [1e-6, 3e-6, 2e-6, 5e-6, None], [2e-6, 2e-6, 2e-6, None, 1e-3]
    result = make_result(fcts, deadlines=deadlines, terminated=[4])
    assert metrics.deadlines_met()(result) == (0.5, False)
    assert math.isnan(metrics.deadlines_met()(make_result([1e-6])).value)


def test_deadlines_that_have_not_passed_yet_may_still_be_met() -> None:
    fcts, deadlines = [1e-6, None], [2e-6, 0.5]
    assert metrics.deadlines_met()(make_result(fcts, deadlines=deadlines)) == (0.5, False)
    early = make_result(fcts, deadlines=deadlines, simulated_s=0.1)
    assert metrics.deadlines_met()(early) == (0.5, True)


def test_large_flows_have_more_weight_in_the_ratio_of_means() -> None:
    result = make_result([1e-6, 6e-6])
    ideal = pl.Series("ideal_fct_s", [1e-6, 2e-6])
    flows = result.flows.with_columns(ideal, slowdown=pl.col("fct_s") / ideal)
    uneven = Result(flows, result.samples, result.summary)
    assert metrics.slowdown("mean")(uneven).value == pytest.approx(2.0)
    assert metrics.ratio_of_means()(uneven).value == pytest.approx(7 / 3)


def test_metrics_without_flows_are_nan() -> None:
    huge = metrics.Bucket("huge", above=1e9)
    assert math.isnan(metrics.fct("mean", huge)(make_result([1.0])).value)


@given(st.lists(st.integers(1, 10**9), min_size=1), st.lists(st.integers(1, 10**9), unique=True))
def test_every_size_is_in_exactly_one_bucket(sizes: list[int], edges: list[int]) -> None:
    buckets = metrics.size_buckets(*edges)
    assert len(buckets) == len(edges) + 1
    for size in sizes:
        assert sum(bucket.above < size <= bucket.up_to for bucket in buckets) == 1


def test_a_bucket_may_select_the_flows_of_one_class() -> None:
    result = make_result([1e-6, 3e-6, 5e-6, None], classes=["a", "b", "b", "a"])
    small_b = metrics.Bucket("small b", up_to=1000, of_class="b")
    assert metrics.fct("mean", small_b)(result).value == pytest.approx(4e-6)
    assert metrics.flows(metrics.Bucket("large b", above=1000, of_class="b"))(result).value == 0
    rows = metrics.by_class(result, "slowdown", ["mean"])
    assert rows.select("class", "flows", "unfinished", "at_least").rows() == [
        ("a", 2, 1, "mean"),
        ("b", 2, 0, ""),
    ]
    assert rows["mean"][1] == pytest.approx(4.0)


def test_a_single_class_and_calls_have_no_class_buckets() -> None:
    assert metrics.class_buckets([make_result([1.0, 2.0])]) == ()
    assert metrics.by_class(make_result([1.0, 2.0]), "fct_s").is_empty()
    asked = make_result([1.0, 2.0], classes=["rpc request", "rpc response"])
    assert metrics.class_buckets([asked]) == ()
    among = make_result([1.0, 2.0, 3.0], classes=["rpc request", "rpc response", "backup"])
    assert [bucket.name for bucket in metrics.class_buckets([among])] == ["backup"]
    runs = [make_result([1.0], classes=[name]) for name in ("b", "a")]
    assert [bucket.of_class for bucket in metrics.class_buckets(runs)] == ["a", "b"]


def test_the_realised_load_equals_that_of_the_summary() -> None:
    result = make_result([1.0])
    assert math.isnan(metrics.realised_load()(result).value)
    result.summary["realised_load"] = 0.25
    table = metrics.measure([Run({"seed": 1}, result)], load=metrics.realised_load())
    assert metrics.at(table, metric="load") == 0.25


def test_buckets_are_named_by_their_edges() -> None:
    names = [bucket.name for bucket in metrics.BUCKETS]
    assert names == ["all", "≤ 100 KB", "100 KB to 10 MB", "> 10 MB"]
    small, _ = metrics.size_buckets(100, packet_bytes=1000)
    assert (small.name, small.up_to) == ("≤ 100 packets", 100_000)


@given(st.lists(st.floats(0.1, 100), min_size=1), st.floats(0.1, 10))
def test_fairness_is_from_one_share_to_one_and_independent_of_the_unit(
    rates: list[float], scale: float
) -> None:
    index = metrics.jain(rates)
    assert 1 / len(rates) - 1e-9 <= index <= 1 + 1e-9
    assert metrics.jain([rate * scale for rate in rates]) == pytest.approx(index)


def test_the_interval_of_the_mean_equals_students_interval() -> None:
    # t(0.975, 4) = 2.776; the standard error of 1..5 is sqrt(2.5 / 5).
    assert metrics.t_interval([1, 2, 3, 4, 5]) == pytest.approx(
        (3.0, 3 - 2.776 * math.sqrt(0.5), 3 + 2.776 * math.sqrt(0.5)), abs=1e-3
    )


@given(st.lists(st.floats(0, 100), min_size=6, max_size=60))
def test_the_interval_of_the_median_contains_it(values: list[float]) -> None:
    median, low, high = metrics.median_interval(values)
    assert median == pytest.approx(np.median(values))
    assert min(values) <= low <= median <= high <= max(values)


@pytest.mark.parametrize(
    ("count", "rank"), [(6, 1), (8, 1), (9, 2), (10, 2), (12, 3), (20, 6), (100, 40)]
)
def test_the_interval_of_the_median_is_by_the_published_ranks(count: int, rank: int) -> None:
    # Largest k with P(B(n, 1/2) < k) <= 2.5 %: tables of the sign test.
    _, low, high = metrics.median_interval(range(1, count + 1))
    assert (low, high) == (rank, count + 1 - rank)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
def test_fewer_than_six_values_give_no_interval_of_the_median(count: int) -> None:
    # 1 - 2 / 2**5 is 94 %.
    median, low, high = metrics.median_interval(range(count))
    assert median == (count - 1) / 2
    assert math.isnan(low)
    assert math.isnan(high)


@pytest.mark.parametrize(("count", "coverage"), [(6, 0.969), (10, 0.979), (20, 0.959)])
def test_the_interval_of_the_median_has_its_coverage(count: int, coverage: float) -> None:
    # Exactly 1 - 2 P(B < k), whatever the distribution: here a skewed one, whose median is 1.
    samples = np.random.default_rng(1).lognormal(0, 2, (2000, count))
    intervals = [metrics.median_interval(sample) for sample in samples]
    covered = np.mean([low <= 1 <= high for _, low, high in intervals])
    # The standard error of a share of 0.96 of 2000 is 0.0044.
    assert covered == pytest.approx(coverage, abs=0.013)


def test_seeds_without_flows_do_not_count_in_means() -> None:
    of_seeds = [make_result(fcts, simulated_s=9e9) for fcts in ([1.0], [], [3.0], [5.0], [])]
    runs = [Run({"seed": seed}, result) for seed, result in enumerate(of_seeds)]
    names = {f"FCT {name}": metrics.fct(name) for name in ("mean", "p50")}
    measured = metrics.measure(runs, **names, flows=metrics.flows())
    for median in (False, True):
        mean, p50, flows = metrics.across_seeds(measured, median=median).to_dicts()
        assert (mean["value"], mean["seeds"]) == (3.0, 3)
        assert math.isnan(p50["value"])
        assert (p50["seeds"], flows["seeds"]) == (5, 5)
    met = measured.filter(metric="FCT mean").with_columns(metric=pl.lit("deadlines met"))
    assert metrics.across_seeds(met)["value"].item() == 3.0
    empty = metrics.across_seeds(measured.filter(seed=1, metric="FCT mean"))
    assert math.isnan(empty["value"].item())
    assert empty["seeds"].item() == 1


def test_seeds_are_reduced_to_a_mean_with_bounds() -> None:
    runs = [
        Run({"scheme": scheme, "seed": seed}, make_result([1e-6 * (seed + offset)]))
        for scheme, offset in (("a", 0), ("b", 10))
        for seed in (1, 2, 3)
    ]
    table = metrics.across_seeds(metrics.measure(runs, mean=metrics.slowdown("mean")))
    assert table.columns == ["scheme", "metric", "value", "low", "high", "seeds", "at_least"]
    assert metrics.at(table, scheme="a") == pytest.approx(2.0)
    assert metrics.at(table, scheme="b") == pytest.approx(12.0)
    assert table["seeds"].to_list() == [3, 3]
    assert math.isnan(metrics.at(table, scheme="c"))
    with pytest.raises(ValueError, match="give more labels"):
        metrics.at(table, metric="mean")


def test_intervals_of_positive_ratios_are_those_of_logarithms() -> None:
    labels = {"scheme": ["a"] * 3, "metric": ["ratio"] * 3, "at_least": [False] * 3}
    table = pl.DataFrame(labels | {"seed": [1, 2, 3], "value": [1.0, 2.0, 15.0]})
    (plain,) = metrics.across_seeds(table).to_dicts()
    (ratio,) = metrics.across_seeds(table, ratios=True).to_dicts()
    assert plain["low"] < 0 < ratio["low"] < ratio["value"] == plain["value"]
    assert ratio["value"] / ratio["low"] == pytest.approx(ratio["high"] / ratio["value"])
    assert metrics.across_seeds(table[:2], ratios=True)["low"].is_nan().all()


def test_a_distribution_ends_below_one_if_flows_are_unfinished() -> None:
    runs = [
        Run({"scheme": "a", "seed": 1}, make_result([3e-6, 1e-6])),
        Run({"scheme": "a", "seed": 2}, make_result([2e-6, None])),
    ]
    curve = metrics.cdf(runs)
    assert curve["value"].to_list() == [1e-6, 1e-6, 2e-6, 3e-6]
    assert curve["fraction"].to_list() == [0, 0.25, 0.5, 0.75]


def test_a_distribution_begins_with_the_step_of_its_first_value() -> None:
    one = metrics.cdf([Run({"scheme": "a"}, make_result([3e-6]))])
    assert one.rows() == [("a", 3e-6, 0.0), ("a", 3e-6, 1.0)]
    assert metrics.cdf([Run({"scheme": "a"}, make_result([None]))]).is_empty()


def test_tables_of_the_same_runs_have_labels_of_the_same_types() -> None:
    flows = make_result([1e-6, 2e-6])
    samples = pl.DataFrame({"time_s": [0.0, 1.0], "probe": ["q", "q"], "value": [0.0, 1.0]})
    run = Run({"load": 1, "scheme": "a"}, Result(flows.flows, samples, flows.summary))
    tables = [
        metrics.cdf([run]),
        metrics.in_progress([run]),
        metrics.series([run], "q"),
        metrics.size_curve([run], payload=1000),
    ]
    expected = pl.Schema({"load": pl.Int64, "scheme": pl.String})
    assert [table.select("load", "scheme").schema for table in tables] == [expected] * 4
    assert metrics.cdf([Run({"load": 1}, make_result([None]))]).schema["load"] == pl.Int64


def test_a_thinned_series_keeps_its_peaks() -> None:
    result = make_result([1.0])
    values = [0.0] * 999 + [7.0]
    columns = {"time_s": [i * 1e-6 for i in range(1000)], "probe": ["q"] * 1000, "value": values}
    run = Run({"scheme": "a"}, type(result)(result.flows, pl.DataFrame(columns), result.summary))
    series = metrics.series([run], "q", points=10)
    assert series.height == 10
    assert series["high"].max() == 7.0


def test_an_unknown_statistic_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"statistic .*expected mean, max, or a percentile"):
        metrics.fct("p101")(make_result([1.0]))


def sized(
    flows: Sequence[tuple[int, float | None]], *, simulated_s: float = 1.0, warm_up: str = "0 s"
) -> Result:
    """Create a result with flows of these sizes, in packets of 100 bytes, and these FCTs."""
    result = make_result([fct for _, fct in flows], simulated_s=simulated_s, warm_up=warm_up)
    sizes = pl.Series("size_bytes", [100 * packets for packets, _ in flows])
    return Result(result.flows.with_columns(sizes), result.samples, result.summary)


def test_a_size_curve_pools_seeds_in_bins_between_powers_of_two() -> None:
    runs = [
        Run({"scheme": "a", "seed": 1}, sized([(1, 1.0), (2, 2.0), (3, 4.0)])),
        Run({"scheme": "a", "seed": 2}, sized([(2, 3.0), (4, 5.0)])),
        Run({"scheme": "b", "seed": 1}, sized([(1024, 7.0)])),
    ]
    curve = metrics.size_curve(runs, payload=100, bins_per_octave=1)
    assert curve["scheme"].to_list() == ["a", "a", "a", "b"]
    assert curve["size_lo"].to_list() == [1, 2, 4, 1024]
    assert curve["size_hi"].to_list() == [1, 3, 4, 1024]
    assert curve["flows"].to_list() == [1, 3, 1, 1]
    two = curve.row(1, named=True)
    assert two["size"] == pytest.approx(7 / 3)
    assert (two["mean"], two["max"], two["at_least"]) == (3.0, 3.5, False)
    assert two["stderr"] == pytest.approx(np.std([2, 3, 4], ddof=1) / math.sqrt(3))
    assert math.isnan(curve["stderr"][0])


@given(
    st.lists(st.tuples(st.integers(1, 10**6), TIMES), min_size=1, max_size=50), st.integers(1, 8)
)
def test_a_size_curve_preserves_the_number_and_the_sum_of_fcts(
    flows: list[tuple[int, float]], bins_per_octave: int
) -> None:
    result = sized(flows)
    curve = metrics.size_curve(
        [Run({"scheme": "a"}, result)], payload=100, bins_per_octave=bins_per_octave
    )
    assert curve["flows"].sum() == len(flows)
    assert (curve["mean"] * curve["flows"]).sum() == pytest.approx(sum(fct for _, fct in flows))
    assert curve["max"].max() == max(fct for _, fct in flows)
    assert (curve["size_hi"] / curve["size_lo"]).max() < 2 ** (1 / bins_per_octave) + 1e-6  # type: ignore[operator]
    assert curve["size_lo"].is_sorted()


def test_an_unfinished_flow_makes_its_size_bin_a_lower_bound() -> None:
    result = sized([(1, 0.5), (1, None), (64, 0.5)], simulated_s=10.0)
    curve = metrics.size_curve([Run({"scheme": "a"}, result)], payload=100)
    assert curve["unfinished"].to_list() == [1, 0]
    assert curve["at_least"].to_list() == [True, False]
    assert curve["max"][0] == pytest.approx(10.0 - 1e-3)
    assert curve["mean"][0] == pytest.approx((0.5 + 10.0 - 1e-3) / 2)


def test_a_size_curve_accepts_a_filter_of_flows() -> None:
    result = sized([(1, 0.5), (1, 0.7), (1, 0.9)], warm_up="500 us")
    early = metrics.size_curve(
        [Run({"scheme": "a"}, result)], payload=100, where=pl.col("start_s") < 2e-3
    )
    assert early["mean"].to_list() == [0.7]


def test_flows_in_progress_are_counted_from_the_records() -> None:
    # The flows start at 0, 1 and 2 ms; the second does not finish.
    result = make_result([2.5e-3, None, 1e-3], simulated_s=4e-3)
    counted = metrics.in_progress([Run({"scheme": "a"}, result)], points=8)
    assert counted["time_s"].to_list() == pytest.approx([k * 5e-4 for k in range(1, 9)])
    assert counted["value"].to_list() == [1, 2, 2, 3, 2, 1, 1, 1]


def test_bins_of_flows_in_progress_have_their_mean_and_their_maximum() -> None:
    # The flows start at 0, 1 and 2 ms; the second does not finish.
    result = make_result([2.5e-3, None, 1e-3], simulated_s=4e-3)
    table = metrics.in_progress_in_bins(result, 2)
    assert table["time_s"].to_list() == [0, 2e-3]
    assert table["mean"].to_list() == pytest.approx([1.5, (0.5 * 3 + 0.5 * 2 + 1) / 2])
    assert table["max"].to_list() == [2, 3]
    # A burst of 1 us counts, and a flow that begins when another ends is not beside it.
    burst = metrics.in_progress_in_bins(make_result([1e-3, 1e-6], simulated_s=4e-3), 4)
    assert burst["max"].to_list() == [1, 1, 0, 0]
    assert burst["mean"].to_list() == pytest.approx([1, 1e-3, 0, 0])
    assert metrics.in_progress_in_bins(make_result([], simulated_s=0), 4)["max"].to_list() == [0]


def test_a_series_per_second_is_the_rate_of_a_counter() -> None:
    result = make_result([1.0])
    columns = {"time_s": [1.0, 2.0, 4.0], "probe": ["sent"] * 3, "value": [0.0, 10.0, 10.0]}
    run = Run({"scheme": "a"}, Result(result.flows, pl.DataFrame(columns), result.summary))
    grown = metrics.series([run], "sent", per_second=True)
    # A rate holds from the first of two samples to the second.
    assert grown["time_s"].to_list() == [1.0, 2.0]
    assert grown["value"].to_list() == [10.0, 0.0]


def test_the_counter_of_a_flow_begins_at_its_start() -> None:
    # Flow 1 starts at 1 ms.
    result = make_result([1.0, 1.0])
    probe = "delivered_bytes flow 1"
    columns = {"time_s": [2e-3, 4e-3, 6e-3], "probe": [probe] * 3, "value": [6.0, 10.0, 20.0]}
    run = Run({"scheme": "a"}, Result(result.flows, pl.DataFrame(columns), result.summary))
    grown = metrics.series([run], probe, per_second=True)
    assert grown["time_s"].to_list() == [1e-3, 2e-3, 4e-3]
    assert grown["value"].to_list() == pytest.approx([6e3, 2e3, 5e3])
    (mean,) = metrics.series([run], probe, 1, per_second=True)["value"]
    assert mean == pytest.approx(20 / 5e-3)


def test_spans_of_a_series_have_a_least_duration() -> None:
    result = make_result([1.0])
    times = [float(time) for time in range(12)]
    values = [100.0 * (time // 3) for time in times]
    columns = {"time_s": times, "probe": ["sent"] * 12, "value": values}
    run = Run({"scheme": "a"}, Result(result.flows, pl.DataFrame(columns), result.summary))
    grown = metrics.series([run], "sent", per_second=True, least_s=3.0)
    # The last two of the eleven differences are in the third span.
    assert grown["time_s"].to_list() == [0.0, 3.0, 6.0]
    assert grown["value"].to_list() == pytest.approx([100 / 3, 100 / 3, 20])
    whole = metrics.series([run], "sent", per_second=True, least_s=60.0)
    assert whole["value"].to_list() == pytest.approx([300 / 11])


def test_counters_of_links_are_measured_from_the_warm_up_to_the_last_arrival() -> None:
    # Every millisecond a packet of 1040 B; the last arrives at 199 ms, and takes a millisecond of a
    # link of 10 Mb/s.
    workload = {"kind": "incast", "fan_in": 1, "size": "1000 B", "target": 0, "interval": "1 ms"}
    result = sojourn.run(
        {
            "environment": "paper",
            "topology": {"kind": "star", "hosts": 2, "rate": "10 Mbps"},
            "transport": "dctcp",
            "warm_up": "100 ms",
            "workload": workload | {"events": 200},
        }
    )
    link = metrics.link_counters(result, "switch->host0")
    measured = metrics.measured(link)
    assert (link["packets"], measured["packets"]) == (200, 99)
    # 8320 bits a millisecond of 10 Mb/s.
    assert metrics.utilisation("switch->host0")(result).value == measured["utilisation"]
    assert measured["utilisation"] == pytest.approx(0.832)
    whole = metrics.utilisation("switch->host0", whole_run=True)(result).value
    assert whole == link["utilisation"] < 0.832
    assert measured["queue_max_bytes"] == link["queue_max_bytes"]


@pytest.mark.parametrize(
    ("topology", "largest"),
    [({"kind": "star"}, 30e3), ({"kind": "graph", "hosts": ["b", "switch"]}, 40e3)],
)
def test_the_largest_queue_is_that_of_a_switch_port(
    topology: dict[str, Any], largest: float
) -> None:
    backlogs = {"a->switch": 40e3, "b->switch": 50e3, "switch->a": 20e3, "switch->b": 30e3}
    links = [
        {
            "name": name,
            "utilisation": 0.9 if name == "switch->a" else 0.1,
            "queue_max_bytes": backlog,
        }
        for name, backlog in backlogs.items()
    ]
    result = make_result([1e-6])
    result.summary |= {"links": links, "scenario": {"topology": topology}}
    assert metrics.largest_queue()(result).value == largest
    assert metrics.of_busiest_link("queue_max_bytes")(result).value == 20e3


def test_the_largest_queue_of_a_single_link_is_that_of_its_hosts() -> None:
    result = sojourn.run(SCENARIO | {"topology": {"kind": "link"}})
    backlog = metrics.link_counters(result, "left->right")["queue_max_bytes"]
    assert metrics.largest_queue()(result).value == backlog > 0


def test_a_percentile_of_few_flows_per_seed_has_no_interval() -> None:
    # By nearest rank the p99 of 199 flows is their second largest, and far too large in the mean.
    random = np.random.default_rng(1)
    measures = {
        "flows": metrics.flows(),
        "FCT p50": metrics.fct("p50"),
        "FCT p99": metrics.fct("p99"),
        "FCT mean": metrics.fct("mean"),
    }

    def bounds(flows: int) -> dict[str, bool]:
        made = [
            Run(
                {"scheme": "a", "seed": seed},
                make_result(random.exponential(1e-3, number).tolist()),
            )
            for seed, number in enumerate((flows, 1200, 1200))
        ]
        measured = metrics.measure(made, **measures)
        summary = metrics.across_seeds(measured)
        assert summary["low"].is_finite().all()
        rest = metrics.without_biased(summary, measured, "flows")
        assert rest["value"].equals(summary["value"])
        return dict(zip(rest["metric"], rest["low"].is_finite(), strict=True))

    assert metrics.least_for_interval("p99") == 1000
    assert bounds(999) == {"flows": True, "FCT p50": True, "FCT p99": False, "FCT mean": True}
    assert all(bounds(1000).values())


def test_values_on_edges_of_logarithmic_bins_belong_to_the_bin_above() -> None:
    sizes = pl.DataFrame({"size": [10**power for power in range(1, 10)]})
    assert sizes.select(log_bin("size", 10, 3))["size"].to_list() == list(range(3, 30, 3))
    assert (sizes - 1).select(log_bin("size", 10, 3))["size"].to_list()[2:] == list(range(8, 29, 3))
