"""Tests of the measures of PCP's figures and of the score of its parameter sweep."""

import importlib
from types import ModuleType

import polars as pl
import pytest

from sojourn import Result, Run, metrics, override, run


def module(name: str) -> ModuleType:
    """Import a module of the figures."""
    return importlib.import_module(f"sojourn.experiments.pcp_nsdi06.{name}")


@pytest.mark.parametrize("rtt_s", [0.005, 0.025, 0.1])
def test_the_ideal_fct_is_one_and_a_half_rtts_and_the_transmission_time(rtt_s: float) -> None:
    paper = module("paper")
    network = paper.Setting(rtt_s=rtt_s).network()
    flows = [{"source": i, "target": 100 + i, "start": f"{i} s", "size": "242 KB"} for i in (0, 1)]
    change = {"workload": {"kind": "flows", "flows": flows}, "time_limit": "5 s"}
    result = run(override(network, change, paper.ideals[paper.SHARING]))
    (shaken,) = paper.with_handshake([Run({"scheme": paper.SHARING}, result)])
    rtts = (shaken.result.flows["fct_s"] - 0.05) / rtt_s / 1.5
    # RTTs are drawn from 0.6 to 1.4 times the mean, and the two flows differ.
    assert rtts.is_between(0.6, 1.41).all()
    assert rtts[0] != pytest.approx(rtts[1], rel=0.01)


def test_the_drop_rate_is_drops_divided_by_arrivals() -> None:
    paper = module("paper")
    scenario = paper.Setting(load=0.9).scenario({"warm_up": 20, "measured": 40})
    result = run(override(scenario, paper.schemes[paper.TCP]))
    counters = metrics.link_counters(result, paper.LINK_NAME)
    drops, sent = counters["drops"], counters["packets"]
    assert paper.dropped(result).value == pytest.approx(drops / (sent + drops))
    assert drops > 0


def test_the_sweep_ranks_feasible_settings_by_slowdown() -> None:
    sweep = module("sweep")
    measures = {
        "fast but lossy": (1.5, 0.002, 0.3),
        "fast but starved": (1.6, 0.001, 0.05),
        "good": (1.7, 0.001, 0.1),
        "slow": (1.8, 0.0, 0.5),
        "slower than TCP": (2.1, 0.0, 0.5),
        sweep.SHARING: (1.0, float("nan"), 0.0),
        sweep.TCP: (2.0, 0.02, 0.0),
    }
    rows = [
        {"scheme": scheme, "load": load, "metric": metric, "value": number}
        for scheme, (slower, loss, _) in measures.items()
        for load in sweep.LOADS
        # Losses at the highest load do not count.
        for metric, number in ((sweep.MEAN, slower), (sweep.LOSS, loss if load < 0.9 else 0.1))
    ]
    least = [{"scheme": name, "pcp": share, "tcp": 0.5} for name, (_, _, share) in measures.items()]
    heavy = pl.DataFrame({"scheme": list(measures), "heavy": 0.003})
    judged = sweep.score(pl.DataFrame(rows), pl.DataFrame(least), heavy)
    expected = ["good", "slow", "fast but lossy", "fast but starved", "slower than TCP"]
    assert judged["scheme"].to_list() == expected
    assert judged["feasible"].to_list() == [True, True, False, False, False]
    assert judged["slower"].to_list() == pytest.approx([1.7, 1.8, 1.5, 1.6, 2.1])


def test_criteria_of_the_sweep_are_claims_of_our_own() -> None:
    figure = module("e1_load").figure
    own = [claim.statement for claim in figure.claims if claim.kind == "own"]
    assert own[:2] == [
        "mean completion time: that of PCP is at most that of TCP, at every load",
        "PCP loses almost nothing (0.1 % of its packets) at every load",
    ]


def test_early_losses_are_those_of_the_round_trip_after_a_flows_own_jump() -> None:
    e4 = module("e4_synchronised")
    packet_bits = 8 * e4.PACKET
    milliseconds = 10**9
    # The first flow jumps at 50 ms, the second at 80 ms; RTTs without a queue are 20 ms.
    gauges = [
        {"flow": flow, "time_ps": at * milliseconds, "gauge": gauge, "value": value}
        for flow, jump in ((0, 50), (1, 80))
        for at, gauge, value in (
            (20, "smoothed_rtt_s", 0.02),
            (30, "rate_bps", packet_bits / 0.02),
            (jump, "rate_bps", 40e6),
            (jump + 30, "rate_bps", 50e6),
        )
    ]
    # The first ACKs of packets sent after the jumps arrive at 85 and 120 ms.
    sent = [
        (0, 40, 60, None),
        (0, 45, None, 55),
        (0, 50, None, 60),
        (0, 60, 75, None),
        (0, 84, None, 90),
        (0, 86, None, 92),
        (1, 70, None, 75),
        (1, 80, 110, None),
        (1, 119, None, 125),
        (1, 121, None, 130),
    ]
    packets = [
        {"flow": flow, "kind": "data", "sent_ps": at, "arrived_ps": arrived, "lost_ps": lost}
        for flow, at, arrived, lost in sent
    ] + [
        {"flow": flow, "kind": "ack", "sent_ps": at, "arrived_ps": at + 10, "lost_ps": None}
        for flow, _, at, _ in sent
        if at
    ]
    times = pl.col("sent_ps", "arrived_ps", "lost_ps") * milliseconds
    tables = {
        "packets.parquet": pl.DataFrame(packets).with_columns(times),
        "gauges.parquet": pl.DataFrame(gauges),
    }
    result = Result(pl.DataFrame(), pl.DataFrame(), {}, tables)
    assert e4.lost(result).value == 7
    assert e4.lost_early(result).value == 3


def test_the_candidates_of_a_sweep_are_distinct() -> None:
    sweep = module("sweep")
    assert [len(change) for change in sweep.candidates("one")][:3] == [0, 1, 1]
    for kind in ("one", "grid", "back"):
        settings = sweep.candidates(kind)
        assert len({sweep.setting_name(change) for change in settings}) == len(settings)
