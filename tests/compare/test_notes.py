"""Notes on the ratios of a comparison."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import sojourn
from conftest import COMPARED
from sojourn.compare import comparison, paired_plot, paired_tables, tables
from sojourn.runs.results import Run
from sojourn.show.warnings import drop_warnings, load_warnings


def notes(variations: dict[str, Any]) -> list[str]:
    compared = sojourn.comparison(COMPARED, variations)
    return paired_tables.notes(compared.pairs, compared.by, compared.runs)


def test_a_note_names_the_schemes_whose_flows_differ_and_the_cause() -> None:
    _, note = notes({"environment": ["lossy_datacentre", "lossless_datacentre"]})
    assert note.startswith(
        "note: some flows of lossless_datacentre differ from those of lossy_datacentre "
        "(packet headers of another environment change the flows that a load offers)"
    )


def test_ratios_are_on_the_same_flows_only_under_all_schemes(tmp_path: Path) -> None:
    same, other = {"transport": "swift"}, {"environment": "lossless_datacentre"}
    for changed, expected in (({}, True), ({"other": other}, False)):
        schemes = {"dctcp": {}, "swift": same, **changed}
        compared = sojourn.comparison({**COMPARED, "schemes": schemes})
        (note, *_) = paired_tables.notes(compared.pairs, compared.by, compared.runs)
        assert note.startswith("ratios to dctcp on the same flows, ") == expected
        paired_plot.draw(compared.pairs, compared.by, tmp_path / "pairs", formats=["svg"])
        assert ("same flows" in (tmp_path / "pairs.svg").read_text()) == expected


def test_batches_are_named_only_with_an_interval() -> None:
    first, note = notes({"topology.rate": ["1 Gbps", "10 Gbps"]})
    assert first == "ratios to 1 Gbps, one seed each"
    assert "other networks" in note
    first, *others = notes({"transport": ["dctcp", "swift"]})
    assert first.endswith("by ten batches of the run's flows")
    assert not others


def test_the_first_variation_with_several_values_has_the_baseline() -> None:
    variations: dict[str, Any] = {"transport": ["dctcp"], "load": [0.2, 0.3]}
    compared = sojourn.comparison(COMPARED, variations)
    assert compared.by == "load"
    assert compared.pairs["against"].unique().to_list() == [0.2]
    assert comparison.first_labels(COMPARED, variations) == [0.2, 0.3]
    (sentence,) = compared.sentences
    assert sentence.startswith("transport=dctcp: load=0.3's flows up to 100 KB take ")
    (table,) = tables.summary_tables(compared.table, compared.pairs)
    assert table.rows[0][-1] == "baseline"


def test_a_comparison_reads_a_file(tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text(
        'topology = "dumbbell"\ntransport = "dctcp"\ntime_limit = "1 ms"\n'
        'workload = { kind = "long_lived", flows = 1, size = "20 KB" }\n',
        encoding="utf-8",
    )
    assert len(sojourn.comparison(file, {"seed": [1, 2]}).runs) == 2
    with pytest.raises(sojourn.ScenarioError, match="scenarios: expected a list of scenarios"):
        sojourn.run_many(str(file))


def test_a_narrow_table_keeps_the_ratio() -> None:
    compared = sojourn.comparison(COMPARED, {"transport": ["dctcp", "swift"]})
    (table,) = tables.summary_tables(compared.table, compared.pairs)
    assert table.optional[-2:] == ["FCT p99", "ratio"]


def test_each_scheme_has_the_reason_for_which_its_flows_differ() -> None:
    ring = {"kind": "collective", "algorithm": "ring", "ranks": 4, "size": "400 KB"}
    base = {"topology": {"kind": "star", "hosts": 4}, "workload": ring, "transport": "dctcp"}
    schemes = {
        "one": {},
        "swift": {"transport": "swift"},
        "headers": {"environment": "lossless_datacentre"},
        "larger": {"workload": {"size": "800 KB"}},
    }
    compared = sojourn.comparison({**base, "time_limit": "1 s", "schemes": schemes})
    lines = paired_tables.notes(compared.pairs, compared.by, compared.runs)
    (calls, other) = [line for line in lines if line.startswith("note: some flows")]
    assert "of headers differ from those of one (flows that start after others)" in calls
    assert "of larger differ from those of one (other workloads)" in other


@pytest.mark.parametrize(
    ("fidelities", "cause"),
    [
        (("sample", "packets"), " (other fidelities)"),
        (({"kind": "sample", "hosts": 80}, {"kind": "sample", "hosts": 64}), " (other fidelities)"),
        (("flows", "flows"), " (the fidelity `flows` draws single flows)"),
    ],
)
def test_other_fidelities_are_a_cause(fidelities: tuple[Any, Any], cause: str) -> None:
    base = sojourn.override(COMPARED, {"topology": {"kind": "leaf_spine", "leaves": 40}})
    base["workload"] |= {"flows": 2000, "load": 0.1}
    one, other = ({"fidelity": fidelity} for fidelity in fidelities)
    schemes = {"one": one, "other": other | {"transport": "swift"}}
    compared = sojourn.comparison({**base, "schemes": schemes})
    _, note = paired_tables.notes(compared.pairs, compared.by, compared.runs)
    assert note.startswith(f"note: some flows of other differ from those of one{cause}: ")


def test_folds_of_other_networks_are_no_other_fidelity() -> None:
    base = sojourn.override(COMPARED, {"topology": {"kind": "leaf_spine", "leaves": 12}})
    schemes = {"one": {}, "other": {"topology.leaves": 20}}
    fidelity = {"kind": "sample", "hosts": 64}
    compared = sojourn.comparison({**base, "fidelity": fidelity, "schemes": schemes})
    _, note = paired_tables.notes(compared.pairs, compared.by, compared.runs)
    assert note.startswith("note: some flows of other differ from those of one (other networks): ")


def test_flows_that_differ_for_an_unknown_reason_have_no_cause() -> None:
    compared = sojourn.comparison(COMPARED, {"transport": ["dctcp", "swift"]})
    pairs = compared.pairs.with_columns(same_flows=pl.col("transport") != "swift")
    _, note = paired_tables.notes(pairs, compared.by, compared.runs)
    assert note.startswith("note: some flows of swift differ from those of dctcp: these schemes")


def test_the_realised_load_is_a_line_or_a_column() -> None:
    compared = sojourn.comparison(COMPARED, {"transport": ["dctcp", "swift"]})
    lines = tables.comparison_notes(compared.table, compared.runs, median=False)
    assert any(line.startswith("realised load: 0.") for line in lines)
    (table,) = tables.summary_tables(compared.table, compared.pairs)
    assert "realised load" not in table.columns
    compared = sojourn.comparison(COMPARED, {"load": [0.2, 0.3]})
    lines = tables.comparison_notes(compared.table, compared.runs, median=False)
    assert not any(line.startswith("realised load") for line in lines)
    (table,) = tables.summary_tables(compared.table, compared.pairs)
    assert "realised load" in table.columns


def test_a_realised_load_far_from_the_configured_one_has_a_warning() -> None:
    sizes = {"kind": "empirical", "table": "web_search"}
    base = sojourn.override(COMPARED, {"workload.sizes": sizes, "workload.load": 0.5})
    result = sojourn.run(base)

    def warned(*realised: float) -> list[str]:
        for load in realised:
            result.summary["realised_load"] = load
        return load_warnings({"": [result]})

    expected = (
        "warning: realised load 1.04 instead of 0.5: few flows of a heavy-tailed size "
        "distribution; more flows or seeds come closer"
    )
    assert warned(1.04) == [expected]
    assert len(warned(0.39)) == len(warned(0.61)) == 1
    assert warned(0.41) == warned(0.59) == []
    result.summary["scenario"]["workload"]["load_reference"] = "5 Gbps"
    reference = result.summary["load_reference"]["rate_bps"]
    assert warned(0.5 * 5e9 / reference) == []
    assert len(warned(1.0 * 5e9 / reference)) == 1


def test_a_scheme_most_of_whose_packets_are_dropped_has_a_warning() -> None:
    incast = {"kind": "incast", "fan_in": 200, "size": "20 KB", "events": 1, "interval": "1 s"}
    star = {"topology": {"kind": "star", "hosts": 201}, "workload": incast, "time_limit": "1 s"}
    transports = {"transport": ["dctcp", "pfabric"]}
    runs = sojourn.comparison(star, transports).runs
    counts = runs[1].result.summary["counts"]
    share = 100 * counts["drops"] / counts["packets"]
    text = f"queues dropped {share:.0f} % of all packets sent, data and ACKs"
    results = {"dctcp": [runs[0].result], "pfabric": [runs[1].result]}
    assert drop_warnings(results) == [f"warning: pfabric: {text}"]
    assert drop_warnings({"": [runs[1].result]}) == [f"warning: {text}"]
    assert drop_warnings({"": [runs[0].result]}) == []


def test_warnings_name_schemes_and_seeds_and_are_merged() -> None:
    variations = {"transport": ["dctcp", "swift", "tcp"]}
    runs = sojourn.comparison(COMPARED, variations, seeds=2).runs
    lines = {
        ("dctcp", 1): ["for all", "1 of 2 late"],
        ("dctcp", 2): ["for all", "1.5 of 2 late"],
        ("swift", 1): ["for all", "some"],
        ("swift", 2): ["for all", "some"],
        ("tcp", 1): ["for all", "some"],
        ("tcp", 2): ["for all", "some", "once"],
    }
    for run in runs:
        run.result.summary["warnings"] = lines[run.labels["transport"], run.labels["seed"]]
    schemes: dict[str, list[Run]] = tables.by_name(runs)
    assert tables.named_warnings(schemes) == [
        "warning: for all",
        "warning: dctcp: 1 of 2 late (numbers of seed 1)",
        "warning: swift, tcp: some",
        "warning: tcp: seed 2: once",
    ]


def test_rare_counts_are_columns_if_they_are_above_zero() -> None:
    incast = {"kind": "incast", "fan_in": 8, "size": "100 KB", "interval": "1 ms", "stop": "2 ms"}
    base = {"topology": {"kind": "star", "hosts": 9}, "workload": incast}
    compared = sojourn.comparison(base, {"transport": ["expresspass", "ndp"]})
    (table,) = tables.counter_tables(compared.table)
    assert table.columns[:4] == ["transport", "drops", "credit drops", "trims"]
    (express, ndp) = table.rows
    assert (express[1], express[3], ndp[1], ndp[2]) == ("0", "0", "0", "0")
    assert "0" not in (express[2], ndp[3])
    compared = sojourn.comparison(base, {"transport": ["dctcp"]})
    (table,) = tables.counter_tables(compared.table)
    assert table.columns[:3] == ["transport", "drops", "marks"]
