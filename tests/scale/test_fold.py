"""Folded networks."""

import re
from typing import Any

import numpy as np
import polars as pl
import pytest

import sojourn
from sojourn import ScenarioError
from sojourn.analysis.fidelity import doubts
from sojourn.runs.result_tables import flow_table
from sojourn.scale.network import read_network
from sojourn.scenario.encoding import trace

SIZES = {"kind": "fixed", "size": "20 KB"}
CLOS = {
    **{"kind": "clos", "pods": 8, "edges_per_pod": 8, "hosts_per_edge": 8},
    **{"aggregations_per_pod": 2, "cores": 16},
}
POISSON = {"kind": "poisson", "load": 0.3, "sizes": SIZES, "flows": 8000}


def scenario(topology: Any, workload: Any, **fields: Any) -> dict[str, Any]:
    return {"topology": topology, "workload": workload, "transport": "dctcp", **fields}


def test_a_fold_has_the_locality_of_the_whole() -> None:
    folded = sojourn.fold(scenario(CLOS, POISSON), 64)
    assert (folded.hosts, folded.kept) == (512, 64)
    topology = folded.scenario["topology"]
    assert (topology["pods"], topology["edges_per_pod"], topology["cores"]) == (4, 2, 4)
    workload = folded.scenario["workload"]
    assert workload["flows"] == 1000
    assert workload["shares"] == pytest.approx([7 / 511, 56 / 511, 448 / 511])


@pytest.mark.parametrize(
    "topology",
    [CLOS, {"kind": "leaf_spine", "leaves": 16}, {"kind": "fat_tree", "k": 8}],
    ids=["clos", "leaf_spine", "fat_tree"],
)
def test_links_of_every_tier_carry_what_they_carry_in_the_whole(topology: Any) -> None:
    # The core computes the loads of whole and folded network from their paths.
    whole = scenario(topology, POISSON | {"flows": 10})
    folded = sojourn.fold(whole, 64)
    assert folded.kept == 64
    loads = [
        {tier["tier"].replace("spine", "core"): tier["load"] for tier in result["load_by_tier"]}
        for result in (sojourn.run(each).summary for each in (whole, folded.scenario))
    ]
    assert loads[1] == pytest.approx(loads[0], rel=0.001)
    names = {"access": "host->leaf", "fabric": "leaf->core"}
    if topology["kind"] != "leaf_spine":
        names = {"access": "host->edge", "fabric": "edge->aggregation", "core": "aggregation->core"}
    for tier, name in names.items():
        assert folded.utilisations[tier] == pytest.approx((loads[0][name],) * 2, rel=0.001)


def test_a_fold_states_at_which_ports_two_links_meet() -> None:
    def lines(topology: Any, hosts: int) -> str:
        return "\n".join(sojourn.fold(scenario(topology, POISSON), hosts).not_preserved)

    assert "2 instead of 8 racks share an uplink" in lines(CLOS, 64)
    assert "instead" not in lines(CLOS, 128)
    fast_core = CLOS | {"cores": 2, "core_rate": "400 Gbps"}
    assert "2 instead of 8 pods share the core switches" in lines(fast_core, 128)
    assert "instead" not in lines({"kind": "leaf_spine", "leaves": 16}, 64)


SLOW_CORE = {
    **{"kind": "clos", "pods": 12, "edges_per_pod": 6, "hosts_per_edge": 16},
    **{"aggregations_per_pod": 8, "cores": 8, "fabric_rate": "10 Gbps", "core_rate": "10 Gbps"},
}
"""Network whose core is the most loaded tier, and of which two pods have 192 hosts."""


def test_a_fold_with_a_loaded_core_has_many_pods() -> None:
    whole = scenario(SLOW_CORE, POISSON | {"load": 0.05})
    folded = sojourn.fold(whole)
    assert folded.units == "10 of 12 pods, 4 of 16 hosts in a rack"
    assert (folded.kept, folded.enough) == (240, 0)
    sizes = ("hosts_per_edge", "aggregations_per_pod", "cores")
    assert [folded.scenario["topology"][name] for name in sizes] == [4, 2, 2]
    for loads in folded.utilisations.values():
        assert loads[1] == pytest.approx(loads[0])
    # Whole racks, if these are few enough hosts.
    assert sojourn.fold(whole, 400).units == "8 of 12 pods, 8 of 16 hosts in a rack"
    assert sojourn.fold(whole, 1000).units == "10 of 12 pods"
    # A core that is far from being the bottleneck has no queues that pods could share.
    fast = scenario(SLOW_CORE | {"core_rate": "100 Gbps"}, POISSON | {"load": 0.05})
    assert sojourn.fold(fast).units == "2 of 12 pods"


