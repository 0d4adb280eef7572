"""Tests of fluid models: results, errors, and agreement with packet simulations."""

from collections.abc import Mapping
from typing import Any

import polars as pl
import pytest

import sojourn
from sojourn import Fluid, Result, ScenarioError, fluid, override

MIDDLE = "left->right"


def test_a_fluid_model_returns_samples_fixed_point_and_margins() -> None:
    solution = fluid({"model": "dcqcn", "capacity": "40 Gbps", "duration": "50 ms"})
    assert solution.samples.schema == {
        "time_s": pl.Float64,
        "probe": pl.String,
        "value": pl.Float64,
    }
    probes = set(solution.samples["probe"])
    assert probes >= {"queue_bytes", "rate_bps flow 0", "target_bps flow 1", "alpha flow 1"}
    assert solution.fixed_point is not None
    assert solution.fixed_point["rate_bps"] == pytest.approx(20e9)
    assert solution.mean("queue_bytes", 0.04) == pytest.approx(
        solution.fixed_point["queue_bytes"], 0.05
    )
    assert solution.phase_margin is not None
    assert solution.phase_margin_published is not None
    assert 0 < solution.phase_margin.degrees < solution.phase_margin_published.degrees
    assert solution.summary["setup"]["model"]["packet"] == "1 KB"


def test_a_law_without_a_fixed_point_returns_the_reason() -> None:
    solution = fluid({"model": "timely", "duration": "1 ms"})
    assert solution.fixed_point is None
    assert solution.phase_margin is None
    assert "gradient" in solution.summary["no_fixed_point"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": "dcqn"}, "model: there is no `dcqn`; did you mean `dcqcn`?"),
        ({"starts": ["1 ms"]}, "starts: must have one a flow, which is 2"),
        ({"initial_rates": ["11 Gbps", "1 Gbps"]}, "at most the capacity, which is 10 Gbps"),
        ({"step": "5 us"}, "step: must be at most the delay, which is 4 us"),
        ({"interval": "1 ns"}, "interval: must be at least the step"),
        ({"flows": 0}, "flows: must be above zero"),
        ({"flows": 10_001}, "flows: must be at most 10000"),
        ({"interval": "1 ps", "step": "1 ps"}, "interval: 100 ms in parts of 1 ps for 2 flows are"),
        ({"delay": "1000 s", "step": "1 us"}, "step: 1000 s in parts of 1 us for 2 flows are 2e9"),
        ({"model": {"kind": "rcp", "alpha": -1}}, "model.alpha: must be above zero"),
        ({"model": "rcp", "initial_rates": ["1 Gbps"] * 2}, "`rcp` gives all flows one rate"),
    ],
)
def test_errors_of_fluid_models_name_the_field_as_those_of_scenarios(
    change: dict[str, Any], message: str
) -> None:
    with pytest.raises(ScenarioError, match=message.replace("`", ".").replace("?", ".")):
        fluid({"model": "patched_timely", **change})


def packets(initial_rates: list[str], change: Mapping[str, Any]) -> Result:
    """Run flows that share the middle link of a dumbbell, each with its own host."""
    count = len(initial_rates)
    flows = [
        {"source": number, "target": count + number, "initial_rate": rate}
        for number, rate in enumerate(initial_rates)
    ]
    base = {
        "environment": "paper",
        "topology": {"kind": "dumbbell", "senders": count, "receivers": count, "delay": "1 us"},
        "packet": {"payload": "1000 B", "header": "30 B", "ack": "60 B"},
        "workload": {"kind": "flows", "flows": flows},
        "samples": {"interval": "50 us", "queues": [MIDDLE], "flows": list(range(count))},
    }
    return sojourn.run(override(base, change))


def late(result: Result, probe: str, since_s: float) -> float:
    """Return the mean of a probe from an instant to the end."""
    samples = result.samples.filter(pl.col("probe") == probe, pl.col("time_s") >= since_s)
    return float(samples["value"].to_numpy().mean())


def queues(result: Result, model: Fluid, since_s: float) -> tuple[float, float]:
    """Return the mean queue of packets and of the fluid model at the end of a run, in bytes."""
    return late(result, f"queue_bytes {MIDDLE}", since_s), model.mean("queue_bytes", since_s)


@pytest.mark.parametrize("rates", [["7 Gbps", "3 Gbps"], ["1 Gbps"] * 10])
def test_patched_timely_settles_at_the_fluid_queue_less_the_packets_on_links(
    rates: list[str],
) -> None:
    floor = {"segments": {"min_rate": "100 Mbps"}}
    timely = {"kind": "patched_timely", **floor}
    result = packets(rates, {"transport": timely, "time_limit": "150 ms"})
    setup = {"model": "patched_timely", "flows": len(rates), "delay": "7 us"}
    model = fluid({**setup, "initial_rates": rates, "duration": "150 ms"})
    queue, expected = queues(result, model, 0.1)
    # A packet's RTT has six links, and the serialisation of a packet on two and an ACK on three.
    on_links_s = 6e-6 + (2 * 1030 + 3 * 60) * 8 / 10e9
    assert queue == pytest.approx(expected - on_links_s * 10e9 / 8, rel=0.02)
    assert late(result, "rate_bps flow 0", 0.1) == pytest.approx(10e9 / len(rates), rel=0.03)
    assert model.mean("rate_bps flow 0", 0.1) == pytest.approx(10e9 / len(rates), rel=0.03)


