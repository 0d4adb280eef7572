"""Compiled core. A run is a pure function of scenario, seed and version."""

from collections.abc import Sequence
from typing import Any, Final, Literal, final

import numpy as np
import numpy.typing as npt

__all__ = [
    "HAS_QUIC",
    "MOST_THREADS",
    "SOURCE_HASH",
    "VERSION",
    "Ack",
    "Allowance",
    "Arrival",
    "Credit",
    "CreditHost",
    "Header",
    "HopTelemetry",
    "InboundFlow",
    "Interval",
    "Loss",
    "Monitor",
    "Opened",
    "OutgoingPacket",
    "Path",
    "Prepared",
    "RunControl",
    "ScenarioError",
    "flow_columns",
    "fluid",
    "parts",
    "prepare",
    "schema",
]

VERSION: Final[str]
"""Version of the simulator."""

SOURCE_HASH: Final[str]
"""Hash of the simulator's source, a part of every cache key."""

HAS_QUIC: Final[bool]
"""True if the library of the transport `quic` is compiled in."""

MOST_THREADS: Final[int]
"""Largest number of threads of a run."""

class ScenarioError(ValueError):
    """Error in a scenario; the message is `field: problem and allowed values`."""

@final
class RunControl:
    """Handle to stop a running simulation and to read its progress, from any thread."""

    def __new__(cls) -> RunControl: ...
    def stop(self, reason: str = "") -> None:
        """Request the run to stop, for this reason. The first reason holds."""

    def is_stopped(self) -> bool:
        """Return true if a stop has been requested."""

    def progress(self) -> tuple[float, int, int, int, int, int]:
        """Return the progress that the run reported last.

        Simulated seconds; started and ended flows; payload of the started flows with a size, and
        how much of it has been delivered, in bytes (0 for ideals); packet-hops.
        """

    @property
    def helper_cpu_s(self) -> float:
        """CPU time of the thread that finds a fluid's paths ahead, in seconds."""

@final
class Prepared:
    """Parsed scenario. Its graph and estimate are computed on first use and kept."""

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

    def queues(self) -> str:
        """Return the queues in force as JSON, in the form of `queues` of a run's summary."""

    def carried(
        self, times: Sequence[float] | npt.NDArray[np.float64]
    ) -> dict[str, npt.NDArray[np.float64]]:
        """Return the bits that links with rate traces can carry until each time, by name.

        Times are in seconds. Parallel links share a name and a trace.
        """

    def run(self, control: RunControl, threads: int = 1) -> dict[str, Any]:
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
    """Properties of a flow and of its path, known at the flow's start."""

    @property
    def flow(self) -> int:
        """Number of the flow in the workload."""

    @property
    def line_rate_bps(self) -> float:
        """Line rate of the source host's link, in bits per second."""

    @property
    def base_rtt_s(self) -> float:
        """RTT of a full packet and its ACK without queueing, in seconds."""

    @property
    def hops(self) -> int:
        """Number of links of the forward path."""

    @property
    def payload_bytes(self) -> int:
        """Payload of a full packet, in bytes."""

    @property
    def packet_bytes(self) -> int:
        """Size of a full packet with headers, in bytes."""

    @property
    def others(self) -> int:
        """Number of other flows in progress at the source host."""

    @property
    def initial_rate_bps(self) -> float | None:
        """Initial rate that the workload requests, in bits per second."""

    @property
    def size_bytes(self) -> int | None:
        """Flow size in bytes of payload; `None` for a long-lived flow."""

    @property
    def start_s(self) -> float:
        """Start of the flow, in seconds."""

    @property
    def deadline_s(self) -> float | None:
        """Deadline of the flow in seconds, if it has one."""

    @property
    def seed(self) -> int:
        """Seed for the random numbers of the flow's controller."""

    def monitor(self) -> Monitor:
        """Return a monitor that counts the sender's ACKs and losses from now on.

        A controller that acts at intervals uses a monitor instead of `on_ack`.
        """

