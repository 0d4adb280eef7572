"""Interface to the relay, a program that runs flows over the TCP of the kernel (`crates/relay`).

The relay reads a job as JSON, and writes lines of JSON: its progress, and finally the outcome. Its
network namespaces and devices end with the process.
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sojourn._core import ScenarioError
from sojourn.base import paths
from sojourn.base.progress import Report, RunProgress, progress_display
from sojourn.runs.processes import ProcessControl

NAME = "sojourn-relay"

PRIORITY = 50
"""Real-time priority of the relay, if the system permits it; it reduces lateness."""


def program() -> Path:
    """Return the path of the relay; in a checkout, build it if its source is newer.

    An installed Sojourn searches the folder of its Python, and the PATH. Raises `ScenarioError` if
    the relay is missing, or cannot be built.
    """
    root = paths.checkout()
    if root is not None:
        return _build(root)
    folders = [str(Path(sys.executable).parent), os.environ.get("PATH", "")]
    file = shutil.which(NAME, path=os.pathsep.join(folders))
    if file is None:
        hint = "in a checkout, `cargo install --locked --path crates/relay` installs it"
        raise ScenarioError(f"missing program `{NAME}` on the PATH ({hint})")
    return Path(file)


def _build(root: Path) -> Path:
    target = Path(os.environ.get("CARGO_TARGET_DIR") or root / "target").absolute()
    file = target / "release" / NAME
    if not file.exists():
        print(f"building {NAME}, which takes about a minute", file=sys.stderr)
    command = ["cargo", "build", "--quiet", "--locked", "--release", "--target-dir", str(target)]
    try:
        subprocess.run(command, cwd=root / "crates" / "relay", check=True)
    except FileNotFoundError:
        raise ScenarioError(f"{NAME}: cannot be built without `cargo`") from None
    except subprocess.CalledProcessError:
        raise ScenarioError(f"{NAME}: the build failed; see the errors above") from None
    return file


def run(relay: Path, job: Mapping[str, Any], what: str) -> dict[str, Any]:
    """Run a job in real time; return its outcome.

    Raises `ScenarioError` with the relay's error if the job fails.
    """
    control = ProcessControl()
    needs = {"flows": len(job["flows"]), "packet_hops": 0.0, "limit_s": job["limit_s"]}
    report: dict[str, Any] = {}
    with _started(relay) as process, progress_display([RunProgress(needs, control)], what) as show:
        job_input, reports, errors = process.stdin, process.stdout, process.stderr
        assert job_input is not None
        assert reports is not None
        assert errors is not None
        with contextlib.suppress(BrokenPipeError):  # the reason is on the error output
            json.dump(job, job_input)
            job_input.close()
        for line in reports:
            report = json.loads(line)
            if "flows" not in report:
                control.last_progress = Report(now_s=report["now_s"], ended=report["finished"])
                show()
        reason = errors.read() or f"{NAME} was stopped"
    if process.returncode or "flows" not in report:
        raise ScenarioError(f"the relay failed: {reason}")
    return report


@contextlib.contextmanager
def _started(relay: Path) -> Iterator[subprocess.Popen[str]]:
    """Start the relay, with real-time priority if possible; kill it on an exception."""
    pipe = subprocess.PIPE
    with subprocess.Popen([relay], text=True, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        try:
            with contextlib.suppress(OSError):
                os.sched_setscheduler(process.pid, os.SCHED_FIFO, os.sched_param(PRIORITY))
            yield process
        except BaseException:
            process.kill()
            raise
