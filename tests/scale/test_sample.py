"""Answers from folded networks."""

import json
import math
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import sojourn
from conftest import FOLDABLE
from sojourn import Result, ScenarioError
from sojourn.analysis import long_lived
from sojourn.analysis.fidelity import doubts
from sojourn.analysis.paired import ratios
from sojourn.compare.comparison import compare
from sojourn.runs import answers
from sojourn.runs.result_tables import LINKS
from sojourn.show.console import console
from sojourn.show.fidelity import doubt_lines, fidelity_lines
from sojourn.show.result import result_tables

SAMPLE = {"kind": "sample", "hosts": 64, "samples": 2}


def test_the_flows_of_all_samples_are_one_result() -> None:
    answer = sojourn.run(FOLDABLE | {"fidelity": SAMPLE})
    flows = answer.flows
    assert flows["sample"].value_counts().sort("sample")["count"].to_list() == [1000, 1000]
    assert flows["flow"].n_unique() == 2000
    assert answer.summary["counts"]["flows"] == 2000
    hops = sum(answer.summary["counts"]["packet_hops"].values())
    assert answer.summary["engine"]["events"] >= hops
    fidelity = answer.summary["fidelity"]
    assert (fidelity["hosts"], fidelity["kept"], fidelity["seeds"]) == (192, 64, [6, 7])
    assert answer.summary["scenario"]["topology"]["leaves"] == 12
    assert answer.summary["scenario"]["fidelity"] == SAMPLE | {
        "check": "auto",
        "precision": "none",
        "max_samples": 32,
    }
    lines = fidelity_lines([answer])
    assert "fidelity: sample: 2 x 64 of 192 hosts (4 of 12 leaves)" in lines
    assert "counts of flows, packets, drops and marks: sums of 2 samples" in lines


def test_throughputs_of_samples_are_those_of_the_network() -> None:
    changes = {"workload": {"kind": "long_lived"}, "time_limit": "2 ms", "warm_up": "1 ms"}
    throughput = long_lived.throughput()
    whole = throughput(sojourn.run(FOLDABLE | changes)).value
    line = "throughputs of long-lived flows: of the whole network, by its hosts"
    for samples in (1, 2):
        answer = sojourn.run(FOLDABLE | changes | {"fidelity": SAMPLE | {"samples": samples}})
        assert throughput(answer).value == pytest.approx(whole, rel=0.15)
        assert line in fidelity_lines([answer])


def test_full_shared_buffers_of_spines_cause_a_warning() -> None:
    # Racks with three uplinks are not divided.
    topology = FOLDABLE["topology"] | {"spines": 3, "fabric_rate": "10 Gbps"}
    slow = {"topology": topology, "workload": FOLDABLE["workload"] | {"load": 0.15}}
    for buffer, is_full in (("100 KB", True), ("200 MB", False)):
        switch = {"switch": {"shared_buffer": buffer}}
        answer = sojourn.run(FOLDABLE | slow | switch | {"fidelity": SAMPLE})
        full = answer.summary["fidelity"]["full_buffers"]
        drops = answer.links.filter(pl.col("name").str.starts_with("spine"))["drops"].sum()
        assert (full == drops > 0) == is_full
        assert ("more ports share" in doubts(answer).get("buffers", "")) == is_full


def test_full_shared_buffers_of_aggregation_switches_cause_a_warning_that_names_them() -> None:
    pods = {"kind": "clos", "pods": 4, "edges_per_pod": 8, "hosts_per_edge": 8}
    changes = {
        "topology": pods | {"aggregations_per_pod": 2, "cores": 16},
        "workload": FOLDABLE["workload"]
        | {"load": 0.7, "flows": 6000, "sizes": {"kind": "empirical", "table": "fb_hadoop"}},
        "transport": "dcqcn",
        "switch": {"shared_buffer": "400 KB"},
    }
    answer = sojourn.run(FOLDABLE | changes | {"fidelity": SAMPLE})
    assert answer.summary["fidelity"]["units"] == "4 of 4 pods, 2 of 8 racks in each"
    # All pods are kept, and with them the ports of core switches, which pause links, too.
    pauses = {
        kind: answer.links.filter(pl.col("name").str.contains(f"->{kind}"))["pauses"].sum()
        for kind in ("aggregation", "core")
    }
    assert min(pauses.values()) > 0
    assert answer.summary["fidelity"]["full_buffers"] == pauses["aggregation"]
    assert doubts(answer)["buffers"].startswith("shared buffers of aggregation switches were full")


