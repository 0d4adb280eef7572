"""Records of a part of the flows."""

import polars as pl
import pytest

import sojourn
from sojourn import ScenarioError, metrics
from sojourn.show.fidelity import fidelity_lines

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


def test_laws_need_the_records_of_all_flows() -> None:
    with pytest.raises(ScenarioError, match=r"^flows_per_record: must be 1 with fidelity `flows`"):
        sojourn.run(WHOLE | {"fidelity": "flows", "flows_per_record": 4})


def test_samples_have_the_records_of_all_their_flows() -> None:
    sample = {"fidelity": {"kind": "sample", "hosts": 64, "samples": 1}}
    whole, part = (sojourn.run(WHOLE | sample | {"flows_per_record": n}) for n in (1, 4))
    assert part.flows.equals(whole.flows)
    assert not any("one flow in" in warning for warning in part.summary["warnings"])
    assert "flows_per_record = 4 is not used: samples record all of their flows" in fidelity_lines(
        [part]
    )
