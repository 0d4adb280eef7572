"""The command line: `sojourn run`, `compare`, `figure`, `report`, `parts` and the rest.

What a user did wrong is told in one line on the error output, with exit status 2, before anything
is written.
"""

import contextlib
import io
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sojourn import _core, completion, controllers, files, places, scenario, wording
from sojourn._core import ScenarioError
from sojourn.cache import default_cache
from sojourn.cluster import ClusterError
from sojourn.scenario import FileError

if TYPE_CHECKING:
    from sojourn.figure import Figure, Made
    from sojourn.results import Run

INTERRUPTED = 130
"""The exit status after Ctrl-C, as shells have it."""

MOST_SIGNS = 2000
"""How long a message may be; what was given may be longer."""

app = typer.Typer(
    name="sojourn",
    help="A laboratory for congestion control, judged by flow completion time.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

ScenarioFile = Annotated[Path, typer.Argument(metavar="SCENARIO", help="A scenario in TOML.")]
Out = Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Where to write results.")]
Threads = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=_core.MOST_THREADS,
        help="Runs at a time; else all cores. One large run uses them too.",
    ),
]
Cluster = Annotated[
    str | None, typer.Option(metavar="ADDRESS", help="Run on a Dask cluster, as tcp://HOST:PORT.")
]
Memory = Annotated[
    str | None,
    typer.Option(
        metavar="AMOUNT", help="What all runs may take, as `4 GB`; else most of what is free."
    ),
]
ScaleName = Annotated[
    str, typer.Option(help="smoke, quick or paper.", autocompletion=completion.scales)
]


@dataclass
class _Wanted:
    """What the options of the command itself ask for."""

    traceback: bool = False


_wanted = _Wanted()


def main() -> None:
    """Run the command line, and exit with its status."""
    # Names of files may hold bytes, and texts signs, that the terminal's encoding has not.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    sys.exit(invoke(sys.argv[1:]))


def invoke(arguments: list[str]) -> int:
    """Run a command line; return its exit status."""
    message, status = "", 2
    try:
        status = int(app(arguments or ["--help"], prog_name="sojourn", standalone_mode=False) or 0)
    except KeyboardInterrupt:
        status = INTERRUPTED
    except SystemExit as done:  # what completes a line in the shell ends by itself
        status = int(done.code or 0)
    except ScenarioError as error:
        message = str(error)
        if _wanted.traceback:
            print(*getattr(error, "__notes__", ()), sep="\n", file=sys.stderr)
    except OSError as error:
        message = ": ".join(str(part) for part in (error.filename, error.strerror or error) if part)
    except typer.TyperException as error:
        message = getattr(error, "format_message", lambda: "")()
    if status == INTERRUPTED:
        message = "interrupted; what has finished is kept"
    if message:
        print(f"sojourn: {_one_line(message)}", file=sys.stderr)
    return status


def _one_line(message: str) -> str:
    """Return a message without what would end the line, move the cursor or fill the screen."""
    line = "".join(sign if sign.isprintable() else "�" for sign in " ".join(message.split()))
    half = MOST_SIGNS // 2
    return line if len(line) <= MOST_SIGNS else f"{line[:half]} … {line[-half:]}"


@contextlib.contextmanager
def _about(path: Path) -> Iterator[None]:
    """Name the scenario's file in what goes wrong with the scenario."""
    try:
        yield
    except (FileError, ClusterError):
        raise
    except ScenarioError as error:
        told = FileError(f"{path}: {error}")
        for note in getattr(error, "__notes__", ()):
            told.add_note(note)
        raise told from None


def _checked_out(out: Path | None) -> None:
    """Refuse a place for results before hours are spent on them."""
    if out is None:
        return
    if os.path.lexists(out) and not out.is_dir():
        raise FileError(f"{out}: is not a directory")
    place = out
    while not os.path.lexists(place):
        place = place.parent
    if not (place.is_dir() and os.access(place, os.W_OK | os.X_OK)):
        raise FileError(
            f"{out}: cannot be made: {place.absolute()} is no directory that can be written to"
        )


def _checked_record(sources: Iterable[Path | None]) -> None:
    """Refuse to record what is not of this checkout: an installed package is not written to."""
    if places.checkout() is None:
        raise ScenarioError("--record: keeps what ships with Sojourn, and so wants its checkout")
    for file in sources:
        if file is not None and not file.resolve().is_relative_to(places.PACKAGE):
            raise ScenarioError(f"--record: {file} does not ship with Sojourn")


