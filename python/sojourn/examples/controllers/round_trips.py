"""A controller that acts once in a round trip, and has everything between counted for it."""

from typing import Annotated

from pydantic import Field

import sojourn


class RoundTrips(sojourn.Controller):
    """Doubles its window while nothing waits, and else aims at a delay or gives way to losses."""

    target: Annotated[float, Field(gt=0)] = 0.25
    """Queueing delay that it aims at, in base RTTs."""
    gain: Annotated[float, Field(gt=0, le=1)] = 0.5
    """Share of the way to there that it goes in a round trip."""

    def on_start(self, path: sojourn.Path) -> None:
        self.payload, self.base_rtt_s = path.payload_bytes, path.base_rtt_s
        self.monitor = path.monitor()
        self.window = 10.0 * self.payload
        self.wakes_s: float | None = path.start_s + self.base_rtt_s
        self.is_starting = True

    def on_timer(self, now_s: float) -> None:
        seen = self.monitor.close(now_s)
        self.is_starting &= seen.queueing < self.target and not seen.losses
        if seen.losses:
            self.window /= 2
        elif self.is_starting:
            self.window *= 2
        elif seen.acks:
            wanted = self.window * (1 + self.target) / (1 + seen.queueing)
            self.window += self.gain * (wanted - self.window)
        self.window = max(self.window, self.payload)
        self.wakes_s = now_s + max(seen.rtt_s, self.base_rtt_s)

    def on_loss(self, loss: sojourn.Loss) -> None:
        if loss.sign == "timeout":
            self.window = self.payload

    def on_end(self, now_s: float) -> None:
        self.wakes_s = None

    def next_timer(self) -> float | None:
        return self.wakes_s

    def allowance(self) -> float:
        return self.window
