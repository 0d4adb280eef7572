"""Answers of a fluid whose completion times become those of packets."""

from typing import Any

import numpy as np
import polars as pl
import pytest

import sojourn
from sojourn import Result, ScenarioError
from sojourn.analysis import metrics
from sojourn.analysis.fidelity import doubts
from sojourn.analysis.paired import ratios
from sojourn.analysis.rpc import latency
from sojourn.compare.comparison import compare
from sojourn.compare.tables import counter_tables
from sojourn.runs import answers
from sojourn.runs.answers import OF_PACKETS
from sojourn.scale.errors import Floats
from sojourn.scale.law import Flags, FluidFlows, Law
from sojourn.scale.network import read_network, sprays
from sojourn.scenario.encoding import Prepared, parts, schema
from sojourn.show.console import console
from sojourn.show.fidelity import fidelity_lines
from sojourn.show.result import result_tables

SCENARIO: dict[str, Any] = {
    "seed": 3,
    "topology": {"kind": "leaf_spine", "leaves": 12},
    "workload": {
        **{"kind": "poisson", "load": 0.5, "flows": 6000},
        "sizes": {"kind": "uniform", "min": "1 KB", "max": "100 KB"},
    },
    "transport": "dctcp",
}
FLOWS: dict[str, Any] = {"kind": "flows", "hosts": 64, "samples": 2}

SIZE = {"kind": "fixed", "size": "20 KB"}
CALLS = {"kind": "rpc", "request": SIZE, "response": SIZE}


def test_the_whole_network_is_predicted() -> None:
    answer = sojourn.run(SCENARIO | {"fidelity": FLOWS})
    whole = sojourn.run(SCENARIO).flows
    flows = answer.flows
    names = ("flow", "source", "target", "size_bytes", "start_s", "class", "ideal_fct_s")
    assert flows.select(names).equals(whole.select(names))
    assert (flows["slowdown"] >= 1).all()
    assert flows["slowdown"].mean() == pytest.approx(whole["slowdown"].mean(), rel=0.05)
    assert flows["slowdown"].quantile(0.99) == pytest.approx(
        whole["slowdown"].quantile(0.99), rel=0.15
    )
    fidelity = answer.summary["fidelity"]
    assert (fidelity["kind"], fidelity["hosts"], fidelity["kept"]) == ("flows", 192, 64)
    assert fidelity["sparse"] == 0
    assert abs(fidelity["self_check"][0]["mean"]) < 0.1
    assert any(line.startswith("self-check") for line in fidelity_lines([answer]))


def test_answers_with_an_equal_hash_have_the_same_law() -> None:
    def law_of(**changes: Any) -> str:
        answer = sojourn.run(SCENARIO | changes | {"fidelity": FLOWS})
        law: str = answer.summary["fidelity"]["law"]
        assert f"law: learnt from 2 samples, hash {law}" in fidelity_lines([answer])
        return law

    law = law_of()
    assert len(law) == 16
    assert law_of(name="again") == law
    assert len({law, law_of(seed=4), law_of(transport="swift")}) == 3


@pytest.mark.parametrize(
    ("kind", "line"),
    [
        ("sample", "sample: 2 runs of the whole network of 192 hosts"),
        ("flows", "flows: a fluid, corrected by 2 runs of the whole network of 192 hosts"),
    ],
)
def test_an_answer_by_runs_of_the_whole_network_names_its_kind(kind: str, line: str) -> None:
    answer = sojourn.run(SCENARIO | {"fidelity": {"kind": kind, "hosts": 192, "samples": 2}})
    assert fidelity_lines([answer])[0] == f"fidelity: {line}"


def test_what_a_law_does_not_predict_is_null() -> None:
    workload = CALLS | {"pattern": {"load": 0.3, "calls": 600}}
    answer = sojourn.run(SCENARIO | {"workload": workload, "fidelity": FLOWS})
    assert all(answer.flows[name].null_count() == 1200 for name in OF_PACKETS)
    with pytest.raises(ScenarioError, match="latency: fidelity `flows` predicts FCTs of requests"):
        latency("p99")(answer)


def test_counters_that_a_fluid_lacks_are_dashes() -> None:
    answer = sojourn.run(SCENARIO | {"fidelity": FLOWS})
    assert answer.summary["counts"] == {
        **{"flows": 6000, "finished": 6000, "unfinished": 0},
        **{"long_lived": 0, "terminated": 0},
    }
    with console.capture() as capture:
        console.print(result_tables(answer))
    assert "timeouts" not in capture.get()
    printed = " ".join(capture.get().split())
    assert "without a bias of these, at least the error of the self-check; ± -:" in printed
    table, _ = compare(SCENARIO, {"fidelity": [FLOWS, "packets"]}, seeds=1)
    (counters,) = counter_tables(table)
    for name in ("drops", "marks", "pauses", "timeouts", "retransmits", "queue max"):
        column = counters.columns.index(name)
        assert [row[column] == "-" for row in counters.rows] == [True, False]


