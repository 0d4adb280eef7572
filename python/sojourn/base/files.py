"""Reading and writing of files with clear errors.

Only regular files up to a given size are read, and text only in UTF-8. Errors are `OSError`: of a
file that cannot be read, `strerror` completes "FILE: cannot be read: "; of a file that cannot be
written, `filename` is set, which Python leaves empty if the disk is full.
"""

import errno
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from sojourn.base.errors import FileError

MAX_SETTINGS_BYTES = 5_000_000
"""Largest file of settings, such as a scenario; long lists belong in data files."""

MAX_DATA_BYTES = 1_000_000_000
"""Largest file of data, such as a trace or a table."""

KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
"""Kinds of files that are not read, because reading may block or never end."""


def read_bytes(path: Path, max_bytes: int) -> bytes:
    """Return the content of a regular file of at most `max_bytes` bytes."""
    regular_file(path, max_bytes)
    with path.open("rb") as stream:
        content = stream.read(max_bytes + 1)
    # Files in /proc report a size of 0, and a file may grow.
    _check_size(path, len(content), max_bytes)
    return content


def read_text(path: Path, max_bytes: int) -> str:
    """Return the text of a regular file of at most `max_bytes` bytes, with LF line ends."""
    try:
        text = read_bytes(path, max_bytes).decode("utf-8-sig")
        return text.replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError:
        raise OSError(errno.EILSEQ, "not UTF-8 text", str(path)) from None


def regular_file(path: Path, max_bytes: int) -> Path:
    """Return the path of a regular file of at most `max_bytes` bytes, or raise `OSError`."""
    try:
        status = path.stat()
    except ValueError:
        raise OSError(errno.EINVAL, "invalid file name", str(path)) from None
    kind = KINDS.get(stat.S_IFMT(status.st_mode))
    if kind is not None:
        raise OSError(errno.EINVAL, f"{kind}, not a file", str(path))
    _check_size(path, status.st_size, max_bytes)
    return path


def _check_size(path: Path, size: int, max_bytes: int) -> None:
    if size > max_bytes:
        raise OSError(errno.EFBIG, f"larger than {max_bytes // 1_000_000} MB", str(path))


def write_text(path: Path, text: str) -> None:
    """Write a text in UTF-8."""
    with writing(path):
        # The text may quote a file name with bytes that are not valid UTF-8.
        path.write_text(text, encoding="utf-8", errors="backslashreplace")


def write_new(texts: Mapping[Path, str], folder: Path) -> list[Path]:
    """Write all files, or none if one exists; create subfolders of the existing `folder`."""
    for file in texts:
        if file.exists() or file.is_symlink():
            raise FileError(f"{file}: exists already, nothing was written; choose another name")
    for file, text in texts.items():
        try:
            if file.parent != folder:
                file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("x", encoding="utf-8") as stream:
                stream.write(text)
        except OSError as error:
            # Python's error of a full disk lacks the file name.
            raise OSError(error.errno, error.strerror, str(file)) from None
    return list(texts)


def remove(paths: Iterable[Path]) -> None:
    """Remove files that exist."""
    for path in paths:
        with writing(path):
            path.unlink(missing_ok=True)


def _is_file_name(path: Path) -> bool:
    """Return true if the operating system can represent a name."""
    try:
        return b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        return False


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Create the folder of a file, and name the file in errors of writing it."""
    if not _is_file_name(path):
        raise OSError(errno.EINVAL, "invalid file name", str(path))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from None
