"""Tests of the estimated cost of figures."""

import json
from pathlib import Path

import pytest

import sojourn
from conftest import EXPERIMENTS
from sojourn import _core, cli, sweep
from sojourn.figures import discovery, plan
from sojourn.scenario.encoding import encode

FIGURE = discovery.discover(EXPERIMENTS)["t1"]


def test_a_plan_counts_all_runs_and_cached_runs(tmp_path: Path) -> None:
    (before,) = plan.plan_figures([FIGURE], "smoke", tmp_path)
    assert (before.runs, before.cached) == (8, 0)
    runs = sweep(FIGURE.plan("smoke")[:2], cache=tmp_path)
    (after,) = plan.plan_figures([FIGURE], "smoke", tmp_path)
    assert (after.runs, after.cached) == (8, 2)
    hops = [sum(run.result.summary["counts"]["packet_hops"].values()) for run in runs]
    expected = before.packet_hops - after.packet_hops
    assert expected == pytest.approx(sum(hops), rel=0.5), "an estimate, not a count"


def test_the_estimate_of_long_lived_flows_is_bounded_by_the_receiver() -> None:
    rows = "".join(f"h{number},switch,10 Gbps,1 us\n" for number in range(5))
    file = {"name": "net.csv", "text": f"from,to,rate,delay\n{rows}"}
    hosts = [f"h{number}" for number in range(5)]
    scenario = {
        "topology": {"kind": "graph", "file": file, "hosts": hosts, "senders": 4},
        "workload": {"kind": "long_lived"},
        "transport": "dctcp",
        "time_limit": "5 ms",
    }
    hops = sum(sojourn.run(scenario).summary["counts"]["packet_hops"].values())
    estimate = json.loads(_core.prepare(*encode(scenario)).estimate())
    assert estimate["packet_hops"] == pytest.approx(hops, rel=0.2)


def test_the_breakdown_costs_time_but_no_packet_hops(monkeypatch: pytest.MonkeyPatch) -> None:
    (plain,) = plan.plan_figures([FIGURE], "smoke", None)
    runs = [(labels, {**run, "account": True}) for labels, run in FIGURE.plan("smoke")]
    monkeypatch.setattr(FIGURE, "plan", lambda scale: runs)
    (breakdown,) = plan.plan_figures([FIGURE], "smoke", None)
    assert breakdown.packet_hops == plain.packet_hops == plain.cost
    assert breakdown.cost == pytest.approx(plan.BREAKDOWN_COST * plain.cost)


def test_a_shared_run_counts_once() -> None:
    first, second = plan.plan_figures([FIGURE, FIGURE], "smoke", None)
    assert first.packet_hops > 0
    assert second.packet_hops == 0


def test_a_plan_makes_no_figure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.invoke(["figure", "a2", "--scale", "paper", "--plan"]) == 0
    printed = capsys.readouterr().out
    assert "a2" in printed
    assert "CPU time" in printed
    assert not list(tmp_path.iterdir())
