"""The controller of a flow that learns: its monitor counts, and its episode says what it does.

The text of this file travels in scenarios, as that of all controllers does.
"""

import sojourn
from sojourn.learn.episode import running

INITIAL = 10.0
"""Packets that are allowed until an agent has its first turn (RFC 6928)."""


class Agent(sojourn.Controller):
    """A window or a rate that is set from outside once in an interval."""

    ecn = True

    episode: int = 0
    """The episode's number."""
    paced: bool = False
    """Whether it sets a rate instead of a window."""

    def on_start(self, path: sojourn.Path) -> None:
        self.flow, self.is_over = path.flow, False
        self.payload, self.base_rtt_s = path.payload_bytes, path.base_rtt_s
        self.packet_bits = 8.0 * path.packet_bytes
        self.monitor = path.monitor()
        self.allow(INITIAL)
        self.run = running[self.episode]
        self.wakes_s = self.run.run_join(self, path.start_s, self.base_rtt_s)
        if self.wakes_s < path.start_s + self.base_rtt_s / 1e3:
            # Its first turn is before a second packet could leave.
            self.answer: float | sojourn.Allowance = 0.0

    def allow(self, packets: float) -> None:
        self.allowed = packets
        if self.paced:
            rate_bps = packets * self.packet_bits / self.base_rtt_s
            self.answer = sojourn.Allowance(rate_bps=rate_bps)
        else:
            self.answer = packets * self.payload + 0.5

    def on_timer(self, now_s: float) -> None:
        if not self.is_over:
            self.wakes_s = self.run.run_turn(now_s)

    def on_end(self, now_s: float) -> None:
        self.is_over = True
        self.run.run_leave(now_s)

    def next_timer(self) -> float | None:
        return None if self.is_over else self.wakes_s

    def allowance(self) -> float | sojourn.Allowance:
        return self.answer

    def close(self, now_s: float) -> sojourn.Interval:
        return self.monitor.close(now_s, self.allowed)
