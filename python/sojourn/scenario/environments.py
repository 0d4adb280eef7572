"""One environment for all schemes of a comparison.

A scenario may leave the choice of its environment to its network and its transports
(`automatic`), so that schemes could end up in different environments.
"""

from collections.abc import Sequence

from sojourn._core import ScenarioError
from sojourn.scenario.encoding import Prepared
from sojourn.scenario.reading import Labels, Scenario, shortened

FIELD = "environment"

AUTOMATIC = "automatic"

LOSSLESS = "lossless_datacentre"


def unify(labelled: Sequence[tuple[Labels, Scenario]]) -> list[tuple[Labels, Scenario]]:
    """Return the scenarios with one environment for all that leave the choice open.

    It is that of the first, or lossless if one of them needs a lossless network. Scenarios that
    name an environment keep it.
    """
    if not any(_is_free(scenario) for _, scenario in labelled):
        return list(labelled)
    chosen = [
        _environment(labels if len(labelled) > 1 else {}, scenario)
        for labels, scenario in labelled
        if _is_free(scenario)
    ]
    environment = LOSSLESS if LOSSLESS in chosen else chosen[0]
    return [
        (labels, {**scenario, FIELD: environment} if _is_free(scenario) else scenario)
        for labels, scenario in labelled
    ]


def _environment(labels: Labels, scenario: Scenario) -> str:
    """Return the environment of a scenario; an error of the scenario names its labels."""
    try:
        return str(Prepared(scenario).complete()[FIELD])
    except ScenarioError as error:
        case = ", ".join(f"{name}={shortened(str(label))}" for name, label in labels.items())
        raise ScenarioError(f"{case}: {error}" if case else str(error)) from None


def _is_free(scenario: Scenario) -> bool:
    return bool(scenario.get(FIELD, AUTOMATIC) == AUTOMATIC)
