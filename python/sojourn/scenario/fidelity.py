"""Fidelity of an answer: the field `fidelity` of a scenario.

`packets` simulates every packet of the network, `sample` those of a part that stands for the whole;
`flows` simulates the whole network as a fluid, and learns from samples how packets differ from it.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from sojourn._core import ScenarioError
from sojourn.base.messages import did_you_mean

FIELD = "fidelity"

PACKETS, SAMPLE, FLOWS = "packets", "sample", "flows"
KINDS = (PACKETS, SAMPLE, FLOWS)

MAX_SAMPLES = 100

LEAST_FOR_CHECK = 2
"""Samples from which the law of some can be compared with another."""


@dataclass(frozen=True)
class Fidelity:
    """Method by which a scenario is answered."""

    kind: str = PACKETS
    hosts: int = 256
    """Hosts of each folded network, about."""
    samples: int = 2
    """Number of folded networks, with different seeds."""
    check: bool = False
    """True if networks of half the size show how the answer depends on the size."""

    def as_table(self) -> dict[str, Any]:
        """Return the table of a scenario; `packets` has no parameters."""
        return {"kind": PACKETS} if self.kind == PACKETS else asdict(self)


def read(value: Any) -> Fidelity:
    """Return the fidelity that a scenario names; raise `ScenarioError` if it is invalid."""
    table = {"kind": value} if isinstance(value, str) else value
    if not isinstance(table, Mapping) or "kind" not in table:
        raise ScenarioError(f"{FIELD}: must be one of {', '.join(KINDS)}, or a table with a `kind`")
    kind = table["kind"]
    if kind not in KINDS:
        hint = did_you_mean(str(kind), KINDS)
        raise ScenarioError(f"{FIELD}.kind: expected one of {', '.join(KINDS)}, not {kind}{hint}")
    names = [field.name for field in fields(Fidelity)] if kind != PACKETS else ["kind"]
    for name in table:
        if name not in names:
            hint = did_you_mean(str(name), names)
            allowed = ", ".join(names)
            raise ScenarioError(f"{FIELD}.{name}: unknown field; {kind} has {allowed}{hint}")
    for name, most in (("hosts", 1 << 20), ("samples", MAX_SAMPLES)):
        number = table.get(name, 2)
        if not isinstance(number, int) or isinstance(number, bool) or not 1 <= number <= most:
            raise ScenarioError(f"{FIELD}.{name}: must be a whole number from 1 to {most}")
    if not isinstance(table.get("check", False), bool):
        raise ScenarioError(f"{FIELD}.check: must be true or false")
    chosen = Fidelity(**table)
    if chosen.kind == FLOWS and chosen.samples < LEAST_FOR_CHECK:
        raise ScenarioError(
            f"{FIELD}.samples: flows needs {LEAST_FOR_CHECK} or more, as one sample checks another"
        )
    return chosen


ABOUT = {
    "kind": "How the scenario is answered: `packets` simulates the whole network, `sample` a part "
    "of it (leaf_spine, clos, fat_tree) that stands for the whole, and `flows` the whole as a "
    "fluid, corrected by samples.",
    "hosts": "Hosts of each folded network, about.",
    "samples": "Number of folded networks, with different seeds.",
    "check": "If true, `sample` also simulates networks of half the size and shows the difference.",
}
"""Descriptions of the fields."""

SCHEMA: dict[str, Any] = {
    "description": ABOUT["kind"],
    "default": PACKETS,
    "anyOf": [
        {"enum": list(KINDS)},
        {
            "type": "object",
            "properties": {
                "kind": {"enum": list(KINDS)},
                "hosts": {
                    "description": ABOUT["hosts"],
                    **{"type": "integer", "minimum": 1, "default": Fidelity.hosts},
                },
                "samples": {
                    "description": ABOUT["samples"],
                    **{"type": "integer", "minimum": 1, "maximum": MAX_SAMPLES},
                    "default": Fidelity.samples,
                },
                "check": {"description": ABOUT["check"], "type": "boolean", "default": False},
            },
            "required": ["kind"],
            "additionalProperties": False,
        },
    ],
}
"""JSON schema of the field."""


def parameters() -> list[dict[str, Any]]:
    """Return the entries of the field in the catalogue of parts."""
    default = asdict(Fidelity())
    return [
        {
            "name": FIELD if name == "kind" else f"{FIELD}.{name}",
            "allowed": {"kind": f"one of {', '.join(KINDS)}", "check": "true or false"}.get(
                name, "a whole number"
            ),
            "bounds": None,
            "default": default[name],
            "about": about,
        }
        for name, about in ABOUT.items()
    ]
