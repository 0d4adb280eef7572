"""A controller to begin with: keeps the queue short by the round-trip time, and nothing else."""

from typing import Annotated

from pydantic import Field

import sojourn


class Gentle(sojourn.Controller):
    """Grows while the round-trip time is near its least, and shrinks in proportion beyond that."""

    gain: Annotated[float, Field(gt=0, le=1)] = 0.1
    """Share of the window by which it changes, at most, in a round trip."""
    target: Annotated[float, Field(gt=1)] = 1.5
    """Round-trip time that it aims at, over the least that it has seen."""

    def on_start(self, path: sojourn.Path) -> None:
        self.packet = path.payload_bytes
        self.window = 10.0 * self.packet
        self.least_rtt_s = path.base_rtt_s

    def on_ack(self, ack: sojourn.Ack) -> None:
        self.least_rtt_s = min(self.least_rtt_s, ack.rtt_s)
        room = self.target - ack.rtt_s / self.least_rtt_s
        change = max(-1.0, min(1.0, room)) * self.gain * ack.acked_bytes
        self.window = max(self.window + change, self.packet)

    def on_loss(self, loss: sojourn.Loss) -> None:
        self.window = max(self.window / 2, self.packet)

    def allowance(self) -> float:
        return self.window

    def gauges(self) -> dict[str, float]:
        return {"window_bytes": self.window}
