"""HPCC, equal to `transport = "hpcc"` in the environment `paper`."""

import math
from typing import Annotated

from pydantic import Field

import sojourn


class Hpcc(sojourn.Controller):
    """Rate and window that keep the path's fullest link at a target utilisation."""

    burst = 1
    telemetry = True
    reliability = {"recovery": "go_back_n", "initial_rto": "20 ms", "min_rto": "20 ms"}

    eta: Annotated[float, Field(gt=0, le=1)] = 0.95
    """Target utilisation."""
    additive_increase_bps: Annotated[float, Field(gt=0)] = 50e6
    """Additive increase per RTT."""
    min_rate_bps: Annotated[float, Field(gt=0)] = 1e9
    """Minimum rate."""

    def on_start(self, path: sojourn.Path) -> None:
        self.payload = float(path.payload_bytes)
        self.base_rtt_s = path.base_rtt_s
        self.line_rate = path.line_rate_bps
        self.rate = self.reference = self.line_rate
        self.utilisation = 1.0
        self.last: list[sojourn.HopTelemetry] = []
        self.changed_at = 0
        self.changed_at_s = 0.0

    def on_ack(self, ack: sojourn.Ack) -> None:
        last, self.last = self.last, ack.hops
        if not last:
            self.changed_at, self.changed_at_s = ack.next, ack.now_s
            return
        self.average(last)
        excess = self.utilisation / self.eta
        rate = self.reference * (1.0 / excess) + self.additive_increase_bps
        least = min(self.min_rate_bps, self.line_rate)
        self.rate = min(max(rate, least), self.line_rate)
        # While a segment is missing, the cumulative acknowledgement does not show ends of RTTs.
        is_later = ack.advanced == 0 and ack.sent_at_s > self.changed_at_s
        if ack.cumulative > self.changed_at or is_later:
            self.reference = self.rate
            self.changed_at = max(self.changed_at, ack.next)
            self.changed_at_s = ack.now_s

    def average(self, last: list[sojourn.HopTelemetry]) -> None:
        """Average the largest utilisation of the path's links since the last ACK."""
        loads = []
        for before, after in zip(last, self.last, strict=True):
            length = (after.time_ps - before.time_ps) / 1e12
            if length > 0:
                sent = after.transmitted_bytes - before.transmitted_bytes
                queue = min(before.queued_bytes, after.queued_bytes) * 8.0 / after.rate_bps
                loads.append(
                    (sent * 8.0 / after.rate_bps / length + queue / self.base_rtt_s, length)
                )
        if loads:
            load, length = max(loads, key=lambda pair: pair[0])
            weight = min(length, self.base_rtt_s) / self.base_rtt_s
            self.utilisation = self.utilisation * (1.0 - weight) + load * weight

    def allowance(self) -> sojourn.Allowance:
        window = self.rate * self.base_rtt_s / 8.0
        return sojourn.Allowance(math.ceil(window / self.payload) * self.payload, self.rate)
