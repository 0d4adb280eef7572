"""Blocks of flows: their causes, their statistics, and samples of many."""

from typing import Any

import polars as pl
import pytest

from sojourn.analysis import breakdown, metrics
from sojourn.analysis.breakdown import PARTS
from sojourn.runs.results import Result, Run
from sojourn.runs.runner import run_many
from sojourn.view import flow_blocks, page

SIZES = {"kind": "empirical", "table": "web_search"}

SCENARIO: dict[str, Any] = {
    "account": True,
    "transport": "dctcp",
    "topology": {"kind": "dumbbell", "rate": "10 Gbps", "delay": "1 us"},
    "workload": {"kind": "poisson", "load": 0.7, "flows": 300, "sizes": SIZES},
}


@pytest.fixture(scope="module")
def result() -> Result:
    return run_many([SCENARIO])[0]


def test_rows_have_the_parts_and_the_main_cause_of_each_flow(result: Result) -> None:
    rows = flow_blocks.rows(result)
    divided = breakdown.divided(result).sort("start_s", "flow")
    assert rows["flow"].equals(divided["flow"])
    sums = rows.select(pl.sum_horizontal(*PARTS)).to_series().to_numpy()
    assert abs(sums - flow_blocks.SHARE_STEPS).max() <= len(PARTS)
    excess = breakdown.divided(result, excess=True).sort("start_s", "flow")
    for row, flow in zip(rows.to_dicts(), excess.to_dicts(), strict=True):
        if row["slowdown"] < breakdown.NEAR_IDEAL:
            assert row["cause"] == len(PARTS)
        else:
            assert list(PARTS)[row["cause"]] == max(PARTS, key=lambda part: flow[part])


def test_parts_of_groups_add_up_to_the_mean_slowdown(result: Result) -> None:
    groups = flow_blocks.groups(result)
    expected = metrics.by_size(result, "slowdown", statistics=["mean"]).filter(pl.col("flows") > 0)
    assert [group["name"] for group in groups] == expected["size"].to_list()
    for group, mean in zip(groups, expected["mean"], strict=True):
        assert sum(group["parts"]) == pytest.approx(mean)
        assert group["finished"] == pytest.approx(mean)
        assert group["values"]["mean"] == pytest.approx(mean)


def test_a_sample_keeps_the_slowest_and_counts_every_flow(result: Result) -> None:
    rows = flow_blocks.rows(result)
    sample, weight = flow_blocks.sample(rows, 100)
    assert sample.height == 100
    slow = sample.filter("is_slow").height
    assert slow + weight * (100 - slow) == pytest.approx(rows.height)
    assert rows["slowdown"].max() in sample["slowdown"]
    assert flow_blocks.sample(rows, 300)[1] == 1
    assert flow_blocks.sample(rows, None)[0].height == rows.height
    for most in (1, 2, 5, 20):
        sample, weight = flow_blocks.sample(rows, most)
        assert sample.height == most
        slow = sample.filter("is_slow").height
        assert slow + weight * (most - slow) == pytest.approx(rows.height)


def test_the_density_counts_every_flow_in_its_cell(result: Result) -> None:
    rows = flow_blocks.rows(result)
    grid, cells = flow_blocks.density(rows)
    logs = rows["size_bytes"].log10()
    assert grid["x"] == [logs.min(), logs.max()]
    assert cells["count"].sum() == rows.height
    assert cells["cell"].is_sorted()
    assert cells["cell"].is_unique().all()
    assert cells["cell"].is_between(0, grid["across"] * grid["down"] - 1).all()
    slowest = rows.sort("slowdown").row(-1, named=True)
    # The first row of cells has the slowest flow.
    first = cells.row(0, named=True)
    assert first["cell"] < grid["across"]
    assert first["cause"] == slowest["cause"]


def test_a_page_of_a_hundred_thousand_flows_has_at_most_3_mb() -> None:
    # Takes some seconds, since the size depends on how much real flows have in common.
    sizes = {"kind": "bounded_pareto", "shape": 1.1, "min": "1 KB", "max": "100 KB"}
    workload = SCENARIO["workload"] | {"flows": 110_000, "sizes": sizes}
    (result,) = run_many([SCENARIO | {"workload": workload, "record": {}}])
    text = page.render([Run({"scheme": "dctcp"}, result)], source="many.toml")
    assert page.MOST_FLOWS == 100_000
    assert 1_500_000 < len(text) < 3_000_000


def test_unfinished_flows_have_no_cause() -> None:
    (result,) = run_many([SCENARIO | {"time_limit": "2 ms"}])
    rows = flow_blocks.rows(result)
    unfinished = rows.filter(outcome="unfinished")
    assert not unfinished.is_empty()
    assert unfinished["cause"].unique().to_list() == [len(PARTS) + 1]


def test_runs_without_breakdown_and_ideals_have_rows() -> None:
    plain, ideal = run_many([SCENARIO | {"account": False}, SCENARIO | {"model": "srpt"}])
    assert flow_blocks.rows(plain)["cause"].unique().to_list() == [len(PARTS) + 1]
    assert "parts" not in flow_blocks.groups(plain)[0]
    assert "parts" in flow_blocks.groups(ideal)[0]