def test_dctcp_oscillates_around_the_mean_queue_of_its_fluid_model() -> None:
    change = {
        "packet": {"payload": "1460 B", "header": "40 B", "ack": "40 B"},
        "topology.delay": "16 us",
        "transport": "dctcp",
        "time_limit": "100 ms",
    }
    result = packets(["none"] * 10, change)
    model = fluid({"model": "dctcp", "flows": 10, "delay": "100 us", "step": "2 us"})
    queue, expected = queues(result, model, 0.05)
    assert queue == pytest.approx(expected, rel=0.05)
    assert late(result, "window_bytes flow 0", 0.05) == pytest.approx(
        model.mean("window_bytes flow 0", 0.05), rel=0.15
    )


# The fluid model cuts rates once in every 50 us in which a packet was marked, as a receiver with a
# periodic timer does. A receiver that notifies on a mark starts the 50 us with the mark: it sends
# fewer notifications, so that more marks are needed.
@pytest.mark.parametrize(("notify_at", "least", "most"), [("tick", 0.9, 1.1), ("mark", 1.1, 1.4)])
def test_dcqcn_has_the_queue_of_its_fluid_model_if_notifications_are_periodic(
    notify_at: str, least: float, most: float
) -> None:
    profile = {"kmax": "2000 KB", "pmax": 0.1}
    change = {
        "topology.rate": "40 Gbps",
        "topology.delay": "0.56 us",
        "transport": {"kind": "dcqcn", "notify_at": notify_at},
        "queue": {"kind": "dcqcn_red", **profile},
        "time_limit": "300 ms",
    }
    result = packets(["40 Gbps"] * 2, change)
    setup = {"flows": 2, "capacity": "40 Gbps", "duration": "300 ms"}
    model = fluid({"model": {"kind": "dcqcn", **profile}, **setup})
    queue, expected = queues(result, model, 0.05)
    assert least * expected < queue < most * expected
    for flow in range(2):
        # The standard deviation over seeds of a flow's mean rate in 250 ms is 2.5 %.
        assert late(result, f"rate_bps flow {flow}", 0.05) == pytest.approx(20e9, rel=0.1)


SLOW = {
    "topology.rate": "1 Gbps",
    "topology.delay": "1650 us",
    "packet": {"payload": "960 B", "header": "40 B", "ack": "40 B"},
    "time_limit": "3 s",
    "samples.interval": "5 ms",
}


def slow_fluid(kind: str, flows: int) -> Fluid:
    """Integrate flows with an RTT of 10 ms, of which the last starts after 1.5 s."""
    starts = ["0 s"] * (flows - 1) + ["1.5 s"]
    link = {"capacity": "1 Gbps", "delay": "10 ms", "step": "50 us"}
    times = {"starts": starts, "duration": "3 s", "interval": "5 ms"}
    return fluid({"model": kind, "flows": flows, **link, **times})


def at(samples: pl.DataFrame, probe: str, instant_s: float) -> float:
    """Return the mean of a probe in the 50 ms after an instant."""
    near = pl.col("time_s").is_between(instant_s, instant_s + 0.05)
    return float(samples.filter(pl.col("probe") == probe, near)["value"].to_numpy().mean())


@pytest.mark.parametrize("kind", ["rcp", "xcp"])
def test_explicit_rates_equal_the_fluid_rates_before_and_after_a_flow_starts(kind: str) -> None:
    flows = 5
    change: dict[str, Any] = {**SLOW, "transport": kind}
    if kind == "rcp":
        change["router"] = {"kind": "rcp", "initial_rtt": "10 ms"}
    late_start = [
        {"source": number, "target": flows + number, "start": "1.5 s" if number == 4 else "0 s"}
        for number in range(flows)
    ]
    change["workload.flows"] = late_start
    result = packets(["1 Gbps"] * flows, change)
    model = slow_fluid(kind, flows)
    at_rest, moving = 0.02, 0.08
    for instant, band in [(0.3, at_rest), (1.4, at_rest), (1.8, moving), (2.8, at_rest)]:
        for flow in (0, 4) if instant > 1.5 else (0,):
            if kind == "rcp":
                rate = at(result.samples, f"rate_bps flow {flow}", instant)
            else:
                # One window of payload per RTT.
                rate = at(result.samples, f"window_bytes flow {flow}", instant) * 8 / 0.96 / 0.010
            expected = at(model.samples, f"rate_bps flow {flow}", instant)
            assert rate == pytest.approx(expected, rel=band), (instant, flow)
    queue, expected_queue = queues(result, model, 2.0)
    # One or two packets are queued where the fluid queue is empty.
    assert expected_queue < 1
    assert queue < 2000
