"""A scenario over the TCP of this machine's kernel: what is refused, what is shown, and one run."""

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
from sojourn.validate import kernel as real
from sojourn.validate import relay

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


def test_the_relay_is_told_of_the_bottleneck_and_of_flows_in_order() -> None:
    link = {"rate_bps": 20_000_000, "delay_s": pytest.approx(0.02), "capacity_packets": 67}
    told = real.job(SCENARIO)
    flows = told.pop("flows")
    assert told == {"link": link, "mtu": 1500, "congestion": "reno", "limit_s": 10.0}
    assert [(flow["start_s"], flow["size_bytes"]) for flow in flows] == [
        *((0.1, 10_000), (0.7, 100_000), (1.2, 1_000_000))
    ]


def test_a_link_is_one_too_and_flows_after_the_end_are_not_run() -> None:
    told = real.job(changed({"topology": LINK, "transport": "bbr", "time_limit": "1 s"}))
    assert told["link"] == {"rate_bps": 50_000_000, "delay_s": 0.01, "capacity_packets": 67}
    assert told["congestion"] == "bbr"
    assert len(told["flows"]) == 2


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"host.kernel": "none"}, 'host.kernel: must be "linux"'),
        ({"transport": "dctcp"}, "transport: must be one of tcp, cubic, bbr"),
        ({"transport": {"ecn": True}}, "transport.ecn: must be false: neither kernel nor relay"),
        ({"transport.window": {"hystart": "linux"}}, 'transport.window.hystart: must be "none"'),
        ({"transports": {"flows": "cubic"}}, "transports: must be {}"),
        ({"model": "processor_sharing"}, 'model: must be "packet"'),
        ({"packet": {"header": "40 B"}}, 'packet.header: must be "52 B"'),
        ({"host.clock_granularity": "1 ms"}, 'host.clock_granularity: must be "0 ps"'),
        ({"queue": {"kind": "ecn_threshold"}}, "queue: must drop at its tail, and count packets"),
        ({"queue": {"capacity": "100 KB"}}, "queue: must drop at its tail, and count packets"),
        ({"queue": "none"}, "queue: must drop at its tail, and count packets"),
        ({"host_queue": {"capacity": "9 packets"}}, "host_queue: must be"),
        ({"topology": {"kind": "star"}}, "topology: must be link or dumbbell"),
        ({"topology.loss": 0.01}, "topology.loss: must be 0.0"),
        ({"topology.rate": "100 Mbps"}, "topology.rate: must be at least 10 times the bottleneck"),
        ({"topology.bottleneck_rate": "101 Mbps"}, "topology.bottleneck_rate: must be at most 100"),
        ({"topology": LINK | {"rate": "1 Gbps"}}, "topology.rate: must be at most 100 Mbps"),
        ({"time_limit": "601 s"}, "time_limit: must be at most 600 s"),
        ({"time_limit": "50 ms"}, "workload: must have 1 to 4000 flows, not 0"),
        ({"workload.flows": [FLOW] * 4001}, "workload: must have 1 to 4000 flows, not 4001"),
        ({"workload.flows": [FLOW | {"size": "none"}]}, "workload: must have flows that end"),
        ({"workload.flows": [FLOW | {"source": 1, "target": 0}]}, "from left to right alone"),
        ({"workload": CALLS}, "workload: must know its flows beforehand"),
    ],
)
def test_what_neither_kernel_nor_relay_can_follow_is_refused_by_its_field(
    change: dict[str, Any], expected: str
) -> None:
    with pytest.raises(sojourn.ScenarioError) as refused:
        real.job(changed(change))
    assert expected in str(refused.value)


def test_a_machine_that_lacks_something_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(real, "AVAILABLE", tmp_path / "available")
    with pytest.raises(sojourn.ScenarioError, match="needs Linux"):
        real.measure(SCENARIO)
    real.AVAILABLE.write_text("reno cubic\n")
    with pytest.raises(sojourn.ScenarioError, match=r"this kernel has no `bbr` \(reno, cubic\)"):
        real.measure(changed({"transport": "bbr"}))


def test_where_there_is_no_relay_one_line_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    if paths.checkout() is not None:
        with pytest.raises(sojourn.ScenarioError, match="cannot be built without `cargo`"):
            relay.program()
    monkeypatch.setattr(paths, "checkout", lambda: None)
    with pytest.raises(sojourn.ScenarioError, match="cargo install --locked --path crates/relay"):
        relay.program()
    here = tmp_path / relay.NAME
    here.write_text("#!/bin/sh\n")
    here.chmod(0o755)
    assert relay.program() == here


@pytest.fixture
def make_relay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakeRelay:
    """Return what makes a relay that says what it is told to say, each time it is run."""

    def make(*runs: dict[str, Any], says: str = "", status: int = 0) -> Path:
        program = tmp_path / relay.NAME
        for number, outcome in enumerate(runs):
            lines = [json.dumps({"now_s": 0.2, "finished": 1}), json.dumps(outcome)]
            (tmp_path / f"run{number}").write_text("\n".join(lines) + "\n")
        program.write_text(
            f"#!{sys.executable}\n"
            "import pathlib, sys\n"
            f"place = pathlib.Path({str(tmp_path)!r})\n"
            "sys.stdin.read()\n"
            "runs = sorted(place.glob('run*'))\n"
            "if runs:\n"
            "    print(runs[0].read_text(), end='')\n"
            "    runs[0].unlink()\n"
            f"sys.stderr.write({says!r})\n"
            f"sys.exit({status})\n"
        )
        program.chmod(0o755)
        monkeypatch.setattr(relay, "program", lambda: program)
        monkeypatch.setattr(real, "AVAILABLE", tmp_path / "available")
        real.AVAILABLE.write_text("reno cubic bbr\n")
        return program

    return make


