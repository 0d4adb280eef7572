"""Pictures of networks."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from sojourn.runs.links import ends
from sojourn.show.network_layout import layout
from sojourn.show.plot.frame import SHEET
from sojourn.show.style import BLUE, RED

MOST_NAMED = 12
"""Largest number of hosts whose names fit into the picture."""


def topology(axes: Axes, links: Sequence[Mapping[str, Any]]) -> None:
    """Draw a network from a summary's `links`: switches as squares, hosts as dots.

    The width of a cable grows with its utilisation; the most utilised cables are red.
    """
    cables: dict[tuple[str, str], float] = {}
    for link in links:
        source, target = ends(link["name"])
        cable = (min(source, target), max(source, target))
        cables[cable] = max(cables.get(cable, 0.0), float(link.get("utilisation", 0.0)))
    places, switches = layout(list(cables))
    # Hosts at the ends of a chain are below each other; their names are beside them.
    chain = min(places[name][0] for name in places) == 0.0
    busiest = max(cables.values(), default=0.0)
    for (left, right), utilisation in cables.items():
        is_busiest = utilisation > 0 and utilisation == busiest
        axes.plot(
            *zip(places[left], places[right], strict=True),
            color=RED if is_busiest else "#9CA3AF",
            linewidth=1 + 3 * utilisation,
            zorder=1,
        )
    hosts = [name for name in places if name not in switches]
    for names, marker, size, colour in ((hosts, "o", 60, BLUE), (switches, "s", 260, "#374151")):
        positions = np.array([places[name] for name in names]).reshape(-1, 2)
        x, y = positions[:, 0], positions[:, 1]
        axes.scatter(x, y, s=size, marker=marker, color=colour, zorder=2)
    named = [*switches, *hosts] if len(hosts) <= MOST_NAMED else switches
    for name in named:
        side = {0.0: "left", 1.0: "right"}.get(places[name][0]) if chain else None
        _name_node(axes, name, places[name], side or ("switch" if name in switches else "host"))
    axes.set_axis_off()
    axes.margins(0.08)


NAME_PLACES: dict[str, tuple[tuple[float, float], dict[str, Any]]] = {
    "left": ((-7, 0), {"ha": "right", "va": "center"}),
    "right": ((7, 0), {"ha": "left", "va": "center"}),
    "switch": ((0, -12), {"ha": "center", "va": "top"}),
    "host": ((0, -6), {"ha": "center", "va": "top"}),
}
"""Offset in points and alignment of a node's name, by the position of the node."""


def _name_node(axes: Axes, name: str, place: tuple[float, float], side: str) -> None:
    shift, alignment = NAME_PLACES[side]
    text: dict[str, Any] = {"textcoords": "offset points", "fontsize": 7, "bbox": SHEET}
    axes.annotate(name, place, shift, **text, **alignment)
