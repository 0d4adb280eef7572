"""Intervals of means and p99s that answers by samples print and store."""

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
from scipy import signal

import sojourn
from conftest import FOLDABLE, make_result
from sojourn.analysis import metrics
from sojourn.analysis.convergence import p99s_within_run
from sojourn.analysis.fidelity import with_self_check
from sojourn.base.statistics import nearest_rank
from sojourn.compare.comparison import compare
from sojourn.compare.tables import comparison_notes
from sojourn.scale.errors import Floats, errors_by_size, p99_interval
from sojourn.show.console import console
from sojourn.show.result import result_tables

SAMPLE = {"kind": "sample", "hosts": 64}
FLOWS = {"kind": "flows", "hosts": 64}

SIZES = {"kind": "uniform", "min": "1 KB", "max": "120 KB"}
"""A sixth of the flows are above 100 KB."""

SCENARIO = FOLDABLE | {"workload": FOLDABLE["workload"] | {"sizes": SIZES}}


def printed(answer: sojourn.Result, width: int = 80) -> str:
    with console.capture() as capture:
        console.print(result_tables(answer), width=width, soft_wrap=width > 80)
    return capture.get()


@pytest.mark.parametrize("fidelity", [SAMPLE, FLOWS])
def test_tables_and_the_summary_have_intervals_of_p99s(
    fidelity: dict[str, Any], tmp_path: Path
) -> None:
    answer = sojourn.run(SCENARIO | {"fidelity": fidelity})
    output = printed(answer)
    times, slowdowns = output.split("busiest links")[0].split("slowdown\n")
    answer.write(tmp_path)
    stored = json.loads((tmp_path / "summary.json").read_text(encoding="utf-8"))["fidelity"]["p99"]
    for column, text in (("fct_s", times), ("slowdown", slowdowns)):
        every, small, medium, large = stored[column]
        expected = metrics.by_size(answer, column).to_dicts()
        assert [row["p99"] for row in (every, small, medium)] == [
            row["p99"] for row in expected[:3]
        ]
        assert [row["flows"] for row in stored[column]] == [row["flows"] for row in expected]
        assert small["high"] > small["p99"] > small["low"] > 0
        # Too few flows for an interval, and none.
        assert 100 < medium["flows"] < 1000
        assert medium["low"] is medium["high"] is large["p99"] is None
        lines = {line.split("  ")[1].strip(): line for line in text.splitlines() if "±" in line}
        for bucket, row in zip(metrics.BUCKETS, (every, small), strict=False):
            name, width = bucket.name, row["high"] / row["p99"] - 1
            percent = 100 * with_self_check(answer, bucket, "p99", width)
            assert re.search(rf"± *{percent:.0f}%$", lines[name].rstrip())
            assert lines[name].count("±") == 2
        assert re.search(r"± *-$", lines["100 KB to 10 MB"].rstrip())
    assert "±: 95 % confidence by batches of flows or by samples" in output


@pytest.mark.parametrize("fidelity", [SAMPLE, FLOWS])
def test_tables_by_class_have_intervals(fidelity: dict[str, Any]) -> None:
    incast = {"kind": "incast", "fan_in": 8, "size": "20 KB", "load": 0.1, "events": 200}
    workload = {"kind": "mixed", "parts": [SCENARIO["workload"], incast]}
    answer = sojourn.run(SCENARIO | {"workload": workload, "fidelity": fidelity})
    output = printed(answer, width=160)
    table = output.split("by class")[1].split("busiest links")[0]
    for bucket in metrics.class_buckets([answer]):
        (line,) = [line for line in table.splitlines() if line.strip().startswith(bucket.name)]
        p99 = p99s_within_run(answer, bucket).row(0, named=True)
        percent = 100 * with_self_check(answer, bucket, "p99", p99["high"] / p99["value"] - 1)
        found = re.findall(r"± *([\d.]+|-)", line)
        assert len(found) == 4
        expected = "-" if math.isnan(percent) else f"{percent:.0f}"
        assert found[1] == expected
    has_check = fidelity["kind"] == "flows"
    assert ("; poisson all " in output) == has_check


def test_an_interval_is_not_smaller_than_the_error_of_the_self_check() -> None:
    def row(name: str, above: float, up_to: float, p99: float) -> dict[str, Any]:
        return {"class": name, "above": above, "up_to": up_to, "mean": 0.01, "p99": p99}

    rows = [row("a", 0, math.inf, -0.6), row("a", 1e4, 1e5, 0.3), row("b", 0, math.inf, 0.4)]
    answer = make_result([1e-3])
    answer.summary["fidelity"] = {"kind": "flows", "self_check": rows}
    small, large = metrics.BUCKETS[1], metrics.BUCKETS[3]
    widths = [
        with_self_check(answer, bucket, "p99", 0.2)
        for bucket in (metrics.ALL, small, large, metrics.Bucket("b", of_class="b"))
    ]
    assert widths == [0.6, 0.3, 0.6, 0.4]
    assert with_self_check(answer, small, "mean", 0.2) == 0.2
    assert math.isnan(with_self_check(answer, small, "p99", math.nan))


