"""Controllers in Python: equal to the core's, with one-line errors, and stoppable."""

import importlib
import json
import re
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import sojourn
from sojourn import _core, cli
from sojourn._core import ScenarioError
from sojourn.base import paths
from sojourn.runs import processes
from sojourn.runs.runner import key
from sojourn.scenario import controller_files, encoding, fields, overrides, reading

OWN = paths.EXAMPLES / "controllers"

CROWD: dict[str, Any] = {
    "environment": "paper",
    "topology": {"kind": "dumbbell", "senders": 4, "receivers": 4, "rate": "1 Gbps"},
    "workload": {
        "kind": "flows",
        "flows": [
            {
                "source": i % 4,
                "target": 4 + i % 4,
                "start": f"{100 * i} us",
                "size": f"{40 + 60 * i} KB",
                "class": "mine" if i % 3 else "theirs",
            }
            for i in range(16)
        ],
    },
    "time_limit": "20 s",
}

# Early timeouts are spurious and undone; tail losses are not.
HASTY: dict[str, Any] = {
    "queue": {"kind": "drop_tail", "capacity": "100 KB"},
    "topology": {"delay": "10 us"},
    "transport": {
        "reliability": {
            "recovery": "rack",
            "undo": True,
            "frto": True,
            "min_rto": "100 us",
            "timer_granularity": "1 us",
        }
    },
}

# Losses leave holes in the cumulative acknowledgements.
LOSSY: dict[str, Any] = {
    "queue": {"kind": "drop_tail", "capacity": "20 KB"},
    "topology": {"rate": "10 Gbps", "bottleneck_rate": "1 Gbps", "delay": "10 us"},
    "transport": {"reliability": {"recovery": "rack"}},
}

ONE: dict[str, Any] = {
    "environment": "paper",
    "topology": {"kind": "link", "rate": "1 Gbps", "delay": "100 us"},
    "workload": {
        "kind": "flows",
        "flows": [{"source": 0, "target": 1, "start": "0 s", "size": "200 KB"}],
    },
    "time_limit": "1 s",
}


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """Return a function that writes a class `Mine` with a body to a file and returns its name."""
    monkeypatch.chdir(tmp_path)

    def write_class(body: str) -> str:
        body = textwrap.indent(textwrap.dedent(body).strip(), "    ")
        text = f"import sojourn\n\n\nclass Mine(sojourn.Controller):\n{body}\n"
        (tmp_path / "mine.py").write_text(text)
        return "mine.py:Mine"

    return write_class


def test_a_monitor_counts_like_a_controller(
    write: Callable[[str], str],
) -> None:
    own = write(
        """
        ecn = True
        queue = {"kind": "ecn_threshold", "threshold": "20 packets", "capacity": "60 packets"}

        def on_start(self, path: sojourn.Path) -> None:
            self.path, self.monitor = path, path.monitor()
            self.wakes_s, self.total, self.ended_s = path.start_s + 1e-4, 0, None
            self.forget()

        def forget(self) -> None:
            self.times, self.rtts = [], []
            self.acked = self.marks = self.losses = self.timeouts = self.timeout_bytes = 0

        def on_ack(self, ack: sojourn.Ack) -> None:
            self.times.append(ack.now_s)
            self.rtts.append(ack.rtt_s)
            self.acked += ack.acked_bytes
            self.marks += ack.marked
            self.losses += ack.lost
            self.in_flight = ack.in_flight_bytes

        def on_loss(self, loss: sojourn.Loss) -> None:
            self.timeouts += loss.sign == "timeout"
            self.timeout_bytes += loss.lost_bytes

        def on_timer(self, now_s: float) -> None:
            import pytest, statistics
            seen = self.monitor.close(now_s, 7.5)
            self.total += self.acked
            assert (seen.acks, seen.acked_bytes) == (len(self.rtts), self.acked)
            losses = self.losses - (-self.timeout_bytes // self.path.payload_bytes)
            assert (seen.marks, seen.losses) == (self.marks, losses)
            assert (seen.timeouts, seen.allowed_packets) == (self.timeouts, 7.5)
            assert (seen.end_s, seen.left_bytes) == (now_s, self.path.size_bytes - self.total)
            if self.rtts:
                assert seen.in_flight_bytes == self.in_flight
                assert seen.rtt_s == pytest.approx(statistics.mean(self.rtts), rel=1e-12)
            if len(set(self.times)) > 1:
                slope = statistics.linear_regression(self.times, self.rtts).slope
                assert seen.rtt_gradient == pytest.approx(slope, rel=1e-6, abs=1e-9)
            self.forget()
            self.wakes_s = now_s + 1e-4

        def on_end(self, now_s: float) -> None:
            assert not self.ended_s, "ended twice"
            self.total += self.acked
            assert self.total == self.path.size_bytes
            self.ended_s, self.wakes_s = now_s, None

        def next_timer(self) -> float | None:
            return self.wakes_s

        def allowance(self) -> float:
            return 60_000.0

        def gauges(self) -> dict[str, float]:
            return {"ended": self.ended_s or 0.0}
        """
    )
    result = sojourn.run(CROWD | {"transport": own})
    counts = result.summary["counts"]
    assert counts["finished"] == 16
    assert min(counts["marks"], counts["drops"], counts["timeouts"]) > 0


