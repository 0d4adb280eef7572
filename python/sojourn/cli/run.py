"""`sojourn run`: one run and its summary."""

from sojourn.cli.shared import Memory, Out, ScenarioFile, Threads, checked_directory, prefix_errors


def run(
    path: ScenarioFile, out: Out = None, threads: Threads = None, memory: Memory = None
) -> None:
    """Run a scenario, and print a summary."""
    from sojourn.runs.runner import run_many
    from sojourn.scenario import reading
    from sojourn.show import console
    from sojourn.show.result import result_tables

    with prefix_errors(path):
        scenario = reading.read(path)
        if out is not None:
            checked_directory(out)
        result = run_many([scenario], threads=threads, memory=memory, what=path.name)[0]
    console.console.print(result_tables(result))
    if out is not None:
        result.write(out)
        print(f"written to {out}")
