"""The smallest controller: a constant window, without congestion control."""

from typing import Annotated

from pydantic import Field

import sojourn


class ConstantWindow(sojourn.Controller):
    """Controller with a constant window."""

    window_bytes: Annotated[float, Field(gt=0)] = 20_000.0
    """Window: payload in flight, in bytes."""

    def on_ack(self, ack: sojourn.Ack) -> None:
        """Ignore ACKs."""

    def allowance(self) -> float:
        return self.window_bytes
