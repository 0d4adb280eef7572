"""DCTCP (RFC 8257), equal to `transport = "dctcp"` in the environment `paper`."""

from typing import Annotated

from pydantic import Field

import sojourn


class Dctcp(sojourn.Controller):
    """Controller that reduces its window in proportion to the share of marked packets."""

    ecn = True
    queue = "ecn_threshold"
    host_queue = "ecn_threshold"

    gain: Annotated[float, Field(gt=0, le=1)] = 1 / 16
    """Weight of the last window in the moving average of the marked share."""

    def on_start(self, path: sojourn.Path) -> None:
        self.packet = float(path.payload_bytes)
        self.window = 10 * self.packet
        self.slow_start_ends = float("inf")
        self.alpha = 1.0
        self.acked = self.marked = 0
        self.window_ends = self.reduced_until = 0
        self.unreduced = 0.0
        self.has_timed_out = False

    def on_ack(self, ack: sojourn.Ack) -> None:
        acked, is_marked, cumulative = ack.acked_bytes, ack.marked, ack.cumulative
        if ack.advanced:
            self.has_timed_out = False
        self.acked += acked
        if is_marked:
            self.marked += acked
        if cumulative >= self.window_ends:
            share = self.marked / self.acked if self.acked else 0.0
            self.alpha += self.gain * (share - self.alpha)
            self.acked = self.marked = 0
            self.window_ends = ack.next
        is_reduced = cumulative < self.reduced_until or ack.is_recovering
        if is_marked and not is_reduced:
            self.unreduced = self.window
            self.window = max(self.window * (1.0 - self.alpha / 2.0), self.packet)
            self.slow_start_ends = self.window
            self.reduced_until = ack.next + 1
        elif not is_reduced:
            if self.window < self.slow_start_ends:
                self.window += acked
            else:
                self.window += self.packet * acked / self.window

    def on_loss(self, loss: sojourn.Loss) -> None:
        is_timeout = loss.sign == "timeout"
        if not (is_timeout and self.has_timed_out):
            if loss.cumulative < self.reduced_until:
                halved = min(self.unreduced / 2.0, self.window, loss.flight_bytes)
            else:
                halved = min(self.window, loss.flight_bytes) / 2.0
            self.slow_start_ends = max(halved, 2.0 * self.packet)
        self.has_timed_out |= is_timeout
        self.window = self.packet if is_timeout else self.slow_start_ends

    def allowance(self) -> float:
        return self.window

    def gauges(self) -> dict[str, float]:
        return {"window_bytes": self.window, "alpha": self.alpha}
