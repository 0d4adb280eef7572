"""Tests of the figures of ExpressPass: marks at every rate, and the time of convergence."""

import importlib
from types import ModuleType

import polars as pl
import pytest

from sojourn import override, plot, run


def module(name: str) -> ModuleType:
    """Import a module of the figures."""
    return importlib.import_module(f"sojourn.experiments.expresspass_sigcomm17.{name}")


@pytest.mark.parametrize("gbps", [10, 100])
def test_dctcp_is_marked_before_its_queue_is_full(gbps: int) -> None:
    paper = module("paper")
    flows = {"workload": {"kind": "long_lived"}, "time_limit": "5 ms"}
    shared = override(paper.dumbbell(2, gbps), {"environment": "paper", **flows})
    counts = run(override(shared, paper.schemes(gbps)[paper.DCTCP])).summary["counts"]
    assert counts["marks"] > 0
    assert counts["drops"] == 0


def test_claims_that_lower_bounds_cannot_decide_are_not_judged() -> None:
    convergence = module("l1_convergence")

    def held(times: dict[tuple[str, int], float], *bounds: tuple[str, int]) -> list[bool | None]:
        names = ("ExpressPass", "DCTCP")
        rows = [
            {"metric": convergence.TIME, "scheme": name, "gbps": gbps}
            | {"value": times[name, gbps], "at_least": (name, gbps) in bounds}
            for name in names
            for gbps in (10, 100)
        ]
        table = pl.DataFrame(rows)
        return [convergence.dctcp_is_slower(table).held, convergence.grows(table).held]

    times = {("ExpressPass", gbps): 10.0 for gbps in (10, 100)}
    slow = times | {("DCTCP", 10): 300.0, ("DCTCP", 100): 900.0}
    fast = times | {("DCTCP", 10): 100.0, ("DCTCP", 100): 90.0}
    assert held(slow, ("DCTCP", 100)) == [True, True]
    assert held(slow, ("DCTCP", 10)) == [True, None]
    assert held(slow, ("ExpressPass", 10)) == [None, True]
    assert held(fast) == [False, False]
    assert held(fast, ("DCTCP", 10), ("DCTCP", 100)) == [None, None]


def test_flows_whose_bursts_alternate_have_converged() -> None:
    convergence = module("l1_convergence")
    alternating = pl.DataFrame(
        [
            {"flow": flow, "time_s": convergence.START_S + number * convergence.RTT_S}
            | {"value": 4e9 * ((number + flow) % 2)}
            for flow in (0, 1)
            for number in range(1, 31)
        ]
    )
    smooth = convergence.averaged(alternating, ["flow"])
    shares = smooth.with_columns(share=pl.col("value") / 2e9)
    assert convergence.convergence(shares) == {"value": pytest.approx(5), "at_least": False}


def test_the_reference_of_the_long_flow_is_half_of_the_payload_of_a_link() -> None:
    # Credits of 84 B leave 1538 of 1622 B to packets, 1460 B of these to payload.
    share_bps = module("l3_parking_lot").MAX_MIN_BPS
    assert share_bps == pytest.approx(10e9 * 1460 / 1622 / 2)


def test_links_that_a_scale_leaves_out_have_no_axes() -> None:
    convergence = module("l1_convergence")
    rows = [
        {"scheme": "ExpressPass", "gbps": 10, "flow": 1, "metric": convergence.RATE}
        | {"time_s": convergence.START_S + 1e-3 * number, "value": 1e9}
        for number in range(3)
    ]
    times = [{"scheme": "ExpressPass", "gbps": 10, "metric": convergence.TIME, "value": 9.0}]
    table = pl.concat([pl.DataFrame(rows), pl.DataFrame(times)], how="diagonal")
    with plot.canvas(1, 3) as (_, axes):
        convergence.draw(axes, table.with_columns(low=None, high=None, at_least=False), None)
        assert [panel.axison for panel in axes] == [True, False, True]
