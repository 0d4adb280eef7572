"""Incasts of traces, which folds keep."""

import io
from typing import Any

import numpy as np
import polars as pl
import pytest

import sojourn
from scale.test_trace import LEAVES, flows_of, scenario, skewed
from sojourn import ScenarioError
from sojourn.analysis.fidelity import doubts
from sojourn.scale import trace
from sojourn.scale.incasts import ALONE, base_rtt_s, fan_in, incasts
from sojourn.scenario.encoding import Prepared

RTT_S = 10e-6


def groups_of(flows: pl.DataFrame) -> Any:
    """Return the groups of flows between hosts with links of 10 Gb/s."""
    columns = {name: flows[name].to_numpy() for name in flows.columns}
    return incasts(columns, RTT_S, 10e9)


def bursts(
    jitter_s: float, senders: int = 20, targets: int = 256, apart_s: float = 1e-4
) -> pl.DataFrame:
    """Return an incast to each of the first hosts in turn, of flows of different sizes."""
    random = np.random.default_rng(1)
    events = [
        pl.DataFrame(
            {
                "start_s": target * apart_s + random.uniform(0, jitter_s, senders),
                "source": random.choice(np.delete(np.arange(256), target), senders, replace=False),
                "target": [target] * senders,
                "size_bytes": random.integers(5_000, 35_000, senders),
            }
        )
        for target in range(targets)
    ]
    return pl.concat(events).sort("start_s")


def independent(per_rtt: float, flows: int = 20_000, hosts: int = 256) -> pl.DataFrame:
    """Return flows of which each host receives `per_rtt` in an RTT, at random."""
    random = np.random.default_rng(1)
    seconds = flows * RTT_S / (per_rtt * hosts)
    return pl.DataFrame(
        {
            "start_s": np.sort(random.uniform(0, seconds, flows)),
            "source": random.integers(0, hosts, flows),
            "target": random.integers(0, hosts, flows),
            "size_bytes": [1000] * flows,
        }
    )


@pytest.mark.parametrize("per_rtt", [0.001, 0.05, 0.4, 30.0])
def test_independent_flows_do_not_start_together(per_rtt: float) -> None:
    assert np.count_nonzero(groups_of(independent(per_rtt)) != ALONE) <= 20


@pytest.mark.parametrize("jitter_s", [0.0, 1e-6, 20e-6])
@pytest.mark.parametrize("senders", [4, 32])
def test_jittered_incasts_are_found_among_independent_flows(senders: int, jitter_s: float) -> None:
    others = independent(0.05)
    events = bursts(jitter_s, senders, apart_s=1e-5)
    flows = pl.concat([events, others]).with_row_index().sort("start_s")
    groups = groups_of(flows)
    is_event = (flows["index"] < events.height).to_numpy()
    assert np.mean(groups[is_event] != ALONE) > 0.85
    assert np.mean(groups[~is_event] != ALONE) < 0.1
    assert senders <= fan_in(groups, flows["source"].to_numpy()) <= senders + 4


def test_requests_of_one_sender_are_not_an_incast() -> None:
    events = bursts(1e-6)
    assert (groups_of(events) != ALONE).all()
    assert (groups_of(events.with_columns(source=pl.col("target") + 1)) == ALONE).all()


def test_a_trace_of_a_single_burst_is_an_incast() -> None:
    assert (groups_of(bursts(1e-6, 32, targets=1)) != ALONE).all()
    assert len(groups_of(bursts(1e-6).clear())) == 0


@pytest.mark.parametrize("jitter_s", [0.0, 1e-6, 20e-6])
def test_an_incast_keeps_its_flows_and_gets_as_many_senders(jitter_s: float) -> None:
    whole = bursts(jitter_s)
    flows = flows_of(sojourn.fold(scenario(whole), 64))
    groups = flows.group_by("target", (pl.col("start_s") / 1e-4).floor().alias("event")).agg(
        pl.len().alias("flows"), pl.col("source").n_unique()
    )
    assert groups.height == 64
    assert groups["flows"].to_list() == groups["source"].to_list() == [20] * 64
    written = pl.read_csv(io.StringIO(scenario(whole)["workload"]["file"]["text"]))
    assert flows.join(written, on=["start_s", "size_bytes"], how="semi").height == flows.height


def test_a_sender_of_several_flows_of_an_incast_gets_one_successor() -> None:
    whole = bursts(1e-6)
    flows = flows_of(sojourn.fold(scenario(pl.concat([whole, whole]).sort("start_s")), 64))
    pairs = flows.group_by("start_s", "target").agg(pl.len(), pl.col("source").n_unique())
    assert (pairs["len"] == 2).all()
    assert (pairs["source"] == 1).all()


def test_a_trace_without_incasts_folds_as_if_none_were_sought(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = scenario(skewed(5000))
    folded = sojourn.fold(whole, 64)
    assert folded.fan_in == 0
    monkeypatch.setattr(trace, "incasts", lambda flows, *_: np.full(len(flows["start_s"]), ALONE))
    assert sojourn.fold(whole, 64) == folded


@pytest.mark.parametrize("jitter_s", [0.0, 1e-6])
def test_the_largest_incast_of_a_trace_is_part_of_its_fold(jitter_s: float) -> None:
    flows = pl.concat([bursts(jitter_s, 4), bursts(jitter_s, 20, targets=1)]).sort("start_s")
    # Both incasts to the first host are one.
    assert sojourn.fold(scenario(flows), 64).fan_in in (23, 24)


def test_a_large_incast_of_a_trace_causes_a_warning() -> None:
    whole = scenario(bursts(1e-6, apart_s=2e-6)) | {"topology": LEAVES, "time_limit": "2 ms"}
    answer = sojourn.run(whole | {"fidelity": {"kind": "sample", "hosts": 64}})
    line = "20 of 64 hosts send in the largest incast: keep 80 hosts or more"
    assert doubts(answer)["fan_in"] == line


def test_too_few_senders_for_an_incast_are_an_error_that_names_enough_hosts() -> None:
    whole = scenario(bursts(1e-6, 70, targets=128)) | {"topology": LEAVES}
    with pytest.raises(ScenarioError, match=r"fewer senders than start together .*; keep 96 hosts"):
        sojourn.fold(whole, 64)
    assert sojourn.fold(whole, 96).kept == 96


def test_racks_of_another_load_are_an_error_that_names_enough_hosts() -> None:
    flows = skewed(300, sigma=2.0)
    with pytest.raises(ScenarioError, match=r"would carry .* % on .* links, .*; keep") as error:
        sojourn.fold(scenario(flows), 64)
    enough = int(str(error.value).split()[-2])
    assert 64 < enough < 256
    assert sojourn.fold(scenario(flows), enough).kept == enough


@pytest.mark.parametrize("kind", ["leaf_spine", "clos", "fat_tree"])
def test_the_base_rtt_is_that_of_a_packet_and_a_short_ack(kind: str) -> None:
    last = 15 if kind == "fat_tree" else 127
    flow = {"source": 0, "target": last, "size": "1.448 KB"}
    whole = {"topology": kind, "transport": "tcp", "workload": {"kind": "flows", "flows": [flow]}}
    fct_s = sojourn.run(whole).flows["ideal_fct_s"][0]
    links = 4 if kind == "leaf_spine" else 6
    rtt_s = base_rtt_s(Prepared(whole).complete())
    assert rtt_s == pytest.approx(fct_s + links * 1e-6, rel=1e-3)