def _version(wanted: bool) -> None:
    if wanted:
        print(f"sojourn {_core.VERSION} (source {_core.SOURCE_HASH[:12]})")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
    traceback: Annotated[
        bool,
        typer.Option("--traceback", help="Show the way to an error in a controller of your own."),
    ] = False,
) -> None:
    """Take the options of the command itself."""
    _wanted.traceback = traceback


@app.command()
def run(
    path: ScenarioFile, out: Out = None, threads: Threads = None, memory: Memory = None
) -> None:
    """Run a scenario; print a summary, and write its results."""
    from sojourn import screen
    from sojourn.run import run_many

    with _about(path):
        given = scenario.read(path)
        _checked_out(out)
        result = run_many([given], threads=threads, memory=memory, what=path.name)[0]
    screen.console.print(screen.result_tables(result))
    if out is not None:
        result.write(out)
        print(f"written to {out}")


@app.command()
def compare(
    path: ScenarioFile,
    vary: Annotated[
        list[str], typer.Option(metavar="NAME=V1,V2", help="Values to take; may be repeated.")
    ],
    seeds: Annotated[int, typer.Option(min=1, help="Runs of each combination.")] = 1,
    median: Annotated[
        bool, typer.Option("--median", help="Medians over seeds, which a heavy tail leaves alone.")
    ] = False,
    against: Annotated[
        str | None,
        typer.Option(metavar="VALUE", help="Of the first variation, what the others are held to."),
    ] = None,
    account: Annotated[
        bool, typer.Option("--account", help="Say where times and differences come from.")
    ] = False,
    out: Out = None,
    threads: Threads = None,
    cluster: Cluster = None,
    memory: Memory = None,
    fresh: Annotated[bool, typer.Option(help="Run again what is known.")] = False,
) -> None:
    """Run the product of variations; print and draw it, and each scheme against the first."""
    from sojourn import accounts, pairs, pairs_page, screen
    from sojourn import compare as comparison
    from sojourn import explain as page

    with _about(path):
        base = scenario.parse(path)
        variations = scenario.parse_variations(vary)
        base = scenario.with_files(base, path.parent)
        out = out or Path("results") / "compare" / path.stem
        _checked_out(out)
        first = next(iter(variations.values()))
        reference = pairs.reference_of(scenario.labels_of(first), against)
        options: dict[str, Any] = {"cluster": cluster, "threads": threads, "cache": _cache(fresh)}
        options |= {"memory": memory, "seeds": seeds, "median": median, "what": path.name}
        options |= {"account": account}
        table, runs = comparison.compare(base, variations, **options)
    screen.console.print(*screen.comparison_tables(table), sep="\n")
    for line in screen.comparison_notes(table, runs, median=median):
        print(line)
    by = next(iter(runs[0].labels))
    paired = pairs.ratios(runs, by=by, against=against)
    for rows in pairs_page.tables(paired):
        screen.console.print(screen.text_table(rows))
    differences = None
    if account:
        _, parts = comparison.divided(table)
        differences = accounts.differences(runs, by, against)
        divided = {"where the time went": parts, f"more than under {reference}": differences}
        for words, parts in divided.items():
            for rows in page.shown(parts, comparison.labels(table), screen.spent, f"{words}, "):
                screen.console.print(screen.text_table(rows))
    for line in (*pairs_page.sentences(paired, by, differences), *pairs_page.notes(paired, by)):
        print(line)
    files.write_text(out / "comparison.csv", table.write_csv())
    comparison.draw(table, out / "comparison")
    written = ["comparison.csv", "comparison.svg", "comparison.png"]
    if not paired.is_empty():
        files.write_text(out / "pairs.csv", paired.write_csv())
        pairs_page.draw(paired, by, out / "pairs")
        written += ["pairs.csv", "pairs.svg", "pairs.png"]
    if differences is not None and not differences.is_empty():
        files.write_text(out / "differences.csv", differences.write_csv())
        written.append("differences.csv")
    print(f"written to {out}: {', '.join(written)}")


