"""pHost, equal to `transport = "phost"` in the environment `paper`: credits and priorities."""

import math
from collections import deque
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

import sojourn

Times = Annotated[float, Field(gt=0)]


@dataclass
class Inbound:
    """Incomplete flow at its receiving host."""

    segments: float
    packet_time_ps: int
    issued: int
    goal: float
    resend_ps: int
    window_ps: int
    next_ps: int
    received: int = 0
    spent: int = 0
    timeouts: int = 0

    @property
    def remaining(self) -> float:
        """Number of segments that have not arrived."""
        return self.segments - self.received

    def eligible_ps(self, window: int) -> int:
        """Return the time from which the flow may get a token."""
        resend_ps = 0 if self.issued < self.goal else self.resend_ps
        window_ps = 0 if self.issued - self.spent < window else self.window_ps
        # Clocks of hosts differ: a sender that is a little slower would miss every other token.
        return max(resend_ps, window_ps, self.next_ps - self.packet_time_ps // 2)


class Tokens(sojourn.CreditScheduler):
    """Token per packet time for the flow with the least remaining segments."""

    parameters: "PHost"

    def on_start(self, host: sojourn.CreditHost) -> None:
        self.packet_time_ps = host.packet_time_ps
        self.flows: dict[int, Inbound] = {}
        self.next_ps = 0
        self.withheld = 0
        self.timer_ps: int | None = None

    def on_flow(self, now_ps: int, flow: sojourn.InboundFlow) -> None:
        packet_time_ps = max(self.packet_time_ps, flow.packet_time_ps)
        segments = math.inf if flow.segments is None else flow.segments
        free = int(segments) if segments <= self.parameters.free_tokens else 0
        self.withheld = free
        self.flows[flow.flow] = Inbound(
            segments=segments,
            packet_time_ps=packet_time_ps,
            issued=free,
            goal=segments,
            resend_ps=now_ps + 2 * free * packet_time_ps,
            window_ps=now_ps + round(self.parameters.window_timeout * packet_time_ps),
            next_ps=now_ps,
        )

    def on_arrival(self, now_ps: int, flow: int, arrival: sojourn.Arrival) -> None:
        inbound = self.flows[flow]
        if arrival.kind == "data":
            inbound.spent = max(inbound.spent, arrival.number)
            if arrival.is_new:
                inbound.received += 1
                inbound.timeouts = 0
        elif inbound.received:
            # The sender had a timeout: its tokens are lost.
            inbound.resend_ps = inbound.window_ps = now_ps

    def on_end(self, now_ps: int, flow: int) -> None:
        del self.flows[flow]

    def next_credit(self, now_ps: int) -> sojourn.Credit | None:
        self.timer_ps = self.next_ps
        if now_ps < self.next_ps:
            return None
        if self.withheld:
            # A packet that was sent without a token takes its time.
            self.withheld -= 1
            self.timer_ps = self.next_ps = now_ps + self.packet_time_ps
            return None
        window = self.parameters.window
        times = {flow: inbound.eligible_ps(window) for flow, inbound in self.flows.items()}
        self.timer_ps = min((time for time in times.values() if time > now_ps), default=None)
        eligible = [flow for flow, time in times.items() if time <= now_ps]
        if not eligible:
            return None
        flow = min(eligible, key=lambda each: self.flows[each].remaining)
        self._issue(now_ps, self.flows[flow])
        return sojourn.Credit(flow, number=self.flows[flow].issued, resend=True)

    def _issue(self, now_ps: int, inbound: Inbound) -> None:
        if inbound.issued >= inbound.goal:
            inbound.goal += inbound.remaining
            inbound.timeouts += 1
        inbound.issued += 1
        # Tokens beyond the window have expired.
        inbound.spent = max(inbound.spent, inbound.issued - self.parameters.window)
        wait_ps = inbound.packet_time_ps * 2**inbound.timeouts
        inbound.window_ps = now_ps + round(self.parameters.window_timeout * wait_ps)
        inbound.resend_ps = now_ps + round(self.parameters.resend_timeout * wait_ps)
        inbound.next_ps = max(inbound.next_ps, now_ps) + inbound.packet_time_ps
        self.next_ps = now_ps + self.packet_time_ps

    def next_time_ps(self) -> int | None:
        return self.timer_ps


class PHost(sojourn.Controller):
    """Sender that spends a token for each packet; tokens expire. Times are in packet times."""

    credit_scheduler = Tokens
    priorities = 3
    queue = {"kind": "strict_priority", "classes": 3, "capacity": "36864 B"}

    free_tokens: Annotated[int, Field(ge=0)] = 8
    """Segments of the largest flow that starts with tokens for all of them."""
    short_flow: Annotated[int, Field(ge=0)] = 8
    """Segments of the largest flow with the higher priority."""
    window: Annotated[int, Field(gt=0)] = 8
    """Unspent tokens of a flow from which its receiver turns to others."""
    token_life: Times = 1.5
    """Time after which a token expires."""
    resend_timeout: Times = 9.0
    """Time after the last token of a flow until the receiver issues tokens for what it lacks."""
    window_timeout: Times = 25.0
    """Interval of tokens to a sender that spends none."""

    def on_start(self, path: sojourn.Path) -> None:
        packet_time_s = 8 * path.packet_bytes / path.line_rate_bps
        self.life_s = self.token_life * packet_time_s
        size = path.size_bytes
        segments = math.inf if size is None else max(math.ceil(size / path.payload_bytes), 1)
        self.priority = 1 if segments <= self.short_flow else 2
        free = int(segments) if segments <= self.free_tokens else 0
        expires_s = path.start_s + free * packet_time_s + self.life_s
        self.tokens = deque((number, expires_s) for number in range(1, free + 1))

    def on_credit(self, now_s: float, credit: sojourn.Credit) -> None:
        self.tokens.append((credit.number, now_s + self.life_s))

    def on_sent(self, now_s: float, packet_bytes: int) -> None:
        if self.tokens:
            self.tokens.popleft()

    def on_timer(self, now_s: float) -> None:
        _, expired_s = self.tokens[0]
        while self.tokens and self.tokens[0][1] <= expired_s:
            self.tokens.popleft()

    def next_timer(self) -> float | None:
        return self.tokens[0][1] if self.tokens else None

    def allowance(self) -> sojourn.Allowance:
        return sojourn.Allowance(granted_segments=math.inf if self.tokens else 0)

    def header(self, packet: sojourn.OutgoingPacket) -> sojourn.Header:
        return sojourn.Header(self.priority, number=self.tokens[0][0] if self.tokens else 0)
