"""Errors that several packages raise."""

from sojourn._core import ScenarioError


class FileError(ScenarioError):
    """Error in a file; the message begins with the file's name."""


class ClusterError(ScenarioError):
    """Error of a cluster; the message begins with the option and the address."""
