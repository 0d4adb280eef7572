"""A controller with a learnt linear policy, the result of `train.py`.

Once per base RTT the controller reads its monitor and multiplies its window by a factor from a half
to two: 2 to the power of a weighted sum of its observations.
"""

import math

import sojourn

START = (0.5, 0.0, -1.0, 0.0, 0.0, 0.0)
"""Initial policy of the search: a target queueing delay of half a base RTT."""

WEIGHTS = (0.264, -0.049, -1.307, 0.048, -0.096, -0.187)
"""Final policy of the search, as `python train.py` prints it."""

MAX_WINDOW = 10_000.0
"""Maximum window in packets."""


def observation(interval: sojourn.Interval) -> tuple[float, ...]:
    """Return the observations of the policy: 1, and five dimensionless numbers."""
    return (
        1.0,
        interval.utilisation,
        min(interval.queueing, 4.0),
        max(-1.0, min(interval.rtt_gradient, 1.0)),
        interval.lost_share,
        math.log2(interval.allowed_packets / interval.pipe_packets),
    )


def action(weights: tuple[float, ...], observations: tuple[float, ...]) -> float:
    """Return the action of the policy, from -1 to 1."""
    weighted_sum = sum(weight * value for weight, value in zip(weights, observations, strict=True))
    return max(-1.0, min(weighted_sum, 1.0))


class Learnt(sojourn.Controller):
    """Controller that multiplies its window once per base RTT by the action of a learnt policy."""

    weights: tuple[float, ...] = WEIGHTS
    """Weights of a constant, utilisation, queueing, RTT gradient, loss rate and log2 of window."""

    def on_start(self, path: sojourn.Path) -> None:
        self.payload, self.base_rtt_s = path.payload_bytes, path.base_rtt_s
        self.monitor = path.monitor()
        self.packets = 10.0
        self.on_timer(path.start_s)

    def on_timer(self, now_s: float) -> None:
        interval = self.monitor.close(now_s, self.packets)
        factor = 2.0 ** action(self.weights, observation(interval))
        self.packets = max(1.0, min(self.packets * factor, MAX_WINDOW))
        self.wakes_s: float | None = now_s + self.base_rtt_s

    def on_end(self, now_s: float) -> None:
        self.wakes_s = None

    def next_timer(self) -> float | None:
        return self.wakes_s

    def allowance(self) -> float:
        return self.packets * self.payload