@app.command()
def explain(
    path: ScenarioFile,
    vary: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=V1,V2", help="Values to take; may be repeated."),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Runs of each combination.")] = 1,
    flow: Annotated[
        int | None, typer.Option(min=0, help="Show what held this flow back, piece by piece.")
    ] = None,
    out: Out = None,
    threads: Threads = None,
    cluster: Cluster = None,
    memory: Memory = None,
    fresh: Annotated[bool, typer.Option(help="Run again what is known.")] = False,
) -> None:
    """Say why flows took as long as they did: where their time went, exactly."""
    from sojourn import accounts, calls_plot, screen
    from sojourn import compare as comparison
    from sojourn import explain as page

    with _about(path):
        variations = scenario.parse_variations(vary or ())
        base = scenario.with_files(scenario.parse(path), path.parent) | {"account": True}
        out = out or Path("results") / "explain" / path.stem
        _checked_out(out)
        options: dict[str, Any] = {"cluster": cluster, "threads": threads, "cache": _cache(fresh)}
        options |= {"memory": memory, "what": path.name}
        if flow is not None:
            base |= {"account_flows": [flow]}
        runs = comparison.run_all(base, variations, seeds, **options)
        if flow is not None:
            if any(accounts.is_ideal(run.result) for run in runs):
                raise ScenarioError(f"--flow {flow}: an ideal divides no flow's time by cause")
            _explain_flow(runs, flow, out)
            return
        table = accounts.by_size(runs)
        if table.is_empty():
            raise ScenarioError("no flow has finished: there is no time to divide")
    labels = [name for name in runs[0].labels if name != "seed"]
    for rows in page.shown(table, labels, screen.spent):
        screen.console.print(screen.text_table(rows))
    if len(runs) == 1:
        screen.console.print(screen.text_table(page.slowest(runs[0].result)))
    files.write_text(out / "account.csv", table.write_csv())
    written = ["account.csv", "account.svg", "account.png"]
    of_calls = accounts.by_call(runs)
    if not of_calls.is_empty():
        for rows in page.calls_shown(of_calls, labels, screen.spent):
            screen.console.print(screen.text_table(rows))
        files.write_text(out / "calls.csv", of_calls.write_csv())
        calls_plot.draw(of_calls, labels, screen.spent, out / "calls")
        written += ["calls.csv", "calls.svg", "calls.png"]
    if labels:
        differences = accounts.differences(runs, labels[0])
        same = not differences.is_empty() and differences["same_flows"].all()
        of = ", on the same flows" if same else ""
        print(f"more than under {runs[0].labels[labels[0]]}{of}:")
        for rows in page.shown(differences, labels, screen.spent):
            screen.console.print(screen.text_table(rows))
        files.write_text(out / "differences.csv", differences.write_csv())
        written.append("differences.csv")
    told = [] if of_calls.is_empty() else page.calls_told(of_calls, labels)
    for line in (*told, *page.sentences(runs, labels)):
        print(line)
    page.draw(runs, labels, out / "account")
    print(f"written to {out}: {', '.join(written)}")


def _explain_flow(runs: "Sequence[Run]", flow: int, out: Path) -> None:
    """Show the chain of one flow under each scheme."""
    from sojourn import explain as page
    from sojourn import screen, waterfall

    chains = waterfall.of_runs(runs, flow)
    if len(chains) == 1:
        screen.console.print(screen.text_table(page.of_flow(runs[0].result, flow)))
    for chain in chains:
        screen.console.print(screen.text_table(waterfall.table(chain, screen.duration)))
    files.write_text(out / "chain.csv", waterfall.csv(chains))
    waterfall.draw(chains, out / "chain")
    print(f"written to {out}: chain.csv, chain.svg, chain.png")


