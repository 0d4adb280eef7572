"""Laws of packets given a fluid."""

import dataclasses

import numpy as np
import pytest

from sojourn.scale import law
from sojourn.scale.law import FluidFlows, Law, self_check, uniform


def flows(number: int, seed: int = 1) -> tuple[FluidFlows, "np.typing.NDArray[np.float64]"]:
    """Return flows whose slowdown by packets depends on size and fluid slowdown, with noise."""
    random = np.random.default_rng(seed)
    sizes = np.exp(random.uniform(np.log(100), np.log(1e7), number))
    slowdowns = 1 + random.exponential(1.0, number)
    zeros = np.zeros(number)
    fluid = FluidFlows(zeros.astype(np.int64), sizes, zeros, zeros, slowdowns, zeros + 1e9)
    noise = random.lognormal(0.0, 0.3, number)
    return fluid, np.maximum(1.0, slowdowns * (1 + 1e3 / sizes) * noise)


def test_a_law_on_its_own_sample_returns_the_distribution() -> None:
    fluid, packets = flows(20_000)
    predicted, sparse = Law([(fluid, packets)]).predict(fluid, seed=3)
    assert not sparse.any()
    for share in (0.5, 0.9, 0.99):
        ratio = np.quantile(predicted, share) / np.quantile(packets, share)
        assert abs(ratio - 1) < 0.03


def test_prediction_in_blocks_is_that_of_all_flows(monkeypatch: pytest.MonkeyPatch) -> None:
    fluid, packets = flows(5_000)
    of_all, _ = Law([(fluid, packets)]).predict(fluid, seed=3)
    monkeypatch.setattr(law, "BLOCK", 999)
    in_blocks, _ = Law([(fluid, packets)]).predict(fluid, seed=3)
    assert (in_blocks == of_all).all()


def test_a_law_follows_the_load_of_the_fluid() -> None:
    # The flows to predict have twice the queueing of the sample.
    fluid, packets = flows(50_000)
    other, truth = flows(50_000, seed=2)
    busy = other.slowdowns > np.quantile(other.slowdowns, 0.5)
    busier = FluidFlows(*(column[busy] for column in dataclasses.astuple(other)))
    predicted, _ = Law([(fluid, packets)]).predict(busier, seed=3)
    assert abs(predicted.mean() / truth[busy].mean() - 1) < 0.03
    by_size_alone = packets.mean()
    assert abs(by_size_alone / truth[busy].mean() - 1) > 0.2


def test_ratios_follow_the_fluid_up_to_large_slowdowns() -> None:
    # Behind incasts, the fluid is far too slow at 7 and right at 30.
    slowdowns = np.repeat([7.0, 30.0], 500)
    zeros = np.zeros(1000)
    fluid = FluidFlows(zeros.astype(np.int64), zeros + 2e4, zeros, zeros, slowdowns, zeros + 1e9)
    packets = np.where(slowdowns < 10, 2.0, 30.0)
    predicted, _ = Law([(fluid, packets)]).predict(fluid, seed=1)
    np.testing.assert_allclose(predicted, packets)


def test_ratios_of_neighbours_are_not_mixed() -> None:
    # Few flows for each fluid slowdown, as of a size beside incasts in a small fold.
    slowdowns = np.repeat([1.6, 2.2, 3.5, 5.0, 8.0], 4)
    zeros = np.zeros(20)
    fluid = FluidFlows(zeros.astype(np.int64), zeros + 5e3, zeros, zeros, slowdowns, zeros + 1e9)
    packets = np.repeat([1.1, 2.2, 1.4, 2.0, 20.0], 4)
    predicted, _ = Law([(fluid, packets)]).predict(fluid, seed=1)
    np.testing.assert_allclose(predicted, packets)


def test_classes_are_not_pooled() -> None:
    fluid, packets = flows(2000)
    incast = dataclasses.replace(fluid, classes=fluid.classes + 1)
    law = Law([(fluid, packets), (incast, 10 * packets)])
    background, _ = law.predict(fluid, seed=1)
    slow, _ = law.predict(incast, seed=1)
    assert abs(background.mean() / packets.mean() - 1) < 0.1
    assert abs(slow.mean() / packets.mean() / 10 - 1) < 0.1


