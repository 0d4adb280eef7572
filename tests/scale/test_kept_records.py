"""Records of a part of the flows."""

import polars as pl

import sojourn
from sojourn import metrics

WHOLE = {
    "topology": {"kind": "leaf_spine", "leaves": 16, "spines": 2, "hosts_per_leaf": 8},
    "transport": "dctcp",
    "workload": {
        "kind": "poisson",
        "load": 0.4,
        "stop": "2 ms",
        "sizes": {"kind": "pareto", "mean": "20 KB", "shape": 1.5},
    },
}


def test_tables_of_a_part_are_those_of_its_flows() -> None:
    whole = sojourn.run(WHOLE)
    part = sojourn.run(WHOLE | {"flows_per_record": 4})
    assert part.summary["counts"] == whole.summary["counts"]
    kept = whole.flows.filter(pl.col("flow").is_in(part.flows["flow"].implode()))
    assert part.flows.equals(kept)
    assert 0.2 < len(part.flows) / len(whole.flows) < 0.3
    (of_all, *_) = metrics.by_size(part, "fct_s").to_dicts()
    assert of_all["flows"] == len(part.flows)
    assert any("one flow in 4" in warning for warning in part.summary["warnings"])


def test_a_fluid_keeps_a_part_and_laws_are_learnt_from_all_flows() -> None:
    scenario = WHOLE | {"fidelity": {"kind": "flows", "hosts": 64, "samples": 2}}
    whole, part = (sojourn.run(scenario | {"flows_per_record": number}) for number in (1, 4))
    assert part.summary["fidelity"]["self_check"] == whole.summary["fidelity"]["self_check"]
    assert 0.2 < len(part.flows) / len(whole.flows) < 0.3
    assert set(part.flows["flow"]) < set(whole.flows["flow"])
