"""The controller of a flow that learns: it counts what happens, and its episode says what it does.

The text of this file travels in scenarios, as that of all controllers does.
"""

from operator import mul

import sojourn
from sojourn.episode import Interval, running

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
        self.flow = path.flow
        self.fixed = {
            "flow": path.flow,
            "start_s": path.start_s,
            "base_rtt_s": path.base_rtt_s,
            "line_rate_bps": path.line_rate_bps,
            "packet_bytes": path.packet_bytes,
            "payload_bytes": path.payload_bytes,
        }
        self.packet, self.base_rtt_s = path.payload_bytes, path.base_rtt_s
        self.packet_bits = 8.0 * path.packet_bytes
        self.left = path.size_bytes
        self.is_over, self.over_s = False, float("inf")
        self.rtt_s, self.in_flight = self.base_rtt_s, 0
        self.begin(path.start_s)
        self.allow(INITIAL)
        self.run = running[self.episode]
        self.wakes_s = self.run.run_join(self, path.start_s, self.base_rtt_s)
        if self.wakes_s < path.start_s + self.base_rtt_s / 1e3:
            # Its first turn is before a second packet could leave.
            self.answer: float | sojourn.Allowance = 0.0

    def begin(self, now_s: float) -> None:
        """Begin to count."""
        self.begin_s = now_s
        self.times: list[float] = []
        self.rtts: list[float] = []
        self.acked = self.marked = self.lost = self.timeouts = 0

    def allow(self, packets: float) -> None:
        self.allowed = packets
        if self.paced:
            rate_bps = packets * self.packet_bits / self.base_rtt_s
            self.answer = sojourn.Allowance(rate_bps=rate_bps)
        else:
            self.answer = packets * self.packet + 0.5

    def on_ack(self, ack: sojourn.Ack) -> None:
        now_s = ack.now_s
        if now_s >= self.wakes_s:
            # What comes at the time of a turn comes before its timer.
            self.on_timer(now_s)
        self.times.append(now_s)
        self.rtts.append(ack.rtt_s)
        self.acked += ack.acked_bytes
        self.lost += ack.lost
        self.marked += ack.marked
        self.in_flight = ack.in_flight_bytes
        if self.left is not None:
            self.left -= ack.acked_bytes
            if self.left == 0 and not self.is_over:
                self.is_over, self.over_s = True, now_s
                self.run.run_leave(now_s)

    def on_loss(self, loss: sojourn.Loss) -> None:
        if loss.now_s >= self.wakes_s:
            self.on_timer(loss.now_s)
        self.timeouts += loss.sign == "timeout"

    def on_timer(self, now_s: float) -> None:
        if not self.is_over:
            self.wakes_s = self.run.run_turn(now_s)

    def next_timer(self) -> float | None:
        return None if self.is_over else self.wakes_s

    def allowance(self) -> float | sojourn.Allowance:
        return self.answer

    def close(self, now_s: float) -> Interval:
        gradient = 0.0
        if self.rtts:
            count = len(self.rtts)
            self.rtt_s = sum(self.rtts) / count
            middle = sum(self.times) / count
            times = [time - middle for time in self.times]
            if spread := sum(map(mul, times, times)):
                gradient = sum(map(mul, times, self.rtts)) / spread
        interval = Interval.of(
            {
                **self.fixed,
                "begin_s": self.begin_s,
                "end_s": min(now_s, self.over_s),
                "acks": len(self.rtts),
                "acked_bytes": self.acked,
                "marks": self.marked,
                "losses": self.lost,
                "timeouts": self.timeouts,
                "rtt_s": self.rtt_s,
                "rtt_gradient": gradient,
                "in_flight_bytes": self.in_flight,
                "allowed_packets": self.allowed,
                "left_bytes": self.left,
            }
        )
        self.begin(now_s)
        return interval
