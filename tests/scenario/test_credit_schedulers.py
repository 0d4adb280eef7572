"""Receiver-driven transports and priorities in Python."""

import math
import re
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest

import sojourn
from sojourn import ScenarioError
from sojourn.scenario import credit_scheduler

OWN = Path(sojourn.__file__).parent / "examples/controllers"

FABRIC: dict[str, Any] = {
    "environment": "paper",
    "topology": {"kind": "leaf_spine", "leaves": 3, "spines": 2, "hosts_per_leaf": 3},
    "routing": "spray_round_robin",
    "workload": {
        "kind": "poisson",
        "load": 0.7,
        "flows": 60,
        "sizes": {"kind": "empirical", "table": "web_search"},
    },
    "account": True,
}

LOSSY: dict[str, Any] = {
    "topology": {"kind": "dumbbell", "senders": 3, "receivers": 2, "loss": 0.02},
    "routing": "flow_hash",
}

ENDLESS: dict[str, Any] = {
    "topology": {"kind": "dumbbell", "senders": 2, "receivers": 2},
    "routing": "flow_hash",
    "workload": {"kind": "long_lived", "flows": 2, "stop": "1 ms"},
}

INCAST: dict[str, Any] = {
    "environment": "paper",
    "topology": {"kind": "star", "hosts": 5},
    "workload": {"kind": "incast", "fan_in": 4, "size": "100 KB", "events": 1, "interval": "1 s"},
    "time_limit": "1 s",
}


def check(is_true: bool) -> None:
    """Raise `ValueError` unless a value is true; tests rewrite assertions, which change a text."""
    if not is_true:
        raise ValueError


class Shortest(sojourn.CreditScheduler):
    """A credit per packet time for the flow with the fewest segments without credit."""

    def on_start(self, host: sojourn.CreditHost) -> None:
        self.packet_time_ps = host.packet_time_ps
        self.next_ps = 0
        self.waiting: dict[int, int] = {}

    def on_flow(self, now_ps: int, flow: sojourn.InboundFlow) -> None:
        check(flow.packet_time_ps == self.packet_time_ps)
        self.waiting[flow.flow] = flow.segments or 0

    def on_arrival(self, now_ps: int, flow: int, arrival: sojourn.Arrival) -> None:
        check(arrival.number == {"request": 0, "data": 7}[arrival.kind])

    def on_end(self, now_ps: int, flow: int) -> None:
        del self.waiting[flow]

    def next_credit(self, now_ps: int) -> sojourn.Credit | None:
        eligible = {flow: left for flow, left in self.waiting.items() if left > 0}
        if not eligible or now_ps < self.next_ps:
            return None
        self.next_ps = now_ps + self.packet_time_ps
        flow = min(eligible, key=eligible.__getitem__)
        self.waiting[flow] -= 1
        return sojourn.Credit(flow, number=7, priority=1, resend=True)

    def next_time_ps(self) -> int | None:
        return self.next_ps if any(self.waiting.values()) else None


class Granted(sojourn.Controller):
    """Sender that sends a packet for each credit."""

    credit_scheduler = Shortest
    priorities = 2
    queue: ClassVar = {"kind": "strict_priority", "classes": 2}

    def on_start(self, path: sojourn.Path) -> None:
        self.credits = 0
        self.priority = 0

    def on_credit(self, now_s: float, credit: sojourn.Credit) -> None:
        check((credit.number, credit.resend) == (7, True))
        self.credits += 1
        self.priority = credit.priority

    def on_sent(self, now_s: float, packet_bytes: int) -> None:
        self.credits -= 1

    def allowance(self) -> sojourn.Allowance:
        return sojourn.Allowance(granted_segments=math.inf if self.credits > 0 else 0)

    def header(self, packet: sojourn.OutgoingPacket) -> sojourn.Header:
        check(self.priority == 1 and packet.remaining_bytes == 100_000)
        check(packet.unsent_bytes is not None and not packet.is_retransmit)
        return sojourn.Header(self.priority, number=7)


class OneByOne(sojourn.CreditScheduler):
    """Credits for the first flow in progress, as many as it has segments."""

    def on_start(self, host: sojourn.CreditHost) -> None:
        self.due: dict[int, int] = {}

    def on_flow(self, now_ps: int, flow: sojourn.InboundFlow) -> None:
        self.due[flow.flow] = flow.segments or 0

    def on_end(self, now_ps: int, flow: int) -> None:
        del self.due[flow]

    def next_credit(self, now_ps: int) -> sojourn.Credit | None:
        first = min(self.due, default=None)
        if first is None or self.due[first] == 0:
            return None
        self.due[first] -= 1
        return sojourn.Credit(first)


