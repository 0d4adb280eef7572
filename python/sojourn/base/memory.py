"""Memory: how much runs may take, and who looks after them while they do."""

import contextlib
import resource
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

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
    bounds = [_available(), *_left_to_group()]
    most, _ = resource.getrlimit(resource.RLIMIT_AS)
    if most != resource.RLIM_INFINITY:
        bounds.append(max(0, most - _of_process()[0]))
    return min(bounds)


def resident() -> int:
    """Return how many bytes this process has; the most it has had, where that is not told."""
    return _of_process()[1]


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


def _available() -> int:
    """Return what the machine could give."""
    with contextlib.suppress(OSError, ValueError):
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    from os import sysconf  # noqa: PLC0415 - beside its only use

    return sysconf("SC_PHYS_PAGES") * sysconf("SC_PAGE_SIZE")


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
    return [max(0, format_memory) for format_memory in left]


def _of_process() -> tuple[int, int]:
    """Return how many bytes of addresses and of memory this process has."""
    with contextlib.suppress(OSError, ValueError):
        pages = Path("/proc/self/statm").read_text(encoding="ascii").split()
        return int(pages[0]) * resource.getpagesize(), int(pages[1]) * resource.getpagesize()
    unit = 1 if sys.platform == "darwin" else 1024
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    return most, most
