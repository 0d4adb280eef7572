"""Swift, equal to `transport = "swift"` in the environment `paper`."""

from typing import Annotated

from pydantic import Field

import sojourn

Positive = Annotated[float, Field(gt=0)]
Share = Annotated[float, Field(gt=0, le=1)]


class Swift(sojourn.Controller):
    """Controller whose window follows a target RTT, down to fractions of a packet."""

    burst = 1  # windows below one packet are paced

    base_target_us: Positive = 20.0
    """Target of a window of at least `fs_max` packets, without the part of the links."""
    hop_scaling_us: Annotated[float, Field(ge=0)] = 3.0
    """Increase of the target for each link of the forward path."""
    fs_range_us: Annotated[float, Field(ge=0)] = 100.0
    """Maximum increase of the target for small windows."""
    fs_min: Positive = 0.1
    """Window, in packets, up to which the target has its maximum."""
    fs_max: Positive = 100.0
    """Window, in packets, from which on the window does not increase the target."""
    ai: Positive = 1.0
    """Additive increase of the window in one RTT below the target, in packets."""
    beta: Share = 0.8
    """Decrease of the window, as a multiple of the share of the delay above the target."""
    max_mdf: Share = 0.5
    """Maximum decrease, as a share of the window."""

    def on_start(self, path: sojourn.Path) -> None:
        self.packet = float(path.payload_bytes)
        self.packet_bits = 8.0 * path.packet_bytes
        self.fixed = (self.base_target_us + self.hop_scaling_us * path.hops) / 1e6
        self.range = self.fs_range_us / 1e6
        self.least_root: float = self.fs_max**-0.5
        self.window = 10.0  # in packets
        self.rtt_s = path.base_rtt_s
        self.rtt_ps = round(1e12 * path.base_rtt_s)
        self.last_decrease_ps = -(10**15)
        self.timeouts_in_a_row = 0

    def on_ack(self, ack: sojourn.Ack) -> None:
        self.rtt_s, self.rtt_ps = ack.rtt_s, ack.rtt_ps
        self.timeouts_in_a_row = 0
        delay, target = self.rtt_s, self.target()
        if delay < target:
            acked = ack.acked_bytes / self.packet
            self.change(ack.now_ps, self.window + self.ai * acked / max(self.window, 1.0))
        else:
            excess = (delay - target) / delay
            self.decrease(ack.now_ps, max(1.0 - self.beta * excess, 1.0 - self.max_mdf))

    def on_loss(self, loss: sojourn.Loss) -> None:
        self.timeouts_in_a_row = self.timeouts_in_a_row + 1 if loss.sign == "timeout" else 0
        if self.timeouts_in_a_row >= 5:
            self.change(loss.now_ps, 0.0)
        else:
            self.decrease(loss.now_ps, 1.0 - self.max_mdf)

    def target(self) -> float:
        """Return the target in seconds, which is higher for smaller windows."""
        scaled: float = self.range * (self.window**-0.5 - self.least_root)
        small: float = scaled / (self.fs_min**-0.5 - self.least_root)
        return self.fixed + min(max(small, 0.0), self.range)

    def decrease(self, now_ps: int, factor: float) -> None:
        """Decrease the window, at most once per RTT."""
        if now_ps - self.last_decrease_ps >= self.rtt_ps:
            self.change(now_ps, self.window * factor)

    def change(self, now_ps: int, window: float) -> None:
        """Set the window, in packets."""
        window = min(max(window, 0.001), 10_000.0)
        if window < self.window:
            self.last_decrease_ps = now_ps
        self.window = window

    def allowance(self) -> float | sojourn.Allowance:
        if self.window >= 1.0:
            return self.window * self.packet + 0.5
        rate = self.packet_bits * self.window / max(self.rtt_s, 1e-12)
        return sojourn.Allowance(self.packet, rate)

    def gauges(self) -> dict[str, float]:
        return {"window_bytes": self.window * self.packet}
