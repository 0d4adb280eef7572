"""Errors that several packages raise."""

from sojourn._core import ScenarioError


class FileError(ScenarioError):
    """A problem with a file; the message begins with the file's name."""
