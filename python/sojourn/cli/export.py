"""`sojourn export`: recorded flows for Wireshark, qvis and Perfetto."""

from pathlib import Path
from typing import Annotated

import typer

from sojourn._core import ScenarioError
from sojourn.cli.shared import prefix_errors


def export(
    path: Annotated[Path, typer.Argument(metavar="RESULT", help="Folder of `sojourn run --out`.")],
    pcap: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Packets as pcapng, for Wireshark and tshark."),
    ] = None,
    qlog: Annotated[
        Path | None, typer.Option(metavar="FILE", help="One flow as qlog 0.3, for qvis.")
    ] = None,
    perfetto: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Flows and links over time, for ui.perfetto.dev."),
    ] = None,
    at: Annotated[
        str | None,
        typer.Option(
            metavar="PLACE",
            help="Where pcapng has packets: a host's number, or a link in record.hops "
            "(default: the sender of each flow).",
        ),
    ] = None,
    flow: Annotated[
        int | None, typer.Option(min=0, help="Flow in qlog; the only one in pcapng.")
    ] = None,
) -> None:
    """Write the recorded flows of a run for other tools.

    A run records flows if its scenario has `account = true` and a table `record`.

    Example: `sojourn export out --pcap flows.pcapng`
    """
    from sojourn.exports import pcapng
    from sojourn.exports import perfetto as perfetto_trace
    from sojourn.exports import qlog as qlog_trace
    from sojourn.runs.results import SUMMARY, Result

    if pcap is None and qlog is None and perfetto is None:
        raise ScenarioError("expected at least one of --pcap FILE, --qlog FILE, --perfetto FILE")
    if at is not None and pcap is None:
        raise ScenarioError("--at: needs --pcap FILE")
    if qlog is not None and flow is None:
        raise ScenarioError("--qlog: needs --flow N, one recorded flow")
    if flow is not None and pcap is None and qlog is None:
        raise ScenarioError("--flow: needs --qlog FILE or --pcap FILE; Perfetto has all flows")
    with prefix_errors(path):
        if not (path / SUMMARY).exists():
            raise ScenarioError("expected a folder that `sojourn run --out` wrote")
        result = Result.read(path)
        if pcap is not None:
            _print(pcap, pcapng.write(result, pcap, at, flow))
        if qlog is not None and flow is not None:
            _print(qlog, qlog_trace.write(result, qlog, flow))
        if perfetto is not None:
            _print(perfetto, perfetto_trace.write(result, perfetto))


def _print(file: Path, notes: list[str]) -> None:
    """Print what a file contains."""
    print(f"written to {file}: {notes[0]}", *notes[1:], sep="\n")
