"""Tests of unloaded FCTs: flows of each size alone, with the same transport."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import sojourn
from conftest import FOLDABLE
from sojourn import Run, cli
from sojourn.explain import unloaded

BASE: dict[str, Any] = {
    "environment": "internet",
    "topology": {"kind": "link", "rate": "20 Mbps", "delay": "50 ms"},
    "transport": "tcp",
    "time_limit": "100 s",
    "workload": {
        "kind": "poisson",
        "load": 0.5,
        "flows": 300,
        "sizes": {"kind": "fixed", "size": "1 KB"},
    },
}


def of(base: dict[str, Any], variations: dict[str, list[Any]]) -> pl.DataFrame:
    schemes = sojourn.expand(base, variations)
    runs = [Run({**labels, "seed": 1}, sojourn.run(scenario)) for labels, scenario in schemes]
    return unloaded.unloaded(runs, schemes)


def test_a_short_flow_alone_takes_the_ideal_fct_and_its_handshake() -> None:
    handshakes = {"reliability.handshake": [True, False]}
    table = of(BASE, handshakes)
    assert table["size"].to_list() == ["all", "all"]
    # 1000 + 52 B at 20 Mb/s and 50 ms; SYN and SYN-ACK of 60 B take 24 us each, and 100 ms.
    ideal = 0.05 + 1052 * 8 / 20e6
    assert table["ideal_s"].to_list() == pytest.approx([ideal, ideal])
    expected = [ideal + 0.1 + 2 * 60 * 8 / 20e6, ideal]
    assert table["unloaded_s"].to_list() == pytest.approx(expected, rel=1e-6)
    assert table["unloaded_over_ideal"].to_list() == pytest.approx([2.98, 1.0], abs=0.005)
    product = table["unloaded_over_ideal"] * table["fct_over_unloaded"]
    assert product.to_list() == pytest.approx(table["slowdown"].to_list())
    assert (table["fct_over_unloaded"] >= 1).all()


def test_flows_of_each_size_and_class_run_alone() -> None:
    part = BASE["workload"] | {"load": 0.2}
    sizes = {"kind": "uniform", "min": "1 KB", "max": "300 KB"}
    parts = [part | {"class": "web"}, part | {"class": "bulk", "sizes": sizes}]
    base = BASE | {
        "workload": {"kind": "mixed", "parts": parts},
        "transports": {"bulk": "bbr"},
        "traffic_classes": {"bulk": 1},
        "warm_up": "10 ms",
        "samples": {"interval": "10 ms", "links": ["left->right"]},
    }
    table = of(base, {"transport": ["tcp", "cubic"]})
    tcp = table.filter(transport="tcp")
    assert tcp["size"].to_list() == ["all", "≤ 100 KB", "100 KB to 10 MB", "all", "all"]
    assert tcp["class"].to_list() == ["all", "all", "all", "bulk", "web"]
    web = table.filter(pl.col("class") == "web")["unloaded_over_ideal"]
    assert web.to_list() == pytest.approx([2.98, 2.98], abs=0.005)
    assert (table["unloaded_over_ideal"] > 1.5).all()


def test_flows_of_samples_run_alone_in_the_folded_network() -> None:
    base = FOLDABLE | {"workload": FOLDABLE["workload"] | {"flows": 300}}
    sampled = base | {"fidelity": {"kind": "sample", "hosts": 64, "samples": 2}}
    table = of(sampled, {"transport": ["dctcp", "tcp"]})
    assert table["flows"].to_list() == [200, 200]
    # Alone, flows differ by the rates of their hosts' ports only.
    whole = of(base, {"transport": ["dctcp", "tcp"]})["unloaded_s"]
    assert table["unloaded_s"].to_list() == pytest.approx(whole.to_list(), rel=1e-4)


def test_the_option_alone_prints_and_writes_unloaded_fcts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario, out = tmp_path / "wan.toml", tmp_path / "out"
    scenario.write_text(
        'transport = "tcp"\nenvironment = "internet"\ntime_limit = "100 s"\n'
        'topology = { kind = "link", rate = "20 Mbps", delay = "50 ms" }\n'
        'workload = { kind = "poisson", load = 0.1, flows = 50, sizes = '
        '{ kind = "fixed", size = "1 KB" } }\n'
    )
    assert cli.invoke(["explain", str(scenario), "--alone", "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "flows under load and unloaded (alone, with the same transport)" in printed
    assert "50.4 ms" in printed
    assert "2.98" in printed
    assert pl.read_csv(out / "unloaded.csv")["flows"].to_list() == [50]


def test_without_finished_flows_there_is_nothing_to_compare() -> None:
    with pytest.raises(sojourn.ScenarioError, match=r"^no flow has finished"):
        of({**BASE, "time_limit": "1 ms"}, {"transport": ["tcp"]})