def test_packets_of_the_whole_network_have_no_intervals() -> None:
    result = sojourn.run(SCENARIO)
    assert "±" not in printed(result).split("busiest links")[0]
    assert p99s_within_run(result).is_empty()


def test_a_comparison_has_intervals_of_p99s_of_samples() -> None:
    table, runs = compare(SCENARIO, {"fidelity": [SAMPLE, "packets"]}, seeds=1)
    p99s = table.filter(pl.col("metric").is_in(["FCT p99", "slowdown p99"]), size="all")
    is_known = p99s["low"].is_finite() & p99s["high"].is_finite()
    assert is_known.to_list() == [True, True, False, False]
    row = p99s.row(0, named=True)
    stored = runs[0].result.summary["fidelity"]["p99"]["fct_s"][0]
    assert (row["value"], row["low"], row["high"]) == pytest.approx(
        (stored["p99"], stored["low"], stored["high"])
    )
    assert "means and p99s ± 95 %" in comparison_notes(table, runs, median=False)[0]


@pytest.mark.parametrize("samples", [2, 12])
def test_an_interval_covers_the_p99(samples: int) -> None:
    truth, trials, covered = math.log(100), 200, 0
    random = np.random.default_rng(2)
    for _ in range(trials):
        _, low, high = interval(list(random.exponential(size=(samples, 6000 // samples))))
        covered += low <= truth <= high
    assert 0.9 <= covered / trials < 1


def test_an_interval_covers_the_p99_of_few_samples_with_correlated_values() -> None:
    # Blocks of 50 values share a factor, as flows that start in one busy period.
    random = np.random.default_rng(4)

    def draw(samples: int) -> list[Floats]:
        noise = random.normal(size=(samples, 60))
        factors = np.exp(0.3 * signal.lfilter([1.0], [1.0, -0.7], noise))
        return list(np.repeat(factors, 50, axis=1) * random.exponential(size=(samples, 3000)))

    truth, trials, covered = nearest_rank(np.concatenate(draw(1000)), 0.99), 200, 0
    for _ in range(trials):
        _, low, high = interval(draw(2))
        covered += low <= truth <= high
    # As for independent values, the intervals would cover 89 %.
    assert covered / trials > 0.91


def interval(samples: list[Floats], unfinished: npt.ArrayLike = ()) -> tuple[float, float, float]:
    """Return the interval of samples; `unfinished` flows have these places in the first one."""
    are_finished = [np.ones(len(sample), dtype=bool) for sample in samples]
    are_finished[0][np.asarray(unfinished, dtype=int)] = False
    return p99_interval(samples, are_finished)


def test_no_interval_begins_below_all_values() -> None:
    # Neighbouring batches are alike: large slowdowns are in the first half only.
    values = np.ones(2000)
    values[:1000:25] = 50.0
    p99, low, high = interval([values])
    assert (p99, low) == (50.0, 1.0)
    assert high > 60.0


def test_an_interval_takes_flows_that_have_finished() -> None:
    values = np.random.default_rng(1).exponential(size=2000)
    largest = np.argsort(values)[::-1]
    p99, low, high = interval([values], largest[:20])
    assert low < p99 < high
    for given, unfinished in (([values], largest[:21]), ([values[:999]], [])):
        p99, low, high = interval(given, unfinished)
        assert math.isfinite(p99)
        assert math.isnan(low)
        assert math.isnan(high)
    # Those that started last have waited for a short time only, and may be the slowest.
    known, (p99, low, high) = interval([values]), interval([values], largest[-10:])
    assert (p99, low) == known[:2]
    assert high > known[2] + 0.3
    assert math.isnan(interval([values[:99]])[0])


def test_errors_of_unfinished_flows_are_those_of_finished_ones() -> None:
    def errors(*shares: float) -> list[float]:
        """Return the errors of the mean and the p99 of values 20 % too high, by size."""
        values = [np.full(1000, value) for value in (2.0, 2.4)]
        for each, share in zip(values, shares, strict=True):
            each[: round(1000 * share)] = math.inf
        sizes = np.full(1000, 5e3)
        rows = errors_by_size([((sizes, values[0]), (sizes, values[1]))])
        return [row[name] for row in rows for name in ("mean", "p99")]

    assert errors(0, 0) == errors(0.1, 0.105) == pytest.approx([0.2] * 4)
    # One alone has unfinished flows, or the law predicts others.
    assert errors(0, 0.1) == errors(0.1, 0) == errors(0.1, 0.2) == errors(1, 1) == [math.inf] * 4
    assert errors(0, 0.005) == pytest.approx([math.inf, 0.2] * 2)
