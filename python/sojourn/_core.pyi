"""The compiled core: a run is a pure function of scenario, seed and version."""

from collections.abc import Sequence
from typing import Any, Final, Literal, final

__all__ = [
    "HAS_QUIC",
    "MOST_THREADS",
    "SOURCE_HASH",
    "VERSION",
    "Ack",
    "Allowance",
    "Interval",
    "Loss",
    "Monitor",
    "Opened",
    "Path",
    "Prepared",
    "ScenarioError",
    "Watch",
    "check",
    "estimate",
    "flow_columns",
    "fluid",
    "parts",
    "prepare",
    "run",
    "schema",
    "show",
    "trace",
]

VERSION: Final[str]
"""Version of the simulator."""

SOURCE_HASH: Final[str]
"""Hash of the simulator's source, a part of every cache key."""

HAS_QUIC: Final[bool]
"""True if the library of the transport `quic` is compiled in."""

MOST_THREADS: Final[int]
"""The most threads of a run."""

class ScenarioError(ValueError):
    """A scenario that cannot be run: `field: what is wrong and what is allowed`."""

@final
class Watch:
    """Handle to stop a running simulation and to read its progress, from any thread."""

    def __new__(cls) -> Watch: ...
    def stop(self, reason: str = "") -> None:
        """Request the run to stop, for this reason. The first reason holds."""

    def is_stopped(self) -> bool:
        """Return true if a stop has been requested."""

    def progress(self) -> tuple[float, int, int]:
        """Return simulated seconds, ended flows and packet-hops, as the run reported them last."""

@final
class Prepared:
    """A parsed scenario. Its graph and estimate are computed on first use and kept."""

    def show(self) -> str:
        """Return the scenario with every default filled in, as JSON. Builds nothing.

        The text identifies the scenario, for caches.
        """

    def check(self, memory: int | None = None) -> None:
        """Check everything that can be checked without a run.

        A scenario that needs more than `memory` bytes is a `ScenarioError`.
        """

    def estimate(self, threads: int = 1) -> str:
        """Return an estimate of what a run on this number of threads needs, as JSON."""

    def run(self, watch: Watch, threads: int = 1) -> dict[str, Any]:
        """Run the scenario; other Python threads go on meanwhile. Several runs are independent.

        The run may use up to `threads` threads, from 1 to `MOST_THREADS`; any other number is a
        `ValueError`. The results do not depend on it. A network that is not worth serving in
        windows runs on one thread: the summary's `engine` contains the number of threads used.
        """

    def trace(self, memory: int | None = None) -> dict[str, Any]:
        """Return the flows of the workload, without a run.

        A workload that needs more than `memory` bytes is a `ScenarioError`.
        """

@final
class Path:
    """What a flow may know of its way when it starts."""

    @property
    def flow(self) -> int:
        """The flow's number in the workload."""

    @property
    def line_rate_bps(self) -> float:
        """Line rate of its host's link, in bits a second."""

    @property
    def base_rtt_s(self) -> float:
        """A full packet there and its ACK back, over an empty network, in seconds."""

    @property
    def hops(self) -> int:
        """Links on the way there."""

    @property
    def payload_bytes(self) -> int:
        """Payload of a full packet, in bytes."""

    @property
    def packet_bytes(self) -> int:
        """What a full packet is on the wire, in bytes."""

    @property
    def others(self) -> int:
        """Other flows in progress at the sending host."""

    @property
    def initial_rate_bps(self) -> float | None:
        """A starting rate that the workload asks for, in bits a second."""

    @property
    def size_bytes(self) -> int | None:
        """Payload to transfer, in bytes; `None` for a flow without end."""

    @property
    def start_s(self) -> float:
        """When the flow starts, in seconds."""

    @property
    def deadline_s(self) -> float | None:
        """When it should be over, in seconds, if it has a deadline."""

    @property
    def seed(self) -> int:
        """A seed of its own, for controllers that draw random numbers."""

    def monitor(self) -> Monitor:
        """Return what counts all that the flow's sender sees, from now on.

        For controllers that act once in an interval, and then need no `on_ack`.
        """