@pytest.mark.parametrize(
    ("changes", "units"),
    [
        ({}, "8 of 16 leaves, 8 of 16 hosts in a rack"),
        ({"fabric_rate": "40 Gbps"}, "4 of 16 leaves"),
        ({"spines": 16}, "4 of 16 leaves"),
        ({"spines": 3}, "4 of 16 leaves"),
    ],
    ids=["bottleneck", "fast", "no bottleneck", "indivisible"],
)
def test_a_fold_has_many_leaves_if_their_slow_uplinks_are_the_bottleneck(
    changes: Any, units: str
) -> None:
    leaves = {"kind": "leaf_spine", "leaves": 16, "hosts_per_leaf": 16}
    topology = leaves | {"spines": 2, "fabric_rate": "10 Gbps"} | changes
    folded = sojourn.fold(scenario(topology, POISSON | {"load": 0.05}), 64)
    assert (folded.kept, folded.units) == (64, units)
    switches = "leaf and spine" if "hosts" in units else "spine"
    assert folded.not_preserved[0].startswith(f"{switches} switches have fewer ports")


@pytest.mark.parametrize(
    ("transport", "units"),
    [("dctcp", "8 of 32 leaves, 8 of 16 hosts in a rack"), ("ndp", "4 of 32 leaves")],
)
def test_racks_are_not_divided_if_packets_are_sprayed(transport: str, units: str) -> None:
    rates = {"host_rate": "100 Gbps", "fabric_rate": "200 Gbps"}
    whole = {
        "topology": {"kind": "leaf_spine", "leaves": 32, **rates},
        "transport": transport,
        "workload": {
            **{"kind": "poisson", "load": 0.42, "flows": 1000},
            "sizes": {"kind": "fixed", "size": "10 KB"},
        },
    }
    assert sojourn.fold(whole, 64).units == units


@pytest.mark.parametrize(
    ("others", "units"),
    [
        ([], "8 of 16 leaves, 8 of 16 hosts in a rack"),
        ([{"kind": "incast", "fan_in": 16, "size": "50 KB", "load": 0.02}], "4 of 16 leaves"),
    ],
    ids=["alone", "incasts"],
)
def test_racks_are_not_divided_beside_incasts(others: list[Any], units: str) -> None:
    slow = {"spines": 2, "host_rate": "10 Gbps", "fabric_rate": "20 Gbps"}
    topology = {"kind": "leaf_spine", "leaves": 16, "hosts_per_leaf": 16, **slow}
    mixed = {"kind": "mixed", "parts": [POISSON | {"load": 0.1}, *others]}
    nested = {"kind": "mixed", "parts": [mixed]}
    assert sojourn.fold(scenario(topology, nested), 64).units == units


def test_too_few_pods_for_a_loaded_core_cause_a_warning_or_an_error() -> None:
    # Racks with one uplink are not divided.
    single = SLOW_CORE | {"aggregations_per_pod": 1, "cores": 1}
    few = "2 of 12 pods share the core, which is the most loaded tier or nearly: .* keep 384 hosts"
    for load, core_rate in ((0.002, "10 Gbps"), (0.02, "40 Gbps")):
        whole = scenario(single | {"core_rate": core_rate}, POISSON | {"load": load})
        folded = sojourn.fold(whole)
        assert (folded.kept, folded.enough) == (192, 384)
        assert re.match(few, doubts_of(whole)["pods"])
        assert any(line.startswith("warning: 2 of 12 pods") for line in folded.lines())
        assert sojourn.fold(whole, 384).enough == 0
    with pytest.raises(ScenarioError, match=f"hosts: {few}"):
        sojourn.fold(scenario(single, POISSON | {"load": 0.005}))


LOCAL = {
    **{"kind": "clos", "pods": 4, "edges_per_pod": 8, "hosts_per_edge": 16},
    **{"aggregations_per_pod": 8, "cores": 64, "fabric_rate": "10 Gbps", "core_rate": "10 Gbps"},
}
"""Network whose fabric is the most loaded tier if most traffic stays in pods."""


