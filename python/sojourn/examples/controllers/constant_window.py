"""The smallest controller: a window that never changes, and so no congestion control."""

from typing import Annotated

from pydantic import Field

import sojourn


class ConstantWindow(sojourn.Controller):
    """Keeps as much in flight as it is told to."""

    window_bytes: Annotated[float, Field(gt=0)] = 20_000.0
    """Payload in flight."""

    def on_ack(self, ack: sojourn.Ack) -> None:
        """Learn nothing."""

    def allowance(self) -> float:
        return self.window_bytes
