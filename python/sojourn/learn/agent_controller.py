"""Controller of an agent's flow: it counts with a monitor, and its episode sets the window or rate.

Scenarios contain the text of this file, like that of all controllers in Python.
"""

import sojourn
from sojourn.learn.episode import running

INITIAL_PACKETS = 10.0
"""Window in packets until the first step of an agent (RFC 6928)."""


class Agent(sojourn.Controller):
    """Controller whose window or rate the episode sets once in an interval."""

    ecn = True

    episode: int = 0
    """Number of the episode in `running`."""
    paced: bool = False
    """If true, actions set a rate instead of a window."""

    def on_start(self, path: sojourn.Path) -> None:
        self.flow, self.is_over = path.flow, False
        self.payload, self.base_rtt_s = path.payload_bytes, path.base_rtt_s
        self.packet_bits = 8.0 * path.packet_bytes
        self.monitor = path.monitor()
        self.set_allowance(INITIAL_PACKETS)
        self.episode_run = running[self.episode]
        self.next_step_s = self.episode_run.on_agent_start(self, path.start_s, self.base_rtt_s)
        if self.next_step_s < path.start_s + self.base_rtt_s / 1e3:
            # The first step is before a second packet could leave.
            self.current_allowance: float | sojourn.Allowance = 0.0

    def set_allowance(self, packets: float) -> None:
        self.packets = packets
        if self.paced:
            rate_bps = packets * self.packet_bits / self.base_rtt_s
            self.current_allowance = sojourn.Allowance(rate_bps=rate_bps)
        else:
            self.current_allowance = packets * self.payload + 0.5

    def on_timer(self, now_s: float) -> None:
        if not self.is_over:
            self.next_step_s = self.episode_run.on_agent_timer(now_s)

    def on_end(self, now_s: float) -> None:
        self.is_over = True
        self.episode_run.on_agent_end(now_s)

    def next_timer(self) -> float | None:
        return None if self.is_over else self.next_step_s

    def allowance(self) -> float | sojourn.Allowance:
        return self.current_allowance

    def close(self, now_s: float) -> sojourn.Interval:
        return self.monitor.close(now_s, self.packets)
