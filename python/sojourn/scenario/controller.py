"""What a congestion controller of one's own is: a class with the events and answers of the core's.

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

In a scenario its name is `"gentle.py:Gentle"`, from Python it is `Gentle(gain=0.1)`.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, dataclass_transform

from sojourn._core import Ack, Allowance, Loss, Opened, Path

EVENTS = (
    "on_open",
    "on_ack",
    "on_loss",
    "remember",
    "on_undo",
    "on_notification",
    "on_sent",
    "on_timer",
    "on_end",
    "next_timer",
    "gauges",
)
"""What a class hears of, and is asked, only if it says something to it."""


@dataclass_transform(kw_only_default=True)
@dataclasses.dataclass(kw_only=True, eq=False)
class Controller:
    """A congestion controller: told of events, it answers how much may be sent.

    What a class derived from it declares as `name: type = default` is a parameter, which scenarios
    may give; the class is made a dataclass of these. `Annotated[float, pydantic.Field(gt=0, le=1)]`
    bounds one, and a text below it says what it means. Each flow has an instance of its own, and
    what it is to remember it keeps in attributes.

    One that acts once in an interval needs no `on_ack`: `self.monitor = path.monitor()` counts for
    it, and `self.monitor.close(now_s)` in `on_timer` is what happened since the last time.

    Times are in seconds, sizes in bytes and rates in bits a second. An exception, or an answer that
    makes no sense, stops the run. So that a run is the same every time, random numbers have to come
    from a generator made of `path.seed`.
    """

    ecn: ClassVar[bool] = False
    """Whether routers may mark its data."""
    marks: ClassVar[str] = "echo"
    """What the receiver makes of marks: `echo`, `echo_until_reduced` (RFC 3168) or `notify`."""
    notification_interval: ClassVar[str] = "50 us"
    """Least time between notifications, with `notify`."""
    burst: ClassVar[int | None] = None
    """How many packets leave at once, if it sends at a rate; `None` if a window alone rules."""
    ack_every: ClassVar[int] = 1
    """The receiver acknowledges every so many packets."""
    tells_delay: ClassVar[bool] = False
    """Whether ACKs tell the one-way delay of the packet that they answer."""
    queue: ClassVar[str | Mapping[str, Any]] = "drop_tail"
    """The queue at switches that it was designed for, as scenarios name it."""
    host_queue: ClassVar[str | Mapping[str, Any]] = "drop_tail"
    """The same at hosts' own ports."""
    reliability: ClassVar[Mapping[str, Any]] = {}
    """How data is made reliable, as scenarios say it: recovery, time-outs, handshake."""

    # What a scenario gives that is no parameter is an error.
    __pydantic_config__: ClassVar[Any] = {"extra": "forbid"}

    def __init_subclass__(cls, **options: Any) -> None:
        """Make a dataclass of every class derived from this."""
        super().__init_subclass__(**options)
        dataclasses.dataclass(kw_only=True, eq=False)(cls)

    def on_start(self, path: Path) -> None:
        """Begin: called once, before anything else, with what the flow may know of its way."""

    def on_open(self, opened: Opened) -> None:
        """Hear that the handshake is complete; without one there is no such call."""

    def on_ack(self, ack: Ack) -> None:
        """Hear that data has been acknowledged. The object holds until the next ACK."""

    def on_loss(self, loss: Loss) -> None:
        """Hear of a loss: once a window for those that ACKs reveal, and for every time-out."""

    def remember(self, now_s: float) -> None:
        """Note what the next loss may cost, for it may have to be given back.

        Only with `undo` in `reliability`; called before `on_loss`, and not for further losses that
        would be given back with the first.
        """

    def on_undo(self, now_s: float) -> None:
        """Hear that nothing was lost: what it has cost since `remember` is to be given back."""

    def on_notification(self, now_s: float) -> None:
        """Hear of a congestion notification, where `marks` is `notify`."""

    def on_sent(self, now_s: float, packet_bytes: int) -> None:
        """Hear that a data packet has been sent, of so many bytes on the wire."""

    def on_timer(self, now_s: float) -> None:
        """Hear that the time has come which `next_timer` gave."""

    def on_end(self, now_s: float) -> None:
        """Hear that all of the flow has been acknowledged."""

    def next_timer(self) -> float | None:
        """Return when to call `on_timer`, in seconds; asked after every event.

        Other events come before timers, so after one that comes at that moment it may still be it.
        """
        return None

    def allowance(self) -> float | Allowance:
        """Return how much may be sent: a window in bytes, or an `Allowance`; asked as often.

        One packet may always be in flight. A rate is on the wire, headers included, at most the
        host's line rate, and needs a class with a `burst`.
        """
        raise NotImplementedError

    def gauges(self) -> Mapping[str, float]:
        """Return named numbers for samples over time, always of the same names."""
        return {}
