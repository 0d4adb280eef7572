"""Cache of results: one folder per result, named by the hash of everything that it depends on.

An entry is written atomically, and used only if its checksums match. Several processes may share a
cache: none removes a file that another is using.
"""

import contextlib
import functools
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
from sojourn.scenario.encoding import encode

DRAFT = ".draft-"
"""Prefix of the names of folders that are being written."""

LOCK = ".lock"
"""Name of the file that a process locks while it moves an entry into place."""

ABANDONED_S = 24 * 60 * 60
"""Age from which a draft is abandoned; writing one takes seconds, minutes on a slow disk."""

Simulate = Callable[[str, Sequence[str]], Result]
"""Function that runs a scenario, given as JSON and the texts of its files."""


def default_cache() -> Path:
    """Return the folder of the cache: `$SOJOURN_CACHE`, or `results/cache` in this directory."""
    return Path(os.environ.get("SOJOURN_CACHE") or Path("results") / "cache")


def entry_name(scenario: Mapping[str, Any]) -> str:
    """Return the name of the cache entry of a scenario as `check` returns it."""
    text, file_texts = encode(scenario)
    digest = hashlib.sha256(f"{_core.SOURCE_HASH}\n{text}".encode())
    for file_text in file_texts:
        # In blocks of 1 MiB: encoding a large text at once would double its memory.
        digest.update(f"\n{len(file_text)}\n".encode())
        for start in range(0, len(file_text), 1 << 20):
            digest.update(file_text[start : start + (1 << 20)].encode())
    return digest.hexdigest()


def find_results(cache: Path, names: Iterable[str], simulate: Simulate) -> dict[str, Result]:
    """Return the cached results of these names.

    Damaged entries are omitted, with one line of warning. If a table turns out to be damaged only
    when it is read, `simulate` runs the scenario again.
    """
    results, errors = {}, []
    for name in names:
        directory = cache / name
        if not os.path.lexists(directory):
            continue
        try:
            results[name] = _open_entry(directory, simulate)
        except FileError as error:
            errors.append(str(error))
    if errors:
        others = f" (and {len(errors) - 1} other results)" if len(errors) > 1 else ""
        _warn(f"{errors[0]}; running it again{others}")
    return results


def _open_entry(directory: Path, simulate: Simulate | None) -> Result:
    """Return the result of an entry; `simulate` runs it again if a table turns out damaged."""

    def replace(error: FileError, damaged: Result) -> None:
        if simulate is None:
            raise error
        _warn(f"{error}; running it again")
        store(directory, simulate(*encode(damaged.summary["scenario"])), simulate)

    result = Result.read(directory, replace)
    if entry_name(result.summary.get("scenario", {})) != directory.name:
        raise FileError(f"{directory}: is the result of another scenario")
    return result


def _warn(message: str) -> None:
    print(f"sojourn: {message}", file=sys.stderr)


def prepare_folder(cache: Path) -> None:
    """Create the cache, check that it is writable, and delete abandoned drafts."""
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with _draft(cache):
            pass
        drafts = [entry for entry in os.scandir(cache) if entry.name.startswith(DRAFT)]
    except OSError as error:
        raise FileError(
            f"{cache}: cannot be used as cache: {error.strerror};"
            " set SOJOURN_CACHE to another folder"
        ) from None
    for draft in drafts:
        with contextlib.suppress(FileNotFoundError):  # Its process has finished meanwhile.
            if time.time() - draft.stat(follow_symlinks=False).st_mtime > ABANDONED_S:
                shutil.rmtree(draft.path, ignore_errors=True)


def store(directory: Path, result: Result, simulate: Simulate) -> Result:
    """Write an entry atomically, replacing a damaged one; return the stored result."""
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        with _draft(directory.parent) as draft:
            _replace(result.write(draft / "new"), directory, draft)
    except OSError as error:
        raise FileError(f"{directory}: cannot be written: {error.strerror}") from None
    return _open_entry(directory, simulate)


def _replace(new: Path, directory: Path, draft: Path) -> None:
    """Move a folder into place; move a damaged entry at that place into the draft."""
    with _lock(directory.parent):
        with contextlib.suppress(OSError):
            new.rename(directory)
            return
        with contextlib.suppress(FileError):
            _open_entry(directory, None).verify()
            return  # Another process has written the entry meanwhile.
        with contextlib.suppress(FileNotFoundError):
            directory.rename(draft / "damaged")
        new.rename(directory)


@functools.cache
def _file_lock(file: Path) -> FileLock:
    """Return the lock of a cache, always the same object.

    An interrupt (Ctrl-C) that arrives in the destructor of a lock would be ignored.
    """
    return FileLock(file, fallback_to_soft=False)


@contextlib.contextmanager
def _lock(cache: Path) -> Iterator[None]:
    """Hold the lock under which processes move entries into place.

    Without the lock a process could move away an entry that another has replaced since the first
    found it damaged.
    """
    lock = _file_lock(cache / LOCK)
    # Some file systems support no locks; there the cache relies on a single process.
    with contextlib.suppress(OSError, NotImplementedError):
        lock.acquire(poll_interval=0.01)
    try:
        yield
    finally:
        lock.release()


@contextlib.contextmanager
def _draft(cache: Path) -> Iterator[Path]:
    """Yield a folder next to the entries; delete it at the end."""
    draft = Path(tempfile.mkdtemp(dir=cache, prefix=DRAFT))
    try:
        yield draft
    finally:
        shutil.rmtree(draft, ignore_errors=True)
