"""Tests of RPC metrics: latency of answered and unanswered calls, payload, pauses."""

import re
from typing import Any

import numpy as np
import polars as pl
import pytest

import sojourn
from sojourn import Run, ScenarioError, calls, metrics, steady
from sojourn.analysis import rpc
from sojourn.runs.results import Result
from sojourn.show.console import console
from sojourn.show.result import result_tables


def made(rows: list[dict[str, Any]], **summary: Any) -> Result:
    """Create the result of a run of 1 s with flows of 1000 bytes that take 0.1 s."""
    usual = {"fct_s": 0.1, "latency_s": None, "size_bytes": 1000, "delivered_bytes": 1000}
    schema = {name: pl.Float64 for name in ("start_s", "fct_s", "latency_s")}
    flows = pl.DataFrame([usual | row for row in rows], schema_overrides=schema)
    scenario = {"warm_up": "0 s", "workload": {"kind": "rpc"}}
    return Result(flows, pl.DataFrame(), {"simulated_s": 1.0, "scenario": scenario} | summary)


def request(number: int, start: float, name: str = "rpc", **more: Any) -> dict[str, Any]:
    return {"flow": number, "start_s": start, "class": f"{name} request", **more}


def response(number: int, start: float, name: str = "rpc", **more: Any) -> dict[str, Any]:
    return {"flow": number, "start_s": start, "class": f"{name} response", **more}


READ_AND_WRITE = [
    request(0, 0.1, "read", size_bytes=200),
    response(1, 0.2, "read", latency_s=0.2),
    request(2, 0.5, "write"),
    response(3, 0.6, "write", latency_s=0.4, size_bytes=64),
]


def test_a_call_consists_of_its_request_and_its_response() -> None:
    table = calls.calls(made(READ_AND_WRITE))
    assert table.sort("start_s").to_dicts() == [
        {"start_s": 0.1, "latency_s": 0.2, "kind": "read", "size_bytes": 1200},
        {"start_s": 0.5, "latency_s": 0.4, "kind": "write", "size_bytes": 1064},
    ]


def test_latency_is_measured_for_the_given_kind_of_calls() -> None:
    result = made(READ_AND_WRITE)
    value, at_least = calls.latency("mean")(result)
    assert value == pytest.approx(0.3)
    assert not at_least
    assert calls.latency("mean", "write")(result) == (0.4, False)
    assert np.isnan(calls.latency("p99", "open")(result).value)


def test_an_unanswered_call_counts_with_its_waiting_time() -> None:
    waiting = request(4, 0.3)
    being_answered = [request(6, 0.4), response(7, 0.5, fct_s=None)]
    answered = [request(0, 0.1), response(1, 0.2, latency_s=0.2)]
    result = made([waiting, *being_answered, *answered])
    value, at_least = calls.latency("mean")(result)
    assert value == pytest.approx((0.7 + 0.6 + 0.2) / 3)
    assert at_least
    value, at_least = calls.latency("max")(result)
    assert value == pytest.approx(0.7)
    assert at_least
    table = calls.latency_cdf([Run({"scheme": "a"}, result)])
    assert table.rows() == [("a", 0.2, 0.0), ("a", 0.2, pytest.approx(1 / 3))]


def test_calls_that_began_during_the_warm_up_are_excluded() -> None:
    scenario = {"warm_up": "300 ms", "workload": {"kind": "storage"}}
    assert calls.latency("mean")(made(READ_AND_WRITE, scenario=scenario)) == (0.4, False)


def test_calls_of_mixed_workloads_keep_their_flow_numbers() -> None:
    rows = [request(0, 0.1), {"flow": 1, "start_s": 0.1, "class": "incast"}]
    rows.append(response(2, 0.2, latency_s=0.2))
    scenario = {"warm_up": "0 s", "workload": {"kind": "mixed", "parts": [{}, {}]}}
    assert calls.latency("max")(made(rows, scenario=scenario)) == (0.2, False)


def test_delivered_payload_counts_within_the_measured_interval() -> None:
    before_half = {"flow": 0, "start_s": 0.15, "class": "a"}
    within = {"flow": 1, "start_s": 0.5, "class": "a"}
    to_the_end = {"flow": 2, "start_s": 0.5, "class": "b", "fct_s": None}
    untouched = {"flow": 3, "start_s": 0.9, "class": "b", "fct_s": None, "delivered_bytes": 0}
    scenario = {"warm_up": "200 ms", "workload": {"kind": "poisson"}}
    result = made([before_half, within, to_the_end, untouched], scenario=scenario)
    assert calls.delivered()(result).value == pytest.approx(8 * 2500 / 0.8)
    assert calls.delivered("a")(result).value == pytest.approx(8 * 1500 / 0.8)
    assert calls.delivered("b", until_s=0.6)(result).value == pytest.approx(8 * 200 / 0.4)


