"""Tests of closed forms against independently computed reference values."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sojourn
from sojourn import Run, metrics, theory
from sojourn.analysis.closed_forms import Link, Pareto, Sizes

BACKBONE = Link(2.4e9, 0.1)
(TABLES,) = (Path(__file__).resolve().parents[2] / "crates" / "core" / "src").rglob("cdf")


def table(name: str) -> Sizes:
    """Return a size distribution of the simulator, in packets."""
    return Sizes.linear(pl.read_csv(TABLES / f"{name}.csv", comment_prefix="#").rows())


WEB_SEARCH, DATA_MINING = table("web_search_packets"), table("data_mining")

LOADS = st.floats(0.05, 0.95)
SIZES = st.integers(1, 10**7)


@pytest.mark.parametrize(
    ("initial_window", "rounds"),
    [(1, [4.5, 7.5, 10.5, 11.5, 14.5]), (2, [3.5, 6.5, 9.5, 10.5, 13.5])],
)
def test_slow_start_takes_one_round_for_each_doubling(
    initial_window: int, rounds: list[float]
) -> None:
    sizes = np.array([10, 100, 1000, 2000, 10_000])
    expected = np.array(rounds) * 0.1 + sizes / 300e3
    assert theory.slow_start(BACKBONE, sizes, initial_window) == pytest.approx(expected)


@given(st.integers(1, 40), st.integers(1, 10))
def test_one_packet_more_than_n_rounds_send_needs_another_round(
    rounds: int, initial_window: int
) -> None:
    endless = Link(1e30, 1.0)
    most = initial_window * (2**rounds - 1)
    for size, expected in ((most, rounds), (most + 1, rounds + 1)):
        duration = theory.slow_start(endless, size, initial_window)
        assert duration == pytest.approx(expected + 0.5)


def test_slow_start_bounds_the_time_of_a_simulated_flow() -> None:
    link, packets = Link(10e6, 0.1, 1500), 150
    simulated = sojourn.run(
        {
            "environment": "internet",
            "transport": "tcp",
            "topology": {"kind": "link", "rate": "10 Mbps", "delay": "50 ms"},
            "queue": {"kind": "drop_tail", "capacity": "1000 packets"},
            "workload": {
                "kind": "flows",
                "flows": [{"source": 0, "target": 1, "size": f"{packets * 1448} B"}],
            },
        }
    )
    bound = float(theory.slow_start(link, packets, 10))
    # The 10, 20 and 40 packets of the first rounds are sent while the sender waits for ACKs.
    fct = simulated.flows["fct_s"].item()
    assert bound - 70 / link.packets_per_s <= fct < bound - 60 / link.packets_per_s


def test_processor_sharing_lengthens_only_the_transmission_time() -> None:
    times = theory.processor_sharing(BACKBONE, 0.9, [10, 100, 1000, 2000, 10_000, 100_000])
    expected = [0.1503, 0.1533, 0.1833, 0.2167, 0.483, 3.483]
    assert times == pytest.approx(np.array(expected), rel=1e-3)


PCP_LINK = Link(40e6, 0.0, 1250)

# Milliseconds, from an independent simulation of the flows of [pcp06].
SHARED = [(0.15, 58.8, 19), (0.3, 71.4, 34), (0.45, 90.9, 55), (0.6, 125, 89), (0.75, 200, 162)]


@pytest.mark.parametrize(("load", "mean_ms", "deviation_ms"), [*SHARED, (0.9, 500, 458)])
def test_equal_flows_have_the_mean_and_deviation_of_the_closed_forms(
    load: float, mean_ms: float, deviation_ms: float
) -> None:
    mean = float(theory.processor_sharing(PCP_LINK, load, 200))
    deviation = theory.processor_sharing_deviation(PCP_LINK, load, 200)
    assert mean == pytest.approx(mean_ms * 1e-3, rel=3e-3)
    assert deviation == pytest.approx(deviation_ms * 1e-3, rel=0.03)

    def times(flows: int, **model: object) -> tuple[float, float]:
        # A flow arrives at once, as over a link of a thousand times the rate.
        scenario = {
            "topology": {
                "kind": "dumbbell",
                "rate": "40 Gbps",
                "delay": "0 s",
                "bottleneck_rate": "40 Mbps",
            },
            "packet": {"payload": "1250 B", "header": "0 B"},
            "workload": {
                "kind": "poisson",
                "load": load,
                "sizes": {"kind": "fixed", "size": "250 KB"},
                "flows": flows,
            },
            "time_limit": "1000000 s",
        }
        fct = sojourn.run(scenario | model).flows["fct_s"].to_numpy()
        return float(fct.mean()), float(fct.std())

    # The variance between runs grows with the load.
    many = 1_500_000 if load > 0.8 else 150_000
    assert times(many, model="processor_sharing") == pytest.approx((mean, deviation), rel=0.03)
    patient = {"kind": "constant_rate", "reliability": {"fixed_rto": "1000 s"}}
    packets = times(2000, transport=patient, queue={"kind": "fair_queueing"})
    assert packets == pytest.approx(times(2000, model="processor_sharing"), rel=0.03)


@pytest.mark.parametrize(
    ("link", "load", "sizes", "shared", "doubling"),
    [
        (BACKBONE, 0.9, Pareto(30, 1.4), 1359, (4700, 3850)),
        (Link(2.4e9, 0.2), 0.84, Pareto(50, 1.2), 1517, (5400, 4450)),
        (Link(1e9, 0.1), 0.4, Pareto(500, 1.2), 15.67, (86, 76)),
        (BACKBONE, 0.9, Pareto(25, 1.2), 1629, (4760, 3830)),
    ],
)
def test_flows_in_progress_equal_reference_values(
    link: Link, load: float, sizes: Pareto, shared: float, doubling: tuple[float, float]
) -> None:
    per_s = theory.arrivals_per_s(link, sizes.mean, load)
    mean_s = float(theory.processor_sharing(link, load, sizes.mean))
    assert theory.in_progress(per_s, mean_s) == pytest.approx(shared, rel=2e-3)
    for window, flows in zip((1, 2), doubling, strict=True):
        slow = theory.slow_start_mean(link, sizes, window)
        assert theory.in_progress(per_s, slow) == pytest.approx(flows, rel=0.02)


@pytest.mark.parametrize("model", ["processor_sharing", "srpt"])
def test_simulated_ideals_have_the_fcts_of_their_closed_forms(model: str) -> None:
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
def test_under_srpt_a_smaller_flow_has_no_longer_fct(load: float, one: int, other: int) -> None:
    sizes = Pareto(30, 1.4)
    small, large = theory.srpt(BACKBONE, load, sizes, sorted((one, other)))
    assert small <= large * (1 + 1e-9)
    assert small >= 1.5 * 0.1 + min(one, other) / 300e3


@given(st.floats(1.1, 3), st.floats(1, 1e4))
def test_the_moments_of_a_pareto_distribution_equal_its_integrals(
    shape: float, mean: float
) -> None:
    sizes = Pareto(mean, shape)
    size = 7 * sizes.least
    grid = np.geomspace(sizes.least, size, 20_001)
    density = shape * sizes.least**shape * grid ** (-shape - 1)
    assert sizes.work_below(size) == pytest.approx(np.trapezoid(density * grid, grid), rel=1e-5)
    assert sizes.squares_below(size) == pytest.approx(
        np.trapezoid(density * grid**2, grid), rel=1e-5
    )
    assert sizes.above(size) == pytest.approx(7**-shape)


def near(value: float, within: float = 0.005) -> object:
    """Accept a reference value with a rounded last digit."""
    return pytest.approx(value, rel=within)


def test_the_moments_of_tables_equal_reference_values() -> None:
    for sizes, expected in (
        (WEB_SEARCH, (1140.98, 8.293e6, 0.04514)),
        (DATA_MINING, (5116.6, 1.706e9, 0.6325)),
    ):
        moments = [float(sizes.moments(power)) for power in (1, 2, -1)]
        assert moments == [near(value, 1e-3) for value in expected]


# Load; one queue; the best threshold between two, the share of flows and of work below, the mean.
TWO_QUEUES = {
    "web search": (
        (0.1, 19.23, 585, 0.685, 0.042, 1.105),
        (0.2, 42.02, 607, 0.689, 0.044, 1.230),
        (0.3, 71.32, 633, 0.694, 0.047, 1.383),
        (0.4, 110.4, 664, 0.700, 0.050, 1.574),
        (0.5, 165.1, 703, 0.705, 0.054, 1.822),
        (0.6, 247.1, 753, 0.713, 0.059, 2.165),
        (0.7, 383.8, 825, 0.724, 0.066, 2.680),
        (0.8, 657.3, 935, 0.740, 0.079, 3.574),
        (0.9, 1478, 1161, 0.774, 0.110, 5.663),
    ),
    "data mining": (
        (0.1, 11_715, 1442, 0.932, 0.0083, 1.414),
        (0.2, 26_358, 1498, 0.934, 0.0087, 1.883),
        (0.3, 45_185, 1567, 0.935, 0.0093, 2.423),
        (0.4, 70_287, 1649, 0.938, 0.0100, 3.051),
        (0.5, 105_430, 1752, 0.940, 0.0109, 3.790),
        (0.6, 158_144, 1886, 0.944, 0.0122, 4.663),
        (0.7, 246_002, 2076, 0.949, 0.0142, 5.655),
        (0.8, 421_717, 2374, 0.950, 0.0146, 6.815),
        (0.9, 948_862, 2989, 0.951, 0.0148, 9.091),
    ),
}


@pytest.mark.parametrize("name", TWO_QUEUES)
def test_one_and_two_priority_queues_equal_reference_values(name: str) -> None:
    sizes = WEB_SEARCH if name == "web search" else DATA_MINING
    for load, one_queue, threshold, flows, work, two_queues in TWO_QUEUES[name]:
        assert theory.priority_queues(load, sizes) == near(one_queue)
        best = theory.best_thresholds(load, sizes, 2)
        assert best == pytest.approx([threshold], rel=0.005)
        assert float(sizes.moments(0, best)[0]) == near(flows)
        assert float(sizes.moments(1, best)[0]) / sizes.mean == pytest.approx(work, abs=5e-4)
        assert theory.priority_queues(load, sizes, best) == near(two_queues)


@pytest.mark.parametrize(
    ("sizes", "load", "curve"),
    [
        (
            WEB_SEARCH,
            0.6,
            {6: 110.9, 33: 24.8, 133: 3.595, 400: 2.518, 667: 2.181, 1000: 2.301, 1333: 2.977}
            | {2000: 4.173, 3333: 11.60, 6667: 49.95},
        ),
        (
            WEB_SEARCH,
            0.8,
            {6: 294.0, 33: 64.5, 133: 7.920, 400: 4.985, 667: 3.852, 1000: 3.590, 1333: 4.224}
            | {2000: 5.771, 3333: 16.62, 6667: 83.94},
        ),
        (
            DATA_MINING,
            0.6,
            {1: 33_132, 7: 365.8, 100: 110.1, 267: 15.70, 1000: 7.048, 2107: 4.805, 5000: 5.567}
            | {1e4: 12.26, 2e4: 67.15, 66_667: 2739},
        ),
        (
            DATA_MINING,
            0.8,
            {1: 88_353, 7: 973.9, 100: 291.9, 267: 40.09, 1000: 16.58, 2107: 6.823, 5000: 7.663}
            | {1e4: 16.48, 2e4: 90.17, 66_667: 3919},
        ),
    ],
)
def test_any_threshold_between_two_queues_equals_reference_values(
    sizes: Sizes, load: float, curve: dict[float, float]
) -> None:
    means = {at: theory.priority_queues(load, sizes, [at]) for at in curve}
    assert means == pytest.approx(curve, rel=0.005)


@pytest.mark.parametrize(
    ("sizes", "load", "means", "endless"),
    [
        (WEB_SEARCH, 0.6, {2: 2.165, 3: 1.235, 4: 1.137, 8: 1.090}, 1.082),
        (WEB_SEARCH, 0.8, {2: 3.574, 3: 1.468, 4: 1.242, 8: 1.154}, 1.137),
        (DATA_MINING, 0.6, {2: 4.663, 3: 1.236, 4: 1.024, 8: 1.011}, 1.009),
        (DATA_MINING, 0.8, {2: 6.815, 3: 1.417, 4: 1.045, 8: 1.019}, 1.015),
    ],
)
def test_more_queues_equal_reference_values(
    sizes: Sizes, load: float, means: dict[int, float], endless: float
) -> None:
    for queues, expected in means.items():
        best = theory.best_thresholds(load, sizes, queues)
        assert theory.priority_queues(load, sizes, best) == near(expected)
    every = np.geomspace(sizes.low[0], sizes.high[-1], 3000)
    assert theory.priority_queues(load, sizes, every) == near(endless)


@pytest.mark.parametrize(
    ("sizes", "load", "thresholds", "expected"),
    [
        (WEB_SEARCH, 0.6, [6, 16, 30, 49, 266, 1001, 2825], 1.205),
        (WEB_SEARCH, 0.8, [6, 16, 30, 49, 266, 1001, 2825], 1.515),
        (WEB_SEARCH, 0.8, [321, 4389], 1.468),
        (WEB_SEARCH, 0.8, [188, 2191, 7609], 1.242),
        (WEB_SEARCH, 0.8, [32, 210, 913, 2191, 4349, 7609, 15_242], 1.154),
        (WEB_SEARCH, 0.6, [169, 1914, 6411], 1.137),
        (DATA_MINING, 0.8, [58, 5548, 161_470], 1.045),
        (DATA_MINING, 0.8, [4, 68, 657, 7366, 39_736, 147_647, 486_903], 1.019),
    ],
)
def test_given_thresholds_equal_reference_values(
    sizes: Sizes, load: float, thresholds: list[float], expected: float
) -> None:
    assert theory.priority_queues(load, sizes, thresholds) == near(expected)
    best = theory.best_thresholds(load, sizes, len(thresholds) + 1)
    assert theory.priority_queues(load, sizes, best) <= expected * 1.001


@given(st.lists(st.floats(1, 1e4), min_size=1, max_size=30), LOADS)
def test_one_queue_of_sampled_sizes_is_the_pollaczek_khinchine_formula(
    flows: list[float], load: float
) -> None:
    data = np.array(flows)
    waiting = load / data.mean() * (data**2).mean() / (2 * (1 - load))
    expected = 1 + waiting * (1 / data).mean()
    assert theory.priority_queues(load, Sizes.sampled(flows)) == pytest.approx(expected)


@pytest.mark.parametrize("threshold", [400.0, 753.0, 2000.0])
def test_two_queues_agree_with_a_simulation_of_flows(threshold: float) -> None:
    load, flows = 0.6, 400_000
    random = np.random.default_rng(1)
    piece = random.choice(len(WEB_SEARCH.low), flows, p=WEB_SEARCH.share)
    sizes = random.uniform(WEB_SEARCH.low[piece], WEB_SEARCH.high[piece])
    starts = np.cumsum(random.exponential(WEB_SEARCH.mean / load, flows))
    simulated = (two_priorities(starts, sizes, threshold) / sizes).mean()
    expected = theory.priority_queues(load, Sizes.sampled(sizes), [threshold])
    assert simulated == pytest.approx(expected, rel=0.02)


def two_priorities(starts: theory.Floats, sizes: theory.Floats, threshold: float) -> theory.Floats:
    """Simulate a link that preempts flows above the threshold; return completion times."""
    high = sizes <= threshold
    ended = in_order(starts[high], sizes[high])
    begun = ended - sizes[high]
    served = np.concatenate([[0.0], np.cumsum(sizes[high])])
    # The time without high-priority flows is the clock of the low-priority flows.
    count = np.searchsorted(begun, starts[~high])
    last = np.where(count > 0, ended[count - 1], 0.0)
    free = starts[~high] - served[count] + np.maximum(last - starts[~high], 0.0)
    done = in_order(free, sizes[~high])
    times = np.empty_like(sizes)
    times[high] = ended - starts[high]
    times[~high] = done + served[np.searchsorted(begun - served[:-1], done)] - starts[~high]
    return times


def in_order(starts: theory.Floats, sizes: theory.Floats) -> theory.Floats:
    """Return the completion times of flows that one server serves in order."""
    work = np.cumsum(sizes)
    ends: theory.Floats = work + np.maximum.accumulate(starts - (work - sizes))
    return ends


def test_a_packet_in_transmission_delays_the_first_queue_by_half_a_packet() -> None:
    sizes = Sizes.linear([(10, 0.5), (1000, 0.5), (1000, 1.0)])
    smooth, coarse = (theory.priority_queues(0.5, sizes, [100], packet) for packet in (0, 1))
    used = 0.5 * 5 / sizes.mean
    wait = 0.5 * (0.5 - used) / (1 - used)
    assert coarse - smooth == pytest.approx(0.5 * wait / 10)


@pytest.mark.parametrize(
    ("sizes", "late"),
    [(DATA_MINING, (22.9, 5.1, 2.6)), (WEB_SEARCH, (19.3, 4.5, 2.3))],
)
def test_late_flows_by_one_rtt_of_start_up_equal_reference_values(
    sizes: Sizes, late: tuple[float, ...]
) -> None:
    packets = np.arange(137)
    shares = np.diff(sizes.moments(0, packets))
    for mean_s, expected in zip((100e-6, 500e-6, 1e-3), late, strict=True):
        between, within = (
            theory.late_by_start_up(added + 1.2e-6 * packets[1:], start_up, mean_s, 1.25)
            for added, start_up in ((13.48e-6, 11.76e-6), (12.064e-6, 10.93e-6))
        )
        missed = (128 * between + 15 * within) / 143
        assert 100 * (missed * shares).sum() / shares.sum() == pytest.approx(expected, abs=0.1)


@given(st.floats(1e-6, 1e-2), st.floats(1e-6, 1e-2), st.floats(1e-5, 1e-1))
def test_longer_deadlines_make_fewer_flows_late(
    ideal_fct: float, start_up: float, mean: float
) -> None:
    soon, later = (theory.late_by_start_up(ideal_fct, start_up, m, 1.25) for m in (mean, 2 * mean))
    assert 0 <= later <= soon <= 1
    assert theory.late_by_start_up(ideal_fct, ideal_fct / 5, mean, 1.25) == 0