def within_pods(share: float, **workload: Any) -> dict[str, Any]:
    shares = [0.05, 0.95 * share, 0.95 * (1 - share)]
    return POISSON | {"load": 0.05, "pairs": "by_distance", "shares": shares} | workload


@pytest.mark.parametrize(
    ("share", "changes", "units"),
    [
        (0.9, {}, "2 of 4 pods, 4 of 8 racks in each"),
        (0.9, {"fabric_rate": "40 Gbps"}, "4 of 4 pods, 2 of 8 racks in each"),
        (0.3, {}, "4 of 4 pods, 2 of 8 racks in each"),
        (
            0.7,
            {"cores": 16},
            "4 of 4 pods, 4 of 8 racks in each, 8 of 16 hosts in a rack",
        ),
    ],
    ids=["fabric", "fast", "beyond pods", "fabric and core"],
)
def test_a_fold_has_racks_enough_for_a_loaded_fabric(
    share: float, changes: Any, units: str
) -> None:
    folded = sojourn.fold(scenario(LOCAL | changes, within_pods(share)), 128)
    assert (folded.kept, folded.units, folded.enough) == (128, units, 0)


def test_too_few_racks_for_a_loaded_fabric_cause_a_warning_or_an_error() -> None:
    # Racks of 17 hosts with 8 uplinks are not divided.
    local = LOCAL | {"hosts_per_edge": 17}
    few = "2 of 4 pods, 2 of 8 racks in each share the fabric, .* nearly: .* keep 136 hosts"
    whole = scenario(local, within_pods(0.9, load=0.02))
    folded = sojourn.fold(whole, 70)
    assert (folded.kept, folded.short, folded.enough) == (68, "fabric", 136)
    assert re.search(few, folded.lines()[-1])
    with pytest.raises(ScenarioError, match=f"hosts: {few}"):
        sojourn.fold(scenario(local, within_pods(0.9, load=0.3)), 70)


def doubts_of(whole: dict[str, Any]) -> dict[str, str]:
    return doubts(sojourn.run(whole | {"fidelity": "sample", "time_limit": "2 ms"}))


@pytest.mark.parametrize(
    ("changes", "is_stated"),
    [({}, False), ({"environment": "internet"}, True), ({"cached_ssthresh": True}, True)],
    ids=["none", "rtt", "ssthresh"],
)
def test_a_fold_states_that_hosts_have_fewer_peers(changes: Any, is_stated: bool) -> None:
    fields = {key: changes[key] for key in changes if key == "environment"}
    fields |= {"reliability": {key: changes[key] for key in changes if key not in fields}}
    lines = sojourn.fold(scenario(CLOS, POISSON, **fields), 64).not_preserved
    assert any("a host has fewer peers" in line for line in lines) == is_stated


@pytest.mark.parametrize(
    ("topology", "workload", "hosts", "switches"),
    [
        (CLOS, POISSON, 64, "aggregation and core"),
        (CLOS | {"pods": 4}, POISSON, 64, "aggregation"),
        (CLOS, POISSON, 256, "core"),
        (SLOW_CORE, POISSON | {"load": 0.05}, 256, "edge and core"),
        ({"kind": "fat_tree", "k": 8}, POISSON, 64, "core"),
        ({"kind": "leaf_spine", "leaves": 16}, POISSON, 64, "spine"),
    ],
)
def test_a_fold_states_which_switches_have_fewer_ports(
    topology: Any, workload: Any, hosts: int, switches: str
) -> None:
    def ports(each: dict[str, Any]) -> dict[str, int]:
        """Return the ports of the first switch of each kind."""
        result = sojourn.run(each | {"time_limit": "1 us"}).links["name"]
        firsts = result.str.extract(r"^(leaf|spine|edge|aggregation|core)0(?:_0)?->").drop_nulls()
        return dict(firsts.value_counts().iter_rows())

    whole = scenario(topology, workload)
    folded = sojourn.fold(whole, hosts)
    assert folded.not_preserved[0].startswith(f"{switches} switches have fewer ports")
    in_whole, in_fold = ports(whole), ports(folded.scenario)
    assert {kind for kind in in_fold if in_fold[kind] < in_whole[kind]} == set(
        re.findall(r"edge|aggregation|core|spine", switches)
    )
    for each, found in ((whole, in_whole), (folded.scenario, in_fold)):
        assert read_network(sojourn.check(each)["topology"]).ports == found


