"""`sojourn run`."""

from sojourn.cli.shared import Memory, Out, ScenarioFile, Threads, about, checked_out
from sojourn.scenario import reading


def run(
    path: ScenarioFile, out: Out = None, threads: Threads = None, memory: Memory = None
) -> None:
    """Run a scenario; print a summary, and write its results."""
    from sojourn.runs.runner import run_many
    from sojourn.show import console
    from sojourn.show.result import result_tables

    with about(path):
        given = reading.read(path)
        if out is not None:
            checked_out(out)
        result = run_many([given], threads=threads, memory=memory, what=path.name)[0]
    console.console.print(result_tables(result))
    if out is not None:
        result.write(out)
        print(f"written to {out}")
