"""Tests of the comparison with the TCP of the kernel: errors, output, and one run."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import sojourn
from sojourn import cli
from sojourn.base import paths
from sojourn.validate import kernel, relay

SCENARIO: dict[str, Any] = {
    "host": {"kernel": "linux"},
    "transport": "tcp",
    "queue": {"kind": "drop_tail", "capacity": "67 packets"},
    "host_queue": {"kind": "drop_tail", "capacity": "none"},
    "topology": {
        **{"kind": "dumbbell", "senders": 1, "receivers": 1, "rate": "10 Gbps", "delay": "1 ms"},
        **{"bottleneck_rate": "20 Mbps", "bottleneck_delay": "18 ms"},
    },
    "workload": {
        "kind": "flows",
        "flows": [
            {"source": 0, "target": 1, "size": size, "start": start}
            for size, start in (("1 MB", "1.2 s"), ("10 KB", "0.1 s"), ("100 KB", "0.7 s"))
        ],
    },
}
LINK = {"kind": "link", "rate": "50 Mbps", "delay": "10 ms"}
FLOW = {"source": 0, "target": 1, "size": "10 KB"}

SIZE = {"kind": "fixed", "size": "1 KB"}
CALLS = {"kind": "rpc", "request": SIZE, "response": SIZE, "pattern": {"outstanding": 1}}

IN_TIME = {"packets": 500, "drops": 3, "late_packets": 1, "late_s": 0.01, "worst_s": 0.019}
LATE = IN_TIME | {"worst_s": 0.021}

MakeRelay = Callable[..., Path]


def changed(*changes: dict[str, Any]) -> dict[str, Any]:
    return sojourn.override(SCENARIO, *changes)


def test_the_job_of_the_relay_contains_the_bottleneck_and_flows_in_order() -> None:
    link = {"rate_bps": 20_000_000, "delay_s": pytest.approx(0.02), "capacity_packets": 67}
    job = kernel.job(SCENARIO)
    flows = job.pop("flows")
    assert job == {"link": link, "mtu": 1500, "congestion": "reno", "limit_s": 10.0}
    assert [(flow["start_s"], flow["size_bytes"]) for flow in flows] == [
        *((0.1, 10_000), (0.7, 100_000), (1.2, 1_000_000))
    ]


def test_the_job_of_a_link_excludes_flows_after_the_time_limit() -> None:
    job = kernel.job(changed({"topology": LINK, "transport": "bbr", "time_limit": "1 s"}))
    assert job["link"] == {"rate_bps": 50_000_000, "delay_s": 0.01, "capacity_packets": 67}
    assert job["congestion"] == "bbr"
    assert len(job["flows"]) == 2


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"host.kernel": "none"}, 'host.kernel: must be "linux"'),
        ({"transport": "dctcp"}, "transport: must be one of tcp, cubic, bbr"),
        ({"transport": {"ecn": True}}, "transport.ecn: must be false: the kernel or the relay"),
        ({"transport.window": {"hystart": "linux"}}, 'transport.window.hystart: must be "none"'),
        ({"transports": {"flows": "cubic"}}, "transports: must be {}"),
        ({"model": "processor_sharing"}, 'model: must be "packet"'),
        ({"packet": {"header": "40 B"}}, 'packet.header: must be "52 B"'),
        ({"host.clock_granularity": "1 ms"}, 'host.clock_granularity: must be "0 ps"'),
        (
            {"queue": {"kind": "ecn_threshold"}},
            "queue: must be drop-tail with a capacity in packets",
        ),
        ({"queue": {"capacity": "100 KB"}}, "queue: must be drop-tail with a capacity in packets"),
        ({"queue": "none"}, "queue: must be drop-tail with a capacity in packets"),
        ({"host_queue": {"capacity": "9 packets"}}, "host_queue: must be"),
        ({"topology": {"kind": "star"}}, "topology: must be link or dumbbell"),
        ({"topology.loss": 0.01}, "topology.loss: must be 0.0"),
        ({"topology.rate": "100 Mbps"}, "topology.rate: must be at least 10 times the bottleneck"),
        ({"topology.bottleneck_rate": "101 Mbps"}, "topology.bottleneck_rate: must be at most 100"),
        ({"topology": LINK | {"rate": "1 Gbps"}}, "topology.rate: must be at most 100 Mbps"),
        ({"time_limit": "601 s"}, "time_limit: must be at most 600 s"),
        ({"time_limit": "50 ms"}, "workload: must have 1 to 4000 flows, not 0"),
        ({"workload.flows": [FLOW] * 4001}, "workload: must have 1 to 4000 flows, not 4001"),
        ({"workload.flows": [FLOW | {"size": "none"}]}, "workload: long-lived flows"),
        (
            {"workload.flows": [FLOW | {"source": 1, "target": 0}]},
            "all flows must be from left to right",
        ),
        ({"workload": CALLS}, "workload: must not contain calls"),
        (
            {"workload": {"kind": "mixed", "parts": [{"kind": "mixed", "parts": [CALLS]}]}},
            "workload: must not contain calls",
        ),
    ],
)
def test_an_unsupported_field_is_an_error(change: dict[str, Any], expected: str) -> None:
    with pytest.raises(sojourn.ScenarioError) as error:
        kernel.job(changed(change))
    assert expected in str(error.value)


def test_a_missing_prerequisite_of_the_machine_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel, "AVAILABLE", tmp_path / "available")
    with pytest.raises(sojourn.ScenarioError, match="needs Linux"):
        kernel.measure(SCENARIO)
    kernel.AVAILABLE.write_text("reno cubic\n")
    with pytest.raises(sojourn.ScenarioError, match=r"does not support `bbr` \(reno, cubic\)"):
        kernel.measure(changed({"transport": "bbr"}))


def test_without_the_relay_an_error_names_the_command_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    if paths.checkout() is not None:
        with pytest.raises(sojourn.ScenarioError, match="cannot be built without `cargo`"):
            relay.program()
    monkeypatch.setattr(paths, "checkout", lambda: None)
    with pytest.raises(sojourn.ScenarioError, match="cargo install --locked --path crates/relay"):
        relay.program()
    file = tmp_path / relay.NAME
    file.write_text("#!/bin/sh\n")
    file.chmod(0o755)
    assert relay.program() == file


@pytest.fixture
def make_relay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakeRelay:
    """Return a function that makes a fake relay, which reports these outcomes run by run."""

    def make(*runs: dict[str, Any], error: str = "", status: int = 0) -> Path:
        program = tmp_path / relay.NAME
        for number, outcome in enumerate(runs):
            lines = [json.dumps({"now_s": 0.2, "finished": 1}), json.dumps(outcome)]
            (tmp_path / f"run{number}").write_text("\n".join(lines) + "\n")
        program.write_text(
            f"#!{sys.executable}\n"
            "import pathlib, sys\n"
            f"folder = pathlib.Path({str(tmp_path)!r})\n"
            "sys.stdin.read()\n"
            "runs = sorted(folder.glob('run*'))\n"
            "if runs:\n"
            "    print(runs[0].read_text(), end='')\n"
            "    runs[0].unlink()\n"
            f"sys.stderr.write({error!r})\n"
            f"sys.exit({status})\n"
        )
        program.chmod(0o755)
        monkeypatch.setattr(relay, "program", lambda: program)
        monkeypatch.setattr(kernel, "AVAILABLE", tmp_path / "available")
        kernel.AVAILABLE.write_text("reno cubic bbr\n")
        return program

    return make


def outcome(forward: dict[str, Any], *fcts: float | None) -> dict[str, Any]:
    flows = [{"late_s": 1e-4, "fct_s": fct} for fct in fcts]
    return {"flows": flows, "there": forward, "back": IN_TIME, "retransmits": 7, "timeouts": None}


def test_a_late_run_is_invalid_and_repeated(
    make_relay: MakeRelay,
) -> None:
    make_relay(outcome(LATE, 1, 1, 1), outcome(IN_TIME, 0.2, 0.3, None), outcome(LATE, 1, 1, 1))
    measured = kernel.measure(SCENARIO)
    assert [attempt.counts for attempt in measured.attempts] == [False, True]
    assert measured.attempt is measured.attempts[1]
    assert measured.kernel.flows["fct_s"].to_list() == [0.2, 0.3, None]
    assert measured.kernel.flows["outcome"].to_list() == ["finished", "finished", "unfinished"]
    assert measured.kernel.flows["size_bytes"].to_list() == [10_000, 100_000, 1_000_000]


def test_a_run_with_one_in_a_hundred_packets_late_is_invalid() -> None:
    assert kernel.Attempt(outcome(IN_TIME | {"late_packets": 8})).counts
    assert not kernel.Attempt(outcome(IN_TIME | {"late_packets": 9})).counts


def test_the_command_prints_and_writes_its_results(
    make_relay: MakeRelay, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_relay(outcome(LATE, 0.2, 0.3, None), outcome(LATE | {"worst_s": 0.1}, 1, 1, 1))
    scenario, out = tmp_path / "lone.toml", tmp_path / "out"
    flows = "".join(
        f'[[workload.flows]]\nsource = 0\ntarget = 1\nsize = "{flow["size"]}"\n'
        f'start = "{flow["start"]}"\n'
        for flow in SCENARIO["workload"]["flows"]
    )
    scenario.write_text(
        'host.kernel = "linux"\ntransport = "bbr"\n'
        'queue = { kind = "drop_tail", capacity = "67 packets" }\n'
        'topology = { kind = "link", rate = "20 Mbps", delay = "20 ms" }\n'
        f'[workload]\nkind = "flows"\n{flows}'
    )
    assert cli.invoke(["real", str(scenario), "--repeats", "2", "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "run 2: 1,000 packets left 20 µs late on average, 0.20 % by more than 1 ms" in printed
    assert "warning: no valid run" in printed
    # An unfinished flow gives lower bounds and no ratio.
    (row,) = [line for line in printed.splitlines() if "100 KB to 1 MB" in line]
    # One flow has no p95.
    assert re.search(r"ms +≥ \d+ ms +- +- +- +-", row)
    sizes = pl.read_csv(out / "sizes.csv")
    assert sizes["mean_kernel"].to_list()[:2] == [0.2, 0.3]
    content = json.loads((out / "real.json").read_text())
    assert content["happened"]["drops"]["kernel"] == 3
    assert content["happened"]["sent again"]["kernel"] == 7
    assert [attempt["counts"] for attempt in content["attempts"]] == [False, False]
    written_flows = pl.read_parquet(out / "flows.parquet")
    assert written_flows["fct_kernel_s"].to_list() == [0.2, 0.3, None]
    assert (written_flows["fct_s"] > 0).all()


def test_a_failed_relay_gives_an_error_with_the_reason(make_relay: MakeRelay) -> None:
    make_relay(error="a network namespace: EPERM: Operation not permitted\n", status=1)
    with pytest.raises(sojourn.ScenarioError, match="the relay failed: a network namespace: EPERM"):
        kernel.measure(SCENARIO)
    make_relay()
    with pytest.raises(sojourn.ScenarioError, match="sojourn-relay was stopped"):
        kernel.measure(SCENARIO)


@pytest.fixture
def live() -> Path:
    """Return the relay; skip the test if it cannot be built or lacks permissions."""
    try:
        program = relay.program()
        relay.run(program, kernel.job(SCENARIO) | {"limit_s": 0.0}, "nothing")
    except sojourn.ScenarioError as error:
        if not any(word in str(error) for word in ("cargo", "namespace", "/dev/net/tun", "net/")):
            raise
        pytest.skip(str(error))
    return program


@pytest.mark.parametrize("transport", ["tcp", "cubic"])
def test_the_fct_of_single_flows_equals_that_of_the_kernel(transport: str, live: Path) -> None:
    measured = kernel.measure(changed({"transport": transport}))
    if not measured.attempt.counts:
        pytest.skip(f"{100 * measured.attempt.late_share:.1f} % of the packets were late")
    simulated, reference = (
        result.flows["fct_s"] for result in (measured.simulated, measured.kernel)
    )
    assert (reference / simulated).is_between(0.9, 1.1).all(), (simulated, reference)


def test_the_relay_ends_when_sojourn_is_killed(live: Path) -> None:
    code = "import json, pathlib, sys; from sojourn.validate import relay; "
    code += "relay.run(pathlib.Path(sys.argv[1]), json.loads(sys.argv[2]), 'long')"
    late = [{"start_s": 60.0, "size_bytes": 1}]
    job = json.dumps(kernel.job(SCENARIO) | {"limit_s": 100.0, "flows": late})
    parent = subprocess.Popen([sys.executable, "-c", code, str(live), job])
    children = Path(f"/proc/{parent.pid}/task/{parent.pid}/children")
    try:
        child = _wait_for(lambda: children.read_text().split())[0]
        _wait_for(lambda: Path(f"/proc/{child}/comm").read_text().strip() == relay.NAME)
        os.kill(parent.pid, signal.SIGKILL)
        _wait_for(lambda: not Path(f"/proc/{child}/exe").exists())
    finally:
        parent.kill()
        parent.wait()


def _wait_for(read: Callable[[], Any], timeout_s: float = 20) -> Any:
    end = time.monotonic() + timeout_s
    while not (value := read()):
        assert time.monotonic() < end
        time.sleep(0.01)
    return value
