"""Folded networks of a scenario, which stand for the whole; the fluid beside them."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sojourn._core import ScenarioError
from sojourn.scale.fold import NOT_PRESERVED, Folded, fold
from sojourn.scale.network import read_network
from sojourn.scenario.encoding import Prepared
from sojourn.scenario.fidelity import FIELD, FLOWS, SAMPLE, Fidelity
from sojourn.scenario.reading import Scenario


class Samples:
    """Folded networks of a scenario, each with a seed of its own."""

    def __init__(self, scenario: Mapping[str, Any], fidelity: Fidelity) -> None:
        """Fold the scenario; raise `ScenarioError` if it cannot be answered by samples."""
        self._scenario = scenario
        whole = {name: value for name, value in scenario.items() if name != FIELD}
        if (model := whole.get("model", "packet")) != "packet":
            kind = model["kind"] if isinstance(model, Mapping) else model
            raise ScenarioError(
                f"{FIELD}: {fidelity.kind} is for packets, not for the ideal {kind}; "
                "leave `fidelity` out"
            )
        self.fidelity = fidelity
        seed = int(whole.get("seed", 1))
        # Consecutive seeds of a comparison have different samples.
        self.seeds = [seed * fidelity.samples + number for number in range(fidelity.samples)]
        folds = [fold(whole, fidelity.hosts, sample) for sample in self.seeds]
        self.folded: Folded = folds[0]
        topology = Prepared(self.folded.scenario).complete()["topology"]
        self.access_bps = read_network(topology).rates["access"]
        self.scenarios: list[Scenario] = [
            {**each.scenario, "seed": sample}
            for each, sample in zip(folds, self.seeds, strict=True)
        ]

    def half(self) -> "Samples":
        """Return samples of half the size."""
        return Samples(self._scenario, replace(self.fidelity, hosts=self.folded.kept // 2))

    def summary(self) -> dict[str, Any]:
        """Return the entry `fidelity` of the summary of the answer."""
        folded = self.folded
        return {
            "kind": self.fidelity.kind,
            "hosts": folded.hosts,
            "kept": folded.kept,
            "units": folded.units,
            "seeds": self.seeds,
            "utilisations": {tier: list(loads) for tier, loads in folded.utilisations.items()},
            "not_preserved": list(NOT_PRESERVED) if folded.kept < folded.hosts else [],
        }


FLUID = "processor_sharing"
"""Ideal in which a flow gets the least equal share of its links; others leave its rest unused.

That makes it cheap: an event changes few flows. What it leaves out, the law puts back.
"""

FLUID_FIELDS = ("time_limit", "warm_up", "topology", "workload", "packet", "environment", "routing")
"""Fields on which flows in a fluid depend, besides the seed. Schemes share one fluid."""


def fluid_of(scenario: Scenario) -> Scenario:
    """Return the scenario of the same flows in the fluid."""
    complete = Prepared(scenario).complete()
    fields = {name: complete[name] for name in FLUID_FIELDS}
    return fields | {"seed": scenario.get("seed", 1), "model": FLUID}


def check_flows(scenario: Mapping[str, Any]) -> None:
    """Raise `ScenarioError` if the fluid and a law cannot answer a scenario."""
    for name in ("account", "record", "samples"):
        if scenario.get(name, "none") not in ("none", False):
            raise ScenarioError(
                f"{name}: {FIELD} `{FLOWS}` predicts completion times only; "
                f"leave it out, or use `{SAMPLE}`"
            )
    if str(scenario.get("routing", "")).startswith("spray"):
        raise ScenarioError(
            f"routing: under `{FLOWS}` a flow has one path; use the fidelity `{SAMPLE}`"
        )