@final
class Opened:
    """End of a handshake."""

    @property
    def now_s(self) -> float:
        """Time of arrival, in seconds."""

    @property
    def rtt_s(self) -> float:
        """RTT of the last attempt of the handshake, in seconds."""

    @property
    def syn_was_lost(self) -> bool:
        """True if the handshake needed more than one attempt."""

@final
class HopTelemetry:
    """State of a switch's port when the transmission of a packet starts."""

    @property
    def time_s(self) -> float:
        """Start of the transmission, in seconds."""

    @property
    def time_ps(self) -> int:
        """The same value in picoseconds, exactly."""

    @property
    def transmitted_bytes(self) -> int:
        """Bytes that the port transmitted before."""

    @property
    def queued_bytes(self) -> int:
        """Bytes that wait at the port."""

    @property
    def rate_bps(self) -> float:
        """Nominal rate of the port's link, in bits per second."""

@final
class Ack:
    """Acknowledgement. One object serves all ACKs; it is valid until the next ACK."""

    @property
    def now_s(self) -> float:
        """Time of arrival, in seconds."""

    @property
    def now_ps(self) -> int:
        """The same value in picoseconds, exactly."""

    @property
    def acked_bytes(self) -> int:
        """Newly acknowledged payload, in bytes."""

    @property
    def advanced(self) -> int:
        """Segments by which the cumulative acknowledgement advanced."""

    @property
    def delivered(self) -> int:
        """Newly acknowledged segments, cumulatively or selectively."""

    @property
    def rtt_s(self) -> float:
        """RTT as measured by the host, in seconds."""

    @property
    def rtt_ps(self) -> int:
        """The same value in picoseconds, exactly."""

    @property
    def marked(self) -> bool:
        """True if the ACK echoes an ECN mark."""

    @property
    def one_way_delay_s(self) -> float:
        """One-way delay of the packet by the hosts' clocks, in seconds, if `tells_delay`."""

    @property
    def hops(self) -> list[HopTelemetry]:
        """Telemetry of the switches on the path, in order, if the class sets `telemetry`."""

    @property
    def sent_at_s(self) -> float:
        """Departure time of the acknowledged packet, in seconds."""

    @property
    def cumulative(self) -> int:
        """Cumulative acknowledgement: the first segment that is not yet received."""

    @property
    def next(self) -> int:
        """Next segment to be sent for the first time."""

    @property
    def is_recovering(self) -> bool:
        """True during loss recovery."""

    @property
    def lost(self) -> int:
        """Segments newly detected as lost."""

    @property
    def in_flight_bytes(self) -> int:
        """Payload in flight by the sender's estimate, in bytes."""

    @property
    def is_window_limited(self) -> bool:
        """True if the window limits the flow, so that it may grow.

        Always true unless `window_validation` is on.
        """

@final
class Loss:
    """Loss, or an ECN mark that is handled like a loss."""

    @property
    def now_s(self) -> float:
        """Time of the detection, in seconds."""

    @property
    def now_ps(self) -> int:
        """The same value in picoseconds, exactly."""

    @property
    def flight_bytes(self) -> int:
        """Payload sent and not yet acknowledged, including lost payload, in bytes."""

    @property
    def lost_bytes(self) -> int:
        """Payload that a timeout declares lost, in bytes; 0 for other signs (see `Ack.lost`)."""

    @property
    def cumulative(self) -> int:
        """First segment that is not acknowledged."""

    @property
    def sign(self) -> Literal["gap", "timeout", "mark"]:
        """Congestion signal: ACKs of later data, a timeout, or an ECN mark."""

