"""Progress of runs that take long: a bar on a terminal or in a notebook, otherwise lines."""

import contextlib
import importlib.util
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from sojourn import _core
from sojourn.base.units import format_long_time

DISPLAY_DELAY_S = 2.0
"""Run time up to which no progress is printed."""


LONG_S = 60.0
"""Expected run time above which the expectation is printed."""


RELIABLE_SHARE, RELIABLE_AFTER_S = 0.05, 10.0
"""Share of the work and run time, one of which the expectation needs: processes start slowly."""


LINE_INTERVAL_S = 20.0
"""Interval between lines of progress where no bar can be shown."""


class Report(NamedTuple):
    """Progress that a run reports."""

    now_s: float = 0.0
    """Simulated time in seconds."""
    started: int = 0
    """Flows that have started."""
    ended: int = 0
    """Flows that have ended."""
    started_bytes: int = 0
    """Payload of the started flows, except long-lived ones; 0 for an ideal."""
    delivered_bytes: int = 0
    """Payload of these flows that has been delivered; 0 for an ideal."""
    hops: int = 0
    """Packet-hops."""


class RunControl(Protocol):
    """Handle to stop a run of this or another process and to read its progress."""

    def stop(self, reason: str = "") -> None:
        """Request the run to stop, for this reason."""

    def is_stopped(self) -> bool:
        """Return true if a stop has been requested."""

    def progress(self) -> tuple[float, int, int, int, int, int]:
        """Return the fields of a `Report`."""


@dataclass
class RunProgress:
    """Progress of one run relative to the core's estimate."""

    estimate: Mapping[str, Any]
    """The estimate: `flows`, `payload_bytes`, `packet_hops`, `bytes`, `limit_s`, `ends_s`."""
    control: RunControl = field(default_factory=_core.RunControl)
    name: str = ""
    """Prefix of errors; empty for a single run."""
    is_finished: bool = False

    def work(self) -> float:
        """Return the expected work in packet-hops; an ideal has about one per flow."""
        return max(1.0, float(self.estimate["packet_hops"]), float(self.estimate["flows"] or 0.0))

    def share(self) -> float:
        """Return the share of the work that is done, from 0 to 1."""
        return 1.0 if self.is_finished else self._most_advanced()[0]

    def text(self) -> str:
        """Return the progress in flows or seconds, whichever is more advanced."""
        return self._most_advanced()[1]

    def hops(self) -> int:
        """Return the number of packet-hops so far."""
        return Report(*self.control.progress()).hops

    def _most_advanced(self) -> tuple[float, str]:
        report = Report(*self.control.progress())
        now, flows, limit = report.now_s, self.estimate["flows"], self.estimate["limit_s"]
        measures = [(now / limit, f"{now:.3g} of {limit:.3g} s")]
        if flows:
            share = _delivered_share(report, flows, self.estimate.get("payload_bytes", 0.0))
            measures.append((share, f"{report.ended:,} of {round(flows):,} flows"))
        else:
            # The number of calls is unknown in advance; the run ends soon after the last start.
            end = max(self.estimate["ends_s"], 1e-12)
            measures.append((now / end, f"{now:.3g} of {end:.3g} s"))
        share, text = max(measures)
        return min(share, 0.999), text


def _delivered_share(report: Report, flows: float, payload_bytes: float) -> float:
    """Return the share of the payload of all `flows` that has been delivered.

    Flows that have not started count with the mean size of the estimate. Without sizes it is the
    share of flows that have ended.
    """
    mean = payload_bytes / flows
    total = report.started_bytes + mean * max(0.0, flows - report.started)
    return report.delivered_bytes / total if report.started_bytes else report.ended / flows


@contextlib.contextmanager
def progress_display(runs: Sequence[RunProgress], title: str) -> Iterator[Callable[[], None]]:
    """Yield a function that updates the display; call it several times a second."""
    console = Console(stderr=True)
    has_bar = console.is_terminal or (
        console.is_jupyter and importlib.util.find_spec("ipywidgets") is not None
    )
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[text]}"))
    bar = Progress(*columns, TimeElapsedColumn(), console=console, transient=True)
    task = bar.add_task(title, total=1.0, text="")
    work = sum(run.work() for run in runs)
    start = time.monotonic()
    line_due, is_announced = start + LINE_INTERVAL_S, False

    def update() -> None:
        nonlocal line_due, is_announced
        elapsed = time.monotonic() - start
        if elapsed < DISPLAY_DELAY_S:
            for run in runs:
                run.control.progress()  # A run updates its progress after each request.
            return
        share = sum(run.work() * run.share() for run in runs) / work
        text = _progress_text(runs, share, elapsed)
        is_reliable = share >= RELIABLE_SHARE or (share > 0 and elapsed >= RELIABLE_AFTER_S)
        if is_reliable and not is_announced:
            is_announced = True
            expected = elapsed / share
            if expected > LONG_S:
                console.print(
                    f"{title}: expected run time {format_long_time(expected)}", highlight=False
                )
        bar.update(task, completed=share, text=text)
        if has_bar:
            bar.start()
        elif start + elapsed > line_due:
            line_due = start + elapsed + LINE_INTERVAL_S
            console.print(
                f"{title}: {text}, {format_long_time(elapsed)}", highlight=False, soft_wrap=True
            )

    try:
        yield update
    finally:
        if has_bar:
            bar.stop()


def _progress_text(runs: Sequence[RunProgress], share: float, elapsed: float) -> str:
    """Return the share done, the speed and the remaining time of all runs together."""
    finished = sum(run.is_finished for run in runs)
    count = runs[0].text() if len(runs) == 1 else f"{finished} of {len(runs)}"
    items = [f"{100 * share:.0f} % ({count})"]
    hops = sum(run.hops() for run in runs)
    if hops:
        items.append(f"{hops / elapsed / 1e6:.1f} million packet-hops/s")
    if share > 0:
        items.append(f"{format_long_time(elapsed * (1 - share) / share)} left")
    return ", ".join(items)