@pytest.mark.parametrize("alpha", [{}, {"alpha": 1}], ids=["none", "alpha"])
@pytest.mark.parametrize(
    ("buffer", "capacity", "is_full"),
    [("12 MB", "20 KB", False), ("100 KB", "1 MB", True)],
    ids=["own", "shared"],
)
def test_drops_of_queues_that_are_full_by_themselves_cause_no_warning(
    alpha: Any, buffer: str, capacity: str, is_full: bool
) -> None:
    changes = {
        "topology": FOLDABLE["topology"] | {"spines": 3, "fabric_rate": "10 Gbps"},
        "workload": FOLDABLE["workload"] | {"load": 0.15},
        "transport": "tcp",
        "queue": {"kind": "drop_tail", "capacity": capacity},
        "environment": "paper",
        "switch": {"shared_buffer": buffer} | alpha,
    }
    answer = sojourn.run(FOLDABLE | changes | {"fidelity": SAMPLE})
    drops = answer.links.filter(pl.col("name").str.starts_with("spine"))["drops"].sum()
    assert drops > 0
    assert answer.summary["fidelity"]["full_buffers"] == (drops if is_full else 0)
    assert ("buffers" in doubts(answer)) == is_full


@pytest.mark.parametrize(("flows", "is_named"), [(300, True), (90, False)])
def test_sizes_without_a_p99_cause_no_warning_of_it(flows: int, is_named: bool) -> None:
    workload = FOLDABLE["workload"] | {"flows": flows}
    answer = sojourn.run(FOLDABLE | {"workload": workload, "fidelity": SAMPLE})
    assert ("few" in doubts(answer)) == is_named


def test_samples_that_cost_as_much_as_the_whole_are_stated() -> None:
    scenario = FOLDABLE | {"time_limit": "100 us"}
    line = "samples simulate 192 hosts, no fewer than `packets` would"
    for samples, is_stated in ((2, False), (3, True)):
        answer = sojourn.run(scenario | {"fidelity": SAMPLE | {"samples": samples}})
        assert (line in fidelity_lines([answer])) == is_stated


def test_histograms_of_all_samples_are_added() -> None:
    changes = {"samples": {"interval": "10 us", "rtts": True}}
    answer = sojourn.run(FOLDABLE | changes | {"fidelity": SAMPLE})
    folded = sojourn.fold(FOLDABLE | changes, 64).scenario
    parts = [sojourn.run(folded | {"seed": seed}).summary["rtts"][0] for seed in (6, 7)]
    (sums,) = answer.summary["rtts"]
    assert sum(sums["count"]) == sum(sum(part["count"]) for part in parts)
    for bounds in ("lower_s", "upper_s"):
        assert sums[bounds] == sorted({*parts[0][bounds], *parts[1][bounds]})


def test_recorded_flows_of_all_samples_are_numbered_through() -> None:
    changes = {
        "account": True,
        # Small queues lose packets.
        "queue": {"kind": "ecn_threshold", "capacity": "8 packets"},
        "record": {"slowest": 3, "random": 1, "hops": ["leaf0->spine0"]},
    }
    answer = sojourn.run(FOLDABLE | changes | {"fidelity": SAMPLE})
    folded = sojourn.fold(FOLDABLE | changes, 64).scenario
    first, second = (sojourn.run(folded | {"seed": seed}) for seed in (6, 7))
    recorded, later = answer.summary["record"]["flows"], second.summary["record"]["flows"]
    assert recorded[: -len(later)] == first.summary["record"]["flows"]
    for found, expected in zip(recorded[-len(later) :], later, strict=True):
        paths = {
            name: [f"{link} (sample 1)" for link in expected[name]]
            for name in ("forward", "reverse")
        }
        assert found == expected | {"flow": expected["flow"] + 1000} | paths
    assert {flow["flow"] for flow in recorded} == set(answer.packets["flow"])
    links = set(answer.links["name"])
    assert links.issuperset(link for flow in recorded for link in flow["forward"])
    lost = second.packets["lost_at"].drop_nulls().unique()
    assert len(lost) > 0
    names = set(answer.packets.filter(pl.col("flow") >= 1000)["lost_at"].drop_nulls())
    assert names == {f"{link} (sample 1)" for link in lost}
    assert answer.series.equals(first.series)
    assert answer.hops.equals(first.hops)