@app.command()
def tune(
    path: ScenarioFile,
    parameter: Annotated[
        list[str],
        typer.Option(
            metavar="NAME=RANGE",
            help="A range, as 0.01:1, 0.01:1:log, 10 KB:200 KB, or values; may be repeated.",
        ),
    ],
    minimise: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MEASURE", help="As `p99 slowdown of <= 100 KB`; two goals make a front."
        ),
    ] = None,
    maximise: Annotated[
        list[str] | None, typer.Option(metavar="MEASURE", help="As `utilisation`.")
    ] = None,
    subject_to: Annotated[
        list[str] | None,
        typer.Option(metavar="BOUND", help="As `utilisation >= 0.9`; may be repeated."),
    ] = None,
    trials: Annotated[int, typer.Option(min=1, help="Choices to try.")] = 100,
    seeds: Annotated[int, typer.Option(min=1, help="Runs of each, if it does well.")] = 3,
    at_once: Annotated[int, typer.Option(min=1, help="Trials that are chosen together.")] = 8,
    out: Out = None,
    threads: Threads = None,
    cluster: Cluster = None,
    memory: Memory = None,
    fresh: Annotated[bool, typer.Option(help="Begin again, and run again what is known.")] = False,
) -> None:
    """Search for the parameters that are best, and measure their gain on fresh seeds."""
    from sojourn import ranges, screen, tune_page, tune_plot
    from sojourn import tune as tuning
    from sojourn.trials import Tuned

    def tell(so_far: Tuned) -> None:
        print(f"{path.name}: {tune_page.progress(so_far)}", file=sys.stderr, flush=True)

    with _about(path):
        base = scenario.with_files(scenario.parse(path), path.parent)
        out = out or Path("results") / "tune" / path.stem
        _checked_out(out)
        options: dict[str, Any] = {"cluster": cluster, "threads": threads, "cache": _cache(fresh)}
        options |= {"memory": memory, "what": path.name, "tell": tell}
        options |= {"trials": trials, "seeds": seeds, "at_once": at_once}
        options |= {"journal": out / "trials.journal", "again": fresh}
        options |= {"minimise": minimise or (), "maximise": maximise or ()}
        options |= {"subject_to": subject_to or ()}
        tuned = tuning.search(base, ranges.parse(parameter), **options)
    screen.console.print(screen.text_table(tune_page.table(tuned)))
    for line in tune_page.sentences(tuned):
        print(line)
    with files.writing(out / "trials.parquet"):
        tuned.trials.write_parquet(out / "trials.parquet")
    tune_plot.draw(tuned, out / "tune")
    best = [file.name for file in tune_page.write_best(tuned, path, out)]
    print(f"written to {out}: {', '.join(['trials.parquet', 'tune.svg', 'tune.png', *best])}")


def _cache(fresh: bool) -> Path | None:
    return None if fresh else default_cache()


@app.command()
def figure(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="ID",
            help="Figures, papers, or `all`.",
            autocompletion=completion.figures,
        ),
    ],
    scale: ScaleName = "quick",
    out: Out = None,
    threads: Threads = None,
    cluster: Cluster = None,
    memory: Memory = None,
    fresh: Annotated[bool, typer.Option(help="Run again what is known.")] = False,
    record: Annotated[bool, typer.Option(help="Keep the verdicts, in a checkout.")] = False,
    plan: Annotated[bool, typer.Option("--plan", help="Only say what it will take.")] = False,
) -> None:
    """Make figures again: run, draw, and judge their claims."""
    from sojourn import experiments, screen, verdicts
    from sojourn.figure import SCALES

    if scale not in SCALES:
        hint = wording.did_you_mean(scale, SCALES)
        raise ScenarioError(f"--scale {scale}: expected one of {', '.join(SCALES)}{hint}")
    chosen = experiments.choose(experiments.discover(), names)
    if record:
        _checked_record(one.path for one in chosen)
    _checked_out(out)
    out = out or _figure_directory(scale)
    options: dict[str, Any] = {"cluster": cluster, "threads": threads, "cache": _cache(fresh)}
    options |= {"memory": memory}
    if plan or scale == "paper":
        _show_plan(chosen, scale, _cache(fresh))
    if plan:
        return
    made = []
    for finished in _made(chosen, scale, out, **options):
        made.append(finished)
        table = screen.figure_table(finished.table(out), f"{finished.id}: {finished.title}")
        if table is not None:
            screen.console.print(table)
        print(f"{out / finished.id}.svg  {finished.title} ({finished.seconds} s)", flush=True)
        for note in finished.notes:
            print(f"warning: {note}", flush=True)
    screen.console.print(screen.claim_table(made))
    print(verdicts.in_words(claim for one in made for claim in one.claims))
    if record:
        verdicts.keep(made)


def _show_plan(figures: Iterable["Figure"], scale: str, cache: Path | None) -> None:
    from sojourn import plan, screen

    made = plan.plans(figures, scale, cache)
    screen.console.print(screen.plan_table(made, plan.hops_per_cpu_second()))


