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

SHOWN_VALUES = 4
"""Most values that a line lists."""


def unify(labelled: Sequence[tuple[Labels, Scenario]]) -> list[tuple[Labels, Scenario]]:
    """Return the scenarios with one environment for all that leave the choice open.

    It is that of the first, or lossless if one of them needs a lossless network. Scenarios that
    name an environment keep it.
    """
    chosen = _chosen(labelled)
    if not chosen:
        return list(labelled)
    environment = _common(chosen)
    return [
        (labels, {**scenario, FIELD: environment} if is_free(scenario) else scenario)
        for labels, scenario in labelled
    ]


def lines(labelled: Sequence[tuple[Labels, Scenario]]) -> list[str]:
    """Return a line on the scenarios whose environment `unify` changes, or nothing.

    It names the environment of all, and the values of labels that would use another one.
    """
    chosen = _chosen(labelled)
    others = [name for name in dict.fromkeys(chosen) if name != _common(chosen)]
    if not others:
        return []
    free = [labels for labels, scenario in labelled if is_free(scenario)]
    differ = [labels for labels, name in zip(free, chosen, strict=True) if name in others]
    values = _values(differ, [labels for labels in free if labels not in differ])
    more = ", …" if len(values) > SHOWN_VALUES else ""
    return [
        f"environment of all runs: {_common(chosen)}; run separately,"
        f" {', '.join(values[:SHOWN_VALUES])}{more} would use {' or '.join(others)}"
    ]


def _values(differ: Sequence[Labels], alike: Sequence[Labels]) -> list[str]:
    """Return the values of one label that no others have, or else all labels of each."""
    for name in differ[0]:
        values = list(dict.fromkeys(str(labels[name]) for labels in differ))
        if not any(str(labels[name]) in values for labels in alike):
            return [f"{name}={shortened(value)}" for value in values]
    return [_case(labels) for labels in differ]


def _chosen(labelled: Sequence[tuple[Labels, Scenario]]) -> list[str]:
    """Return the environment of each scenario that leaves the choice open."""
    return [
        _environment(labels if len(labelled) > 1 else {}, scenario)
        for labels, scenario in labelled
        if is_free(scenario)
    ]


def _common(chosen: Sequence[str]) -> str:
    return LOSSLESS if LOSSLESS in chosen else next(iter(chosen), "")


def _case(labels: Labels) -> str:
    return ", ".join(f"{name}={shortened(str(label))}" for name, label in labels.items())


def _environment(labels: Labels, scenario: Scenario) -> str:
    """Return the environment of a scenario; an error of the scenario names its labels."""
    try:
        return str(Prepared(scenario).complete()[FIELD])
    except ScenarioError as error:
        case = _case(labels)
        raise ScenarioError(f"{case}: {error}" if case else str(error)) from None


def is_free(scenario: Scenario) -> bool:
    """Return true if a scenario leaves the choice of its environment open."""
    return bool(scenario.get(FIELD, AUTOMATIC) == AUTOMATIC)