def test_output_states_what_is_of_the_first_sample_only() -> None:
    record = {"account": True, "record": {"slowest": 1}}
    hops = {"account": True, "record": {"slowest": 1, "hops": ["leaf0->spine0"]}}
    probes = {"samples": {"interval": "10 us"}}
    series = "counters of links over time"
    for changes, names in (
        ({}, ""),
        (record, series),
        (hops | probes, f"{series}, packets on links, sampled queues and rates"),
    ):
        for samples in (1, 2):
            fidelity = SAMPLE | {"samples": samples}
            answer = sojourn.run(FOLDABLE | changes | {"fidelity": fidelity})
            lines = [line for line in fidelity_lines([answer]) if "first sample" in line]
            expected = f"of the first sample only: {names}"
            assert lines == ([expected] if names and samples > 1 else [])


def test_warnings_and_deadlocks_of_all_samples_are_kept() -> None:
    plan = answers.plan(FOLDABLE | {"fidelity": SAMPLE})
    result = sojourn.run(plan.scenarios[0])
    cycles = [{"links": ["leaf0->spine0"], "since_s": since} for since in (1e-6, 2e-6)]
    results = [
        Result(
            result.flows,
            result.samples,
            result.summary | {"warnings": ["of both", line], "deadlocks": [cycle]},
            {LINKS: result.links},
        )
        for line, cycle in zip(("of the first", "of the second"), cycles, strict=True)
    ]
    summary = plan.combined(results).summary
    assert summary["warnings"] == ["of both", "of the first", "of the second"]
    assert summary["deadlocks"] == cycles


def test_samples_are_ordinary_runs() -> None:
    answer = sojourn.run(FOLDABLE | {"fidelity": SAMPLE})
    folded = sojourn.fold(FOLDABLE, 64).scenario
    second = sojourn.run(folded | {"seed": 7}).flows
    flows = answer.flows.filter(pl.col("sample") == 1)
    assert flows["fct_s"].to_list() == second["fct_s"].to_list()


def test_the_answer_is_near_that_of_the_whole_network() -> None:
    whole = sojourn.run(FOLDABLE).flows["slowdown"].mean()
    answer = sojourn.run(FOLDABLE | {"fidelity": SAMPLE}).flows["slowdown"].mean()
    assert answer == pytest.approx(whole, rel=0.1)


def test_half_the_size_shows_how_the_answer_depends_on_it() -> None:
    fidelity = {"kind": "sample", "hosts": 128, "samples": 1, "check": True}
    answer = sojourn.run(FOLDABLE | {"fidelity": fidelity})
    # The answer is that without the check.
    unchecked = sojourn.run(FOLDABLE | {"fidelity": fidelity | {"check": False}})
    assert answer.flows.equals(unchecked.flows)
    half = answer.summary["fidelity"]["half"]
    assert half["kept"] == 64
    smaller = sojourn.run(FOLDABLE | {"fidelity": SAMPLE | {"samples": 1}})
    small, large = (result.flows["slowdown"].to_numpy().mean() for result in (smaller, answer))
    assert half["errors"][0]["mean"] == pytest.approx(small / large - 1)
    assert any(line.startswith("of 64 hosts instead") for line in fidelity_lines([answer]))


RACKS = {"kind": "leaf_spine", "hosts_per_leaf": 12}


@pytest.mark.parametrize(
    ("topology", "hosts", "words"),
    [
        (
            RACKS | {"leaves": 12},
            72,
            "72 hosts, .* at least 72; leave it out, or set `hosts` to 144$",
        ),
        (RACKS | {"leaves": 11}, 72, "72 hosts, and .* has at least 72; leave it out$"),
        # 160 hosts keep 120, of divided racks.
        (
            {
                **{"kind": "clos", "pods": 3, "edges_per_pod": 4, "hosts_per_edge": 20},
                **{"aggregations_per_pod": 2, "cores": 2},
            },
            160,
            "120 hosts, and .* has at least 80; leave it out, or set `hosts` to 240$",
        ),
    ],
)
def test_too_few_hosts_for_half_the_size_are_an_error_of_check(
    topology: Any, hosts: int, words: str
) -> None:
    fidelity = {"kind": "sample", "hosts": hosts, "check": True}
    with pytest.raises(ScenarioError, match=f"^fidelity.check: uses half of the {words}"):
        sojourn.run(FOLDABLE | {"topology": topology, "fidelity": fidelity})