def _made(figures: Iterable["Figure"], scale: str, out: Path, **options: Any) -> Iterator["Made"]:
    """Make figures in turn: each is reduced, drawn and judged while the next one's runs go on."""

    def finish(one: "Figure", rest: Callable[[Path], "Made"]) -> "Made":
        with _about(one.path or Path(one.id)):
            return rest(out)

    with ThreadPoolExecutor(1) as pool:
        drawn: Future[Made] | None = None
        for one in figures:
            try:
                with _about(one.path or Path(one.id)):
                    rest = one.simulate(scale, **options)
            finally:
                # What was drawn meanwhile is shown also when these runs fail.
                if drawn is not None:
                    yield drawn.result()
            drawn = pool.submit(finish, one, rest)
        if drawn is not None:
            yield drawn.result()


@app.command()
def report(
    scale: ScaleName = "quick",
    figures: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where the figures were made.")
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="PAGE", help="The page to write.")] = None,
) -> None:
    """Write one HTML page with the figures that were made; it needs no network."""
    from sojourn.report import write_report

    print(f"written to {write_report(figures or _figure_directory(scale), out)}")


def _figure_directory(scale: str) -> Path:
    return Path("results") / "figures" / scale


@app.command()
def parts(
    kind: Annotated[
        str | None,
        typer.Argument(
            metavar="KIND",
            help="A family, a part, or a controller as my.py:Mine.",
            autocompletion=completion.parts,
        ),
    ] = None,
) -> None:
    """Show the parts that scenarios are made of, with every parameter."""
    from sojourn import screen

    families = scenario.parts()
    if controllers.is_name(kind):
        name = str(kind)
        text = files.read_text(Path(name.rpartition(":")[0]), files.MOST_SETTINGS)
        families, kind = {"transport": [controllers.part(name, text)]}, "transport"
    shown = screen.parts_text(families, kind)
    if not shown:
        names = [part["name"] for members in families.values() for part in members]
        hint = wording.did_you_mean(str(kind), [*families, *names])
        raise ScenarioError(f"{kind}: there is no such family or part{hint}")
    screen.console.print(*shown, sep="\n")


@app.command()
def schema(
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="The file to write.")] = None,
) -> None:
    """Show a JSON schema of scenarios, by which editors complete and check them."""
    text = json.dumps(scenario.schema(), indent=1, ensure_ascii=False) + "\n"
    if out is None:
        sys.stdout.write(text)
        sys.stdout.flush()
    else:
        files.write_text(out, text)


@app.command()
def examples(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="The one to copy.", autocompletion=completion.examples),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where to copy it; else NAME.toml.")
    ] = None,
) -> None:
    """List the examples, or copy one and the files that it names."""
    from sojourn import first_steps

    if name is not None:
        print(f"written: {', '.join(map(str, first_steps.copy_example(name, out)))}")
    elif out is not None:
        raise ScenarioError("--out: wants the name of an example")
    else:
        known = first_steps.examples()
        width = max(map(len, known))
        for each, file in known.items():
            print(f"{each:{width}}  {first_steps.about(file)}")
        print("`sojourn examples NAME` copies one")


@app.command()
def new(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="The file to write.")] = Path(
        "scenario.toml"
    ),
) -> None:
    """Write a first scenario, or a first controller in Python as FILE.py, to change."""
    from sojourn import first_steps

    print(f"written: {path}; now `{first_steps.write_first(path)}`")


@app.command()
def check(path: ScenarioFile) -> None:
    """Check a scenario, and show it as JSON with every default filled in."""
    with _about(path):
        shown = scenario.check(scenario.read(path))
    print(json.dumps(shown, indent=2, ensure_ascii=False))


@app.command()
def trace(
    path: ScenarioFile,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="The CSV file to write.")] = None,
) -> None:
    """Write the workload of a scenario as CSV, which a workload of kind `trace` replays."""
    from sojourn.results import flow_table

    with _about(path):
        flows = flow_table(scenario.trace(scenario.read(path)))
    columns = ("start_s", "source", "target", "size_bytes", "class", "deadline_s")
    # Twelve digits are picoseconds: the core's clock, exactly.
    text = flows.select(columns).write_csv(float_precision=12)
    if out is None:
        sys.stdout.write(text)
        sys.stdout.flush()
    else:
        files.write_text(out, text)