@final
class Opened:
    """The end of a handshake."""

    @property
    def now_s(self) -> float:
        """When it came, in seconds."""

    @property
    def rtt_s(self) -> float:
        """How long the last attempt took, in seconds."""

    @property
    def syn_was_lost(self) -> bool:
        """Whether it took more than one attempt."""

@final
class Ack:
    """An acknowledgement. It is one object for all ACKs, and holds until the next one."""

    @property
    def now_s(self) -> float:
        """When it came, in seconds."""

    @property
    def now_ps(self) -> int:
        """The same in picoseconds, exactly."""

    @property
    def acked_bytes(self) -> int:
        """Payload that is now known to be received and was not before, in bytes."""

    @property
    def advanced(self) -> int:
        """By how many segments the cumulative acknowledgement moved."""

    @property
    def delivered(self) -> int:
        """Segments that are now known to be received and were not before, in order or not."""

    @property
    def rtt_s(self) -> float:
        """The round-trip time that the host measured, in seconds."""

    @property
    def rtt_ps(self) -> int:
        """The same in picoseconds, exactly."""

    @property
    def marked(self) -> bool:
        """Whether it tells of a mark."""

    @property
    def one_way_delay_s(self) -> float:
        """How long the packet took to the receiver, by the hosts' clocks, if `tells_delay`."""

    @property
    def sent_at_s(self) -> float:
        """When the packet was sent that it answers, in seconds."""

    @property
    def cumulative(self) -> int:
        """All segments before this one have been received."""

    @property
    def next(self) -> int:
        """The next segment never sent before."""

    @property
    def is_recovering(self) -> bool:
        """Whether a gap is being repaired."""

    @property
    def lost(self) -> int:
        """Segments that it shows to be lost."""

    @property
    def in_flight_bytes(self) -> int:
        """Payload that is still in flight, as far as the sender knows, in bytes."""

@final
class Loss:
    """A loss, or a mark that means the same."""

    @property
    def now_s(self) -> float:
        """When it was noticed, in seconds."""

    @property
    def now_ps(self) -> int:
        """The same in picoseconds, exactly."""

    @property
    def flight_bytes(self) -> int:
        """Payload sent and not yet acknowledged, lost or not, in bytes."""

    @property
    def lost_bytes(self) -> int:
        """Payload that a time-out newly takes for lost; 0 for other signs: ACKs tell of it."""

    @property
    def sign(self) -> Literal["gap", "timeout", "mark"]:
        """How it was noticed: later data was acknowledged, nothing was for too long, or a mark."""

@final
class Allowance:
    """How much may be sent: what is in flight stays within the window, and leaves at the rate.

    The window is payload in bytes, the rate on the wire in bits a second. A flow that `gives_up`
    sends nothing more.
    """

    def __new__(
        cls,
        window_bytes: float = ...,
        rate_bps: float | None = None,
        *,
        gives_up: bool = False,
    ) -> Allowance: ...
    @property
    def window_bytes(self) -> float:
        """Payload that may be in flight; one packet always may."""

    @property
    def rate_bps(self) -> float | None:
        """Rate on the wire; `None` for as fast as ACKs come."""

    @property
    def gives_up(self) -> bool:
        """Whether nothing more is sent."""

@final
class Monitor:
    """Counts what a flow's sender sees, from one interval to the next.

    A controller that acts once in an interval asks for one as it starts, `path.monitor()`, and
    closes an interval whenever it wants to know: then it needs no `on_ack`, and costs little.
    """

    def close(self, now_s: float, allowed_packets: float = 0.0) -> Interval:
        """End the interval now, begin the next, and return what happened in it.

        What was allowed meanwhile only the controller knows; it is told on as it is given.
        """

