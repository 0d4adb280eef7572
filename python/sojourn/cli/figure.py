"""`sojourn figure` and, for the figures that it made, `sojourn report`."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sojourn._core import ScenarioError
from sojourn.base import messages, paths
from sojourn.cli import completion
from sojourn.cli.shared import Cluster, Fresh, Memory, Out, Threads, about, checked_out, run_options

if TYPE_CHECKING:
    from sojourn.figures.figure import Figure, Made

Scale = Annotated[
    str, typer.Option(help="smoke, quick or paper.", autocompletion=completion.scales)
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
    record: Annotated[bool, typer.Option(help="Keep the verdicts, in a checkout.")] = False,
    plan: Annotated[bool, typer.Option("--plan", help="Only say what it will take.")] = False,
) -> None:
    """Make figures again: run, draw, and judge their claims."""
    from sojourn.figures import discovery, recorded, tables
    from sojourn.figures.figure import SCALES
    from sojourn.show import console

    if scale not in SCALES:
        hint = messages.did_you_mean(scale, SCALES)
        raise ScenarioError(f"--scale {scale}: expected one of {', '.join(SCALES)}{hint}")
    chosen = discovery.choose(discovery.discover(), names)
    if record:
        _check_record(chosen)
    out = _directory(scale) if out is None else checked_out(out)
    options = run_options(threads, cluster, memory, fresh)
    if plan or scale == "paper":
        _show_plan(chosen, scale, options["cache"])
    if plan:
        return
    made = []
    for finished in _made(chosen, scale, out, **options):
        made.append(finished)
        _show(finished, out)
    console.console.print(tables.claim_table(made))
    print(recorded.in_words(claim for one in made for claim in one.claims))
    if record:
        recorded.keep(made)


def report(
    scale: Scale = "quick",
    figures: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where the figures were made.")
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="PAGE", help="The page to write.")] = None,
) -> None:
    """Write one HTML page with the figures that were made; it needs no network."""
    from sojourn.figures.html_report import write_report

    print(f"written to {write_report(figures or _directory(scale), out)}")


def _directory(scale: str) -> Path:
    return Path("results") / "figures" / scale


def _check_record(figures: Iterable["Figure"]) -> None:
    """Refuse to record what is not of this checkout: an installed package is not written to."""
    if paths.checkout() is None:
        raise ScenarioError("--record: keeps what ships with Sojourn, and so wants its checkout")
    for one in figures:
        if one.path is not None and not one.path.resolve().is_relative_to(paths.PACKAGE):
            raise ScenarioError(f"--record: {one.path} does not ship with Sojourn")


def _show_plan(figures: Iterable["Figure"], scale: str, cache: Path | None) -> None:
    from sojourn.figures import plan, tables
    from sojourn.show import console

    plans = plan.plans(figures, scale, cache)
    console.console.print(tables.plan_table(plans, plan.hops_per_cpu_second()))


def _made(figures: Iterable["Figure"], scale: str, out: Path, **options: Any) -> Iterator["Made"]:
    """Make figures in turn: each is reduced, drawn and judged while the next one's runs go on."""

    def finish(one: "Figure", rest: Callable[[Path], "Made"]) -> "Made":
        with about(one.path or Path(one.id)):
            return rest(out)

    with ThreadPoolExecutor(1) as pool:
        drawn: Future[Made] | None = None
        for one in figures:
            try:
                with about(one.path or Path(one.id)):
                    rest = one.simulate(scale, **options)
            finally:
                # What was drawn meanwhile is shown also when these runs fail.
                if drawn is not None:
                    yield drawn.result()
            drawn = pool.submit(finish, one, rest)
        if drawn is not None:
            yield drawn.result()


def _show(made: "Made", out: Path) -> None:
    from sojourn.figures import tables
    from sojourn.show import console

    table = tables.figure_table(made.table(out), f"{made.id}: {made.title}")
    if table is not None:
        console.console.print(table)
    print(f"{out / made.id}.svg  {made.title} ({made.seconds} s)", flush=True)
    for note in made.notes:
        print(f"warning: {note}", flush=True)
