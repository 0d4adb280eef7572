"""Memory: how much runs may take, and who looks after them while they do."""

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil

from sojourn._core import ScenarioError
from sojourn.base.units import MEMORY_UNITS, format_memory, parse_memory

SHARE = 0.9
"""What runs may take of the memory that is free, if nothing else is said."""


LOOKS_S = 0.05
"""How often a guard looks: no run grows much meanwhile."""


def budget(given: str | int | None = None) -> int:
    """Return how many bytes runs may take: as `given`, such as `4 GB`, or most of what is free."""
    if isinstance(given, int):
        return given
    if given is None:
        return int(SHARE * free())
    try:
        return parse_memory(given)
    except ValueError:
        units = ", ".join(MEMORY_UNITS)
        told = f'--memory {given}: expected an amount such as "4 GB" ({units})'
        raise ScenarioError(told) from None


def free() -> int:
    """Return how many bytes this process could still take."""
    return min([psutil.virtual_memory().available, *_left_to_group(), *_left_to_process()])


def resident() -> int:
    """Return how many bytes of memory this process has."""
    return int(psutil.Process().memory_info().rss)


@contextlib.contextmanager
def guard(memory: int, stop: Callable[[str], None]) -> Iterator[None]:
    """Call `stop`, with the reason, once this process has taken `memory` bytes more than now."""
    before, ended = resident(), threading.Event()

    def look() -> None:
        while not ended.wait(LOOKS_S):
            taken = resident() - before
            if taken > memory:
                told = f"{format_memory(taken)} are taken, and {format_memory(memory)} may be"
                stop(f"out of memory: {told}")
                return

    thread = threading.Thread(target=look, name="memory guard", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _left_to_group() -> list[int]:
    """Return what is left to the control group that a container puts its processes into, if any."""
    groups = Path("/sys/fs/cgroup")
    names = (
        ("memory.max", "memory.current"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
    )
    left = []
    for most, used in names:
        with contextlib.suppress(OSError, ValueError):
            left.append(int((groups / most).read_text()) - int((groups / used).read_text()))
    return [max(0, amount) for amount in left]


def _left_to_process() -> list[int]:
    """Return what is left of the addresses that this process may have, where they are limited."""
    if sys.platform != "linux":
        return []
    process = psutil.Process()
    most, _ = process.rlimit(psutil.RLIMIT_AS)
    return [] if most == psutil.RLIM_INFINITY else [max(0, most - process.memory_info().vms)]