def test_unfinished_flows_without_a_number_of_timeouts_are_listed() -> None:
    result = sojourn.run(SCENARIO | {"time_limit": "100 us"})
    flows = result.flows.with_columns(timeouts=pl.lit(None, pl.UInt32))
    with console.capture() as capture:
        console.print(result_tables(Result(flows, result.samples, result.summary)))
    assert "unfinished flows with most remaining bytes" in capture.get()


@pytest.mark.parametrize(("limit", "flows"), [("1 us", 2), ("1 ns", 0)])
def test_a_run_in_which_no_flow_ends_has_an_answer(limit: str, flows: int) -> None:
    answer = sojourn.run(SCENARIO | {"time_limit": limit, "fidelity": FLOWS})
    assert answer.summary["counts"]["unfinished"] == answer.flows.height == flows


def test_a_law_is_that_of_flows_after_the_warm_up() -> None:
    # The queues of Swift at a high load fill for some milliseconds.
    poisson = SCENARIO["workload"] | {
        "load": 0.85,
        "sizes": {"kind": "exponential", "mean": "50 KB"},
    }
    changes = {"transport": "swift", "workload": poisson | {"flows": 16_000}, "warm_up": "4 ms"}
    ratios = []
    for seed in (3, 4, 5):
        means = []
        for fidelity in (FLOWS, "packets"):
            result = sojourn.run(SCENARIO | changes | {"seed": seed, "fidelity": fidelity})
            means.append(metrics.timed(result)["slowdown"].to_numpy().mean())
        ratios.append(means[0] / means[1])
    assert np.mean(ratios) == pytest.approx(1.0, abs=0.08)


def test_flows_that_would_end_after_the_limit_are_unfinished() -> None:
    limit_s = 400e-6
    answer = sojourn.run(SCENARIO | {"time_limit": "400 us", "fidelity": FLOWS})
    is_done = pl.col("outcome") == "finished"
    done, left = answer.flows.filter(is_done), answer.flows.filter(~is_done)
    assert (done["start_s"] + done["fct_s"] <= limit_s).all()
    assert (done["delivered_bytes"] == done["size_bytes"]).all()
    assert left["fct_s"].null_count() == left["slowdown"].null_count() == left.height
    assert (left["delivered_bytes"] < left["size_bytes"]).all()
    assert answer.summary["counts"]["unfinished"] == left.height > 0
    assert answer.summary["simulated_s"] == limit_s


def test_an_unfinished_flow_has_delivered_the_share_of_its_time() -> None:
    columns = ("flow", "size_bytes", "start_s", "ideal_fct_s", "outcome", "delivered_bytes")
    rows = [
        *((number, 1000, start, 1.0, "finished", 1000) for number, start in enumerate((0, 6, 6))),
        (3, 1000, 6.0, 1.0, "unfinished", 7),
    ]
    fluid = pl.DataFrame(rows, schema=columns, orient="row")
    fluid = fluid.with_columns(pl.lit(None, pl.UInt32).alias(name) for name in OF_PACKETS)
    flows = answers._predicted(fluid, np.array([10.0, 8.0, np.inf, np.inf]), limit_s=10.0)
    assert flows["fct_s"].to_list() == [10, None, None, None]
    assert flows["outcome"].to_list() == ["finished", *["unfinished"] * 3]
    assert flows["delivered_bytes"].to_list() == [1000, 500, None, None]


def test_a_flow_that_the_fluid_does_not_finish_continues_at_its_rate() -> None:
    columns = {"class": ["poisson"] * 3, "source": [0, 1, 2], "target": [20, 21, 22]}
    times = {"start_s": [0.0, 2.0, 4.0], "ideal_fct_s": [2.0] * 3, "slowdown": [1.5, None, None]}
    data = {"size_bytes": [1000] * 3, "delivered_bytes": [1000, 400, 0]}
    network = read_network(Prepared(SCENARIO).complete()["topology"])
    fluid = answers._fluid_flows(pl.DataFrame(columns | times | data), ["poisson"], network, 10.0)
    assert fluid.limits.tolist() == [5, 4, 3]
    assert fluid.slowdowns.tolist() == [1.5, 10, np.inf]
    assert fluid.within_limits(fluid.slowdowns).tolist() == [1.5, np.inf, np.inf]


