"""First lines of pages, the counts of a run and its fidelity, and the network of samples."""

import json
import re
from typing import Any

import polars as pl

import sojourn
from conftest import FOLDABLE
from sojourn.analysis import metrics
from sojourn.runs.results import Result, Run
from sojourn.runs.runner import run_many
from sojourn.show.fidelity import doubt_lines, fidelity_lines
from sojourn.view import network_blocks, page

INCAST: dict[str, Any] = {
    "topology": {"kind": "star", "hosts": 9, "rate": "40 Gbps", "delay": "1 us"},
    "workload": {"kind": "incast", "fan_in": 8, "size": "400 KB", "events": 4, "interval": "1 ms"},
}
NDP = INCAST | {
    "transport": "ndp",
    "routing": "spray_random",
    "packet": {"payload": "1436 B", "header": "64 B", "ack": "64 B"},
    "queue": {"kind": "composite", "capacity": "8 packets"},
}
PFC = INCAST | {
    "transport": "dcqcn",
    "environment": "lossless_datacentre",
    "switch": {"shared_buffer": "2 MB", "pause": {"alpha": 0.125}},
}


def test_trims_and_pauses_are_counted_where_they_happen() -> None:
    for scenario, name, other in ((NDP, "trims", "pauses"), (PFC, "pauses", "trims")):
        (result,) = run_many([scenario])
        count = result.summary["counts"][name]
        assert count > 0
        text = page.render([Run({"scheme": "one"}, result)], source="one.toml")
        assert f'"{count} {name}"' in text
        assert f' {other}"' not in text


def head_of(result: Result) -> dict[str, Any]:
    text = page.render([Run({"scheme": "one"}, result)], source="one.toml")
    found = re.search(r'id="block-head"[^>]*>(.*?)</script>', text, re.DOTALL)
    assert found
    head: dict[str, Any] = json.loads(found[1])
    return head


SAMPLED = FOLDABLE | {
    "account": True,
    "record": {"slowest": 1},
    "workload": FOLDABLE["workload"] | {"flows": 600},
}


def test_of_several_samples_the_network_is_the_first() -> None:
    fidelity = {"kind": "sample", "hosts": 64, "samples": 2}
    answer, one = run_many(
        [SAMPLED | {"fidelity": fidelity | {"samples": samples}} for samples in (2, 1)]
    )
    assert len(answer.summary["links"]) == 2 * len(one.summary["links"])
    nodes = network_blocks.nodes(answer)
    assert nodes == network_blocks.nodes(one)
    assert sum(nodes["isSwitch"]) == 4 + 4
    head = head_of(answer)
    assert head["network"] == nodes
    assert [entry["hasLinks"] for entry in head["runs"][0]["recorded"]] == [
        entry["flow"] < 200 for entry in head["runs"][0]["recorded"]
    ]
    busiest = max(one.summary["links"], key=lambda link: link["utilisation"])["name"]
    assert busiest in set(answer.series["link"])
    first = answer.flows.filter(pl.col("sample") == 0)
    expected = metrics.in_progress_in_bins(
        answer.with_flows(first), network_blocks.IN_PROGRESS_BINS
    )
    assert head["runs"][0]["inProgress"]["max"] == expected["max"].to_list()


def test_a_page_states_the_fidelity_of_a_run() -> None:
    answer = sojourn.run(SAMPLED | {"fidelity": {"kind": "sample", "hosts": 64, "samples": 2}})
    (run,) = head_of(answer)["runs"]
    stated = [*fidelity_lines([answer]), *doubt_lines([answer])]
    assert stated[0].startswith("fidelity: sample: 2 x 64 of 192 hosts")
    assert set(run["fidelity"]) - set(stated) == {
        "of the first sample only: network and flows in progress"
    }
    assert set(stated) <= set(run["fidelity"])
    whole = sojourn.run(SAMPLED | {"fidelity": "packets"})
    assert head_of(whole)["runs"][0]["fidelity"] == doubt_lines([whole])
