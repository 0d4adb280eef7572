"""`sojourn validate`: replays of runs of other simulators."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from sojourn._core import ScenarioError
from sojourn.cli import completion
from sojourn.cli.shared import Cluster, Fresh, Memory, Out, Threads, output_directory, run_options

SCALE = "scale"
"""Name of the comparison with whole networks, beside the folders of cases."""


def validate(
    cases: Annotated[
        str,
        typer.Argument(
            metavar="CASES",
            help="`hpcc`, `htsim`, `linux`, `ns2`, `phost`, `yaps`, or a folder of cases; "
            "`scale` compares folded networks with whole ones.",
            autocompletion=completion.cases,
        ),
    ],
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="CASE[.RUN]", help="Case or run to replay; may be repeated."),
    ] = None,
    quick: Annotated[
        bool, typer.Option(help="Replay short runs only, and compare flow by flow.")
    ] = False,
    ablate: Annotated[
        bool,
        typer.Option(help="Remove one mechanism at a time, as the folder lists them, and compare."),
    ] = False,
    out: Out = None,
    threads: Threads = None,
    cluster: Cluster = None,
    memory: Memory = None,
    fresh: Fresh = False,
    record: Annotated[bool, typer.Option(help="Write the tables to docs/validation.md.")] = False,
    truth: Annotated[
        bool, typer.Option("--truth", help="Run missing whole networks of `scale`, and store them.")
    ] = False,
) -> None:
    """Replay the runs of another simulator, and compare the results.

    Example: `sojourn validate ns2 --quick`
    """
    from sojourn.show import console
    from sojourn.validate import ablations, tables
    from sojourn.validate import record as record_module
    from sojourn.validate import replay as validation
    from sojourn.validate.cases import find_cases, read_cases, simulator

    if cases == SCALE:
        if quick or ablate:
            raise ScenarioError(f"--{'quick' if quick else 'ablate'}: is not for {SCALE}")
        _scale(only or (), out, run_options(threads, cluster, memory, fresh), record, truth)
        return
    if truth:
        raise ScenarioError(f"--truth: is for {SCALE} only")
    folder = find_cases(cases, others=[SCALE])
    if (record or ablate) and (quick or only):
        raise ScenarioError(
            f"--{'record' if record else 'ablate'}: cannot be combined with --quick or --only"
        )
    if record:
        record_module.section(folder, ablations.SECTION if ablate else "")
    other = simulator(folder)
    out = output_directory(out, "validate", folder.resolve().name)
    options = run_options(threads, cluster, memory, fresh)
    if ablate:
        without = ablations.run(ablations.read(folder), what=f"ablate {cases}", **options)
        table = ablations.rows(without, other)
        written = ablations.write(without, out)
        page = ablations.record(table, folder) if record else None
        console.show([table])
        print(f"Sojourn / {other} - 1; timeouts")
        print(f"written to {out}: {written}")
        if record:
            print(f"written to {page}")
        return
    replays = read_cases(folder, quick=quick, only=only or ())
    outcomes = validation.validate(replays, what=f"validate {cases}", **options)
    files = record_module.write(outcomes, other, out)
    page = record_module.record(outcomes, other, folder) if record else None
    console.show(tables.all_tables(outcomes, columns=console.console.width // 42))
    print(f"Sojourn / {other} (difference ± two standard errors)")
    print(f"written to {out}: {', '.join(files)}")
    if record:
        print(f"written to {page}")


def _scale(
    only: Sequence[str], out: Path | None, options: dict[str, Any], record: bool, truth: bool
) -> None:
    """Compare answers from samples and laws with whole runs."""
    from sojourn.base import files
    from sojourn.show import console
    from sojourn.validate import record as record_module
    from sojourn.validate import scale

    chosen = scale.choose(only)
    if truth:
        if record or out is not None:
            raise ScenarioError("--truth: cannot be combined with --record or --out")
        file = scale.make_truths(chosen, **options)
        print(f"written to {file}" if file else "all truths are current")
        return
    out = output_directory(out, "validate", SCALE)
    rows = scale.validate(chosen, **options)
    found = scale.tables(rows)
    file = out / "errors.csv"
    files.write_text(file, scale.as_table(rows).write_csv())
    console.show(found)
    print("error: prediction / whole run - 1 (95 % interval); with 1000 flows or more")
    print("✓, ✗: the interval is within the bound, or outside; ·: it contains the bound")
    print(f"written to {file}")
    if record:
        print(f"written to {record_module.record_tables(found, scale.folder())}")
    if any(scale.verdict(goal) == "not held" for goal in scale.goals(rows).values()):
        raise typer.Exit(1)
