"""Style of pictures: colours, markers and Matplotlib settings.

The colours are those of Okabe and Ito, which are distinguishable with any kind of colour vision,
and a brown for lines, since their yellow is too light for these. A scheme has the same colour and
marker in every picture.
"""

import re
import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

BLACK, ORANGE, SKY, GREEN, YELLOW, BLUE, RED, PURPLE = (
    "#000000",
    "#E69F00",
    "#56B4E9",
    "#009E73",
    "#F0E442",
    "#0072B2",
    "#D55E00",
    "#CC79A7",
)
BROWN = "#7A4B2A"
GREY = "#6B7280"

COLOURS = (BLUE, ORANGE, GREEN, RED, PURPLE, SKY, BLACK)
"""The most distinguishable colours, for schemes that are not in `LOOKS`."""


FORMATS = ("svg", "png", "pdf")
"""Formats of pictures."""

DEFAULT_FORMATS = FORMATS[:2]
"""Formats of pictures unless others are chosen."""


class Look(NamedTuple):
    """Colour, marker and line style of a scheme."""

    colour: str
    marker: str
    line: str = "-"


LOOKS = {
    "dctcp": Look(BLUE, "o"),
    "dcqcn": Look(GREEN, "s"),
    "timely": Look(RED, "^"),
    "patched timely": Look(ORANGE, "D"),
    "swift": Look(ORANGE, "D"),
    "dcqcn+w": Look(GREEN, "s"),
    "timely+w": Look(RED, "^"),
    "hpcc": Look(ORANGE, "D"),
    "hpcc pint": Look(PURPLE, "X"),
    "both (hpcc)": Look(ORANGE, "D"),
    "per ack": Look(BLUE, "o"),
    "per rtt": Look(GREEN, "s"),
    "powertcp": Look(PURPLE, "v"),
    "theta powertcp": Look(SKY, "P"),
    "sprayed packets": Look(ORANGE, "o"),
    "tcp": Look(PURPLE, "v"),
    "slow start": Look(SKY, "."),
    "highspeed tcp": Look(BLUE, "o"),
    "high speed tcp": Look(BLUE, "o"),
    "reno": Look(PURPLE, "v"),
    "cubic": Look(SKY, "P"),
    "hystart++": Look(ORANGE, "D"),
    "vegas": Look(GREEN, "o"),
    "copa": Look(ORANGE, "s"),
    "bbr": Look(RED, "^"),
    "bbrv3": Look(SKY, "v"),
    "jumpstart": Look(RED, "^"),
    "quick start": Look(ORANGE, "o"),
    "xcp": Look(ORANGE, "X"),
    "rcp": Look(GREEN, "p"),
    "pdq": Look(SKY, "h"),
    "pfabric": Look(BROWN, "*"),
    "pfabric edf": Look(RED, "P"),
    "bytessent": Look(GREEN, "^"),
    "flowsize": Look(RED, "s"),
    "remainingflowsize": Look(BROWN, "*"),
    "expresspass": Look(RED, "D"),
    "homa": Look(BLUE, "o"),
    "phost": Look(RED, "^"),
    "pias": Look(GREEN, "s"),
    "pdq at best": Look(SKY, ".", ":"),
    "rto 2 rtt": Look(SKY, "o"),
    "rto 3 rtt": Look(BROWN, "*"),
    "rto 6 rtt": Look(ORANGE, "D"),
    "rto 10 rtt": Look(RED, "^"),
    "rto 20 rtt": Look(PURPLE, "v"),
    "first hop": Look(BLUE, "o"),
    "last hop": Look(ORANGE, "s"),
    "load 0.5": Look(SKY, "v"),
    "load 0.6": Look(BLUE, "o"),
    "load 0.8": Look(RED, "s"),
    "web search": Look(BLUE, "o"),
    "data mining": Look(ORANGE, "s"),
    "pcp": Look(BLUE, "d"),
    "pcp all at once": Look(BLUE, "d"),
    "pcp a third first": Look(SKY, "o"),
    "router based control": Look(GREEN, "s"),
    "as realised": Look(RED, "o"),
    "as configured": Look(GREY, ".", ":"),
    "alone": Look(GREY, ".", ":"),
    "ideal": Look(BLACK, ".", "--"),
    "omniscient": Look(BLACK, ".", "--"),
    "processor sharing": Look(BLACK, ".", "--"),
    "srpt": Look(GREY, ".", "-."),
    "drop tail": Look(BLUE, "o"),
    "red": Look(RED, "s"),
    "red and ecn": Look(ORANGE, "D"),
    "max min": Look(BLACK, ".", ":"),
    "all delivered": Look(BLACK, ".", ":"),
    "fast*": Look(ORANGE, "d"),
    "dctcp with offload": Look(SKY, "o"),
    "one queue": Look(BLACK, "o"),
    "two queues": Look(GREEN, "s"),
    "gradient": Look(RED, "^"),
    "one target": Look(BLUE, "o"),
    "with priority": Look(BLUE, "o"),
    "without priority": Look(RED, "s"),
    "beta 0.008": Look(PURPLE, "v"),
    "1 kb": Look(RED, "o"),
    "3 kb": Look(ORANGE, "s"),
    "5 kb": Look(SKY, "^"),
    "7 kb": Look(BLUE, "v"),
    "9 kb": Look(PURPLE, "D"),
    "pause alone": Look(GREY, "s"),
    "mean rtt": Look(SKY, "o"),
    "p99 rtt": Look(PURPLE, "v"),
    "16 kb": Look(BLUE, "o"),
    "32 kb": Look(ORANGE, "s"),
    "64 kb": Look(PURPLE, "^"),
    "10 sessions": Look(SKY, "o"),
    "40 sessions": Look(ORANGE, "s"),
    "100 sessions": Look(PURPLE, "^"),
    "1 priority": Look(RED, "^"),
    "2 priorities": Look(ORANGE, "D"),
    "4 priorities": Look(SKY, "v"),
    "7 priorities": Look(BLUE, "o"),
    "tor to aggregation": Look(SKY, "v"),
    "aggregation to tor": Look(ORANGE, "D"),
    "tor to host": Look(BLUE, "o"),
    "packets": Look(BLACK, "o"),
    "sample": Look(BLUE, "s"),
    "sample of 256": Look(BLUE, "s"),
    "sample of 128": Look(SKY, "D"),
    "sample of 64": Look(GREEN, "v"),
    "flows": Look(RED, "^"),
    "fluid alone": Look(ORANGE, "P"),
    "128 hosts as they are": Look(PURPLE, "X"),
}