def test_a_fold_of_a_fold_is_a_fold() -> None:
    whole = scenario(CLOS, POISSON)
    once = sojourn.fold(whole, 64).scenario
    twice = sojourn.fold(sojourn.fold(whole, 256).scenario, 64).scenario
    assert once == twice


def test_a_small_network_is_its_own_fold() -> None:
    whole = scenario({"kind": "leaf_spine"}, POISSON)
    assert sojourn.fold(whole).scenario == whole


def test_every_part_of_a_mixed_workload_is_folded() -> None:
    incast = {"kind": "incast", "fan_in": 16, "size": "20 KB", "interval": "100 us", "events": 8}
    rpc = {
        **{"kind": "rpc", "request": SIZES, "response": SIZES},
        "pattern": {"load": 0.1, "calls": 800},
    }
    mixed = {"kind": "mixed", "parts": [POISSON, incast, rpc]}
    folded = sojourn.fold(scenario(CLOS, mixed), 128)
    poisson, incast, rpc = folded.scenario["workload"]["parts"]
    assert (poisson["flows"], incast["events"], rpc["pattern"]["calls"]) == (2000, 2, 200)
    assert incast["interval"] == "400000 ns"
    assert poisson["shares"] == incast["shares"] == rpc["pattern"]["shares"]
    assert sojourn.run(folded.scenario).flows.height == 2000 + 2 * 16 + 2 * 200


@pytest.mark.parametrize(("events", "words"), [(11, "1 or 2 events instead of 1.38"), (16, "")])
def test_small_numbers_of_events_have_the_right_sum(events: int, words: str) -> None:
    incast = {"kind": "incast", "fan_in": 16, "size": "20 KB", "interval": "100 us"}
    folds = [
        sojourn.fold(scenario(CLOS, incast | {"events": events}), 64, sample)
        for sample in range(20, 28)
    ]
    numbers = [folded.scenario["workload"]["events"] for folded in folds]
    assert sum(numbers) == events
    assert max(numbers) - min(numbers) <= 1
    lines = [line for line in folds[0].not_preserved if "events" in line]
    assert len(lines) == bool(words)
    assert all(words in line for line in lines)


def test_rules_hold_for_parts_of_nested_mixes() -> None:
    def nested(part: Any) -> dict[str, Any]:
        mixed = {"kind": "mixed", "parts": [POISSON, part]}
        return scenario(CLOS, {"kind": "mixed", "parts": [mixed]}, time_limit="1 ms")

    incast = {"kind": "incast", "fan_in": 60, "size": "20 KB", "interval": "1 ms"}
    with pytest.raises(ScenarioError, match="here 120"):
        sojourn.fold(nested(incast), 64)
    text = "start_s,source,target,size_bytes\n"
    text += "".join(f"{n}e-6,{n % 512},{(7 * n + 99) % 512},20000\n" for n in range(4000))
    trace = {"kind": "trace", "file": {"name": "flows.csv", "text": text}}
    assert not sojourn.fold(nested(trace), 64).are_alike
    with pytest.raises(ScenarioError, match="long-lived flows have no completion time"):
        sojourn.run(nested({"kind": "long_lived"}) | {"fidelity": "flows"})


def test_a_load_reference_is_folded_with_the_hosts() -> None:
    workload = POISSON | {"load_reference": "512 Gbps"}
    folded = sojourn.fold(scenario(CLOS, workload), 64)
    assert sojourn.check(folded.scenario)["workload"]["load_reference"] == "64 Gbps"


def test_connections_are_as_busy_as_in_the_whole() -> None:
    # 8 leaves of 16 hosts: 112 hosts are beyond the rack, and 48 of a fold of 4 leaves.
    leaves = {"kind": "leaf_spine", "leaves": 8, "hosts_per_leaf": 16}

    def connections(workload: Any, number: int) -> Any:
        changed = POISSON | {"connections": number} | workload
        folded = sojourn.fold(scenario(leaves, changed), 64).scenario["workload"]
        return folded["connections"]

    assert connections({"pairs": "longest"}, 3) == 7
    assert connections({"pairs": "opposite"}, 2) == 2
    with pytest.raises(ScenarioError, match=r"workload\.connections: do not fold"):
        connections({"pairs": "longest"}, 1)
    with pytest.raises(ScenarioError, match=r"workload\.connections: do not fold"):
        connections({}, 3)


