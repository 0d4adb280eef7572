"""Where the nodes of a network stand in its picture."""

import re
from collections.abc import Mapping, Sequence

Place = tuple[float, float]


def layout(cables: Sequence[tuple[str, str]]) -> tuple[dict[str, Place], list[str]]:
    """Place the nodes of a network in the unit square; also return which are switches.

    Switches in a chain stand in a row with their hosts around them; others stand in tiers by their
    distance from the hosts.
    """
    near: dict[str, list[str]] = {}
    for one, other in cables:
        near.setdefault(one, []).append(other)
        near.setdefault(other, []).append(one)
    switches = [name for name, others in near.items() if len(others) > 1]
    between = {name: [other for other in near[name] if other in switches] for name in switches}
    ends = [name for name in switches if len(between[name]) == 1]
    if len(ends) == 2 and all(len(others) <= 2 for others in between.values()):
        return _chain(near, between, min(ends, key=_natural)), switches
    return _tiers(near, switches), switches


def _chain(
    near: Mapping[str, list[str]], between: Mapping[str, list[str]], start: str
) -> dict[str, Place]:
    row = [start]
    while following := [name for name in between[row[-1]] if name not in row]:
        row.append(following[0])
    places: dict[str, Place] = {}
    for number, switch in enumerate(row):
        across = 0.3 + 0.4 * number / (len(row) - 1)
        places[switch] = (across, 0.5)
        hosts = sorted((name for name in near[switch] if name not in row), key=_natural)
        at_end = number in (0, len(row) - 1)
        for order, host in enumerate(hosts):
            share = (order + 1) / (len(hosts) + 1)
            if at_end:
                places[host] = (0.0 if number == 0 else 1.0, 1 - share)
            else:
                places[host] = (across + 0.12 * (share - 0.5), 0.85 if order % 2 else 0.15)
    return places


def _tiers(near: Mapping[str, list[str]], switches: Sequence[str]) -> dict[str, Place]:
    tiers = [sorted((name for name in near if name not in switches), key=_natural)]
    placed = set(tiers[0])
    while len(placed) < len(near):
        above = {other for name in tiers[-1] for other in near[name]} - placed
        # Nodes that no host reaches share the last tier.
        tiers.append(sorted(above or set(near) - placed, key=_natural))
        placed |= set(tiers[-1])
    tiers = [tier for tier in tiers if tier]
    return {
        name: ((order + 0.5) / len(tier), level / max(len(tiers) - 1, 1))
        for level, tier in enumerate(tiers)
        for order, name in enumerate(tier)
    }


def _natural(name: str) -> list[tuple[int, str]]:
    """Order `host2` before `host10`."""
    return [(int(word or 0), text) for text, word in re.findall(r"(\D*)(\d*)", name)]
