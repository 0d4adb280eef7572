"""Sojourn: a laboratory for congestion control, judged by flow completion time."""

from sojourn.base.lazy import attach_stub

# `__init__.pyi` lists the public names. A name is imported on first use, because importing the
# packages for plots and statistics takes a second.
__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