@pytest.mark.parametrize(
    ("own", "built_in", "changes"),
    [
        ("reno.py:Reno", "tcp", {"queue": {"kind": "drop_tail", "capacity": "30 KB"}}),
        ("reno.py:Reno", "tcp", HASTY),
        ("dctcp.py:Dctcp", "dctcp", {"switch": {"shared_buffer": "60 KB"}}),
        ("swift.py:Swift", "swift", {"topology": {"delay": "2 us"}}),
        ("hpcc.py:Hpcc", "hpcc", {"topology": {"rate": "10 Gbps"}}),
        ("hpcc.py:Hpcc", "hpcc", LOSSY),
    ],
)
def test_python_and_core_controllers_give_identical_results(
    own: str, built_in: str, changes: dict[str, Any]
) -> None:
    base = sojourn.override(CROWD, changes | {"account": True})
    mine = sojourn.run(sojourn.override(base, {"transport": {"kind": str(OWN / own)}}))
    theirs = sojourn.run(sojourn.override(base, {"transport": {"kind": built_in}}))
    assert mine.flows.equals(theirs.flows)
    assert mine.account.equals(theirs.account)
    counts = theirs.summary["counts"]
    assert mine.summary["counts"] == counts
    # Without any congestion the comparison would prove nothing.
    has_signals = counts["drops"] + counts["marks"] + counts["timeouts"] > 0
    assert has_signals or built_in in ("swift", "hpcc")


def test_a_controller_receives_all_events_of_its_flow(write: Callable[[str], str]) -> None:
    own = write(
        """
        ecn = True
        marks = "notify"
        queue = {"kind": "ecn_threshold", "threshold": "3 packets"}
        burst = 1
        reliability = {"handshake": True}
        speed: float = 1.2e9

        def on_start(self, path: sojourn.Path) -> None:
            self.path, self.counts, self.timer = path, {}, None
            assert (path.hops, path.size_bytes, path.flow) == (3, 200_000, 0)

        def count(self, event: str) -> None:
            self.counts[event] = self.counts.get(event, 0) + 1

        def on_open(self, opened: sojourn.Opened) -> None:
            assert not opened.syn_was_lost and opened.rtt_s > 0
            self.timer = opened.now_s + 1e-4
            self.count("opened")

        def on_sent(self, now_s: float, packet_bytes: int) -> None:
            assert packet_bytes == self.path.packet_bytes
            self.count("sent")

        def on_ack(self, ack: sojourn.Ack) -> None:
            assert round(ack.now_s * 1e12) == ack.now_ps and ack.rtt_s >= self.path.base_rtt_s / 2
            self.count("acked")

        def on_timer(self, now_s: float) -> None:
            assert now_s == self.timer
            self.timer = None
            self.count("woken")

        def next_timer(self) -> float | None:
            return self.timer

        def on_notification(self, now_s: float) -> None:
            self.count("notified")

        def allowance(self) -> sojourn.Allowance:
            return sojourn.Allowance(rate_bps=self.speed)

        def gauges(self) -> dict[str, float]:
            names = ("opened", "sent", "acked", "woken", "notified")
            return {name: float(self.counts.get(name, 0)) for name in names}
        """
    )
    changes = {
        "topology": {"kind": "dumbbell", "rate": "10 Gbps", "bottleneck_rate": "1 Gbps"},
        "workload.flows": [{"source": 0, "target": 10, "start": "0 s", "size": "200 KB"}],
        "transport": own,
        "samples": {"interval": "10 us", "flows": [0]},
    }
    result = sojourn.run(sojourn.override(ONE, changes))
    last = {
        name: max(result.samples.filter(probe=f"{name} flow 0")["value"].to_list())
        for name in ("opened", "sent", "acked", "woken", "notified")
    }
    assert last["opened"] == last["woken"] == 1
    assert last["sent"] == 200
    assert 190 < last["acked"] <= 200
    assert last["notified"] > 1


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (
            "def allowance(self): return float('nan')",
            "a window must be zero or more bytes, not NaN",
        ),
        ("def allowance(self): return -1", "a window must be zero or more bytes, not -1"),
        (
            "def allowance(self): return 'fast'",
            "mine.py:5: TypeError: allowance: must return a window in bytes or an Allowance, not s",
        ),
        ("def allowance(self): return True", "in bytes or an Allowance, not bool"),
        ("def allowance(self): return sojourn.Allowance(True)", "must be a number, not bool"),
        ("def allowance(self): return sojourn.Allowance(rate_bps=1e6)", "such as burst = 1"),
        (
            "burst = 1\ndef allowance(self): return sojourn.Allowance(rate_bps=-1.0)",
            "rate_bps must be zero or more bits per second, not -1",
        ),
        (
            "def next_timer(self): return 0.0\ndef allowance(self): return 1e4",
            "next_timer: must be later than now",
        ),
        (
            "def allowance(self): return 1e4\ndef on_ack(self, ack): self.rtt = 1 / 0",
            "transport.controller: flow 0 at 0.00020864 s: mine.py:6: ZeroDivisionError: division",
        ),
        ("def on_ack(self, ack): pass", "mine.py:Mine: the class has no method `allowance`"),
        ("gain: float\ndef allowance(self): return 1", "mine.py:Mine: gain: a parameter needs"),
        ("kind: str = ''\ndef allowance(self): return 1", "kind: a parameter cannot have this"),
        ("marks = 'loud'\ndef allowance(self): return 1", "transport.marks: expected one of"),
        ("def allowance(self: return 1", "mine.py:5: not Python"),
        ("def allowance(self): return 1\nraise SystemExit(0)", "mine.py:6: SystemExit: 0"),
    ],
)
def test_invalid_controllers_give_one_line_errors(
    body: str, expected: str, write: Callable[[str], str]
) -> None:
    own = write(body)
    with pytest.raises(ScenarioError) as error:
        sojourn.run(ONE | {"transport": own})
    assert expected in str(error.value)
    assert "\n" not in str(error.value)


