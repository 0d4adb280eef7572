"""Counters of links as a table, and as rows of the summary."""

import json
import pickle
from pathlib import Path

import polars as pl

import sojourn
from sojourn.runs.links import LinkRows, link_table

COLUMNS = {
    **{"name": ["a->b", "b->a"], "bytes": [7, 8]},
    "classes": [(0, {"pauses": [1, 2]}), (3, {"pauses": [4, 5]})],
    "census": [None, ([6], [0])],
    "measured": {"bytes": [3, 4]},
}

ROWS = [
    {
        **{"name": "a->b", "bytes": 7},
        "classes": [{"class": 0, "pauses": 1}, {"class": 3, "pauses": 4}],
        "measured": {"bytes": 3},
    },
    {
        **{"name": "b->a", "bytes": 8},
        "classes": [{"class": 0, "pauses": 2}, {"class": 3, "pauses": 5}],
        **{"census": {"arrived": [6], "dropped": [0]}, "measured": {"bytes": 4}},
    },
]


def test_rows_have_the_counters_of_their_link_and_no_absent_ones() -> None:
    rows = LinkRows(link_table(COLUMNS))
    assert list(rows) == rows == ROWS
    assert (len(rows), rows[1], rows[-1:]) == (2, ROWS[1], ROWS[1:])
    assert pickle.loads(pickle.dumps(rows)) == rows != ROWS[:1]


def test_a_link_without_classes_census_and_interval_has_none() -> None:
    plain = COLUMNS | {"classes": [], "census": [], "measured": {}}
    assert link_table(plain).columns == ["name", "bytes"]


def test_links_are_stored_as_a_table_and_read_as_rows(tmp_path: Path) -> None:
    scenario = {
        **{"topology": {"kind": "star", "hosts": 3}, "transport": "dctcp"},
        "workload": {"kind": "incast", "fan_in": 2, "size": "20 KB", "load": 0.2, "events": 9},
    }
    result = sojourn.run(scenario)
    stored = sojourn.Result.read(result.write(tmp_path))
    assert "links" not in json.loads((tmp_path / "summary.json").read_bytes())
    assert stored.summary["links"] == result.summary["links"]
    assert stored.links.equals(result.links)
    assert pl.DataFrame(stored.summary["links"]).height == stored.links.height == 6
    assert stored.summary["links"][0]["name"] == "host0->switch"
    dumped = json.loads(json.dumps(result.summary, default=list))
    assert dumped["links"] == result.summary["links"]


def test_an_answer_of_samples_has_the_links_of_all() -> None:
    scenario = {
        "topology": {"kind": "leaf_spine", "leaves": 8},
        "workload": {
            **{"kind": "poisson", "load": 0.3, "flows": 200},
            "sizes": {"kind": "fixed", "size": "20 KB"},
        },
        **{"transport": "dctcp", "fidelity": {"kind": "sample", "hosts": 64, "samples": 2}},
    }
    names = sojourn.run(scenario).links["name"]
    assert names.n_unique() == len(names)
    assert names.str.ends_with(" (sample 1)").sum() == len(names) // 2
