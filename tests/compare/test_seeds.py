"""Comparisons over seeds from which the workload or the network draws nothing."""

import polars as pl
import pytest

import sojourn
from sojourn import metrics
from sojourn.analysis import breakdown
from sojourn.compare import paired_tables, tables
from sojourn.show.warnings import convergence_warnings_of_run

TRACE = "start_s,source,target,size_bytes\n" + "".join(
    f"{number * 1e-5},{number % 3},4,{3000 * (number % 7 + 1)}\n" for number in range(60)
)

SCHEMES = {"transport": ["dctcp", "swift"]}


def base(spines: int) -> dict[str, object]:
    """Return a trace in a fabric with this number of paths."""
    return {
        "topology": {
            **{"kind": "leaf_spine", "leaves": 2, "spines": spines, "hosts_per_leaf": 4},
            **{"host_rate": "10 Gb/s", "fabric_rate": "10 Gb/s"},
        },
        "workload": {"kind": "trace", "file": {"name": "f.csv", "text": TRACE}},
        "transport": "dctcp",
        "time_limit": "1 s",
    }


def without_seeds(table: pl.DataFrame) -> pl.DataFrame:
    return table.drop("repeated", strict=False)


def test_seeds_that_give_the_same_runs_are_one_run() -> None:
    one, three = (sojourn.comparison(base(1), SCHEMES, seeds=seeds) for seeds in (1, 3))
    assert three.table.equals(one.table)
    assert without_seeds(three.pairs).equals(without_seeds(one.pairs))
    assert three.pairs["repeated"].unique().to_list() == [2]
    assert len(three.runs) == 6
    (note, *_) = tables.comparison_notes(three.table, three.runs, median=False)
    assert note.startswith("seeds 1 to 3 give the same runs: the workload")
    assert not any("needs" in sentence for sentence in three.sentences)
    measured = metrics.measure(three.runs, mean=metrics.fct("mean"))
    assert measured["seed"].unique().to_list() == [1]
    accounts = sojourn.comparison(base(1) | {"account": True}, SCHEMES, seeds=3).runs
    assert breakdown.differences(accounts, "transport")["seeds"].max() == 1


def test_intervals_are_stated_although_some_seeds_lack_flows() -> None:
    compared = sojourn.comparison(base(4), SCHEMES, seeds=3)
    part = pl.col("metric") == "slowdown mean"
    few = compared.table.with_columns(
        seeds=pl.when(part).then(pl.lit(2)).otherwise("seeds").cast(pl.Int64)
    )
    notes = tables.comparison_notes(few, compared.runs, median=False)
    assert any("means over seeds ± 95 % confidence" in note for note in notes)


def test_ratios_of_which_some_seeds_have_no_flow_state_that() -> None:
    drawn = {
        "kind": "poisson",
        "load": 0.4,
        "flows": 10,
        "sizes": {"kind": "fixed", "size": "20 KB"},
    }
    runs = sojourn.comparison(base(1) | {"workload": drawn}, SCHEMES, seeds=3).runs
    remark = paired_tables.wording_of(runs).no_interval
    assert remark == " (no interval: fewer than 3 seeds have such flows)"


def test_the_only_seed_of_a_trace_needs_no_others() -> None:
    few = {"kind": "trace", "file": {"name": "f.csv", "text": TRACE[:150].rpartition("\n")[0]}}
    one = sojourn.comparison(base(1) | {"workload": few}, SCHEMES)
    assert "(no interval: one seed, and all seeds carry the same flows)" in one.sentences[0]
    warnings = tables.comparison_warnings(one.table, one.runs, median=False)
    assert not any("more seeds" in line for line in warnings)
    run = sojourn.run(base(1))
    assert not metrics.draws_flows(run)
    assert not any("more seeds" in line for line in convergence_warnings_of_run(run))


@pytest.mark.parametrize(
    ("change", "draws"), [({}, False), ({"jitter": "1 us"}, True), ({"placement": "random"}, True)]
)
def test_collective_operations_draw_placements_and_jitter(
    change: dict[str, str], draws: bool
) -> None:
    ring = {"kind": "collective", "algorithm": {"kind": "ring"}, "ranks": 4, "size": "10 KB"}
    workload = {"kind": "mixed", "parts": [ring | change]}
    assert metrics.draws_flows(sojourn.run(base(1) | {"workload": workload})) == draws


def test_seeds_with_the_same_flows_have_intervals_of_the_paths() -> None:
    compared = sojourn.comparison(base(4), SCHEMES, seeds=3)
    assert compared.table["seeds"].unique().to_list() == [3]
    (note, *_) = tables.comparison_notes(compared.table, compared.runs, median=False)
    assert note.startswith("all seeds carry the same flows: intervals cover the choice of paths")


@pytest.mark.parametrize("seeds", [1, 2])
def test_seeds_that_draw_the_flows_have_no_note(seeds: int) -> None:
    sizes = {"kind": "fixed", "size": "10 KB"}
    drawn = {"kind": "poisson", "load": 0.3, "flows": 50, "sizes": sizes}
    compared = sojourn.comparison(base(1) | {"workload": drawn}, SCHEMES, seeds=seeds)
    notes = tables.comparison_notes(compared.table, compared.runs, median=False)
    assert not any("seeds" in note and "same" in note for note in notes)
