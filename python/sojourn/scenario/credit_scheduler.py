"""Base class of credit schedulers in Python, with which a receiving host governs its senders.

    class Tokens(sojourn.CreditScheduler):
        def on_start(self, host: sojourn.CreditHost) -> None:
            self.packet_time_ps = host.packet_time_ps
            self.next_ps = 0
            self.issued: dict[int, int] = {}

        def on_flow(self, now_ps: int, flow: sojourn.InboundFlow) -> None:
            self.issued[flow.flow] = 0

        def on_end(self, now_ps: int, flow: int) -> None:
            del self.issued[flow]

        def next_credit(self, now_ps: int) -> sojourn.Credit | None:
            if not self.issued or now_ps < self.next_ps:
                return None
            self.next_ps = now_ps + self.packet_time_ps
            flow = min(self.issued, key=self.issued.__getitem__)
            self.issued[flow] += 1
            return sojourn.Credit(flow, number=self.issued[flow], resend=True)

        def next_time_ps(self) -> int | None:
            return self.next_ps if self.issued else None

A controller names the class as its `credit_scheduler`.
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
