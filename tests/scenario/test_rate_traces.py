"""Generated rate traces."""

import itertools
import statistics

import pytest

import sojourn
from sojourn.base import paths
from sojourn.scenario.rate_traces import cellular


def moments(trace: str) -> list[int]:
    return [int(line) for line in trace.splitlines()]


def test_the_example_is_generated_as_its_comment_states() -> None:
    stored = (paths.EXAMPLES / "cellular.txt").read_text(encoding="utf-8")
    assert stored == cellular(30, seed=10)
    comment = (paths.EXAMPLES / "cellular.toml").read_text(encoding="utf-8")
    assert "cellular(30, seed=10)" in comment


def test_a_trace_is_ordered_bounded_and_determined_by_its_seed() -> None:
    for seed in range(5):
        trace = moments(cellular(10.005, seed=seed))
        assert trace == sorted(trace)
        assert trace[0] >= 1
        assert trace[-1] <= 10_005
    assert cellular(10, seed=3) == cellular(10, seed=3) != cellular(10, seed=4)
    assert moments(cellular(20, seed=3))[:1000] == moments(cellular(10, seed=3))[:1000]


def test_a_constant_rate_gives_a_poisson_process() -> None:
    # Without volatility the rate is constant, and the variance of counts equals their mean.
    trace = moments(cellular(300, seed=2, volatility=1e-9))
    counts = [0] * 3000
    for moment in trace:
        counts[(moment - 1) // 100] += 1
    mean = statistics.mean(counts)
    assert 50 < mean < 100
    assert statistics.variance(counts) == pytest.approx(mean, rel=0.08)


def test_the_rate_changes_by_the_given_volatility() -> None:
    # Far from both bounds, counts in 20 ms at a distance of 200 ms differ by motion and by chance.
    pairs = []
    for seed in range(3):
        counts = [0] * 50 * 150
        for moment in moments(cellular(150, seed=seed, most=10_000, volatility=3000)):
            counts[(moment - 1) // 20] += 1
        pairs += list(zip(counts[::10], counts[10::10], strict=False))
    pairs = [pair for pair in pairs if 80 < pair[0] < 120]
    by_chance = 50**2 * statistics.mean(map(sum, pairs))
    assert len(pairs) > 150
    variance = statistics.variance(50 * (after - before) for before, after in pairs)
    assert variance - by_chance == pytest.approx(0.2 * 3000**2, rel=0.3)


def test_outages_have_the_given_mean_length() -> None:
    # The volatility brings the rate to 0 often, and the rate is high enough to see each step.
    trace = moments(cellular(900, seed=1, most=1000, volatility=5000, escapes=2))
    silences = [after - before for before, after in itertools.pairwise(trace)]
    # A silence longer than a step of 20 ms is an outage; its remaining length is memoryless.
    outages = [silence - 40 for silence in silences if silence > 40]
    assert len(outages) > 300
    assert statistics.mean(outages) == pytest.approx(500, rel=0.15)


def test_a_trace_sets_the_rate_of_a_link() -> None:
    trace = {"name": "cellular.txt", "text": cellular(5, seed=2)}
    result = sojourn.run(
        {
            "topology": {"kind": "link", "delay": "1 ms", "rate_trace": trace},
            "workload": {"kind": "long_lived", "flows": 1},
            "transport": {"kind": "tcp"},
            "time_limit": "5 s",
            "samples": {"interval": "1 s", "links": ["left->right"]},
        }
    )
    sent = result.samples.filter(probe="transmitted_bytes left->right")["value"].to_list()
    possible = 1500 * len(moments(trace["text"]))
    assert 0.9 * possible < sent[-1] <= possible


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"seconds": 0}, "seconds: must be more than 0 and up to 10000, not 0"),
        ({"seconds": float("nan")}, "seconds: must be more than 0 and up to 10000, not nan"),
        ({"most": 1e5, "seconds": 101}, "seconds: must be more than 0 and up to 100, not 101"),
        ({"most": -1}, "most: must be more than 0 and up to 1e"),
        ({"volatility": 0}, "volatility: must be more than 0"),
        ({"escapes": float("inf")}, "escapes: must be more than 0"),
        ({"seconds": 1e-6}, "seconds: no delivery within 1e-06 s"),
    ],
)
def test_arguments_out_of_range_are_errors(arguments: dict[str, float], expected: str) -> None:
    with pytest.raises(sojourn.ScenarioError) as error:
        cellular(**{"seconds": 10, **arguments})  # type: ignore[arg-type]
    assert expected in str(error.value)
