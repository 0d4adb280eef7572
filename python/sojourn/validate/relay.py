"""The relay: a program that runs flows over the TCP of this machine's kernel (`crates/relay`).

It reads what to run as JSON, tells in lines of JSON how far it is, and ends with what became of it.
What it makes, namespaces and devices, ends with it.
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
from sojourn.base.progress import RunProgress, progress_display
from sojourn.runs.processes import ProcessControl

NAME = "sojourn-relay"

PRIORITY = 50
"""Its real-time priority, where the system allows one: it is late less often."""


def program() -> Path:
    """Return where the relay is; in a checkout it is built if its source is newer.

    An installed Sojourn looks beside its Python, and on the PATH. Raises `ScenarioError` where
    there is none.
    """
    root = paths.checkout()
    if root is not None:
        return _built(root)
    folders = [str(Path(sys.executable).parent), os.environ.get("PATH", "")]
    found = shutil.which(NAME, path=os.pathsep.join(folders))
    if found is None:
        how = "in a checkout, `cargo install --locked --path crates/relay` puts it there"
        raise ScenarioError(f"needs the program `{NAME}`, which is not on the PATH ({how})")
    return Path(found)


def _built(root: Path) -> Path:
    target = Path(os.environ.get("CARGO_TARGET_DIR") or root / "target").absolute()
    made = target / "release" / NAME
    if not made.exists():
        print(f"{NAME}: is built, once; that takes a minute", file=sys.stderr)
    command = ["cargo", "build", "--quiet", "--locked", "--release", "--target-dir", str(target)]
    try:
        subprocess.run(command, cwd=root / "crates" / "relay", check=True)
    except FileNotFoundError:
        raise ScenarioError(f"{NAME}: cannot be built without `cargo`") from None
    except subprocess.CalledProcessError:
        raise ScenarioError(f"{NAME}: cannot be built; why, stands above") from None
    return made


def run(relay: Path, job: Mapping[str, Any], what: str) -> dict[str, Any]:
    """Run a job, which takes as long as its flows do, and return what became of it."""
    watch = ProcessControl()
    needs = {"flows": len(job["flows"]), "packet_hops": 0.0, "limit_s": job["limit_s"]}
    said: dict[str, Any] = {}
    with _started(relay) as process, progress_display([RunProgress(needs, watch)], what) as show:
        asked, answers, errors = process.stdin, process.stdout, process.stderr
        assert asked is not None
        assert answers is not None
        assert errors is not None
        with contextlib.suppress(BrokenPipeError):  # it says itself why it has ended
            json.dump(job, asked)
            asked.close()
        for line in answers:
            said = json.loads(line)
            if "flows" not in said:
                watch.last_progress = said["now_s"], said["finished"], 0
                show()
        why = errors.read() or f"{NAME} was stopped"
    if process.returncode or "flows" not in said:
        raise ScenarioError(f"this machine cannot run it: {why}")
    return said


@contextlib.contextmanager
def _started(relay: Path) -> Iterator[subprocess.Popen[str]]:
    """Start the relay, with real-time priority if the system allows it, and leave none behind."""
    pipe = subprocess.PIPE
    with subprocess.Popen([relay], text=True, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        try:
            with contextlib.suppress(OSError):
                os.sched_setscheduler(process.pid, os.SCHED_FIFO, os.sched_param(PRIORITY))
            yield process
        except BaseException:
            process.kill()
            raise