@final
class Interval:
    """What a flow's sender saw from one moment to another: a monitor interval."""

    def __new__(
        cls,
        flow: int,
        start_s: float,
        begin_s: float,
        end_s: float,
        acks: int,
        acked_bytes: int,
        marks: int,
        losses: int,
        timeouts: int,
        rtt_s: float,
        rtt_gradient: float,
        in_flight_bytes: int,
        allowed_packets: float,
        left_bytes: int | None,
        base_rtt_s: float,
        line_rate_bps: float,
        packet_bytes: int,
        payload_bytes: int,
    ) -> Interval: ...
    def __getnewargs__(self) -> tuple[Any, ...]: ...
    def __eq__(self, other: object, /) -> bool: ...
    @property
    def flow(self) -> int:
        """The flow's number in the workload."""

    @property
    def start_s(self) -> float:
        """When the flow started, in seconds."""

    @property
    def begin_s(self) -> float:
        """When it began, in seconds."""

    @property
    def end_s(self) -> float:
        """When it ended, in seconds: when it was closed, or when the flow was over."""

    @property
    def acks(self) -> int:
        """ACKs that came."""

    @property
    def acked_bytes(self) -> int:
        """Payload that they told to be received and that was not known to be, in bytes."""

    @property
    def marks(self) -> int:
        """How many of them told of a mark."""

    @property
    def losses(self) -> int:
        """Packets that they showed to be lost."""

    @property
    def timeouts(self) -> int:
        """Retransmission time-outs."""

    @property
    def rtt_s(self) -> float:
        """Mean of the round-trip times that they measured; without any, the mean before."""

    @property
    def rtt_gradient(self) -> float:
        """Slope of these over time, by linear regression, in seconds a second; or 0."""

    @property
    def in_flight_bytes(self) -> int:
        """Payload in flight after the last ACK, in bytes."""

    @property
    def allowed_packets(self) -> float:
        """What was allowed: full packets in flight, or, of a rate, each base RTT."""

    @property
    def left_bytes(self) -> int | None:
        """Payload still to be acknowledged, in bytes; `None` for a flow without end."""

    @property
    def base_rtt_s(self) -> float:
        """Round-trip time of a full packet over an empty network, in seconds."""

    @property
    def line_rate_bps(self) -> float:
        """Line rate of the sending host's link, in bits a second."""

    @property
    def packet_bytes(self) -> int:
        """What a full packet is on the wire, in bytes."""

    @property
    def payload_bytes(self) -> int:
        """Payload of a full packet, in bytes."""

    @property
    def duration_s(self) -> float:
        """How long it was, in seconds; 0 if the flow was over as soon as it began."""

    @property
    def throughput_bps(self) -> float:
        """Payload acknowledged, in bits a second."""

    @property
    def utilisation(self) -> float:
        """The throughput as a share of what the line rate carries of payload."""

    @property
    def lost_share(self) -> float:
        """Packets lost as a share of those that were lost or acknowledged."""

    @property
    def queueing(self) -> float:
        """The round-trip time beyond the base RTT, in base RTTs."""

    @property
    def pipe_packets(self) -> float:
        """Packets that the line rate sends in a base RTT."""

def prepare(scenario: str, texts: Sequence[str] = ...) -> Prepared:
    """Parse a scenario given as JSON, in which the texts of files may be indices into `texts`."""

def run(
    scenario: str, watch: Watch, threads: int = 1, texts: Sequence[str] = ...
) -> dict[str, Any]:
    """Run a scenario given as JSON: `prepare(scenario, texts).run(watch, threads)`."""

def show(scenario: str, texts: Sequence[str] = ...) -> str:
    """Return a scenario with all defaults, as JSON: `prepare(scenario, texts).show()`."""

def check(scenario: str, texts: Sequence[str] = ..., memory: int | None = None) -> str:
    """Check a scenario as `Prepared.check` does, and return it as `show` does."""

def estimate(scenario: str, texts: Sequence[str] = ..., threads: int = 1) -> str:
    """Return what a run needs: `prepare(scenario, texts).estimate(threads)`."""

def trace(scenario: str, texts: Sequence[str] = ..., memory: int | None = None) -> dict[str, Any]:
    """Return the flows of a scenario's workload: `prepare(scenario, texts).trace(memory)`."""

def fluid(setup: str) -> dict[str, Any]:
    """Integrate a fluid model given as JSON; other Python threads go on meanwhile."""

def flow_columns() -> list[tuple[str, str, bool]]:
    """Return the columns of flow records in order: name, meaning, and true if NaN may occur."""

def parts() -> str:
    """Return the catalogue of components with their parameters, as JSON."""

def schema() -> str:
    """Return a JSON schema (draft 7) of scenario files, as text."""
