"""Files that others wrote, read with bounds: regular ones, of a stated size, in UTF-8.

What cannot be read is an `OSError` whose `strerror` ends the sentence "FILE: cannot be read: ".
What cannot be written is one with the file's name, which Python's lacks if the disk is full.
"""

import errno
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MOST_SETTINGS = 5_000_000
"""The most bytes of a file of settings, such as a scenario: long lists have files of their own."""

MOST_DATA = 1_000_000_000
"""The most bytes of a file of data, such as a trace or a table."""

KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
"""What is not read: it may have no end, or never begin."""


def read_bytes(path: Path, most: int) -> bytes:
    """Return what is in a regular file of at most so many bytes."""
    checked(path, most)
    with path.open("rb") as stream:
        content = stream.read(most + 1)
    # Files of the system tell no size, and others may grow.
    _bounded(path, len(content), most)
    return content


def read_text(path: Path, most: int) -> str:
    """Return the text in a regular file of at most so many bytes, however its lines end."""
    try:
        text = read_bytes(path, most).decode("utf-8-sig")
        return text.replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError:
        raise OSError(errno.EILSEQ, "not a text in UTF-8", str(path)) from None


def checked(path: Path, most: int) -> Path:
    """Return the path of a regular file of at most so many bytes, or raise `OSError`."""
    try:
        status = path.stat()
    except ValueError:
        raise OSError(errno.EINVAL, "no file can have such a name", str(path)) from None
    kind = KINDS.get(stat.S_IFMT(status.st_mode))
    if kind is not None:
        raise OSError(errno.EINVAL, f"{kind}, not a file", str(path))
    _bounded(path, status.st_size, most)
    return path


def _bounded(path: Path, size: int, most: int) -> None:
    if size > most:
        raise OSError(errno.EFBIG, f"larger than {most // 1_000_000} MB", str(path))


def write_text(path: Path, text: str) -> None:
    """Write a text in UTF-8."""
    with writing(path):
        # Names of files may hold bytes that are no UTF-8.
        path.write_text(text, encoding="utf-8", errors="backslashreplace")


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Name the file in what goes wrong with writing it, and make its folder."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield
    except ValueError:
        raise OSError(errno.EINVAL, "no file can have such a name", str(path)) from None
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from None
