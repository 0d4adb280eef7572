"""Answers of pages: which flows they are on, and what they state without a breakdown."""

from typing import Any

import pytest

from sojourn.runs.results import Result, Run
from sojourn.runs.runner import run_many
from sojourn.view import answer

STAR = {"kind": "star", "hosts": 5, "rate": "10 Gbps"}
FLOWS = [{"source": source, "target": 4, "size": "1 MB"} for source in range(3)]
SCENARIOS: dict[str, dict[str, Any]] = {
    "one": {
        "account": True,
        "transport": "dctcp",
        "topology": STAR,
        "workload": {
            "kind": "flows",
            "flows": [{"source": 3, "target": 4, "size": "10 KB"}, *FLOWS],
        },
    }
}
SCENARIOS["plain"] = SCENARIOS["one"] | {"account": False}
SCENARIOS["other"] = SCENARIOS["one"] | {"transport": "timely"}
DRAWN = {"workload": {"kind": "permutation", "size": "1 MB"}}
SCENARIOS["drawn"] = SCENARIOS["one"] | DRAWN
SCENARIOS["other drawn"] = SCENARIOS["other"] | DRAWN
DEAD_LINK = {"failures": [{"link": "host3->switch", "fails": "0 us"}], "time_limit": "50 ms"}
SAME_SIZE = {"kind": "permutation", "size": "20 KB"}
SCENARIOS["unfinished"] = SCENARIOS["one"] | DEAD_LINK | {"workload": SAME_SIZE}
SCENARIOS["unfinished plain"] = SCENARIOS["unfinished"] | {"account": False}
RING = {"kind": "collective", "algorithm": {"kind": "ring"}, "ranks": 4, "size": "1 MB"}
SCENARIOS["ring"] = SCENARIOS["one"] | {"workload": RING}
SCENARIOS["rings"] = SCENARIOS["ring"] | {
    "workload": {
        "kind": "mixed",
        "parts": [
            RING | {"class": name, "size": f"1 {unit}", "ranks": 2}
            for name, unit in (("small", "KB"), ("large", "MB"), ("huge", "GB"))
        ],
    },
    "time_limit": "10 ms",
}


@pytest.fixture(scope="module")
def results() -> dict[str, Result]:
    return dict(zip(SCENARIOS, run_many(list(SCENARIOS.values())), strict=True))


def of(results: dict[str, Result], *names: str, source: str = "a.toml b.toml") -> str:
    return answer.sentence([Run({"scheme": name}, results[name]) for name in names], source)


def test_the_answer_is_on_the_group_with_most_flows(results: dict[str, Result]) -> None:
    start = "3 flows of 100 KB to 10 MB, of 4 in all, have a mean slowdown of "
    assert of(results, "one").startswith(start)
    assert "% of the excess is" in of(results, "one")
    assert of(results, "plain").startswith(start)
    assert "its cause needs `account = true`" in of(results, "plain")


@pytest.mark.parametrize("name", ["unfinished", "unfinished plain"])
def test_a_mean_of_finished_flows_states_the_unfinished_ones(
    results: dict[str, Result], name: str
) -> None:
    finished = results[name].flows.filter(outcome="finished").height
    assert 0 < finished < 5
    text = of(results, name)
    assert text.startswith("5 flows up to 100 KB have a mean slowdown of ")
    assert f"(finished flows only: {finished} of 5)" in text
    assert "finished flows only" not in of(results, "one")


def test_a_collective_operation_has_its_duration_over_the_bound(
    results: dict[str, Result],
) -> None:
    first, second, *_ = of(results, "ring").split("; ")
    assert first.endswith("of its bound")
    assert "have a mean slowdown of" in second
    (first, *_) = of(results, "rings").split("; ")
    assert first.startswith("The slowest of 2 finished jobs, of 3 in all, large, takes ")


def test_the_ratio_of_two_runs_names_the_mean_fct_and_the_command(
    results: dict[str, Result],
) -> None:
    text = of(results, "one", "other")
    assert "of one's mean FCT" in text
    assert "gives intervals" not in text, "all seeds have the same flows"
    text = of(results, "drawn", "other drawn")
    assert text.endswith("; `sojourn compare SCENARIO --seeds 5` gives intervals.")
    text = of(results, "drawn", "other drawn", source="a.toml --vary transport=dctcp,timely")
    assert "`sojourn compare a.toml --vary transport=dctcp,timely --seeds 5`" in text
