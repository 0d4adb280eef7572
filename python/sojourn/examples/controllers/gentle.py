"""A first controller: keeps the queue short by the RTT alone."""

from typing import Annotated

from pydantic import Field

import sojourn


class Gentle(sojourn.Controller):
    """Controller whose window grows below a target RTT and shrinks above it, in proportion."""

    gain: Annotated[float, Field(gt=0, le=1)] = 0.1
    """Maximum change of the window in one RTT, as a share of the window."""
    target: Annotated[float, Field(gt=1)] = 1.5
    """Target RTT, as a multiple of the minimum RTT."""

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