def test_a_mean_of_few_flows_causes_a_warning() -> None:
    answer = sojourn.run(FOLDABLE | {"fidelity": SAMPLE})
    assert "rare" not in doubts(answer)
    is_rare = pl.int_range(pl.len()) % 200 == 0
    slow = answer.flows.with_columns(slowdown=pl.when(is_rare).then(1e4).otherwise("slowdown"))
    lines = doubts(Result(slow, answer.samples, answer.summary))
    assert lines["rare"].startswith("1 % of the flows make up 9")


def test_a_size_without_p99_is_not_near_the_minimum_rto_that_a_transport_lacks() -> None:
    answer = sojourn.run(FOLDABLE | {"fidelity": SAMPLE})
    flows = answer.flows.head(99)
    scenario = answer.summary["scenario"]
    for least, p99_s in (("none", None), ("10 ms", 10e-3), ("10 ms", None)):
        transport = scenario["transport"] | {"reliability": {"min_rto": least}}
        of_least = answer.summary | {"scenario": scenario | {"transport": transport}}
        fcts = flows if p99_s is None else answer.flows.with_columns(fct_s=pl.lit(p99_s))
        lines = doubts(Result(fcts, answer.samples, of_least))
        assert ("cliff" in lines) == (p99_s is not None)


def test_a_trend_with_size_causes_a_warning_if_there_are_flows_enough() -> None:
    answer = sojourn.run(FOLDABLE | {"fidelity": SAMPLE})
    row = {"above": 0.0, "up_to": 1e4, "mean": 0.2, "p99": 0.0}
    for flows, has_doubt in ((999, False), (1000, True)):
        half = {"kept": 32, "errors": [row | {"flows": flows}]}
        fidelity = answer.summary["fidelity"] | {"half": half}
        summary = answer.summary | {"fidelity": fidelity}
        lines = doubts(Result(answer.flows, answer.samples, summary))
        assert ("half" in lines) == has_doubt


def test_the_warning_of_several_answers_is_the_worst_of_each_kind() -> None:
    answer = sojourn.run(FOLDABLE | {"fidelity": SAMPLE})
    row = {"above": 0.0, "up_to": 1e4, "flows": 1000, "p99": 0.0}
    answers = [
        Result(answer.flows, answer.samples, answer.summary | {"fidelity": fidelity})
        for mean in (0.52, 1.52, 0.2)
        for fidelity in [answer.summary["fidelity"] | {"self_check": [row | {"mean": mean}]}]
    ]
    (line,) = [line for line in doubt_lines(answers) if "the law of one sample" in line]
    assert "is wrong on another by up to 152 % (mean of ≤ 10 KB)" in line


def test_a_law_of_samples_with_unfinished_flows_cannot_be_checked() -> None:
    answer = sojourn.run(FOLDABLE | {"fidelity": SAMPLE})
    row = {"above": 0.0, "up_to": math.inf, "flows": 1000, "mean": math.inf, "p99": math.inf}
    summary = answer.summary | {"fidelity": answer.summary["fidelity"] | {"self_check": [row]}}
    assert doubts(Result(answer.flows, answer.samples, summary))["law"] == (
        "the law cannot be checked (mean of all): a sample has unfinished flows; give a longer "
        "`time_limit`"
    )


def test_what_a_fold_cannot_stand_for_causes_a_warning() -> None:
    assert not {"units", "fan_in"} & doubts(sojourn.run(FOLDABLE | {"fidelity": SAMPLE})).keys()
    incast = {"kind": "incast", "load": 0.2, "size": "20 KB", "events": 30}
    many, few = (
        sojourn.run(FOLDABLE | {"workload": incast | {"fan_in": fan_in}, "fidelity": SAMPLE})
        for fan_in in (20, 10)
    )
    assert doubts(many)["fan_in"] == "20 of 64 hosts send in each incast: keep 80 hosts or more"
    assert "fan_in" not in doubts(few)
    rows = [f"{number}e-6,{number % 192},{(7 * number + 1) % 192},20000" for number in range(3000)]
    text = "\n".join(["start_s,source,target,size_bytes", *rows])
    trace = {"kind": "trace", "file": {"name": "flows.csv", "text": text}}
    answer = sojourn.run(FOLDABLE | {"workload": trace, "fidelity": SAMPLE})
    assert "use the fidelity `flows`" in doubts(answer)["units"]
    answer = sojourn.run(FOLDABLE | {"workload": trace, "fidelity": SAMPLE | {"kind": "flows"}})
    assert "units" not in doubts(answer)