def outcome(there: dict[str, Any], *fcts: float | None) -> dict[str, Any]:
    flows = [{"late_s": 1e-4, "fct_s": fct} for fct in fcts]
    return {"flows": flows, "there": there, "back": IN_TIME, "retransmits": 7, "timeouts": None}


def test_a_run_whose_packets_were_late_is_repeated_and_does_not_count(
    make_relay: MakeRelay,
) -> None:
    make_relay(outcome(LATE, 1, 1, 1), outcome(IN_TIME, 0.2, 0.3, None), outcome(LATE, 1, 1, 1))
    measured = real.measure(SCENARIO)
    assert [one.counts for one in measured.attempts] == [False, True]
    assert measured.attempt is measured.attempts[1]
    assert measured.kernel.flows["fct_s"].to_list() == [0.2, 0.3, None]
    assert measured.kernel.flows["outcome"].to_list() == ["finished", "finished", "unfinished"]
    assert measured.kernel.flows["size_bytes"].to_list() == [10_000, 100_000, 1_000_000]


def test_one_in_a_hundred_packets_a_millisecond_late_is_too_many() -> None:
    assert real.Attempt(outcome(IN_TIME | {"late_packets": 8})).counts
    assert not real.Attempt(outcome(IN_TIME | {"late_packets": 9})).counts


def test_what_was_measured_is_printed_and_written(
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
    assert "warning: no run counts" in printed
    assert "paced at the link's rate" in printed
    # Of a flow that did not finish only a bound is known, and no ratio.
    (row,) = [line for line in printed.splitlines() if "100 KB to 1 MB" in line]
    assert re.search(r"ms +≥ \d+ ms +- +.* ms +≥ \d+ ms +-", row)
    sizes = pl.read_csv(out / "sizes.csv")
    assert sizes["mean_kernel"].to_list()[:2] == [0.2, 0.3]
    told = json.loads((out / "real.json").read_text())
    assert told["happened"]["drops"]["kernel"] == 3
    assert [one["counts"] for one in told["attempts"]] == [False, False]
    flows_there = pl.read_parquet(out / "flows.parquet")
    assert flows_there["fct_kernel_s"].to_list() == [0.2, 0.3, None]
    assert (flows_there["fct_s"] > 0).all()


def test_a_relay_that_cannot_run_says_why(make_relay: MakeRelay) -> None:
    make_relay(says="a network namespace: EPERM: Operation not permitted\n", status=1)
    with pytest.raises(sojourn.ScenarioError, match="cannot run it: a network namespace: EPERM"):
        real.measure(SCENARIO)
    make_relay()
    with pytest.raises(sojourn.ScenarioError, match="sojourn-relay was stopped"):
        real.measure(SCENARIO)


@pytest.fixture
def live() -> Path:
    """Return the relay, if it can be had here and if it may have its namespaces."""
    try:
        program = relay.program()
        relay.run(program, real.job(SCENARIO) | {"limit_s": 0.0}, "nothing")
    except sojourn.ScenarioError as error:
        if not any(word in str(error) for word in ("cargo", "namespace", "/dev/net/tun", "net/")):
            raise
        pytest.skip(str(error))
    return program


@pytest.mark.parametrize("transport", ["tcp", "cubic"])
def test_flows_alone_take_as_long_over_the_kernel(transport: str, live: Path) -> None:
    measured = real.measure(changed({"transport": transport}))
    if not measured.attempt.counts:
        pytest.skip(f"{100 * measured.attempt.late_share:.1f} % of the packets were late")
    ours, kernel = (result.flows["fct_s"] for result in (measured.ours, measured.kernel))
    assert (kernel / ours).is_between(0.9, 1.1).all(), (ours, kernel)


def test_nothing_is_left_when_the_lab_is_killed(live: Path) -> None:
    code = "import json, pathlib, sys; from sojourn.validate import relay; "
    code += "relay.run(pathlib.Path(sys.argv[1]), json.loads(sys.argv[2]), 'long')"
    late = [{"start_s": 60.0, "size_bytes": 1}]
    job = json.dumps(real.job(SCENARIO) | {"limit_s": 100.0, "flows": late})
    lab = subprocess.Popen([sys.executable, "-c", code, str(live), job])
    children = Path(f"/proc/{lab.pid}/task/{lab.pid}/children")
    try:
        child = _until(lambda: children.read_text().split())[0]
        _until(lambda: Path(f"/proc/{child}/comm").read_text().strip() == relay.NAME)
        os.kill(lab.pid, signal.SIGKILL)
        _until(lambda: not Path(f"/proc/{child}/exe").exists())
    finally:
        lab.kill()
        lab.wait()


def _until(found: Callable[[], Any], patience_s: float = 20) -> Any:
    end = time.monotonic() + patience_s
    while not (value := found()):
        assert time.monotonic() < end
        time.sleep(0.01)
    return value
