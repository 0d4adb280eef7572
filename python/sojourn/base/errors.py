"""Errors that several packages raise or catch."""

import contextlib
from collections.abc import Iterator

from sojourn._core import ScenarioError


class FileError(ScenarioError):
    """Error in a file; the message begins with the file's name."""


class ClusterError(ScenarioError):
    """Error of a cluster; the message begins with the option and the address."""


class FoldHostsError(ScenarioError):
    """Error in the number of hosts of a fold; the message begins with `hosts: `."""


class FewHostsError(FoldHostsError):
    """Error of a fold that more hosts avoid; the message does not state how many."""


def prefixed(error: ScenarioError, prefix: str) -> ScenarioError:
    """Return an error of the same class and notes whose message begins with `PREFIX: `."""
    longer = type(error)(f"{prefix}: {error}")
    for note in getattr(error, "__notes__", ()):
        longer.add_note(note)
    return longer


@contextlib.contextmanager
def naming(name: str) -> Iterator[None]:
    """Prepend a name, if it is not empty, to errors of a scenario."""
    try:
        yield
    except (FileError, ClusterError):
        raise
    except ScenarioError as error:
        raise (prefixed(error, name) if name else error) from None


def check_whole(name: str, value: object) -> None:
    """Raise `ScenarioError` for an option that is not a whole number; NumPy's are."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise ScenarioError(f"{name}: must be a whole number, not {value!r}")
