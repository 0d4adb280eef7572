"""A controller that acts once per RTT, on the counts of its monitor."""

from typing import Annotated

from pydantic import Field

import sojourn


class RoundTrips(sojourn.Controller):
    """Controller that doubles its window at first, then follows a delay target; halves on loss."""

    target: Annotated[float, Field(gt=0)] = 0.25
    """Target queueing delay, in base RTTs."""
    gain: Annotated[float, Field(gt=0, le=1)] = 0.5
    """Step in one RTT, as a share of the distance to the target window."""

    def on_start(self, path: sojourn.Path) -> None:
        self.payload, self.base_rtt_s = path.payload_bytes, path.base_rtt_s
        self.monitor = path.monitor()
        self.window = 10.0 * self.payload
        self.wakes_s: float | None = path.start_s + self.base_rtt_s
        self.is_starting = True

    def on_timer(self, now_s: float) -> None:
        interval = self.monitor.close(now_s)
        self.is_starting &= interval.queueing < self.target and not interval.losses
        if interval.losses:
            self.window /= 2
        elif self.is_starting:
            self.window *= 2
        elif interval.acks:
            target_window = self.window * (1 + self.target) / (1 + interval.queueing)
            self.window += self.gain * (target_window - self.window)
        self.window = max(self.window, self.payload)
        self.wakes_s = now_s + max(interval.rtt_s, self.base_rtt_s)

    def on_loss(self, loss: sojourn.Loss) -> None:
        if loss.sign == "timeout":
            self.window = self.payload

    def on_end(self, now_s: float) -> None:
        self.wakes_s = None

    def next_timer(self) -> float | None:
        return self.wakes_s

    def allowance(self) -> float:
        return self.window
