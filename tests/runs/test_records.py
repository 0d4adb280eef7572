"""Recorded tables: types, consistency with the flow records, and storage."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import sojourn
from sojourn.runs import result_tables

LOSSY: dict[str, Any] = {
    "environment": "paper",
    "topology": {"kind": "dumbbell", "senders": 4, "receivers": 4},
    "transport": "tcp",
    "queue": {"kind": "drop_tail", "capacity": "20 KB"},
    "workload": {
        "kind": "poisson",
        "load": 0.9,
        "flows": 30,
        "sizes": {"kind": "fixed", "size": "200 KB"},
    },
    "time_limit": "30 s",
    "account": True,
    "record": {"share": 1.0, "flows": [3], "hops": ["left->right"]},
}


@pytest.fixture(scope="module")
def lossy() -> sojourn.Result:
    return sojourn.run(LOSSY)


def test_tables_have_the_documented_types(lossy: sojourn.Result) -> None:
    for name in (
        result_tables.PACKETS,
        result_tables.GAUGES,
        result_tables.SERIES,
        result_tables.HOPS,
    ):
        table = lossy._table(name)
        assert not table.is_empty(), name
        assert dict(table.schema) == result_tables.EMPTY_SCHEMAS[name], name


def test_a_credit_without_a_segment_has_no_number() -> None:
    lone = {
        "topology": {"kind": "star", "hosts": 2},
        "transport": "expresspass",
        "workload": {"kind": "flows", "flows": [{"source": 0, "target": 1, "size": "20 KB"}]},
        "account": True,
        "record": {"flows": [0]},
    }
    packets = sojourn.run(lone).packets
    nulls = packets.group_by("kind").agg(nulls=pl.col("number").null_count(), sent=pl.len())
    sent = {kind: (nulls, sent) for kind, nulls, sent in nulls.rows()}
    assert sent["credit"][0] == sent["credit"][1] > 10
    assert all(nulls == 0 for kind, (nulls, _) in sent.items() if kind != "credit")


def test_packets_agree_with_flow_records(lossy: sojourn.Result) -> None:
    packets = lossy.packets
    by_flow = packets.group_by("flow").agg(
        retransmits=((pl.col("kind") == "data") & (pl.col("copy") > 1)).sum(),
        lost_packets=pl.col("lost_ps").is_not_null().sum(),
        rows=pl.len(),
    )
    columns = ["flow", "retransmits", "lost_packets"]
    expected = lossy.flows.join(by_flow, on="flow", how="semi").select(columns)
    assert_frame_equal(by_flow.select(columns).sort("flow"), expected)
    assert set(packets["lost_at"].drop_nulls()) == {"left->right"}
    assert set(packets["lost_why"].drop_nulls()) == {"queue"}
    assert set(packets["because"]) == {"none", "gap", "timeout"}
    kept = {flow["flow"]: flow for flow in lossy.summary["record"]["flows"]}
    assert kept[3]["why"] == "named"
    assert kept[3]["forward"][1:2] == ["left->right"]
    assert {flow: kept[flow]["packets"] for flow in kept} == dict(
        by_flow.select("flow", "rows").iter_rows()
    )
    assert set(lossy.chain["flow"]) == set(kept)


def test_series_add_up_to_the_counters_of_links(lossy: sojourn.Result) -> None:
    sums = lossy.series.group_by("link").agg(pl.col("bytes", "drops").sum())
    expected = {
        link["name"]: (link["bytes"], link["drops"])
        for link in lossy.summary["links"]
        if link["bytes"]
    }
    assert {link: counts for link, *counts in sums.iter_rows()} == {
        link: list(counts) for link, counts in expected.items()
    }


def test_records_are_stored_and_selected_with_flows(lossy: sojourn.Result, tmp_path: Path) -> None:
    stored = sojourn.Result.read(lossy.write(tmp_path / "result"))
    for name in ("packets", "gauges", "series", "hops"):
        assert_frame_equal(getattr(stored, name), getattr(lossy, name))
    one = stored.with_flows(stored.flows.filter(pl.col("flow") == 3))
    assert set(one.packets["flow"]) == set(one.gauges["flow"]) == {3}
    assert_frame_equal(one.series, lossy.series)


def test_without_records_the_tables_are_empty_and_flows_the_same(lossy: sojourn.Result) -> None:
    plain = sojourn.run({**LOSSY, "account": False, "record": None})
    assert_frame_equal(plain.flows, lossy.flows)
    assert plain.packets.is_empty()
    assert "record" not in plain.summary


def test_an_ideal_records_nothing() -> None:
    ideal = sojourn.run({**LOSSY, "model": "srpt", "transport": None})
    assert ideal.series.is_empty()
    assert "record" not in ideal.summary