def test_a_run_with_flows_without_an_end_ends_at_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    predict = Law.predict

    def without_some_ends(law: Law, flows: FluidFlows, seed: int) -> tuple[Floats, Flags]:
        slowdowns, are_sparse = predict(law, flows, seed)
        return np.where(np.arange(len(slowdowns)) % 10, slowdowns, np.inf), are_sparse

    monkeypatch.setattr(Law, "predict", without_some_ends)
    answer = sojourn.run(SCENARIO | {"time_limit": "20 ms", "fidelity": FLOWS})
    left = answer.flows.filter(pl.col("outcome") != "finished")
    assert left["delivered_bytes"].null_count() == left.height == 600
    assert answer.summary["simulated_s"] == 20e-3
    with console.capture() as capture:
        console.print(result_tables(answer))
    text = capture.get()
    assert "did not finish before the end of the run at 20 ms" in text
    (row,) = [line for line in text.splitlines() if line.split()[:1] == ["0"]]
    assert " - " in row


@pytest.mark.parametrize(("factor", "has_doubt"), [(0.85, True), (0.95, False), (1.2, False)])
def test_a_fluid_that_is_faster_in_samples_causes_a_warning(factor: float, has_doubt: bool) -> None:
    answer = sojourn.run(SCENARIO | {"fidelity": FLOWS})
    fidelity = answer.summary["fidelity"]
    fluid = fidelity["fluid"]
    assert fluid["samples"] == pytest.approx(fluid["whole"], rel=0.15)
    fluid = fluid | {"samples": factor * fluid["whole"]}
    summary = answer.summary | {"fidelity": fidelity | {"fluid": fluid}}
    lines = doubts(Result(answer.flows, answer.samples, summary))
    assert ("fluid" in lines) == has_doubt
    assert ("15 % lower mean slowdown in samples" in lines.get("fluid", "")) == has_doubt


def test_the_answer_does_not_depend_on_threads() -> None:
    answers = [sojourn.run(SCENARIO | {"fidelity": FLOWS}, threads=n).flows for n in (1, 2)]
    assert answers[0].equals(answers[1])


def test_schemes_share_the_fluid_and_are_not_paired_by_flow(tmp_path: Any) -> None:
    base = SCENARIO | {"fidelity": FLOWS}
    _, runs = compare(base, {"transport": ["dctcp", "swift"]}, seeds=1, cache=tmp_path)
    assert not ratios(runs, by="transport")["same_flows"].any()
    # Two samples of each scheme, and three runs of the fluid.
    assert len([entry for entry in tmp_path.iterdir() if entry.is_dir()]) == 2 * 2 + 3


def test_routings_spray_if_bursts_take_several_paths() -> None:
    routings = [
        word["const"] for word in schema()["properties"]["routing"]["anyOf"][0]["anyOf"]
    ] + [policy["name"] for policy in parts()["load_balancer"]]
    assert {routing for routing in routings if sprays(routing)} == {
        *("spray_round_robin", "spray_random", "entropy"),
        *("random_next_hop", "shortest_queue"),
    }
    assert {"ecmp", "flow_hash", "weighted_ecmp", "flowlets", "conga"} <= set(routings)


