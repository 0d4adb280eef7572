"""Tests of the latency of calls, divided by cause."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import sojourn
from conftest import BREAKDOWN
from sojourn import (
    accounts,
    calls,
    metrics,
    over_seeds,
    plot,
    sweep,
)
from sojourn.analysis.breakdown import PARTS, TOTAL
from sojourn.explain import rpc_plot, tables
from sojourn.show import intervals

RPC = BREAKDOWN | {
    "workload": {
        "kind": "rpc",
        "request": {"kind": "fixed", "size": "64 KB"},
        "response": {"kind": "uniform", "min": "1 B", "max": "10 KB"},
        "service": "20 us",
        "pattern": {"outstanding": 2, "calls": 60},
    }
}


def test_parts_of_a_call_add_up_to_its_latency() -> None:
    result = sojourn.run(RPC)
    answered = accounts.of_calls(result)
    # Calls that begin after the first caller has made its part of them do not count.
    assert 30 < answered.height <= 60
    legs = [f"{leg}: {part}" for leg in ("request", "response") for part in PARTS]
    error = answered.select(pl.sum_horizontal(*legs, "server") - pl.col("latency_s")).to_series()
    assert float(error.abs().max()) < 1e-12  # type: ignore[arg-type]
    assert answered["server"].to_list() == pytest.approx([20e-6] * answered.height, abs=1e-12)
    requests = result.flows.join(answered, left_on="flow", right_on="request", how="semi")
    assert answered["request_s"].equals(requests["fct_s"], check_names=False)


def test_server_time_of_a_storage_server_is_the_device_time() -> None:
    workload = {
        "kind": "storage",
        "blocks": {"kind": "fixed", "size": "1 KB"},
        "device_time": "100 us",
        "pattern": {"outstanding": 1, "calls": 600},
    }
    one_client = {"topology": {**BREAKDOWN["topology"], "senders": 1}}
    result = sojourn.run(BREAKDOWN | one_client | {"workload": workload})
    answered = accounts.of_calls(result)
    assert set(answered["kind"]) == {"read", "write"}
    # With one outstanding request the device is never busy at an arrival.
    assert answered["server"].mean() == pytest.approx(100e-6, rel=0.15)
    assert answered["server"].std() == pytest.approx(100e-6, rel=0.2)
    assert set(accounts.of_calls(result, "read")["kind"]) == {"read"}


def test_calls_of_mixed_workloads_have_parts_and_unanswered_calls_are_excluded() -> None:
    poisson = {**BREAKDOWN["workload"], "load": 0.1, "flows": 20}
    parts = [RPC["workload"], poisson, {**RPC["workload"], "class": "other"}]
    mixed = {"workload": {"kind": "mixed", "parts": parts}, "time_limit": "10 ms"}
    result = sojourn.run(RPC | mixed)
    answered = accounts.of_calls(result)
    assert set(answered["kind"]) == {"rpc", "other"}
    assert answered.height == result.flows["latency_s"].count()
    assert answered["server"].to_list() == pytest.approx([20e-6] * answered.height, abs=1e-12)
    unanswered = result.flows.filter(pl.col("class").str.ends_with("request")).height
    assert answered.height < unanswered


def test_a_server_without_service_time_takes_no_time() -> None:
    workload = {**RPC["workload"], "service": "0 s"}
    assert set(accounts.of_calls(sojourn.run(RPC | {"workload": workload}))["server"]) == {0.0}


def test_means_of_calls_are_the_sums_of_means_of_their_legs(breakdowns: list[sojourn.Run]) -> None:
    assert accounts.by_call(breakdowns).is_empty(), "no calls"
    rpc_runs = sweep(over_seeds([({}, RPC)], 2))
    table = accounts.by_call(rpc_runs)

    def mean(leg: str, metric: str) -> float:
        return metrics.at(table, kind="rpc", leg=leg, metric=metric)

    latency = [calls.calls(run.result)["latency_s"].mean() for run in rpc_runs]
    assert mean("call", TOTAL) == pytest.approx(sum(latency) / 2)  # type: ignore[arg-type]
    assert sum(mean(leg, TOTAL) for leg in accounts.LEGS) == pytest.approx(mean("call", TOTAL))
    assert mean("server", TOTAL) == pytest.approx(20e-6)
    parts = sum(mean("call", part) for part in PARTS)
    assert parts == pytest.approx(mean("call", TOTAL) - mean("server", TOTAL))
    lines = tables.call_sentences(rpc_runs, [])
    share = mean("request", TOTAL) / mean("call", TOTAL)
    assert lines[0].startswith(f"rpc calls: {100 * share:.0f} % the request, ")


def test_the_cause_of_a_latency_is_a_part_of_the_excess_over_the_ideal_fcts() -> None:
    rpc_runs = sweep(over_seeds([({}, RPC)], 2))
    table = accounts.by_call(rpc_runs, excess=True)
    legs = ("request", "response")
    means = {
        (leg, name): metrics.at(table, leg=leg, metric=name)
        for leg in legs
        for name in (TOTAL, accounts.ALONE, *PARTS)
    }
    for leg in legs:
        excess = means[leg, TOTAL] - means[leg, accounts.ALONE]
        assert sum(means[leg, part] for part in PARTS) == pytest.approx(excess)
    excess = sum(means[leg, TOTAL] - means[leg, accounts.ALONE] for leg in legs)
    largest = max(means[leg, part] for leg in legs for part in PARTS)
    (line,) = tables.call_sentences(rpc_runs, [])
    assert f"; {100 * largest / excess:.0f} % of the excess over the ideal FCTs is " in line


def test_the_transmission_of_a_request_in_an_idle_network_is_no_cause() -> None:
    one_call = {**RPC["workload"], "pattern": {"outstanding": 1, "calls": 1}}
    one_pair = {**BREAKDOWN["topology"], "senders": 1, "receivers": 1}
    idle = RPC | {"workload": one_call, "topology": one_pair}
    (line,) = tables.call_sentences(sweep(over_seeds([({}, idle)], 1)), [])
    assert line.endswith("; request and response are near the ideal FCT")


def test_bars_of_a_call_extend_from_the_request_to_the_end_of_the_response(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds = ("dctcp", "timely")
    rpc_runs = sweep(
        over_seeds([({"transport": kind}, RPC | {"transport": kind}) for kind in kinds], 1)
    )
    table = accounts.by_call(rpc_runs)
    pictures: list[Any] = []
    monkeypatch.setattr(plot, "save", lambda picture, *_: pictures.append(picture))
    rpc_plot.draw(table, ["transport"], intervals.format_duration, tmp_path / "calls")
    (panel,) = pictures[0].axes
    assert panel.get_xlabel().endswith("(ms)")
    spans: dict[float, list[float]] = {}
    for bar in panel.patches:
        ends = bar.get_x(), bar.get_x() + bar.get_width()
        spans.setdefault(round(bar.get_y(), 6), []).extend(ends)
    legs = [(min(ends), max(ends)) for _, ends in sorted(spans.items())]
    texts = {text.get_text() for text in panel.texts}
    for kind, (request, server, response) in zip(kinds, (legs[:3], legs[3:]), strict=True):
        totals = table.filter(transport=kind, metric=TOTAL)
        latency = 1e3 * metrics.at(totals, leg="call")
        assert request[0] == 0
        assert (request[1], response[0]) == pytest.approx(server, abs=0.01 * latency)
        assert response[1] == pytest.approx(latency, rel=0.01)
        times = {row["leg"]: intervals.format_duration(row) for row in totals.to_dicts()}
        assert {f"{leg} {times[leg]}" for leg in accounts.LEGS} <= texts
    colours = {bar.get_facecolor() for bar in panel.patches}
    (legend,) = pictures[0].legends
    assert {bar.get_facecolor() for bar in legend.get_patches()} == colours