@final
class Allowance:
    """Limits of a sender: a window for the data in flight, and a pacing rate.

    The window is in bytes of payload, the rate in bits per second, headers included. A flow that
    `gives_up` stops sending.
    """

    def __new__(
        cls,
        window_bytes: float = ...,
        rate_bps: float | None = None,
        *,
        granted_segments: float | None = None,
        gives_up: bool = False,
    ) -> Allowance: ...
    @property
    def window_bytes(self) -> float:
        """Payload that may be in flight, in bytes; one packet is always allowed.

        Infinite with a `credit_scheduler`, as a `rate_bps` is `None`: the sender has no ACKs.
        """

    @property
    def rate_bps(self) -> float | None:
        """Pacing rate in bits per second, headers included; `None` for ACK clocking."""

    @property
    def granted_segments(self) -> float | None:
        """End of the segments that credits permit, as a count from the start of the flow.

        `math.inf` and `None` permit any segment, 0 none. Numbers need a `credit_scheduler`.
        """

    @property
    def gives_up(self) -> bool:
        """True if the flow stops sending."""

@final
class OutgoingPacket:
    """Data packet that is about to be sent."""

    @property
    def now_s(self) -> float:
        """Time, in seconds."""

    @property
    def remaining_bytes(self) -> int | None:
        """Payload of the flow that is not known to be delivered, in bytes; `None` if long-lived."""

    @property
    def offset_bytes(self) -> int:
        """Offset of the packet's payload in the flow, in bytes."""

    @property
    def is_retransmit(self) -> bool:
        """True if the segment was sent before."""

    @property
    def unsent_bytes(self) -> int | None:
        """Payload to send after this packet, in bytes; `None` for a long-lived flow."""

@final
class Header:
    """Header of a data packet: its priority, and a number for the receiving host.

    `priority` is below the class's `priorities`, and 0 is the highest. The credit scheduler of the
    receiving host gets `number`, such as that of the credit by which the packet is sent.
    """

    def __new__(cls, priority: int = 0, *, number: int = 0) -> Header: ...
    @property
    def priority(self) -> int:
        """Priority class."""

    @property
    def number(self) -> int:
        """Number for the receiving host, below 2^32."""

@final
class Credit:
    """Credit of a receiving host, which permits a sender to send.

    What a credit permits is the controller's choice, by its `allowance`.
    """

    def __new__(
        cls, flow: int, *, number: int = 0, priority: int = 0, resend: bool = False
    ) -> Credit: ...
    @property
    def flow(self) -> int:
        """Number of the flow."""

    @property
    def number(self) -> int:
        """Number with a meaning that the transport gives it, below 2^32."""

    @property
    def priority(self) -> int:
        """Priority class for the data, below the class's `priorities`."""

    @property
    def resend(self) -> bool:
        """True if the credit names a segment that the receiver lacks, to be sent again if lost.

        The first such credit of a flow names the first segment that the receiver lacks, the next
        one the next, and so on in rounds. A segment that was sent before counts as lost when a
        credit names it. Of a long-lived flow only segments are named that have been missing for two
        base RTTs while as many others arrived, or after a timeout of the sender.
        """

@final
class CreditHost:
    """Receiving host, as its credit scheduler knows it."""

    @property
    def line_rate_bps(self) -> float:
        """Rate at which data arrives at the host, in bits per second."""

    @property
    def payload_bytes(self) -> int:
        """Payload of a full packet, in bytes."""

    @property
    def packet_bytes(self) -> int:
        """Size of a full packet with headers, in bytes."""

    @property
    def packet_time_ps(self) -> int:
        """Time of a full packet at the host's rate, in picoseconds."""

    @property
    def base_rtt_ps(self) -> int:
        """RTT of a full packet and its ACK on the longest path without queueing, in ps."""

    @property
    def seed(self) -> int:
        """Seed for random numbers of the scheduler."""

@final
class InboundFlow:
    """Flow that ends at a host."""

    @property
    def flow(self) -> int:
        """Number of the flow in the workload."""

    @property
    def source(self) -> int:
        """Number of the sending host."""

    @property
    def line_rate_bps(self) -> float:
        """Line rate of the sending host's NIC, in bits per second."""

    @property
    def packet_time_ps(self) -> int:
        """Time of a full packet at the rate of the sending host, in picoseconds."""

    @property
    def segments(self) -> int | None:
        """Number of segments; `None` for a long-lived flow."""

    @property
    def size_bytes(self) -> int | None:
        """Flow size in bytes of payload; `None` for a long-lived flow."""