def test_the_self_check_keeps_classes_apart() -> None:
    # The errors of the classes would cancel over all flows.
    samples = []
    for factor, seed in ((1.5, 1), (1 / 1.5, 2)):
        fluid, packets = flows(4000, seed)
        second = np.arange(4000) % 2
        slowdowns = 3 * np.where(second, packets * factor, packets / factor)
        samples.append((dataclasses.replace(fluid, classes=second), slowdowns))
    rows = self_check(samples, ["incast", "poisson"], seed=1)
    assert {row["class"] for row in rows} == {"incast", "poisson"}
    assert all(abs(row["mean"]) > 0.4 for row in rows)
    found = self_check(samples[:1] * 2, ["incast", "poisson"], seed=1)
    assert all(abs(row["mean"]) < 0.1 for row in found)
    (one, *_) = self_check([flows(4000), flows(4000, 2)], ["poisson"], seed=1)
    assert "class" not in one


@pytest.mark.parametrize("is_of_switch", [False, True])
def test_loads_have_their_own_ratios(is_of_switch: bool) -> None:
    def with_loads(loads: "np.typing.NDArray[np.float64]") -> FluidFlows:
        if is_of_switch:
            return dataclasses.replace(fluid, switch_loads=loads)
        return dataclasses.replace(fluid, loads=loads)

    fluid, packets = flows(20_000)
    random = np.random.default_rng(3)
    loads = random.choice([0.01, 0.3], len(fluid))
    busy = loads > 0.1
    learnt = with_loads(loads)
    predicted, _ = Law([(learnt, np.where(busy, 2 * packets, packets))]).predict(learnt, seed=1)
    assert abs(predicted[busy].mean() / predicted[~busy].mean() / 2 - 1) < 0.1
    # A load that no sample had takes the ratios of all.
    other = with_loads(loads * 0 + 0.9)
    predicted, sparse = Law([(learnt, packets)]).predict(other, seed=1)
    assert not sparse.any()
    assert abs(predicted.mean() / packets.mean() - 1) < 0.1


def test_unfinished_flows_bound_their_ratios() -> None:
    # Packets take twice as long as the fluid, and half of the flows are cut off before that.
    zeros = np.zeros(4000)
    limits = np.where(np.arange(4000) % 2, 2.5, 6.0)
    fluid = FluidFlows(zeros.astype(np.int64), zeros + 5e3, zeros, zeros, zeros + 1.6, limits)
    ratios = np.random.default_rng(1).uniform(1.0, 3.0, 4000)
    packets = fluid.within_limits(1.6 * ratios)
    predicted, _ = Law([(fluid, packets)]).predict(fluid, seed=1)
    np.testing.assert_allclose(np.quantile(predicted / 1.6, [0.1, 0.5, 0.9]), [1.2, 2.0, 2.8], 0.03)
    finished = np.isfinite(fluid.within_limits(predicted)).mean()
    assert finished == pytest.approx(np.isfinite(packets).mean(), rel=0.02)


def test_flows_without_an_end_in_time_have_none() -> None:
    fluid, packets = flows(5000)
    packets[::50] = np.inf
    predicted, _ = Law([(fluid, packets)]).predict(fluid, seed=1)
    assert abs(np.isinf(predicted).mean() - 0.02) < 0.005
    none, _ = Law([(fluid, packets * np.inf)]).predict(fluid, seed=1)
    assert np.isinf(none).all()


def test_unknown_sizes_are_counted() -> None:
    fluid, packets = flows(5000)
    huge = dataclasses.replace(fluid, sizes=fluid.sizes * 0 + 1e9)
    predicted, sparse = Law([(fluid, packets)]).predict(huge, seed=1)
    assert sparse.all()
    assert (predicted == fluid.slowdowns).all()


def test_numbers_are_uniform_and_depend_on_the_seed() -> None:
    numbers = uniform(1, 100_000)
    assert abs(np.histogram(numbers, 10, (0, 1))[0] / 10_000 - 1).max() < 0.05
    assert (numbers != uniform(2, 100_000)).all()
    assert (numbers[:100] == uniform(1, 100)).all()