class QuitsFirst(sojourn.Controller):
    """Sender of a packet per credit, whose first flow gives up after 30 of them."""

    credit_scheduler = OneByOne

    def on_start(self, path: sojourn.Path) -> None:
        self.flow = path.flow
        self.credits = self.sent = 0

    def on_credit(self, now_s: float, credit: sojourn.Credit) -> None:
        self.credits += 1

    def on_sent(self, now_s: float, packet_bytes: int) -> None:
        self.sent += 1

    def allowance(self) -> sojourn.Allowance:
        gives_up = self.flow == 0 and self.credits >= 30
        return sojourn.Allowance(granted_segments=self.credits, gives_up=gives_up)


@pytest.mark.parametrize("changes", [{}, LOSSY, ENDLESS], ids=["fabric", "lossy", "endless"])
def test_tokens_in_python_are_those_of_phost(changes: dict[str, Any]) -> None:
    own = str(OWN / "phost.py:PHost")
    mine, theirs = (sojourn.run(FABRIC | changes | {"transport": kind}) for kind in (own, "phost"))
    assert mine.flows.equals(theirs.flows)
    assert mine.account.equals(theirs.account)
    assert mine.summary["counts"] == theirs.summary["counts"]
    assert (theirs.summary["counts"]["losses"] > 100) == (changes is LOSSY)


def test_queues_that_ignore_the_priorities_of_a_class_are_warned_of() -> None:
    own = {"transport": str(OWN / "phost.py:PHost"), "queue": "drop_tail"}
    warnings = sojourn.run(FABRIC | own).summary["warnings"]
    assert any("`PHost` gives packets priorities, but" in warning for warning in warnings)


def test_the_example_of_the_docstring_sends_packets_twice_after_timeouts_only(
    tmp_path: Path,
) -> None:
    lines = (credit_scheduler.__doc__ or "").splitlines()
    code = "\n".join(line for line in lines if not line or line.startswith("    "))
    file = tmp_path / "tokens.py"
    file.write_text(f"import math\n\nimport sojourn\n\n{textwrap.dedent(code)}")
    own = {"transport": f"{file}:PacketPerToken"}
    counts = sojourn.run(FABRIC | own).summary["counts"]
    assert counts["unfinished"] == counts["losses"] == 0
    # Only after timeouts of flows that wait for the credits of shorter ones.
    assert counts["retransmits"] <= counts["timeouts"] < 20
    lossy = sojourn.run(FABRIC | LOSSY | own).summary["counts"]
    assert (lossy["unfinished"], lossy["losses"] > 100) == (0, True)


def test_a_flow_that_gives_up_ends_its_credit() -> None:
    own = {"transport": QuitsFirst, "time_limit": "1 s"}
    flows = [{"source": source, "target": 2, "size": "1 MB"} for source in (0, 1)]
    star = {"kind": "star", "hosts": 3, "rate": "10 Gbps", "delay": "1 us"}
    workload = {"kind": "flows", "flows": flows}
    base = {"environment": "paper", "topology": star, "workload": workload}
    outcomes = sojourn.run(base | own).flows["outcome"].to_list()
    assert outcomes == ["terminated", "finished"]


def test_long_lived_flows_with_losses_end() -> None:
    lossy = {"topology": {"kind": "dumbbell", "senders": 2, "receivers": 2, "loss": 0.1}}
    own = {"transport": str(OWN / "phost.py:PHost"), "time_limit": "10 s"}
    result = sojourn.run(FABRIC | ENDLESS | lossy | own)
    assert result.summary["counts"]["losses"] > 100
    assert result.summary["simulated_s"] < 3


def test_priorities_in_python_are_those_of_pias(tmp_path: Path) -> None:
    queue = {"kind": "strict_priority", "classes": 3, "threshold": "65 packets", "mark_by": "port"}
    text = (OWN / "dctcp.py").read_text() + textwrap.dedent(
        f"""

        class Mine(Dctcp):
            priorities = 3
            queue = host_queue = {queue}

            def on_start(self, path):
                super().on_start(path)
                self.packet = path.payload_bytes

            def header(self, packet):
                return sum(packet.offset_bytes > limit * self.packet for limit in (20, 200))
        """
    )
    (tmp_path / "mine.py").write_text(text)
    pias = {"kind": "pias", "thresholds": [20, 200]}
    base = FABRIC | {"routing": "flow_hash"}
    mine = sojourn.run(base | {"transport": str(tmp_path / "mine.py:Mine")})
    theirs = sojourn.run(base | {"transport": pias})
    assert theirs.summary["counts"]["marks"] > 0
    assert mine.flows.equals(theirs.flows)


