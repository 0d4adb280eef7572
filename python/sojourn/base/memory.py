"""Memory: the limit for runs, and a guard that stops runs at the limit."""

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil

from sojourn._core import ScenarioError
from sojourn.base.errors import check_whole
from sojourn.base.units import MEMORY_UNITS, format_memory, parse_memory

DEFAULT_SHARE = 0.9
"""Default limit of runs, as a share of the free memory."""


POLL_INTERVAL_S = 0.05
"""Interval between the measurements of a guard; no run grows much within it."""


def budget(amount: str | int | None = None) -> int:
    """Return the memory limit of runs in bytes.

    `amount` is a number of bytes or a text such as `4 GB`; the default is `DEFAULT_SHARE` of the
    free memory.
    """
    if amount is None:
        return int(DEFAULT_SHARE * free())
    if not isinstance(amount, str):
        check_whole("memory", amount)
        if amount < 1:
            raise ScenarioError(f"memory: must be at least 1 byte, not {amount}")
        return amount
    try:
        return parse_memory(amount)
    except ValueError:
        units = ", ".join(MEMORY_UNITS)
        message = f'--memory {amount}: expected an amount such as "4 GB" ({units})'
        raise ScenarioError(message) from None


def free() -> int:
    """Return the number of bytes that this process can still allocate."""
    system = psutil.virtual_memory().available
    return min([system, *_free_in_control_group(), *_free_address_space()])


def resident() -> int:
    """Return the resident set size of this process in bytes."""
    return int(psutil.Process().memory_info().rss)


@contextlib.contextmanager
def guard(memory: int, stop: Callable[[str], None]) -> Iterator[None]:
    """Call `stop` with a reason once this process has grown by `memory` bytes."""
    size_before, ended = resident(), threading.Event()

    def watch() -> None:
        while not ended.wait(POLL_INTERVAL_S):
            growth = resident() - size_before
            if growth > memory:
                used, limit = format_memory(growth), format_memory(memory)
                stop(f"out of memory: {used} used, the limit is {limit}")
                return

    thread = threading.Thread(target=watch, name="memory guard", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _free_in_control_group() -> list[int]:
    """Return the free bytes of the control group, such as a container's, if it has a limit."""
    groups = Path("/sys/fs/cgroup")
    names = (
        ("memory.max", "memory.current"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
    )
    free_bytes = []
    for limit, usage in names:
        with contextlib.suppress(OSError, ValueError):
            free_bytes.append(int((groups / limit).read_text()) - int((groups / usage).read_text()))
    return [max(0, amount) for amount in free_bytes]


def _free_address_space() -> list[int]:
    """Return the unused bytes of the address space of this process, if it is limited."""
    if sys.platform != "linux":
        return []
    process = psutil.Process()
    limit, _ = process.rlimit(psutil.RLIMIT_AS)
    return [] if limit == psutil.RLIM_INFINITY else [max(0, limit - process.memory_info().vms)]
