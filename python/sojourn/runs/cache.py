"""The cache: results in folders named after the hash of all that they depend on.

An entry is there as a whole or not at all, and believed only if it is what was written. Several
processes may share a cache: what one of them removes is never what another is at work on.
"""

import contextlib
import hashlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from filelock import FileLock

from sojourn import _core
from sojourn.base.errors import FileError
from sojourn.runs.results import Result
from sojourn.scenario.encoding import apart

DRAFT = ".draft-"
"""What the names of folders begin with that are being written."""

LOCK = ".lock"
"""Name of the file that processes lock while they put entries into their places."""

ABANDONED_S = 24 * 60 * 60
"""A draft that is older has no process: to write one takes seconds, or minutes on a slow disk."""

Simulate = Callable[[str, Sequence[str]], Result]
"""Runs a scenario given as JSON, with the texts of its files."""


def default_cache() -> Path:
    """Return where results are kept: `$SOJOURN_CACHE`, or `results/cache` here."""
    return Path(os.environ.get("SOJOURN_CACHE") or Path("results") / "cache")


def name_of(shown: Mapping[str, Any]) -> str:
    """Return the name of the result of a scenario that `check` has shown."""
    text, texts = apart(shown)
    known = hashlib.sha256(f"{_core.SOURCE_HASH}\n{text}".encode())
    for beside in texts:
        # Piece by piece, for a text may be large.
        known.update(f"\n{len(beside)}\n".encode())
        for start in range(0, len(beside), 1 << 20):
            known.update(beside[start : start + (1 << 20)].encode())
    return known.hexdigest()


def known(cache: Path, names: Iterable[str], simulate: Simulate) -> dict[str, Result]:
    """Return the results of these names that the cache has.

    What is damaged is left out, and one line says so. Where that is found out only when a table is
    read, `simulate` runs the scenario again then.
    """
    found, damaged = {}, []
    for name in names:
        directory = cache / name
        if not os.path.lexists(directory):
            continue
        try:
            found[name] = _opened(directory, simulate)
        except FileError as error:
            damaged.append(str(error))
    if damaged:
        others = f", and {len(damaged) - 1} other results" if len(damaged) > 1 else ""
        _tell(f"{damaged[0]}; this is run again{others}")
    return found


def _opened(directory: Path, simulate: Simulate | None) -> Result:
    """Return the result in an entry; `simulate` runs it again if a table turns out damaged."""

    def again(error: FileError, damaged: Result) -> None:
        if simulate is None:
            raise error
        _tell(f"{error}; this is run again")
        keep(directory, simulate(*apart(damaged.summary["scenario"])), simulate)

    result = Result.read(directory, again)
    if name_of(result.summary.get("scenario", {})) != directory.name:
        raise FileError(f"{directory}: is the result of another scenario")
    return result


def _tell(message: str) -> None:
    print(f"sojourn: {message}", file=sys.stderr)


def prepare(cache: Path) -> None:
    """Make the folder, try whether it can be written to, and clear old drafts away."""
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with _draft(cache):
            pass
        drafts = [entry for entry in os.scandir(cache) if entry.name.startswith(DRAFT)]
    except OSError as error:
        raise FileError(
            f"{cache}: no results can be kept here: {error.strerror};"
            " the variable SOJOURN_CACHE may name another folder"
        ) from None
    for draft in drafts:
        with contextlib.suppress(FileNotFoundError):  # Its process is done with it.
            if time.time() - draft.stat(follow_symlinks=False).st_mtime > ABANDONED_S:
                shutil.rmtree(draft.path, ignore_errors=True)


def keep(directory: Path, result: Result, simulate: Simulate) -> Result:
    """Write an entry in one step, also in the place of a damaged one; return it from there."""
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        with _draft(directory.parent) as draft:
            _replace(result.write(draft / "new"), directory, draft)
    except OSError as error:
        raise FileError(f"{directory}: cannot be written: {error.strerror}") from None
    return _opened(directory, simulate)


def _replace(new: Path, directory: Path, draft: Path) -> None:
    """Put a folder into its place, and what is damaged there aside."""
    with _alone(directory.parent):
        with contextlib.suppress(OSError):
            new.rename(directory)
            return
        with contextlib.suppress(FileError):
            _opened(directory, None).verify()
            return  # Another process was faster.
        with contextlib.suppress(FileNotFoundError):
            directory.rename(draft / "damaged")
        new.rename(directory)


@contextlib.contextmanager
def _alone(cache: Path) -> Iterator[None]:
    """Let one process at a time put entries into their places.

    Else what one has found damaged is, when it puts that aside, what another has put there since.
    """
    lock = FileLock(cache / LOCK, fallback_to_soft=False)
    # A file system may have no locks; then most of the time there is no other process either.
    with contextlib.suppress(OSError, NotImplementedError):
        lock.acquire(poll_interval=0.01)
    try:
        yield
    finally:
        lock.release()


@contextlib.contextmanager
def _draft(cache: Path) -> Iterator[Path]:
    """Yield a folder beside the entries that is gone afterwards."""
    draft = Path(tempfile.mkdtemp(dir=cache, prefix=DRAFT))
    try:
        yield draft
    finally:
        shutil.rmtree(draft, ignore_errors=True)