STYLE: Any = {
    "figure.figsize": (6.4, 4.0),
    "figure.dpi": 100,
    "figure.constrained_layout.use": True,
    "savefig.dpi": 160,
    # Publishers refuse fonts of type 3, the default.
    "pdf.fonttype": 42,
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#444444",
    "axes.labelcolor": "#222222",
    "axes.grid": True,
    "axes.axisbelow": True,
    # Ticks have whole values, not differences from a number above the axis.
    "axes.formatter.useoffset": False,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.6,
    "xtick.color": "#444444",
    "ytick.color": "#444444",
    "lines.linewidth": 1.6,
    "lines.markersize": 5,
    "legend.frameon": False,
    "legend.fontsize": 9,
}


DISTINCT = ("dctcp", "xcp", "dcqcn", "timely", "tcp", "cubic", "ideal")
"""Schemes whose colours are the most distinguishable."""


def distinct(names: Sequence[str]) -> dict[str, str]:
    """Map the schemes of a picture to the names whose looks they get, without equal looks.

    A scheme keeps its own look if no earlier one has its colour; of two variants of a scheme, the
    second has the scheme's look. After seven schemes, lines are dotted, and bars hatched.
    """
    looks: dict[str, str] = {}
    spare = [*DISTINCT, *(f"{name}, dotted" for name in DISTINCT)]
    for name in names:
        colours = {look(other)[::2] for other in looks.values()}
        scheme = name.partition(", ")[0]
        own = [name, scheme] if len(looks) < len(DISTINCT) else []
        free = [other for other in (*own, *spare) if look(other)[::2] not in colours]
        looks[name] = free[0] if free else name
    return looks


def look(scheme: str) -> Look:
    """Return the scheme's colour, marker and line style, a function of its name.

    A variant, such as `TIMELY, floor 1 Gb/s`, has the scheme's colour, and a dotted line.
    """
    name, _, variant = re.sub(r"[\s_-]+", " ", scheme.strip().lower()).partition(", ")
    if variant:
        return Look(look(name).colour, "x", ":")
    if name in LOOKS:
        return LOOKS[name]
    number = zlib.crc32(name.encode())
    return Look(COLOURS[number % 7], "osD^vPX*"[number // 7 % 8])
