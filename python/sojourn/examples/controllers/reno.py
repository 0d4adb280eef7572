"""TCP Reno (RFC 5681) with SACK, equal to `transport = "tcp"` in the environment `paper`."""

from typing import Annotated

from pydantic import Field

import sojourn


class Reno(sojourn.Controller):
    """Controller with slow start, then one packet per RTT, and half the window after a loss."""

    marks = "echo_until_reduced"
    reliability = {
        "handshake": True,
        "initial_rto": "1 s",
        "min_rto": "200 ms",
        "max_rto": "60 s",
    }

    initial: Annotated[int, Field(ge=1)] = 10
    """Initial window, in packets (RFC 6928); one packet after a lost SYN."""

    def on_start(self, path: sojourn.Path) -> None:
        self.packet = path.payload_bytes
        self.window = float(self.initial)  # in packets, as all windows here
        self.slow_start_ends = float("inf")
        self.has_timed_out = False

    def on_open(self, opened: sojourn.Opened) -> None:
        if opened.syn_was_lost:
            self.window = 1.0

    def on_ack(self, ack: sojourn.Ack) -> None:
        if ack.advanced == 0:
            return
        self.has_timed_out = False
        if ack.is_recovering or ack.marked:
            return
        if self.window < self.slow_start_ends:
            self.window += 1.0
        else:
            self.window += 1.0 / self.window
            self.slow_start_ends = min(self.slow_start_ends, self.window)

    def on_loss(self, loss: sojourn.Loss) -> None:
        if loss.sign == "timeout":
            # RFC 5681, section 3.1: a repeated timeout of the same segment keeps ssthresh.
            if self.has_timed_out:
                return
            self.has_timed_out = True
        half = min(self.window, loss.flight_bytes / self.packet) / 2.0
        self.slow_start_ends = max(half, 2.0)
        self.window = 1.0 if loss.sign == "timeout" else self.slow_start_ends

    def remember(self, now_s: float) -> None:
        self.before = self.window, self.slow_start_ends

    def on_undo(self, now_s: float) -> None:
        window, slow_start_ends = self.before
        self.window = max(self.window, window)
        self.slow_start_ends = max(self.slow_start_ends, slow_start_ends)
        self.has_timed_out = False

    def allowance(self) -> float:
        return self.window * self.packet + 0.5

    def gauges(self) -> dict[str, float]:
        return {"window_bytes": self.window * self.packet}
