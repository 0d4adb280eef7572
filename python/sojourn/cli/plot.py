"""`sojourn plot`: pictures of runs."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sojourn._core import ScenarioError
from sojourn.cli import completion
from sojourn.cli.shared import (
    Formats,
    Fresh,
    Memory,
    Out,
    Threads,
    output_directory,
    parse_formats,
    prefix_errors,
    split_list,
    split_names,
)

if TYPE_CHECKING:
    import polars as pl

    from sojourn.runs.results import Result, Run
    from sojourn.show.plot.run_pictures import Selection

MAX_CURVES = 4
"""Number of curves of flows without `--flow`: of the largest flows of each run."""

SAMPLES, MAX_SAMPLES = 1000, 50_000
"""Number of samples in the lifetime of the drawn flows, and the most in the whole run."""


def plot(
    path: Annotated[
        Path,
        typer.Argument(metavar="RESULT", help="Folder of `sojourn run --out`, or scenario file."),
    ],
    what: Annotated[
        str | None,
        typer.Option(
            metavar="WHAT,…",
            help="Pictures: queue, throughput, link_throughput, window, rate, rtt, flows, cdf, "
            "topology (default: all that a folder has samples for, or queue, throughput, cdf and "
            "topology of a scenario).",
            autocompletion=completion.pictures,
        ),
    ] = None,
    vary: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=V1,V2", help="Draw each value of a parameter of the scenario."),
    ] = None,
    flow: Annotated[
        str | None,
        typer.Option(metavar="N,…", help="Flows (default: the largest; at most four curves)."),
    ] = None,
    link: Annotated[
        str | None, typer.Option(metavar="LINK,…", help="Links (default: the busiest).")
    ] = None,
    flow_class: Annotated[
        str | None,
        typer.Option("--class", metavar="CLASS,…", help="Classes in cdf (default: all flows)."),
    ] = None,
    formats: Formats = "svg,png",
    out: Out = None,
    threads: Threads = None,
    memory: Memory = None,
    fresh: Fresh = False,
) -> None:
    """Draw a run: time series, distributions, topology.

    A scenario is run with the samples that the pictures need.

    Example: `sojourn plot scenario.toml --what queue,cdf --format pdf`
    """
    from sojourn.cli.shared import run_options
    from sojourn.show import console
    from sojourn.show.fidelity import fidelity_lines, fidelity_title
    from sojourn.show.plot import run_pictures
    from sojourn.show.plot.frame import titled

    pictures = None if what is None else split_names("--what", what, run_pictures.PICTURES)
    suffixes = parse_formats(formats)
    chosen = run_pictures.Selection(
        list(dict.fromkeys(map(_number, split_list(flow)))),
        split_list(link),
        split_list(flow_class),
    )
    lines: list[str] = []
    with prefix_errors(path):
        out = output_directory(out, "plot", path.stem)
        if path.is_dir():
            if vary:
                raise ScenarioError("--vary: needs a scenario file, not a folder")
            runs, chosen, wanted = _read(path, chosen, pictures)
        else:
            options = run_options(threads, None, memory, fresh)
            wanted = pictures or ["queue", "throughput", "cdf", "topology"]
            runs, chosen, lines = _simulate(path, vary or [], chosen, wanted, options)
        lacks = {name: run_pictures.missing(name, runs, chosen) for name in wanted}
        if pictures is None:
            # An ideal, for example, has no queues.
            wanted = [name for name in wanted if not lacks[name]]
        for name in wanted:
            if lacks[name]:
                raise ScenarioError(f"--what {name}: {lacks[name]}")
        results = [run.result for run in runs]
        with titled(fidelity_title(results)):
            written = [
                file.name
                for name in wanted
                for file in run_pictures.draw(name, runs, chosen, out / name, suffixes)
            ]
    console.show_lines([*fidelity_lines(results), *lines])
    print(f"written to {out}: {', '.join(written)}")


def _number(name: str) -> int:
    if not name.isdecimal():
        raise ScenarioError(f"--flow {name}: expected numbers of flows, such as 0,3")
    return int(name)


def _read(
    folder: Path, chosen: "Selection", pictures: list[str] | None
) -> "tuple[list[Run], Selection, list[str]]":
    """Read a result; without a choice, choose flows, links and pictures that it has samples of."""
    import polars as pl

    from sojourn.runs.results import SUMMARY, Result, Run
    from sojourn.show.plot import run_pictures

    if not (folder / SUMMARY).exists():
        raise ScenarioError("expected a folder that `sojourn run --out` wrote, or a scenario file")
    result = Result.read(folder)
    run_pictures.check_names(result, chosen)
    has = {name: run_pictures.sampled(result, name) for name in run_pictures.QUANTITIES}
    if pictures is None:
        pictures = [*(name for name, members in has.items() if members), "cdf", "topology"]
    kinds = {name: run_pictures.QUANTITIES[name].of for name in has}
    flows = {int(member) for name in has if kinds[name] == "flow" for member in has[name]}
    links = dict.fromkeys(member for name in has if kinds[name] == "link" for member in has[name])
    chosen = chosen._replace(
        flows=chosen.flows
        or _largest(result.flows.filter(pl.col("flow").is_in(flows)))[:MAX_CURVES],
        links=chosen.links or list(links)[:MAX_CURVES],
    )
    return [Run({run_pictures.CURVE: folder.name}, result)], chosen, pictures


def _largest(flows: "pl.DataFrame") -> list[int]:
    """Return the numbers of flows from the largest on; long-lived flows are first."""
    import polars as pl

    is_long_lived = pl.col("outcome") == "long_lived"
    size = pl.max_horizontal("size_bytes", "delivered_bytes")
    ordered = flows.sort(is_long_lived, size, descending=True, maintain_order=True)
    numbers: list[int] = ordered["flow"].to_list()
    return numbers


def _simulate(
    path: Path,
    vary: list[str],
    chosen: "Selection",
    pictures: list[str],
    options: dict[str, Any],
) -> "tuple[list[Run], Selection, list[str]]":
    """Run a scenario, and again with samples if pictures need them; return lines to print, too.

    The first run determines the flows, the links and the interval of samples. Samples change no
    other result.
    """
    from sojourn.analysis import metrics
    from sojourn.runs.first_sample import flows_of_first_sample, links_of_first_sample
    from sojourn.runs.results import Run
    from sojourn.runs.runner import run_many
    from sojourn.scenario import overrides, reading
    from sojourn.scenario.fidelity import refuse_flows
    from sojourn.show.environment import environment_line
    from sojourn.show.plot import run_pictures

    variations = overrides.parse_variations(vary)
    base = reading.read(path)
    combinations = overrides.expand(base, variations)
    names = [_name(labels) or path.stem for labels, _ in combinations]
    scenarios = [scenario for _, scenario in combinations]
    over_time = [name for name in pictures if name in run_pictures.QUANTITIES]
    for scenario in scenarios if over_time else ():
        refuse_flows(scenario, f"choose `--what cdf`, not {', '.join(over_time)}")
    options |= {"what": path.name}
    results = run_many(scenarios, **options)
    first = results[0]
    run_pictures.check_names(first, chosen)
    flows = flows_of_first_sample(first)
    links = map(metrics.measured, links_of_first_sample(first.summary))
    busiest = max(links, key=lambda link: float(link.get("utilisation", 0.0)))
    chosen = chosen._replace(
        flows=chosen.flows or sorted(_largest(flows)[: max(MAX_CURVES // len(results), 1)]),
        links=chosen.links or [str(busiest["name"])],
    )
    if over_time:
        needed = _samples(results, chosen, pictures)
        scenarios = [_with_samples(scenario, needed) for scenario in scenarios]
        results = run_many(scenarios, **options)
    runs = [
        Run({run_pictures.CURVE: name}, result) for name, result in zip(names, results, strict=True)
    ]
    lines = [environment_line(first), *overrides.shared_environment_lines(base, variations)]
    return runs, chosen, lines


def _samples(
    results: "Sequence[Result]", chosen: "Selection", pictures: Sequence[str]
) -> dict[str, Any]:
    """Return the table `samples` of a scenario for pictures."""
    from sojourn.show.plot import run_pictures

    kinds = {
        run_pictures.QUANTITIES[name].of for name in pictures if name in run_pictures.QUANTITIES
    }
    simulated = max(float(result.summary["simulated_s"]) for result in results)
    begin, end = run_pictures.lifetime(results, chosen.flows)
    span = end - begin if kinds == {"flow"} else simulated
    interval = max(span / SAMPLES, simulated / MAX_SAMPLES)
    return {
        "interval": f"{max(round(interval * 1e12), 1)} ps",
        "queues": list(chosen.links),
        "links": list(chosen.links),
        "flows": list(chosen.flows),
        **({"rtt_flows": list(chosen.flows)} if "rtt" in pictures else {}),
    }


def _with_samples(scenario: Any, needed: dict[str, Any]) -> Any:
    """Return a scenario with these samples; its own interval is kept."""
    own = scenario.get("samples", {})
    own = own if isinstance(own, dict) else {}
    interval = {"interval": own["interval"]} if "interval" in own else {}
    return {**scenario, "samples": {**own, **needed, **interval}}


def _name(labels: Mapping[str, Any]) -> str:
    """Return the name of a run in a legend: strings as they are, numbers with their labels."""
    values = (
        value if isinstance(value, str) else f"{name} {value}" for name, value in labels.items()
    )
    return ", ".join(values)
