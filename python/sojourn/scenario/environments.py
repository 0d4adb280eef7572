"""One environment for all schemes of a comparison.

A scenario may leave the choice of its environment to its network and its transports
(`automatic`), so that schemes could end up in different environments.
"""

from collections.abc import Sequence

from sojourn.scenario.encoding import Prepared
from sojourn.scenario.reading import Labels, Scenario

FIELD = "environment"

AUTOMATIC = "automatic"

LOSSLESS = "lossless_datacentre"


def unify(labelled: Sequence[tuple[Labels, Scenario]]) -> list[tuple[Labels, Scenario]]:
    """Return the scenarios with one environment for all that leave the choice open.

    It is that of the first, or lossless if one of them needs a lossless network. Scenarios that
    name an environment keep it.
    """
    free = [scenario for _, scenario in labelled if _is_free(scenario)]
    if not free:
        return list(labelled)
    chosen = [Prepared(scenario).complete()[FIELD] for scenario in free]
    environment = LOSSLESS if LOSSLESS in chosen else chosen[0]
    return [
        (labels, {**scenario, FIELD: environment} if _is_free(scenario) else scenario)
        for labels, scenario in labelled
    ]


def _is_free(scenario: Scenario) -> bool:
    return bool(scenario.get(FIELD, AUTOMATIC) == AUTOMATIC)