def test_the_receiver_of_an_incast_gets_one_flow_after_the_other() -> None:
    result = sojourn.run(INCAST | {"transport": Granted, "account": True})
    ends = sorted(result.flows["fct_s"])
    assert result.summary["counts"]["timeouts"] == 0
    assert ends[0] < 1.3 * ends[3] / 4
    # The first flow waits for credit only for its first round trip, the last for those before it.
    credit = result.account.join(result.flows, on="flow").sort("fct_s")["credit_sender_ps"]
    assert credit[3] > 0.6 * 1e12 * ends[3]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], str]:
    """Return a function that writes bodies of a scheduler and of its controller to a file."""
    monkeypatch.chdir(tmp_path)

    def write_classes(scheduler: str, controller: str) -> str:
        bodies = [
            textwrap.indent(textwrap.dedent(body), "    ") for body in (scheduler, controller)
        ]
        text = (
            "import sojourn\n\n"
            f"class Tokens(sojourn.CreditScheduler):\n    ...\n{bodies[0]}\n\n"
            f"class Mine(sojourn.Controller):\n    credit_scheduler = Tokens\n{bodies[1]}\n"
            "    def allowance(self): return sojourn.Allowance(granted_segments=0)\n"
        )
        (tmp_path / "mine.py").write_text(text)
        return "mine.py:Mine"

    return write_classes


NO_CREDIT = "def next_credit(self, now_ps): return None"


@pytest.mark.parametrize(
    ("scheduler", "controller", "expected"),
    [
        ("", "", "mine.py:Tokens: the class has no method `next_credit`"),
        (f"{NO_CREDIT}\ndef on_flows(self, a, b): pass", "", "mine.py:Tokens: on_flows: did you"),
        (
            f"{NO_CREDIT}\ndef on_timer(self, a): pass",
            "",
            "unknown event; did you mean `on_start`? (events: on_start, on_flow, ",
        ),
        (
            f"{NO_CREDIT}\ndef on_end(self): pass",
            "",
            "must have the parameters (self, now_ps, flow)",
        ),
        (
            "def next_credit(self, now_ps): return 1",
            "",
            "credit scheduler of host 1 at 0.000002064 s: mine.py:5: TypeError: next_credit: must ",
        ),
        (
            "def next_credit(self, now_ps): return sojourn.Credit(9)",
            "",
            "next_credit: flow 9 is not in progress here",
        ),
        (
            "def next_credit(self, now_ps): return sojourn.Credit(0, priority=1)",
            "",
            "next_credit: priority must be below 1, the class's `priorities`, not 1",
        ),
        (
            "def on_flow(self, now_ps, flow): self.flow = flow.flow\n"
            "def next_credit(self, now_ps): return sojourn.Credit(self.flow)",
            "",
            "more than 100000 credits at one time",
        ),
        (
            f"{NO_CREDIT}\ndef next_time_ps(self): return 5",
            "",
            "next_time_ps: must be later than now, ",
        ),
        (
            f"{NO_CREDIT}\ndef next_time_ps(self): return 0.5",
            "",
            "next_time_ps: must return whole picoseconds or None, not float",
        ),
        (f"{NO_CREDIT}\ndef on_start(self, host): 1 / 0", "", "ZeroDivisionError"),
        (
            NO_CREDIT,
            "credit_scheduler = int",
            "must be a class derived from sojourn.CreditScheduler",
        ),
        (NO_CREDIT, "burst = 1", 'transport.burst: must be "none": a sender by credit'),
        (NO_CREDIT, "priorities = 9", "transport.priorities: must be from 1 to 8, not 9"),
        (
            "def next_credit(self, now_ps): return None",
            "credit_scheduler = None",
            "granted_segments requires a class with a credit_scheduler",
        ),
        (
            NO_CREDIT,
            "credit_scheduler = None\ndef on_credit(self, now_s, credit): pass",
            "mine.py:Mine: on_credit: needs a `credit_scheduler`",
        ),
        (
            NO_CREDIT,
            "credit_scheduler = None\ndef header(self, packet): return 0",
            "mine.py:Mine: header: needs `priorities` above 1, or a `credit_scheduler`",
        ),
    ],
)
def test_invalid_credit_schedulers_give_one_line_errors(
    scheduler: str, controller: str, expected: str, write: Callable[[str, str], str]
) -> None:
    own = write(scheduler, controller)
    with pytest.raises(ScenarioError, match=re.escape(expected)) as error:
        sojourn.run(INCAST | {"transport": own})
    assert "\n" not in str(error.value)


def test_a_scenario_cannot_set_another_credit_scheduler(write: Callable[[str, str], str]) -> None:
    own = {"kind": write(NO_CREDIT, ""), "credit_scheduler": "Other"}
    with pytest.raises(ScenarioError, match="credit_scheduler: the class sets it to `Tokens`"):
        sojourn.run(INCAST | {"transport": own})