@app.command()
def validate(
    cases: Annotated[
        str,
        typer.Argument(
            metavar="CASES",
            help="`ns2`, `yaps`, `linux`, or a folder of your own.",
            autocompletion=completion.cases,
        ),
    ],
    only: Annotated[
        list[str] | None, typer.Option(metavar="CASE[.RUN]", help="What to run; may be repeated.")
    ] = None,
    quick: Annotated[bool, typer.Option(help="Run short, and compare flow by flow.")] = False,
    out: Out = None,
    threads: Threads = None,
    cluster: Cluster = None,
    memory: Memory = None,
    fresh: Annotated[bool, typer.Option(help="Run again what is known.")] = False,
    record: Annotated[bool, typer.Option(help="Write the tables to docs/validation.md.")] = False,
) -> None:
    """Replay what another simulator ran, and compare."""
    from sojourn import screen, validation_page
    from sojourn import validate as validation
    from sojourn.cases import find_cases, read_cases, simulator

    folder = find_cases(cases)
    if record and (quick or only):
        raise ScenarioError("--record: wants all runs at full length")
    if record:
        validation_page.section(folder)
    replays = read_cases(folder, quick=quick, only=only or ())
    other = simulator(folder)
    out = out or Path("results") / "validate" / folder.resolve().name
    _checked_out(out)
    options: dict[str, Any] = {"cluster": cluster, "threads": threads, "cache": _cache(fresh)}
    options |= {"memory": memory}
    outcomes = validation.validate(replays, what=f"validate {cases}", **options)
    for rows in validation_page.every_table(outcomes, abreast=screen.console.width // 42):
        screen.console.print(screen.text_table(rows))
    print(f"ours / {other} (difference ± two standard errors)")
    tables = {
        "bins.csv": validation.bins_table(outcomes),
        "totals.csv": validation.totals_table(outcomes),
        "shares.csv": validation.shares_table(outcomes),
    }
    tables = {name: table for name, table in tables.items() if not table.is_empty()}
    for name, table in tables.items():
        files.write_text(out / name, table.write_csv())
    drawn = validation_page.draw(outcomes, other, out / "validation")
    print(f"written to {out}: {', '.join([*tables, *drawn])}")
    if record:
        print(f"written to {validation_page.record(outcomes, other, folder)}")


@app.command()
def real(
    path: ScenarioFile,
    repeats: Annotated[
        int, typer.Option(min=1, help="Runs at most, until the relay is in time in one.")
    ] = 3,
    out: Out = None,
) -> None:
    """Run a scenario's flows over the TCP of this machine's kernel, and compare."""
    from sojourn import real as kernel
    from sojourn import real_page, screen

    with _about(path):
        given = scenario.read(path)
        out = out or Path("results") / "real" / path.stem
        _checked_out(out)
        measured = kernel.measure(given, repeats=repeats, what=path.name)
    for rows in real_page.tables(measured):
        screen.console.print(screen.text_table(rows))
    for line in real_page.sentences(measured):
        print(line)
    print(f"written to {out}: {', '.join(real_page.write(measured, out))}")


@app.command()
def bench(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME",
            help="W1 to W4, W5-TCP, W5-RCP, W6 to W10, W10-Reno, W14, W15, W15-few.",
            autocompletion=completion.benchmarks,
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a list of objects.")] = False,
    repeats: Annotated[int, typer.Option(min=1, help="Runs; the fastest counts.")] = 5,
    threads: Annotated[
        int,
        typer.Option(
            min=1, max=_core.MOST_THREADS, help="Threads of each run; more are compared with one."
        ),
    ] = 1,
) -> None:
    """Measure speed and memory on fixed scenarios."""
    from sojourn import bench as benchmark

    known = benchmark.SCENARIOS
    for name in names or ():
        if name not in known:
            raise ScenarioError(f"{name}: there is no such scenario (one of {', '.join(known)})")
    measured = benchmark.measure(names or known, repeats, threads)
    if as_json:
        print(json.dumps(measured, indent=2))
    else:
        from sojourn import screen

        table = screen.bench_table if threads == 1 else screen.threads_table
        screen.console.print(table(measured))


if __name__ == "__main__":
    main()
