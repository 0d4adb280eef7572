"""Folded traces."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import sojourn
from conftest import FOLDABLE
from sojourn import ScenarioError, cli
from sojourn.analysis.fidelity import doubts
from sojourn.scenario.writing import as_toml
from sojourn.show.fidelity import fidelity_lines

TOPOLOGY = {
    **{"kind": "clos", "pods": 8, "edges_per_pod": 4, "hosts_per_edge": 8},
    **{"aggregations_per_pod": 2, "cores": 8},
}


def skewed(flows: int = 20_000, seed: int = 1, sigma: float = 0.7) -> pl.DataFrame:
    """Return flows between 256 hosts whose racks have lognormal weights."""
    random = np.random.default_rng(seed)
    weights = [np.repeat(random.lognormal(0, sigma, 32), 8) for _ in range(2)]
    sources, targets = (random.choice(256, flows, p=each / each.sum()) for each in weights)
    targets = np.where(targets == sources, (targets + 1) % 256, targets)
    starts = np.sort(random.uniform(0, 0.01, flows))
    sizes = random.integers(1000, 100_000, flows)
    return pl.DataFrame(
        {"start_s": starts, "source": sources, "target": targets, "size_bytes": sizes}
    )


def scenario(flows: pl.DataFrame) -> dict[str, Any]:
    text = flows.write_csv(float_precision=12)
    file = {"name": "flows.csv", "text": text}
    workload = {"kind": "trace", "file": file}
    return {"topology": TOPOLOGY, "workload": workload, "transport": "dctcp"}


def flows_of(folded: sojourn.Folded) -> pl.DataFrame:
    return pl.read_csv(io.StringIO(folded.scenario["workload"]["file"]["text"]))


def test_a_folded_trace_keeps_the_flows_of_some_racks_and_their_locality() -> None:
    whole = skewed()
    folded = sojourn.fold(scenario(whole), 64)
    flows = flows_of(folded)
    assert flows.height / whole.height == pytest.approx(0.25, rel=0.1)
    assert (flows["source"] < 64).all()
    assert (flows["target"] < 64).all()
    assert (flows["source"] != flows["target"]).all()
    assert flows["start_s"].is_sorted()
    for utilisations in folded.utilisations.values():
        assert utilisations[1] == pytest.approx(utilisations[0], rel=0.1)


def test_kept_racks_receive_what_they_received() -> None:
    # The size of a flow states its row.
    whole = skewed(sigma=1.5).with_columns(size_bytes=10_000 + pl.int_range(pl.len()))
    flows = flows_of(sojourn.fold(scenario(whole) | {"fidelity": "flows"}, 64))
    old = whole[flows["size_bytes"].to_numpy() - 10_000]
    np.testing.assert_allclose(flows["start_s"], old["start_s"], atol=1e-11)
    hosts = pl.DataFrame({"new": flows["target"], "old": old["target"]}).unique()
    assert hosts["new"].n_unique() == hosts["old"].n_unique() == hosts.height
    assert flows.height == whole.filter(pl.col("target").is_in(hosts["old"].implode())).height
    # Most of the flows of this trace are for few racks, and senders share them.
    most = whole.group_by(pl.col("target") // 8).len().sort("len", descending=True)
    assert most["target"][0] in (hosts["old"] // 8)
    assert flows["source"].n_unique() > 48


def test_racks_of_another_load_teach_a_law_but_are_no_sample() -> None:
    whole = scenario(skewed(sigma=1.5))
    with pytest.raises(ScenarioError, match=r"\(the fidelity `flows` is for racks that differ\)"):
        sojourn.fold(whole, 64)
    loads = sojourn.fold(whole | {"fidelity": "flows"}, 64).utilisations["access"]
    assert loads[1] > 1.1 * loads[0]


def test_samples_have_other_racks() -> None:
    whole = scenario(skewed())
    texts = {str(sojourn.fold(whole, 64, sample).scenario) for sample in (0, 1)}
    assert len(texts) == 2
    assert sojourn.fold(whole, 64, 1) == sojourn.fold(whole, 64, 1)


LEAVES = {"kind": "leaf_spine", "leaves": 16, "hosts_per_leaf": 16, "spines": 4}
"""Network of which 64 hosts are four racks."""


def kept_leaves(sigma: float, hosts: int) -> list[tuple[int, ...]]:
    """Return the racks that eight samples of a trace of `LEAVES` keep."""
    # The size of a flow states its row, and so its target.
    flows = skewed(sigma=sigma).with_columns(size_bytes=10_000 + pl.int_range(pl.len()))
    racks = (flows["target"] // 16).to_numpy()
    whole = scenario(flows) | {"topology": LEAVES}
    folds = [flows_of(sojourn.fold(whole, hosts, sample)) for sample in range(8)]
    return [tuple(np.unique(racks[fold["size_bytes"].to_numpy() - 10_000])) for fold in folds]


def test_samples_of_few_racks_keep_others() -> None:
    kept = kept_leaves(0.05, 64)
    assert all(len(racks) == 4 for racks in kept)
    assert len(set(kept)) >= 6
    # No rack stands out, so that none is in each sample.
    assert not set.intersection(*map(set, kept))


def test_an_outstanding_rack_is_always_kept() -> None:
    kept = kept_leaves(0.5, 208)
    assert set.intersection(*map(set, kept))
    # Thirteen of sixteen racks are distinct.
    assert all(len(racks) == 13 for racks in kept)


@pytest.mark.parametrize(("leaves", "has_line"), [(5, True), (16, False)])
def test_few_combinations_of_racks_are_stated(leaves: int, has_line: bool) -> None:
    flows = skewed(sigma=0.1).with_columns(pl.col("source", "target") % (16 * leaves))
    flows = flows.filter(pl.col("source") != pl.col("target"))
    whole = scenario(flows) | {"topology": LEAVES | {"leaves": leaves}}
    lines = sojourn.fold(whole, 64).not_preserved
    assert (
        any("samples keep nearly the same racks of a trace" in each for each in lines) == has_line
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("start_s,source,target\n0,1,2\n", "size_bytes"),
        ("start_s,source,target,size_bytes\n0,1,2,abc\n", "flows.csv:2: size_bytes"),
        ("start_s,source,target,size_bytes\n0,1,300,1000\n", "unknown host 300"),
        ("", "flows.csv"),
    ],
)
def test_errors_of_a_trace_are_those_of_the_core(text: str, message: str) -> None:
    whole = scenario(skewed(10))
    whole["workload"]["file"]["text"] = text
    with pytest.raises(ScenarioError, match=message):
        sojourn.fold(whole, 64)


def test_flows_after_others_do_not_fold() -> None:
    flows = skewed(100).with_columns(after=pl.lit(""))
    with pytest.raises(ScenarioError, match="do not fold"):
        sojourn.fold(scenario(flows), 64)


def test_a_fold_without_flows_is_an_error() -> None:
    # Few racks receive, all of them from one.
    flows = skewed(2000).with_columns(pl.col("source") % 8, pl.col("target") % 24 + 24)
    with pytest.raises(
        ScenarioError, match=r"hosts: the fold would have no flows .* keep 256 hosts"
    ):
        sojourn.fold(scenario(flows), 64)


def test_the_command_writes_a_folded_trace(tmp_path: Path) -> None:
    skewed(2000).write_csv(tmp_path / "flows.csv", float_precision=12)
    (tmp_path / "big.toml").write_text(
        as_toml(
            {
                "transport": "dctcp",
                "fidelity": "sample",
                "topology": TOPOLOGY,
                "workload": {"kind": "trace", "file": "flows.csv"},
            }
        ),
        encoding="utf-8",
    )
    command = ["fold", str(tmp_path / "big.toml"), "--hosts", "64"]
    assert cli.invoke(command) == 2
    assert cli.invoke([*command, "--out", str(tmp_path / "small.toml")]) == 0
    small = sojourn.read(tmp_path / "small.toml")
    assert "fidelity" not in small
    assert small["workload"]["file"]["name"] == "folded-flows.csv"
    assert sojourn.run(small).flows.height == pytest.approx(500, rel=0.2)


def test_racks_with_few_partners_cause_a_warning() -> None:
    flows = skewed(sigma=0.1)
    rack, host = pl.col("source") // 8, pl.col("target") % 8
    partner = flows.with_columns(target=(rack + 8) % 32 * 8 + host)
    # Of four racks in a pod, the others are three partners for flows within the pod.
    within = flows.with_columns(target=(rack // 4 * 4 + (rack + 1) % 4) * 8 + host)
    for trace, most, has_doubt in ((flows, 0.2, False), (partner, 1.0, True), (within, 1.0, True)):
        fidelity = {"kind": "flows", "hosts": 128}
        answer = sojourn.run(scenario(trace) | {"fidelity": fidelity, "time_limit": "1 ms"})
        largest, drawn = answer.summary["fidelity"]["partners"]
        assert largest == pytest.approx(most, abs=0.1)
        assert drawn < 0.5
        lines = fidelity_lines([answer])
        assert any(
            "racks from which a rack of a trace receives are drawn anew" in line for line in lines
        )
        assert ("partners" in doubts(answer)) == has_doubt


def test_a_trace_that_starts_after_the_limit_is_named() -> None:
    text = "start_s,source,target,size_bytes\n0.02,0,20,1000\n"
    trace = {"kind": "trace", "file": {"name": "late.csv", "text": text}}
    scenario = FOLDABLE | {"workload": trace, "time_limit": "10 ms"}
    with pytest.raises(ScenarioError, match="has no flow that starts before `time_limit`"):
        sojourn.fold(scenario, 64)