@pytest.mark.parametrize("routing", ["flowlets", "weighted_ecmp"])
def test_routings_with_one_path_for_a_burst_are_answered(routing: str) -> None:
    changes = {"routing": routing, "fidelity": FLOWS, "time_limit": "20 us"}
    assert sojourn.run(SCENARIO | changes).summary["fidelity"]["kind"] == "flows"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"account": True}, "account: fidelity `flows` predicts completion times only"),
        ({"workload": {"kind": "long_lived"}}, "long-lived flows have no completion time"),
        (
            {
                "workload": {"kind": "collective", "algorithm": "ring", "ranks": 4, "size": "1 MB"},
                "fidelity": FLOWS | {"hosts": 192},
            },
            "messages of collective operations follow others",
        ),
        (
            {"workload": CALLS | {"pattern": {"outstanding": 2, "calls": 600}}},
            r"workload: calls of a closed loop \(`outstanding`\) follow others",
        ),
        (
            {"routing": "spray_random"},
            "routing: under `flows` a flow has one path, and spray_random sprays its packets",
        ),
        (
            {"transport": "ndp"},
            "and entropy sprays its packets; use the fidelity `sample`, or give a routing with one",
        ),
        (
            {"routing": {"kind": "shortest_queue", "samples": 2}},
            "and shortest_queue sprays its packets; use the fidelity `sample`",
        ),
        (
            {
                "degraded_links": [{"switch": "leaf0", "share": 0.5}],
                "fidelity": FLOWS | {"hosts": 256},
            },
            "degraded_links: the fluid of fidelity `flows` has the links of the topology",
        ),
        (
            {
                "workload": SCENARIO["workload"] | {"deadlines": {"mean": "1 ms"}},
                "transport": "pdq",
            },
            "transport: pdq terminates flows that miss their deadlines",
        ),
        (
            {
                "workload": SCENARIO["workload"] | {"deadlines": {"mean": "1 ms"}},
                "transport": {"kind": "d3", "early_termination": False},
            },
            "transport: d3 gives rates by deadlines, which the law of fidelity `flows` does not",
        ),
        (
            {
                "workload": SCENARIO["workload"] | {"deadlines": {"mean": "1 ms"}},
                "transport": {"kind": "pfabric", "deadlines": "first"},
            },
            "transport: pfabric gives rates by deadlines",
        ),
        (
            {
                "workload": SCENARIO["workload"] | {"deadlines": {"mean": "1 ms"}},
                "transports": {"poisson": {"kind": "d2tcp", "early_termination": True}},
            },
            "transports.poisson: d2tcp terminates flows",
        ),
        ({"fidelity": FLOWS | {"samples": 1}}, "fidelity.samples: flows needs 2 or more"),
    ],
)
def test_what_a_law_cannot_predict_is_refused(changes: Any, message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        sojourn.run(SCENARIO | {"fidelity": FLOWS} | changes)


@pytest.mark.parametrize(
    ("column", "deadline", "is_refused"), [("", "", False), (",deadline_s", ",1e-3", True)]
)
def test_a_trace_with_deadlines_may_have_terminated_flows(
    column: str, deadline: str, is_refused: bool
) -> None:
    rows = [f"{n}e-6,{n % 192},{(7 * n + 50) % 192},2000{deadline}" for n in range(2000)]
    text = "\n".join([f"start_s,source,target,size_bytes{column}", *rows])
    trace = {"kind": "trace", "file": {"name": "flows.csv", "text": text}}
    scenario = SCENARIO | {"workload": trace, "transport": "pdq"}
    # A fold adds no deadlines.
    for whole in (scenario, sojourn.fold(scenario, 96).scenario):
        if is_refused:
            with pytest.raises(ScenarioError, match="pdq terminates flows"):
                answers.plan(whole | {"fidelity": FLOWS})
        else:
            answers.plan(whole | {"fidelity": FLOWS})


def with_queries(racks: range) -> dict[str, Any]:
    """Return a scenario in which a half percent of the flows are queries, for `racks`."""
    random, flows = np.random.default_rng(1), 8000
    is_query = np.arange(flows) % 200 == 0
    queries = random.integers(16 * racks[0], 16 * racks[-1] + 16, flows)
    targets = np.where(is_query, queries, random.integers(0, 192, flows))
    table = pl.DataFrame(
        {
            "start_s": np.arange(flows) * 5e-7,
            "source": (targets + random.integers(1, 192, flows)) % 192,
            "target": targets,
            "size_bytes": np.where(is_query, 2000, random.integers(12_000, 28_000, flows)),
            "class": np.where(is_query, "query", "bulk"),
        }
    )
    file = {"name": "flows.csv", "text": table.write_csv(float_precision=12)}
    return SCENARIO | {"workload": {"kind": "trace", "file": file}, "fidelity": FLOWS}


def has_queries(scenario: Any) -> bool:
    """Return true if a sample has a query."""
    samples = answers.plan(scenario).scenarios[: FLOWS["samples"]]
    return any("query" in str(sample) for sample in samples)


@pytest.mark.parametrize("has_doubt", [True, False])
def test_a_class_without_flows_in_samples_is_named(has_doubt: bool) -> None:
    of_single_racks = (with_queries(range(rack, rack + 1)) for rack in range(12))
    lacking = next(each for each in of_single_racks if not has_queries(each))
    answer = sojourn.run(lacking if has_doubt else with_queries(range(12)))
    shares = answer.summary["fidelity"]["sparse_classes"]
    assert shares == {"bulk": 0, "query": 1 if has_doubt else 0}
    doubt = doubts(answer).get("sparse", "")
    assert ("100 % of the flows of class query" in doubt) == has_doubt
    with console.capture() as capture:
        console.print(result_tables(answer), width=160, soft_wrap=True)
    table_by_class = capture.get().split("by class")[1].split("busiest links")[0]
    (line,) = [each for each in table_by_class.splitlines() if each.strip().startswith("query")]
    assert ("±" in line.replace(" ", "").replace("±-", "")) != has_doubt


def test_terminated_flows_of_samples_are_an_error() -> None:
    plan = answers.plan(SCENARIO | {"time_limit": "50 us", "fidelity": FLOWS})
    results = [sojourn.run(scenario) for scenario in plan.scenarios]
    given_up = results[0].flows.with_columns(outcome=pl.lit("terminated"))
    results[0] = Result(given_up, results[0].samples, results[0].summary)
    with pytest.raises(ScenarioError, match="transport: terminates flows"):
        plan.combined(results)
