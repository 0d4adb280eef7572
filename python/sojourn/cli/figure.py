"""`sojourn figure`, and `sojourn report` for its figures."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sojourn._core import ScenarioError
from sojourn.cli import completion
from sojourn.cli.shared import (
    Cluster,
    Fresh,
    Memory,
    Out,
    Threads,
    checked_directory,
    prefix_errors,
    run_options,
)

if TYPE_CHECKING:
    from concurrent.futures import Future

    from sojourn.figures.figure import Figure, FigureResult

Scale = Annotated[
    str, typer.Option(help="Scale: smoke, quick or paper.", autocompletion=completion.scales)
]


def figure(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="ID",
            help="Figures, papers, or `all`.",
            autocompletion=completion.figures,
        ),
    ],
    scale: Scale = "quick",
    out: Out = None,
    threads: Threads = None,
    cluster: Cluster = None,
    memory: Memory = None,
    fresh: Fresh = False,
    record: Annotated[bool, typer.Option(help="Record the verdicts in the checkout.")] = False,
    plan: Annotated[
        bool, typer.Option("--plan", help="Only print the expected run time and size.")
    ] = False,
    show_tables: Annotated[
        bool,
        typer.Option("--tables", help="Also print each figure's values, and all claims."),
    ] = False,
) -> None:
    """Reproduce figures: run, draw, and judge the claims.

    Example: `sojourn figure pfabric13 --scale quick`
    """
    from sojourn.base.messages import did_you_mean
    from sojourn.figures import discovery, recorded, tables
    from sojourn.figures.figure import SEEDS
    from sojourn.show import console

    if scale not in SEEDS:
        hint = did_you_mean(scale, SEEDS)
        raise ScenarioError(f"--scale {scale}: expected one of {', '.join(SEEDS)}{hint}")
    if plan and (record or show_tables or out is not None):
        raise ScenarioError("--plan: cannot be combined with --record, --tables or --out")
    chosen = discovery.choose(discovery.discover(), names)
    if record:
        _check_record(chosen)
    out = _directory(scale) if out is None else checked_directory(out)
    options = run_options(threads, cluster, memory, fresh)
    if plan or scale == "paper":
        _print_plan(chosen, scale, options["cache"])
    if plan:
        return
    figures = []
    for made_figure in _make(chosen, scale, out, **options):
        figures.append(made_figure)
        print(tables.figure_line(made_figure), flush=True)
        if show_tables:
            _print_values(made_figure, out)
    if show_tables or len(figures) == 1:
        console.console.print(tables.claim_table(figures))
    print("", *recorded.tally_lines(claim for item in figures for claim in item.claims), sep="\n")
    if noted := [item.id for item in figures if item.notes]:
        print(f"not all values have converged at this scale: {', '.join(noted)}")
    print(f"pictures and tables: {out}; `sojourn report` makes a page of them")
    if record:
        recorded.write_records(figures)


def report(
    scale: Scale = "quick",
    figures: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of the figures.")
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="PAGE", help="HTML file to write.")] = None,
) -> None:
    """Write one self-contained HTML page with the figures made so far.

    Pictures, and tables of up to 100 KB, are in the page. Links to the files of figures are
    relative, so move the page together with their folder.

    Example: `sojourn report --scale quick --out report.html`
    """
    from sojourn.figures.html_report import write_report

    print(f"written to {write_report(figures or _directory(scale), out)}")


def _directory(scale: str) -> Path:
    return Path("results") / "figures" / scale


def _check_record(figures: Iterable["Figure"]) -> None:
    """Raise `ScenarioError` unless all figures lie in this checkout.

    Verdicts are not written to an installed package.
    """
    from sojourn.base import paths

    if paths.checkout() is None:
        raise ScenarioError("--record: needs a checkout of Sojourn")
    for file in (item.path for item in figures):
        if file is not None and not file.resolve().is_relative_to(paths.PACKAGE):
            raise ScenarioError(f"--record: {file} does not ship with Sojourn")


def _print_plan(figures: Iterable["Figure"], scale: str, cache: Path | None) -> None:
    from sojourn.figures import plan, tables
    from sojourn.show import console

    plans = plan.plan_figures(figures, scale, cache)
    console.console.print(tables.plan_table(plans, plan.hops_per_cpu_second()))


def _make(
    figures: Iterable["Figure"], scale: str, out: Path, **options: Any
) -> Iterator["FigureResult"]:
    """Make figures in order: each is reduced, drawn and judged during the next figure's runs."""
    from concurrent.futures import ThreadPoolExecutor

    def finish(item: "Figure", reduce: Callable[[Path], "FigureResult"]) -> "FigureResult":
        with prefix_errors(item.path or Path(item.id)):
            return reduce(out)

    with ThreadPoolExecutor(1) as pool:
        previous: Future[FigureResult] | None = None
        for item in figures:
            try:
                with prefix_errors(item.path or Path(item.id)):
                    reduce = item.simulate(scale, **options)
            finally:
                # The figure drawn meanwhile is shown even if these runs fail.
                if previous is not None:
                    yield previous.result()
            previous = pool.submit(finish, item, reduce)
        if previous is not None:
            yield previous.result()


def _print_values(made: "FigureResult", out: Path) -> None:
    from sojourn.figures import tables
    from sojourn.show import console

    table = tables.figure_table(made.table(out), f"{made.id}: {made.title}")
    if table is not None:
        console.console.print(table)
    for note in made.notes:
        print(f"warning: {note}", flush=True)
