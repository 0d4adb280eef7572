"""Counters of links as a table and as rows of the summary, and bits by rate traces."""

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import sojourn
from sojourn import ScenarioError
from sojourn.analysis import metrics
from sojourn.runs.links import LinkRows, carried_bits, ends, link_table
from sojourn.runs.runner import run_many
from sojourn.tune import objectives

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


TABLE = "# a pause\ntime_s, rate_bps\n0, 40e6\n\n1, 0\n1.5, 10e6\n"
OPPORTUNITIES = "0\n3\n3\n5\n"
OPPORTUNITY = 1500 * 8
"""Bits of a delivery opportunity of Mahimahi."""


def traced(text: str, place: str = "topology") -> dict[str, Any]:
    """Return a scenario whose link has a rate trace."""
    file = {"name": "rates", "text": text}
    topology = {"kind": "link", "delay": "5 ms"}
    return {
        "transport": "cubic",
        "time_limit": "2 s",
        "topology": topology | ({"rate_trace": file} if place == "topology" else {}),
        "rate_traces": [{"link": "left->right", "file": file}] if place == "rate_traces" else [],
        "workload": {"kind": "long_lived", "flows": 1},
    }


@pytest.mark.parametrize("text", [TABLE, TABLE.replace(", ", " , ")])
def test_a_table_holds_its_rates_until_the_next_row(text: str) -> None:
    bits = carried_bits(traced(text), np.array([0, 0.5, 1, 1.2, 1.5, 3]))
    assert bits == {"left->right": pytest.approx([0, 20e6, 40e6, 40e6, 40e6, 55e6])}


@pytest.mark.parametrize("text", [OPPORTUNITIES, f"+{OPPORTUNITIES}"])
def test_opportunities_carry_a_packet_in_the_millisecond_before_them_and_repeat(text: str) -> None:
    bits = carried_bits(traced(text), np.array([0, 2, 2.5, 3, 4, 5, 5 + 3, 15]) / 1000)
    expected = pytest.approx([0, 0, 1, 2, 2, 4, 4 + 2, 12])
    assert bits["left->right"] / OPPORTUNITY == expected


def test_a_scenario_of_another_version_or_without_rate_traces_has_no_bits() -> None:
    scenario = traced(TABLE)
    assert carried_bits(scenario | {"another": 1}, np.zeros(1)) == {}
    assert (
        carried_bits(scenario | {"topology": {"kind": "link", "delay": "5 ms"}}, np.zeros(1)) == {}
    )


@pytest.mark.parametrize("text", [TABLE, OPPORTUNITIES])
@pytest.mark.parametrize("place", ["topology", "rate_traces"])
def test_utilisation_is_that_of_the_summary(text: str, place: str) -> None:
    (result,) = run_many([traced(text, place)])
    (link,) = (link for link in result.summary["links"] if link["name"] == "left->right")
    end = np.array([result.summary["simulated_s"]])
    bits = carried_bits(result.summary["scenario"], end)["left->right"][0]
    assert 8 * link["bytes"] / bits == pytest.approx(link["utilisation"])


def test_cables_between_the_same_nodes_are_links_with_names_of_their_own() -> None:
    ends_of_cables = ("a,west", "b,west", "west,east", "east,west", "east,c", "east,d")
    rows = [f"{each},{1 + number} Gbps,1 us" for number, each in enumerate(ends_of_cables)]
    file = {"name": "cables.csv", "text": "\n".join(["from,to,rate,delay", *rows])}
    sizes = {"kind": "fixed", "size": "20 KB"}
    scenario: dict[str, Any] = {
        "topology": {"kind": "graph", "file": file},
        "transport": "dctcp",
        "workload": {"kind": "poisson", "load": 0.1, "flows": 40, "sizes": sizes},
        "account": True,
        "record": {"hops": ["west->east (cable 2)"]},
    }
    result = sojourn.run(scenario)
    names = [link["name"] for link in result.summary["links"]]
    assert len(set(names)) == len(names) == 12
    of_cables = [f"west->east (cable {number})" for number in (1, 2)]
    assert [ends(name) for name in of_cables] == [("west", "east")] * 2
    carried = [metrics.link_counters(result, name) for name in of_cables]
    assert [link["rate_bps"] for link in carried] == [3e9, 4e9]
    assert [link["bytes"] for link in carried] > [0, 0]
    by_link = result.series.group_by("link").agg(pl.col("bytes").sum())
    assert dict(by_link.rows()).items() >= {link["name"]: link["bytes"] for link in carried}.items()
    assert result.hops["link"].unique().to_list() == of_cables[1:]
    used = [objectives.read(f"utilisation of {name}").of(result).value for name in of_cables]
    assert used == [metrics.measured(link)["utilisation"] for link in carried]
    with pytest.raises(KeyError, match="west->east"):
        metrics.link_counters(result, "west->east")
    with pytest.raises(ScenarioError, match=r"`west->east`; did you mean `west->east \(cable 1\)"):
        objectives.read("utilisation of west->east").of(result)
    several = r"hops\[0\]: `west->east` is 2 cables; name one: `west->east \(cable 1\)`"
    with pytest.raises(ScenarioError, match=several):
        sojourn.run(scenario | {"record": {"hops": ["west->east"]}})
