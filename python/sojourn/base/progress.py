"""Progress: how far runs are, shown once they take long.

On a terminal and in a notebook that is a bar, elsewhere a line now and then.
"""

import contextlib
import importlib.util
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from sojourn import _core
from sojourn.base.units import format_long_time

PATIENCE_S = 2.0
"""Nothing is said about work that takes no longer than this."""


LONG_S = 60.0
"""What will take longer is announced."""


EVERY_S = 20.0
"""How often a line is written where there is no bar."""


class Watch(Protocol):
    """Who watches a run, from this process or from another."""

    def stop(self, reason: str = "") -> None:
        """Ask the run to stop, and say why."""

    def is_stopped(self) -> bool:
        """Tell whether a stop was asked for."""

    def progress(self) -> tuple[float, int, int]:
        """Tell simulated seconds, flows that have ended and packet-hops."""


@dataclass
class Course:
    """One run, as it is looked at from outside."""

    needs: Mapping[str, Any]
    """What the core estimates that it needs."""
    watch: Watch = field(default_factory=_core.Watch)
    is_over: bool = False

    def work(self) -> float:
        """Return how much there is to do, in packet-hops; an ideal has about one a flow."""
        return max(1.0, float(self.needs["packet_hops"]), float(self.needs["flows"] or 0.0))

    def share(self) -> float:
        """Return how much of it is done, from 0 to 1."""
        return self._nearest()[0] if not self.is_over else 1.0

    def words(self) -> str:
        """Say how far it is, by what is nearest to its end."""
        return self._nearest()[1]

    def hops(self) -> int:
        """Return how many packets links have carried."""
        return self.watch.progress()[2]

    def _nearest(self) -> tuple[float, str]:
        now, ended, _ = self.watch.progress()
        flows, limit = self.needs["flows"], self.needs["limit_s"]
        ways = [(now / limit, f"{now:.3g} of {limit:.3g} s")]
        if flows:
            ways.append((ended / flows, f"{ended:,} of {round(flows):,} flows"))
        else:
            # When calls stop that follow others, the run is soon over.
            ends = max(self.needs["ends_s"], 1e-12)
            ways.append((now / ends, f"{now:.3g} of {ends:.3g} s"))
        share, words = max(ways)
        return min(share, 0.999), words


@contextlib.contextmanager
def shown(courses: Sequence[Course], what: str) -> Iterator[Callable[[], None]]:
    """Give a function that shows how far the runs are now; it is to be called often."""
    console = Console(stderr=True)
    has_bar = console.is_terminal or (
        console.is_jupyter and importlib.util.find_spec("ipywidgets") is not None
    )
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[told]}"))
    bar = Progress(*columns, TimeElapsedColumn(), console=console, transient=True)
    task = bar.add_task(what, total=1.0, told="")
    work = sum(course.work() for course in courses)
    begun = time.monotonic()
    line_due, is_announced = begun + EVERY_S, False

    def show() -> None:
        nonlocal line_due, is_announced
        now = time.monotonic()
        if now - begun < PATIENCE_S:
            for course in courses:
                course.watch.progress()  # it tells when it is next asked
            return
        share = sum(course.work() * course.share() for course in courses) / work
        told = _told(courses, share, now - begun)
        if share > 0 and not is_announced:
            is_announced = True
            expected = (now - begun) / share
            if expected > LONG_S:
                console.print(
                    f"{what}: will take about {format_long_time(expected)}", highlight=False
                )
        bar.update(task, completed=share, told=told)
        if has_bar:
            bar.start()
        elif now > line_due:
            line_due = now + EVERY_S
            console.print(
                f"{what}: {told}, {format_long_time(now - begun)}", highlight=False, soft_wrap=True
            )

    try:
        yield show
    finally:
        if has_bar:
            bar.stop()


def _told(courses: Sequence[Course], share: float, elapsed: float) -> str:
    """Say how far runs are together, how fast they go and how long they will take."""
    over = sum(course.is_over for course in courses)
    one = courses[0].words() if len(courses) == 1 else f"{over} of {len(courses)}"
    told = [f"{100 * share:.0f} % ({one})"]
    hops = sum(course.hops() for course in courses)
    if hops:
        told.append(f"{hops / elapsed / 1e6:.1f} million packet-hops/s")
    if share > 0:
        told.append(f"{format_long_time(elapsed * (1 - share) / share)} left")
    return ", ".join(told)
