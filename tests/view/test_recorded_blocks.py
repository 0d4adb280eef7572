"""Blocks of recorded flows and of series keep losses, and the sums of the run."""

from typing import Any

import polars as pl
import pytest

from sojourn.runs.results import Result
from sojourn.runs.runner import run_many
from sojourn.view import loading, network_blocks, recorded_blocks

LOSSY: dict[str, Any] = {
    "account": True,
    "record": {"flows": [3]},
    "transport": "tcp",
    "queue": {"kind": "drop_tail", "capacity": "15 KB"},
    "topology": {"kind": "dumbbell", "senders": 2, "receivers": 2, "rate": "1 Gbps"},
    "workload": {
        "kind": "poisson",
        "load": 0.7,
        "flows": 100,
        "sizes": {"kind": "fixed", "size": "300 KB"},
    },
}


@pytest.fixture(scope="module")
def result() -> Result:
    return run_many([LOSSY])[0]


def test_thinned_packets_keep_losses_and_copies(result: Result) -> None:
    special = (pl.col("copy") > 1) | pl.col("lost_ps").is_not_null()
    flow = result.packets.filter(special)["flow"].mode()[0]
    packets = result.packets.filter(flow=flow)
    thin = recorded_blocks.thinned(packets, 40)
    assert thin.filter(special).equals(packets.filter(special))
    assert thin.filter(~special).height <= 40
    few = recorded_blocks.thinned(packets, 1)
    assert (
        1 < few.filter(special).height <= recorded_blocks.MOST_LOST < packets.filter(special).height
    )
    assert recorded_blocks.thinned(packets, packets.height).equals(packets)


def test_thinned_packets_keep_a_share_of_each_kind() -> None:
    alternating = pl.DataFrame(
        {
            "kind": ["syn", *("data", "ack") * 500],
            "copy": [1] * 1001,
            "lost_ps": pl.Series([None] * 1001, dtype=pl.UInt64),
        }
    )
    for most in (500, 250, 100):
        counts = dict(recorded_blocks.thinned(alternating, most)["kind"].value_counts().iter_rows())
        assert counts["syn"] == 1
        assert counts["data"] == counts["ack"]
        assert most / 3 < counts["data"] <= most / 2


def test_pieces_of_a_flow_add_up_to_its_completion_time(result: Result) -> None:
    heads, blocks = recorded_blocks.blocks(result, "0", recorded_blocks.MOST_BYTES)
    assert 3 in [head["flow"] for head in heads]
    for head in heads:
        pieces = recorded_blocks.piece_rows(result, head["flow"])
        assert pieces["lasts"].sum() == pytest.approx(head["fct_s"] * 1e9, abs=pieces.height)
        assert f"packets0-{head['flow']}" in blocks
    small = recorded_blocks.blocks(result, "0", 20_000)[1]
    assert sum(map(len, small.values())) < sum(map(len, blocks.values()))


def test_gauges_keep_their_values_in_whole_units(result: Result) -> None:
    flow = result.gauges["flow"][0]
    gauges = result.gauges.filter(flow=flow)
    rows = recorded_blocks.gauge_rows(gauges, 0, 10_000)
    assert rows.height == gauges.height
    for gauge, scale in {"window_bytes": 1, "smoothed_rtt_s": 1e9}.items():
        values = rows.filter(gauge=gauge)["value"].to_numpy()
        expected = gauges.filter(gauge=gauge)["value"].to_numpy() * scale
        assert values == pytest.approx(expected, abs=0.5)
    few = recorded_blocks.gauge_rows(gauges, 0, 5)
    assert few.group_by("gauge").len().filter(pl.col("len") > 5).is_empty()
    # The last value holds until the end of the flow.
    last = pl.col("value").last()
    whole = rows.group_by("gauge", maintain_order=True).agg(last)
    assert few.group_by("gauge", maintain_order=True).agg(last).equals(whole)


def test_merged_series_have_the_counters_of_the_links(result: Result) -> None:
    names = [link["name"] for link in result.summary["links"]]
    numbers = result.series.with_columns(
        pl.col("link").replace_strict(names, list(range(len(names))), return_dtype=pl.Int64)
    )
    whole = result.summary["simulated_s"] / (result.summary["record"]["bin_ps"] / 1e12)
    for factor in (1, 7):
        merged = network_blocks._merged(numbers, factor, whole)
        for place, link in enumerate(result.summary["links"]):
            rows = merged.filter(link=place)
            assert rows["bytes"].sum() == link["bytes"]
            assert rows["drops"].sum() == link["drops"]
            longest = rows.select(pl.col("queue_max_bytes").max()).item() or 0
            assert longest == link["queue_max_bytes"]
    widths, blocks = network_blocks.series(result, "0", network_blocks.MOST_BYTES)
    assert set(blocks) == {f"{name}0" for name in widths}


def test_a_bin_of_a_full_link_has_several_packets() -> None:
    short = {
        "transport": "dctcp",
        "topology": {"kind": "star", "hosts": 2, "rate": "1 Gbps"},
        "workload": {"kind": "flows", "flows": [{"source": 0, "target": 1, "size": "600 KB"}]},
    }
    (result,) = run_many([loading.with_recordings(short, [])])
    packet_s = 1500 * 8 / 1e9
    assert result.summary["record"]["bin_ps"] / 1e12 < 9 * packet_s
    widths, _ = network_blocks.series(result, "0", network_blocks.MOST_BYTES)
    assert min(widths.values()) > 9 * packet_s


def test_the_last_bin_ends_with_the_run() -> None:
    table = pl.DataFrame({"link": [0, 0], "bin": [6, 7], "queue_mean_bytes": [100, 100]})
    others = [pl.lit(0).alias(name) for name in (*network_blocks.SUMS, "queue_max_bytes")]
    merged = network_blocks._merged(table.with_columns(others), 4, 7.25)
    # Bins 4 to 7, of which a quarter of the last one is in the run.
    assert merged["queue_mean_bytes"].to_list() == [round(100 * 1.25 / 3.25)]


def test_the_first_long_lived_of_few_flows_are_recorded() -> None:
    few = {**LOSSY, "record": {"flows": [1]}, "workload": {"kind": "long_lived", "flows": 2}}
    record = loading.with_recordings(few, [])["record"]
    assert record == {"flows": [1, 0]}
    many = {**LOSSY, "workload": LOSSY["workload"] | {"flows": 200}}
    assert loading.with_recordings(many, [7])["record"] == {"flows": [3, 7]}


def test_an_external_stack_is_run_without_a_breakdown() -> None:
    scenario = {**LOSSY, "transport": "quic"}
    del scenario["account"], scenario["record"]
    assert loading.with_recordings(scenario, []) == scenario
    assert "external stack" in loading.refusal(scenario)
    assert not loading.refusal(LOSSY)