def test_a_truncated_file_is_a_controller_or_a_one_line_error() -> None:
    text = (OWN / "gentle.py").read_text()
    lines = set()
    for end in range(0, len(text), 11):
        try:
            controller_files.part("gentle.py:Gentle", text[:end])
        except ScenarioError as error:
            lines.add(str(error))
    assert len(lines) > 5
    assert not any("\n" in line for line in lines)


def test_the_option_traceback_prints_the_traceback(
    write: Callable[[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    own = write("def on_loss(self, loss): pass\ndef allowance(self): return 1 / 0")
    lines = [f"transport = '{own}'", "topology = 'link'", "workload = 'permutation'"]
    Path("bad.toml").write_text("\n".join(lines))
    assert cli.invoke(["run", "bad.toml"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert cli.invoke(["--traceback", "run", "bad.toml"]) == 2
    assert "line 6, in allowance" in capsys.readouterr().err


PARAMETERS = """
gain: float = 0.5
'''How fast.'''
steps: int = 3

def allowance(self): return 1e4 * self.gain * self.steps
"""


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"gian": 0.1}, "transport.gian: unknown key; did you mean `gain`?"),
        ({"gain": "0.1"}, "transport.gain: must be a valid number, not '0.1'"),
        ({"steps": 1.5}, "transport.steps: must be a valid integer"),
        ({"parameters": {"gian": 0.1}}, "transport.gian: unknown key"),
    ],
)
def test_parameters_of_classes_are_checked(
    given: dict[str, Any], expected: str, write: Callable[[str], str]
) -> None:
    transport = {"kind": "python", "controller": write(PARAMETERS), **given}
    with pytest.raises(ScenarioError, match=expected.replace("?", r"\?")):
        sojourn.check(ONE | {"transport": transport})


def test_parameters_of_classes_are_varied_and_listed(
    write: Callable[[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    base = reading.with_files(ONE | {"transport": write(PARAMETERS)})
    assert fields.find(base, "gain") == fields.find(base, "transport.gain") == "transport.gain"
    runs = sojourn.expand(base, {"gain": [0.25, 0.5], "transport.steps": [3]})
    slow, fast = (sojourn.run(one).flows["fct_s"][0] for _, one in runs)
    assert slow > fast
    assert sojourn.run(ONE | {"transport": "mine.py:Mine"}).flows["fct_s"][0] == fast
    assert cli.invoke(["parts", "mine.py:Mine"]) == 0
    shown = capsys.readouterr().out
    assert "How fast." in shown
    assert "a whole number" in shown


def test_a_parameter_may_look_like_a_file(write: Callable[[str], str]) -> None:
    own = write("label: object = None\ndef allowance(self): return float(self.label['text'])")
    of = {
        text: ONE | {"transport": {"kind": own, "label": {"name": "x", "text": text}}}
        for text in ("3000", "30000")
    }
    slow, fast = (sojourn.run(scenario).flows["fct_s"][0] for scenario in of.values())
    assert slow > fast
    shown = sojourn.check(of["3000"])["transport"]["parameters"]
    assert shown["label"] == {"name": "x", "text": "3000"}


def test_a_scenario_overrides_the_options_of_a_class(
    write: Callable[[str], str],
) -> None:
    own = write("ecn = True\nburst = 2\nreliability = {'handshake': True}\n" + PARAMETERS.strip())
    given = {"controller": own, "parameters": {"gain": 0.2}, "reliability": {"min_rto": "1 ms"}}
    shown = sojourn.check(ONE | {"transport": {"kind": "python", "burst": 4} | given})["transport"]
    assert (shown["ecn"], shown["burst"], shown["parameters"]["gain"]) == (True, 4, 0.2)
    reliability = shown["reliability"]
    assert (reliability["handshake"], reliability["min_rto"]) == (True, "1 ms")
    # An error names the field of the transport concerned.
    others = {"transport": "tcp", "transports": {"mine": {"kind": own, "gain": "x"}}}
    with pytest.raises(ScenarioError, match=r"^transports.mine.gain: must be a valid number"):
        sojourn.check(CROWD | others)


def test_changes_keep_what_a_scenario_sets_beside_its_class(write: Callable[[str], str]) -> None:
    own = write(
        """
        ecn = True
        reliability = {"recovery": "rack"}
        gain: float = 0.5

        def allowance(self) -> float:
            return 1e6
        """
    )
    plain = reading.with_files(ONE | {"transport": own})
    assert overrides.dropped_parameters(plain, {"transport": [own, "cubic"]}) == []
    given = {"kind": own, "gain": 0.1, "ecn": False, "reliability": {"undo": True}}
    base = reading.with_files(ONE | {"transport": given})
    (warning,) = overrides.dropped_parameters(base, {"transport": [own, "cubic"]})
    assert warning == (
        "warning: transport: parameters of mine.py:Mine that the scenario sets are dropped for "
        "cubic: gain, ecn, reliability.undo; mine.py:Mine keeps them"
    )
    same = reading.with_files(overrides.override(base, {"transport": own}))
    assert same == base
    changed = overrides.override(base, {"transport": {"kind": own, "gain": 0.2}})
    transport = reading.with_files(changed)["transport"]
    assert (transport["parameters"], transport["ecn"]) == ({"gain": 0.2}, False)


def test_a_run_with_a_python_controller_uses_one_thread(write: Callable[[str], str]) -> None:
    base = {
        "topology": {"kind": "fat_tree", "k": 8},
        "workload": {"kind": "permutation", "size": "10 KB"},
        "engine": "windows",
        "transport": write(PARAMETERS),
    }
    assert sojourn.run(base, threads=2).threads == 1
    assert sojourn.run(base | {"transport": "dctcp"}, threads=2).threads == 2


def test_an_instance_is_a_transport(
    write: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_name = ONE | {"transport": {"kind": write(PARAMETERS), "gain": 0.3}}
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, "mine", sys.modules[__name__])  # Restored after the test.
    del sys.modules["mine"]
    module = importlib.import_module("mine")
    assert key(ONE | {"transport": module.Mine(gain=0.3)}) == key(by_name)


def test_the_arguments_of_a_program_are_not_those_of_a_controller(
    write: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["program", "7"])
    method = "def allowance(self):\n        import sys\n        assert len(sys.argv) == 1"
    flows = sojourn.run(ONE | {"transport": write(f"{method}\n        return 1e4")}).flows
    assert flows["outcome"].to_list() == ["finished"]


def test_the_cache_key_depends_on_the_source_of_a_class(write: Callable[[str], str]) -> None:
    before = key(ONE | {"transport": write("def allowance(self): return 1e4")})
    after = key(ONE | {"transport": write("def allowance(self): return 2e4")})
    assert before != after


def test_opening_a_result_executes_no_code(write: Callable[[str], str], tmp_path: Path) -> None:
    own = write("def allowance(self): return 1e4")
    source = Path("mine.py").read_text() + "\n__import__('pathlib').Path('ran').touch()\n"
    Path("mine.py").write_text(source)
    result = sojourn.run(ONE | {"transport": own}, cache=tmp_path / "cache")
    Path("ran").unlink()
    controller_files.load_class.cache_clear()
    shown = result.summary["scenario"]
    assert json.loads(encoding.encode(shown)[0])["transport"]["parameters"] == {}
    assert not Path("ran").exists()
    # The result contains everything to run the scenario again.
    Path("mine.py").unlink()
    assert sojourn.run(shown).flows.equals(result.flows)


def test_runs_of_a_sweep_are_in_separate_processes(write: Callable[[str], str]) -> None:
    body = "def on_start(self, path): print('to the error output')\n"
    base = ONE | {"transport": write(body + PARAMETERS.strip())}
    runs = sojourn.expand(base, {"gain": [0.2, 0.4, 0.6]})
    sequential = sojourn.sweep(runs, threads=1)
    parallel = sojourn.sweep(runs, threads=2)
    for first, second in zip(sequential, parallel, strict=True):
        assert first.result.flows.equals(second.result.flows)
    write("def allowance(self): raise KeyError('no')")
    with pytest.raises(ScenarioError, match=r"mine.py:5: KeyError: 'no'") as error:
        sojourn.run_many(
            [{**ONE, "transport": "mine.py:Mine", "seed": i} for i in (1, 2)], threads=2
        )
    assert "line 5, in allowance" in "".join(error.value.__notes__)


def test_a_controller_that_blocks_is_killed(write: Callable[[str], str]) -> None:
    own = write("def allowance(self):\n    while True: pass")
    control, start = processes.ProcessControl(), time.monotonic()
    threading.Timer(2.0, control.stop, ["no longer wanted"]).start()
    with processes.WorkerPool() as pool, pytest.raises(ScenarioError, match="no longer wanted"):
        pool.simulate(*encoding.encode(ONE | {"transport": own}), control)
    assert time.monotonic() - start < 20


def test_python_and_core_controllers_share_a_network() -> None:
    base = CROWD | {"transport": "dctcp"}
    mixed = sojourn.run(base | {"transports": {"mine": str(OWN / "dctcp.py:Dctcp")}})
    assert mixed.flows.equals(sojourn.run(base).flows)


def test_the_core_rejects_a_class_without_a_loader() -> None:
    # A scenario that did not pass through `controller_files`.
    transport = {"kind": "python", "controller": {"name": "gone", "text": ""}}
    with pytest.raises(ScenarioError, match='a colon, and the name of a class, not "gone"'):
        _core.prepare(json.dumps(ONE | {"transport": transport}))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("def onack(self, ack): pass", "onack: did you mean `on_ack`?"),
        ("def on_acks(self, ack): pass", "on_acks: did you mean `on_ack`?"),
        (
            "def on_timeout(self, now_s): pass",
            "on_timeout: unknown event; did you mean `on_timer`? (events: on_start, on_open, ",
        ),
        ("def on_stat(self, path): pass", "on_stat: unknown event; did you mean `on_start`?"),
        ("ECN = True", "ECN: did you mean `ecn`?"),
        ("queues = 'drop_tail'", "queues: did you mean `queue`?"),
        ("files = 'w.npy'", 'files: must be a tuple of names, such as ("w.npy",), not a name'),
        ("def on_timer(self, now_s): pass", "on_timer: needs the method `next_timer`"),
        ("def on_ack(self): pass", "on_ack: must have the parameters (self, ack)"),
    ],
)
def test_names_and_parameters_that_would_have_no_effect_are_errors(
    write: Callable[[str], str], body: str, message: str
) -> None:
    name = write(f"{body}\n\ndef allowance(self): return 1e4")
    with pytest.raises(ScenarioError, match=re.escape(f"mine.py:Mine: {message}")):
        sojourn.run(ONE | {"transport": name})


def test_attributes_of_a_controller_may_resemble_none_of_its_names(
    write: Callable[[str], str],
) -> None:
    name = write(
        """
        rate = 3

        def on_ack(self, ack, *rest): self.on_acks_seen = self._onack = 1
        def on_start(self, *arguments): pass
        def allowance(self): return 1e4
        """
    )
    assert sojourn.run(ONE | {"transport": name}).flows["fct_s"].null_count() == 0