def test_pauses_are_a_share_of_the_run_over_the_named_links() -> None:
    names = {"host0->edge0_0": 0.2, "host1->edge0_0": 0.0, "edge0_0->host0": 1.0}
    links = [{"name": name, "paused_s": paused} for name, paused in names.items()]
    result = made([request(0, 0.1)], links=links, simulated_s=2.0)
    assert calls.paused("host")(result).value == pytest.approx(0.05)
    with pytest.raises(ValueError, match="links 'core': no link"):
        calls.paused("core")(result)


def test_rtts_are_measured_for_the_given_class() -> None:
    def of_class(name: str, rtt: float) -> dict[str, Any]:
        return {"class": name, "lower_s": [rtt], "upper_s": [rtt], "count": [2]}

    rtts = [of_class("rpc request", 1e-3), of_class("incast", 3e-3)]
    result = made([request(0, 0.1)], rtts=rtts)
    assert steady.rtt("mean")(result).value == pytest.approx(2e-3)
    assert steady.rtt("p99", of="incast", less_s=1e-3)(result).value == pytest.approx(2e-3)
    table = steady.rtt_cdf([Run({}, result)], of="rpc")
    assert table.rows() == [(1e-3, 0.0), (1e-3, 1.0)]


@pytest.mark.parametrize("fidelity", ["packets", {"kind": "sample", "hosts": 64, "samples": 3}])
def test_calls_of_nested_mixes_have_latencies(fidelity: Any) -> None:
    size = {"kind": "fixed", "size": "2 KB"}
    flows = {"kind": "poisson", "load": 0.1, "flows": 40, "sizes": size}
    pattern = {"load": 0.1, "calls": 30}
    one, other = (
        {"kind": "rpc", "request": size, "response": size, "pattern": pattern, "class": name}
        for name in ("one", "other")
    )
    inner = {"kind": "mixed", "parts": [flows, one, flows]}
    scenario = {
        **{"topology": {"kind": "leaf_spine", "leaves": 8}, "transport": "dctcp"},
        **{"workload": {"kind": "mixed", "parts": [other, inner]}, "fidelity": fidelity},
    }
    table = calls.calls(sojourn.run(scenario))
    answered = table.drop_nulls("latency_s")["kind"].value_counts().sort("kind")
    assert answered["kind"].to_list() == ["one", "other"]
    assert (answered["count"] >= 30).all()
    assert table["latency_s"].null_count() == 0


def test_calls_after_the_first_caller_has_made_its_part_are_not_measured() -> None:
    # Two callers have RTTs of about 2 and 100 ms, so that 49 of 50 calls are those of the first.
    rows = "from,to,rate,delay\nnear,sw,1 Gbps,1 ms\nfar,sw,1 Gbps,50 ms\nsw,server,1 Gbps,1 us\n"
    network = {"name": "graph.csv", "text": rows}
    fixed = {"kind": "fixed", "size": "1 KB"}
    pattern = {"outstanding": 1, "calls": 2000}
    hosts = {"hosts": ["near", "far", "server"], "senders": 2}
    scenario = {
        "topology": {"kind": "graph", "file": network, **hosts},
        "transport": {"kind": "constant_rate", "rate": "1 Gbps"},
        "environment": "paper",
        "workload": {"kind": "rpc", "request": fixed, "response": fixed, "pattern": pattern},
        "time_limit": "200 s",
    }
    result = sojourn.run(scenario)
    assert calls.latency("mean")(result).value == pytest.approx(4e-3, rel=0.1)
    assert metrics.fct("mean")(result).value == pytest.approx(2e-3, rel=0.1)
    with console.capture() as capture:
        console.print(result_tables(result), width=200)
    left_out = re.search(r"are not measured \(([0-9,]+) flows\)", capture.get())
    assert left_out
    assert int(left_out[1].replace(",", "")) == pytest.approx(1958, abs=4)


def test_calls_need_the_records_of_all_flows() -> None:
    sizes = {"kind": "fixed", "size": "1 KB"}
    calls = {"kind": "rpc", "request": sizes, "response": sizes}
    workload = calls | {"pattern": {"load": 0.3, "calls": 200}}
    scenario = {"topology": {"kind": "star", "hosts": 4}, "workload": workload}
    result = sojourn.run(scenario | {"transport": "dctcp", "flows_per_record": 4})
    assert rpc.kinds(result) == []
    with console.capture() as capture:
        console.print(result_tables(result))
    assert "latencies of calls: flows_per_record must be 1, not 4" in capture.get()
    with pytest.raises(ScenarioError, match="latency: flows_per_record must be 1"):
        rpc.latency("p50")(result)
