"""Closed forms, held against numbers worked out apart from them."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sojourn
from sojourn import Run, metrics, theory
from sojourn.theory import Link, Pareto

BACKBONE = Link(2.4e9, 0.1)
LOADS = st.floats(0.05, 0.95)
SIZES = st.integers(1, 10**7)


@pytest.mark.parametrize(
    ("initial_window", "rounds"),
    [(1, [4.5, 7.5, 10.5, 11.5, 14.5]), (2, [3.5, 6.5, 9.5, 10.5, 13.5])],
)
def test_slow_start_takes_the_rounds_that_doubling_needs(
    initial_window: int, rounds: list[float]
) -> None:
    sizes = np.array([10, 100, 1000, 2000, 10_000])
    expected = np.array(rounds) * 0.1 + sizes / 300e3
    assert theory.slow_start(BACKBONE, sizes, initial_window) == pytest.approx(expected)


@given(st.integers(1, 40), st.integers(1, 10))
def test_slow_start_needs_one_round_more_for_one_packet_more_than_it_sends(
    rounds: int, initial_window: int
) -> None:
    endless = Link(1e30, 1.0)
    most = initial_window * (2**rounds - 1)
    for size, expected in ((most, rounds), (most + 1, rounds + 1)):
        told = theory.slow_start(endless, size, initial_window)
        assert told == pytest.approx(expected + 0.5)


def test_processor_sharing_stretches_the_transmission_alone() -> None:
    times = theory.processor_sharing(BACKBONE, 0.9, [10, 100, 1000, 2000, 10_000, 100_000])
    expected = [0.1503, 0.1533, 0.1833, 0.2167, 0.483, 3.483]
    assert times == pytest.approx(np.array(expected), rel=1e-3)


@pytest.mark.parametrize(
    ("link", "load", "sizes", "shared", "doubling"),
    [
        (BACKBONE, 0.9, Pareto(30, 1.4), 1359, (4700, 3850)),
        (Link(2.4e9, 0.2), 0.84, Pareto(50, 1.2), 1517, (5400, 4450)),
        (Link(1e9, 0.1), 0.4, Pareto(500, 1.2), 15.67, (86, 76)),
        (BACKBONE, 0.9, Pareto(25, 1.2), 1629, (4760, 3830)),
    ],
)
def test_flows_in_progress_are_those_worked_out_apart(
    link: Link, load: float, sizes: Pareto, shared: float, doubling: tuple[float, float]
) -> None:
    per_s = theory.arrivals_per_s(link, sizes.mean, load)
    mean_s = float(theory.processor_sharing(link, load, sizes.mean))
    assert theory.in_progress(per_s, mean_s) == pytest.approx(shared, rel=2e-3)
    for window, flows in zip((1, 2), doubling, strict=True):
        slow = theory.slow_start_mean(link, sizes, window)
        assert theory.in_progress(per_s, slow) == pytest.approx(flows, rel=0.02)


@pytest.mark.parametrize("model", ["processor_sharing", "srpt"])
def test_simulated_ideals_are_as_fast_as_their_closed_forms(model: str) -> None:
    link, sizes, load = Link(100e6, 0.0), Pareto(30, 2.5), 0.8
    simulated = sojourn.run(
        {
            "model": model,
            "topology": {
                "kind": "dumbbell",
                "rate": "1000 Gbps",
                "delay": "0 s",
                "bottleneck_rate": "100 Mbps",
            },
            "packet": {"payload": "960 B", "header": "40 B"},
            "workload": {
                "kind": "poisson",
                "load": load,
                "sizes": {"kind": "pareto", "mean": f"{30 * 960} B", "shape": 2.5},
                "stop": "300 s",
            },
            "time_limit": "1000 s",
        }
    )
    table = metrics.size_curve([Run({}, simulated)], payload=960).filter(pl.col("flows") > 1000)
    at, measured = table["size"].to_numpy(), table["mean"].to_numpy()
    if model == "srpt":
        expected = theory.srpt(link, load, sizes, at)
        mean = theory.srpt_mean(link, load, sizes)
    else:
        expected = theory.processor_sharing(link, load, at)
        mean = float(theory.processor_sharing(link, load, sizes.mean))
    assert len(at) > 4
    assert measured == pytest.approx(expected, rel=0.05)
    assert metrics.fct("mean")(simulated).value == pytest.approx(mean, rel=0.05)


@given(LOADS, SIZES, SIZES)
def test_under_srpt_a_smaller_flow_is_never_later(load: float, one: int, other: int) -> None:
    sizes = Pareto(30, 1.4)
    small, large = theory.srpt(BACKBONE, load, sizes, sorted((one, other)))
    assert small <= large * (1 + 1e-9)
    assert small >= 1.5 * 0.1 + min(one, other) / 300e3


@given(st.floats(1.1, 3), st.floats(1, 1e4))
def test_the_moments_of_a_pareto_are_its_integrals(shape: float, mean: float) -> None:
    sizes = Pareto(mean, shape)
    size = 7 * sizes.least
    grid = np.geomspace(sizes.least, size, 20_001)
    density = shape * sizes.least**shape * grid ** (-shape - 1)
    assert sizes.work_below(size) == pytest.approx(np.trapezoid(density * grid, grid), rel=1e-5)
    assert sizes.squares_below(size) == pytest.approx(
        np.trapezoid(density * grid**2, grid), rel=1e-5
    )
    assert sizes.above(size) == pytest.approx(7**-shape)