@final
class Arrival:
    """Packet of a flow that has arrived at its receiving host."""

    @property
    def kind(self) -> Literal["request", "data"]:
        """Kind: a request for credit, or data."""

    @property
    def number(self) -> int:
        """Number of the `Header`; 0 of a request."""

    @property
    def is_new(self) -> bool:
        """True for data that arrives for the first time."""

@final
class Monitor:
    """Counter of a sender's ACKs and losses over intervals.

    A controller that acts at intervals creates a monitor in `on_start` by `path.monitor()` and
    reads it by `close`. Without `on_ack` such a controller costs little.
    """

    def close(self, now_s: float, allowed_packets: float = ...) -> Interval:
        """End the current interval at `now_s`, start the next, and return the ended one.

        `allowed_packets` is the controller's allowance; it is copied to the interval. Raises
        `ValueError` if `now_s` is before the begin of the interval.
        """

@final
class Interval:
    """Monitor interval: the ACKs and losses of a flow's sender between two times."""

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
        """Number of the flow in the workload."""

    @property
    def start_s(self) -> float:
        """Start of the flow, in seconds."""

    @property
    def begin_s(self) -> float:
        """Start of the interval, in seconds."""

    @property
    def end_s(self) -> float:
        """End of the interval in seconds: its closing, or the end of the flow."""

    @property
    def acks(self) -> int:
        """Number of ACKs."""

    @property
    def acked_bytes(self) -> int:
        """Newly acknowledged payload, in bytes."""

    @property
    def marks(self) -> int:
        """Number of ACKs that echo an ECN mark."""

    @property
    def losses(self) -> int:
        """Number of packets that ACKs revealed as lost."""

    @property
    def timeouts(self) -> int:
        """Number of retransmission timeouts."""

    @property
    def rtt_s(self) -> float:
        """Mean RTT in seconds; without samples, the mean of the previous interval."""

    @property
    def rtt_gradient(self) -> float:
        """Slope of the RTT over time by linear regression, in seconds per second; or 0."""

    @property
    def in_flight_bytes(self) -> int:
        """Payload in flight after the last ACK, in bytes."""

    @property
    def allowed_packets(self) -> float:
        """Allowance in full packets: in flight or, for a rate, per base RTT."""

    @property
    def left_bytes(self) -> int | None:
        """Payload still to be acknowledged, in bytes; `None` for a long-lived flow."""

    @property
    def base_rtt_s(self) -> float:
        """RTT of a full packet without queueing, in seconds."""

    @property
    def line_rate_bps(self) -> float:
        """Line rate of the source host's link, in bits per second."""

    @property
    def packet_bytes(self) -> int:
        """Size of a full packet with headers, in bytes."""

    @property
    def payload_bytes(self) -> int:
        """Payload of a full packet, in bytes."""

    @property
    def duration_s(self) -> float:
        """Length of the interval in seconds; 0 if the flow ended at its start."""

    @property
    def throughput_bps(self) -> float:
        """Acknowledged payload per time, in bits per second."""

    @property
    def utilisation(self) -> float:
        """Throughput divided by the payload rate of the link."""

    @property
    def lost_share(self) -> float:
        """Lost packets divided by lost and acknowledged packets."""

    @property
    def queueing(self) -> float:
        """RTT minus base RTT, in base RTTs."""

    @property
    def pipe_packets(self) -> float:
        """Bandwidth-delay product in packets: line rate times base RTT."""

def prepare(scenario: str, texts: Sequence[str] = ...) -> Prepared:
    """Parse a scenario given as JSON, in which the texts of files may be indices into `texts`."""

def fluid(setup: str) -> dict[str, Any]:
    """Integrate a fluid model given as JSON; other Python threads go on meanwhile."""

def flow_columns() -> list[tuple[str, str, bool]]:
    """Return the columns of flow records in order: name, meaning, and true if NaN may occur."""

def parts() -> str:
    """Return the catalogue of components with their parameters, as JSON."""

def schema() -> str:
    """Return a JSON schema (draft 7) of scenario files, as text."""
