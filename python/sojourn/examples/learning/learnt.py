"""A controller whose every decision was learnt: a linear policy, which `train.py` has found.

Once in a base RTT it looks at what its monitor has counted, and multiplies its window by a factor
from a half to two: 2 to the power of a weighted sum of what it sees.
"""

import math

import sojourn

START = (0.5, 0.0, -1.0, 0.0, 0.0, 0.0)
"""The policy that the search begins with: towards a queueing delay of half a base RTT."""

WEIGHTS = (0.199, -0.065, -1.258, 0.002, -0.087, -0.183)
"""The policy that it ends with: `python train.py` prints it."""

MOST = 10_000.0
"""Packets that a window has at most."""


def seen(interval: sojourn.Interval) -> tuple[float, ...]:
    """Return what the policy sees: 1, and five numbers without units."""
    return (
        1.0,
        interval.utilisation,
        min(interval.queueing, 4.0),
        max(-1.0, min(interval.rtt_gradient, 1.0)),
        interval.lost_share,
        math.log2(interval.allowed_packets / interval.pipe_packets),
    )


def action(weights: tuple[float, ...], numbers: tuple[float, ...]) -> float:
    """Return the policy's answer, from -1 to 1."""
    wanted = sum(weight * number for weight, number in zip(weights, numbers, strict=True))
    return max(-1.0, min(wanted, 1.0))


class Learnt(sojourn.Controller):
    """Multiplies its window once in a base RTT, as a learnt policy says."""

    weights: tuple[float, ...] = WEIGHTS
    """Of a constant, utilisation, queueing, slope of the RTT, lost share, window (log 2)."""

    def on_start(self, path: sojourn.Path) -> None:
        self.payload, self.base_rtt_s = path.payload_bytes, path.base_rtt_s
        self.monitor = path.monitor()
        self.packets = 10.0
        self.on_timer(path.start_s)

    def on_timer(self, now_s: float) -> None:
        interval = self.monitor.close(now_s, self.packets)
        factor = 2.0 ** action(self.weights, seen(interval))
        self.packets = max(1.0, min(self.packets * factor, MOST))
        self.wakes_s: float | None = now_s + self.base_rtt_s

    def on_end(self, now_s: float) -> None:
        self.wakes_s = None

    def next_timer(self) -> float | None:
        return self.wakes_s

    def allowance(self) -> float:
        return self.packets * self.payload
