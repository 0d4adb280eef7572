"""Sojourn: a laboratory for congestion control, judged by flow completion time."""

from sojourn.base.lazy import attach_stub

# The public names are those of `__init__.pyi`. Each is loaded when it is first used, because some
# load what draws and computes statistics, which takes a second.
__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