def test_schemes_are_paired_over_the_same_samples() -> None:
    base = FOLDABLE | {"fidelity": SAMPLE}
    _, runs = compare(base, {"transport": ["dctcp", "swift"]}, seeds=1)
    table = ratios(runs, by="transport")
    assert table["same_flows"].all()
    assert table["pairs"].max() == 2000


def test_infinite_sizes_and_errors_are_null_in_the_summary(tmp_path: Path) -> None:
    answer = sojourn.run(FOLDABLE | {"fidelity": SAMPLE | {"precision": "20%"}})
    row = {"above": 1e6, "up_to": math.inf, "mean": math.inf, "p99": 0.1}
    fidelity = answer.summary["fidelity"]
    fidelity |= {"self_check": [row], "half": {"kept": 64, "errors": [row]}}
    fidelity["precision"] |= {"up_to": math.inf, "reached": math.inf}
    assert fidelity["p99"]["fct_s"][-1]["up_to"] == math.inf
    answer.write(tmp_path)
    text = (tmp_path / "summary.json").read_text(encoding="utf-8")
    json.loads(text, parse_constant=pytest.fail)
    stored = Result.read(tmp_path).summary["fidelity"]
    assert {name: stored[name] for name in ("self_check", "half", "precision", "p99")} == {
        name: fidelity[name] for name in ("self_check", "half", "precision", "p99")
    }


def test_samples_come_from_the_cache(tmp_path: Any) -> None:
    for threads in (1, 2):
        sojourn.run(FOLDABLE | {"fidelity": SAMPLE}, cache=tmp_path, threads=threads)
    assert len([entry for entry in tmp_path.iterdir() if entry.is_dir()]) == 2


@pytest.mark.parametrize(
    ("fidelity", "message"),
    [
        ("packet", "did you mean `packets`"),
        ({"hosts": 64}, "a table with a `kind`"),
        ({"kind": "sample", "host": 64}, "fidelity.host: unknown field"),
        ({"kind": "sample", "samples": 0}, "fidelity.samples: must be a whole number"),
        ({"kind": "packets", "hosts": 64}, "fidelity.hosts: unknown field; packets has kind"),
        ({"kind": "sample", "hosts": 8}, "^fidelity.hosts: 8: too few"),
        ({"kind": "flows", "hosts": 8}, "^fidelity.hosts: 8: too few"),
    ],
)
def test_errors_name_the_field(fidelity: Any, message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        sojourn.run(FOLDABLE | {"fidelity": fidelity})


def test_a_link_that_a_fold_lacks_is_missing_in_the_folded_network() -> None:
    samples = {"interval": "10 us", "queues": ["leaf10->spine0"]}
    with pytest.raises(ScenarioError, match="in the folded network of 64 hosts") as error:
        sojourn.run(FOLDABLE | {"fidelity": SAMPLE, "samples": samples})
    assert str(error.value).startswith("samples.queues[0]: there is no link `leaf10->spine0`")


@pytest.mark.parametrize("fidelity", [SAMPLE, SAMPLE | {"kind": "flows"}], ids=["sample", "flows"])
def test_samples_have_valid_seeds_under_the_largest_seed(fidelity: Any) -> None:
    answer = sojourn.run(FOLDABLE | {"seed": (1 << 64) - 1, "fidelity": fidelity})
    assert answer.summary["fidelity"]["seeds"] == [(1 << 64) - 2, (1 << 64) - 1]
    assert answer.summary["seed"] == (1 << 64) - 1


def test_an_ideal_has_no_samples() -> None:
    with pytest.raises(ScenarioError, match="not for the ideal max_min"):
        sojourn.run(FOLDABLE | {"fidelity": "sample", "model": "max_min"})


@pytest.mark.parametrize(
    ("workload", "long_lived"),
    [({"kind": "long_lived"}, 128), (FOLDABLE["workload"] | {"load": 1e-4, "flows": 1}, 0)],
    ids=["long-lived", "warm-up"],
)
def test_samples_without_a_timed_flow_have_an_answer(workload: Any, long_lived: int) -> None:
    changes = {"workload": workload, "warm_up": "50 us", "time_limit": "100 us"}
    answer = sojourn.run(FOLDABLE | changes | {"fidelity": SAMPLE})
    assert answer.summary["counts"]["long_lived"] == long_lived
    for rows in answer.summary["fidelity"]["p99"].values():
        assert [(row["flows"], row["p99"]) for row in rows] == [(0, None)] * 4
    with console.capture() as capture:
        console.print(result_tables(answer))
    assert ("Jain index" in capture.get()) == bool(long_lived)
