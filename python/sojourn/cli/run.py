"""`sojourn run`."""

from sojourn import scenario
from sojourn.cli.shared import Memory, Out, ScenarioFile, Threads, about, checked_out


def run(
    path: ScenarioFile, out: Out = None, threads: Threads = None, memory: Memory = None
) -> None:
    """Run a scenario; print a summary, and write its results."""
    from sojourn import screen
    from sojourn.run import run_many

    with about(path):
        given = scenario.read(path)
        if out is not None:
            checked_out(out)
        result = run_many([given], threads=threads, memory=memory, what=path.name)[0]
    screen.console.print(screen.result_tables(result))
    if out is not None:
        result.write(out)
        print(f"written to {out}")
