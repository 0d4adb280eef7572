"""Base class of congestion controllers in Python, with the events of the core's controllers.

    class Gentle(sojourn.Controller):
        gain: float = 0.1

        def on_start(self, path: sojourn.Path) -> None:
            self.window = 10.0 * path.payload_bytes

        def on_ack(self, ack: sojourn.Ack) -> None:
            self.window += self.gain * ack.acked_bytes

        def on_loss(self, loss: sojourn.Loss) -> None:
            self.window /= 2

        def allowance(self) -> float:
            return self.window

A scenario file names the class as `"gentle.py:Gentle"`; Python passes `Gentle(gain=0.1)`. There the
class may also be in a cell of a notebook.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, dataclass_transform

from sojourn._core import Ack, Allowance, Credit, Header, Loss, Opened, OutgoingPacket, Path
from sojourn.scenario.credit_scheduler import CreditScheduler

EVENTS = (
    "on_open",
    "on_ack",
    "on_loss",
    "remember",
    "on_undo",
    "on_notification",
    "on_credit",
    "on_sent",
    "on_timer",
    "on_end",
    "next_timer",
    "header",
    "gauges",
)
"""Methods that the core calls only if the class defines them."""


@dataclass_transform(kw_only_default=True)
@dataclasses.dataclass(kw_only=True, eq=False)
class Controller:
    """Congestion controller: receives events of a flow and limits what its sender may send.

    A declaration `name: type = default` in a derived class is a parameter that scenarios may set;
    the derived class becomes a dataclass. `Annotated[float, pydantic.Field(gt=0, le=1)]` bounds a
    parameter, and a string literal below the declaration documents it. Each flow has an instance of
    the class; its state consists of the instance's attributes.

    A controller that acts at intervals needs no `on_ack`: `self.monitor = path.monitor()` counts
    ACKs and losses, and `self.monitor.close(now_s)` in `on_timer` returns the counts since the last
    call.

    Times are in seconds, sizes in bytes and rates in bits per second. An exception or an invalid
    return value stops the run.

    A run is a function of its scenario, which contains the file of the class (of a class in a cell:
    the class, and the imports, constants, functions and classes that it uses), the modules next to
    it that it imports by their names (`import helper`), and the `files` that the class lists. These
    are part of the cache key. Each run executes them anew in a folder of their own, where
    `pathlib.Path(__file__).with_name("weights.npy")` is the listed file, and with the name of the
    file as the only program argument (`sys.argv`). What a program changes after the definition,
    such as an attribute of the class or a constant that its methods use, is not in their text, and
    an error: make it a parameter. Installed modules, the clock, and files elsewhere are not part of
    the scenario: a controller must not depend on what they change. Random numbers must come from a
    generator seeded with `path.seed`.
    """

    ecn: ClassVar[bool] = False
    """True if data packets are ECN-capable."""
    marks: ClassVar[str] = "echo"
    """Receiver's response to marks: `echo`, `echo_until_reduced` (RFC 3168) or `notify`."""
    notification_interval: ClassVar[str] = "50 us"
    """Least time between congestion notification packets, with `notify`."""
    burst: ClassVar[int | None] = None
    """Packets per burst of a paced sender; `None` for a sender limited by its window only."""
    ack_every: ClassVar[int] = 1
    """Number of packets per ACK."""
    tells_delay: ClassVar[bool] = False
    """True if ACKs contain the one-way delay of the acknowledged packet."""
    telemetry: ClassVar[bool] = False
    """True if packets collect telemetry at switches, and `Ack.hops` contains it."""
    credit_scheduler: ClassVar[type[CreditScheduler] | None] = None
    """Class of the credit schedulers of receiving hosts; `None` for a transport without credits.

    With credits, the receiver detects losses, and acknowledges a flow when it has all data: the
    sender receives no other ACKs, and limits itself by `granted_segments` only. (Packets of
    long-lived flows are acknowledged one by one.) After a timeout the sender requests credit.
    Schedulers are not notified of trimmed packets, which count as lost.
    """
    announces: ClassVar[bool] = True
    """True if a sender by credit requests credit before its first data."""
    priorities: ClassVar[int] = 1
    """Number of priority classes of data packets, up to 8; `header` returns the class of each."""
    queue: ClassVar[str | Mapping[str, Any]] = "drop_tail"
    """Default queue of switches, as in scenarios."""
    host_queue: ClassVar[str | Mapping[str, Any]] = "drop_tail"
    """Default queue of hosts' ports."""
    reliability: ClassVar[Mapping[str, Any]] = {}
    """Default reliability, as in scenarios: loss recovery, timeouts, handshake."""
    files: ClassVar[Sequence[str]] = ()
    """Files in the folder of the class that it reads, such as weights, as a literal."""

    # A scenario with an unknown parameter is an error.
    __pydantic_config__: ClassVar[Any] = {"extra": "forbid"}

    def __init_subclass__(cls, **options: Any) -> None:
        """Turn every derived class into a dataclass."""
        super().__init_subclass__(**options)
        documentation = cls.__doc__
        dataclasses.dataclass(kw_only=True, eq=False)(cls)
        # A dataclass without a doc comment gets its signature as one.
        cls.__doc__ = documentation

    def on_start(self, path: Path) -> None:
        """Start: called once, before all other methods, with the properties of the flow's path."""

    def on_open(self, opened: Opened) -> None:
        """Handle the end of the handshake; not called for flows without a handshake."""

    def on_ack(self, ack: Ack) -> None:
        """Handle an ACK. The object is valid until the next ACK."""

    def on_loss(self, loss: Loss) -> None:
        """Handle a loss: once per window for losses that ACKs reveal, and for every timeout.

        Not called with a `credit_scheduler`: the receiver detects losses, and after a timeout the
        sender requests credit.
        """

    def remember(self, now_s: float) -> None:
        """Save the state before a loss, to restore it in `on_undo` if the loss was spurious.

        Called before `on_loss`, only with `undo` in `reliability`, and not for further losses that
        `on_undo` would revert together with the first.
        """

    def on_undo(self, now_s: float) -> None:
        """Handle a spurious loss: restore the state that `remember` saved."""

    def on_notification(self, now_s: float) -> None:
        """Handle a congestion notification packet, with `marks` = `notify`."""

    def on_credit(self, now_s: float, credit: Credit) -> None:
        """Handle a credit of the receiving host, with a `credit_scheduler`."""

    def on_sent(self, now_s: float, packet_bytes: int) -> None:
        """Handle the departure of a data packet of `packet_bytes` bytes, headers included."""

    def on_timer(self, now_s: float) -> None:
        """Handle the timer that `next_timer` has set."""

    def on_end(self, now_s: float) -> None:
        """Handle the end of the flow: all data has been acknowledged."""

    def next_timer(self) -> float | None:
        """Return the time of the next `on_timer` in seconds, or `None`; called after every event.

        Simultaneous events come before timers, so the returned time may be the current time.
        """
        return None

    def allowance(self) -> float | Allowance:
        """Return a window in bytes, or an `Allowance`; called after every event.

        One packet may always be in flight. A rate includes headers, is bounded by the host's line
        rate, and requires `burst`.
        """
        raise NotImplementedError

    def header(self, packet: OutgoingPacket) -> int | Header:
        """Return the priority of a data packet to send, 0 for the highest, or a `Header`.

        Called before `on_sent`, with `priorities` above 1 or a `credit_scheduler`.
        """
        return 0

    def gauges(self) -> Mapping[str, float]:
        """Return named values to sample over time; the names must not change."""
        return {}