@pytest.mark.parametrize("kind", ["synchronised", "long_lived"])
def test_first_hosts_send_if_they_are_whole_pods(kind: str) -> None:
    def flows(topology: Any, number: int) -> Any:
        workload = {"kind": kind, "size": "1 MB", "flows": number}
        return sojourn.fold(scenario(topology, workload), 64).scenario["workload"]["flows"]

    leaves = {"kind": "leaf_spine", "leaves": 16, "hosts_per_leaf": 16}
    # 4 of 16 leaves, and 4 of 8 pods with 2 of 8 racks, are kept.
    assert [flows(leaves, number) for number in (64, 128)] == [16, 32]
    assert [flows(CLOS, number) for number in (128, 512)] == [16, 64]
    for topology, number in ((leaves, 16), (leaves, 60), (CLOS, 32), (CLOS, 64)):
        with pytest.raises(ScenarioError, match=f"workload.flows: {number} flows do not fold"):
            flows(topology, number)


RPC = {"kind": "rpc", "request": SIZES, "response": SIZES}


@pytest.mark.parametrize(
    ("topology", "workload", "hosts", "message"),
    [
        ({"kind": "star"}, POISSON, 64, "topology.kind: star does not fold"),
        (CLOS, {"kind": "permutation"}, 64, "workload.kind: permutation does not fold"),
        (
            CLOS,
            POISSON,
            8,
            "hosts: 8: too few; .* the senders of an incast, .*: here 64 or",
        ),
        (
            CLOS,
            {"kind": "incast", "fan_in": 60, "size": "20 KB", "interval": "1 ms"},
            64,
            "too few; .*: here 120 or more",
        ),
        (
            # 245 hosts keep four racks of 50, fewer than twice the senders.
            {"kind": "leaf_spine", "leaves": 16, "hosts_per_leaf": 50},
            {"kind": "incast", "fan_in": 120, "size": "20 KB", "interval": "1 ms"},
            245,
            "hosts: 245: too few; .*, in whole racks of equal pods: here 250 or more",
        ),
        (
            CLOS,
            {"kind": "incast", "fan_in": 8, "size": "20 KB", "interval": "1 ms", "target": 3},
            64,
            "workload.target: an incast to one host",
        ),
        (
            {"kind": "fat_tree", "k": 48},
            POISSON,
            5000,
            "hosts: a fold with random pairs has at most 4096 hosts, not 4992",
        ),
        (CLOS, POISSON | {"gap_shape": 1.3}, 64, "workload.gap_shape: does not fold"),
        (
            CLOS,
            RPC | {"pattern": {"outstanding": 2, "calls": 800, "connections": 1}},
            64,
            "workload.pattern.connections: do not fold",
        ),
        (
            CLOS,
            {
                **{"kind": "trace", "connections": 1},
                "file": {"name": "flows.csv", "text": "start_s,source,target,size_bytes\n0,0,9,9"},
            },
            64,
            "workload.connections: do not fold",
        ),
    ],
)
def test_what_does_not_fold_is_refused(
    topology: Any, workload: Any, hosts: int, message: str
) -> None:
    with pytest.raises(ScenarioError, match=message):
        sojourn.fold(scenario(topology, workload), hosts)


@pytest.mark.parametrize(
    ("topology", "least"),
    [
        ({"kind": "leaf_spine", "leaves": 11, "hosts_per_leaf": 12}, 72),
        # Parts of whole racks have 160 hosts or more, as a core serves all racks of a pod.
        (
            {
                **{"kind": "clos", "pods": 3, "edges_per_pod": 4, "hosts_per_edge": 20},
                **{"aggregations_per_pod": 2, "cores": 2},
            },
            80,
        ),
        ({"kind": "fat_tree", "k": 10}, 70),
    ],
)
def test_the_least_number_of_hosts_is_named_and_folds(topology: Any, least: int) -> None:
    whole = scenario(topology, POISSON | {"load": 0.1})
    with pytest.raises(ScenarioError, match=f": here {least} or more"):
        sojourn.fold(whole, least - 1)
    assert sojourn.fold(whole, least).kept >= least


