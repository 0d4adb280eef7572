"""Base class of credit schedulers in Python, with which a receiving host governs its senders.

    class Tokens(sojourn.CreditScheduler):
        def on_start(self, host: sojourn.CreditHost) -> None:
            self.packet_time_ps = host.packet_time_ps
            self.next_ps = 0
            self.missing: dict[int, float] = {}  # Segments that the host lacks, by flow.
            self.due: dict[int, float] = {}  # Credits that are due for them.

        def on_flow(self, now_ps: int, flow: sojourn.InboundFlow) -> None:
            self.missing[flow.flow] = self.due[flow.flow] = flow.segments or math.inf

        def on_arrival(self, now_ps: int, flow: int, arrival: sojourn.Arrival) -> None:
            if arrival.is_new:
                self.missing[flow] -= 1
            if arrival.kind == "request":  # After a timeout, all that is missing was lost.
                self.due[flow] = self.missing[flow]

        def on_end(self, now_ps: int, flow: int) -> None:
            del self.missing[flow], self.due[flow]

        def next_credit(self, now_ps: int) -> sojourn.Credit | None:
            waiting = [flow for flow, credits in self.due.items() if credits > 0]
            if not waiting or now_ps < self.next_ps:
                return None
            self.next_ps = now_ps + self.packet_time_ps
            flow = min(waiting, key=self.missing.__getitem__)
            self.due[flow] -= 1
            return sojourn.Credit(flow, resend=True)

        def next_time_ps(self) -> int | None:
            return self.next_ps if any(self.due.values()) else None


    class PacketPerToken(sojourn.Controller):
        credit_scheduler = Tokens

        def on_start(self, path: sojourn.Path) -> None:
            self.credits = 0

        def on_credit(self, now_s: float, credit: sojourn.Credit) -> None:
            self.credits += 1

        def on_sent(self, now_s: float, packet_bytes: int) -> None:
            self.credits -= 1

        def allowance(self) -> sojourn.Allowance:
            return sojourn.Allowance(granted_segments=math.inf if self.credits > 0 else 0)

A scheduler issues as many credits as segments are missing: with `resend`, a credit beyond them
names a segment that is in flight, which is then sent twice.
"""

from typing import Any

from sojourn._core import Arrival, Credit, CreditHost, InboundFlow

HANDLERS = ("on_flow", "on_arrival", "on_end", "next_time_ps")
"""Methods that the core calls only if the class defines them."""


class CreditScheduler:
    """Credit scheduler of a receiving host: issues credits, by which senders send data to it.

    Each receiving host has an instance, from the arrival of its first request or data. Credits are
    control packets, which take their time and may be lost. `parameters` is an instance of the
    controller's class with the parameters of the scenario. Times are whole picoseconds: sums of
    packet times are exact. An exception or an invalid return value stops the run.
    """

    def __init__(self, parameters: Any) -> None:
        """Create the scheduler of a host, before `on_start`."""
        self.parameters = parameters

    def on_start(self, host: CreditHost) -> None:
        """Start: called once, before all other methods, with the properties of the host."""

    def on_flow(self, now_ps: int, flow: InboundFlow) -> None:
        """Handle a flow that is new to the host, before the arrival of its first packet."""

    def on_arrival(self, now_ps: int, flow: int, arrival: Arrival) -> None:
        """Handle a request for credit, or data, of a flow that is not complete."""

    def on_end(self, now_ps: int, flow: int) -> None:
        """Handle the end of a flow: all its data has arrived, or its sender has given up."""

    def next_credit(self, now_ps: int) -> Credit | None:
        """Return the next credit to send now, or `None`.

        Called after each arrival and timer, and again after each credit.
        """
        raise NotImplementedError

    def next_time_ps(self) -> int | None:
        """Return when to call `next_credit` again, later than now, or `None`.

        Called when `next_credit` has returned `None`.
        """
        return None
