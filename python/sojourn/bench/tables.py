"""Tables of `sojourn bench`."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from sojourn.base.units import format_size
from sojourn.show.console import rich_table


def bench_table(measurements: Sequence[Mapping[str, Any]]) -> RenderableType:
    """Return a table of measurements on one thread, and the descriptions of the scenarios."""
    columns = (
        "engine",
        "CPU s",
        "Mhops / CPU s",
        "ns / hop",
        "events / hop",
        "peak",
        "before",
        "live flow",
        "idle flow",
    )
    table = rich_table("scenario", *columns)
    for row in measurements:
        has_packets = "packet_hops" in row
        per_flow = [row.get("bytes_per_live_flow"), row.get("bytes_per_idle_flow")]
        table.add_row(
            row["name"],
            row["engine"] or "-",
            f"{row['cpu_seconds']:.2f}",
            f"{row['packet_hops_per_cpu_second'] / 1e6:.2f}" if has_packets else "-",
            f"{row['ns_per_packet_hop']:.1f}" if has_packets else "-",
            f"{row['events_per_packet_hop']:.3f}" if has_packets else "-",
            format_size(row["peak_memory_bytes"]),
            format_size(row["memory_before_bytes"]),
            *("-" if amount is None else format_size(amount) for amount in per_flow),
        )
    return Group(table, *(Text(row["about"], style="dim") for row in measurements))


def threads_table(measurements: Sequence[Mapping[str, Any]]) -> RenderableType:
    """Return a table of measurements on several threads, and the scenarios' descriptions."""
    columns = (
        "engine",
        "threads",
        "wall s",
        "on one thread",
        "speed-up",
        "CPU s",
        "Mhops / s",
        "peak",
        "before",
    )
    table = rich_table("scenario", *columns)
    for row in measurements:
        speed = row.get("packet_hops_per_second")
        table.add_row(
            row["name"],
            row["engine"] or "-",
            f"{row['threads']}",
            f"{row['wall_seconds']:.2f}",
            f"{row['wall_seconds_on_one_thread']:.2f}",
            f"{row['speed_up']:.2f}",
            f"{row['cpu_seconds']:.2f}",
            "-" if speed is None else f"{speed / 1e6:.2f}",
            format_size(row["peak_memory_bytes"]),
            format_size(row["memory_before_bytes"]),
        )
    return Group(table, *(Text(row["about"], style="dim") for row in measurements))
