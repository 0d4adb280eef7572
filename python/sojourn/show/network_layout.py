"""Positions of a network's nodes in its picture."""

import re
from collections.abc import Mapping, Sequence

Position = tuple[float, float]


def layout(cables: Sequence[tuple[str, str]]) -> tuple[dict[str, Position], list[str]]:
    """Return the positions of the nodes in the unit square, and the names of the switches.

    Switches in a chain form a row with their hosts around them; otherwise nodes form tiers by their
    distance from the hosts.
    """
    neighbours: dict[str, list[str]] = {}
    for left, right in cables:
        neighbours.setdefault(left, []).append(right)
        neighbours.setdefault(right, []).append(left)
    switches = [name for name, adjacent in neighbours.items() if len(adjacent) > 1]
    switch_graph = {
        name: [neighbour for neighbour in neighbours[name] if neighbour in switches]
        for name in switches
    }
    ends = [name for name in switches if len(switch_graph[name]) == 1]
    if len(ends) == 2 and all(len(adjacent) <= 2 for adjacent in switch_graph.values()):
        return _chain(neighbours, switch_graph, min(ends, key=_natural)), switches
    return _tiers(neighbours, switches), switches


def _chain(
    neighbours: Mapping[str, list[str]], switch_graph: Mapping[str, list[str]], start: str
) -> dict[str, Position]:
    row = [start]
    while following := [name for name in switch_graph[row[-1]] if name not in row]:
        row.append(following[0])
    positions: dict[str, Position] = {}
    for number, switch in enumerate(row):
        x = 0.3 + 0.4 * number / (len(row) - 1)
        positions[switch] = (x, 0.5)
        hosts = sorted((name for name in neighbours[switch] if name not in row), key=_natural)
        is_end = number in (0, len(row) - 1)
        for order, host in enumerate(hosts):
            share = (order + 1) / (len(hosts) + 1)
            if is_end:
                positions[host] = (0.0 if number == 0 else 1.0, 1 - share)
            else:
                positions[host] = (x + 0.12 * (share - 0.5), 0.85 if order % 2 else 0.15)
    return positions


def _tiers(neighbours: Mapping[str, list[str]], switches: Sequence[str]) -> dict[str, Position]:
    tiers = [sorted((name for name in neighbours if name not in switches), key=_natural)]
    placed = set(tiers[0])
    while len(placed) < len(neighbours):
        above = {neighbour for name in tiers[-1] for neighbour in neighbours[name]} - placed
        # Nodes that no host reaches share the last tier.
        tiers.append(sorted(above or set(neighbours) - placed, key=_natural))
        placed |= set(tiers[-1])
    tiers = [tier for tier in tiers if tier]
    return {
        name: ((order + 0.5) / len(tier), level / max(len(tiers) - 1, 1))
        for level, tier in enumerate(tiers)
        for order, name in enumerate(tier)
    }


def _natural(name: str) -> list[tuple[int, str]]:
    """Return a sort key that orders `host2` before `host10`."""
    return [(int(word or 0), text) for text, word in re.findall(r"(\D*)(\d*)", name)]
