"""Tests of the figures of HPCC: percentiles of the flows of all seeds."""

import polars as pl

from conftest import make_result
from sojourn import Result, Run, metrics
from sojourn.experiments.hpcc_sigcomm19 import slowdowns


def test_percentiles_are_those_of_the_flows_of_all_seeds_together() -> None:
    def run(seed: int, largest_s: float) -> Run:
        # Ten bins of 50 flows, of which the largest value of a seed is the p99.
        fcts = [1e-3] * 450 + [2e-3] * 49 + [largest_s]
        result = make_result(fcts)
        flows = result.flows.with_columns(
            size_bytes=pl.col("flow") + 1, source=0, target=1, acked_s=pl.col("fct_s")
        )
        topology = {"hosts_per_edge": 2, "edges_per_pod": 1}
        summary = result.summary | {"scenario": {"warm_up": "0 s", "topology": topology}}
        return Run({"scheme": "HPCC", "seed": seed}, Result(flows, result.samples, summary))

    table = slowdowns.by_position([run(1, 4e-3), run(2, 8e-3)])

    def p99_over_median(position: int) -> float:
        p99, median = (metrics.at(table, metric=m, position=position) for m in ("p99", "p50"))
        return round(p99 / median, 2)

    # The 99th of 100 values is the second largest, 4 ms; the mean of the seeds' largest is 6 ms.
    assert p99_over_median(100) == 2.0
    assert p99_over_median(10) == 1.0