@pytest.mark.parametrize(
    "workload",
    [
        POISSON | {"pairs": "opposite"},
        {"kind": "long_lived"},
        {"kind": "synchronised", "size": "1 MB"},
        {
            **{"kind": "rpc", "request": SIZES, "response": SIZES},
            "pattern": {"load": 0.1, "calls": 800, "pairs": "opposite"},
        },
    ],
)
@pytest.mark.parametrize(("leaves", "units"), [(17, "9 of 17 leaves"), (18, "8 of 18 leaves")])
def test_hosts_have_as_many_opposite_racks_as_in_the_whole(
    workload: Any, leaves: int, units: str
) -> None:
    # The opposite hosts of a rack are in one rack of an even number, and in two of an odd one.
    topology = {"kind": "leaf_spine", "leaves": leaves, "hosts_per_leaf": 8}
    assert sojourn.fold(scenario(topology, workload), 79).units == units


def test_a_fold_with_opposite_hosts_names_the_parity_of_its_racks() -> None:
    topology = {"kind": "leaf_spine", "leaves": 17, "hosts_per_leaf": 8}
    with pytest.raises(ScenarioError, match="odd in number as in the whole: here 72 or more"):
        sojourn.fold(scenario(topology, {"kind": "long_lived"}), 64)


FIELDS_OF_LINKS: dict[str, Any] = {
    "failures": [{"link": "edge0_0->aggregation0_0", "fails": "1 ms"}],
    "degraded_links": [{"switch": "edge0_0", "share": 0.5}],
    "rate_traces": [
        {"link": "edge0_0->aggregation0_0", "file": {"name": "rates.txt", "text": "0 1\n"}}
    ],
}


@pytest.mark.parametrize("name", FIELDS_OF_LINKS)
def test_fields_of_single_links_do_not_fold(name: str) -> None:
    whole = scenario(CLOS, POISSON, **{name: FIELDS_OF_LINKS[name]})
    with pytest.raises(ScenarioError, match=f"^{name}: do not fold, as they concern single links"):
        sojourn.fold(whole, 64)
    # The whole network is answered by packets.
    assert sojourn.fold(whole, 512).scenario == whole


def test_a_part_keeps_the_oversubscription_of_every_tier() -> None:
    complete = sojourn.check(scenario(CLOS, POISSON))["topology"]
    whole = read_network(complete)
    for hosts in range(64, 512, 8):
        part = whole.folded(hosts)
        assert part.cores % part.aggregations == 0
        assert part.cores * whole.racks == whole.cores * part.racks
        assert part.hosts <= hosts


def test_senders_of_an_incast_are_distinct_and_as_far_as_in_the_whole() -> None:
    incast = {"kind": "incast", "fan_in": 16, "size": "20 KB", "interval": "10 us", "events": 8000}
    whole = scenario(CLOS, incast)
    folded = sojourn.fold(whole, 128)
    flows = flow_table(trace(folded.scenario))
    events = flows.group_by("start_s").agg(
        pl.col("source").n_unique(), pl.col("target").n_unique(), pl.len()
    )
    assert (events["source"] == 16).all()
    assert (events["target"] == 1).all()
    network = read_network(sojourn.check(folded.scenario)["topology"])
    distances = network.distances(flows["source"].to_numpy(), flows["target"].to_numpy())
    shares = np.bincount(distances) / flows.height
    expected = read_network(sojourn.check(whole)["topology"]).uniform_shares()
    # Senders are distinct, so that the few hosts of a rack are drawn a little less often.
    assert shares == pytest.approx(expected, rel=0.15)
    assert shares[2] == pytest.approx(expected[2], rel=0.01)


def test_loads_of_links_to_receivers_are_those_of_the_flows_that_cross_them() -> None:
    topology = {
        **{"kind": "clos", "pods": 2, "edges_per_pod": 2, "hosts_per_edge": 2, "cores": 2},
        **{"aggregations_per_pod": 2, "host_rate": "10 Gbps", "fabric_rate": "40 Gbps"},
        "core_rate": "20 Gbps",
    }
    network = read_network(topology)
    # Of hosts 0 to 7: to 1 from its rack, from another rack of its pod, and from the other pod;
    # and from the other pod to its neighbour 0 and to another rack of its pod, host 3.
    sources, targets = np.array([0, 2, 4, 5, 6]), np.array([1, 1, 1, 0, 3])
    loads, switch_loads = network.receiving_loads(sources, targets, np.full(5, 8e9))
    np.testing.assert_allclose(loads, [2.4, 2.4, 2.4, 0.8, 0.8])
    # 24 of 80 Gb/s to the rack, 24 of 40 Gb/s to the pod.
    np.testing.assert_allclose(switch_loads, [0.0, 0.3, 0.6, 0.6, 0.6])
