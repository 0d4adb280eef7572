"""Functions that draw pictures, one for each kind. Published points are hollow on dashed lines."""

from sojourn.base.units import PER_UNIT as UNITS
from sojourn.show.plot.frame import (
    PUBLISHED,
    SHEET,
    canvas,
    fitted,
    legend,
    one_legend,
    same_scale,
    save,
    unit_of_time,
    with_unit,
)
from sojourn.show.plot.lines import against, along_sizes, cdf, curves, series
from sojourn.show.plot.marks import bars, levels, points, tradeoff
from sojourn.show.plot.networks import NAME_PLACES, topology

__all__ = [
    "NAME_PLACES",
    "PUBLISHED",
    "SHEET",
    "UNITS",
    "against",
    "along_sizes",
    "bars",
    "canvas",
    "cdf",
    "curves",
    "fitted",
    "legend",
    "levels",
    "one_legend",
    "points",
    "same_scale",
    "save",
    "series",
    "topology",
    "tradeoff",
    "unit_of_time",
    "with_unit",
]
